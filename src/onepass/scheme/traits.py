"""What a rule declares about itself, as data. Models, readouts, budgets and the native loops read only this."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Self

from .spread import Spread

__all__ = ["DIRECTIONS", "Plane", "RuleTraits"]

# How a task with several classes makes its direction: against the best rival, or against all classes that score at
# least as high.
DIRECTIONS = ("rival", "uniform", "proportional")


@dataclasses.dataclass(frozen=True)
class Plane:
    """One number that a rule stores for every weight and every intercept."""

    name: str
    start: float = 0.0  # the value for a weight that was not updated yet
    odd: bool = False  # changes sign and is halved together with the weight, when classes are swapped or become rows
    dead: float = 0.0  # of an odd plane only the excess over this is halved
    of_row: bool = False  # stored once for each row of weights
    square: bool = False  # a matrix over the coordinates; supported by `ReferenceLearner` only


@dataclasses.dataclass(frozen=True)
class RuleTraits:
    """The capabilities of a rule with its parameters. The defaults are those of a rule that only has a `step`."""

    # Where the rule is defined
    tasks: tuple[str, ...] = ()
    multiclass: tuple[str, ...] = DIRECTIONS  # the values that multiclass= can have
    solves: tuple[str, ...] = ()  # those for which `solve`, which sees the scores of all classes, replaces `step`
    one_vs_rest: bool = False  # several classes: every row of weights learns its class against the rest
    readout: str = "last"  # what readout="last" means for this rule
    probabilities: tuple[str, ...] = ()  # tasks in which scores are turned into probabilities (σ or softmax)
    formula: str = ""  # the published update that `step` computes, for budgets and bounds of one update

    # What its step is
    additive: bool = False  # the step only adds multiples of φ; the voted readout needs that
    sums_steps: bool = False  # the steps for several directions of a round may be added
    gradient: bool = False  # the step is a gradient, which may be summed over a whole data set
    mistake_driven: bool = False  # after a pass without an update, learning is finished
    stays_at_zero: bool = False  # the rule never leaves w = 0
    uses_ww: bool = False  # `step` reads ‖w‖²
    epsilon: float = 0.0  # regression: half the width of the tube around y in which nothing is learned
    clips: bool = False  # regression: predictions are clipped to the range of the labels so far
    batch_size: int = 1  # how many rounds are combined into one step; all of them see the same weights
    reduction: str = "mean"  # whether this step is the "mean" or the "sum" of the steps of its rounds

    # How the weights follow
    soft_thresholds: bool = False  # L1: weights of absent features are then updated lazily
    soft_limit: float = math.inf  # weights above this are never soft-thresholded (truncated gradient)
    geometry: float = 2.0  # the p of `geometry.py`: steps add to θ, scores read w; xx = ‖φ‖_p², ww = ‖w‖_q²
    ball: float = math.inf  # after an update θ is scaled into ‖θ‖_p ≤ this, which is ‖w‖_q
    spread: Spread | None = None  # the covariance Σ of Gaussian weights; None where a rule has no Σ
    planes: tuple[Plane, ...] = ()  # what is stored for every weight; planes of a whole row come last
    by_coordinate: bool = False  # `moved` updates each weight by its own history
    coordinates: str = "none"  # the formula in `native/loops/coordinates.hpp` that does so; none for a step along φ
    dense_update: bool = False  # all weights change in every round, also those of absent features
    weights_from_planes: bool = False  # the weights can be computed from the planes

    def __post_init__(self) -> None:
        if self.spread is not None and not self.spread.full and not self.planes:
            object.__setattr__(self, "planes", (Plane("variance", self.spread.start),))

    def replace(self, **changes: Any) -> Self:
        """These traits, with some of them changed."""
        if not changes.keys() <= self.__dict__.keys():
            unknown = ", ".join(sorted(changes.keys() - self.__dict__.keys()))
            raise TypeError(f"a rule has no trait {unknown}; it has {', '.join(self.__dict__)}")
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, **changes)  # a tenth of the time of dataclasses.replace
        made.__post_init__()
        return made

    def sees_all_scores(self, task: str, multiclass: str = "rival") -> bool:
        """Does `solve` replace `step` in this task?"""
        return task == "multiclass" and multiclass in self.solves
