"""The input of a rule, `Scalars`, and its answer, a `Step`; what a task makes of an example.

`ReferenceLearner` runs them, one round after the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import ParameterError
from .compiled import compiled_class
from .parameters import Parameters
from .traits import RuleTraits

__all__ = ["Direction", "Rule", "Scalars", "Seen", "Step", "Task"]

Array = NDArray[np.float64]

# Below the smallest normal number the reciprocal of ‖φ‖² overflows: such a φ counts as zero.
ZERO_NORM = float(np.finfo(np.float64).tiny)


@dataclasses.dataclass
class Scalars:
    """All that a rule sees of a round."""

    m: float  # the margin ⟨w, φ⟩ + base; in regression side·s
    target: float  # what m should reach: 1, a cost, or in regression side·y − ε
    xx: float  # ‖φ‖²; of Gaussian weights φᵀΣφ
    ww: float  # ‖w‖²
    importance: float
    t: int  # this round, from 1
    k: int  # updates so far
    side: float = 1.0  # regression: the sign of the residual, so that φ = side·x; otherwise +1
    state: dict[str, float] = dataclasses.field(default_factory=dict)  # the rule's own slots; the rule may change them
    regression: bool = False  # 1: y itself is the target; 0: a margin should be reached
    base: float = 0.0  # the part of m that is the example's initial prediction

    @property
    def residual(self) -> float:
        """y − s in regression; in a margin task, target − m."""
        return self.side * (self.target - self.m)

    @property
    def inner(self) -> float:
        """⟨w, φ⟩, for rules that compute ‖w + add·φ‖."""
        return self.m - self.base


@dataclasses.dataclass(frozen=True)
class Step:
    """w ← scale·w + add·φ. `decay` shrinks w as `scale` does, but not the intercept: it is a penalty.

    With Gaussian weights (`RuleTraits.spread`) the update is add·Σφ, and then Σ⁻¹ ← forget·Σ⁻¹ + gain·φφᵀ.
    `soft` and `shrink` are proximal steps that follow, except for the intercept: |w_j| ← shrink·max(0, |w_j| − soft).
    """

    add: float = 0.0
    scale: float = 1.0
    decay: float = 1.0
    gain: float = 0.0
    forget: float = 1.0
    soft: float = 0.0
    shrink: float = 1.0

    @property
    def passive(self) -> bool:
        return self == PASSIVE

    @property
    def finite(self) -> bool:
        return all(math.isfinite(value) for value in dataclasses.astuple(self))


PASSIVE = Step()

THRESHOLDS = ("uncalibrated", "calibrated")


@dataclasses.dataclass(frozen=True)
class Seen:
    """The input of a rule with its own step for each coordinate: whole vectors, the constant feature last."""

    x: Array
    scores: Array  # of every row
    labels: Array  # of every row, for rules that learn `one_vs_rest`: ±1, or the number to predict
    pull: Array  # step.add·φ


USUAL = RuleTraits()

# What a rule declared by itself before `RuleTraits`. It would be ignored without a word.
REPLACED_BY_TRAITS = frozenset(
    "additive adds_up ball batch clips coordinates defined_for derived each_row epsilon_tube exact geometry minibatch "
    "mistake_driven moves_all never_starts own_moves planes proba readout sees_all_scores spread theta uses_soft "
    "uses_ww".split()
)


@dataclasses.dataclass(repr=False)
class Rule(Parameters):
    """An online learning rule: scalars in, step out. A subclass with `tasks` and `step` is a whole learner.

    `tasks` are those for which the rule is defined; `traits` declares everything else that others need to know.
    `formula` names the published update of `step`, for budgets and bounds of this update alone. `slots` names
    the rule's own state, with its start values.

    `compiled` is found, not written: the name of a class of ours that has a row with the same formula in the table of
    `native/core/rules.cpp`. A subclass has it too, unless it overrides a method (other than `validate`) or the slots.
    `cfunc` is the address of a C function with the signature in `native/core/abi.hpp`. With neither, the native loop
    calls `step`.
    """

    family = "rule"
    name: ClassVar[str] = ""
    tasks: ClassVar[Sequence[str]] = ()
    formula: ClassVar[str] = ""
    cost: ClassVar[str] = "O(features of the example)"
    guarantee: ClassVar[str] = "none"
    paper: ClassVar[str] = ""
    slots: ClassVar[Mapping[str, float]] = {}
    compiled: ClassVar[str] = ""
    cfunc: ClassVar[int] = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in vars(cls).keys() & REPLACED_BY_TRAITS - vars(cls).get("__annotations__", {}).keys():
            raise ParameterError(
                f"{cls.__name__}.{name} would never be asked for: since 0.1 a rule declares it in `traits`, as in "
                f"super().traits.replace(…); see onepass.scheme.RuleTraits"
            )
        cls.compiled = compiled_class(cls, _native.rules)

    @property
    def traits(self) -> RuleTraits:
        """What the rule declares, with these parameters. Override it with `super().traits.replace(…)`."""
        tasks = (self.tasks,) if isinstance(self.tasks, str) else tuple(self.tasks)
        # Rules with a compiled formula declare whether they read ‖w‖²; for a rule in Python it is always computed.
        return USUAL.replace(tasks=tasks, formula=self.formula, uses_ww=not self.compiled)

    def step(self, s: Scalars) -> Step:
        raise NotImplementedError(f"{type(self).__name__} must define step(s) -> Step")

    def suffer(self, s: Scalars) -> float:
        """The loss of the round, before its update."""
        return max(0.0, s.target - s.m)

    def suffer_all(self, scores: Array, y: int) -> float:
        """The loss of a round, for rules that see the scores of all classes."""
        raise NotImplementedError(f"{type(self).__name__} does not look at all scores")

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        """Coefficients of x for each class row, for rules that see the scores of all classes."""
        raise NotImplementedError(f"{type(self).__name__} does not look at all scores")

    def native(self) -> Mapping[str, float | str]:
        """The parameters of the compiled formula by name, as its row of the table has them; a `cfunc` in this order."""
        return {name: float(value) for name, value in self.get_params().items()}

    def predictive_variance(self, v: float, state: Mapping[str, float]) -> float:
        """Regression: the variance of y around a prediction whose xᵀΣx is v, by the rule's slots."""
        raise ParameterError(f"{self!r} says nothing of the noise of y; use rls, kalman or arow")

    def moved(self, w: Array, seen: Seen, planes: dict[str, Array], s: Scalars) -> Array:
        """The weights after a round, for rules that update `by_coordinate`; changes its planes in place."""
        raise NotImplementedError(f"{type(self).__name__} moves its weights by steps along φ")

    # The checks below take the traits of the rule where the caller has them: they are computed at each access, because
    # parameters may change.

    def require(self, task: str, traits: RuleTraits | None = None) -> None:
        """Refuse a task for which the rule is not defined."""
        tasks = (traits or self.traits).tasks
        if task not in tasks:
            defined = ", ".join(tasks) or "nothing (it declares no tasks)"
            raise ParameterError(f"{self!r} is not defined for task={task!r}; it is for {defined}")

    def require_multiclass(self, multiclass: str, traits: RuleTraits | None = None) -> None:
        """Refuse a multiclass= that the rule does not have."""
        traits = traits or self.traits
        if multiclass in traits.multiclass:
            return
        if traits.one_vs_rest:
            raise ParameterError(
                f"multiclass={multiclass!r}: {self!r} learns each class against the rest; leave it out"
            )
        expected = ", ".join(traits.multiclass)
        raise ParameterError(f"multiclass={multiclass!r} is not defined for {self!r}; expected one of {expected}")

    def require_costs(self, task: str, multiclass: str, classes: int) -> None:
        """Refuse class costs for rules that do not compare one rival with the true class: costs choose this rival and
        its margin.
        """
        if task not in ("auto", "multiclass") or classes == 2:
            raise ParameterError("costs= are for three classes or more; for two, class_weight says the same")
        if multiclass != "rival" or self.traits.sees_all_scores("multiclass", multiclass):
            way = "" if multiclass == "rival" else f" with multiclass={multiclass!r}"
            raise ParameterError(
                f"costs= choose one rival in each round, but {self!r}{way} looks at all classes; take a rule that has "
                "one (pa1, sgd with the hinge loss, arow, …), or reductions.CostSensitive"
            )


