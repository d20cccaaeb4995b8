"""Promise 2: nothing malformed is learned. A named error with its place and what to do; the saved bytes stand still."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from support import grid
from support.grid import LABELS, dicts
from support.refusals import INF, KINDS, NAN, ROWS, D, answers, learner, refuses, table

from onepass.errors import FeatureError, InputError, LabelError
from onepass.estimators.linear import LinearRegressor

# -- tables ------------------------------------------------------------------------------------------------------------


def csr_with(value: float, **change: Any) -> Any:
    X = grid.csr(table(value))
    for name, (at, to) in change.items():
        getattr(X, name)[at] = to
    return X


WORDS = {"x0": ["a"] * ROWS, **{f"x{j}": [1.0] * ROWS for j in range(1, D)}}
# what came → (it, the error, what the message says). The second message is scikit-learn's, where it differs.
TABLES: dict[str, tuple[Any, type[Exception], str]] = {
    "nan": (table(NAN), InputError, r"X\[1, 2\] is NaN; drop or impute"),
    "infinity": (table(INF), InputError, r"X\[1, 2\] is infinity"),
    "-infinity": (table(-INF), InputError, r"X\[1, 2\] is -infinity"),
    "nan in float32": (table(NAN, np.float32), InputError, r"X\[1, 2\] is NaN"),
    "nan in csr": (csr_with(NAN), InputError, r"X\[1, 2\] is NaN"),
    "infinity in csr": (csr_with(INF), InputError, r"X\[1, 2\] is infinity"),
    "nan in a list": (table(NAN).tolist(), InputError, r"X\[1, 2\] is NaN"),
    "nan in a frame": (pd.DataFrame(table(NAN)), InputError, r"X\[1, 2\] is NaN"),
    "column outside": (csr_with(1.0, indices=(3, 77)), InputError, "column index 77 in row 0, outside"),
    "column below": (csr_with(1.0, indices=(3, -1)), InputError, "column index -1 in row 0|negative index"),
    "one dimension": (table()[0], InputError, r"got 1 dimension|Expected 2D array, got 1D"),
    "three dimensions": (table()[None], InputError, "got 3 dimension|dim 3"),
    "a column more": (np.ones((ROWS, D + 1)), InputError, f"X has {D + 1} features, but .* {D} features"),
    "a column less": (np.ones((ROWS, D - 1)), InputError, f"X has {D - 1} features, but .* {D} features"),
    "csr too wide": (grid.csr(np.ones((ROWS, D + 1))), InputError, f"X has {D + 1} features, but .* {D} features"),
    "no rows": (table()[:0], InputError, "no rows|0 sample"),
    "no columns": (table()[:, :0], InputError, "0 feature"),
    "empty list": ([], InputError, "got 1 dimension|Expected 2D array"),
    "rows of different lengths": ([[1.0] * D, [1.0]] * 2 + [[1.0]], InputError, "different lengths|inhomogeneous"),
    "mappings among rows": ([[1.0] * D] * 4 + [{"a": 1.0}], InputError, "different lengths or kinds|inhomogeneous"),
    "rows among mappings": ([{"a": 1.0}] * 4 + [[1.0] * D], InputError, "unnamed features|inhomogeneous"),
    "words": (table("red", object), InputError, "could not convert string to float: 'red'"),
    "text": (table().astype(str), InputError, "must hold numbers, got <U|arrays of bytes/strings"),
    "words in a frame": (pd.DataFrame(WORDS), InputError, "could not convert string to float|must hold numbers"),
    "dates": (np.full((ROWS, D), "2020-01-01", "M8[D]"), InputError, "must hold numbers, got datetime64"),
    "none among objects": (table(None, object), InputError, r"X\[1, 2\] is NaN"),
    "a list among objects": (table([1.0], object), InputError, "setting an array element with a sequence"),
    # scikit-learn's own check wants a TypeError of fit here
    "a mapping among objects": (table({"a": 1}, object), (InputError, TypeError), "argument must be .* number"),
    "complex": (table(1j, complex), InputError, "Complex data not supported"),
    "None": (None, InputError, "got 0 dimension|got scalar"),
    "a number": (5.0, InputError, "got 0 dimension|got scalar"),
    "a string": ("hello", InputError, "got 0 dimension|could not convert|got scalar|bytes/strings"),
    "too large an integer": (table(10**400, object), (InputError, OverflowError), "too large"),
}
VERBS = ("fit", "partial_fit", "learn_many", "predict_then_learn", "predict", "predict_many")
OTHER_WIDTHS = ("a column more", "a column less", "csr too wide")
LEGAL = {*(("fit", what) for what in OTHER_WIDTHS), ("predict_many", "no rows")}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(("verb", "what"), [(v, w) for w in TABLES for v in VERBS if (v, w) not in LEGAL])
@pytest.mark.parametrize("kind", KINDS)
def test_tables(kind: str, what: str, verb: str) -> None:
    X, error, message = TABLES[what]
    y = answers(kind)
    estimator = learner(kind)
    arguments = (X,) if verb.startswith("predict") and verb != "predict_then_learn" else (X, y)
    refuses(estimator, error, message, lambda: getattr(estimator, verb)(*arguments))
    if isinstance(error, type) and not verb.startswith("predict"):  # a fresh one is left untouched too
        fresh = type(estimator)()
        extra = {"classes": LABELS[kind]} if verb == "partial_fit" and kind != "regression" else {}
        if what not in (*OTHER_WIDTHS, "rows among mappings", "no columns"):
            with pytest.raises(error):
                getattr(fresh, verb)(*arguments, **extra)
            assert vars(fresh) == vars(type(estimator)())


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_name_their_columns(frame: Any) -> None:
    """A frame given to the stream's methods names the features: another order is refused, mappings may follow."""
    X = {"b": [1.0, -1.0, 2.0], "a": [0.5, 0.25, 0.0]}
    y = [1.0, -1.0, 2.0]
    estimator, by_names = LinearRegressor("adaline"), LinearRegressor("adaline")
    estimator.learn_many(frame(X), y)
    for i in range(3):
        by_names.learn_one({name: column[i] for name, column in X.items()}, y[i])
    assert estimator.weights_ == pytest.approx(by_names.weights_, rel=1e-12)
    swapped = frame({"a": X["a"], "b": X["b"]})
    message = "column 0 of X is 'a', but this model has learned 'b' there; give the columns in the same order"
    for verb, arguments in (("learn_many", (swapped, y)), ("predict_many", (swapped,)), ("predict", (swapped,))):
        refuses(estimator, FeatureError, message, lambda v=verb, a=arguments: getattr(estimator, v)(*a))
    estimator.learn_one({"a": 1.0, "new": 2.0}, 1.0)
    assert set(estimator.weights_) == {"a", "b", "new"}
    estimator.learn_many(frame(X), y)
    before = estimator.t_
    unnamed = LinearRegressor("adaline")
    unnamed.learn_many(np.ones((2, 2)), [1.0, 2.0])
    unnamed.learn_many(frame(X), y)  # rows came first: positions they stay
    assert (before, set(unnamed.weights_)) == (7, {0, 1})


