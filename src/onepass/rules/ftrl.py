"""FTRL-Proximal: sparse weights from per-coordinate steps."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..scheme.parameters import number
from ..scheme.rounds import Array, Scalars
from ..scheme.traits import Plane, RuleTraits
from .coordinate import CoordinateRule

__all__ = ["FTRL"]


@dataclasses.dataclass(repr=False)
class FTRL(CoordinateRule):
    """Follow the proximally regularised leader (McMahan et al. 2013), per weight:

    σ = (√(n + g²) − √n)/α; z ← z + g − σw; n ← n + g²;
    w = 0 if |z| ≤ λ₁, else −(z − sign(z)λ₁)/((β + √n)/α + λ₂).

    So w minimises Σ g·w + ½Σ σ(w − w_s)² + λ₁‖w‖₁ + ½(λ₂ + β/α)‖w‖². β = λ₁ = λ₂ = 0 is AdaGrad with δ = 0, η = α. The
    penalties do not apply to the intercept. w is computed from z and n; files hold these two, for the features that
    occurred.

    Without λ₁, z = −w((β + √n)/α + λ₂) in every round, and the two lines above reduce to w ← w − g/((β + √n)/α + λ₂):
    then w and n are stored, and no z.
    """

    name = "ftrl"
    guarantee = "regret as adagrad's, the penalties included"
    paper = "McMahan, Holt, Sculley et al. 2013"
    alpha: float = number(0.1, above=0)
    beta: float = number(1.0, at_least=0)
    lam1: float = number(0.0, at_least=0)
    lam2: float = number(0.0, at_least=0)

    @property
    def traits(self) -> RuleTraits:
        base = super().traits
        if not self.lam1:
            return base.replace(planes=(Plane("n"),), coordinates="ftrl_without_l1")
        planes = (Plane("z", odd=True, dead=self.lam1), Plane("n"))
        return base.replace(planes=planes, coordinates="ftrl", weights_from_planes=True)

    def move(self, w: Array, g: Array, planes: dict[str, Array], spared: Any, s: Scalars) -> Array:
        n = planes["n"] + g * g
        lam1, lam2 = np.where(spared, 0.0, self.lam1), np.where(spared, 0.0, self.lam2)
        curvature = (self.beta + np.sqrt(n)) / self.alpha + lam2
        if not self.lam1:
            planes["n"] = n
            return np.asarray(w - np.divide(g, curvature, out=np.zeros_like(g), where=curvature > 0))
        sigma = (np.sqrt(n) - np.sqrt(planes["n"])) / self.alpha
        z = planes["z"] + g - sigma * w
        planes["z"], planes["n"] = z, n
        free = (np.abs(z) > lam1) & (curvature > 0)
        return np.asarray(np.divide(-(z - np.sign(z) * lam1), curvature, out=np.zeros_like(z), where=free))
