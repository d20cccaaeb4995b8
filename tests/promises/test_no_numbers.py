"""Dates, durations and complex numbers convert to floats that mean nothing: no learner takes them anywhere."""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra
from test_table_forms import FITTING, TABLES, made

import onepass as op
from onepass.errors import InputError, LabelError


def pandas_value(name: str, *given: Any) -> Callable[[], Any]:
    return lambda: getattr(require_extra("pandas"), name)(*given) if given else getattr(require_extra("pandas"), name)


NO_NUMBERS: dict[str, Callable[[], Any]] = {
    "NaT": lambda: np.datetime64("NaT"),
    "NaT of a unit": lambda: np.datetime64("NaT", "ns"),
    "duration NaT": lambda: np.timedelta64("NaT"),
    "a day": lambda: np.datetime64("2020-01-01"),
    "nanoseconds": lambda: np.datetime64("2020-01-01", "ns"),
    "a duration": lambda: np.timedelta64(3, "D"),
    "a duration in nanoseconds": lambda: np.timedelta64(3, "ns"),
    "a date in an array": lambda: np.array(np.datetime64("2020-01-01", "ns")),
    "pandas NaT": pandas_value("NaT"),
    "pandas Timestamp": pandas_value("Timestamp", "2020-01-01"),
    "pandas Timedelta": pandas_value("Timedelta", 5),
    "Python date": lambda: datetime.date(2020, 1, 1),
    "Python datetime": lambda: datetime.datetime(2020, 1, 1),
    "Python timedelta": lambda: datetime.timedelta(1),
    "complex": lambda: 2 + 0j,
    "NumPy complex": lambda: np.complex128(2),
    "NumPy complex64": lambda: np.complex64(2),
    "a complex array": lambda: np.array(2 + 0j),
}


CATEGORIES = ("OneHotEncoder", "CategoricalNB")  # of which some may be dates
NUMBERS = [cell for cell in FITTING if not str(cell.id).startswith(CATEGORIES)]


@pytest.mark.full(most=90)
@pytest.mark.parametrize("what", NO_NUMBERS)
@pytest.mark.parametrize(("make", "around"), NUMBERS)
def test_none_is_a_feature(make: Callable[[], Any], around: str, what: str) -> None:
    """In a row, a mapping, a list of rows, an array of objects: refused, and nothing changes."""
    learner, stream = made(make, around)
    X, y = stream.part(0, len(stream))
    learner = learner.copy()
    learner.learn_many(X, *(() if y is None else (y,)))
    value, before = NO_NUMBERS[what](), repr(learner.state())
    row = [*X[0].tolist()[:-1], value]
    objects = np.empty((2, len(row)), dtype=object)
    for j, each in enumerate(row):
        objects[0, j], objects[1, j] = 1.0, each
    one = () if y is None else (y[0],)
    two = () if y is None else ([y[0], y[1]],)
    for verb, x, more in (
        ("learn_one", row, one),
        ("learn_one", objects[1], one),
        ("learn_many", [X[0].tolist(), row], two),
        ("learn_many", objects, two),
        ("partial_fit", objects, two),
    ):
        if hasattr(learner, verb) and not (verb == "partial_fit" and learner.traits.answers == "labels"):
            with pytest.raises(InputError):
                getattr(learner, verb)(x, *more)
    if "names" in learner.traits.forms:
        named = make() if around == "alone" else made(make, around)[0]
        with pytest.raises(InputError):
            named.learn_one({"a": 1.0, "b": value}, *one)
    assert repr(learner.state()) == before


ARRAYS = ("a date in an array", "a complex array")  # which cannot be hashed: no labels at all
ANSWERED = [
    pytest.param(*cell.values, what, id=f"{cell.id}-{what}")
    for cell in TABLES
    for what in NO_NUMBERS
    if (traits := cell.values[0]().traits).supervised and (traits.answers == "number" or what not in ARRAYS)
]


@pytest.mark.full(most=90)
@pytest.mark.parametrize(("make", "what"), ANSWERED)
def test_none_is_an_answer_or_a_weight(make: Callable[[], Any], what: str) -> None:
    learner, stream = made(make, "alone")
    X, y = stream.part(0, len(stream))
    learner = learner.copy()
    learner.learn_many(X, y)
    value, before = NO_NUMBERS[what](), repr(learner.state())
    answer = (value,) if learner.traits.answers == "labels" else value
    dates = [y[0], answer]
    column = np.empty(2, dtype=object)
    column[:] = [value, value]
    if isinstance(value, np.generic):
        column = column.astype(type(value)) if "complex" in what else np.array([value, value])
    for given in (dates, column):
        with pytest.raises(InputError):
            learner.learn_many(X[:2], given)
    with pytest.raises(InputError):
        learner.learn_one(X[0], answer)
    if learner.traits.weighted:
        with pytest.raises(InputError):
            learner.learn_many(X[:2], y[:2], importance=[1.0, value])
        with pytest.raises((InputError, TypeError)):
            learner.learn_one(X[0], y[0], importance=value)
    assert repr(learner.state()) == before


def test_what_is_a_number() -> None:
    """Decimal, Fraction, NumPy's numbers and booleans, arrays of one number."""
    for value in (decimal.Decimal("0.5"), fractions.Fraction(1, 2), np.float32(0.5), np.array(0.5), np.float16(0.5)):
        models = [op.LinearRegressor("nlms") for _ in range(4)]
        models[0].learn_one([1.0, 0.5], 0.5)
        models[1].learn_one([1.0, value], value)
        models[2].learn_many([[1.0, value]], [value])
        models[3].learn_many(np.array([[1.0, value]], dtype=object), np.array([value], dtype=object))
        assert len({repr(model.state()) for model in models}) == 1, repr(value)
    for truth in (True, np.bool_(True), np.int64(1), np.uint8(1)):
        model = op.GaussianNB()
        model.learn_one({"a": truth}, "a")
        assert model.theta_.tolist() == [[1.0]]


def test_where_a_score_begins_is_a_number() -> None:
    model = op.LinearModel("nlms", "regression")
    model.learn_one([1.0, 2.0], 1.0)
    for value in (np.datetime64("2020-01-01", "ns"), np.timedelta64(3, "ns"), np.complex64(1)):
        with pytest.raises(InputError, match="base"):
            model.predict_many(np.eye(2), [0.0, value])
        with pytest.raises(InputError, match="base must be a finite number"):
            model.predict_one([1.0, 2.0], value)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("unit", ["date32", "date64", "timestamp", "duration", "time64"])
def test_columns_of_dates_are_no_weights_and_no_labels(tmp_path: Any, kind: str, unit: str) -> None:
    pyarrow = require_extra("pyarrow")
    from pyarrow import ipc, parquet

    types = {
        "date32": pyarrow.date32(),
        "date64": pyarrow.date64(),
        "timestamp": pyarrow.timestamp("ns"),
        "duration": pyarrow.duration("ns"),
        "time64": pyarrow.time64("ns"),
    }
    day = {"duration": datetime.timedelta(1), "time64": datetime.time(1)}.get(unit, datetime.datetime(2020, 1, 1))
    dates = pyarrow.array([day] * 2, types[unit])
    table = pyarrow.table({"a": [1.0, 2.0], "y": ["u", "v"], "when": dates})
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path)
    else:
        with ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    with pytest.raises(InputError, match=r"the weight column 'when' holds .*, expected numbers"):
        list(op.stream(path, label="y", weight="when"))
    with pytest.raises((InputError, LabelError), match="the label 'when' holds"):
        list(op.stream(path, label="when", drop=["y"]))
