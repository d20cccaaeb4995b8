"""Tasks one after the other: catastrophic forgetting, and learners that avoid it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..charts.lines import Line
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pages import markdown_table
from .pictures import curves, picture

__all__ = ["Continual", "experiment"]

KINDS = ("permuted", "split")
WEIGHTS = ("linear", "kernel")
LEARNERS = ("plain", "EWC", "A-GEM", "replay")
ETA = {"linear": (0.02, 0.05, 0.1), "kernel": (0.1, 0.3, 1.0)}
LAM = (1.0, 10.0, 100.0)
MEASURES = ("accuracy", "forgetting", "backward transfer", "forward transfer")


class Continual(Experiment):
    name = "continual"
    title = "catastrophic forgetting and its cure: replay, A-GEM, EWC, linear and with a kernel"
    seeds = 5
    protocol = """
Scikit-learn's digits (1,797 images of 8 × 8, numbers from 0 to 1), a quarter held out. Five tasks, one after the
other, two passes over each. *Permuted*: all ten digits, the pixels of each task in an order of its own. *Split*: two
new digits a task, under one output for all ten. After each task every task is judged on its held-out part, by a learner
that is not told which task it is.

Softmax regression by single gradient steps, *linear* or on 500 random Fourier features of a Gaussian *kernel*, γ = 0.1.
*Plain* keeps nothing. *Replay* and *A-GEM* keep a reservoir of 200 examples and look at 10 and 64 of them a step. *EWC*
is told where a task ends and takes its F from 200 examples there. η ∈ {0.02, 0.05, 0.1} (linear) or {0.1, 0.3, 1}
(kernel), and λ ∈ {1, 10, 100} of EWC, are those of the highest accuracy on other tasks: another split, other orders;
chosen anew for each learner and repetition. 5 repetitions.

R_ij is the accuracy on task j after task i, b_j = 0.1 that of a guess: accuracy is mean_j R_5j, forgetting
mean_j<5 (max_i<5 R_ij − R_5j), backward transfer mean_j<5 (R_5j − R_jj), forward transfer mean_j>1 (R_j−1,j − b_j).
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [
            {"tasks": kind, "weights": weights, "learner": name}
            for kind in KINDS
            for weights in WEIGHTS
            for name in LEARNERS
        ]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        weights, name = str(cell["weights"]), str(cell["learner"])
        etas = ETA[weights][1:2] if quick else ETA[weights]
        grid = [{"eta": eta, "lam": lam} for eta in etas for lam in (LAM if name == "EWC" else LAM[:1])]
        best = grid[0]
        if len(grid) > 1:
            other = tasks(str(cell["tasks"]), 1000 + seed, quick)
            best = max(grid, key=lambda point: follow(other, weights, name, seed, **point).accuracy)
        kept = follow(tasks(str(cell["tasks"]), seed, quick), weights, name, seed, **best)
        return {
            "accuracy": kept.accuracy,
            "forgetting": kept.forgetting,
            "backward transfer": kept.backward_transfer,
            "forward transfer": kept.forward_transfer,
            "first task": [round(float(value), 4) for value in kept.R[:, 0]],
            "all tasks": [round(float(kept.R[i, : i + 1].mean()), 4) for i in range(len(kept.R))],
            **best,
        }

    def report(self, results: Results) -> Report:
        text = []
        for kind in results.names("tasks"):
            rows = [["learner", *MEASURES]]
            for r in results.where(tasks=kind):
                if r.runs:
                    name = f"{r.cell['weights']}, {r.cell['learner']}"
                    rows.append([name, *(r.spread(measure).show(3) for measure in MEASURES)])
            text.append(f"Tasks {kind}:\n\n{markdown_table(rows)}")
        return Report("\n\n".join(text), {"forgetting": _draw(results)}, [] if results.quick else _checks(results))


