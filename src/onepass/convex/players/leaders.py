"""Follow the leader, and the leader stabilised by a regulariser (Shalev-Shwartz 2012, ch. 2)."""

from __future__ import annotations

import math

import numpy as np

from ...errors import InputError, ParameterError
from ...scheme.losses import Squared
from ..losses import Linear, Prediction, Quadratic, RoundLoss
from ..sets import Array, DecisionSet, L2Ball, Reals, Simplex
from ..steps import squares
from .base import Player, positive
from .descent import largest_square_sums

__all__ = ["FTL", "FTRL", "RDA", "DualAveraging", "EntropicFTRL"]


class FTL(Player):
    """w_t = argmin_{w ∈ S} Σ_{i<t} f_i(w), from w₁ ∈ S: follow the leader, for losses of one kind.

    ½‖w − z‖²: the projected mean; linear: `linear_argmin` (if Σz = 0 the point does not change); squared predictions on
    ℝᵈ: least squares of minimum norm. Quadratic losses with ‖z‖ ≤ L (and those points in S): regret ≤ 4L²(1 + ln T).
    With linear losses it may lose in every round, so there is no bound.
    """

    name = "ftl"
    matrices = 1
    linear = False

    def __init__(self, d: int, set: DecisionSet | None = None) -> None:
        super().__init__(d, set)
        self.kind: type[RoundLoss] | None = None
        self.total = np.zeros(self.d)
        self.gram = np.zeros((self.d, self.d))
        self.L = 0.0

    def learn(self, z: object) -> None:
        """Learn a subgradient z, as the linear loss ⟨z, ·⟩."""
        self.learn_loss(Linear(z))

    def learn_loss(self, f: RoundLoss) -> None:
        kind = type(f)
        known = kind in (Linear, Quadratic) or (isinstance(f, Prediction) and isinstance(f.loss, Squared))
        if not known:
            raise InputError(
                f"the leader of {f!r:.60} has no closed form here; expected linear, quadratic or squared losses"
            )
        if self.kind not in (None, kind):
            raise InputError(f"FTL follows losses of one kind: {self.kind.__name__} so far, now {kind.__name__}")
        if kind is Prediction and not isinstance(self.set, Reals):
            raise InputError(f"the leader of squared predictions is found on all of R^d only, not on {self.set!r}")
        vector = f.x if isinstance(f, Prediction) else f.z  # type: ignore[attr-defined]
        if len(vector) != self.d:
            raise InputError(f"the loss has {len(vector)} coordinates; expected {self.d}")
        self._attempt(lambda: self._follow(f, kind))

    def _follow(self, f: RoundLoss, kind: type[RoundLoss]) -> None:
        self.kind = kind
        if isinstance(f, Linear):
            self.total = self.total + np.asarray(f.z)
            if np.any(self.total):
                self.w = self.set.linear_argmin(self.total)
        elif isinstance(f, Quadratic):
            z = np.asarray(f.z)
            self.L = max(self.L, float(np.linalg.norm(z)))
            self.total = self.total + (z - self.total) / self.t  # the running mean
            self.w = self.set.project(self.total)
        else:
            assert isinstance(f, Prediction)
            x = np.asarray(f.x)
            self.gram = self.gram + f.importance * np.outer(x, x)
            self.total = self.total + f.importance * f.y * x
            self.w = np.asarray(np.linalg.lstsq(self.gram, self.total, rcond=None)[0], dtype=np.float64)

    def bounds(self, u: Array, Z: Array) -> Array | None:
        if self.kind is not Quadratic:
            return None
        return np.asarray(4.0 * self.L**2 * (1.0 + np.log(np.arange(1, len(Z) + 1))))

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        return {"L": self.L}


class FTRL(Player):
    """w_{t+1} = argmin_{w ∈ S} ⟨θ_t, w⟩ + ‖w − w₁‖²/(2η) = Π_S(w₁ − ηθ_t), θ_t = Σ z_i.

    Follow the regularised leader with the quadratic regulariser: lazy projection, Wikipedia's online subgradient
    descent (whose printed step lacks the minus sign). The state is θ, never the projected point: on a set it differs
    from `OGD`. R_T(u) ≤ ‖u − w₁‖²/(2η) + (η/2) Σ‖z_t‖².
    """

    name = "ftrl"

    def __init__(self, d: int, set: DecisionSet | None = None, eta: float = 0.1) -> None:
        super().__init__(d, set)
        self.eta = positive(type(self).__name__, "eta", eta)
        self.theta = np.zeros(self.d)
        self.w1 = self.w

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d}, {self.set!r}, eta={self.eta:g})"

    def _move(self, z: Array) -> None:
        self.theta = self.theta + z
        self.w = self.set.project(self._finite(self.w1 - self.eta * self.theta))

    def bounds(self, u: Array, Z: Array) -> Array | None:
        return np.asarray(np.sum((u - self.w1) ** 2) / (2.0 * self.eta) + 0.5 * self.eta * squares(Z))


