"""What a rule sees of a round and what it answers, `Scalars` in, a `Step` out; what a task makes of an example.

`ReferenceLearner` puts them to work, one round after the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from .parameters import Parameters
from .spread import Spread

__all__ = ["Direction", "Plane", "Rule", "Scalars", "Seen", "Step", "Task"]

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
    state: dict[str, float] = dataclasses.field(default_factory=dict)  # the rule's own slots; it may write
    regression: bool = False  # is y itself to be met, or only a margin to be reached?
    base: float = 0.0  # what of m is the example's initial prediction

    @property
    def residual(self) -> float:
        """y − s in regression; in a margin task, target − m."""
        return self.side * (self.target - self.m)

    @property
    def inner(self) -> float:
        """⟨w, φ⟩, for rules that work out ‖w + add·φ‖."""
        return self.m - self.base


@dataclasses.dataclass(frozen=True)
class Step:
    """w ← scale·w + add·φ. `decay` shrinks as `scale` does but spares the intercept: it is a penalty.

    Of Gaussian weights (`Rule.spread`) the move is add·Σφ, and then Σ⁻¹ ← forget·Σ⁻¹ + gain·φφᵀ.
    `soft` and `shrink` are proximal steps that follow, the intercept spared: |w_j| ← shrink·max(0, |w_j| − soft).
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

# How a task with several classes makes its direction: against the best rival, or against all that score no less.
DIRECTIONS = ("rival", "uniform", "proportional")
THRESHOLDS = ("uncalibrated", "calibrated")


@dataclasses.dataclass(frozen=True)
class Plane:
    """One number that a rule keeps beside every weight (and of every intercept)."""

    name: str
    start: float = 0.0  # of a weight that was never met
    odd: bool = False  # changes sign with the weight and is halved with it, where classes are swapped or become rows
    dead: float = 0.0  # of an odd plane only what is beyond this is halved
    of_row: bool = False  # kept once for a row of weights, beside its intercept
    square: bool = False  # a matrix over the coordinates: in `Learner` alone


@dataclasses.dataclass(frozen=True)
class Seen:
    """A round as rules see it that keep planes: whole vectors, the constant feature last."""

    x: Array
    scores: Array  # of every row
    labels: Array  # of every row, where rows learn for themselves (`each_row`): ±1, or the number to predict
    pull: Array  # step.add·φ