# -- answers and importances -------------------------------------------------------------------------------------------

LABEL_ERRORS: dict[str, tuple[Any, str]] = {
    "too few": (["no"] * 3, "X has 5 rows, y has 3"),
    "None": (None, r"y must hold one label per row, got None|shape \(\)"),
    "one label": ("no", r"y must hold one label per row, got 'no'|shape \(\)"),
    "a table": (np.full((ROWS, 2), "no"), r"shape \(5, 2\)"),
    "not declared": (["no", "no", "other", "no", "no"], r"y\[2\]: label 'other' is not one of the declared classes"),
    "None among them": (np.array(["no", None, "no", "no", "no"], dtype=object), r"y\[1\]|NoneType"),
    "nan among them": ([0.0, NAN, 0.0, 0.0, 0.0], r"y\[[01]\]|NaN"),
    "not hashable": (["no", ["no"], "no", "no", "no"], r"y\[1\]: a label must be hashable|inhomogeneous"),
}
TARGET_ERRORS: dict[str, tuple[Any, str]] = {
    "too few": ([1.0] * 3, "X has 5 rows, y has 3"),
    "None": (None, r"one number per row, got shape \(\)|got an array of shape \(\)"),
    "a table": (np.ones((ROWS, 2)), r"shape \(5, 2\)"),
    "nan": ([0.0, NAN, 1.0, 1.0, 1.0], r"y\[1\] is nan"),
    "infinity": ([0.0, 1.0, -INF, 1.0, 1.0], r"y\[2\] is -inf"),
    "text": (["1.0"] * ROWS, "y must hold numbers for regression"),
    "dates": (np.full(ROWS, "2020-01-01", "M8[D]"), "y must hold numbers for regression"),
    "None among them": ([1.0, None, 1.0, 1.0, 1.0], r"y\[1\] is nan|y must hold numbers"),
    "nested": ([1.0, [2.0], 1.0, 1.0, 1.0], "y must hold numbers|inhomogeneous"),
    "complex": ([1j] * ROWS, "y must hold numbers|Complex data"),
    "too large": ([10**400] * ROWS, "y must hold numbers|too large"),
}
ANSWERS = [("binary", what) for what in LABEL_ERRORS] + [("regression", what) for what in TARGET_ERRORS]
LEARNING = [verb for verb in VERBS if verb not in ("predict", "predict_many")]
ANSWERED = [(*cell, verb) for cell in ANSWERS for verb in LEARNING if (verb, cell[1]) != ("fit", "not declared")]


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # scikit-learn's, before its error
@pytest.mark.parametrize(("kind", "what", "verb"), ANSWERED)  # fit takes its classes from y
def test_answers(kind: str, what: str, verb: str) -> None:
    y, message = (TARGET_ERRORS if kind == "regression" else LABEL_ERRORS)[what]
    estimator = learner(kind)
    refuses(estimator, InputError, message, lambda: getattr(estimator, verb)(table(), y))


