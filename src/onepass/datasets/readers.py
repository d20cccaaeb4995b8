"""Files of real sets as blocks of rows, read lazily: (X, y), or (X, y, query)."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError
from ..rows.rows import CSR

Block = tuple[Any, ...]
ROWS = 1000  # rows read together

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def open_bytes(path: Path) -> IO[bytes]:
    opened: IO[bytes] = OPENERS.get(path.suffix, open)(path, "rb")
    return opened


def lines(path: Path) -> Iterator[str]:
    with open_bytes(path) as file:
        yield from io.TextIOWrapper(file, encoding="utf-8", newline="")


def numbers(path: Path, label: str, *, names: bool = False) -> Iterator[Block]:
    """A CSV file of numbers under a heading; `label` is the class, a whole number, or with `names` a word."""
    rows = csv.reader(lines(path))
    heading = next(rows)
    at = heading.index(label)
    for part in _batched(rows):
        table = np.array([[*row[:at], *row[at + 1 :]] for row in part], dtype=np.float64)
        answers = [row[at] for row in part]
        yield table, np.array(answers) if names else np.array(answers, dtype=np.float64).astype(np.int64)


def mappings(
    path: Path,
    answer: Callable[[dict[str, str]], Any],
    *,
    drop: tuple[str, ...],
    words: tuple[str, ...] = (),
    heading: list[str] | None = None,
    delimiter: str = ",",
) -> Iterator[Block]:
    """A CSV file as mappings of numbers, and of words if a value is not a number or its column is in `words`.

    Empty values are left out; so is a row for which `answer` is None.
    """
    for part in _batched(csv.DictReader(lines(path), fieldnames=heading, delimiter=delimiter)):
        X, y = [], []
        for row in part:
            label = answer(row)
            if label is not None:
                kept = {k: v for k, v in row.items() if v != "" and k not in drop}
                X.append({k: v if k in words else _value(v) for k, v in kept.items()})
                y.append(label)
        if y:
            yield X, np.array(y)


def svmlight(path: Path, columns: int, *, zero_based: bool = False, queries: bool = False) -> Iterator[Block]:
    """LIBSVM text; with `queries` also the qid of each row."""
    shift = 0 if zero_based else 1
    for part in _batched(lines(path)):
        y, query, indices, data, ends = [], [], [], [], [0]
        for line in part:
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            y.append(float(fields[0]))
            for field in fields[1:]:
                name, _, value = field.partition(":")
                if name == "qid":
                    query.append(int(value))
                else:
                    indices.append(int(name) - shift)
                    data.append(float(value))
            ends.append(len(data))
        if y:
            X = CSR(
                np.array(ends, dtype=np.int32),
                np.array(indices, dtype=np.int32),
                np.array(data, dtype=np.float64),
                (len(y), columns),
            )
            labels = np.array(y).astype(np.int64)
            yield (X, labels, np.array(query)) if queries else (X, labels)


def letor(path: Path, columns: int) -> Iterator[Block]:
    """LETOR text as dense tables."""
    for X, y, query in svmlight(path, columns, queries=True):
        table = np.zeros((len(y), columns))
        table[np.repeat(np.arange(len(y)), np.diff(X.indptr)), X.indices] = X.data
        yield table, y, query


def sparse(
    path: Path, answers: Callable[[Any], NDArray[Any]], start: int = 0, stop: int | None = None
) -> Iterator[Block]:
    """CSR arrays in an .npz file. The compact arrays stay in memory; rows are converted a block at a time."""
    with np.load(path) as z:
        data, indices, indptr, columns = z["data"], z["indices"], z["indptr"], int(z["shape"][1])
        y = answers(z)
    stop = len(y) if stop is None else stop
    for first in range(start, stop, ROWS):
        last = min(first + ROWS, stop)
        low, high = int(indptr[first]), int(indptr[last])
        X = CSR(
            (indptr[first : last + 1] - low).astype(np.int32),
            indices[low:high].astype(np.int32),
            data[low:high].astype(np.float64),
            (last - first, columns),
        )
        yield X, y[first:last]


def covtype(path: Path) -> Iterator[Block]:
    with np.load(path) as z:
        number, wilderness, soil, y = z["num"], z["wilderness"], z["soil"], z["y"]
    four, forty = np.eye(4), np.eye(40)
    for start in range(0, len(y), ROWS):
        cut = slice(start, start + ROWS)
        X = np.concatenate([number[cut].astype(np.float64), four[wilderness[cut]], forty[soil[cut]]], axis=1)
        yield X, y[cut].astype(np.int64)


def arrays(path: Path, read: Callable[[Any], tuple[NDArray[Any], NDArray[Any]]]) -> Iterator[Block]:
    """A table in an .npz file, converted a block at a time."""
    with np.load(path) as z:
        X, y = read(z)
    for start in range(0, len(y), ROWS):
        cut = slice(start, start + ROWS)
        yield X[cut].astype(np.float64), y[cut].astype(np.int64)


def idx(images: Path, labels: Path) -> Iterator[Block]:
    """MNIST's format: grey from 0 to 1."""
    with open_bytes(images) as pixels, open_bytes(labels) as answers:
        size = int(np.prod(np.frombuffer(pixels.read(16), dtype=">u4")[2:]))
        answers.read(8)
        while y := answers.read(ROWS):
            X = np.frombuffer(pixels.read(size * len(y)), dtype=np.uint8).reshape(len(y), size)
            yield X / 255.0, np.frombuffer(y, dtype=np.uint8).astype(np.int64)