@dataclasses.dataclass(repr=False)
class Rule(Parameters):
    """An online learning rule: scalars in, step out. A subclass with `tasks` and `step` is a whole learner.

    `tasks` are the cells where the rule is defined. `slots` names the rule's own state, with its start values.
    `code` selects the same formula in `native/core/rules.cpp`; `cfunc` is the address of a C function with the
    signature given there; with neither, the native loop calls `step` here.
    """

    family = "rule"
    name: ClassVar[str] = ""
    tasks: ClassVar[Sequence[str]] = ()
    slots: ClassVar[Mapping[str, float]] = {}
    exact: ClassVar[str] = ""  # the multiclass= word under which `solve` replaces `step`
    additive: ClassVar[bool] = False  # does it only ever add multiples of φ? (the voted readout needs that)
    mistake_driven: ClassVar[bool] = False  # is a pass without an update the end of learning?
    batch: ClassVar[bool] = False  # is its step a gradient, which may be summed over a whole set?
    own_moves: ClassVar[bool] = False  # does `moved` move its weights, by what is kept beside each?
    readout: ClassVar[str] = "last"  # what readout="last" means for this rule
    code: ClassVar[int] = -1
    cfunc: ClassVar[int] = 0

    def step(self, s: Scalars) -> Step:
        raise NotImplementedError(f"{type(self).__name__} must define step(s) -> Step")

    def suffer(self, s: Scalars) -> float:
        """What the round cost before its update."""
        return max(0.0, s.target - s.m)

    def sees_all_scores(self, task: str, multiclass: str = "rival") -> bool:
        """Does `solve` replace `step` in this task?"""
        return task == "multiclass" and self.exact != "" and multiclass == self.exact

    def require_multiclass(self, multiclass: str) -> None:
        if multiclass not in (*DIRECTIONS, self.exact):
            expected = ", ".join(word for word in (*DIRECTIONS, self.exact) if word)
            raise ParameterError(f"multiclass={multiclass!r} is not defined for {self!r}; expected one of {expected}")

    def require_costs(self, task: str, multiclass: str, classes: int) -> None:
        """Class costs say which rival a round looks at, and by how much it is to be beaten: there must be one."""
        if task not in ("auto", "multiclass") or classes == 2:
            raise ParameterError("costs= are for three classes or more; for two, class_weight says the same")
        if multiclass != "rival" or self.sees_all_scores("multiclass", multiclass):
            way = "" if multiclass == "rival" else f" with multiclass={multiclass!r}"
            raise ParameterError(
                f"costs= choose one rival in each round, but {self!r}{way} looks at all classes; take a rule that has "
                "one (pa1, sgd with the hinge loss, arow, …), or reductions.CostSensitive"
            )

    def suffer_all(self, scores: Array, y: int) -> float:
        """The cost of a round for rules that look at all scores."""
        raise NotImplementedError(f"{type(self).__name__} does not look at all scores")

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        """Coefficients of x for each class row, for rules that look at all scores at once."""
        raise NotImplementedError(f"{type(self).__name__} does not look at all scores")

    def native(self) -> Sequence[float]:
        """The parameters of the native formula, in its order."""
        return [float(v) for v in self.get_params().values()]

    def never_starts(self) -> bool:
        """Is w = 0 a place that the rule cannot leave?"""
        return False

    def uses_ww(self) -> bool:
        """Does `step` read ‖w‖²? Ours say; a rule of yours is taken to."""
        return self.code < 0

    def uses_soft(self) -> bool:
        """Does it soft-threshold weights (L1)? Then absent features are caught up with lazily."""
        return False

    def theta(self) -> float:
        """Weights above this are never soft-thresholded (truncated gradient)."""
        return math.inf

    def geometry(self) -> float:
        """The p of its geometry (`geometry.py`): steps add to θ, scores read w; then xx = ‖φ‖_p², ww = ‖w‖_q²."""
        return 2.0

    def ball(self) -> float:
        """After an update θ is scaled into ‖θ‖_p ≤ this, which is ‖w‖_q."""
        return math.inf

    def spread(self) -> Spread | None:
        """How its weights are spread (`spread.py`); None for a rule that knows only where they are."""
        return None

    def predictive_variance(self, v: float, state: Mapping[str, float]) -> float:
        """Regression: the variance of y around a prediction whose xᵀΣx is v, by the rule's slots."""
        raise ParameterError(f"{self!r} says nothing of the noise of y; use rls, kalman or arow")

    def planes(self) -> Sequence[Plane]:
        """What it keeps beside every weight; those of a row as a whole come last."""
        spread = self.spread()
        return () if spread is None or spread.full else (Plane("variance", spread.start),)

    def moved(self, w: Array, seen: Seen, planes: dict[str, Array], s: Scalars) -> Array:
        """The weights after a round, for rules with `own_moves`; changes its planes in place."""
        raise NotImplementedError(f"{type(self).__name__} moves its weights by steps along φ")

    def moves_all(self) -> bool:
        """Do all weights move in every round, also where nothing pulls?"""
        return False

    def coordinates(self) -> int:
        """Which formula of `native/loops/coordinates.hpp` moves its weights; 0 where a step along φ does."""
        return 0

    def derived(self) -> bool:
        """Do its weights follow from its planes?"""
        return False

    def each_row(self) -> bool:
        """With several classes, does every row learn for itself, its class against the rest?"""
        return False

    def clips(self) -> bool:
        """In regression, do predictions stay within the labels seen so far?"""
        return False

    def adds_up(self) -> bool:
        """May its steps for several directions of a round be added? What else a step does must not depend on m."""
        return self.additive

    def minibatch(self) -> tuple[int, str]:
        """How many rounds share a step, all seen by the same weights; is it the "mean" or the "sum" of their own?"""
        return 1, "mean"

    def epsilon_tube(self) -> float:
        """Half the width of the tube around y in regression within which nothing is learned."""
        return 0.0

    def proba(self, task: str) -> bool:
        """Do the scores have a probability reading (σ or softmax)?"""
        return False

    def defined_for(self) -> Sequence[str]:
        """The tasks where this rule, with these parameters, is defined."""
        return self.tasks

    def require(self, task: str) -> None:
        if task not in self.defined_for():
            defined = ", ".join(self.defined_for()) or "nothing (it declares no tasks)"
            raise ParameterError(f"{self!r} is not defined for task={task!r}; it is for {defined}")


@dataclasses.dataclass
class Direction:
    """What a task makes of an example: φ (the shape of w), the value m should reach, and the side."""

    phi: Array
    target: float = 1.0
    side: float = 1.0
    m: float | None = None  # ⟨w, φ⟩, unless the task measures otherwise


class Task(Protocol):
    """Turns an example into a direction; reads a prediction off the scores. See `tasks.py`."""

    name: str

    def shape(self, d: int) -> tuple[int, int]: ...
    def scores(self, w: Array, x: Any) -> Array: ...
    def direction(self, w: Array, x: Any, y: Any, rule: Rule) -> Direction: ...
    def predict(self, w: Array, x: Any) -> Any: ...


def calibrates(threshold: str, rule: Rule, task: str) -> bool:
    """Is each label of a set kept on its side of 0, or are they only kept in order?"""
    if threshold not in THRESHOLDS:
        raise ParameterError(f"threshold={threshold!r}: expected one of {', '.join(THRESHOLDS)}")
    if task != "multilabel" or threshold == "uncalibrated":
        return False
    if not rule.adds_up():
        reason = f"{rule!r} also shrinks, by an amount that is each step's own"
        raise ParameterError(f"threshold='calibrated' adds two steps of a round; {reason}: use 'uncalibrated'")
    return True


def require_start(rule: Rule) -> None:
    """Refuse a rule that would stay at w = 0 for ever."""
    if rule.never_starts():
        raise ParameterError(f"{rule!r} never starts from w = 0, where every margin is 0; see its docstring")


def require_norm(rule: Rule, fit_intercept: bool, bias_in_norm: bool) -> None:
    """Refuse an intercept outside ‖φ‖² where the rule could not do without it."""
    if fit_intercept and not bias_in_norm:
        if rule.uses_ww():
            raise ParameterError(f"{rule!r} reads ‖w‖², intercept included: bias_in_norm must be True")
        if rule.spread():
            raise ParameterError(f"{rule!r} reads φᵀΣφ, intercept included: bias_in_norm must be True")
