"""Players whose metric is learned: AdaGrad, the online Newton step; and one without a step size, coin betting."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError, ParameterError
from ..sets import Array, DecisionSet, Reals, norm, point
from .base import Player, positive

__all__ = ["ONS", "AdaGrad", "CoinBetting"]


class AdaGrad(Player):
    """G_j ← G_j + z_j²; w ← Π_S^H(w − η z/H) with H_j = δ + √G_j, projected in the metric H (Duchi, Hazan, Singer
    2011).

    R_T ≤ (D²/(2η) + η) Σ_j √(Σ_t z_tj²) + δ d D²/(2η), D = sup ‖u − w‖_∞ over S; the best η is D/√2, the default on a
    bounded set. 0/0 is 0: a coordinate without gradient stays.
    """

    name = "adagrad"

    def __init__(self, d: int, set: DecisionSet | None = None, eta: float | None = None, delta: float = 0.0) -> None:
        super().__init__(d, set)
        if eta is None:
            eta = 0.1 if math.isinf(self.set.width()) else self.set.width() / math.sqrt(2.0)
        self.eta = positive("AdaGrad", "eta", eta)
        if not 0 <= delta < math.inf:
            raise ParameterError(f"AdaGrad(delta={delta!r}): expected a finite number >= 0")
        self.delta = float(delta)
        self.squares = np.zeros(self.d)

    def __repr__(self) -> str:
        return f"AdaGrad({self.d}, {self.set!r}, eta={self.eta:g})"

    def _move(self, z: Array) -> None:
        self.squares = self.squares + z * z
        H = self.delta + np.sqrt(self.squares)
        step = np.divide(z, H, out=np.zeros_like(z), where=H > 0)
        if not np.any(z):
            return
        # The metric of a coordinate without gradients so far is almost 0, so any move of it costs nothing.
        self.w = self.set.project_diagonal(
            self._finite(self.w - self.eta * step), np.where(H > 0, H, np.max(H) * 1e-12)
        )

    def bounds(self, u: Array, Z: Array) -> Array | None:
        D = self.set.width()
        if math.isinf(D):
            return None
        sums = np.sum(np.sqrt(np.cumsum(Z * Z, axis=0)), axis=1)
        return np.asarray((D**2 / (2.0 * self.eta) + self.eta) * sums + self.delta * self.d * D**2 / (2.0 * self.eta))

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        return {"D∞": self.set.width(), "Σ‖z_j‖": float(np.sum(np.sqrt(np.sum(Z * Z, axis=0))))}


class ONS(Player):
    """A ← A + zzᵀ; w ← Π_S^A(w − A⁻¹z/γ), from A = εI: the online Newton step (Hazan, Agarwal, Kale 2007).

    For α-exp-concave losses with ‖z‖ ≤ G on a set of diameter D: γ = ½ min(1/(4GD), α), ε = 1/(γ²D²), and then
    R_T ≤ (1/(2γ)) ln det(A_T/ε) + γεD²/2, of order (1/α + GD) d ln T. `gamma` and `eps`, or G and alpha, are given; D
    is the set's unless given. A⁻¹ is updated by the Sherman–Morrison formula.
    """

    name = "ons"
    matrices = 2

    def __init__(
        self,
        d: int,
        set: DecisionSet | None = None,
        *,
        gamma: float | None = None,
        eps: float | None = None,
        G: float | None = None,
        alpha: float | None = None,
        D: float | None = None,
    ) -> None:
        super().__init__(d, set)
        self.D = self.set.diameter(self.d) if D is None else positive("ONS", "D", D)
        if gamma is None:
            if G is None or alpha is None or math.isinf(self.D):
                raise ParameterError("ONS: give gamma and eps, or G and alpha on a set with a diameter (or D)")
            gamma = 0.5 * min(1.0 / (4.0 * positive("ONS", "G", G) * self.D), positive("ONS", "alpha", alpha))
        self.gamma = positive("ONS", "gamma", gamma)
        if eps is None:
            if math.isinf(self.D):
                raise ParameterError("ONS: give eps, or a set with a diameter (or D)")
            eps = 1.0 / (self.gamma * self.D) ** 2
        self.eps = positive("ONS", "eps", eps)
        self.A = self.eps * np.eye(self.d)
        self.inverse = np.eye(self.d) / self.eps

    def __repr__(self) -> str:
        return f"ONS({self.d}, {self.set!r}, gamma={self.gamma:g}, eps={self.eps:g})"

    def _move(self, z: Array) -> None:
        if not np.any(z):
            return
        h = self.inverse @ z
        inverse = self.inverse - np.outer(h, h) / (1.0 + float(z @ h))
        self.A, self.inverse = self.A + np.outer(z, z), 0.5 * (inverse + inverse.T)
        moved = self._finite(self.w - self.inverse @ z / self.gamma)
        self.w = moved if isinstance(self.set, Reals) else self.set.project_metric(moved, self.A)

    def bounds(self, u: Array, Z: Array) -> Array | None:
        if math.isinf(self.D):
            return None
        inverse, grown, logs = np.eye(self.d) / self.eps, 0.0, np.empty(len(Z))
        for t, z in enumerate(Z):
            h = inverse @ z
            inverse = inverse - np.outer(h, h) / (1.0 + float(z @ h))
            grown += math.log1p(float(z @ h))
            logs[t] = grown
        return np.asarray(logs / (2.0 * self.gamma) + 0.5 * self.gamma * self.eps * self.D**2)

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        return {**super().constants(u, Z), "D": self.D, "γ": self.gamma}


class CoinBetting(Player):
    """w_t = (S/t)·V: bets a share S/t of the wealth V, no step size (Krichevsky and Trofimov; Orabona and Pál 2016).

    After z: V ← V − ⟨z, w⟩, S ← S − z. Gradients are divided by `scale`, and must then have ‖z‖ ≤ 1; a larger one is
    refused, or with `clip` shortened. R_T(u) ≤ scale·(‖u‖√(T ln(1 + 24T²‖u‖²/ε²)) + ε) for every u ∈ ℝᵈ at once.
    """

    name = "coin_betting"

    def __init__(self, d: int, eps: float = 1.0, scale: float = 1.0, clip: bool = False) -> None:
        super().__init__(d, Reals())
        self.eps, self.scale = positive("CoinBetting", "eps", eps), positive("CoinBetting", "scale", scale)
        self.clip = bool(clip)
        self.wealth, self.S = self.eps, np.zeros(self.d)

    def __repr__(self) -> str:
        return f"CoinBetting({self.d}, eps={self.eps:g}, scale={self.scale:g})"

    def learn(self, z: ArrayLike) -> None:
        z = point(z, "z")
        size = norm(z) / self.scale
        if size > 1.0 + 1e-12 and not self.clip:
            raise InputError(
                f"‖z‖ = {size * self.scale:g}: expected at most scale = {self.scale:g}; raise it, or clip=True"
            )
        super().learn(z)

    def _move(self, z: Array) -> None:
        z = z / self.scale
        z = z / max(1.0, norm(z))
        self.wealth = self.wealth - float(z @ self.w)
        self.S = self.S - z
        self.w = self.S / (self.t + 1) * self.wealth

    def bounds(self, u: Array, Z: Array) -> Array | None:
        if self.clip and np.max(np.linalg.norm(Z, axis=1)) > self.scale * (1.0 + 1e-12):
            return None
        t, size = np.arange(1, len(Z) + 1), float(np.linalg.norm(u))
        return np.asarray(self.scale * (size * np.sqrt(t * np.log1p(24.0 * t**2 * size**2 / self.eps**2)) + self.eps))
