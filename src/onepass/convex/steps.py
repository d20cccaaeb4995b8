"""Step sizes of gradient descent, each with the regret it guarantees.

`bounds(u, w1, Z)` is an array with an entry for every prefix: entry t − 1 bounds the regret against u after t rounds
with subgradients Z[:t].
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..scheme.parameters import Parameters, number
from .sets import Array

__all__ = ["Anytime", "Constant", "Doubling", "Horizon", "Observed", "StepSize", "StronglyConvex"]


def squares(Z: Array) -> Array:
    """Σ_{i≤t} ‖z_i‖²."""
    return np.asarray(np.cumsum(np.sum(Z * Z, axis=1)))


def largest(Z: Array) -> Array:
    """G_t = max_{i≤t} ‖z_i‖."""
    return np.asarray(np.maximum.accumulate(np.linalg.norm(Z, axis=1)))


@dataclasses.dataclass(repr=False)
class StepSize(Parameters):
    """Base. `begin(t)` says whether round t restarts from w₁."""

    family = "step size"

    def eta(self, t: int, G: float) -> float:
        """η_t; G is the largest ‖z‖ so far, this round's included."""
        raise NotImplementedError

    def restarts(self, t: int) -> bool:
        return False

    def bounds(self, u: Array, w1: Array, Z: Array) -> Array:
        raise NotImplementedError


@dataclasses.dataclass(repr=False)
class Constant(StepSize):
    """η_t = η:  R_T(u) ≤ ‖u − w₁‖²/(2η) + (η/2) Σ‖z_t‖²."""

    value: float = number(0.1, above=0)

    def eta(self, t: int, G: float) -> float:
        return self.value

    def bounds(self, u: Array, w1: Array, Z: Array) -> Array:
        return np.asarray(np.sum((u - w1) ** 2) / (2.0 * self.value) + 0.5 * self.value * squares(Z))


@dataclasses.dataclass(repr=False)
class Horizon(StepSize):
    """η = D/(G√T) for T rounds known in advance:  R_T ≤ D G √T where every ‖z‖ ≤ G and ‖u − w₁‖ ≤ D.

    After t ≠ T rounds the bound is that of a constant step.
    """

    D: float = number(1.0, above=0)
    G: float = number(1.0, above=0)
    T: int = number(100, at_least=1, integer=True)

    def eta(self, t: int, G: float) -> float:
        return self.D / (self.G * math.sqrt(self.T))

    def bounds(self, u: Array, w1: Array, Z: Array) -> Array:
        t = np.arange(1, len(Z) + 1)
        eta = self.eta(1, self.G)
        G = np.maximum(self.G, largest(Z))  # the bound still holds for a gradient larger than G
        return np.asarray(self.D**2 / (2.0 * eta) + 0.5 * eta * G**2 * t)


@dataclasses.dataclass(repr=False)
class Anytime(StepSize):
    """η_t = D/(G√t):  R_T ≤ (3/2) D G √T where every ‖z‖ ≤ G and the set has diameter D."""

    D: float = number(1.0, above=0)
    G: float = number(1.0, above=0)

    def eta(self, t: int, G: float) -> float:
        return self.D / (self.G * math.sqrt(t))

    def bounds(self, u: Array, w1: Array, Z: Array) -> Array:
        t = np.arange(1, len(Z) + 1)
        G = np.maximum(self.G, largest(Z))
        return np.asarray(0.5 * self.D * self.G * np.sqrt(t) + self.D * G**2 / self.G * np.sqrt(t))


@dataclasses.dataclass(repr=False)
class Observed(StepSize):
    """η_t = D/(G_t√t), G_t the largest ‖z‖ so far:  R_T ≤ D²/(2η_T) + ½ Σ η_t‖z_t‖² ≤ (3/2) D G_T √T.

    The first form holds for all steps that never grow, on a set of diameter D; nothing has to be known about the
    gradients.
    """

    D: float = number(1.0, above=0)

    def eta(self, t: int, G: float) -> float:
        return self.D / (G * math.sqrt(t)) if G > 0 else 0.0

    def bounds(self, u: Array, w1: Array, Z: Array) -> Array:
        t, G = np.arange(1, len(Z) + 1), largest(Z)
        eta = np.divide(self.D, G * np.sqrt(t), out=np.zeros(len(Z)), where=G > 0)
        first = np.divide(self.D**2, 2.0 * eta, out=np.zeros(len(Z)), where=eta > 0)
        return np.asarray(first + 0.5 * np.cumsum(eta * np.sum(Z * Z, axis=1)))


@dataclasses.dataclass(repr=False)
class StronglyConvex(StepSize):
    """η_t = 1/(μt) for μ-strongly convex losses:  R_T ≤ Σ ‖z_t‖²/(2μt) ≤ (G²/2μ)(1 + ln T)."""

    mu: float = number(1.0, above=0)

    def eta(self, t: int, G: float) -> float:
        return 1.0 / (self.mu * t)

    def bounds(self, u: Array, w1: Array, Z: Array) -> Array:
        t = np.arange(1, len(Z) + 1)
        return np.asarray(np.cumsum(np.sum(Z * Z, axis=1) / (2.0 * self.mu * t)))


@dataclasses.dataclass(repr=False)
class Doubling(StepSize):
    """`Horizon` for 1, 2, 4, … rounds, with a restart from w₁ each time:  R_T ≤ (√2/(√2 − 1)) D G √T."""

    D: float = number(1.0, above=0)
    G: float = number(1.0, above=0)

    def eta(self, t: int, G: float) -> float:
        length = 1 << (t.bit_length() - 1)  # rounds of the epoch that t is in: 1; 2, 3; 4 … 7
        return self.D / (self.G * math.sqrt(length))

    def restarts(self, t: int) -> bool:
        return t & (t - 1) == 0

    def bounds(self, u: Array, w1: Array, Z: Array) -> Array:
        t = np.arange(1, len(Z) + 1)
        G = np.maximum(self.G, largest(Z))
        worst = self.D * 0.5 * (self.G + G**2 / self.G)  # D·G if no gradient was larger than G
        return np.asarray(math.sqrt(2.0) / (math.sqrt(2.0) - 1.0) * worst * np.sqrt(t))
