"""The base of algorithms with M experts: checks, counts, the regret so far."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, ParameterError
from ..scheme.sizes import require_room

__all__ = ["Experts"]

Array = NDArray[np.float64]


class Experts:
    """Base. Round: `predict(advice)`, which changes nothing; then `learn(advice, outcome)`, or `learn(losses)`.

    `losses` are the cumulative losses of the experts, `loss` that of the algorithm (the expected loss if it draws), `t`
    the rounds. A refused call changes nothing. `bound(N, best)`: the theoretical bound on the regret after N rounds in
    which the best expert has the loss `best`; inf if there is no bound.
    """

    name = ""

    def __init__(self, M: int) -> None:
        if isinstance(M, bool) or not isinstance(M, int | np.integer) or M < 1:
            raise ParameterError(f"{type(self).__name__}(M={M!r}): expected a whole number of experts >= 1")
        require_room(4 * int(M), f"{type(self).__name__}(M={M})")
        self.M = int(M)
        self.t = 0
        self.losses: Array = np.zeros(self.M)
        self.loss = 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.M})"

    @property
    def weights(self) -> Array:
        """The weight of each expert; they add up to 1."""
        raise NotImplementedError

    @property
    def regret(self) -> float:
        """The loss of the algorithm minus that of the best expert."""
        return self.loss - float(np.min(self.losses))

    def bound(self, N: Any, best: Any) -> Any:
        return np.full(np.shape(N), math.inf)

    def predict(self, advice: ArrayLike) -> Any:
        raise NotImplementedError

    def learn(self, advice: ArrayLike, outcome: Any = None) -> None:
        """Learn the round's advice and its outcome; or, as a single argument, the experts' losses."""
        if outcome is None:
            self._update(self._losses(advice))
        else:
            self._reveal(advice, outcome)

    def _update(self, c: Array) -> None:
        raise NotImplementedError

    def _reveal(self, advice: ArrayLike, outcome: Any) -> None:
        raise NotImplementedError

    # -- checks --------------------------------------------------------------------------------------------------------

    def _numbers(self, given: ArrayLike, what: str, low: float, high: float) -> Array:
        try:
            out = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{what}={given!r:.80}: expected {self.M} numbers") from None
        if out.shape != (self.M,):
            raise InputError(f"{what}: expected {self.M} numbers, one of each expert; got shape {out.shape}")
        if not np.all((out >= low) & (out <= high)):  # False for NaN too
            at = int(np.argmin((out >= low) & (out <= high)))
            raise InputError(f"{what}[{at}] = {float(out[at])!r}: expected a number from {low:g} to {high:g}")
        return out

    def _losses(self, losses: ArrayLike) -> Array:
        return self._numbers(losses, "losses", 0.0, 1.0)

    def _bits(self, advice: ArrayLike) -> Array:
        out = self._numbers(advice, "advice", 0.0, 1.0)
        if not np.all((out == 0) | (out == 1)):
            raise InputError(f"advice={advice!r:.80}: expected 0 or 1 of each expert")
        return out

    def _bit(self, outcome: Any) -> float:
        if outcome not in (0, 1):
            raise InputError(f"outcome={outcome!r}: expected 0 or 1")
        return float(outcome)


def log_count(M: int) -> float:
    """ln M, but positive for M = 1, where any η is right because nothing is learned."""
    return math.log(M) if M > 1 else 0.0


def softmax(v: Array) -> Array:
    """Normalised exponentials; the largest exponent is shifted to 0, so that none overflows."""
    e = np.exp(v - np.max(v))
    return np.asarray(e / np.sum(e))
