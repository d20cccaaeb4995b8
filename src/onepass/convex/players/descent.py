"""Gradient descent that projects at once (Zinkevich 2003), and the Euclidean case of mirror descent."""

from __future__ import annotations

import math

import numpy as np

from ...errors import ParameterError
from ..sets import Array, DecisionSet, norm
from ..steps import Anytime, Constant, Observed, StepSize
from .base import Player, positive

__all__ = ["OGD"]


class OGD(Player):
    """w ← Π_S(w − η_t z_t): online gradient descent, and with subgradients online subgradient descent.

    eta: a number, a `StepSize`, or "theory": D/(G√t), D the diameter of the set and G the promised largest ‖z‖, or the
    largest so far with G="observed". Every step size has its bound.
    """

    name = "ogd"

    def __init__(
        self, d: int, set: DecisionSet | None = None, eta: float | str | StepSize = 0.1, G: float | str = "observed"
    ) -> None:
        super().__init__(d, set)
        self.steps = self._steps(eta, G)
        self.w1, self.G = self.w, 0.0

    def _steps(self, eta: float | str | StepSize, G: float | str) -> StepSize:
        if isinstance(eta, StepSize):
            return eta
        if eta != "theory":
            if isinstance(eta, str):
                raise ParameterError(
                    f'{type(self).__name__}(eta={eta!r}): expected a number > 0, a StepSize or "theory"'
                )
            return Constant(eta)
        D = self.set.diameter(self.d)
        if math.isinf(D):
            raise ParameterError(
                f'{type(self).__name__}(eta="theory") needs a bounded set; {self.set!r} has no diameter'
            )
        return Observed(D) if G == "observed" else Anytime(D, positive(type(self).__name__, "G", G))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d}, {self.set!r}, eta={self.steps!r})"

    def _move(self, z: Array) -> None:
        self.G = max(self.G, norm(z))
        self.w = self.set.project(self._finite(self.w - self.steps.eta(self.t, self.G) * z))
        if self.steps.restarts(self.t + 1):
            self.w = self.w1

    def bounds(self, u: Array, Z: Array) -> Array | None:
        return self.steps.bounds(u, self.w1, Z)

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        out = super().constants(u, Z)
        D = self.set.diameter(self.d)
        return out if math.isinf(D) else {**out, "D": D}


def largest_square_sums(Z: Array, order: float) -> Array:
    """Σ_{i≤t} ‖z_i‖²_order."""
    return np.asarray(np.cumsum(np.linalg.norm(Z, ord=order, axis=1) ** 2))
