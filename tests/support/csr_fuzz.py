"""Sparse matrices with a corrupt part, in every format of SciPy's.

By hand, in the folder tests: python -W ignore -m support.csr_fuzz 1000000 [seed]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import onepass as op
from onepass.errors import InputError, OnepassError
from onepass.rows.batches import as_batch

ROWS, COLUMNS = 6, 4
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
ODD = (-1, 0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 127, 2**30, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**62))
TYPES = (np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float32, np.float64, np.complex128, object, "U3", "M8[D]")

LEARNERS: dict[str, Callable[[], Any]] = {
    "LinearClassifier": op.LinearClassifier,
    "GaussianNB": op.GaussianNB,
    "KMeans": lambda: op.KMeans(2, batch_size=2, init_size=2),
    "KernelClassifier": op.KernelClassifier,
    "DriftReset": lambda: op.drift.DriftReset(op.GaussianNB()),
}
Y = np.array(["a", "b"] * (ROWS // 2))


def sound(generator: np.random.Generator) -> Any:
    X = generator.integers(-2, 3, (ROWS, COLUMNS)).astype(float)
    X[0, 0] = 1.0
    return X


def _arrays(X: Any) -> list[str]:
    names = {
        "csr": ["data", "indices", "indptr"],
        "csc": ["data", "indices", "indptr"],
        "bsr": ["data", "indices", "indptr"],
        "coo": ["data", "row", "col"],
        "lil": ["data", "rows"],
        "dia": ["data", "offsets"],
    }
    return names.get(X.format, [])


def _put(X: Any, name: str, array: Any) -> None:
    if X.format == "coo" and name != "data":
        coords = list(X.coords)
        coords[("row", "col").index(name)] = array
        X.coords = tuple(coords)
    else:
        setattr(X, name, array)


def corrupt(generator: np.random.Generator, kind: str) -> Any:
    """A matrix of this format with one to three random changes in its arrays, which may leave it well formed."""
    X = sparse.csr_matrix(sound(generator)).asformat(kind)
    if generator.random() < 0.1:
        X._shape = tuple(int(n) for n in generator.integers(0, 9, 2))
    for _ in range(generator.integers(1, 4)):
        if kind == "dok":
            key = tuple(int(generator.choice(ODD)) for _ in range(2))
            X._dict[key] = 1.0
            continue
        name = str(generator.choice(_arrays(X)))
        array = getattr(X, name)
        if kind == "lil":
            row = int(generator.integers(len(array)))
            action = generator.integers(3)
            if action == 0:
                array[row].append(int(generator.choice(ODD)))
            elif action == 1 and array[row]:
                array[row].pop()
            elif array[row]:
                array[row][0] = [int(generator.choice(ODD)), 0.5, "a", None, 1j][generator.integers(5)]
            continue
        _put(X, name, _changed(generator, np.asarray(array)))
    return X


def _changed(generator: np.random.Generator, array: Any) -> Any:
    action = generator.integers(8)
    if action < 4 and array.size and array.dtype.kind in "iuf":
        array = array.copy()
        odd = generator.choice(ODD)
        limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
        array.flat[generator.integers(array.size)] = min(max(odd, limits.min), limits.max)
    elif action == 4:
        array = array[: generator.integers(len(array) + 1)]
    elif action == 5:
        array = np.concatenate([array, array[:1]])
    elif action == 6:
        with np.errstate(all="ignore"):
            array = array.astype(TYPES[generator.integers(len(TYPES))])
    else:
        array = array[::-1]
    return array


def tried(generator: np.random.Generator, learner: Any) -> str:
    """What becomes of one corrupt matrix: "refused" or "learned"; raises anything that is no error of ours."""
    kind = FORMATS[generator.integers(len(FORMATS))]
    try:
        X = corrupt(generator, kind)
    except (ValueError, TypeError, OverflowError, IndexError, RuntimeError):
        return "not made"  # SciPy or NumPy refuses it
    try:
        batch = as_batch(X)
    except InputError:
        found = "refused"
    else:
        found = "learned"
        data, indices, starts = batch.stored
        assert len(starts) == batch.rows + 1 and starts[0] == 0 and starts[-1] == len(data) == len(indices)
        assert np.all(np.diff(starts) >= 0)
        assert np.all((indices >= 0) & (indices < batch.columns))
    try:
        learner.learn_many(X, Y)
        assert found == "learned"
    except OnepassError:
        pass
    try:
        learner.predict_many(X)
        assert found == "learned"
    except OnepassError:
        pass
    return found


def fuzz(count: int, seed: int = 0) -> dict[str, int]:
    generator = np.random.default_rng(seed)
    learners = [make() for make in LEARNERS.values()]
    counts: dict[str, int] = {}
    with np.errstate(all="ignore"):
        for number in range(count):
            if number % 1000 == 0:
                learners = [make() for make in LEARNERS.values()]
            found = tried(generator, learners[number % len(learners)])
            counts[found] = counts.get(found, 0) + 1
    return counts


if __name__ == "__main__":
    print(fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
