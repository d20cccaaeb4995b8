"""Validate sparse rows as users give them, before anything reads them.

SciPy, NumPy and the loops trust the arrays of a sparse matrix: a wrong array crashes the process. Only this module
validates them, in the format that the user gave, before SciPy converts them.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError, InputError
from .reals import KINDS

__all__ = ["Arrays", "dense", "merged", "read_csr"]

Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # values, indices, starts
BUILD = "build it with scipy.sparse, which checks"


def read_csr(X: Any, name: str = "X", inside: bool = True) -> tuple[Arrays, int, int]:
    """The three arrays of a sparse matrix or row, well formed except for NaN, and the numbers of rows and columns.

    With `inside=False`, the loops find indices outside the shape while they read.
    """
    shape = tuple(map(int, X.shape))
    if len(shape) not in (1, 2):
        raise FeatureError(f"{name} must be a table of rows and columns, got {len(shape)} dimensions: shape {shape}")
    rows, columns = (1, *shape)[-2:]
    if min(rows, columns) < 0:
        _refuse(name, f"its shape is {shape}")
    try:
        arrays = _arrays(X, name, rows, columns, inside)
    except InputError:
        raise
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise InputError(f"{name} is not a valid sparse matrix ({type(error).__name__}: {error}); {BUILD}") from None
    return arrays, rows, columns


def _arrays(X: Any, name: str, rows: int, columns: int, inside: bool) -> Arrays:
    kind = getattr(X, "format", "csr")
    if kind == "lil":
        return _lists(X, name, rows, columns)
    if kind == "dia":
        return _diagonals(X, name, rows, columns)
    if len(X.shape) == 1 and kind != "csr":
        X = X.tocoo().reshape(1, -1)
        kind = "coo"
    if kind == "csc":
        _check(X.data, X.indices, X.indptr, columns, rows, name, ("row", "column"))
    elif kind == "bsr":
        _check_blocks(X, name, rows, columns)
    elif kind != "csr":
        X = X.tocoo()  # SciPy converts DOK without its loops
        _check_places(X, name, rows, columns)
    if kind != "csr" or not hasattr(X, "indptr"):
        X = X.tocsr()
    return _check(X.data, X.indices, X.indptr, rows, columns, name, ("column", "row"), inside)


def _check(
    data: Any, indices: Any, starts: Any, major: int, minor: int, name: str, words: tuple[str, str], inside: bool = True
) -> Arrays:
    """The arrays of a matrix compressed along `major`, cut to the length that `starts` gives."""
    for array, what, kinds in ((starts, "indptr", "iu"), (indices, "indices", "iu"), (data, "data", KINDS)):
        _check_array(array, what, kinds, name)
    if len(starts) != major + 1:
        _refuse(name, f"indptr has {len(starts)} entries for {major} {words[1]}s, expected one more than these")
    if starts[0] != 0:
        _refuse(name, f"indptr begins at {starts[0]}, not at 0")
    falls = starts[1:] < starts[:-1]
    if falls.any():
        at = int(np.argmax(falls))
        _refuse(name, f"indptr falls from {starts[at]} to {starts[at + 1]} at {words[1]} {at}")
    size = int(starts[-1])
    if size > min(len(data), len(indices)):
        stored = f"there are {len(data)} values and {len(indices)} indices"
        _refuse(name, f"indptr ends at {size}, but {stored}")
    if len(data) != size or len(indices) != size:
        data, indices = data[:size], indices[:size]
    if inside and size and not _within(indices, minor):
        at = int(np.argmax((indices < 0) | (indices >= minor)))
        row = int(np.searchsorted(starts, at, side="right")) - 1
        raise InputError(
            f"{name} has {words[0]} index {indices[at]} in {words[1]} {row}, outside its shape; {BUILD}. "
            "Nothing of this call was learned"
        )
    return data, indices, starts


def _check_array(array: Any, what: str, kinds: str, name: str) -> None:
    if not isinstance(array, np.ndarray) or array.ndim != 1:
        _refuse(name, f"its {what} are not an array of one dimension")
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} must hold real numbers")
    if array.dtype.kind not in kinds:
        expected = "real numbers" if kinds == KINDS else "whole numbers"
        _refuse(name, f"its {what} are of type {array.dtype}, expected {expected}")


def _within(indices: NDArray[Any], size: int) -> bool:
    """Are all from 0 to size − 1? One pass for SciPy's integer types: read as unsigned, a negative index is huge."""
    unsigned = {"i4": np.uint32, "i8": np.uint64}.get(indices.dtype.str[1:])
    if unsigned is not None and size < np.iinfo(indices.dtype).max:
        return bool(indices.view(unsigned).max() < size)
    return bool(indices.min() >= 0 and int(indices.max()) < size)


