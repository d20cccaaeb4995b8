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
    """The target of each class's score: +1 for the class y, −1 for the others."""
    return np.where(np.arange(len(scores)) == y, 1.0, -1.0)


@dataclasses.dataclass(repr=False)
class LeastSquares(Rule):
    """Rules whose step is proportional to the residual e = target − m.

    With K classes every class has weights and a score of its own. The target of the true class's score is 1, that of
    the other scores is −1, and the weights of each class take a step for its own residual.
    """

    tasks = ("binary", "multiclass", "regression")

    def rate(self, s: Scalars) -> float:
        """The factor of e x in the update."""
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
    """Least mean squares: w ← w + ρ e x, where e = y − w·x is the residual before the update.

    If 0 < ρ‖x‖² < 2, the update makes the residual of its example smaller. With a `schedule`, its rate ρ_t replaces ρ.

    Let R be the largest ‖x‖, and ρR² < 1. Then, for all weights u: Σ e² ≤ ‖u‖²/ρ + Σ (y − u·x)²/(1 − ρR²).
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
    """Normalised least mean squares: w ← w + μ c e x/(ε + c‖x‖²).

    e = y − w_t·x is the residual of the weights w_t before the update, and c is the importance. For μ = 1 the update
    gives the weights w that minimise (c/2)(y − w·x)² + (ε/2)‖w − w_t‖².

    With importance_mode="scale_step" the step is computed for c = 1, and then multiplied by the importance.

    For ε = 0, 0 < μ < 1 and all weights u: Σ e²/‖x‖² ≤ ‖u‖²/μ + (1/(1 − μ)) Σ (y − u·x)²/‖x‖².
    """

    name = "nlms"
    guarantee = "Σ e²/‖x‖² ≤ ‖u‖²/μ + (1/(1 − μ)) Σ (y − u·x)²/‖x‖² for 0 < μ < 1"
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
