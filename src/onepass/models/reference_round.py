"""A round of `ReferenceLearner`: while it is worked out, and as it is recorded."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..scheme.rounds import PASSIVE, Array, Scalars, Step
from ..scheme.spread import Covariance

__all__ = ["Record", "Round"]


@dataclasses.dataclass(frozen=True)
class Record:
    """A round as it went; score, prediction and loss are those of the weights before the update."""

    t: int
    x: Any
    y: Any
    score: Any
    prediction: Any
    loss: float
    step: Step
    updated: bool
    w: Array


@dataclasses.dataclass
class Round:
    """A round while it is worked out. The learner itself changes only when all of it is known to be sound."""

    x: Any
    y: Any
    importance: float
    base: float
    ax: Any  # x and the constant feature
    theta: Array  # the weights as steps add to them
    w: Array  # the weights as scores read them; theta unless p ≠ 2
    scores: Array
    scalars: Scalars
    phi: Array  # what the step multiplies
    all_scores: bool = False  # does the rule see the scores of all classes?
    covariance: Covariance | None = None
    direction: Array | None = None  # φ before it is multiplied by Σ
    zero: bool = False  # φ = 0: there is nothing to learn from
    passive: bool = False  # the rule is not asked
    loss: float = 0.0
    step: Step = PASSIVE
    batch: list[Array] = dataclasses.field(default_factory=list)
    batch_step: Step | None = None
    full: bool = False  # is the mini-batch full?
    after: Array = dataclasses.field(default_factory=lambda: np.empty(0))  # theta after the update
    updated: bool = False
    planes: dict[str, Array] = dataclasses.field(default_factory=dict)
    table: Array | None = None  # Σ after the update