def tasks(kind: str, seed: int, quick: bool) -> list[Any]:
    from sklearn.datasets import load_digits

    from ..compose.continual import permuted_tasks, split_tasks

    X, y = load_digits(return_X_y=True)
    passes = 1 if quick else 2
    if kind == "permuted":
        return permuted_tasks(X / 16.0, y, 5, passes=passes, seed=seed)
    digits = np.random.default_rng(seed).permutation(10)  # which classes occur together, and when
    return split_tasks(X / 16.0, digits[y], 2, passes=passes, seed=seed)


def follow(of: list[Any], weights: str, name: str, seed: int, eta: float, lam: float) -> Any:
    """The matrix of accuracies of a learner on tasks."""
    from ..compose.continual import AGEM, EWC, Replay, SoftmaxSGD, TaskMatrix, learn_tasks

    more: dict[str, Any] = {"eta": eta, "random_state": seed}
    if weights == "kernel":
        more["kernel"] = "rbf:gamma=0.1"
    made = {"plain": SoftmaxSGD, "replay": Replay, "A-GEM": AGEM}
    model = EWC(lam=lam, **more) if name == "EWC" else made[name](**more)
    found = learn_tasks(model, of, classes=list(range(10)), size=1000)
    return TaskMatrix(found.tasks, found.R, np.full(len(found.tasks), 0.1))


def _draw(results: Results) -> str:
    panels = []
    for kind in results.names("tasks"):
        for weights in results.names("weights"):
            here = []
            for i, name in enumerate(LEARNERS):
                r = results.one(tasks=kind, weights=weights, learner=name)
                if r is not None:
                    curve = [100 * sum(each) / len(each) for each in zip(*r.values("first task"), strict=True)]
                    here.append(Line(name, list(range(1, len(curve) + 1)), curve, i + 1))
            panels.append(curves(here, title=f"{kind} tasks, {weights}", across="tasks learned", floor=0))
    keys = [Line(name, [], [], i + 1) for i, name in enumerate(LEARNERS)]
    return picture(panels, keys, title="Accuracy (%) on the first task while others are learned", columns=2)


def _checks(results: Results) -> list[Check]:
    def mean(kind: str, weights: str, learner: str, measure: str) -> float:
        return results.the(tasks=kind, weights=weights, learner=learner).mean(measure)

    def forgets(kind: str, weights: str, least: float) -> tuple[bool, str]:
        found = mean(kind, weights, "plain", "forgetting")
        return found > least, f"{found:.3f}"

    def cures(kind: str, weights: str, part: float) -> tuple[bool, str]:
        a, b = (mean(kind, weights, name, "forgetting") for name in ("replay", "plain"))
        return a <= part * b, f"{a:.3f} against {b:.3f}"

    def beats(kind: str, weights: str, learner: str) -> tuple[bool, str]:
        a, b = (mean(kind, weights, name, "accuracy") for name in (learner, "plain"))
        return a > b, f"{a:.3f} against {b:.3f}"

    def helpless(weights: str) -> tuple[bool, str]:
        a, b = (mean("split", weights, name, "accuracy") for name in ("EWC", "plain"))
        return abs(a - b) < 0.05, f"{a:.3f} against {b:.3f}"

    out = []
    for weights in WEIGHTS:
        for kind, least, part, word in (("permuted", 0.1, 2 / 3, "two thirds"), ("split", 0.8, 1 / 5, "a fifth")):
            more, less = f"plain steps forget more than {least}", f"replay forgets at most {word} of that"
            out.append(Check.of(f"{kind}, {weights}: {more}", forgets, kind, weights, least))
            out.append(Check.of(f"{kind}, {weights}: {less}", cures, kind, weights, part))
            out.append(Check.of(f"{kind}, {weights}: A-GEM is more accurate than plain", beats, kind, weights, "A-GEM"))
        out.append(Check.of(f"permuted, {weights}: EWC is more accurate than plain", beats, "permuted", weights, "EWC"))
        out.append(Check.of(f"split, {weights}: EWC changes nothing (within 0.05)", helpless, weights))
    return out


experiment = Continual()
