"""``onepass demo``: compare rules on a generated stream that drifts."""

from __future__ import annotations

import io
import os
import shutil
import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from ..persistence.files import is_regular, write
from .paths import Output, summary_stream

if TYPE_CHECKING:
    from ..evaluation import Run

__all__ = ["command"]

RULES = (
    "perceptron",
    "pa1",
    "pa1:C=0.01",
    "adaline",
    "sgd:loss=logistic",
    "sgd:loss=logistic,schedule=constant",
)


@click.command(
    "demo", short_help="Compare rules on a generated stream; needs no data.", context_settings={"show_default": True}
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="RULE",
    default=RULES,
    show_default="a choice of six",
    help="A rule, as `onepass models` lists them. Repeat the option to compare several.",
)
@click.option("--examples", type=click.IntRange(min=1), default=200_000, help="The number of examples.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="The seed of the random stream.")
@click.option(
    "--every",
    type=click.IntRange(min=1),
    show_default="a twentieth of the stream",
    help="The number of examples between two reports, and in the window of recent examples.",
)
@click.option(
    "--plot", type=Output(), metavar="FILE.png", help="Draw the error over time into this file (needs matplotlib)."
)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress, only the table.")
def command(rules: tuple[str, ...], examples: int, seed: int, every: int | None, plot: str | None, quiet: bool) -> None:
    """Compare rules on a generated stream that drifts. Needs no data.

    There are two classes, the two sides of a plane. The plane makes a full turn over the stream, and 5% of the labels
    are wrong. Each rule predicts every example first and learns from it afterwards.

    \b
    Examples:
      onepass demo
      onepass demo --rule pa1 --rule pa1:C=0.1 --rule sgd:loss=hinge
      onepass demo --examples 1000000 --seed 7 --plot errors.png
    """
    from .. import rules as rulebook
    from ..datasets import RotatingHyperplane
    from ..evaluation import prequential

    made = [rulebook.make(rule) for rule in rules]
    for rule in made:
        rule.require("binary")
    figure = None if plot is None else _figure(plot)
    if every is None:
        every = max(1, min(examples // 20, 100_000))

    from ..models.linear import LinearModel

    stream = RotatingHyperplane(examples, seed=seed)
    line = ProgressLine(total=examples * len(made), quiet=quiet)
    runs = []
    try:
        for i, (name, rule) in enumerate(zip(rules, made, strict=True)):
            line.start(f"{name} ({i + 1}/{len(made)})", before=i * examples)
            model = LinearModel(rule, task="binary")
            run = prequential(model, stream, every=every, metrics="error", window=every, progress=line)
            line.finish(run)
            runs.append(run)
    finally:
        line.clear()

    out = summary_stream()
    click.echo(f"{examples:,} examples, each predicted before it was learned: {stream!r}", file=out)
    click.echo(f"{stream.noise:.0%} of the labels are wrong: no rule can do better than that for long.\n", file=out)
    click.echo(summary(rules, runs), file=out)
    if rules == RULES:
        click.echo(
            "\nsgd takes ever smaller steps unless its schedule is constant, and so falls behind the drift.", file=out
        )
    if plot is not None:
        _draw(figure, plot, rules, runs)
        click.echo(f"\nerrors drawn in {plot}", file=out)


def summary(names: tuple[str, ...], runs: list[Run]) -> str:
    """The final table: the error of the first tenth of the stream, of all of it, and of its end."""
    from ..charts.text import text_table

    t, every, examples = runs[0].t, runs[0].every, runs[0].examples
    start = min(range(len(t)), key=lambda i: abs(10 * t[i] - examples))
    spans = (f"first {t[start]:,}", f"all {examples:,}", f"last {min(every, examples):,}")
    cells = [["rule", *spans, "examples/s"]]
    for name, run in zip(names, runs, strict=True):
        errors = (run.cumulative[start], run.value, run.window[-1])
        cells.append([name, *(f"{error:.2%}" for error in errors), f"{run.speed:,.0f}"])
    return text_table(cells, left=1)


class ProgressLine:
    """Progress on stderr: on a terminal one line that is rewritten, otherwise a line every few seconds.

    It is the `progress` of `prequential`.
    """

    def __init__(self, total: int, quiet: bool) -> None:
        self.total = total
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self.interval = 0.1 if self.live else 10.0  # seconds between updates
        self.began = self.shown = monotonic()
        self.title, self.before, self.width = "", 0, 0

    def start(self, title: str, before: int) -> None:
        """Begin a part of the work, after `before` finished examples."""
        self.title, self.before = title, before

    def __call__(self, run: Run) -> None:
        if not self.quiet and monotonic() - self.shown >= self.interval:
            self._show(run)

    def finish(self, run: Run) -> None:
        if not self.quiet:
            self._show(run)

    def clear(self) -> None:
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
            self.width = 0

    def _show(self, run: Run) -> None:
        self.shown = monotonic()
        done = self.before + run.examples
        left = round((self.shown - self.began) * (self.total - done) / max(done, 1))
        text = (
            f"{self.title}  {done / self.total:.0%} of all  error {run.show(run.value)}"
            f"  {run.speed:,.0f} examples/s  {left // 60}:{left % 60:02} left"
        )
        if not self.live:
            click.echo(text, err=True)
            return
        # One column is left free: a full last column wraps on some terminals.
        text = text[: max(shutil.get_terminal_size().columns - 1, 20)]
        sys.stderr.write("\r" + text.ljust(self.width))
        sys.stderr.flush()
        self.width = len(text)


def _figure(path: str) -> Any:
    """A figure for `path`. Errors of the path are raised here, before the work."""
    from ..errors import MissingDependencyError

    try:
        # Not pyplot, which has global state and may open a window.
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "--plot needs matplotlib, which is not installed: pip install onepass[plot]"
        ) from error
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if _kind(path) not in known:
        raise click.BadParameter(
            f"{path}: expected a name ending in one of {', '.join(sorted(known))}", param_hint="--plot"
        )
    return figure


def _kind(path: str) -> str:
    """The format of the picture, from the name of its file; a pipe or a device has no such name."""
    return os.path.splitext(path)[1][1:].lower() if is_regular(path) else "png"


def _draw(figure: Any, path: str, names: tuple[str, ...], runs: list[Run]) -> None:
    ax = figure.add_subplot()
    for name, run in zip(names, runs, strict=True):
        run.plot(ax, label=name)
    ax.get_legend().remove()
    figure.legend(loc="outside upper center", ncols=2)  # outside the axes, so that it covers no curve
    ax.set_ylabel(f"error over the last {runs[0].every:,} examples")
    ax.set_ylim(bottom=0)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, format=_kind(path))
    write(path, picture.getvalue())
