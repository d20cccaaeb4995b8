"""The Shifting Perceptron (Cavallanti, Cesa-Bianchi and Gentile 2007)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..errors import ParameterError
from ..scheme.parameters import choice, number
from ..scheme.rounds import Rule, Scalars, Step
from ..scheme.traits import RuleTraits

__all__ = ["Shifting"]


@dataclasses.dataclass(repr=False)
class Shifting(Rule):
    """On a mistake (m ≤ 0), with k mistakes so far: w ← (1 − λ_k) w + φ.

    decay="harmonic": λ_k = λ/(λ + k), old mistakes fade as a power of their age; decay="constant": λ_k = λ < 1, they
    fade exponentially and ‖w‖ ≤ R/√(λ(2 − λ)). λ = 0 is the Perceptron. lam is 0.1 (harmonic) or 0.01 (constant)
    unless given.
    """

    name = "shifting"
    guarantee = "mistakes bounded by a comparator that moves, and by how far it does"
    paper = "Cavallanti, Cesa-Bianchi and Gentile 2007"
    tasks = ("binary", "multiclass", "multilabel", "ranking")
    lam: float | None = number(None, at_least=0)
    decay: str = choice("harmonic", "harmonic", "constant")

    def validate(self) -> None:
        if self.decay == "constant" and self._lam() >= 1:
            raise ParameterError(f"Shifting(lam={self.lam!r}, decay='constant'): expected lam < 1")

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(mistake_driven=True)

    def step(self, s: Scalars) -> Step:
        if s.m > 0:
            return Step()
        lam = self._lam()
        if self.decay == "harmonic":
            lam = lam / (lam + s.k) if lam > 0 else 0.0
        return Step(scale=1.0 - lam, add=1.0)

    def suffer(self, s: Scalars) -> float:
        return max(0.0, -s.m)

    def native(self) -> Mapping[str, float | str]:
        return {"lam": self._lam(), "constant": self.decay == "constant"}

    def _lam(self) -> float:
        return (0.1 if self.decay == "harmonic" else 0.01) if self.lam is None else self.lam
