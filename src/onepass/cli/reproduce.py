"""``onepass reproduce``: run published experiments again, and compare the results."""

from __future__ import annotations

import shutil
import sys
from glob import escape
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from .paths import Folder, Input, writes

if TYPE_CHECKING:
    from ..reproduce import Experiment, Results

__all__ = ["command"]


@click.command(
    "reproduce",
    short_help="Run the experiments of published papers again.",
    context_settings={"show_default": True},
)
@click.argument("name", required=False, type=Input(), metavar="[NAME]")
@click.option("--quick", is_flag=True, help="Use fewer rows, parameters and seeds: under two minutes on two cores.")
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    show_default="the protocol's",
    help="The number of repetitions of each cell of the table.",
)
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    show_default="one a core; 1 where times are measured",
    help="The number of cells that run in parallel.",
)
@click.option(
    "--only", metavar="WORDS", help="Run only the cells of these data sets, learners or budgets (comma-separated)."
)
@click.option(
    "--out",
    type=Folder(),
    default="reproduce",
    metavar="FOLDER",
    help="The folder for the table, the pictures and the finished cells.",
)
@click.option("--done", is_flag=True, help="Write the report of the finished cells; run nothing.")
@click.option("--protocol", is_flag=True, help="Describe the experiment; run nothing.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(
    name: str | None,
    quick: bool,
    seeds: int | None,
    jobs: int | None,
    only: str | None,
    out: str,
    done: bool,
    protocol: bool,
    quiet: bool,
) -> None:
    """Run a published experiment again. Writes its table, with our numbers next to it, as Markdown, JSON and a picture.

    Without NAME the experiments are listed. NAME may also be a Python file with your own experiment.

    Every finished cell is saved in the --out folder. A run that was stopped or killed therefore continues where it
    was, and a run with more --seeds computes only the new ones. Delete FOLDER/cells to start from the beginning. Real
    data sets come from the folder in ONEPASS_DATA, from the cache, or from the web. If one is missing, the table says
    so and the exit code is 3.

    \b
    Examples:
      onepass reproduce
      onepass reproduce table1 --protocol
      onepass reproduce table1 --quick
      onepass reproduce table1 --only Checkerboard,BPA-P,BPA-P-R --seeds 2
      onepass reproduce drift --jobs 4 --out results
    """
    from ..reproduce import find
    from ..reproduce.runner import chosen

    if name is None:
        _list_experiments()
        return
    experiment = find(name)
    words = [word.strip() for word in (only or "").split(",") if word.strip()]
    cells = chosen(experiment.cells(quick), words)
    if not cells:
        raise click.UsageError(f"--only {only}: each word names cells, but none fits all of them")
    if protocol:
        n = seeds or (experiment.quick_seeds if quick else experiment.seeds)
        click.echo(f"{experiment.name}: {experiment.title}\n\n{experiment.protocol.strip()}\n")
        click.echo(f"{len(cells)} cells × {n} seed{'s' * (n != 1)}")
        return
    home = _folder(out, experiment.name, quick)
    options = {"quick": quick, "seeds": seeds, "only": words, "jobs": jobs, "done_only": done}
    results = _run(experiment, home, name, quiet, options)
    given = {"--quick": quick or None, "--seeds": seeds, "--only": only, "--done": done or None}
    flags = "".join(f" {flag}" + ("" if value is True else f" {value}") for flag, value in given.items() if value)
    _report(experiment, results, home, f"onepass reproduce {name}{flags}")


def _list_experiments() -> None:
    from ..reproduce import experiments

    found = experiments()
    width = max(len(name) for name in found)
    for each in found.values():
        click.echo(f"{each.name.ljust(width)}  {each.title}")
    click.echo("\nonepass reproduce NAME --quick takes under two minutes; --protocol says what it does.")


def _folder(out: str, name: str, quick: bool) -> Path:
    """The folder of --out. Errors of the path are raised here, before the work."""
    home = Path(out)
    home.mkdir(parents=True, exist_ok=True)
    stem = name + ("-quick" if quick else "")
    for path in (home / f"{stem}.md", home / f"{stem}.json", *home.glob(f"{escape(stem)}-*.svg")):
        writes(str(path), "--out")
    return home


def _run(experiment: Experiment, home: Path, name: str, quiet: bool, options: dict[str, Any]) -> Results:
    from ..reproduce.runner import run

    line = ProgressLine(quiet)
    source = name if name.endswith(".py") else None
    try:
        return run(experiment, home / "cells" / experiment.name, told=line, source=source, **options)
    finally:
        line.clear()


def _report(experiment: Experiment, results: Results, home: Path, called: str) -> None:
    """Write and print the page. The exit code is 3 where a data set was missing."""
    from ..reproduce.pages import write

    paths = write(experiment, results, home, called)
    click.echo(_without_protocol(paths[0].read_text(encoding="utf-8")))
    click.echo(f"written: {', '.join(map(str, paths))}")
    missing = sorted({result.missing for result in results if result.missing})
    for reason in missing:
        click.echo(f"onepass: not run: {reason}", err=True)
    if missing:
        sys.exit(3)


def _without_protocol(page: str) -> str:
    return page.partition("\n## Protocol\n")[0]


class ProgressLine:
    """The number of finished cells, on stderr: a line that is rewritten on a terminal, otherwise one now and then."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.live = quiet, sys.stderr.isatty()
        self.began = self.shown = monotonic()
        self.first: int | None = None
        self.width = 0

    def __call__(self, done: int, total: int, what: str) -> Any:
        if self.first is None:
            self.first = done  # cells that were finished before this run
        elif self.quiet or (not self.live and done < total and monotonic() - self.shown < 10):
            return
        if self.quiet:
            return
        self.shown = monotonic()
        ran, left = done - self.first, ""
        if ran and done < total:
            seconds = round((self.shown - self.began) * (total - done) / ran)
            left = f"  about {seconds // 60}:{seconds % 60:02} left"
        text = f"{done} of {total} runs{left}  {what}".rstrip()
        if not self.live:
            click.echo(text, err=True)
            return
        text = text[: max(shutil.get_terminal_size().columns - 1, 20)]
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)

    def clear(self) -> None:
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
