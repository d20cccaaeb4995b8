"""Mirror descent away from Euclid: exponentiated gradient (Kivinen and Warmuth 1997) and p-norms (Grove et al.
2001).
"""

from __future__ import annotations

import math

import numpy as np

from ...errors import ParameterError
from ..sets import Array, DecisionSet, L1Ball, Reals
from .base import Player, positive
from .descent import OGD, largest_square_sums
from .leaders import EntropicFTRL, softmax

__all__ = ["EG", "EGPlusMinus", "MirrorDescent", "PNorm"]

# w_{t+1} = argmin_{w ∈ S} η⟨z_t, w⟩ + B_ψ(w, w_t); with ψ = ½‖·‖² that is OGD, so it has no class of its own.
MirrorDescent = OGD


class EG(EntropicFTRL):
    """ψ = Σ w ln w on the simplex: w_j ← w_j e^{−ηz_j}/Z, exponentiated gradient, which is Hedge.

    Stored as log-weights, so that no weight underflows. R_T(u) ≤ r KL(u/r ‖ uniform)/η + (η/2) r Σ‖z_t‖²_∞;
    η = √(2 ln d/T)/G_∞ gives r G_∞ √(2T ln d).
    """

    name = "eg"


class EGPlusMinus(Player):
    """EG on the L1 ball of radius r: 2d weights p⁺, p⁻ on the simplex, w = r(p⁺ − p⁻), gradient (rz, −rz).

    R_T ≤ ln(2d)/η + (η/2) r² Σ‖z_t‖²_∞.
    """

    name = "eg_pm"

    def __init__(self, d: int, set: DecisionSet | None = None, eta: float = 0.1) -> None:
        super().__init__(d, L1Ball() if set is None else set)
        if not isinstance(self.set, L1Ball):
            raise ParameterError(f"{type(self).__name__} plays on an L1 ball, not on {self.set!r}")
        self.eta = positive(type(self).__name__, "eta", eta)
        self.theta = np.zeros(self.d)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d}, {self.set!r}, eta={self.eta:g})"

    def _move(self, z: Array) -> None:
        r: float = self.set.r  # type: ignore[attr-defined]
        self.theta = self.theta + z
        p = softmax(self.eta * r * np.concatenate([-self.theta, self.theta]))
        self.w = r * (p[: self.d] - p[self.d :])

    def bounds(self, u: Array, Z: Array) -> Array | None:
        r: float = self.set.r  # type: ignore[attr-defined]
        return np.asarray(math.log(2 * self.d) / self.eta + 0.5 * self.eta * r**2 * largest_square_sums(Z, np.inf))

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        return {"ln 2d": math.log(2 * self.d), "G∞": float(np.max(np.abs(Z))), "r": self.set.r}  # type: ignore[attr-defined]


class PNorm(Player):
    """ψ = ½‖w‖_p², 1 < p ≤ 2: θ ← θ − ηz, w = ∇ψ*(θ) with the dual exponent q = p/(p − 1).

    w_j = sign(θ_j)|θ_j|^{q−1}/‖θ‖_q^{q−2}. With `radius`, on the ball ‖w‖_p ≤ r, onto which ψ projects by scaling.
    ψ is (p − 1)-strongly convex in ‖·‖_p: R_T(u) ≤ ‖u‖_p²/(2η) + η/(2(p − 1)) Σ‖z_t‖_q². p = 2 is `OGD`;
    p = 2 ln d/(2 ln d − 1) grows with ln d only.
    """

    name = "p_norm"

    def __init__(self, d: int, p: float = 1.5, eta: float = 0.1, radius: float | None = None) -> None:
        super().__init__(d, Reals())
        if not 1 < p <= 2:
            raise ParameterError(f"PNorm(p={p!r}): expected a number > 1 and <= 2")
        self.p, self.q = float(p), float(p / (p - 1.0))
        self.eta = positive("PNorm", "eta", eta)
        self.radius = None if radius is None else positive("PNorm", "radius", radius)
        self.theta = np.zeros(self.d)

    def __repr__(self) -> str:
        within = "" if self.radius is None else f", radius={self.radius:g}"
        return f"PNorm({self.d}, p={self.p:g}, eta={self.eta:g}{within})"

    def _move(self, z: Array) -> None:
        theta = self.theta - self.eta * z
        size = float(np.linalg.norm(theta, ord=self.q))
        if self.radius is not None and size > self.radius:  # ‖w‖_p = ‖θ‖_q: scaling w scales θ by the same factor
            theta, size = theta * (self.radius / size), self.radius
        self.theta = theta
        scaled = theta / size if size > 0 else theta
        self.w = size * np.sign(scaled) * np.abs(scaled) ** (self.q - 1.0)

    def bounds(self, u: Array, Z: Array) -> Array | None:
        start = float(np.linalg.norm(u, ord=self.p)) ** 2 / (2.0 * self.eta)
        return np.asarray(start + self.eta / (2.0 * (self.p - 1.0)) * largest_square_sums(Z, self.q))

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        return {
            "‖u‖_p": float(np.linalg.norm(u, ord=self.p)),
            "G_q": float(np.max(np.linalg.norm(Z, ord=self.q, axis=1))),
        }
