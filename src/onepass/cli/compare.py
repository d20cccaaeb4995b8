"""``onepass compare``: several rules learn the same stream, which is read once."""

from __future__ import annotations

import json
import re
import shutil
import sys
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..persistence.files import write
from .model_options import model_flags
from .paths import Input, Output, summary_stream
from .sections import SectionedCommand
from .significance import Pairs
from .source_options import add_source_options, on_error_option, source_options_of
from .variants import Tuning, as_json

if TYPE_CHECKING:
    from ..evaluation.model_loop import ModelLoop
    from ..evaluation.run import Run
    from ..models.linear import LinearModel
    from ..streams import Chunk

__all__ = ["command"]

RULES = "perceptron,pa1,pa1:C=0.1,pa1:C=0.01,sgd:loss=logistic"
FOR_NUMBERS = "pa1,pa1:C=0.1,nlms:mu=0.1,sgd:loss=huber"


@click.command(
    "compare",
    cls=SectionedCommand,
    short_help="Compare several rules on one stream, in one pass.",
    context_settings={"show_default": True},
)
@click.argument("sources", nargs=-1, type=Input(), metavar="SOURCE…")
@click.option(
    "--rules",
    "-r",
    multiple=True,
    metavar="A,B,…",
    show_default="a choice of five",
    help="The rules, as pa1 or pa1:C=0.1; `onepass models` lists them. auto: several rules, weighted by their losses.",
)
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "multilabel", "ranking", "regression"]),
    default="auto",
    help="What the labels mean. auto: the first labels decide.",
)
@add_source_options
@model_flags("hash_bits")
@click.option(
    "--tune",
    metavar="N or P%",
    help="Try several values of the parameters that are not given. The best after so many examples continues.",
)
@click.option(
    "--metrics",
    "-m",
    metavar="A,B,…",
    show_default="error; mae",
    help="The metrics to report; the first one ranks the rules.",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="about 50 reports",
    help="The number of examples between two reports.",
)
@click.option(
    "--window", type=click.IntRange(min=1), default=1000, help="The number of recent examples for the windowed metric."
)
@click.option("--report", type=Output(), metavar="R.html", help="Write all curves and numbers as an HTML page.")
@click.option("--json", "json_path", type=Output(), metavar="R.json", help="Write the table as JSON.")
@click.option("--plot", type=Output(), metavar="P.svg", help="Draw all curves into one SVG picture.")
@click.option("--save-best", type=Output(whole=True), metavar="MODEL", help="Save the best model in this file.")
@on_error_option
@click.option("--quiet", is_flag=True, help="Print the leaderboard only at the end.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:  # fmt: skip
    """Compare several rules on the same stream, in one pass. Each rule predicts every example, then learns it. The
    result is a ranking, with a test whether the differences are more than chance.

    The test compares every rule with the best one: McNemar's test for classes (among the examples where two rules
    differ, how many did each get right?), a paired z-test of the losses for numbers, both with Holm's correction. Both
    assume independent examples: on a stream that drifts they are a guide, not a proof.

    \b
    Examples:
      onepass compare mail.csv --label spam
      onepass compare train.vw -b 20 --rules perceptron,pa1:C=0.01 --rules sgd:loss=logistic,eta=0.5
      onepass compare train.vw --rules arow,scw1,vw,arow@average,auto --tune 10%
      onepass compare train.vw --report compare.html --plot compare.svg --save-best best.model
    """
    from ..evaluation import report
    from .curves import picture

    race = Race(given)
    try:
        race.go()
    finally:
        race.board.end()
    if not race.entries:
        click.echo("no labelled example; nothing was compared")
        return
    click.echo(race.words(), file=summary_stream())
    runs = {entry.name: entry.run for entry in race.ranked()}
    if given["report"]:
        report.write(given["report"], runs)
    if given["plot"]:
        write(given["plot"], picture(runs))
    if given["json_path"]:
        write(given["json_path"], race.to_json())
    if given["save_best"]:
        race.ranked()[0].model.save(given["save_best"])
    if race.skipped:
        ctx.exit(3)


class Entry:
    """One competitor: a rule, or a variant of it for --tune. `asked`: the rule as the user gave it."""

    def __init__(self, asked: str, name: str, loop: ModelLoop) -> None:
        self.asked, self.name, self.loop = asked, name, loop
        self.lost = ""  # the error that stopped it: its update overflowed

    @property
    def model(self) -> LinearModel:
        model: LinearModel = self.loop.model
        return model

    @property
    def run(self) -> Run:
        return self.loop.recording.run

    @property
    def value(self) -> float:
        return float("nan") if self.lost else self.run.value

    def so_far(self) -> float:
        """The first metric over all examples, those since the last report included."""
        return float("nan") if self.lost else self.loop.recording.current_values()[0]


class Race:
    """The models, which learn the same stream."""

    def __init__(self, given: dict[str, Any]) -> None:
        from .. import rules

        self.given = given
        self.reading = source_options_of(given, given["hash_bits"])
        self.reading.multilabel = given["task"] == "multilabel"
        self.names = [name for each in given["rules"] for name in split_rules(each)]
        for name in self.names:
            if name != "auto":
                rules.make(name.partition("@")[0])
        if len(set(self.names)) < len(self.names):
            raise click.UsageError("--rules: each may be given once")
        self.board = Board(sys.stderr, given["quiet"])
        self.entries: list[Entry] = []
        self.pairs: Pairs | None = None
        self.skipped = 0
        self.task = ""
        self.tuning = Tuning(given["tune"], self.reading) if given["tune"] else None

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
                self.feed(known)
        if self.tuning is not None and self.entries and not self.tuning.over:
            self._choose()
        self.skipped = stream.skipped
        for entry in self.entries:
            entry.loop.recording.close()

    def feed(self, chunk: Chunk) -> None:
        """Learn the chunk. If the examples of --tune end inside it, choose the variants at that point."""
        from .rows import split

        if self.tuning is None or self.tuning.over or self.tuning.left > len(chunk):
            self.take(chunk)
            if self.tuning is not None:
                self.tuning.left -= len(chunk)
            return
        first, rest = split(chunk, self.tuning.left)
        self.take(first)
        self._choose()
        if len(rest):
            self.take(rest)

    def take(self, chunk: Chunk) -> None:
        from ..errors import NumericalError
        from .rows import check_bases, rows_of

        if not self.entries:
            self._begin(chunk)
        for entry in self.entries:
            check_bases(entry.model, chunk, learned=True)
        losses = []
        for entry in self.entries:
            began = perf_counter()
            try:
                if entry.lost:
                    raise NumericalError(entry.lost)
                outcomes, _ = entry.loop.learn(rows_of(chunk, entry.loop.kind))
            except NumericalError as error:
                entry.lost = str(error)
                losses.append(np.full(len(chunk), np.nan))
                continue
            seconds = perf_counter() - began
            losses.append(self.loss(outcomes))
            entry.loop.record(outcomes, seconds)
        if all(entry.lost for entry in self.entries):
            raise NumericalError(self.entries[0].lost)
        assert self.pairs is not None
        self.pairs.add(np.stack(losses))
        self.board.show(self)

    def _begin(self, chunk: Chunk) -> None:
        from .. import metrics
        from ..evaluation.answers import needs_of
        from ..evaluation.model_loop import ModelLoop, kind_of
        from ..evaluation.run import Run
        from ..models import portfolio
        from .learn import _metrics
        from .progress import USUAL
        from .rows import declare_sides, usual_every
        from .tasks import new_model, usual_metrics

        self.task = self._task_of(chunk)
        if not self.names:
            self.names = split_rules(FOR_NUMBERS if self.task == "regression" else RULES)
        kind = kind_of(self.task)
        made = metrics.make_all(_metrics(self.given["metrics"] or usual_metrics(self.task)[0]))
        if made[0].kind != kind:
            raise click.UsageError(f"--metrics {made[0].label} is for {made[0].kind}, but this is {self.task}")
        self.loss, self.loss_name = USUAL[kind]
        every = self.given["every"] or usual_every(chunk, _sizes(self.reading.sources))
        for asked, name in self._variants():
            rule, readout = portfolio.read(name)
            how = {} if rule == "auto" else {"readout": readout}
            model = new_model(rule, self.task, hash_bits=self.given["hash_bits"], **how)
            declare_sides(model, chunk)
            run = Run(every=every, window_size=self.given["window"])
            run.settings = {"model": repr(model.rule), "stream": ", ".join(self.reading.sources[:3])}
            loop = ModelLoop(model, needs_of(made, False))
            loop.begin(run, made)
            self.entries.append(Entry(asked, name, loop))
        self.pairs = Pairs(len(self.entries))
        self.higher = made[0].higher_is_better

    def _task_of(self, chunk: Chunk) -> str:
        """The task: of --task; otherwise the one that all rules support; otherwise that of the first labels."""
        from .. import rules
        from .tasks import decide

        asked = self.given["task"]
        named = [rules.make(name.partition("@")[0]) for name in self.names if name != "auto"]
        if asked == "auto" and named and all("binary" not in rule.traits.tasks for rule in named):
            asked = "regression"
        task: str = decide(chunk.y, rules.make("pa1"))[0] if asked == "auto" else asked
        return "auto" if task == "classification" else task

    def _variants(self) -> list[tuple[str, str]]:
        """Pairs: the rule as given, and each variant of it."""
        if self.tuning is None:
            return [(name, name) for name in self.names]
        from ..rules.grids import variants

        return [(asked, name) for asked in self.names
                for name in (["auto"] if asked == "auto" else variants(asked, self.task))]  # fmt: skip

    def _choose(self) -> None:
        """Continue with the best variant of each rule."""
        assert self.tuning is not None and self.pairs is not None
        best = self.tuning.choose(self.entries, self.higher)
        self.pairs.keep(best)
        self.entries = [self.entries[i] for i in best]

    def ranked(self) -> list[Entry]:
        """The entries, the best first."""

        def key(entry: Entry) -> tuple[bool, float]:
            value = entry.value
            return (value != value, -value if self.higher else value)

        return sorted(self.entries, key=key)

    def words(self) -> str:
        from ..charts.text import text_table

        assert self.pairs is not None
        ranked = self.ranked()
        order = [self.entries.index(entry) for entry in ranked]
        p = self.pairs.against(order[0], order[1:])
        first = ranked[0].run
        test = "differs, p" if len(ranked) > 1 else ""
        cells = [["rule", *first.metrics, f"last {min(first.window_size, first.examples):,}", "examples/s", test]]
        for place, entry in enumerate(ranked):
            run = entry.run
            values = [run.show(run.values[metric], metric) for metric in run.metrics]
            if entry.lost:
                cells.append([entry.name, *("—" for _ in values), "—", "", "overflows"])
                continue
            doubt = "" if place == 0 else _p(p[place - 1])
            cells.append([entry.name, *values, run.show(run.window[-1]), f"{run.speed:,.0f}", doubt])
        tests = {"mae": "a paired z-test of |y − ŷ|", "1-ndcg": "a paired z-test of 1 − NDCG"}
        test = tests.get(self.loss_name, "McNemar's test")
        note = f"p: {test} against {ranked[0].name}, Holm's correction" if len(ranked) > 1 else ""
        skipped = f"; {self.skipped:,} malformed lines skipped" if self.skipped else ""
        tuned = "" if self.tuning is None else f"; {self.tuning.words()}"
        return f"{first.examples:,} examples{skipped}{tuned}\n\n{text_table(cells, left=1)}\n\n{note}".rstrip()

    def to_json(self) -> str:
        """The table as JSON; for each rule also its variants and their results on the first examples."""
        tried = {} if self.tuning is None else self.tuning.tried
        table = [
            {"rule": entry.name, "asked": entry.asked, "lost": entry.lost, "seconds": entry.run.seconds,
             "values": {key: as_json(value) for key, value in entry.run.values.items()},
             "tried": {key: as_json(value) for key, value in tried.get(entry.asked, {}).items()}}
            for entry in self.ranked()
        ]  # fmt: skip
        first = self.ranked()[0].run
        tuned_on = 0 if self.tuning is None else self.tuning.examples
        return json.dumps({"examples": first.examples, "tuned_on": tuned_on, "rules": table}, indent=1)


class Board:
    """The leaderboard on a terminal, rewritten in place."""

    def __init__(self, out: Any, quiet: bool) -> None:
        self.out, self.live = out, out.isatty() and not quiet
        self.shown, self.lines = monotonic(), 0

    def show(self, race: Race) -> None:
        from ..charts.text import text_table

        if not self.live or monotonic() - self.shown < 0.2:
            return
        self.shown = monotonic()
        ranked = [entry for entry in race.ranked() if entry.run.examples]
        if not ranked:
            return
        first = ranked[0].run
        cells = [["rule", first.metric, f"{first.examples:,} examples".ljust(20)]]
        for entry in ranked[: max(1, shutil.get_terminal_size().lines - 3)]:
            cells.append([entry.name[:40], entry.run.show(entry.run.value), _bar(entry, ranked)])
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
    worst = max((abs(e.run.value) for e in ranked), default=1.0) or 1.0
    value = entry.run.value
    return ("▇" * max(1, round(20 * abs(value) / worst))).ljust(20) if value == value else " " * 20


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _sizes(sources: list[str]) -> list[int]:
    import os

    there = all(os.path.isfile(name) for name in sources)
    return [os.path.getsize(name) for name in sources] if there else []


def split_rules(text: str) -> list[str]:
    """Split rules at commas. A part that looks like a parameter belongs to the rule before it."""
    from ..rules import RULES as KNOWN

    parts: list[str] = []
    for part in text.split(","):
        name = re.split(r"[:(@]", part.strip())[0].lower()
        if parts and name not in KNOWN and "=" in part:
            parts[-1] += f",{part.strip()}"
        elif part.strip():
            parts.append(part.strip())
    return parts
