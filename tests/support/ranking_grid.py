"""Rules, forms of rows and streams of queries for the tests of `Ranker`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from onepass.estimators.ranking import Ranker
from onepass.persistence import store
from support.direction_rules import DIRECTION_RULES

NAN, INF = float("nan"), float("inf")

RULES = [
    *DIRECTION_RULES,
    "mira",
    "alma",
    "shifting",
    "pamir:C=0.1",
    "mroc:beta=2",
    "cw",
    "scw1",
    "scw2",
    "adagrad:loss=hinge",
]


# -- streams and forms ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Data:
    X: np.ndarray
    y: np.ndarray
    qid: list[Any]
    importance: np.ndarray


def data(n: int = 80, d: int = 8, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.clip(np.round(X @ rng.normal(size=d) + 2 * rng.normal(size=n)), -1, 2)
    lengths = rng.integers(1, 12, size=n)
    qid = np.repeat(np.arange(n), lengths)[:n].tolist()
    return Data(X, y, qid, rng.choice([0.0, 0.5, 1.0, 2.0], size=n))


def pairs(s: Data, room: int = 1000) -> Iterator[tuple[int, int, float]]:
    """By the definition: (preferred, other, importance), the arriving example against its query, oldest first."""
    for i in range(len(s.y)):
        first = next(j for j in range(i, -1, -1) if j == 0 or s.qid[j - 1] != s.qid[i])
        for j in range(max(first, i - room), i):
            c = s.importance[i] * s.importance[j]
            if s.y[i] > s.y[j]:
                yield i, j, c
            elif s.y[i] < s.y[j]:
                yield j, i, c


def mappings(X: np.ndarray) -> list[dict[str, float]]:
    return [{f"f{j}": float(row[j]) for j in np.flatnonzero(row)} for row in X]


@dataclasses.dataclass
class Form:
    """A way to hold rows: the whole of them, a part, and one."""

    whole: Callable[[np.ndarray], Any]
    one: Callable[[Any, int], Any] = lambda X, i: X[i]
    hash_bits: int | None = None

    def part(self, X: Any, start: int, stop: int) -> Any:
        return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]


def sparse_row(X: Any, i: int) -> Any:
    return X[[i]]


FORMS = {
    "dense": Form(lambda X: X),
    "float32": Form(lambda X: X.astype(np.float32)),
    "csr32": Form(sparse.csr_array, sparse_row),
    "csr64": Form(lambda X: csr64(X), sparse_row),
    "named": Form(mappings),
    "hashed": Form(mappings, hash_bits=4),
    "hashed dense": Form(lambda X: X, hash_bits=4),
    "hashed csr": Form(sparse.csr_array, sparse_row, hash_bits=4),
}


def csr64(X: np.ndarray) -> Any:
    out = sparse.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def saved(ranker: Ranker, folder: Path) -> bytes:
    ranker.save(folder / "ranker.onepass")
    return (folder / "ranker.onepass").read_bytes()


def bits(ranker: Ranker, folder: Path) -> bytes:
    """The saved bytes, but for how many columns scikit-learn was told of: `learn_one` tells it nothing."""
    _, config, arrays = store.from_bytes(saved(ranker, folder), "ranker")
    config["fitted"].pop("n_features_in_", None)
    return store.to_bytes("ranker", config, arrays)
