"""Exponential weights for numbers and probabilities: regret that does not grow with the rounds.

Vovk 1990; Kivinen and Warmuth 1999; Cesa-Bianchi and Lugosi 2006, ch. 3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, ParameterError
from .base import Array, Experts, log_count, softmax

__all__ = ["ExponentialWeights", "LogMixture"]


class ExponentialWeights(Experts):
    """Predicts numbers in [low, high], B = high − low, with the squared loss (p − t)²; w_m ∝ exp(−η Σ(f_m − t)²).

    The weighted mean with η = 1/(2B²): regret ≤ 2B² ln M. `aggregating`: η = 2/B² and Vovk's substitution
    p = (a + b)/2 + (g(a) − g(b))/(2B), g(y) = −(1/η) ln Σ w_m e^{−η(f_m − y)²}: regret ≤ (B²/2) ln M.
    Advice outside the range is an error; with `clip_advice` it is clipped.
    """

    name = "exponential_weights"

    def __init__(
        self,
        M: int,
        low: float = 0.0,
        high: float = 1.0,
        eta: float | None = None,
        aggregating: bool = False,
        clip_advice: bool = False,
    ) -> None:
        super().__init__(M)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ParameterError(f"ExponentialWeights(low={low!r}, high={high!r}): expected finite low < high")
        self.low, self.high, self.clip_advice, self.aggregating = float(low), float(high), clip_advice, aggregating
        B = self.high - self.low
        if eta is None:
            eta = 2.0 / B**2 if aggregating else 1.0 / (2.0 * B**2)
        if isinstance(eta, bool) or not 0 < eta < math.inf:
            raise ParameterError(f"ExponentialWeights(eta={eta!r}): expected a finite number > 0")
        self.eta = float(eta)

    def __repr__(self) -> str:
        return f"ExponentialWeights({self.M}, {self.low:g}, {self.high:g}, aggregating={self.aggregating})"

    @property
    def weights(self) -> Array:
        return softmax(-self.eta * self.losses)

    def _advice(self, advice: ArrayLike) -> Array:
        if self.clip_advice:
            given = np.asarray(advice, dtype=np.float64)
            if given.shape == (self.M,) and not np.any(np.isnan(given)):
                return np.clip(given, self.low, self.high)
        return self._numbers(advice, "advice", self.low, self.high)

    def predict(self, advice: ArrayLike) -> float:
        f = self._advice(advice)
        if not self.aggregating:
            return float(self.weights @ f)
        a, b = self._g(f, self.low), self._g(f, self.high)
        p = 0.5 * (self.low + self.high) + (a - b) / (2.0 * (self.high - self.low))
        return float(min(self.high, max(self.low, p)))

    def _g(self, f: Array, y: float) -> float:
        off = (f - y) ** 2
        least = float(np.min(off))
        return least - math.log(float(self.weights @ np.exp(-self.eta * (off - least)))) / self.eta

    def _reveal(self, advice: ArrayLike, outcome: Any) -> None:
        f = self._advice(advice)
        answer = float(self._numbers(np.full(self.M, outcome), "outcome", self.low, self.high)[0])
        self.loss += (self.predict(f) - answer) ** 2
        self.losses = self.losses + (f - answer) ** 2
        self.t += 1

    def _update(self, c: Array) -> None:
        raise InputError("ExponentialWeights takes numbers as outcomes: learn(advice, outcome); Hedge takes losses")

    def bound(self, N: Any, best: Any) -> Any:
        B = self.high - self.low
        limit = 2.0 / B**2 if self.aggregating else 1.0 / (2.0 * B**2)
        least = log_count(self.M) / self.eta if self.eta <= limit * (1 + 1e-12) else math.inf
        return np.full(np.shape(N), least)


class LogMixture(Experts):
    """Probabilities of 1 under the log loss: Bayes' mixture, w_m ∝ Π p_m(outcome). Regret ≤ ln M."""

    name = "log_mixture"

    @property
    def weights(self) -> Array:
        finite = np.where(np.isfinite(self.losses), self.losses, np.inf)
        return softmax(-finite) if np.any(np.isfinite(finite)) else np.full(self.M, 1.0 / self.M)

    def predict(self, advice: ArrayLike) -> float:
        return float(self.weights @ self._numbers(advice, "advice", 0.0, 1.0))

    def _reveal(self, advice: ArrayLike, outcome: Any) -> None:
        p, answer = self._numbers(advice, "advice", 0.0, 1.0), self._bit(outcome)
        with np.errstate(divide="ignore"):
            losses = self.losses - np.log(p if answer == 1 else 1.0 - p)
        if not np.any(np.isfinite(losses)):
            raise InputError(f"round {self.t + 1}: every expert has given probability 0 to an outcome that occurred")
        mixed = self.predict(advice)
        self.loss -= math.log(mixed if answer == 1 else 1.0 - mixed)
        self.losses = losses
        self.t += 1

    def _update(self, c: Array) -> None:
        raise InputError("LogMixture takes probabilities as advice: learn(advice, outcome); Hedge takes losses")

    def bound(self, N: Any, best: Any) -> Any:
        return np.full(np.shape(N), log_count(self.M))
