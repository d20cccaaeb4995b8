"""What LASVM refuses: malformed input, parameters, files whose parts do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from test_lasvm import INF, NAN, digits, saved

import onepass as op
from onepass import LaSVMClassifier, kernels
from onepass.errors import (
    DamagedFileError,
    FeatureError,
    InputError,
    LabelError,
    NumericalError,
    OnepassError,
    ParameterError,
)

# -- promise 2 ---------------------------------------------------------------------------------------------------------

ROWS = np.array([[0.5, 1.0], [1.0, 0.0], [0.0, 1.0]])


def with_value(value: Any) -> np.ndarray:
    X = ROWS.copy()
    X[1, 1] = value
    return X


BAD: dict[str, tuple[Any, Any, Any, type[Exception], str]] = {
    "nan": (with_value(NAN), [0, 1, 0], None, InputError, r"X\[1, 1\] is NaN; drop or impute"),
    "infinity": (with_value(INF), [0, 1, 0], None, InputError, r"X\[1, 1\] is infinity"),
    "nan in csr": (sparse.csr_matrix(with_value(NAN)), [0, 1, 0], None, InputError, r"X\[1, 1\] is NaN"),
    "a column more": (np.ones((3, 3)), [0, 1, 0], None, InputError, "X has 3 features, but"),
    "one dimension": (ROWS[0], [0, 1, 0], None, InputError, "1 dimension|1D"),
    "no rows": (ROWS[:0], [], None, InputError, "no rows|0 sample"),
    "words": (ROWS.astype(str), [0, 1, 0], None, InputError, "must hold numbers|strings"),
    "complex": (ROWS * 1j, [0, 1, 0], None, InputError, "Complex"),
    "too few labels": (ROWS, [0, 1], None, InputError, "X has 3 rows, y has 2"),
    "unknown label": (ROWS, [0, 1, 7], None, LabelError, r"y\[2\] is 7, which is not one of the classes \[0, 1\]"),
    "nan label": (ROWS, [0, 1, NAN], None, LabelError, "NaN|nan"),
    "negative weight": (ROWS, [0, 1, 0], [1, -1, 1], InputError, "finite and >= 0, but entry 1 is -1"),
    "nan weight": (ROWS, [0, 1, 0], [1, NAN, 1], InputError, "entry 1 is nan"),
    "few weights": (ROWS, [0, 1, 0], [1, 1], InputError, "3 rows, got shape"),
    "huge weight": (ROWS, [0, 1, 0], [1, 1e308, 1], InputError, "overflows"),
}


NOT_FOR_FIT = ("a column more", "unknown label")
REFUSED = [(verb, what) for verb in ("partial_fit", "learn_many", "fit") for what in BAD]


@pytest.mark.parametrize(("verb", "what"), [each for each in REFUSED if each[0] != "fit" or each[1] not in NOT_FOR_FIT])
def test_malformed_input_is_refused_whole(what: str, verb: str, tmp_path: Path) -> None:
    X, y, weights, error, message = BAD[what]
    A, b = make_moons(60, noise=0.2, random_state=0)
    model = LaSVMClassifier(C=10.0).partial_fit(A, b, classes=[0, 1])
    before, attributes = saved(model, tmp_path), {k: repr(v) for k, v in vars(model).items()}
    with pytest.raises(error, match=message):
        arguments = {"importance" if verb == "learn_many" else "sample_weight": weights}
        getattr(model, verb)(X, y, **arguments)
    assert saved(model, tmp_path) == before
    assert {k: repr(v) for k, v in vars(model).items()} == attributes
    fresh = LaSVMClassifier(C=10.0)
    if what not in NOT_FOR_FIT:
        with pytest.raises((error, LabelError)):
            getattr(fresh, verb)(X, y, **arguments)
        assert vars(fresh) == vars(LaSVMClassifier(C=10.0))


@pytest.mark.parametrize(
    ("x", "y", "importance", "error", "message"),
    [
        ([1.0, NAN], 0, 1.0, InputError, "is NaN"),
        ([1.0], 0, 1.0, FeatureError, "1 features, but this model has learned rows of 2"),
        ({"a": 1.0}, 0, 1.0, FeatureError, "has learned rows of 2 numbers"),
        ("text", 0, 1.0, InputError, "must be a mapping of names to numbers or a row"),
        (None, 0, 1.0, InputError, "must be a mapping"),
        ([1.0, 2.0], None, 1.0, LabelError, "None"),
        ([1.0, 2.0], [1], 1.0, LabelError, "hashable"),
        ([1.0, 2.0], 0, -1.0, InputError, ">= 0"),
        ([1.0, 2.0], 0, NAN, InputError, ">= 0"),
    ],
)
def test_malformed_examples(x: Any, y: Any, importance: float, error: Any, message: str, tmp_path: Path) -> None:
    A, b = make_moons(40, noise=0.2, random_state=0)
    model = LaSVMClassifier()
    model.learn_many(A, b)
    before = saved(model, tmp_path)
    with pytest.raises(error, match=message):
        model.learn_one(x, y, importance)
    assert saved(model, tmp_path) == before


def test_malformed_mappings_admit_no_name(tmp_path: Path) -> None:
    model = LaSVMClassifier()
    model.learn_many([{"a": 1.0, "colour": "red"}, {"b": True, 3: 2.0}], ["no", "yes"])
    assert model.predict_one({"a": 1.0, "colour": "red"}) == "no"
    assert model.predict_one({"b": 1, 3: 2, "never seen": 0.0}) == "yes"
    assert model.predict_one({}) in ("no", "yes")
    before = saved(model, tmp_path)
    for x, error, message in (
        ({"new": 1.0, "c": NAN}, InputError, "feature 'c' must be a finite number"),
        ({"new": 1.0, "c": [1]}, InputError, "feature 'c' must be a number"),
        ({"new": 1.0, 1.5: 1.0}, FeatureError, "names must be strings or whole numbers"),
        ([1.0, 2.0], FeatureError, "named features"),
    ):
        with pytest.raises(error, match=message):
            model.learn_one(x, "no")
        with pytest.raises(error, match=message):
            model.predict_one(x)
        assert saved(model, tmp_path) == before
    assert op.load(tmp_path / "now.onepass").predict_one({"a": 1.0}) == model.predict_one({"a": 1.0})


def test_overflow_is_refused_for_its_row(tmp_path: Path) -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1e200, 1.0], [1.0, 1.0]])
    model = LaSVMClassifier(kernel="linear")
    with pytest.raises(NumericalError, match=r"row 2: its kernel values overflow") as caught:
        model.partial_fit(X, [0, 1, 0, 1], classes=[0, 1])
    assert caught.value.row == 2
    expected = LaSVMClassifier(kernel="linear").partial_fit(X[:2], [0, 1], classes=[0, 1])
    assert saved(model, tmp_path) == saved(expected, tmp_path)
    with pytest.raises(NumericalError, match=r"row 1: .* The rows before it were learned"):
        model.learn_many(X[1:], [1, 0, 1])


def test_histograms_and_signs() -> None:
    with pytest.raises(InputError, match=r"wants numbers >= 0, got -1"):
        LaSVMClassifier(kernel="intersection").fit([[1.0], [-1.0]], [0, 1])


PARAMETERS = [
    ({"C": 0}, r"LaSVMClassifier\(C=0\): expected a finite number > 0"),
    ({"C": INF}, r"C=inf\): expected a finite number"),
    ({"tau": 0}, "tau=0"),
    ({"cache_mb": -1}, "cache_mb=-1"),
    ({"kernel": "gauss"}, "kernel='gauss' is not a kernel; expected one of"),
    ({"kernel": kernels.RBF}, "is a class; expected an object"),
    ({"gamma": -1.0}, "gamma=-1"),
    ({"kernel": "linear", "gamma": 1.0}, r"gamma=1.0: Linear\(\) has no gamma"),
    ({"multiclass": "all"}, "expected one of 'ovr', 'ovo'"),
    ({"reprocess_steps": 0}, "reprocess_steps=0"),
    ({"reprocess_until": -1}, "reprocess_until=-1"),
    ({"passes": 0}, "passes=0"),
    ({"selection": "best"}, "expected one of 'random', 'gradient', 'active', 'autoactive'"),
    ({"candidates": 0}, "candidates=0"),
    ({"max_examples": 0}, "max_examples=0"),
    ({"max_support": 0.5}, "max_support=0.5"),
    ({"max_seconds": 0}, "max_seconds=0"),
    ({"finish": 1}, "finish=1"),
    ({"random_state": "x"}, "random_state='x'"),
    ({"class_weight": {0: -1.0}}, r"class_weight\[0\]=-1"),
    ({"class_weight": "heavy"}, "class_weight='heavy'"),
]


@pytest.mark.parametrize(("options", "message"), PARAMETERS, ids=str)
def test_parameters_out_of_range(options: dict[str, Any], message: str) -> None:
    for verb in (lambda m: m.fit(ROWS, [0, 1, 0]), lambda m: m.partial_fit(ROWS, [0, 1, 0], classes=[0, 1])):
        model = LaSVMClassifier(**options)
        with pytest.raises(ParameterError, match=message):
            verb(model)
        assert vars(model) == vars(LaSVMClassifier(**options))
    assert {name for given, _ in PARAMETERS for name in given} >= set(LaSVMClassifier().get_params())


# -- promise 3 ---------------------------------------------------------------------------------------------------------


def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path: Path) -> None:
    from onepass.persistence import store

    X, y = digits(3, 60)
    LaSVMClassifier(C=3, class_weight={0: 2.0, 1: 0.5}, random_state=5).fit(X, y).save(tmp_path / "m.onepass")
    loaded = op.load(tmp_path / "m.onepass")
    assert loaded.get_params()["class_weight"] == {0: 2.0, 1: 0.5} and loaded.random_state == 5
    kind, config, arrays = store.read(tmp_path / "m.onepass")
    assert kind == "LaSVMClassifier"
    for name in arrays:
        changes = {"missing": {k: v for k, v in arrays.items() if k != name}}
        changes["short"] = {**arrays, name: arrays[name][:-1]}
        for what, changed in changes.items():
            store.write(tmp_path / "bad.onepass", kind, config, changed)
            with pytest.raises((DamagedFileError, OnepassError)):
                op.load(tmp_path / "bad.onepass")
            assert what
    learned = config["learned"]
    forged = [(name, {**config, name: value}) for name in config for value in (None, 7, "x", [])]
    forged += [
        (name, {**config, "learned": {**learned, name: value}})
        for name in learned
        for value in (None, 7, "x", [])
        if (name, value) != ("t", 7)
    ]
    for name, changed in forged:
        store.write(tmp_path / "bad.onepass", kind, changed, arrays)
        with pytest.raises(OnepassError):
            assert op.load(tmp_path / "bad.onepass") is None, f"{name}: {changed[name] if name in config else changed}"