@pytest.mark.parametrize("what", [w for w in TARGET_ERRORS if w != "too large"])
def test_answers_beside_mappings(what: str) -> None:
    estimator = learner("regression", "named")
    y, message = TARGET_ERRORS[what]
    refuses(estimator, InputError, message, lambda: estimator.learn_many(dicts(table()), y))


IMPORTANCES: dict[str, tuple[Any, str]] = {
    "negative": ([1.0, 1.0, -1.0, 1.0, 1.0], "finite and >= 0, but entry 2 is -1.0"),
    "nan": ([1.0, NAN, 1.0, 1.0, 1.0], "finite and >= 0, but entry 1 is nan"),
    "infinity": ([1.0, 1.0, 1.0, 1.0, INF], "finite and >= 0, but entry 4 is inf"),
    "None among them": ([1.0, None, 1.0, 1.0, 1.0], "finite and >= 0, but entry 1 is nan"),
    "too few": ([1.0], r"X has 5 rows, got shape \(1,\)"),
    "a table": (np.ones((ROWS, 1)), r"X has 5 rows, got shape \(5, 1\)"),
    "text": (["1"] * ROWS, "one number >= 0 per row: got <U1"),
    "complex": ([1j] * ROWS, "one number >= 0 per row: got complex"),
    "a negative number": (-1.0, "finite and >= 0, but entry 0 is -1.0"),
    "too large": ([10**400] * ROWS, "too large"),
}


