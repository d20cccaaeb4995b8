"""Every check of a sparse matrix, one by one and in every format: without it, this file fails."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import onepass as op
from onepass.errors import FeatureError, InputError
from onepass.rows.csr import dense, merged, read_csr

SOUND = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0], [5.0, 0.0, 0.0, 6.0]])
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")


def given(kind: str) -> Any:
    return sparse.csr_matrix(SOUND).asformat(kind)


def put(name: str, by: Any) -> Callable[[Any], None]:
    """Another array in its place: this one, or what a function makes of the one there."""
    return lambda X: setattr(X, name, by(getattr(X, name)) if callable(by) else by)


def at(name: str, place: int, value: Any) -> Callable[[Any], None]:
    return lambda X: getattr(X, name).__setitem__(place, value)


def coordinate(number: int, by: Callable[[Any], Any]) -> Callable[[Any], None]:
    def work(X: Any) -> None:
        X.coords = tuple(by(each) if axis == number else each for axis, each in enumerate(X.coords))

    return work


def key(row: int, column: int) -> Callable[[Any], None]:
    return lambda X: X._dict.__setitem__((row, column), 1.0)


def first(value: int) -> Callable[[Any], Any]:
    return lambda a: np.concatenate([np.array([value], a.dtype), a[1:]])


def shorter(a: Any) -> Any:
    return a[:-1]


# A format, what is done to it, what the message says.
CORRUPT: list[tuple[str, Callable[[Any], None], str]] = [
    ("csr", put("_shape", (4, -4)), "its shape is"),
    ("csr", put("indptr", list), "indptr are not an array"),
    ("csr", put("data", lambda a: a[:, None]), "data are not an array of one dimension"),
    ("csr", put("data", lambda a: a + 1j), "Complex data not supported"),
    ("csr", put("data", lambda a: a.astype("M8[D]")), "data are of type datetime64"),
    ("csr", put("indices", lambda a: a.astype(float)), "indices are of type float64, expected whole numbers"),
    ("csr", put("indptr", shorter), "indptr has 4 entries for 4 rows"),
    ("csr", at("indptr", 0, 1), "indptr begins at 1"),
    ("csr", at("indptr", 1, 4), "indptr falls from 4 to 3 at row 1"),
    ("csr", at("indptr", -1, 9), "indptr ends at 9, but there are 6 values and 6 indices"),
    ("csr", put("data", shorter), "there are 5 values and 6 indices"),
    ("csr", put("indices", shorter), "there are 6 values and 5 indices"),
    ("csr", at("indices", 1, 4), "column index 4 in row 0, outside"),
    ("csr", at("indices", 2, -1), "column index -1 in row 1, outside"),
    ("csr", put("indices", lambda a: first(-1)(a.astype(np.int16))), "column index -1 in row 0"),
    ("csr", put("indices", lambda a: first(7)(a.astype(np.uint8))), "column index 7 in row 0"),
    ("csc", at("indices", 1, 4), "row index 4 in column 0, outside"),
    ("csc", at("indptr", -1, 2**30), "indptr ends at 1073741824"),
    ("coo", coordinate(0, first(4)), "row index 4, outside"),
    ("coo", coordinate(1, first(-1)), "column index -1, outside"),
    ("coo", coordinate(0, shorter), "there are 6 values and 5 row indices"),
    ("coo", coordinate(1, lambda a: a + 0.0), "columns are of type float64"),
    ("coo", put("data", lambda a: a.astype("m8[D]")), "data are of type timedelta64"),
    ("bsr", put("data", lambda a: a[:, 0]), "its data are not blocks"),
    ("bsr", put("data", lambda a: a[:, :0]), "its data are not blocks"),
    ("bsr", put("_shape", (4, 5)), "blocks of 1 × 2 do not fill its shape"),
    ("bsr", put("data", lambda a: a + 1j), "Complex data"),
    ("bsr", put("data", lambda a: a.astype(object)), "data are of type object"),
    ("bsr", at("indices", 0, 4), "block column index 4 in block row 0"),
    ("lil", put("rows", shorter), "there are 3 lists of columns and 4 of values for 4 rows"),
    ("lil", put("data", shorter), "there are 4 lists of columns and 3 of values for 4 rows"),
    ("lil", lambda X: X.rows[0].pop(), "a row has more columns than values, or fewer"),
    ("lil", lambda X: X.rows[0].__setitem__(0, 4), "column index 4 in row 0"),
    ("lil", lambda X: X.data[0].__setitem__(0, 1j), "Complex data"),
    ("lil", lambda X: X.data[0].__setitem__(0, [1.0]), "not a valid sparse matrix .ValueError"),
    ("dok", key(4, 0), "axis 0 index 4 exceeds"),  # SciPy's own words
    ("dok", key(0, 4), "axis 1 index 4 exceeds"),
    ("dok", key(-1, 0), "negative axis 0 index: -1"),
    ("dia", put("offsets", lambda a: a + 0.5), "offsets are of type float64"),
    ("dia", put("offsets", shorter), r"there are \d offsets for \d diagonals"),
    ("dia", put("data", lambda a: a[0]), "offsets for 4 diagonals"),
    ("dia", put("data", lambda a: a + 1j), "Complex data"),
]


@pytest.mark.parametrize("number", range(len(CORRUPT)), ids=lambda n: f"{CORRUPT[n][0]}, {CORRUPT[n][2]}")
def test_what_is_corrupt_is_refused(number: int) -> None:
    kind, spoil, message = CORRUPT[number]
    X = given(kind)
    if kind == "bsr":
        X = sparse.bsr_matrix(SOUND, blocksize=(1, 2))
    assert read_csr(X)[1:] == (4, 4)
    spoil(X)
    with pytest.raises(InputError, match=message) as caught:
        read_csr(X)
    assert "X" in str(caught.value)


def test_what_has_no_rows_and_columns_is_refused() -> None:
    with pytest.raises(FeatureError, match="got 3 dimensions"):
        read_csr(SimpleNamespace(shape=(1, 2, 3)))
    with pytest.raises(InputError, match="AttributeError"):
        read_csr(SimpleNamespace(shape=(1, 2), format="csc"))


def test_what_is_outside_any_index_type_is_found() -> None:
    """A table of more columns than its indices can count: none may be taken for a large one."""
    X = sparse.csr_matrix((1, 2**31 - 1))
    X.data, X.indices, X.indptr = np.ones(1), np.array([-1], np.int32), np.array([0, 1], np.int32)
    X._shape = (1, 2**32 + 1)
    with pytest.raises(InputError, match="column index -1"):
        read_csr(X)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_sound_is_read(kind: str) -> None:
    (values, indices, starts), rows, columns = read_csr(given(kind))
    found = sparse.csr_matrix((values, indices, starts), shape=(rows, columns)).toarray()
    assert np.array_equal(found, SOUND)
    assert read_csr(sparse.csr_matrix((0, 4)).asformat(kind))[1:] == (0, 4)


def test_diagonals_may_reach_beyond_the_table() -> None:
    X = sparse.dia_matrix((np.arange(1.0, 21.0).reshape(4, 5), [-3, -9, 9, 2]), shape=(4, 4))
    (values, indices, starts), _, _ = read_csr(X)
    found = sparse.csr_matrix((values, indices, starts), shape=(4, 4)).toarray()
    wanted = np.zeros((4, 4))
    wanted[3, 0], wanted[0, 2], wanted[1, 3] = 1.0, 18.0, 19.0
    assert np.array_equal(found, wanted)


def test_columns_of_a_row_are_put_in_order_and_added_up() -> None:
    """The first column of a row may be below the last one of the row before, or the same."""
    sorted_rows = (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), np.array([0, 1, 2, 3]))
    assert merged(sorted_rows) is sorted_rows
    values, indices, starts = merged((2.0 ** np.arange(5), np.array([0, 2, 0, 2, 2]), np.array([0, 1, 3, 5])))
    assert (values.tolist(), indices.tolist()) == ([1.0, 4.0, 2.0, 24.0], [0, 0, 2, 2])
    assert starts.tolist() == [0, 1, 3, 4]


def test_a_sparse_table_that_becomes_an_array_is_checked_first() -> None:
    X = given("csr")
    assert np.array_equal(dense(X, "y"), SOUND)
    X.indices[0] = 2**30
    with pytest.raises(InputError, match="y has column index 1073741824"):
        dense(X, "y")


def test_the_loops_look_for_indices_that_are_not_looked_for_before() -> None:
    model = op.LinearClassifier()
    model.learn_many(given("csr"), list("abab"))
    before = model.state()[1]["v"].tobytes()
    X = given("csr")
    X.indices[0] = 99
    with pytest.raises(InputError, match="column index 99"):
        model.learn_many(X, list("abab"))
    assert model.state()[1]["v"].tobytes() == before
