"""Losses of a round: convex functions of the point played, with value, subgradient and curvature."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..errors import InputError, ParameterError
from ..scheme import losses as scalar_losses
from ..scheme.losses import Logistic, Squared
from .sets import Array, point

__all__ = ["Linear", "Prediction", "Quadratic", "Regularized", "RoundLoss"]


class RoundLoss:
    """Base of the losses f_t.

    `strong_convexity` is a μ with f(u) ≥ f(w) + ⟨z, u − w⟩ + (μ/2)‖u − w‖²; `exp_concavity(score)` an α such that
    e^{−αf} is concave where |score| of the prediction stays below `score` (0 where there is none).
    """

    strong_convexity: float = 0.0

    @property
    def dimension(self) -> int | None:
        """The dimension of its points; None if it takes any."""
        return None

    def value(self, w: Array) -> float:
        raise NotImplementedError

    def gradient(self, w: Array) -> Array:
        """A subgradient z ∈ ∂f(w)."""
        raise NotImplementedError

    def exp_concavity(self, score: float) -> float:
        return 0.0


@dataclasses.dataclass(eq=False)
class Linear(RoundLoss):
    """⟨z, w⟩."""

    z: Any

    def __post_init__(self) -> None:
        self.z = point(self.z, "z")

    @property
    def dimension(self) -> int | None:
        return len(self.z)

    def value(self, w: Array) -> float:
        return float(np.dot(self.z, w))

    def gradient(self, w: Array) -> Array:
        return np.asarray(self.z)


@dataclasses.dataclass(eq=False)
class Quadratic(RoundLoss):
    """½‖w − z‖²."""

    z: Any
    strong_convexity = 1.0

    def __post_init__(self) -> None:
        self.z = point(self.z, "z")

    @property
    def dimension(self) -> int | None:
        return len(self.z)

    def value(self, w: Array) -> float:
        return 0.5 * float(np.sum((w - self.z) ** 2))

    def gradient(self, w: Array) -> Array:
        return np.asarray(w - self.z)


@dataclasses.dataclass(eq=False)
class Prediction(RoundLoss):
    """c·ℓ(⟨w, x⟩, y): a loss of `onepass.scheme.losses` on a linear prediction. Margin losses want y = ±1."""

    loss: Any
    x: Any
    y: float
    importance: float = 1.0

    def __post_init__(self) -> None:
        self.loss = scalar_losses.make(self.loss)
        self.x = point(self.x, "x")
        if not math.isfinite(self.y) or (self.loss.margin and self.y not in (-1, 1)):
            expected = "-1 or 1" if self.loss.margin else "a finite number"
            raise InputError(f"y={self.y!r}: expected {expected} for the loss {self.loss.name}")
        if not 0 <= self.importance < math.inf:
            raise InputError(f"importance={self.importance!r}: expected a finite number >= 0")

    @property
    def dimension(self) -> int | None:
        return len(self.x)

    def value(self, w: Array) -> float:
        s = float(np.dot(w, self.x))
        return float(self.importance * self.loss.value(self.y * s if self.loss.margin else self.y - s))

    def gradient(self, w: Array) -> Array:
        s = float(np.dot(w, self.x))
        pull = self.y * self.loss.pull(self.y * s) if self.loss.margin else self.loss.pull(self.y - s)
        return np.asarray(-self.importance * pull * np.asarray(self.x))

    def exp_concavity(self, score: float) -> float:
        """Logistic: e^{−S}/c. ½r²: 1/(c B²), B = |y| + S bounding the residual."""
        if self.importance == 0:
            return 0.0
        if isinstance(self.loss, Logistic):
            return math.exp(-score) / self.importance
        if isinstance(self.loss, Squared):
            return 1.0 / (self.importance * (abs(self.y) + score) ** 2) if abs(self.y) + score > 0 else 0.0
        return 0.0


@dataclasses.dataclass(eq=False)
class Regularized(RoundLoss):
    """f(w) + (λ/2)‖w‖²: strongly convex."""

    f: RoundLoss
    lam: float

    def __post_init__(self) -> None:
        if not 0 < self.lam < math.inf:
            raise ParameterError(f"Regularized(lam={self.lam!r}): expected a finite number > 0")

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        return self.lam + self.f.strong_convexity

    @property
    def dimension(self) -> int | None:
        return self.f.dimension

    def value(self, w: Array) -> float:
        return self.f.value(w) + 0.5 * self.lam * float(w @ w)

    def gradient(self, w: Array) -> Array:
        return np.asarray(self.f.gradient(w) + self.lam * w)