def _check_places(X: Any, name: str, rows: int, columns: int) -> None:
    """The row and column of each value of a COO matrix."""
    for array, size, what in ((X.row, rows, "row"), (X.col, columns, "column")):
        _check_array(array, f"{what}s", "iu", name)
        if len(array) != len(X.data):
            _refuse(name, f"there are {len(X.data)} values and {len(array)} {what} indices")
        if len(array) and not _within(array, size):
            bad = array[(array < 0) | (array >= size)][0]
            raise InputError(f"{name} has {what} index {bad}, outside its shape; {BUILD}")
    _check_array(X.data, "data", KINDS, name)


def _check_blocks(X: Any, name: str, rows: int, columns: int) -> None:
    data = X.data
    if not isinstance(data, np.ndarray) or data.ndim != 3 or 0 in data.shape[1:]:
        _refuse(name, "its data are not blocks")
    high, wide = data.shape[1:]
    if rows % high or columns % wide:
        _refuse(name, f"blocks of {high} × {wide} do not fill its shape")
    _check_array(data.ravel(), "data", KINDS, name)
    places = np.broadcast_to(np.int8(0), len(data))  # one for each block
    _check(places, X.indices, X.indptr, rows // high, columns // wide, name, ("block column", "block row"))


def _lists(X: Any, name: str, rows: int, columns: int) -> Arrays:
    """A LIL matrix, read without SciPy, whose loops assume lists of equal lengths."""
    if len(X.rows) != rows or len(X.data) != rows:
        _refuse(name, f"there are {len(X.rows)} lists of columns and {len(X.data)} of values for {rows} rows")
    lengths = [len(row) for row in X.rows]
    if lengths != [len(row) for row in X.data]:
        _refuse(name, "a row has more columns than values, or fewer")
    starts = np.cumsum([0, *lengths])
    indices = np.array(list(chain.from_iterable(X.rows)), dtype=None if starts[-1] else np.int64)
    values = np.array(list(chain.from_iterable(X.data)), dtype=None if starts[-1] else np.float64)
    return _check(values, indices, starts, rows, columns, name, ("column", "row"))


def _diagonals(X: Any, name: str, rows: int, columns: int) -> Arrays:
    """A DIA matrix: element j of a diagonal is in column j, `offset` rows above the main diagonal."""
    data, offsets = X.data, X.offsets
    _check_array(offsets, "offsets", "iu", name)
    if not isinstance(data, np.ndarray) or data.ndim != 2 or len(data) != len(offsets):
        _refuse(name, f"there are {len(offsets)} offsets for {len(data)} diagonals")
    _check_array(data.ravel(), "data", KINDS, name)
    inside = (offsets > -rows) & (offsets < columns)
    data = data[inside, :columns]
    at = np.arange(data.shape[1]) - offsets[inside, np.newaxis].astype(np.int64)
    there = (at >= 0) & (at < rows) & (data != 0)
    column = np.broadcast_to(np.arange(data.shape[1]), data.shape)[there]
    order = np.lexsort((column, at[there]))
    starts = np.concatenate([[0], np.cumsum(np.bincount(at[there], minlength=rows))])
    return data[there][order], column[order], starts


def _refuse(name: str, why: str) -> NoReturn:
    raise InputError(f"{name} is not a valid sparse matrix: {why}; {BUILD}. Nothing of this call was learned")


def merged(arrays: Arrays) -> Arrays:
    """Rows with ascending columns; duplicates within a row are added up in their order in the row."""
    data, indices, starts = arrays
    if len(indices) < 2:
        return arrays
    rises = indices[1:] > indices[:-1]
    ends = starts[1:-1]
    rises[ends[(ends > 0) & (ends < len(indices))] - 1] = True  # where the next row begins
    if rises.all():
        return arrays
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((indices, rows))  # stable
    rows, indices = rows[order], indices[order]
    first = np.concatenate([[True], (rows[1:] != rows[:-1]) | (indices[1:] != indices[:-1])])
    values = np.bincount(np.cumsum(first) - 1, weights=data[order])
    counts = np.bincount(rows[first], minlength=len(starts) - 1)
    return values, indices[first], np.concatenate([[0], np.cumsum(counts)]).astype(starts.dtype)


def dense(X: Any, name: str) -> NDArray[Any]:
    """A table, sparse or not, as an array."""
    if not hasattr(X, "tocsr"):
        return np.asarray(X)
    import scipy.sparse

    arrays, rows, columns = read_csr(X, name)
    return np.asarray(scipy.sparse.csr_matrix(arrays, shape=(rows, columns)).toarray())
