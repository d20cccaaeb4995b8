"""Overflow is refused for its row: the rows before it stay learned, the error says which row it was."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support import grid
from support.grid import LABELS, saved
from support.refusals import KINDS, NAN, ROWS, answers, learner, refuses, table

from onepass import _native, rules
from onepass.errors import InputError, NumericalError
from onepass.estimators.linear import LinearClassifier, LinearRegressor
from onepass.models.linear import LinearModel

FAR = 3  # the row that overflows


def overflowing(form: str, cause: str, kind: str) -> tuple[Any, np.ndarray, np.ndarray]:
    X, c = table(0.5), np.ones(ROWS)
    if cause == "features":
        X[FAR] = 1e200
    else:
        c[[FAR - 1, FAR]] = 1e308  # one is still a number, two are not
        X[[FAR - 1, FAR]] = 1.0
    y = answers(kind).copy()
    if kind != "regression":
        y[:] = LABELS[kind][0]
    return grid.REPRESENTATIONS[form].make(X), y, c


CELLS = [
    (form, cause, verb)
    for form, shape in grid.REPRESENTATIONS.items()
    for cause in ("features", "importance")
    for verb in (*(["fit", "partial_fit"] if shape.table else []), "learn_many", "predict_then_learn", "learn_one")
    if (form, cause) != ("f32", "features")  # float32 holds no such number
]


@pytest.mark.full
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("form", "cause", "verb"), CELLS)
@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_overflow(kind: str, form: str, cause: str, verb: str, first: bool) -> None:
    rule = "sgd:loss=squared,schedule=constant" if kind == "regression" else "perceptron:beta=1e300"
    X, y, c = overflowing(form, cause, kind)
    got, expected = (learner(kind, form, rule=rule) for _ in range(2))
    if first:
        got, expected = (type(got)(**got.get_params()) for _ in range(2))
    declared = {"classes": LABELS[kind]} if kind != "regression" else {}

    def learn(estimator: Any, stop: int) -> None:
        if verb == "fit":
            estimator.fit(X[:stop], y[:stop], sample_weight=c[:stop])
        elif verb == "partial_fit":
            estimator.partial_fit(X[:stop], y[:stop], sample_weight=c[:stop], **declared)
        elif verb == "learn_one":
            for i in range(stop):
                estimator.learn_one(X[i], y[i], float(c[i]))
        else:
            getattr(estimator, verb)(X[:stop], y[:stop], c[:stop])

    learn(expected, FAR)
    with pytest.raises(NumericalError, match="overflows; scale the features down or choose smaller steps") as caught:
        learn(got, ROWS)
    assert isinstance(caught.value, ArithmeticError)
    assert saved(got) == saved(expected)
    if verb != "learn_one":
        assert caught.value.row == FAR
        assert f"row {FAR}:" in str(caught.value)


def test_a_malformed_row_after_an_overflow_refuses_the_whole_call() -> None:
    for kind in KINDS:
        for first in (False, True):
            estimator = LinearRegressor() if kind == "regression" else LinearClassifier()
            X = table(0.5)
            estimator.learn_many(X[:1], answers(kind)[:1])
            if not first:
                estimator = learner(kind)
            X[2], X[4, 1] = 1e200, NAN
            refuses(estimator, InputError, r"X\[4, 1\]", lambda e=estimator, k=kind, X=X: e.learn_many(X, answers(k)))


@pytest.mark.parametrize("form", ["f64", "csr32", "named", "hashed"])
def test_a_new_class_whose_row_overflows_is_not_let_in(form: str) -> None:
    X, y = table(0.5), ["a", "b", "a", "c", "d"]
    X[FAR] = 1e200
    got, expected = (LinearClassifier(hash_bits=5 if form == "hashed" else None) for _ in range(2))
    make = grid.REPRESENTATIONS[form].make
    expected.learn_many(make(X)[:FAR], y[:FAR])
    with pytest.raises(NumericalError) as caught:
        got.learn_many(make(X), y)
    assert caught.value.row == FAR
    assert saved(got) == saved(expected)
    assert list(got.classes_) == ["a", "b"]


@pytest.mark.parametrize("verb", ["fit", "fit shuffled"])
def test_fit_names_the_row_as_it_was_given(verb: str) -> None:
    X = table(0.5)
    X[FAR] = 1e200
    estimator = LinearRegressor(shuffle=verb != "fit", passes=3, random_state=0)
    with pytest.raises(NumericalError, match=f"row {FAR}:") as caught:
        estimator.fit(X, answers("regression"))
    assert caught.value.row == FAR
    X[FAR] = NAN
    with pytest.raises(InputError, match=rf"X\[{FAR}, 0\]"):
        estimator.fit(X, answers("regression"))


@pytest.mark.parametrize("isa", _native.isas())
@pytest.mark.parametrize("place", [0, 3, 8, 12, 20])
@pytest.mark.parametrize(
    "rule",
    ["adagrad", "adadelta", "rmsprop", "adam", "adam:absent=lazy", "ftrl", "ftrl:lam1=0.1", "vw:normalized=False"],
)
def test_where_one_weight_overflows_none_of_the_row_moves(rule: str, place: int, isa: str) -> None:
    """Weights move many at a time, some before it is known that another is no number any more."""
    known = {f.name for f in dataclasses.fields(rules.make(rule))}
    if "loss" in known:
        rule += ("," if ":" in rule else ":") + "loss=squared"
    used, names = _native.isa(), [f"x{k}" for k in range(21)]
    try:
        _native.use_isa(isa)
        for hash_bits in (None, 8):
            model = LinearModel(rule, "regression", hash_bits=hash_bits)
            for row in range(5):
                model.learn_one({name: 1.0 + row for name in names}, 0.5 * row)
            before = saved(model)
            far = {name: 1e100 if k == place else 1.0 for k, name in enumerate(names)}
            for again in range(2):  # the same however it comes
                with pytest.raises(NumericalError):
                    model.learn_one(far, 1e100) if again else model.learn_many([far], [1e100])
                assert saved(model) == before
    finally:
        _native.use_isa(used)
