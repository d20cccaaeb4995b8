"""Randomised Weighted Majority, which is Hedge (Littlestone and Warmuth 1994; Freund and Schapire 1997), and related
algorithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ParameterError
from .base import Array, Experts, log_count, softmax

__all__ = ["AdaHedge", "FixedShare", "FollowPerturbedLeader", "Hedge"]

ROOT2 = math.sqrt(2.0)


class _Mixing(Experts):
    """Base of algorithms whose weights do not depend on the current round."""

    def predict(self, advice: ArrayLike) -> float:
        """Σ w_m y_m: the probability of predicting 1 where the advice is 0 or 1."""
        return float(self.weights @ self._numbers(advice, "advice", 0.0, 1.0))

    def sample(self, advice: ArrayLike) -> int:
        """1 with probability `predict(advice)`: drawn by `seed` and the round, so that it can be called twice."""
        u = np.random.default_rng([getattr(self, "seed", 0), self.t]).random()
        return int(u < self.predict(advice))

    def _reveal(self, advice: ArrayLike, outcome: Any) -> None:
        predicted = self._numbers(advice, "advice", 0.0, 1.0)
        answer = float(self._numbers(np.full(self.M, outcome), "outcome", 0.0, 1.0)[0])
        self._update(np.abs(predicted - answer))


class Hedge(_Mixing):
    """w_m ∝ π_m e^{−ηL_m}, L_m the losses of expert m so far, each in [0, 1].

    eta: a number; "horizon", √(8 ln M/N) for `horizon`=N rounds; "anytime", √(8 ln M/n) in round n; "doubling", the
    horizon 1, 2, 4, …, with a restart each time. The default is horizon where that is given, else anytime.

    Regret (expected loss beyond the best expert's L*): any η: ≤ ln M/η + ηN/8, and ≤ (ηL* + ln M)/(1 − e^{−η}) − L*;
    horizon: √(N ln M/2); anytime: 2√(N ln M/2) + √(ln M/8); doubling: √2/(√2 − 1)·√(N ln M/2). The η = √(N ln M)
    printed in some lectures has linear regret: √(ln M/N) is correct (see docs/experts.md). With a `prior` π, ln(1/π_m)
    takes the place of ln M.
    """

    name = "hedge"

    def __init__(
        self, M: int, eta: float | str | None = None, horizon: int | None = None, prior: Any = None, seed: int = 0
    ) -> None:
        super().__init__(M)
        if eta is None:
            eta = "anytime" if horizon is None else "horizon"
        if isinstance(eta, str):
            if eta not in ("horizon", "anytime", "doubling"):
                raise ParameterError(f"Hedge(eta={eta!r}): expected a number > 0, 'horizon', 'anytime' or 'doubling'")
            if (eta == "horizon") != (horizon is not None):
                raise ParameterError(f"Hedge(eta={eta!r}, horizon={horizon!r}): the horizon is for eta='horizon' only")
        elif isinstance(eta, bool) or not 0 < eta < math.inf:
            raise ParameterError(
                f"Hedge(eta={eta!r}): expected a finite number > 0, 'horizon', 'anytime' or 'doubling'"
            )
        if horizon is not None and (isinstance(horizon, bool) or horizon < 1):
            raise ParameterError(f"Hedge(horizon={horizon!r}): expected a whole number >= 1")
        self.eta, self.horizon, self.seed = eta, horizon, seed
        self.prior = _prior(prior, self.M)
        self.epoch: Array = np.zeros(self.M)  # losses since the last restart

    def __repr__(self) -> str:
        return f"Hedge({self.M}, eta={self.eta!r}{'' if self.horizon is None else f', horizon={self.horizon}'})"

    @property
    def rate(self) -> float:
        """η of the next round."""
        if not isinstance(self.eta, str):
            return float(self.eta)
        if self.M == 1:
            return 1.0
        n = self.t + 1
        rounds = {"horizon": self.horizon or 1, "anytime": n, "doubling": 1 << (n.bit_length() - 1)}[self.eta]
        return math.sqrt(8.0 * math.log(self.M) / rounds)

    @property
    def weights(self) -> Array:
        return softmax(np.log(self.prior) - self.rate * self.epoch)

    def _update(self, c: Array) -> None:
        self.loss += float(self.weights @ c)
        self.losses, self.epoch = self.losses + c, self.epoch + c
        self.t += 1
        if self.eta == "doubling" and (self.t + 1) & self.t == 0:
            self.epoch = np.zeros(self.M)

    def bound(self, N: Any, best: Any) -> Any:
        N, best = np.asarray(N, dtype=np.float64), np.asarray(best, dtype=np.float64)
        lnM = -math.log(float(np.min(self.prior)))
        root = np.sqrt(N * lnM / 2.0)
        if self.eta == "anytime":
            return 2.0 * root + math.sqrt(lnM / 8.0)
        if self.eta == "doubling":
            return ROOT2 / (ROOT2 - 1.0) * root
        eta = self.rate
        return np.minimum(lnM / eta + eta * N / 8.0, (eta * best + lnM) / -math.expm1(-eta) - best)


def _prior(prior: Any, M: int) -> Array:
    if prior is None:
        return np.full(M, 1.0 / M)
    out = np.asarray(prior, dtype=np.float64)
    if out.shape != (M,) or not np.all(out > 0) or not math.isclose(float(np.sum(out)), 1.0, rel_tol=1e-9):
        raise ParameterError(f"prior={prior!r:.80}: expected {M} numbers above 0 that add up to 1")
    return out


class AdaHedge(_Mixing):
    """Hedge with η = ln M/Δ, Δ the sum of the mixability gaps: nothing has to be tuned (de Rooij et al. 2014).

    Regret ≤ √(N ln M) + (4/3) ln M + 2; on easy streams, where one expert leads, it stays constant.
    """

    name = "adahedge"

    def __init__(self, M: int, seed: int = 0) -> None:
        super().__init__(M)
        self.gap, self.seed = 0.0, seed

    @property
    def weights(self) -> Array:
        behind = self.losses - np.min(self.losses)
        if self.gap == 0.0 or self.M == 1:  # η = ∞: the leaders have equal weights
            leaders = behind == 0
            return np.asarray(leaders / np.sum(leaders))
        return softmax(-math.log(self.M) / self.gap * behind)

    def _update(self, c: Array) -> None:
        w = self.weights
        h = float(w @ c)
        if self.gap == 0.0 or self.M == 1:
            mix = float(np.min(self.losses + c) - np.min(self.losses))
        else:
            eta, least = math.log(self.M) / self.gap, float(np.min(c))
            mix = least - math.log(float(w @ np.exp(-eta * (c - least)))) / eta
        self.loss += h
        self.gap += max(0.0, h - mix)
        self.losses = self.losses + c
        self.t += 1

    def bound(self, N: Any, best: Any) -> Any:
        lnM = log_count(self.M)
        return np.sqrt(np.asarray(N, dtype=np.float64) * lnM) + 4.0 / 3.0 * lnM + 2.0


class FixedShare(_Mixing):
    """Hedge that divides a part α of every weight among all experts, so that it follows the best *sequence* of experts
    (Herbster, Warmuth 1998).

    v ∝ w e^{−ηc}, w ← (1 − α)v + α/M. Against any sequence with k switches: regret ≤ (1/η)[(k + 1) ln M + k ln(1/α) +
    (N − k − 1) ln(1/(1 − α))] + ηN/8. With `switches` and `horizon`, α = k/(N − 1) and η = √(8[…]/N); else 0.01 and
    0.5.
    """

    name = "fixed_share"

    def __init__(
        self,
        M: int,
        eta: float | None = None,
        alpha: float | None = None,
        switches: int | None = None,
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(M)
        if (switches is None) != (horizon is None):
            raise ParameterError("FixedShare: give switches and horizon together")
        if switches is not None and not (horizon is not None and 0 <= switches < horizon):
            raise ParameterError(
                f"FixedShare(switches={switches!r}, horizon={horizon!r}): expected 0 <= switches < horizon"
            )
        if alpha is None:
            alpha = 0.01 if switches is None or horizon is None else switches / max(1, horizon - 1)
        if not 0 <= alpha < 1:
            raise ParameterError(f"FixedShare(alpha={alpha!r}): expected a number >= 0 and < 1")
        self.alpha, self.switches, self.seed = float(alpha), switches, seed
        if eta is None:
            eta = 0.5
            if switches is not None and horizon is not None and self.M > 1:
                eta = math.sqrt(8.0 * self._length(horizon, switches) / horizon)
        if isinstance(eta, bool) or not 0 < eta < math.inf:
            raise ParameterError(f"FixedShare(eta={eta!r}): expected a finite number > 0")
        self.eta = float(eta)
        self._weights: Array = np.full(self.M, 1.0 / self.M)

    def __repr__(self) -> str:
        return f"FixedShare({self.M}, eta={self.eta:.4g}, alpha={self.alpha:.4g})"

    def _length(self, N: Any, k: int) -> Any:
        """The description length of a sequence with k switches."""
        out = (k + 1) * log_count(self.M)
        if k:
            out += k * math.log(1.0 / self.alpha) if self.alpha > 0 else math.inf
        return out + np.maximum(0, np.asarray(N) - k - 1) * -math.log1p(-self.alpha)

    @property
    def weights(self) -> Array:
        return self._weights

    def _update(self, c: Array) -> None:
        self.loss += float(self._weights @ c)
        v = self._weights * np.exp(-self.eta * (c - np.min(c)))
        self._weights = (1.0 - self.alpha) * v / np.sum(v) + self.alpha / self.M
        self.losses = self.losses + c
        self.t += 1

    def bound(self, N: Any, best: Any, switches: int = 0) -> Any:
        """A bound on the regret against the best sequence with `switches` switches."""
        return self._length(N, switches) / self.eta + self.eta * np.asarray(N, dtype=np.float64) / 8.0


class FollowPerturbedLeader(_Mixing):
    """Follows argmin_m L_m − ξ_m, ξ_m drawn again each round, exponential of rate ε (Kalai and Vempala 2005).

    `weights` are the exact probabilities of being followed, `leader` the one drawn for this round (by `seed` and t).
    Expected regret ≤ (e^ε − 1)L* + e^ε(1 + ln M)/ε (Hutter and Poland 2005). With `horizon`, ε = √((1 + ln M)/N).
    """

    name = "perturbed_leader"

    def __init__(self, M: int, epsilon: float | None = None, horizon: int | None = None, seed: int = 0) -> None:
        super().__init__(M)
        if epsilon is None:
            epsilon = 0.1 if horizon is None else math.sqrt((1.0 + math.log(self.M)) / horizon)
        if isinstance(epsilon, bool) or not 0 < epsilon < math.inf:
            raise ParameterError(f"FollowPerturbedLeader(epsilon={epsilon!r}): expected a finite number > 0")
        self.epsilon, self.seed = float(epsilon), seed
        self._nodes = np.polynomial.legendre.leggauss((self.M + 1) // 2)

    def __repr__(self) -> str:
        return f"FollowPerturbedLeader({self.M}, epsilon={self.epsilon:.4g})"

    @property
    def weights(self) -> Array:
        """P(m) = ∫ Π_{j≠m} (1 − u e^{−ε(L_j − L_m)}) du from 0 to e^{−ε(L_m − min L)}, u = e^{−εξ_m}.

        A polynomial of degree M − 1 in u: Gauss's rule with ⌈M/2⌉ nodes is exact.
        """
        x, weight = self._nodes
        behind = np.exp(-self.epsilon * (self.losses - np.min(self.losses)))
        u = 0.5 * behind[:, np.newaxis] * (x + 1.0)  # expert × node
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.where(behind[:, np.newaxis] > 0, behind / np.maximum(behind[:, np.newaxis], 1e-300), 0.0)
            terms = 1.0 - u[:, :, np.newaxis] * ratio[:, np.newaxis, :]
        terms[np.arange(self.M), :, np.arange(self.M)] = 1.0
        p = 0.5 * behind * (np.prod(terms, axis=2) @ weight)
        return np.asarray(np.maximum(p, 0.0) / np.sum(np.maximum(p, 0.0)))

    @property
    def leader(self) -> int:
        noise = np.random.default_rng([self.seed, self.t]).exponential(1.0 / self.epsilon, size=self.M)
        return int(np.argmin(self.losses - noise))

    def sample(self, advice: ArrayLike) -> int:
        """The prediction of this round's leader."""
        return int(self._bits(advice)[self.leader])

    def _update(self, c: Array) -> None:
        self.loss += float(self.weights @ c)
        self.losses = self.losses + c
        self.t += 1

    def bound(self, N: Any, best: Any) -> Any:
        grown = math.exp(self.epsilon)
        return (grown - 1.0) * np.asarray(best, dtype=np.float64) + grown * (1.0 + math.log(self.M)) / self.epsilon
