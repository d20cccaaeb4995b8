"""ROMMA, the relaxed online maximum margin algorithm (Li and Long 2002)."""

from __future__ import annotations

import dataclasses

from ..scheme.rounds import Rule, Scalars, Step
from ..scheme.traits import RuleTraits

__all__ = ["ROMMA", "AggressiveROMMA"]

DEGENERATE = 1e-12  # sin² of the angle between w and φ below which the two constraints count as parallel


@dataclasses.dataclass(repr=False)
class ROMMA(Rule):
    """On a mistake (m ≤ 0): the smallest w with ⟨w, φ⟩ ≥ target and ⟨w, w_t⟩ ≥ ‖w_t‖²: w ← c w + d φ.

    c = (‖φ‖²‖w‖² − target·m)/D, d = ‖w‖²(target − m)/D, D = ‖φ‖²‖w‖² − m²; from w = 0, w ← target·φ/‖φ‖².
    Mistakes ≤ R²‖u‖² if u separates with margin 1. On streams that are not separable ‖w‖ may grow without bound.
    """

    name = "romma"
    guarantee = "mistakes ≤ R²‖u‖² where u separates with margin 1"
    paper = "Li and Long 2002"
    tasks = ("binary", "multiclass", "multilabel", "ranking", "structured")

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(mistake_driven=True, uses_ww=True)

    def violated(self, s: Scalars) -> bool:
        return s.m <= 0

    def step(self, s: Scalars) -> Step:
        if not self.violated(s):
            return Step()
        both, inner, target = s.xx * s.ww, s.inner, s.target - s.base
        if both == 0 or target * inner >= both:  # there is no old constraint, or it holds anyway
            return Step(scale=0.0, add=target / s.xx)
        d = both - inner * inner
        if d <= DEGENERATE * both:  # φ points against w: the constraints contradict each other
            return Step()
        return Step(scale=(both - target * inner) / d, add=s.ww * (target - inner) / d)


@dataclasses.dataclass(repr=False)
class AggressiveROMMA(ROMMA):
    """ROMMA that also corrects narrow margins: m < target."""

    name = "aromma"
    guarantee = "as romma, counting its mistakes alone"
    paper = "Li and Long 2002"

    def violated(self, s: Scalars) -> bool:
        return s.m < s.target
