"""ALMA_p, the approximate large margin algorithm (Gentile 2001)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from ..scheme.parameters import flag, number
from ..scheme.rounds import Rule, Scalars, Step
from ..scheme.traits import RuleTraits

__all__ = ["ALMA"]


@dataclasses.dataclass(repr=False)
class ALMA(Rule):
    """With k corrections so far, γ = B√(p−1)/√(k+1), η = C/(√(p−1)√(k+1)), if m/‖φ‖_p ≤ (1 − α)γ:
    θ ← θ + ηφ/‖φ‖_p, then into ‖θ‖_p ≤ 1.

    θ is w itself for p = 2; otherwise w_j = sign(θ_j)|θ_j|^(p−1)/‖θ‖_p^(p−2) (`geometry.py`), computed only where x is
    not zero, and ‖θ‖_p is updated, so that a round costs O(nnz) powers instead of the paper's O(d). p ≈ 2 ln d suits a
    sparse target: the rule then behaves like a multiplicative one. p is at most 64, because above that only the largest
    θ_j would have a weight.

    Corrections ≤ (2(p−1)/γ*²)(2/α − 1)² + 8/α − 4, γ* the best margin of a u with ‖u‖_q = 1, inputs ‖x‖_p = 1; after a
    pass without any, every margin is at least (1 − α)γ*. B=1/alpha, normalize=False, strict=True is the form of LIBOL
    and River.
    """

    name = "alma"
    guarantee = "corrections ≤ (2/γ*²)(2/α − 1)² + 8/α − 4"
    paper = "Gentile 2001"
    tasks = ("binary", "multiclass", "multilabel", "ranking")
    alpha: float = number(0.9, above=0, at_most=1)
    B: float | None = number(None, above=0)  # √8/α unless given
    C: float = number(math.sqrt(2.0), above=0)
    normalize: bool = flag(True)
    strict: bool = flag(False)
    p: float = number(2.0, at_least=2, at_most=64)

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(
            mistake_driven=True,
            stays_at_zero=self.strict and self.alpha == 1,
            uses_ww=True,
            geometry=self.p,
            ball=math.inf if self.p == 2 else 1.0,
        )

    def step(self, s: Scalars) -> Step:
        length = math.sqrt(s.xx) if self.normalize else 1.0
        threshold = (1.0 - self.alpha) * self._gamma() / math.sqrt(s.k + 1.0)
        margin = s.m / length
        if margin > threshold or (self.strict and margin == threshold):
            return Step()
        add = self._eta() / math.sqrt(s.k + 1.0) / length
        if self.p != 2:
            return Step(add=add)  # the length of θ cannot be computed from scalars: see the trait `ball`
        inside = 1.0 / max(1.0, math.sqrt(s.ww + 2.0 * add * s.inner + add * add * s.xx))
        return Step(scale=inside, add=inside * add)

    def native(self) -> Mapping[str, float | str]:
        numbers = {"alpha": self.alpha, "gamma": self._gamma(), "eta": self._eta()}
        return {**numbers, "normalize": self.normalize, "strict": self.strict, "linked": self.p != 2}

    def _gamma(self) -> float:
        return (math.sqrt(8.0) / self.alpha if self.B is None else self.B) * math.sqrt(self.p - 1.0)

    def _eta(self) -> float:
        return self.C / math.sqrt(self.p - 1.0)
