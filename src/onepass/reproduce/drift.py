"""A checkerboard that rotates: under drift, learners that forget are better than those that store everything."""

from __future__ import annotations

from typing import Any

from .. import datasets, kernels, rules
from ..charts.lines import Line
from ..kernels import budgets
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pages import markdown_table
from .pictures import curves, picture

__all__ = ["Drift", "experiment"]

B = 100
LEARNERS: dict[str, tuple[type, Any]] = {  # the rule, and the budget or None
    "Perceptron": (rules.Perceptron, None),
    "Perceptron, Oldest": (rules.Perceptron, budgets.Oldest(B)),
    "Forgetron": (rules.Perceptron, budgets.Forgetron(B)),
    "PA": (rules.PA1, None),
    "PA, Oldest": (rules.PA1, budgets.Oldest(B)),
    "BPA-S": (rules.PA1, budgets.BPAS(B)),
    "BPA-NN": (rules.PA1, budgets.BPANN(B)),
    "BPA-P": (rules.PA1, budgets.BPAP(B)),
    "KRLS": (rules.Adaline, budgets.ALD(B, 0.01)),
}
BOARDS = {"still": 0.0, "turning": 4.0}  # full turns of the board over the stream
PAIRS = (("Perceptron, Oldest", "Perceptron"), ("Forgetron", "Perceptron"), ("PA, Oldest", "PA"))
GAMMA = (4.0, 8.0, 16.0, 32.0)
C = (0.1, 0.3, 1.0)
POINTS = 40


class Drift(Experiment):
    name = "drift"
    title = f"a board that turns: with {B} vectors that can be forgotten against all that ever came"
    protocol = f"""
A checkerboard of 4 × 4, 20,000 points, no noise (`datasets.Checkerboard`). It stands *still*, or it is *turning*:
four full turns over the stream, so that what was learned 1,000 examples ago is mostly wrong. Each example is
predicted, then learned; accuracy (per cent) is over all of them, in the picture over each {20_000 // POINTS}. Gaussian
kernel. γ ∈ {{4, 8, 16, 32}} and, for the PA family, C ∈ {{0.1, 0.3, 1}} are those of the highest accuracy on a quarter
of the length of another such stream (another seed, the same speed), chosen anew for each board, learner and repetition.
Budgets hold B = {B} vectors; Perceptron and PA without one keep every update. 5 repetitions.

Oldest and Forgetron forget by age. BPA-S, BPA-NN and BPA-P keep what PA without a budget would know, as far as they
can, its errors included. KRLS (ν = 0.01) weighs all rounds alike: it has a budget and cannot forget.
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [{"board": board, "learner": learner} for board in BOARDS for learner in LEARNERS]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        n, turns = 4000 if quick else 20_000, BOARDS[str(cell["board"])] * (0.2 if quick else 1.0)
        rule, budget = LEARNERS[str(cell["learner"])]
        before = datasets.Checkerboard(n // 4, turns=turns / 4, seed=1000 + seed)
        after = datasets.Checkerboard(n, turns=turns, seed=seed)
        grid = [{"gamma": gamma, "C": c} for gamma in GAMMA for c in (C if rule is rules.PA1 else (1.0,))]
        best = max(grid, key=lambda point: float(follow(rule, budget, before, n // 4, **point)[0].value))
        run, support = follow(rule, budget, after, max(1, n // POINTS), **best)
        return {
            "accuracy": 100.0 * float(run.value),
            "last half": 100.0 * sum(run.window[len(run.window) // 2 :]) / len(run.window[len(run.window) // 2 :]),
            "support": support,
            "t": [int(t) for t in run.t],
            "curve": [100.0 * float(value) for value in run.window],
            **best,
        }

    def report(self, results: Results) -> Report:
        boards = results.names("board")
        rows = [
            ["learner", *(f"{board}: all, last half" for board in boards), *(f"{board}: vectors" for board in boards)]
        ]
        for learner in results.names("learner"):
            found = [results.one(board=board, learner=learner) for board in boards]
            row = [learner if LEARNERS[learner][1] is None else f"{learner}, B = {B}"]
            row += [
                "–" if r is None else f"{r.spread('accuracy').show()}, {r.spread('last half').show()}" for r in found
            ]
            row += ["–" if r is None else f"{r.mean('support'):,.0f}" for r in found]
            rows.append(row)
        text = "Accuracy (per cent), each example predicted before it was learned.\n\n" + markdown_table(rows)
        return Report(text, {"accuracy": _draw(results)}, [] if results.quick else _checks(results))


def follow(rule: type, budget: Any, stream: Any, every: int, gamma: float, C: float) -> tuple[Any, int]:
    """A prequential run, and the support vectors at its end."""
    from ..evaluation import prequential
    from ..models.kernel import KernelModel

    made = rules.PA1(C) if rule is rules.PA1 else rule()
    model = KernelModel(made, "binary", kernel=kernels.RBF(gamma), budget=budget, classes=[0, 1])
    run = prequential(model, stream, every=every, metrics="accuracy", window=every)
    return run, model.n_support


def _draw(results: Results) -> str:
    learners = results.names("learner")
    colours = {name: i % 8 + 1 for i, name in enumerate(n for n in learners if LEARNERS[n][1] is not None)}
    panels = []
    for board in results.names("board"):
        lines = []
        for name in learners:
            result = results.one(board=board, learner=name)
            if result is not None:
                curve = [sum(values) / len(values) for values in zip(*result.values("curve"), strict=True)]
                lines.append(_line(name, colours, result.values("t")[0], curve))
        panels.append(curves(lines, title=f"the board is {board}", across="examples", width=460, height=340, floor=40))
    keys = [_line(name, colours, [], []) for name in learners]
    return picture(panels, keys, title=f"Accuracy (%) over the stream; dashed: no budget, else B = {B}", columns=2)


def _line(name: str, colours: dict[str, int], t: list[float], values: list[float]) -> Line:
    unlimited = {"Perceptron": 8, "PA": 1}
    return Line(name, t, values, colours.get(name, unlimited.get(name, 8)), thin=name not in colours)


def _checks(results: Results) -> list[Check]:
    def beats(board: str, first: str, second: str) -> tuple[bool, str]:
        a, b = (results.the(board=board, learner=name).mean("accuracy") for name in (first, second))
        return a > b, f"{a:.1f} against {b:.1f}"

    turning = [
        Check.of(
            f"turning: {bounded} (B = {B}) beats {unlimited} without a budget", beats, "turning", bounded, unlimited
        )
        for bounded, unlimited in PAIRS
    ]
    still = [
        Check.of(f"still: {unlimited} without a budget beats {bounded}", beats, "still", unlimited, bounded)
        for bounded, unlimited in PAIRS
    ]
    return turning + still


experiment = Drift()