def matlab(path: Path) -> Iterator[Block]:
    """LIBOL's matrices: the label, then the features."""
    from scipy.io import loadmat

    table = np.asarray(loadmat(path)["data"], dtype=np.float64)
    yield table[:, 1:], table[:, 0].astype(np.int64)


def arff(path: Path, labels: int) -> Iterator[Block]:
    """ARFF without quotes; the first `labels` attributes are label sets, or with 0 the last one is a class."""
    rows = itertools.dropwhile(lambda line: not re.match("(?i)@data", line), lines(path))
    next(rows)
    for part in _batched(line.strip().split(",") for line in rows if line.strip() and not line.startswith("%")):
        if labels:
            table = np.array(part, dtype=np.float64)
            yield table[:, labels:], table[:, :labels].astype(np.int64)
        else:
            yield np.array([row[:-1] for row in part], dtype=np.float64), np.array([row[-1] for row in part])


def pictures(path: Path) -> Iterator[Block]:
    """A zip of JPEG pictures, folder = class, in the order of their names; RGB from 0 to 1."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError("pictures need Pillow, which is not installed: pip install pillow") from error
    with zipfile.ZipFile(path) as archive:
        for part in _batched(sorted(name for name in archive.namelist() if not name.endswith("/"))):
            X = [np.asarray(Image.open(io.BytesIO(archive.read(name))).convert("RGB")).ravel() for name in part]
            yield np.array(X) / 255.0, np.array([name.partition("/")[0] for name in part])


def texts(path: Path, features: Callable[[str], Any], label: Callable[[str], Any]) -> Iterator[Block]:
    """Lines "label TAB text"."""
    for part in _batched(lines(path)):
        pairs = [line.rstrip("\r\n").split("\t", 1) for line in part]
        yield [features(text) for _, text in pairs], np.array([label(answer) for answer, _ in pairs])


def words(text: str) -> dict[str, float]:
    """A text as counts of its words, lower case."""
    return {word: float(count) for word, count in Counter(re.findall(r"[a-z0-9']+", text.lower())).items()}


def pairs(one: Path, other: Path | None) -> Iterator[Block]:
    """Sentences and their translations: two files, line by line, or one with a TAB between."""
    both = zip(lines(one), lines(other), strict=True) if other else (line.split("\t") for line in lines(one))
    for part in _batched(both):
        yield [pair[0].strip() for pair in part], [pair[1].strip() for pair in part]


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _batched(rows: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(rows)
    while part := list(itertools.islice(left, ROWS)):
        yield part
