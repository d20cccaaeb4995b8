"""LASVM as its paper tells it (Bordes, Ertekin, Weston, Bottou 2005, section 3), in plain NumPy and without onepass.

A Gram matrix of all examples, S a list of their indices, one Python loop per equation: the tests' oracle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

EPSILON = 1e-12  # of the diagonal: a flatter direction goes to the bound; of C: α this near a bound is at it


class LaSVM:
    """One two-class problem. y is ±1, C one number or one for each example."""

    def __init__(self, K: np.ndarray, y: np.ndarray, C: float | np.ndarray, tau: float = 1e-3) -> None:
        self.K, self.y, self.tau = K, y.astype(float), tau
        C = np.broadcast_to(np.asarray(C, dtype=float), y.shape)
        self.A, self.B = np.minimum(0, C * y), np.maximum(0, C * y)
        self.S: list[int] = []
        self.alpha = np.zeros(len(y))
        self.g = np.zeros(len(y))
        self.b, self.delta = 0.0, math.inf

    def seed(self, examples: Iterable[int]) -> None:
        for k in examples:
            self.S.append(k)
            self.g[k] = self.y[k]

    def can_rise(self) -> list[int]:
        return [s for s in self.S if self.alpha[s] < self.B[s]]

    def can_fall(self) -> list[int]:
        return [s for s in self.S if self.alpha[s] > self.A[s]]

    def pair(self) -> tuple[int | None, int | None]:
        i = max(self.can_rise(), key=lambda s: self.g[s], default=None)
        j = min(self.can_fall(), key=lambda s: self.g[s], default=None)
        return i, j

    def violates(self, i: int | None, j: int | None) -> bool:
        if i is None or j is None:
            return False
        rises, falls = self.alpha[i] < self.B[i], self.alpha[j] > self.A[j]
        return bool(rises and falls and self.g[i] - self.g[j] > self.tau)

    def step(self, i: int, j: int) -> None:
        K, alpha = self.K, self.alpha
        eta = K[i, i] + K[j, j] - 2 * K[i, j]
        step = min(self.B[i] - alpha[i], alpha[j] - self.A[j])
        if eta > EPSILON * max(abs(K[i, i]), abs(K[j, j])):
            step = min(step, (self.g[i] - self.g[j]) / eta)
        alpha[i] += step
        alpha[j] -= step
        for s in self.S:
            self.g[s] -= step * (K[i, s] - K[j, s])
        for s in (i, j):
            for bound in (self.A[s], self.B[s]):
                if abs(alpha[s] - bound) <= EPSILON * (self.B[s] - self.A[s]):
                    alpha[s] = bound

    def process(self, k: int) -> None:
        if k in self.S:
            return
        self.alpha[k] = 0.0
        self.g[k] = self.y[k] - sum(self.alpha[s] * self.K[s, k] for s in self.S)
        self.S.append(k)
        i, j = self.pair()
        i, j = (k, j) if self.y[k] > 0 else (i, k)
        if self.violates(i, j):
            assert i is not None and j is not None
            self.step(i, j)

    def reprocess(self) -> None:
        i, j = self.pair()
        if self.violates(i, j):
            assert i is not None and j is not None
            self.step(i, j)
        i, j = self.pair()
        if i is None or j is None:
            self.delta = math.inf
            return
        top, bottom = self.g[i], self.g[j]
        self.S = [
            s for s in self.S if self.alpha[s] != 0 or not (self.g[s] >= top if self.y[s] < 0 else self.g[s] <= bottom)
        ]
        self.b, self.delta = (top + bottom) / 2, top - bottom

    def finish(self) -> int:
        """REPROCESS until δ ≤ τ; the number of times."""
        for times in range(1, 100 * len(self.S) + 1):
            self.reprocess()
            if self.delta <= self.tau:
                return times
        return times

    def learn(self, order: Iterable[int]) -> None:
        for k in order:
            self.process(k)
            self.reprocess()

    def objective(self) -> float:
        """W."""
        S = self.S
        a = self.alpha[S]
        return float(a @ self.y[S] - a @ self.K[np.ix_(S, S)] @ a / 2)

    def decide(self, K: np.ndarray) -> np.ndarray:
        """f at points whose kernel rows with all examples are K."""
        return K[:, self.S] @ self.alpha[self.S] + self.b