@pytest.mark.parametrize("verb", ["fit", "partial_fit", "learn_many", "mappings"])
@pytest.mark.parametrize("what", IMPORTANCES)
@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_importances(kind: str, what: str, verb: str) -> None:
    c, message = IMPORTANCES[what]
    y = answers(kind)
    if verb == "mappings":
        estimator = learner(kind, "named")
        refuses(estimator, InputError, message, lambda: estimator.learn_many(dicts(table()), y, c))
    elif verb == "learn_many":
        estimator = learner(kind)
        refuses(estimator, InputError, message, lambda: estimator.learn_many(table(), y, c))
    else:
        estimator = learner(kind)
        refuses(estimator, InputError, message, lambda: getattr(estimator, verb)(table(), y, sample_weight=c))


def test_importance_zero_is_legal_everywhere_but_in_a_fit_of_nothing() -> None:
    for kind in KINDS:
        estimator, before = learner(kind), learner(kind)
        estimator.partial_fit(table(), answers(kind), sample_weight=[0.0] * ROWS)
        estimator.learn_many(table(), answers(kind), [0.0] * ROWS)
        estimator.learn_one(table()[0], answers(kind)[0], 0.0)
        assert estimator.t_ == before.t_ + 2 * ROWS + 1
        assert np.array_equal(estimator.coef_, before.coef_)
        nothing = (table(), answers(kind), [0.0] * ROWS)
        refuses(estimator, InputError, "weight is zero", lambda e=estimator, n=nothing: e.fit(*n))


# -- one example -------------------------------------------------------------------------------------------------------


def row(value: Any = 0.0) -> np.ndarray:
    return table(value)[1]


ONES: dict[str, tuple[Any, type[Exception], str]] = {
    "nan": (row(NAN), InputError, r"x\[2\] is nan"),
    "infinity": (row(INF).tolist(), InputError, r"x\[2\] is inf"),
    "a number more": (np.ones(D + 1), FeatureError, f"x has {D + 1} features, but .* rows of {D}"),
    "a number less": ([1.0] * (D - 1), FeatureError, f"x has {D - 1} features, but .* rows of {D}"),
    "nothing": ([], FeatureError, "x has 0 features"),
    "two rows": (table()[:2], FeatureError, r"one row of numbers, got an array of shape \(2, 19\); use learn_many"),
    "a mapping": ({"a": 1.0}, FeatureError, "rows of 19 unnamed features; give it such a row"),
    "None": (None, InputError, "mapping of names to numbers or a row of numbers, got None"),
    "a string": ("abc", InputError, "got 'abc'"),
    "bytes": (b"abc", InputError, "got b'abc'"),
    "a number": (3.0, InputError, "got 3.0"),
    "a generator": ((v for v in [1.0]), InputError, "generator"),
    "words": (["red"] * D, InputError, "must hold numbers, got <U3"),
    "nested": ([1.0] * (D - 1) + [[1.0]], FeatureError, "nested"),
    "complex": (row() + 1j, InputError, "Complex"),
    "None among them": ([None] * D, InputError, r"x\[0\] is nan"),
    "too large": ([10**400] * D, InputError, "too large"),
}
MAPPINGS: dict[str, tuple[Any, type[Exception], str]] = {
    "nan": ({"a": 1.0, "b": NAN}, InputError, "feature 'b' must be a finite number, got nan; leave the feature out"),
    "infinity": ({"a": -INF}, InputError, "feature 'a' must be a finite number, got -inf"),
    "numpy nan": ({"a": np.float32(NAN)}, InputError, "feature 'a' must be a finite number"),
    "None": ({"f0": None}, InputError, "feature 'f0' must be a number, a string or a boolean, got None"),
    "a list": ({"a": [1.0]}, InputError, r"feature 'a' must be .* got \[1.0\] \(list\)"),
    "a mapping": ({"a": {"b": 1}}, InputError, r"feature 'a' must be .* got {'b': 1} \(dict\)"),
    "an array": ({"a": np.ones(2)}, InputError, "feature 'a' must be .*ndarray"),
    "complex": ({"a": 1j}, InputError, r"feature 'a' must be .* got 1j \(complex\)"),
    "bytes": ({"a": b"x"}, InputError, r"feature 'a' must be .* got b'x' \(bytes\)"),
    "an object": ({"a": object()}, InputError, r"feature 'a' must be .*\(object\)"),
    "too large": ({"a": 10**400}, InputError, "feature 'a' must be"),
    "name: tuple": ({("a", 1): 1.0}, FeatureError, r"names must be strings .* got \('a', 1\) \(tuple\); convert it"),
    "name: None": ({None: 1.0}, FeatureError, r"names must be strings .* got None \(NoneType\)"),
    "name: float": ({1.5: 1.0}, FeatureError, r"names must be strings .* got 1.5 \(float\)"),
    "name: bytes": ({b"a": 1.0}, FeatureError, r"names must be strings .* got b'a' \(bytes\)"),
    "name: bool": ({True: 1.0}, FeatureError, r"names must be strings .* got True \(bool\)"),
}


