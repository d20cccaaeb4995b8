"""Wang and Vucetic (2010), Table 1: every learner of the table at both budgets, and two of ours."""

from __future__ import annotations

import csv
import functools
import statistics
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from .framework import Cell, Check, Experiment, Numbers, Report, Results, Spread
from .learners import LEARNERS, OURS, tune_and_test
from .pages import markdown_table
from .pictures import Dot, Panel, dots, picture
from .sets import HOMES, SETS, split

__all__ = ["Table1", "experiment"]

BUDGETS = (100, 200)
COMPARED = tuple(name for name in SETS if name != "Phoneme")  # ELENA's Phoneme is another set than the paper's
BOARDS = ("Checkerboard", "NCheckerboard")
GATED = ("PA", "PA-R", "BPA-S", "BPA-S-R", "BPA-NN", "BPA-NN-R", "BPA-P", "BPA-P-R")
BELOW = 3.0  # percentage points by which a learner may be below the published table

# Reasons why a mean differs by more than two published deviations: for a set, and for single learners.
WHY_SET: dict[str, str] = {
    "Adult": "the paper's 21K rows are unknown; ours are drawn from the 32,561 of a9a, tested on the 16,281 of a9a.t",
    "Banana": "1,000 test rows put a deviation of 1 point on any single split, and the paper's splits are unknown",
    "Checkerboard": "fresh boards on each repetition; the paper's grid of widths is not stated, ours reaches γ = 64",
    "NCheckerboard": "fresh boards; parameters are chosen on noisy rows, whose ceiling is 85 %, by a grid of our own",
    "Cover": "the paper's 10K rows and its scaling are unknown; ours are drawn at random, ten numbers at unit variance",
    "USPS": "even against odd on the standard split, grey levels as they are; the paper's preprocessing is not stated",
    "Phoneme": "another data set (ELENA's, 5,404 × 5): the two figures do not compare",
}
WHY_LEARNER: dict[str, str] = {
    "Perceptron": "the last hypothesis of a Perceptron jumps with every late mistake, so that tuning is luck",
    "Stoptron": "it is the hypothesis after B mistakes: all depends on which they were",
    "RandomBudgetPerceptron": "it depends on which vectors chance removed last",
    "Forgetron": "it depends on the last B mistakes alone",
    "PA+Rnd": "it depends on which vectors chance removed last",
    "Projectron++": "the paper does not say which η it used; ours is chosen with γ",
}


@functools.cache
def published() -> dict[tuple[str, str, str], Spread]:
    """The published accuracy of (learner, set, budget)."""
    text = resources.files(__package__).joinpath("table1.csv").read_text(encoding="utf-8")
    return {
        (row["algorithm"], row["dataset"], row["budget"]): Spread(
            float(row["accuracy_mean"]), float(row["accuracy_std"]) if row["accuracy_std"] else None, 5
        )
        for row in csv.DictReader(text.splitlines())
        if row["dataset"] != "Average"
    }


