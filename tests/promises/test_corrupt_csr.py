"""A corrupt sparse matrix is refused by every learner and verb, before anything reads it; nothing crashes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.csr_fuzz import fuzz
from test_table_forms import CASES, FITTING, inside, made

from onepass.datasets import CSR
from onepass.errors import InputError


def change(name: str, at: int, to: Any) -> Callable[[Any], None]:
    def work(X: Any) -> None:
        getattr(X, name)[at] = to

    return work


def replace(name: str, by: Callable[[Any], Any]) -> Callable[[Any], None]:
    def work(X: Any) -> None:
        setattr(X, name, by(getattr(X, name)))

    return work


# what is done to a CSR matrix of 24 rows and 5 columns → what the message says
CORRUPT: dict[str, tuple[Callable[[Any], None], str]] = {
    "a start far away": (change("indptr", 3, 2**30), "indptr falls from 1073741824 to"),
    "a last start far away": (change("indptr", -1, 2**30), "indptr ends at 1073741824, but"),
    "a negative start": (change("indptr", 3, -5), "indptr falls from .* to -5 at row 2"),
    "a first start above 0": (change("indptr", 0, 1), "indptr begins at 1, not at 0"),
    "too few starts": (replace("indptr", lambda a: a[:-1]), "indptr has 24 entries for 24 rows"),
    "too many starts": (replace("indptr", lambda a: np.append(a, a[-1])), "indptr has 26 entries for 24 rows"),
    "starts that are floats": (replace("indptr", lambda a: a.astype(float)), "indptr are of type float64"),
    "an index beyond": (change("indices", 2, 2**30), "column index 1073741824 in row 0, outside its shape"),
    "a negative index": (change("indices", 2, -1), "column index -1 in row 0, outside its shape"),
    "too few indices": (replace("indices", lambda a: a[:-1]), "indptr ends at"),
    "indices that are floats": (replace("indices", lambda a: a + 0.5), "indices are of type float64"),
    "indices in a table": (replace("indices", lambda a: a[:, None]), "not an array of one dimension"),
    "too few values": (replace("data", lambda a: a[:-1]), "indptr ends at"),
    "complex values": (replace("data", lambda a: a + 1j), "Complex data not supported"),
    "objects": (replace("data", lambda a: a.astype(object)), "data are of type object"),
    "dates": (replace("data", lambda a: a.astype("M8[D]")), "data are of type datetime64"),
}
LONGER = ("too few starts", "too many starts")  # of which SciPy itself may make something else


def verbs(learner: Any) -> list[str]:
    """All that take a table, learning and asking."""
    names = ("learn_many", "partial_fit", "fit", "predict_many", "predict", "transform_many", "transform", "score_many")
    more = ("predict_then_learn", "decision_function", "predict_proba", "score_samples", "check_rows")
    return [name for name in (*names, *more) if hasattr(learner, name)]


SPARSE = [cell for cell in FITTING if "csr" in inside(*cell.values).traits.forms]


@pytest.mark.full(most=90)
@pytest.mark.parametrize("what", CORRUPT)
@pytest.mark.parametrize(("make", "around"), SPARSE)
def test_a_corrupt_matrix_is_refused(make: Callable[[], Any], around: str, what: str) -> None:
    """By every verb of a learner that has learned, and of one that has not."""
    learner, stream = made(make, around)
    good, y = stream.part(0, len(stream))
    spoil, message = CORRUPT[what]
    for fresh in (False, True):
        known = learner.copy()
        if not fresh:
            known.learn_many(sparse.csr_matrix(good), *(() if y is None else (y,)))
        before = repr(known.state())
        for verb in verbs(known):
            X = sparse.csr_matrix(good)
            spoil(X)
            asks = verb.startswith(("predict", "transform", "score", "decision", "check")) and "learn" not in verb
            try:
                with pytest.raises(InputError, match=message):
                    getattr(known, verb)(*((X,) if asks or y is None else (X, y)))
            except (AttributeError, ValueError, TypeError):
                # Nothing was learned that could be asked, or there is no such verb of scikit-learn's here.
                if not fresh and verb in ("learn_many", "predict_many", "transform_many"):
                    raise
        assert repr(known.state()) == before


def test_the_rows_of_a_stream_made_by_hand_are_checked() -> None:
    X = sparse.csr_matrix(np.eye(4))
    rows = CSR(X.indptr.copy(), X.indices, X.data, (4, 4), distinct=True)
    rows.indptr[2] = 2**30
    with pytest.raises(InputError, match="indptr falls"):
        CASES_BY_NAME["LinearModel"]().learn_many(rows, ["a", "b", "a", "b"])


CASES_BY_NAME = {str(case.id): case.values[0] for case in CASES}


def test_sparse_answers_are_checked() -> None:
    y = sparse.csr_matrix(np.eye(4))
    y.indptr[2] = 2**30
    for verb in ("fit", "learn_many"):
        with pytest.raises(InputError, match="y is not a valid sparse matrix: indptr falls"):
            getattr(CASES_BY_NAME["MultilabelClassifier"](), verb)(np.eye(4), y)


def test_what_is_stored_beyond_the_last_row_is_not_read() -> None:
    """SciPy allows it: arrays that are longer than the last start says."""
    X = sparse.csr_matrix(np.eye(3))
    X.indices, X.data = np.append(X.indices, 99), np.append(X.data, np.nan)
    model = CASES_BY_NAME["GaussianNB"]()
    model.learn_many(X, ["a", "b", "a"])
    assert model.t_ == 3


def test_random_corruption_never_crashes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts = fuzz(3_000, seed=5)
    assert counts["refused"] > 500 and counts["learned"] > 100