@pytest.mark.parametrize("verb", ["learn_one", "predict_one", "explain_one"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ONES)
def test_one_row(what: str, kind: str, verb: str) -> None:
    x, error, message = ONES[what]
    estimator = learner(kind)
    arguments = (x, answers(kind)[0]) if verb == "learn_one" else (x,)
    refuses(estimator, error, message, lambda: getattr(estimator, verb)(*arguments))


@pytest.mark.parametrize("form", ["named", "hashed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", MAPPINGS)
def test_one_mapping(what: str, kind: str, form: str) -> None:
    x, error, message = MAPPINGS[what]
    estimator = learner(kind, form)
    y = answers(kind)
    refuses(estimator, error, message, lambda: estimator.predict_one(x))
    refuses(estimator, error, message, lambda: estimator.learn_one(x, y[0]))
    if kind != "regression":  # a new class and new names of a refused round are forgotten again
        refuses(estimator, error, message, lambda: estimator.learn_one({"new": 1.0, **x}, "new"))
    many = [{"fresh": 1.0}, {"f0": 1.0}, x]
    refuses(estimator, error, "row 2: .*" + message, lambda: estimator.learn_many(many, y[:3]))
    refuses(estimator, InputError, "row 1: .*mapping", lambda: estimator.learn_many([{"a": 1.0}, [1.0]], y[:2]))


@pytest.mark.parametrize(
    ("y", "message"),
    [(None, "must not be None"), (NAN, "must not be nan"), (["no"], "hashable, got"), (object(), "file cannot hold")],
)
def test_one_label(y: Any, message: str) -> None:
    named, declared = learner("binary", "named"), learner("binary")
    refuses(named, LabelError, message, lambda: named.learn_one({"new": 1.0}, y))
    refuses(named, LabelError, message, lambda: named.learn_many([{"f0": 1.0}] * 2, ["new", y]))
    refuses(declared, LabelError, "declared classes|hashable", lambda: declared.learn_one(row(), y))
    refuses(declared, LabelError, r"declared classes \['no', 'yes'\]", lambda: declared.learn_one(row(), "maybe"))


@pytest.mark.parametrize("y", [None, NAN, INF, "1.0", [1.0], 1j, np.ones(2), 10**400])
def test_one_target(y: Any) -> None:
    for estimator, x in ((learner("regression"), row()), (learner("regression", "named"), {"new": 1.0})):
        refuses(estimator, LabelError, "y must be a finite number, got", lambda e=estimator, x=x: e.learn_one(x, y))


@pytest.mark.parametrize("c", [-1.0, NAN, INF, -INF])
@pytest.mark.parametrize("kind", KINDS)
def test_one_importance(kind: str, c: float) -> None:
    estimator = learner(kind)
    message = "importance must be a finite number >= 0, got"
    refuses(estimator, InputError, message, lambda: estimator.learn_one(row(), answers(kind)[0], c))
    for wrong in ("1", None, [1.0], 1j):
        refuses(estimator, InputError, message, lambda w=wrong: estimator.learn_one(row(), answers(kind)[0], w))