class Table1(Experiment):
    name = "table1"
    title = "kernel learners on a budget, against Table 1 of Wang and Vucetic (2010)"
    protocol = """
Wang and Vucetic, *Online Passive-Aggressive Algorithms on a Budget*, AISTATS 2010, Table 1: accuracy (per cent) of the
last hypothesis on test rows after one pass over the training stream, Gaussian kernel, mean and deviation of 5
repetitions. A repetition draws rows and order from its seed:

- **Adult**: 21,000 of the 32,561 rows of a9a; tested on a9a.t (16,281 rows).
- **Banana**: 4,300 rows, the other 1,000 for testing.
- **Checkerboard**: 10,000 points on a board of 4 × 4, 10,000 others for testing.
- **NCheckerboard**: the same, 15 % of the training labels flipped, the test labels true.
- **Cover**: 20,000 of the 581,012 rows, half for testing; class 2 against the rest.
- **USPS**: 7,291 rows in random order, tested on 2,007; even digits against odd ones.
- **Phoneme**: the paper's (10K × 41) cannot be had. ELENA's stands in (4,323 of 5,404 rows × 5, the rest for testing):
  its figures are not comparable and count in no average.

Banana, Phoneme and Cover's ten numbers are scaled to unit variance over the training rows; 0/1 columns, grey levels and
boards are left as they are. In every repetition each learner is tuned anew, at its budget, by 3-fold cross-validation
on the first 3,000 training rows: γ ∈ {2^−8, …, 2^6}, in two dimensions {2^−1, …, 2^6}; for the PA family C ∈ {0.01,
0.03, 0.1, 0.3, 1, 3, 10}; η ∈ {0.03, 0.1, 0.3, 0.6} for Projectron++; ν ∈ {10^−4, 10^−3, 0.01, 0.1, 0.3, 0.6} for KRLS.
Every point of the grid is tried on the first fold, the best twelve on all three; among equals a learner without a
budget takes what keeps fewest vectors (a tiny C keeps every row, and ties with larger ones). Test rows are touched
once, by the tuned learner.

The paper states neither grids nor splits. Ours beside its learners: **PA+Merge** (PA-I; two vectors become one when
full) and **KRLS** (kernel recursive least squares; vectors come while they are far from the span of the others, up to
B). `…-R`: ramp loss. Cells read *ours (published)*; ↑ and ↓ mark those more than two published deviations above or
below.
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [
            {"set": name, "learner": learner, "B": B}
            for name in SETS
            for learner, kind in LEARNERS.items()
            for B in (BUDGETS if kind.budgeted else ("none",))
        ]

    def data(self, cell: Cell) -> list[tuple[str, str | None]]:
        return HOMES[str(cell["set"])]

    def published(self, cell: Cell) -> Mapping[str, Spread]:
        key = (str(cell["learner"]), str(cell["set"]), str(cell["B"]))
        return {"accuracy": published()[key]} if key in published() else {}

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        data = split(str(cell["set"]), seed)
        if quick:
            return tune_and_test(str(cell["learner"]), cell["B"], seed, data.first(3000, 2000), rows=600, every=3)
        return tune_and_test(str(cell["learner"]), cell["B"], seed, data)

    def report(self, results: Results) -> Report:
        parts = []
        for B in results.names("B"):
            heading = "Without a budget" if B == "none" else f"B = {B}"
            parts.append(f"## {heading}\n\n{_table(results.where(B=B), B)}")
        if not results.quick:
            parts.append("## Where they differ by more than two published deviations\n\n" + _differences(results))
        return Report(
            "\n\n".join(parts),
            {"accuracy": _draw(results)} if results else {},
            [] if results.quick else checks(results),
        )


def six_sets(results: Results, learner: str, B: Any) -> float | None:
    """The average over the six sets that compare; None where one was not run."""
    found = [results.one(set=name, learner=learner, B=B) for name in COMPARED]
    return sum(r.mean("accuracy") for r in found if r is not None) / len(COMPARED) if all(found) else None


def six_published(learner: str, B: Any) -> float | None:
    found = [published().get((learner, name, str(B))) for name in COMPARED]
    return sum(spread.mean for spread in found if spread is not None) / len(COMPARED) if all(found) else None


def beyond(ours: Spread, theirs: Spread | None) -> str:
    """↑ or ↓ where the means are more than two published deviations apart; 0.0 as printed may be 0.05."""
    if theirs is None or theirs.sd is None:
        return ""
    far = round(ours.mean, 1) - theirs.mean
    return "" if abs(far) <= 2 * max(theirs.sd, 0.05) + 1e-9 else "↑" if far > 0 else "↓"


def _table(results: Results, B: Any) -> str:
    sets = results.names("set")
    rows = [["learner", *(f"{name}*" if name == "Phoneme" else name for name in sets), "six sets"]]
    for learner in results.names("learner"):
        row = [f"**{learner}** (ours)" if learner in OURS else learner]
        for name in sets:
            result = results.one(set=name, learner=learner)
            theirs = published().get((learner, name, str(B)))
            known = f" ({theirs.show()})" if theirs else ""
            if result is None:
                row.append(f"missing{known}" if any(r.missing for r in results.where(set=name)) else f"–{known}")
            else:
                ours = result.spread("accuracy")
                row.append(f"{ours.show()}{beyond(ours, theirs)}{known}")
        average, before = six_sets(results, learner, B), six_published(learner, B)
        words = "–" if average is None else f"{average:.1f}"
        row.append(words + ("" if before is None else f" ({before:.1f})"))
        rows.append(row)
    notes = []
    if "Phoneme" in sets:
        notes.append(
            "\\* ELENA's Phoneme stands in for the paper's, which cannot be had; not comparable, in no average."
        )
    if B == "none":
        notes.append(_support(results))
    return markdown_table(rows) + "".join(f"\n\n{note}" for note in notes)


def _support(results: Results) -> str:
    said = {"Perceptron": (500, 2800), "PA": (2600, 5900), "PA-R": (2600, 3300)}
    words = []
    for learner, counts in said.items():
        for name, count in zip(BOARDS, counts, strict=True):
            result = results.one(set=name, learner=learner)
            if result is not None:
                words.append(f"{learner} on {name} {result.mean('support'):,.0f} ({count:,})")
    return "Support vectors: " + ", ".join(words) + "." if words else ""


def _differences(results: Results) -> str:
    lines = []
    for name in results.names("set"):
        if name == "Phoneme":
            lines.append(f"- **Phoneme**, every learner: {WHY_SET[name]}.")
            continue
        by_reason: dict[str, list[str]] = {}
        for result in results.where(set=name):
            theirs = self_published(result.cell)
            if not result.runs or theirs is None or not (arrow := beyond(result.spread("accuracy"), theirs)):
                continue
            learner, B = str(result.cell["learner"]), result.cell["B"]
            far = result.mean("accuracy") - theirs.mean
            reason = WHY_LEARNER.get(learner, WHY_SET[name])
            budget = "" if B == "none" else f" at {B}"
            by_reason.setdefault(reason, []).append(f"{learner}{budget} {arrow} {far:+.1f}")
        lines += [f"- **{name}**, {', '.join(cells)}: {reason}." for reason, cells in by_reason.items()]
    return "\n".join(lines) or "None."


def self_published(cell: Cell) -> Spread | None:
    return published().get((str(cell["learner"]), str(cell["set"]), str(cell["B"])))


def _draw(results: Results) -> str:
    rows = results.names("learner")
    panels: list[Panel] = []
    sets = results.names("set")
    for i, name in enumerate(sets):
        points = []
        for result in results.where(set=name):
            learner, B = str(result.cell["learner"]), result.cell["B"]
            colour = 8 if B == "none" else 1 + BUDGETS.index(int(B))
            theirs = self_published(result.cell)
            if theirs is not None and name != "Phoneme":
                points.append(Dot(learner, theirs.mean, theirs.sd, colour, hollow=True))
            if result.runs:
                ours = result.spread("accuracy")
                points.append(Dot(learner, ours.mean, ours.sd, colour))
        first = i % 4 == 0
        title = f"{name} (ELENA's)" if name == "Phoneme" else name
        panels.append(dots(rows, points, title=title, across="accuracy (%)", names=first, width=400 if first else 250))
    keys = [Dot("no budget", 0, colour=8), Dot("B = 100", 0, colour=1), Dot("B = 200", 0, colour=2)]
    keys.append(Dot("hollow: Wang and Vucetic (2010)", 0, colour=8, hollow=True))
    return picture(panels, keys, title="Table 1: accuracy after one pass; filled: ours", columns=4)


# -- what must hold ------------------------------------------------------------------------------------------------


class Acceptance:
    """The checks of the table. Each returns whether it holds, and the figures."""

    def __init__(self, results: Results) -> None:
        self.results = results

    def mean(self, name: str, learner: str, B: Any, key: str = "accuracy") -> float:
        return self.results.the(set=name, learner=learner, B=B).mean(key)

    def not_below(self, name: str) -> tuple[bool, str]:
        far = {
            f"{learner} at {B}": self.mean(name, learner, B) - published()[learner, name, str(B)].mean
            for learner in GATED
            for B in (BUDGETS if LEARNERS[learner].budgeted else ("none",))
        }
        worst = min(far, key=far.__getitem__)
        return far[worst] >= -BELOW, f"the lowest is {worst}, {far[worst]:+.1f}"

    def ordered(self, pairs: Iterable[tuple[str, str, float]], names: tuple[str, ...]) -> tuple[bool, str]:
        """First ≥ second + margin, at both budgets."""
        gaps = {
            f"{a} against {b} on {name} at {B}": self.mean(name, a, B) - self.mean(name, b, B) - margin
            for a, b, margin in pairs
            for name in names
            for B in BUDGETS
        }
        worst = min(gaps, key=gaps.__getitem__)
        return gaps[worst] >= 0, f"the nearest is {worst}, {gaps[worst]:+.1f} beyond the limit"

    def larger_budget(self) -> tuple[bool, str]:
        gaps = {
            f"{a} on {name}": self.mean(name, a, 200) - self.mean(name, a, 100) for a in GATED[2:] for name in BOARDS
        }
        worst = min(gaps, key=gaps.__getitem__)
        return gaps[worst] >= -0.5, f"the lowest gain is {worst}, {gaps[worst]:+.1f}"

    def support(self) -> tuple[bool, str]:
        ours = [self.mean(name, "PA", "none", "support") for name in BOARDS]
        fits = all(abs(n - said) <= 0.2 * said for n, said in zip(ours, (2600, 5900), strict=True))
        return fits, f"{ours[0]:,.0f} and {ours[1]:,.0f}"

    def best_of_ours(self, B: int) -> tuple[bool, str]:
        ours = {a: statistics.fmean(self.mean(name, a, B) for name in COMPARED) for a in OURS}
        bar = max(six_published(learner, B) or 0.0 for learner in LEARNERS)
        words = ", ".join(f"{learner} {average:.1f}" for learner, average in ours.items())
        return max(ours.values()) > bar, f"{words}; published best {bar:.1f}"


def checks(results: Results) -> list[Check]:
    """The checks of the table, and whether one of our learners is above the best published one."""
    its = Acceptance(results)
    below = "PA, PA-R and the BPA family not more than 3 points below the table"
    weak = ("Stoptron", "RandomBudgetPerceptron", "Forgetron", "PA+Rnd")
    better = [("BPA-S", other, 5.0) for other in weak]
    order = [("BPA-P", "BPA-NN", -1.0), ("BPA-NN", "BPA-S", -1.0)]
    ramps = [("BPA-NN-R", "BPA-NN", -1.0), ("BPA-P-R", "BPA-P", -1.0)]
    noisy = ("NCheckerboard",)
    highest = "ours have a six-set average above the published best"
    return [
        *(Check.of(f"{name}: {below}", its.not_below, name) for name in (*BOARDS, "Adult", "Banana", "Cover", "USPS")),
        Check.of("boards: BPA-P ≥ BPA-NN − 1, BPA-NN ≥ BPA-S − 1", its.ordered, order, BOARDS),
        Check.of("NCheckerboard: BPA-S ≥ Stoptron, RBP, Forgetron, PA+Rnd + 5", its.ordered, better, noisy),
        Check.of("NCheckerboard: ramp ≥ hinge − 1 for NN and P", its.ordered, ramps, noisy),
        Check.of("boards: the BPA family at B = 200 ≥ at B = 100 − 0.5", its.larger_budget),
        Check.of("boards: support vectors of PA within 20 % of 2,600 and 5,900", its.support),
        *(Check.of(f"B = {B}: {highest}", its.best_of_ours, B) for B in BUDGETS),
    ]


experiment = Table1()
