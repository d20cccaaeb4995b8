"""ALMA, the approximate large margin algorithm for p = 2 (Gentile 2001)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ..core import Rule, Scalars, Step
from ..parameters import flag, number

__all__ = ["ALMA"]


@dataclasses.dataclass(repr=False)
class ALMA(Rule):
    """With k corrections so far, γ = B/√(k+1), η = C/√(k+1): if m/‖φ‖ ≤ (1 − α)γ, w ← w + ηφ/‖φ‖, then into ‖w‖ ≤ 1.

    Corrections ≤ (2/γ*²)(2/α − 1)² + 8/α − 4, γ* the best margin of a unit vector; after a pass without any, every
    margin is at least (1 − α)γ*. B=1/alpha, normalize=False, strict=True is the form of LIBOL and River.
    """

    name = "alma"
    tasks = ("binary", "multiclass", "multilabel", "ranking")
    code = 11
    mistake_driven = True
    alpha: float = number(0.9, above=0, at_most=1)
    B: float | None = number(None, above=0)  # √8/α unless given
    C: float = number(math.sqrt(2.0), above=0)
    normalize: bool = flag(True)
    strict: bool = flag(False)

    def step(self, s: Scalars) -> Step:
        length = math.sqrt(s.xx) if self.normalize else 1.0
        threshold = (1.0 - self.alpha) * self._B() / math.sqrt(s.k + 1.0)
        margin = s.m / length
        if margin > threshold or (self.strict and margin == threshold):
            return Step()
        add = self.C / math.sqrt(s.k + 1.0) / length
        inside = 1.0 / max(1.0, math.sqrt(s.ww + 2.0 * add * s.m + add * add * s.xx))
        return Step(scale=inside, add=inside * add)

    def never_starts(self) -> bool:
        return self.strict and self.alpha == 1

    def uses_ww(self) -> bool:
        return True

    def native(self) -> Sequence[float]:
        return [self.alpha, self._B(), self.C, float(self.normalize), float(self.strict)]

    def _B(self) -> float:  # noqa: N802 (the paper's letter)
        return math.sqrt(8.0) / self.alpha if self.B is None else self.B
