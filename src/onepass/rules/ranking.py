"""Rules for ranking pairs: PAMIR (Grangier and Bengio 2008) and MROC (sigmoid-smoothed AUC)."""

from __future__ import annotations

import dataclasses
import math

from ..scheme.parameters import number
from ..scheme.rounds import Rule, Scalars, Step
from ..scheme.traits import RuleTraits
from .passive_aggressive import PA1

__all__ = ["MROC", "PAMIR"]


@dataclasses.dataclass(repr=False)
class PAMIR(PA1):
    """PA-I on the difference of a relevant and an irrelevant example: Γ = min(C, max(0, 1 − w·z)/‖z‖²), w ← w + Γz."""

    name = "pamir"
    guarantee = "as pa1, of pairs"
    paper = "Grangier and Bengio 2008"
    tasks = ("ranking",)


@dataclasses.dataclass(repr=False)
class MROC(Rule):
    """Ascent on the smoothed AUC, S = σ(β w·z): w ← w + μ c g z, g = βS(1 − S); g below `min_slope` is skipped."""

    name = "mroc"
    guarantee = "none: the smoothed AUC is not convex"
    paper = "sigmoid AUC: Herschtal and Raskutti 2004"
    tasks = ("ranking",)
    beta: float = number(10.0, above=0)
    mu: float = number(0.1, above=0)
    min_slope: float = number(0.0, at_least=0)

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(additive=True)

    def step(self, s: Scalars) -> Step:
        e = math.exp(-abs(self.beta * s.m))
        slope = self.beta * e / ((1.0 + e) * (1.0 + e))
        return Step(add=s.importance * self.mu * slope) if slope >= self.min_slope else Step()

    def suffer(self, s: Scalars) -> float:
        e = math.exp(-abs(self.beta * s.m))
        return e / (1.0 + e) if s.m >= 0 else 1.0 / (1.0 + e)
