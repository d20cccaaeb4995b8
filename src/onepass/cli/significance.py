"""Significance tests for the difference between two learners on the same examples, computed from sums."""

from __future__ import annotations

from math import comb, erfc, sqrt
from typing import Any

import numpy as np

__all__ = ["Pairs"]


class Pairs:
    """Sums over all examples from which any two learners can be compared."""

    def __init__(self, learners: int) -> None:
        self.count = 0
        self.sums = np.zeros(learners)
        self.products = np.zeros((learners, learners))
        self.zero_one = True

    def add(self, losses: Any) -> None:
        """Add losses, a row for each learner."""
        losses = np.where(np.isnan(losses), 0.0, losses)
        self.zero_one = self.zero_one and bool(np.all((losses == 0.0) | (losses == 1.0)))
        self.count += losses.shape[1]
        self.sums += losses.sum(axis=1)
        self.products += losses @ losses.T

    def keep(self, learners: list[int]) -> None:
        """Drop all other learners."""
        self.sums, self.products = self.sums[learners], self.products[np.ix_(learners, learners)]

    def against(self, best: int, others: list[int]) -> list[float]:
        """p-values of each of `others` against `best`, with Holm's correction for making several tests."""
        raw = [self.p(best, other) for other in others]
        out, highest = [1.0] * len(raw), 0.0
        for rank, i in enumerate(sorted(range(len(raw)), key=raw.__getitem__)):
            highest = max(highest, min(1.0, (len(raw) - rank) * raw[i]))
            out[i] = highest
        return out

    def p(self, a: int, b: int) -> float:
        """The two-sided p-value: the probability of such a difference by chance."""
        if self.zero_one:
            both = self.products[a, b]
            only_a, only_b = round(float(self.sums[a] - both)), round(float(self.sums[b] - both))
            n = only_a + only_b
            if n < 25:  # McNemar's exact test: the discordant examples are tosses of a fair coin
                few = min(only_a, only_b)
                return float(min(1.0, 2.0 * sum(comb(n, i) for i in range(few + 1)) / 2.0**n))
            return erfc(sqrt((abs(only_a - only_b) - 1) ** 2 / n / 2.0)) if only_a != only_b else 1.0
        mean = float(self.sums[a] - self.sums[b]) / self.count
        square = float(self.products[a, a] - 2.0 * self.products[a, b] + self.products[b, b]) / self.count
        variance = square - mean * mean
        if variance <= 0.0:
            return 1.0 if mean == 0.0 else 0.0
        return erfc(abs(mean) / sqrt(variance / self.count) / sqrt(2.0))