class EntropicFTRL(Player):
    """On the simplex of sum r: argmin ⟨θ_t, w⟩ + (1/η) Σ w ln w, that is w_j ∝ e^{−ηθ_j}.

    The same points as entropic mirror descent, `EG`. R_T(u) ≤ r (ln d)/η + (η/2) r Σ‖z_t‖²_∞.
    """

    name = "entropic_ftrl"

    def __init__(self, d: int, set: DecisionSet | None = None, eta: float = 0.1) -> None:
        super().__init__(d, Simplex() if set is None else set)
        if not isinstance(self.set, Simplex):
            raise ParameterError(f"{type(self).__name__}: the entropy is defined on a simplex, not on {self.set!r}")
        self.eta = positive(type(self).__name__, "eta", eta)
        self.theta = np.zeros(self.d)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d}, {self.set!r}, eta={self.eta:g})"

    def _move(self, z: Array) -> None:
        self.theta = self.theta + z
        self.w = self.set.r * softmax(-self.eta * self.theta)  # type: ignore[attr-defined]

    def bounds(self, u: Array, Z: Array) -> Array | None:
        r: float = self.set.r  # type: ignore[attr-defined]
        p = u / r
        divergence = math.log(self.d) + float(np.sum(p[p > 0] * np.log(p[p > 0])))  # KL(u ‖ uniform)
        return np.asarray(r * divergence / self.eta + 0.5 * self.eta * r * largest_square_sums(Z, np.inf))

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        return {"ln d": math.log(self.d), "G∞": float(np.max(np.abs(Z)))}


def softmax(v: Array) -> Array:
    e = np.exp(v - np.max(v))
    return np.asarray(e / np.sum(e))


class DualAveraging(Player):
    """w_{t+1} = Π_S(−θ_t/(γ√t)): a step for every horizon (Nesterov 2009; Xiao 2010).

    On the ball of radius r: R_T ≤ (γr²/2 + G²/γ)√T; γ = √2·G/r gives √2·rG√T.
    """

    name = "dual_averaging"

    def __init__(self, d: int, set: DecisionSet | None = None, gamma: float = 1.0) -> None:
        super().__init__(d, set)
        self.gamma = positive(type(self).__name__, "gamma", gamma)
        self.theta = np.zeros(self.d)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d}, {self.set!r}, gamma={self.gamma:g})"

    def _move(self, z: Array) -> None:
        self.theta = self.theta + z
        self.w = self.set.project(self._finite(-self.theta / (self.gamma * math.sqrt(self.t))))

    def bounds(self, u: Array, Z: Array) -> Array | None:
        """For any u ∈ S of length r: the regulariser (γ√t/2)‖·‖² only grows, so the ball's bound holds with ‖u‖ for
        r.
        """
        if not self.set.contains(np.zeros(self.d)):
            return None
        t = np.arange(1, len(Z) + 1)
        G = np.maximum.accumulate(np.linalg.norm(Z, axis=1))
        r = self.set.r if isinstance(self.set, L2Ball) else float(np.linalg.norm(u))
        return np.asarray((0.5 * self.gamma * r**2 + G**2 / self.gamma) * np.sqrt(t))


class RDA(DualAveraging):
    """L1-regularised dual averaging (Xiao 2010) on ℝᵈ: argmin ⟨θ/t, w⟩ + λ‖w‖₁ + (γ/(2√t))‖w‖².

    w_j = 0 where |θ_j/t| ≤ λ. The bound is for the losses with λ‖w‖₁ added: R_T(u) ≤ (γ‖u‖²/2 + G²/γ)√T.
    """

    name = "rda"

    def __init__(self, d: int, gamma: float = 1.0, lam: float = 0.1) -> None:
        super().__init__(d, Reals(), gamma)
        if not 0 <= lam < math.inf:
            raise ParameterError(f"RDA(lam={lam!r}): expected a finite number >= 0")
        self.lam = float(lam)

    def _move(self, z: Array) -> None:
        self.theta = self.theta + z
        mean = self.theta / self.t
        away = np.sign(mean) * np.maximum(0.0, np.abs(mean) - self.lam)
        self.w = -math.sqrt(self.t) / self.gamma * away
