"""Rejection sampling: importances for learners that take none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError, rows_from
from ..scheme.rounds import Array
from ..scheme.sizes import MOST_LEARNERS
from .either import EitherTask
from .examples import Indices, Rows, count, singles

__all__ = ["Rejection", "uniform", "uniforms"]

_GOLDEN, _MASK = 0x9E3779B97F4A7C15, 2**64 - 1


def _mix_bits(z: Any) -> Any:
    """Mix the bits of an int or of an array of uint64, which wraps around by itself."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def uniform(seed: int, stream: int, place: int) -> float:
    """Draw number `place` of a stream of numbers in [0, 1): SplitMix64 (Steele, Lea and Flood 2014).

    A draw depends on its position alone, so a refused call consumes none and a file need not hold a generator.
    """
    key = _mix_bits(_mix_bits((seed + (stream + 1) * _GOLDEN) & _MASK))
    return float((_mix_bits((key + (place + 1) * _GOLDEN) & _MASK) >> 11) * 2.0**-53)


def uniforms(seed: int, stream: int, start: int, n: int) -> Array:
    """Draws `start`, …, `start + n − 1`."""
    key = np.full(n, _mix_bits(_mix_bits((seed + (stream + 1) * _GOLDEN) & _MASK)), dtype=np.uint64)
    places = np.arange(start + 1, start + n + 1, dtype=np.uint64)
    return np.asarray((_mix_bits(key + places * np.uint64(_GOLDEN)) >> 11) * 2.0**-53)


class Rejection(EitherTask):
    """`samples` bases, each taught an example with probability c / c_max, independently."""

    name = "ImportanceSampling"

    def __init__(self, base: Any, task: str, classes: Any, c_max: Any, samples: Any, seed: Any) -> None:
        if isinstance(c_max, bool) or not isinstance(c_max, (int, float, np.number)) or not 0 < float(c_max) < math.inf:
            raise ParameterError(f"c_max={c_max!r}: expected a finite number > 0")
        for name, value, least, most in (("samples", samples, 1, MOST_LEARNERS), ("seed", seed, 0, 2**64 - 1)):
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
                raise ParameterError(f"{name}={value!r}: expected a whole number from {least} to {most:,}")
        super().__init__(base, task, classes)
        self.most, self.seed = float(c_max), int(seed)
        self.learners = [self.make() for _ in range(int(samples))]

    @property
    def c_max(self) -> float:  # type: ignore[override]
        return self.most

    @property
    def unit_only(self) -> bool:  # type: ignore[override]
        return False

    def _check_importance(self, answers: Any, c: Array | float) -> None:
        if np.max(c) > self.most:
            raise InputError(
                f"ImportanceSampling(c_max={self.most:g}): an example has importance {np.max(c):g}; raise c_max"
            )

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        for s, learner in enumerate(self.learners):
            if uniform(self.seed, s, self.t) < c / self.most:
                learner.learn(x, answer, 1.0)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        share = 1.0 / self.most if c is None else c / self.most
        for s, learner in enumerate(self.learners):
            at = np.flatnonzero(uniforms(self.seed, s, self.t, count(rows)) < share)
            self._teach(learner, rows, at, answers[at], None)

    def decide_then_learn(self, rows: Rows, y: NDArray[np.bool_], c: Array | None) -> NDArray[np.bool_]:
        out = np.zeros(count(rows), dtype=np.bool_)
        weights = [1.0] * len(out) if c is None else c.tolist()
        for i, (x, label, weight) in enumerate(zip(singles(rows), y.tolist(), weights, strict=True)):
            out[i] = self.score(x) > 0
            with rows_from(i):
                self._learn(x, label, weight)
            self.t += 1
        return out

    def _sizes(self) -> tuple[int, int]:
        return len(self.learners), 0

    # -- predictions: the mean of the scores, or most votes ----------------------------------------------------------

    def score(self, x: Any) -> float:
        return sum(learner.score(x) for learner in self.learners) / len(self.learners)

    def score_rows(self, rows: Rows) -> Array:
        total = np.zeros(count(rows))
        for learner in self.learners:
            total = total + learner.score_rows(rows)
        return total / len(self.learners)

    def _choose(self, x: Any) -> int:
        return int(self._most_votes([[learner.predict(x)] for learner in self.learners])[0])

    def choose_rows(self, rows: Rows) -> Indices:
        return self._most_votes([learner.predict_rows(rows) for learner in self.learners])

    def _most_votes(self, ballots: list[Any]) -> Indices:
        votes = np.zeros((len(ballots[0]), len(self.labels)))
        for labels in ballots:
            for row, label in enumerate(labels.tolist() if isinstance(labels, np.ndarray) else labels):
                k = self.labels.index.get(label)
                if k is not None:  # a base that has learned nothing yet does not vote
                    votes[row, k] += 1
        return np.asarray(np.argmax(votes, axis=1))