@dataclasses.dataclass
class Direction:
    """What a task makes of an example: φ (the shape of w), the value m should reach, and the side."""

    phi: Array
    target: float = 1.0
    side: float = 1.0
    m: float | None = None  # ⟨w, φ⟩, unless the task defines another margin


class Task(Protocol):
    """Turns an example into a direction; reads a prediction off the scores. See `tasks.py`."""

    name: str

    def shape(self, d: int) -> tuple[int, int]: ...
    def scores(self, w: Array, x: Any) -> Array: ...
    def direction(self, w: Array, x: Any, y: Any, rule: Rule) -> Direction: ...
    def predict(self, w: Array, x: Any) -> Any: ...


def calibrates(threshold: str, rule: Rule, task: str, traits: RuleTraits | None = None) -> bool:
    """Should each label of a set score on its own side of 0, or is only the order learned?"""
    if threshold not in THRESHOLDS:
        raise ParameterError(f"threshold={threshold!r}: expected one of {', '.join(THRESHOLDS)}")
    if task != "multilabel" or threshold == "uncalibrated":
        return False
    traits = traits or rule.traits
    if not (traits.additive or traits.sums_steps):
        reason = f"{rule!r} also shrinks, by an amount that is each step's own"
        raise ParameterError(f"threshold='calibrated' adds two steps of a round; {reason}: use 'uncalibrated'")
    return True


def require_start(rule: Rule, traits: RuleTraits | None = None) -> None:
    """Refuse a rule that would never leave w = 0."""
    if (traits or rule.traits).stays_at_zero:
        raise ParameterError(f"{rule!r} never starts from w = 0, where every margin is 0; see its docstring")


def require_norm(rule: Rule, fit_intercept: bool, bias_in_norm: bool, traits: RuleTraits | None = None) -> None:
    """Refuse bias_in_norm=False for rules that need the intercept in ‖φ‖²."""
    if fit_intercept and not bias_in_norm:
        traits = traits or rule.traits
        if traits.uses_ww:
            raise ParameterError(f"{rule!r} reads ‖w‖², intercept included: bias_in_norm must be True")
        if traits.spread:
            raise ParameterError(f"{rule!r} reads φᵀΣφ, intercept included: bias_in_norm must be True")
