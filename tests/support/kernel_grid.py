"""The grid of kernel learners that the tests walk: rule × task × budget × representation."""

from __future__ import annotations

import dataclasses
import zlib
from typing import Any

import numpy as np

from onepass import budgets, kernels
from onepass.estimators.kernel import KernelClassifier, KernelRegressor
from onepass.models.kernel import KernelModel
from onepass.persistence import store
from support.grid import AMONG, LABELS, REPRESENTATIONS, RULES, Representation, Stream, make_rule

# Rules without a kernel form: single weights shrink or have their own history or variance, rounds share a step, or the
# geometry is no inner product.
BY_COORDINATES = ("adagrad", "adadelta", "rmsprop", "adam", "ftrl", "vw")
GAUSSIAN = ("rls", "kalman", "arow", "cw", "scw", "nherd", "ons", "user-gaussian")
UNDEFINED = ("fobos", "truncated", "sgd-batch", "alma-p", "pocket", *BY_COORDINATES, *GAUSSIAN)
KERNEL_RULES = {name: tasks for name, (_, tasks) in RULES.items() if not name.startswith(UNDEFINED)}

# Every budget with the rules of the grid that try it; written out here, not read from the code.
ANY = ["perceptron", "pa1", "pa2-lam", "mira", "romma", "pegasos", "sgd-hinge-l2", "sgd-squared", "shifting"]
PLAIN = ["perceptron"]
PASSIVE = ["pa1", "pa2"]
EVERYWHERE = ("binary", "multiclass", "regression")
BUDGETS: dict[str, tuple[budgets.Budget, list[str], tuple[str, ...]]] = {
    "unlimited": (budgets.Unlimited(), [], EVERYWHERE),  # every rule, below
    "duplicates": (budgets.Unlimited(merge_duplicates=True), ["perceptron", "pa1", "romma"], EVERYWHERE),
    "stoptron": (budgets.Stoptron(6), ANY, EVERYWHERE),
    "oldest": (budgets.Oldest(6), ANY, EVERYWHERE),
    "random": (budgets.Random(6, seed=3), ANY, EVERYWHERE),
    "reservoir": (budgets.Reservoir(6, seed=5), ["parzen", "pa1", "norma", "romma"], EVERYWHERE),
    "shrinking": (budgets.Shrinking(0.9), PLAIN, EVERYWHERE),
    "distil": (budgets.BudgetPerceptron(), PLAIN, ("binary",)),
    "sweep": (budgets.BudgetPerceptron(order="sweep"), PLAIN, ("binary",)),
    "fixed": (budgets.BudgetPerceptron(6), PLAIN, ("binary",)),
    "budget_svm": (budgets.BudgetSVM(6), PLAIN, ("binary",)),
    "forgetron": (budgets.Forgetron(6), PLAIN, ("binary",)),
    "forgetron-basic": (budgets.Forgetron(6, tuning="basic"), PLAIN, ("binary",)),
    "projectron": (budgets.Projectron(eta=0.3), PLAIN, ("binary", "multiclass")),
    "projectron-B": (budgets.Projectron(6), PLAIN, ("binary", "multiclass")),
    "projectron++": (budgets.ProjectronPP(6, eta=0.5), PLAIN, ("binary",)),
    "projectron++U": (budgets.ProjectronPP(6, eta=0.5, update="U"), PLAIN, ("binary",)),
    "bpas": (budgets.BPAS(6), PASSIVE, EVERYWHERE),
    "bpas-ramp": (budgets.BPAS(6, ramp=True), PASSIVE, ("binary", "multiclass")),
    "bpann": (budgets.BPANN(6), PASSIVE, EVERYWHERE),
    "bpann-ramp": (budgets.BPANN(6, ramp=True), PASSIVE, ("binary", "multiclass")),
    "bpap": (budgets.BPAP(6), PASSIVE, EVERYWHERE),
    "bpap-ramp": (budgets.BPAP(6, ramp=True), PASSIVE, ("binary", "multiclass")),
    "ald": (budgets.ALD(nu=0.3), ["adaline"], ("binary", "regression")),
    "ald-B": (budgets.ALD(6), ["adaline-optimal"], ("binary", "regression")),
    "merge": (budgets.Merge(6), ["pa2-lam", "sgd-squared", "sgd-squared-l2"], EVERYWHERE),
}
FORMS = {name: form for name, form in REPRESENTATIONS.items() if name != "rows"}


@dataclasses.dataclass(frozen=True)
class KernelCell:
    rule: str
    task: str
    budget: str
    representation: str = "f64"

    def __str__(self) -> str:
        return f"{self.rule}-{self.task}-{self.budget}-{self.representation}"

    @property
    def seed(self) -> int:
        return zlib.crc32(str(self).encode())

    @property
    def form(self) -> Representation:
        return FORMS[self.representation]

    @property
    def grows(self) -> bool:
        return "costs" not in AMONG.get(self.rule, {})

    def settings(self) -> dict[str, Any]:
        return {"budget": BUDGETS[self.budget][0], "kernel": kernels.RBF(0.1), **AMONG.get(self.rule, {})}

    def model(self, classes: list[Any] | None = None) -> KernelModel:
        return KernelModel(
            make_rule(self.rule), self.task, classes=classes, **self.settings(), **dict(self.form.options)
        )

    def estimator(self) -> KernelClassifier | KernelRegressor:
        options = {**self.settings(), **dict(self.form.options)}
        if self.task == "regression":
            return KernelRegressor(make_rule(self.rule), **options)
        return KernelClassifier(make_rule(self.rule), task=self.task, **options)

    def numbers(self, s: Stream) -> list[Any]:
        """The answers as `expansion.KernelLearner` takes them."""
        if self.task == "regression":
            return s.y.tolist()
        at = [LABELS[self.task].index(label) for label in s.y.tolist()]
        return at if self.task == "multiclass" else [2 * i - 1 for i in at]


def _tries(budget: str) -> list[str]:
    return list(KERNEL_RULES) if budget == "unlimited" else BUDGETS[budget][1]


# One representation each for the learning rules, every representation for a few.
CELLS = [
    KernelCell(rule, task, budget)
    for budget, (_, _, tasks) in BUDGETS.items()
    for rule in _tries(budget)
    for task in KERNEL_RULES[rule]
    if task in tasks
]
FORM_CELLS = [
    KernelCell(rule, task, budget, representation)
    for budget, (_, tried, tasks) in BUDGETS.items()
    for rule in (tried or ["pa1", "user-python", "mira-mira"])[:2]
    for task in KERNEL_RULES[rule]
    if task in tasks
    for representation in FORMS
]


def saved(learner: Any) -> bytes:
    """The bytes of the model's file, without what an estimator keeps beside it."""
    model = learner if isinstance(learner, KernelModel) else learner._model
    config, arrays = model.state()
    return store.to_bytes(type(model).__name__, {**config, "extra": {}}, arrays)


def scale_of(coefficients: np.ndarray) -> float:
    return max(1.0, float(np.max(np.abs(coefficients), initial=0.0)))
