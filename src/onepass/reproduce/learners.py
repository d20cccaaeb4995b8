"""The kernel learners of Wang and Vucetic (2010), Table 1, and others of ours; each with its grid of parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import kernels, rules
from ..kernels import budgets
from .cross_validation import accuracy, choose
from .sets import Split

__all__ = ["LEARNERS", "OURS", "Learner", "tune_and_test"]

GAMMA = tuple(2.0**k for k in range(-8, 7))
GAMMA_PLANE = tuple(2.0**k for k in range(-1, 7))  # in two dimensions, wider kernels only lead to singular matrices
C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ETA = (0.03, 0.1, 0.3, 0.6)
NU = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.6)
TUNING_ROWS = 3000


@dataclasses.dataclass(frozen=True)
class Learner:
    """`parts(B, seed, **chosen)` makes rule and budget; `grid` has the parameters that are chosen in addition to γ."""

    parts: Callable[..., tuple[Any, Any]]
    grid: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    budgeted: bool = True

    def make(self, B: int | None, seed: int, gamma: float, **chosen: float) -> Any:
        from ..estimators.kernel import KernelClassifier

        rule, budget = self.parts(B, seed, **chosen)
        return KernelClassifier(rule, kernel=kernels.RBF(gamma), budget=budget, task="binary")


def _perceptron(budget: Callable[[int, int], Any], budgeted: bool = True) -> Learner:
    return Learner(lambda B, seed: (rules.Perceptron(), budget(B, seed)), budgeted=budgeted)


def _pa(budget: Callable[[int, int], Any], budgeted: bool = True) -> Learner:
    return Learner(lambda B, seed, C: (rules.PA1(C), budget(B, seed)), {"C": C}, budgeted)


# As table1.csv names them.
LEARNERS: dict[str, Learner] = {
    "Perceptron": _perceptron(lambda B, seed: None, budgeted=False),
    "PA": _pa(lambda B, seed: None, budgeted=False),
    "PA-R": _pa(lambda B, seed: budgets.BPAS(None, ramp=True), budgeted=False),
    "Stoptron": _perceptron(lambda B, seed: budgets.Stoptron(B)),
    "RandomBudgetPerceptron": _perceptron(lambda B, seed: budgets.Random(B, seed)),
    "Forgetron": _perceptron(lambda B, seed: budgets.Forgetron(B)),
    "PA+Rnd": _pa(lambda B, seed: budgets.Random(B, seed)),
    "BPA-S": _pa(lambda B, seed: budgets.BPAS(B)),
    "BPA-S-R": _pa(lambda B, seed: budgets.BPAS(B, ramp=True)),
    "BPA-NN": _pa(lambda B, seed: budgets.BPANN(B)),
    "BPA-NN-R": _pa(lambda B, seed: budgets.BPANN(B, ramp=True)),
    "Projectron++": Learner(lambda B, seed, eta: (rules.Perceptron(), budgets.ProjectronPP(B, eta)), {"eta": ETA}),
    "BPA-P": _pa(lambda B, seed: budgets.BPAP(B)),
    "BPA-P-R": _pa(lambda B, seed: budgets.BPAP(B, ramp=True)),
    # Not in the paper: merging two vectors (Wang, Crammer and Vucetic 2012), and least squares over all rounds.
    "PA+Merge": _pa(lambda B, seed: budgets.Merge(B)),
    "KRLS": Learner(lambda B, seed, nu: (rules.Adaline(), budgets.ALD(B, nu)), {"nu": NU}),
}
OURS = ("PA+Merge", "KRLS")


def tune_and_test(
    name: str, B: str | float, seed: int, data: Split, *, rows: int = TUNING_ROWS, every: int = 1
) -> dict[str, Any]:
    """Parameters chosen on the first `rows`, one pass over all of them, accuracy of the last hypothesis.

    B may be "none". `every`: of each grid only the first value, the one `every` places further, and so on.
    """
    learner = LEARNERS[name]
    grid = {"gamma": GAMMA_PLANE if data.X.shape[1] == 2 else GAMMA, **learner.grid}
    grid = {key: values[::every] for key, values in grid.items()}
    limit = None if B == "none" else int(B)

    def make(**chosen: float) -> Any:
        return learner.make(limit, seed, **chosen)

    chosen, validated = choose(make, grid, data.X[:rows], data.y[:rows], fewest=not learner.budgeted)
    model = make(**chosen).fit(data.X, data.y)
    return {
        "accuracy": accuracy(model, data.held, data.truth),
        "support": model.n_support_,
        "updates": model.k_,
        "validated": validated,
        **chosen,
    }
