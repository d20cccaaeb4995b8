"""Passive-Aggressive (Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006).

Each round changes w as little as possible so that the loss ℓ = max(0, target − m) of the new example becomes 0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from ..errors import ParameterError
from ..scheme.parameters import choice, number
from ..scheme.rounds import Array, Rule, Scalars, Step
from ..scheme.traits import DIRECTIONS, RuleTraits
from .mira import project_to_simplex

__all__ = ["PA", "PA1", "PA2"]


@dataclasses.dataclass(repr=False)
class PassiveAggressive(Rule):
    """Base of the three variants: w ← w + τ φ if ℓ > 0.

    `epsilon` is the insensitive tube of regression. update_on="mistake" makes no update after right answers with a
    small margin; the bounds do not hold then. importance_mode="scale_step" multiplies τ by the importance, as
    scikit-learn does; the default lets it multiply the loss term of the problem.
    """

    tasks: ClassVar[Sequence[str]] = (
        "binary",
        "multiclass",
        "multilabel",
        "oneclass",
        "regression",
        "ranking",
        "structured",
    )

    epsilon: float = number(0.1, at_least=0, kw_only=True)
    update_on: str = choice("loss", "loss", "mistake", kw_only=True)
    importance_mode: str = choice("loss", "loss", "scale_step", kw_only=True)

    @property
    def traits(self) -> RuleTraits:
        # These tasks have no right or wrong answers, so "mistake" has no meaning for them.
        neither = ("regression", "oneclass") if self.update_on == "mistake" else ()
        base = super().traits
        return base.replace(
            tasks=tuple(task for task in base.tasks if task not in neither),
            multiclass=(*DIRECTIONS, "all"),
            solves=("all",),
            additive=True,
            epsilon=self.epsilon,
        )

    def tau(self, loss: float, xx: float, c: float) -> float:
        raise NotImplementedError

    def step(self, s: Scalars) -> Step:
        loss = self.suffer(s)
        if loss == 0 or (self.update_on == "mistake" and s.m > 0):
            return Step()
        if self.importance_mode == "scale_step":
            return Step(add=s.importance * self.tau(loss, s.xx, 1.0))
        return Step(add=self.tau(loss, s.xx, s.importance))

    def slack(self, xx: float, c: float) -> float:
        """κ of the all-constraints problem: the weight with which the sum of all multipliers lowers each of them."""
        return 1.0

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        """multiclass="all": satisfies every s_y − s_r ≥ 1 at once; exact, in O(K log K)."""
        plain = self.importance_mode == "scale_step"
        c = 1.0 if plain else s.importance
        if self.update_on == "mistake" and s.m > 0:
            return np.zeros_like(scores), Step()
        others = np.arange(len(scores)) != y
        q = (1.0 - scores[y] + scores[others]) / s.xx
        kappa, total, used = self.slack(s.xx, c), 0.0, 0.0
        for j, value in enumerate(np.sort(q)[::-1], start=1):
            if value - kappa * total <= 0:
                break
            used += value
            total = used / (1.0 + j * kappa)
        tau = np.maximum(0.0, q - kappa * total)
        if total > self.cap(c):
            tau = project_to_simplex(q, self.cap(c))
        coefficients = np.empty_like(scores)
        coefficients[others] = -tau
        coefficients[y] = np.sum(tau)
        return (s.importance if plain else 1.0) * coefficients, Step(add=1.0)

    def suffer_all(self, scores: Array, y: int) -> float:
        return max(0.0, 1.0 - float(scores[y] - np.max(np.delete(scores, y))))

    def cap(self, c: float) -> float:
        """The most that the multipliers may add up to."""
        return math.inf

    def aggressiveness(self) -> float:
        return math.inf

    def native(self) -> Mapping[str, float | str]:
        return {
            "C": self.aggressiveness(),
            "on_mistake": self.update_on == "mistake",
            "scale_step": self.importance_mode == "scale_step",
        }


@dataclasses.dataclass(repr=False)
class PA(PassiveAggressive):
    """min ½‖w − w_t‖² s.t. ℓ = 0:  τ = ℓ/‖φ‖². Importance has no effect on a hard constraint.

    If some u has no loss: Σ ℓ² ≤ R²‖u‖².
    """

    name = "pa"
    guarantee = "Σ ℓ² ≤ R²‖u‖² where some u has no loss"
    paper = "Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006"
    formula = "pa"

    def tau(self, loss: float, xx: float, c: float) -> float:
        return loss / xx


@dataclasses.dataclass(repr=False)
class SoftPassiveAggressive(PassiveAggressive):
    """The variants with aggressiveness C (1 unless `lam` is given instead)."""

    C: float | None = number(None, above=0, infinite=True)
    lam: float | None = number(None, at_least=0)

    def validate(self) -> None:
        if self.C is not None and self.lam is not None:
            raise ParameterError(f"{type(self).__name__}: give C or lam, not both (C={self.C!r}, lam={self.lam!r})")


@dataclasses.dataclass(repr=False)
class PA1(SoftPassiveAggressive):
    """min ½‖w − w_t‖² + C ℓ:  τ = min(C, ℓ/‖φ‖²). With importance c the cap is cC; λ = 1/C.

    Mistakes ≤ max(R², 1/C)(‖u‖² + 2C Σ ℓ*) for any u with losses ℓ*.
    """

    name = "pa1"
    guarantee = "mistakes ≤ max(R², 1/C)(‖u‖² + 2C Σ ℓ*) for any u"
    paper = "Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006"
    formula = "pa1"

    def tau(self, loss: float, xx: float, c: float) -> float:
        return min(c * self.aggressiveness(), loss / xx)

    def cap(self, c: float) -> float:
        return c * self.aggressiveness()

    def aggressiveness(self) -> float:
        if self.lam is not None:
            return math.inf if self.lam == 0 else 1.0 / self.lam
        return 1.0 if self.C is None else self.C


@dataclasses.dataclass(repr=False)
class PA2(SoftPassiveAggressive):
    """min ½‖w − w_t‖² + C ℓ²:  τ = ℓ/(‖φ‖² + 1/(2C)). With importance c, 1/(2cC); λ = 1/(2C).

    Σ ℓ² ≤ (R² + 1/(2C))(‖u‖² + 2C Σ ℓ*²) for any u with losses ℓ*.
    """

    name = "pa2"
    guarantee = "Σ ℓ² ≤ (R² + 1/(2C))(‖u‖² + 2C Σ ℓ*²) for any u"
    paper = "Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006"
    formula = "pa2"

    def tau(self, loss: float, xx: float, c: float) -> float:
        return loss / (xx + 1.0 / (2.0 * c * self.aggressiveness()))

    def slack(self, xx: float, c: float) -> float:
        return 1.0 + 1.0 / (2.0 * c * self.aggressiveness() * xx)

    def aggressiveness(self) -> float:
        if self.lam is not None:
            return math.inf if self.lam == 0 else 1.0 / (2.0 * self.lam)
        return 1.0 if self.C is None else self.C
