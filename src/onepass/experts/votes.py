"""Algorithms that assume a perfect expert, Consistent and Halving; and the deterministic Weighted Majority.

Littlestone 1988; Littlestone and Warmuth 1994.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, NotRealizableError, ParameterError
from .base import Array, Experts

__all__ = ["Consistent", "Halving", "WeightedMajority"]


class _VersionSpace(Experts):
    """The experts that were right so far. Labels may be of any kind."""

    def __init__(self, M: int, on_empty: str = "error") -> None:
        super().__init__(M)
        if on_empty not in ("error", "reset"):
            raise ParameterError(f"{type(self).__name__}(on_empty={on_empty!r}): expected 'error' or 'reset'")
        self.on_empty = on_empty
        self.consistent: NDArray[np.bool_] = np.ones(self.M, dtype=bool)
        self.mistakes = 0

    @property
    def weights(self) -> Array:
        return np.asarray(self.consistent / np.sum(self.consistent))

    def _labels(self, advice: Any) -> list[Any]:
        labels = advice.tolist() if isinstance(advice, np.ndarray) else list(advice)
        if len(labels) != self.M:
            raise InputError(f"advice: expected {self.M} labels, one of each expert; got {len(labels)}")
        for at, label in enumerate(labels):
            if isinstance(label, float) and not math.isfinite(label):
                raise InputError(f"advice[{at}] = {label!r}: expected a label")
        return labels

    def learn(self, advice: ArrayLike, outcome: Any = None) -> None:
        """Learn the round's advice and its outcome."""
        if outcome is None:
            raise InputError(f"{type(self).__name__} needs the outcome: learn(advice, outcome)")
        labels = self._labels(advice)
        if isinstance(outcome, float) and not math.isfinite(outcome):
            raise InputError(f"outcome={outcome!r}: expected a label")
        right = np.array([label == outcome for label in labels], dtype=bool)
        left = self.consistent & right
        wrong = self.predict(advice) != outcome
        if not np.any(left):
            if self.on_empty == "error":
                raise NotRealizableError(
                    f"round {self.t + 1}: no expert has been right every time; use WeightedMajority or Hedge, "
                    'or on_empty="reset"'
                )
            left = np.ones(self.M, dtype=bool)
        self.t += 1
        self.consistent, self.losses = left, self.losses + ~right
        self.mistakes += int(wrong)
        self.loss += float(wrong)


class Consistent(_VersionSpace):
    """Follows an expert that was always right: the first one, or with choice="random" any (by `seed` and the round). If
    there is a perfect expert: mistakes ≤ M − 1, for any labels.
    """

    name = "consistent"

    def __init__(self, M: int, choice: str = "first", on_empty: str = "error", seed: int = 0) -> None:
        super().__init__(M, on_empty)
        if choice not in ("first", "random"):
            raise ParameterError(f"Consistent(choice={choice!r}): expected 'first' or 'random'")
        self.choice, self.seed = choice, seed

    def predict(self, advice: ArrayLike) -> Any:
        labels, left = self._labels(advice), np.flatnonzero(self.consistent)
        if self.choice == "first":
            return labels[left[0]]
        return labels[np.random.default_rng([self.seed, self.t]).choice(left)]

    def bound(self, N: Any, best: Any) -> Any:
        return np.where(np.asarray(best) == 0, self.M - 1.0, math.inf)


class Halving(_VersionSpace):
    """Follows the majority of the experts that were always right; ties go to the smallest label (`tie`=1: to 1). If
    there is a perfect expert: mistakes ≤ ⌊log₂ M⌋, since a mistake removes at least half.
    """

    name = "halving"

    def __init__(self, M: int, tie: int = 0, on_empty: str = "error") -> None:
        super().__init__(M, on_empty)
        if tie not in (0, 1):
            raise ParameterError(f"Halving(tie={tie!r}): expected 0 or 1")
        self.tie = tie

    def predict(self, advice: ArrayLike) -> Any:
        votes: dict[Any, int] = {}
        for label, left in zip(self._labels(advice), self.consistent, strict=True):
            votes[label] = votes.get(label, 0) + int(left)
        most = max(votes.values())
        winners = sorted((label for label, count in votes.items() if count == most), key=_order)
        return self.tie if self.tie in winners else winners[0]

    def bound(self, N: Any, best: Any) -> Any:
        return np.where(np.asarray(best) == 0, math.floor(math.log2(self.M)), math.inf)


def _order(label: Any) -> tuple[str, Any]:
    return ("", label) if isinstance(label, int | float) else (type(label).__name__, label)


class WeightedMajority(Experts):
    """Predicts 1 if the experts that predict 1 have more weight; an error multiplies a weight by β (β = 0 is Halving).

    mistakes ≤ (ln M + e* ln(1/β))/ln(2/(1 + β)), e* those of the best expert. `update_always=False`: weights change
    only after wrong votes. The state is the number e of errors of each expert: v = β^e.
    """

    name = "weighted_majority"

    def __init__(self, M: int, beta: float = 0.5, update_always: bool = True) -> None:
        super().__init__(M)
        if not 0 <= beta < 1:
            raise ParameterError(f"WeightedMajority(beta={beta!r}): expected a number >= 0 and < 1")
        self.beta, self.update_always = float(beta), bool(update_always)
        self.errors: Array = np.zeros(self.M)  # errors that changed weights
        self.mistakes = 0

    def _raw(self) -> Array:
        e = self.errors - np.min(self.errors)
        return np.power(self.beta, e) if self.beta > 0 else (e == 0).astype(np.float64)

    @property
    def weights(self) -> Array:
        v = self._raw()
        return np.asarray(v / np.sum(v))

    def predict(self, advice: ArrayLike) -> int:
        predicted, v = self._bits(advice), self._raw()
        return int(np.sum(v[predicted == 1]) > np.sum(v[predicted == 0]))

    def _reveal(self, advice: ArrayLike, outcome: Any) -> None:
        predicted, answer = self._bits(advice), self._bit(outcome)
        wrong = self.predict(advice) != answer
        self.t += 1
        self.losses = self.losses + (predicted != answer)
        if wrong or self.update_always:
            self.errors = self.errors + (predicted != answer)
        self.mistakes += int(wrong)
        self.loss += float(wrong)

    def _update(self, c: Array) -> None:
        raise InputError("WeightedMajority votes on labels: learn(advice, outcome); Hedge takes losses")

    def bound(self, N: Any, best: Any) -> Any:
        """The mistake bound less the best expert's mistakes: a bound on the regret."""
        best = np.asarray(best, dtype=np.float64)
        if self.beta == 0:
            return np.where(best == 0, math.log2(self.M) if self.M > 1 else 0.0, math.inf)
        total = (math.log(self.M) + best * math.log(1.0 / self.beta)) / math.log(2.0 / (1.0 + self.beta))
        return total - best
