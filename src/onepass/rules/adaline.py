"""Adaline (Widrow and Hoff 1960): least mean squares, and its normalised form."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..scheme import schedules
from ..scheme.parameters import choice, number
from ..scheme.rounds import Array, Rule, Scalars, Step
from ..scheme.traits import DIRECTIONS, RuleTraits

__all__ = ["Adaline", "NormalizedLMS"]


def one_hot(scores: Array, y: int) -> Array:
    """Targets of the class rows: +1 for y, −1 for the others."""
    return np.where(np.arange(len(scores)) == y, 1.0, -1.0)


@dataclasses.dataclass(repr=False)
class LeastSquares(Rule):
    """Rules whose step is proportional to the residual e = target − m. With K classes each row has a target of ±1."""

    tasks = ("binary", "multiclass", "regression")

    def rate(self, s: Scalars) -> float:
        """The multiplier of e·x."""
        raise NotImplementedError

    def step(self, s: Scalars) -> Step:
        return Step(add=self.rate(s) * (s.target - s.m))

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(solves=DIRECTIONS)

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        return self.rate(s) * (one_hot(scores, y) - scores), Step(add=1.0)

    def suffer(self, s: Scalars) -> float:
        return 0.5 * (s.target - s.m) ** 2

    def suffer_all(self, scores: Array, y: int) -> float:
        return float(0.5 * np.sum((one_hot(scores, y) - scores) ** 2))


@dataclasses.dataclass(repr=False)
class Adaline(LeastSquares):
    """LMS: w ← w + ρ e x, e = y − s. Contracts while 0 < ρ‖x‖² < 2. A `schedule` gives ρ_t in place of ρ.

    For ρR² < 1 and any u: Σ e² ≤ ‖u‖²/ρ + Σ (y − u·x)²/(1 − ρR²).
    """

    name = "adaline"
    guarantee = "Σ e² ≤ ‖u‖²/ρ + Σ (y − u·x)²/(1 − ρR²) for ρR² < 1"
    paper = "Widrow and Hoff 1960"
    formula = "adaline"
    rho: float = number(0.01, above=0)
    schedule: str | schedules.Schedule | None = None

    def validate(self) -> None:
        self._schedule()

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(gradient=True)

    def rate(self, s: Scalars) -> float:
        return s.importance * self._schedule()(s.t)

    def native(self) -> Mapping[str, float | str]:
        return self._schedule().native()

    def _schedule(self) -> schedules.Schedule:
        return schedules.Constant(self.rho) if self.schedule is None else schedules.make(self.schedule)


@dataclasses.dataclass(repr=False)
class NormalizedLMS(LeastSquares):
    """w ← w + μ c e x/(ε + c‖x‖²): for μ = 1 the minimiser of c·½e² + (ε/2)‖w − w_t‖², c the importance.

    importance_mode="scale_step" multiplies the step of c = 1 by the importance instead.

    For ε = 0, 0 < μ < 1: Σ e²/‖x‖² ≤ ‖u‖²/μ + Σ (y − u·x)²/‖x‖²/(1 − μ).
    """

    name = "nlms"
    guarantee = "Σ e²/‖x‖² ≤ ‖u‖²/μ + Σ (y − u·x)²/‖x‖²/(1 − μ) for 0 < μ < 1"
    paper = "Nagumo and Noda 1967"
    formula = "nlms"
    mu: float = number(1.0, above=0, below=2)
    eps: float = number(1e-8, at_least=0)
    importance_mode: str = choice("loss", "loss", "scale_step", kw_only=True)

    def rate(self, s: Scalars) -> float:
        c = 1.0 if self.importance_mode == "scale_step" else s.importance
        return self.mu * s.importance / (self.eps + c * s.xx)

    def native(self) -> Mapping[str, float | str]:
        return {"mu": self.mu, "eps": self.eps, "scale_step": self.importance_mode == "scale_step"}
