"""Accuracy against the budget: how much each learner gains from more support vectors."""

from __future__ import annotations

from ..charts.lines import Line
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .learners import tune_and_test
from .pages import markdown_table
from .pictures import curves, picture
from .sets import HOMES, split

__all__ = ["Budgets", "experiment"]

SETS = ("NCheckerboard", "Cover", "USPS")
BUDGETS = (12, 25, 50, 100, 200)
LEARNERS = ("RandomBudgetPerceptron", "PA+Rnd", "BPA-S", "BPA-NN", "BPA-P", "PA+Merge", "KRLS")
UNLIMITED = "PA"


class Budgets(Experiment):
    name = "budget"
    title = "accuracy against the budget, from 12 to 200 vectors, on three sets"
    seeds = 3
    protocol = """
Noisy checkerboard, Cover and USPS as in `table1`, B from 12 to 200; PA without a budget for comparison. Tuned at each
budget as there, but on the first 1,500 training rows and every other value of each grid. Accuracy (per cent) of the
last hypothesis on test rows after one pass; 3 repetitions.

RandomBudgetPerceptron and PA+Rnd drop a vector at random; BPA-S, BPA-NN, BPA-P solve PA's problem for the vector to
drop; PA+Merge makes one of two; KRLS is least squares over all rounds on vectors that are far from each other.
"""

    def cells(self, quick: bool) -> list[Cell]:
        budgets = BUDGETS[1:] if quick else BUDGETS
        within: list[Cell] = [
            {"set": name, "learner": learner, "B": B} for name in SETS for learner in LEARNERS for B in budgets
        ]
        return within + [{"set": name, "learner": UNLIMITED, "B": "none"} for name in SETS]

    def data(self, cell: Cell) -> list[tuple[str, str | None]]:
        return HOMES[str(cell["set"])]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        data = split(str(cell["set"]), seed)
        if quick:
            return tune_and_test(str(cell["learner"]), cell["B"], seed, data.first(3000, 2000), rows=600, every=3)
        return tune_and_test(str(cell["learner"]), cell["B"], seed, data, rows=1500, every=2)

    def report(self, results: Results) -> Report:
        parts = []
        for name in results.names("set"):
            budgets = results.where(set=name).names("B")
            rows = [["learner", *(f"B = {B}" if B != "none" else "no budget" for B in budgets)]]
            for learner in results.where(set=name).names("learner"):
                found = [results.one(set=name, learner=learner, B=B) for B in budgets]
                rows.append([learner, *("" if r is None else r.spread("accuracy").show() for r in found)])
            gone = next((r.missing for r in results.where(set=name) if r.missing), None)
            parts.append(f"## {name}\n\n" + (f"missing: {gone}" if gone else markdown_table(rows)))
        return Report("\n\n".join(parts), {"accuracy": _draw(results)}, [] if results.quick else _checks(results))


def _draw(results: Results) -> str:
    panels = []
    for name in results.names("set"):
        lines = []
        for i, learner in enumerate(LEARNERS):
            found = [r for r in results.where(set=name, learner=learner) if r.runs]
            if found:
                at = [float(r.cell["B"]) for r in found]
                lines.append(Line(learner, at, [r.mean("accuracy") for r in found], i + 1))
        unlimited = results.one(set=name, learner=UNLIMITED)
        if lines and unlimited is not None:
            ends = [min(line.t[0] for line in lines), max(line.t[-1] for line in lines)]
            lines.append(Line(f"{UNLIMITED}, no budget", ends, [unlimited.mean("accuracy")] * 2, 8, thin=True))
        panels.append(curves(lines, title=name, across="budget B", width=340, height=330, log=True))
    keys = [Line(learner, [], [], i + 1) for i, learner in enumerate(LEARNERS)]
    keys.append(Line(f"{UNLIMITED}, no budget", [], [], 8, thin=True))
    return picture(panels, keys, title="Accuracy (%) after one pass, against the budget", columns=3)


def _checks(results: Results) -> list[Check]:
    def worth_four(name: str) -> tuple[bool, str]:
        few = results.the(set=name, learner="PA+Merge", B=50).mean("accuracy")
        many = results.the(set=name, learner="PA+Rnd", B=200).mean("accuracy")
        return few > many, f"{few:.1f} against {many:.1f}"

    return [Check.of(f"{name}: PA+Merge at B = 50 beats PA+Rnd at B = 200", worth_four, name) for name in SETS]


experiment = Budgets()
