"""What a rule declares about itself, as data: models, readouts, budgets and the native loops ask nothing else of it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Self

from .spread import Spread

__all__ = ["DIRECTIONS", "Plane", "RuleTraits"]

# How a task with several classes makes its direction: against the best rival, or against all that score no less.
DIRECTIONS = ("rival", "uniform", "proportional")


@dataclasses.dataclass(frozen=True)
class Plane:
    """One number that a rule stores beside every weight (and beside every intercept)."""

    name: str
    start: float = 0.0  # of a weight that was never met
    odd: bool = False  # changes sign with the weight and is halved with it, where classes are swapped or become rows
    dead: float = 0.0  # of an odd plane only what is beyond this is halved
    of_row: bool = False  # stored once for a row of weights, beside its intercept
    square: bool = False  # a matrix over the coordinates: in `ReferenceLearner` alone


@dataclasses.dataclass(frozen=True)
class RuleTraits:
    """The capabilities of a rule with its parameters. The defaults are those of a rule that only has a `step`."""

    # Where the rule is defined
    tasks: tuple[str, ...] = ()
    multiclass: tuple[str, ...] = DIRECTIONS  # the words that multiclass= takes
    solves: tuple[str, ...] = ()  # those of them under which `solve` replaces `step`: it sees the scores of all classes
    one_vs_rest: bool = False  # several classes: does every row of weights learn its class against the rest?
    readout: str = "last"  # what readout="last" means for this rule
    probabilities: tuple[str, ...] = ()  # tasks in which scores become probabilities (σ or softmax)
    formula: str = ""  # the published update that `step` is: budgets and bounds that hold for this update alone read it

    # What its step is
    additive: bool = False  # does it only ever add multiples of φ? (the voted readout needs that)
    sums_steps: bool = False  # may its steps for several directions of a round be added?
    gradient: bool = False  # is its step a gradient, which may be summed over a whole data set?
    mistake_driven: bool = False  # is a pass without an update the end of learning?
    stays_at_zero: bool = False  # is w = 0 a point that the rule cannot leave?
    uses_ww: bool = False  # does `step` read ‖w‖²?
    epsilon: float = 0.0  # regression: half the width of the tube around y in which nothing is learned
    clips: bool = False  # regression: do predictions stay within the labels seen so far?
    batch_size: int = 1  # how many rounds share a step; all of them see the same weights
    reduction: str = "mean"  # is that step the "mean" or the "sum" of the steps of its rounds?

    # How the weights follow
    soft_thresholds: bool = False  # L1: weights of absent features are then updated lazily
    soft_limit: float = math.inf  # weights above this are never soft-thresholded (truncated gradient)
    geometry: float = 2.0  # the p of `geometry.py`: steps add to θ, scores read w; xx = ‖φ‖_p², ww = ‖w‖_q²
    ball: float = math.inf  # after an update θ is scaled into ‖θ‖_p ≤ this, which is ‖w‖_q
    spread: Spread | None = None  # the covariance Σ of Gaussian weights; None where a rule has no Σ
    planes: tuple[Plane, ...] = ()  # what is stored beside every weight; those of a row as a whole come last
    by_coordinate: bool = False  # does `moved` update each weight by its own history?
    coordinates: str = "none"  # which formula of `native/loops/coordinates.hpp` does so; none for a step along φ
    dense_update: bool = False  # do all weights change in every round, also those of absent features?
    weights_from_planes: bool = False  # can the weights be computed from the planes?

    def __post_init__(self) -> None:
        if self.spread is not None and not self.spread.full and not self.planes:
            object.__setattr__(self, "planes", (Plane("variance", self.spread.start),))

    def replace(self, **changes: Any) -> Self:
        """These traits, with some of them changed."""
        return type(self)(**{**self.__dict__, **changes})  # a third of the time of dataclasses.replace

    def sees_all_scores(self, task: str, multiclass: str = "rival") -> bool:
        """Does `solve` replace `step` in this task?"""
        return task == "multiclass" and multiclass in self.solves
