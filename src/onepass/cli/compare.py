"""``onepass compare``: several rules side by side on one stream, read once."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from .reading import as_reading, reading_options
from .significance import Pairs

if TYPE_CHECKING:
    from ..evaluate.keeping import Keeper
    from ..model import LinearModel
    from ..streams import Chunk
    from .judging import Judge

__all__ = ["command"]

RULES = "perceptron,pa1,pa1:C=0.1,pa1:C=0.01,sgd:loss=logistic"
FOR_NUMBERS = "pa1,pa1:C=0.1,nlms:mu=0.1,sgd:loss=huber"


@click.command("compare", context_settings={"show_default": True})
@click.argument("sources", nargs=-1, metavar="SOURCE…")
@click.option(
    "--rules",
    "-r",
    multiple=True,
    metavar="A,B,…",
    show_default="a choice of five",
    help="The rules; parameters as in `onepass models`; auto: many at once.",
)
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "multilabel", "ranking", "regression"]),
    default="auto",
    help="What the labels are; auto: the first of them decide.",
)
@reading_options
@click.option(
    "-b",
    "--hash-bits",
    type=click.IntRange(1, 30),
    metavar="BITS",
    show_default="a weight for every name",
    help="Hash the features' names into 2^BITS weights.",
)
@click.option("--metrics", "-m", metavar="A,B,…", show_default="error; mae", help="What to measure; the first ranks.")
@click.option(
    "--every",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="about 50 reports",
    help="Examples from one report to the next.",
)
@click.option("--window", type=click.IntRange(min=1), default=1000, help="Examples in the sliding window.")
@click.option("--report", type=click.Path(dir_okay=False), metavar="R.html", help="All curves and numbers as one page.")
@click.option("--plot", type=click.Path(dir_okay=False), metavar="P.svg", help="All curves as one picture.")
@click.option("--save-best", type=click.Path(dir_okay=False), metavar="MODEL", help="Write the best model here.")
@click.option("--on-error", type=click.Choice(["stop", "skip"]), default="stop", help="What a malformed line does.")
@click.option("--quiet", is_flag=True, help="No leaderboard on the way, only at the end.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # fmt: skip
    """Let several rules predict, then learn, the same stream in one pass; rank them and test the differences.

    The test is McNemar's for classes (of the examples on which two rules differ, how many did each get right?) and a
    paired z-test of the losses for numbers, of every rule against the best, with Holm's correction. Both take the
    examples for independent: on a stream that drifts they are a guide, not a proof.

    \b
    Examples:
      onepass compare mail.csv --label spam
      onepass compare train.vw -b 20 --rules perceptron,pa1:C=0.01 --rules sgd:loss=logistic,eta=0.5
      onepass compare train.vw --report compare.html --plot compare.svg --save-best best.model
    """
    from ..report import write
    from .drawing import picture

    race = Race(given)
    try:
        race.go()
    finally:
        race.board.end()
    if not race.entries:
        click.echo("no labelled example; nothing was compared")
        return
    click.echo(race.words())
    runs = {entry.name: entry.keeper.run for entry in race.ranked()}
    if given["report"]:
        write(given["report"], runs)
    if given["plot"]:
        Path(given["plot"]).write_text(picture(runs), encoding="utf-8")
    if given["save_best"]:
        race.ranked()[0].model.save(given["save_best"])
    if race.skipped:
        ctx.exit(3)


class Entry:
    """One rule in the race."""

    def __init__(self, name: str, model: LinearModel, keeper: Keeper, judge: Judge) -> None:
        self.name, self.model, self.keeper, self.judge = name, model, keeper, judge


class Race:
    """All models at work on one stream."""

    def __init__(self, given: dict[str, Any]) -> None:
        from .. import rules

        self.given = given
        self.reading = as_reading(given, given["hash_bits"])
        self.reading.multilabel = given["task"] == "multilabel"
        self.names = [name for each in given["rules"] for name in split_rules(each)]
        for name in self.names:
            if name != "auto":
                rules.make(name)
        if len(set(self.names)) < len(self.names):
            raise click.UsageError("--rules: each may be given once")
        self.board = Board(sys.stderr, given["quiet"])
        self.entries: list[Entry] = []
        self.pairs: Pairs | None = None
        self.skipped = 0
        self.task = ""

    def go(self) -> None:
        how: dict[str, Any] = {"on_error": "skip" if self.given["on_error"] == "skip" else "raise"}
        stream = self.reading.stream(**how)
        chunks = stream.batches()
        if self.given["task"] == "ranking":
            from .rows import whole_queries

            chunks = whole_queries(chunks, 0)
        for chunk in chunks:
            known = chunk.labelled()
            if len(known):
                self.take(known)
        self.skipped = stream.skipped
        for entry in self.entries:
            entry.keeper.close()

    def take(self, chunk: Chunk) -> None:
        chunk.require_no_base()
        if not self.entries:
            self._begin(chunk)
        losses = []
        for entry in self.entries:
            began = perf_counter()
            outcomes, _ = entry.judge.take(chunk)
            seconds = perf_counter() - began
            losses.append(self.loss(outcomes))
            entry.keeper.add(outcomes, seconds)
        assert self.pairs is not None
        self.pairs.add(np.stack(losses))
        self.board.show(self)

    def _begin(self, chunk: Chunk) -> None:
        from .. import metrics, rules
        from ..evaluate.answers import Asker, needs_of
        from ..evaluate.keeping import Keeper
        from ..evaluate.run import Run
        from .judging import Judge, kind_of, new_model, usual_metrics
        from .learn import _metrics
        from .progress import USUAL
        from .rows import usual_every
        from .tasks import decide

        asked = self.given["task"]
        admitting = [rules.make(name) for name in self.names if name != "auto"]
        if asked == "auto" and admitting and all("binary" not in rule.defined_for() for rule in admitting):
            asked = "regression"
        guess = decide(chunk.y, rules.make("pa1"))[0] if asked == "auto" else asked
        self.task = "auto" if guess == "classification" else guess
        if not self.names:
            self.names = split_rules(FOR_NUMBERS if self.task == "regression" else RULES)
        kind = kind_of(self.task)
        made = metrics.make_all(_metrics(self.given["metrics"] or usual_metrics(self.task)[0]))
        if made[0].kind != kind:
            raise click.UsageError(f"--metrics {made[0].label} is for {made[0].kind}, but this is {self.task}")
        self.loss, self.loss_name = USUAL[kind]
        every = self.given["every"] or usual_every(chunk, _sizes(self.reading.sources))
        for name in self.names:
            model = new_model(name, self.task, hash_bits=self.given["hash_bits"])
            run = Run(every=every, window_size=self.given["window"])
            run.settings = {"model": repr(model.rule), "stream": ", ".join(self.reading.sources[:3])}
            keeper = Keeper(run, made)
            judge = Judge(model, Asker(model, needs_of(made, False)), keeper.labels)
            self.entries.append(Entry(name, model, keeper, judge))
        self.pairs = Pairs(len(self.entries))
        self.higher = made[0].higher_is_better

    def ranked(self) -> list[Entry]:
        """Best first."""

        def key(entry: Entry) -> tuple[bool, float]:
            value = entry.keeper.run.value
            return (value != value, -value if self.higher else value)

        return sorted(self.entries, key=key)

    def words(self) -> str:
        from ..evaluate import text_table

        assert self.pairs is not None
        ranked = self.ranked()
        order = [self.entries.index(entry) for entry in ranked]
        p = self.pairs.against(order[0], order[1:])
        first = ranked[0].keeper.run
        test = "differs, p" if len(ranked) > 1 else ""
        cells = [["rule", *first.metrics, f"last {min(first.window_size, first.examples):,}", "examples/s", test]]
        for place, entry in enumerate(ranked):
            run = entry.keeper.run
            values = [run.show(run.values[metric], metric) for metric in run.metrics]
            doubt = "" if place == 0 else _p(p[place - 1])
            cells.append([entry.name, *values, run.show(run.window[-1]), f"{run.speed:,.0f}", doubt])
        tests = {"mae": "a paired z-test of |y − ŷ|", "1-ndcg": "a paired z-test of 1 − NDCG"}
        test = tests.get(self.loss_name, "McNemar's test")
        note = f"p: {test} against {ranked[0].name}, Holm's correction" if len(ranked) > 1 else ""
        skipped = f"; {self.skipped:,} malformed lines skipped" if self.skipped else ""
        return f"{first.examples:,} examples{skipped}\n\n{text_table(cells, left=1)}\n\n{note}".rstrip()


class Board:
    """The leaderboard on a terminal, rewritten in place."""

    def __init__(self, out: Any, quiet: bool) -> None:
        self.out, self.live = out, out.isatty() and not quiet
        self.shown, self.lines = monotonic(), 0

    def show(self, race: Race) -> None:
        from ..evaluate import text_table

        if not self.live or monotonic() - self.shown < 0.2:
            return
        self.shown = monotonic()
        ranked = [entry for entry in race.ranked() if entry.keeper.run.examples]
        if not ranked:
            return
        first = ranked[0].keeper.run
        cells = [["rule", first.metric, f"{first.examples:,} examples".ljust(20)]]
        for entry in ranked[: max(1, shutil.get_terminal_size().lines - 3)]:
            cells.append([entry.name[:40], entry.keeper.run.show(entry.keeper.run.value), _bar(entry, ranked)])
        self._clear()
        text = text_table(cells, left=1)
        self.out.write(text + "\n")
        self.out.flush()
        self.lines = text.count("\n") + 1

    def _clear(self) -> None:
        if self.lines:
            self.out.write(f"\x1b[{self.lines}A\x1b[J")
            self.lines = 0

    def end(self) -> None:
        self._clear()
        self.out.flush()


def _bar(entry: Entry, ranked: list[Entry]) -> str:
    worst = max((abs(e.keeper.run.value) for e in ranked), default=1.0) or 1.0
    value = entry.keeper.run.value
    return ("▇" * max(1, round(20 * abs(value) / worst))).ljust(20) if value == value else " " * 20


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _sizes(sources: list[str]) -> list[int]:
    import os

    there = all(os.path.isfile(name) for name in sources)
    return [os.path.getsize(name) for name in sources] if there else []


def split_rules(text: str) -> list[str]:
    """Rules with commas between them; what looks like a parameter belongs to the rule before it."""
    from ..rules import RULES as KNOWN

    parts: list[str] = []
    for part in text.split(","):
        name = part.strip().partition(":")[0].partition("(")[0].lower()
        if parts and name not in KNOWN and "=" in part:
            parts[-1] += f",{part.strip()}"
        elif part.strip():
            parts.append(part.strip())
    return parts
