"""The sets of Wang and Vucetic (2010), Table 1: two classes, a training stream in random order, a test set.

Each repetition draws its rows, and their order, from its seed. Numbers are scaled to unit variance over the training
rows; columns that have the same scale already (0 and 1, grey levels, the boards) are not scaled.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import datasets

__all__ = ["HOMES", "SETS", "Split", "split"]

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class Split:
    """Training rows, in order, and test rows; labels are 0 and 1."""

    X: Array
    y: Labels
    held: Array
    truth: Labels

    def first(self, rows: int, held: int) -> Split:
        """A smaller split, for a quick run."""
        return Split(self.X[:rows], self.y[:rows], self.held[:held], self.truth[:held])


def _rows(name: str, part: str | None = None) -> tuple[Array, Labels]:
    chunks = list(datasets.load(name, part).chunks(8192))
    X = np.concatenate([_dense(X) for X, _ in chunks])
    return X, np.concatenate([y for _, y in chunks])


def _dense(X: Any) -> Array:
    if isinstance(X, datasets.CSR):
        from scipy.sparse import csr_matrix

        X = csr_matrix((X.data, X.indices, X.indptr), shape=X.shape).toarray()
    return np.asarray(X, dtype=np.float64)


def _some_rows(name: str, chosen: NDArray[np.int64]) -> tuple[Array, Labels]:
    """Rows of a large set, in the order of `chosen`, without holding the others."""
    order = np.argsort(chosen)
    parts, labels, start = [], [], 0
    for X, y in datasets.load(name).chunks(8192):
        within = chosen[order][(chosen[order] >= start) & (chosen[order] < start + len(y))] - start
        parts.append(X[within])
        labels.append(y[within])
        start += len(y)
    back = np.argsort(order)
    return np.concatenate(parts)[back], np.concatenate(labels)[back]


def _scaled(train: Array, test: Array, columns: slice = slice(None)) -> tuple[Array, Array]:
    """Mean 0 and variance 1 over the training rows; a constant column becomes 0."""
    train, test = train.copy(), test.copy()
    mean, deviation = train[:, columns].mean(axis=0), train[:, columns].std(axis=0)
    for X in (train, test):
        X[:, columns] = (X[:, columns] - mean) / np.where(deviation > 0, deviation, 1.0)
    return train, test


def _adult(rng: np.random.Generator) -> Split:
    X, y = _rows("adult", "train")
    held, truth = _rows("adult", "test")
    drawn = rng.permutation(len(y))[:21_000]
    return Split(X[drawn], (y[drawn] > 0).astype(np.int64), held, (truth > 0).astype(np.int64))


def _divided(name: str, train: int) -> Callable[[np.random.Generator], Split]:
    def draw(rng: np.random.Generator) -> Split:
        X, y = _rows(name)
        order = rng.permutation(len(y))
        first, rest = order[:train], order[train:]
        labels = (y == y.max()).astype(np.int64)
        scaled, held = _scaled(X[first], X[rest])
        return Split(scaled, labels[first], held, labels[rest])

    return draw


def _cover(rng: np.random.Generator) -> Split:
    drawn = rng.choice(len(datasets.load("covtype")), size=20_000, replace=False)
    X, y = _some_rows("covtype", drawn)
    labels = (y == 2).astype(np.int64)
    scaled, held = _scaled(X[:10_000], X[10_000:], slice(0, 10))
    return Split(scaled, labels[:10_000], held, labels[10_000:])


def _usps(rng: np.random.Generator) -> Split:
    X, y = _rows("usps", "train")
    held, truth = _rows("usps", "test")
    order = rng.permutation(len(y))
    return Split(X[order], 1 - y[order] % 2, held, 1 - truth % 2)


def _board(noise: float) -> Callable[[np.random.Generator], Split]:
    def draw(rng: np.random.Generator) -> Split:
        """Points on [0, 4)², 1 where ⌊x₁⌋ + ⌊x₂⌋ is even; exactly `noise` of the training labels are flipped."""
        X, y = next(datasets.Checkerboard(20_000, seed=int(rng.integers(2**31))).chunks(20_000))
        X, y = 2.0 * (X + 1.0), 1 - y
        flipped = rng.permutation(10_000)[: round(10_000 * noise)]
        labels = y[:10_000].copy()
        labels[flipped] = 1 - labels[flipped]
        return Split(X[:10_000], labels, X[10_000:], y[10_000:])

    return draw


# As table1.csv names them; Phoneme is ELENA's, not the paper's.
SETS: dict[str, Callable[[np.random.Generator], Split]] = {
    "Adult": _adult,
    "Banana": _divided("banana", 4300),
    "Checkerboard": _board(0.0),
    "NCheckerboard": _board(0.15),
    "Cover": _cover,
    "USPS": _usps,
    "Phoneme": _divided("phoneme", 4323),
}
# Where `datasets.load` finds their rows; the boards are made.
HOMES: dict[str, list[tuple[str, str | None]]] = {
    "Adult": [("adult", "train"), ("adult", "test")],
    "Banana": [("banana", None)],
    "Checkerboard": [],
    "NCheckerboard": [],
    "Cover": [("covtype", None)],
    "USPS": [("usps", "train"), ("usps", "test")],
    "Phoneme": [("phoneme", None)],
}


@functools.lru_cache(maxsize=2)
def split(name: str, seed: int) -> Split:
    return SETS[name](np.random.default_rng([seed, list(SETS).index(name)]))
