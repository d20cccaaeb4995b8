"""Reductions as scikit-learn's estimators: its checks, tables of costs, frames, sparse rows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.estimator_checks import assert_checks_pass
from support.grid import csr, stream
from support.reduction_grid import (
    LABELS,
    NAN,
    REDUCTIONS,
    RULE,
    STREAM,
    C,
    make,
    refuses,
    saved,
)

from onepass import LinearClassifier, LinearRegressor, reductions, rules
from onepass.errors import FeatureError, LabelError, NumericalError, ParameterError
from onepass.reductions import (
    CostSensitive,
    ErrorCorrectingOutputCodes,
    FilterTree,
    ImportanceSampling,
    OneVsAll,
    OneVsOne,
)
from onepass.reductions.examples import count, singles, take
from onepass.rows.batches import as_batch


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "model",
    [
        OneVsAll(LinearClassifier("pa1")),
        OneVsOne(LinearClassifier("pa1")),
        ErrorCorrectingOutputCodes(LinearClassifier("pa1")),
        CostSensitive(),
        CostSensitive(method="all_pairs"),
        FilterTree(),
        ImportanceSampling(c_max=10),
        ImportanceSampling(LinearRegressor("pa1"), c_max=10),
    ],
    ids=str,
)
def test_scikit_learns_checks(model: Any) -> None:
    assert_checks_pass(model)


@pytest.mark.filterwarnings("default")
def test_scikit_learns_checks_of_an_expansion() -> None:
    """A weight of 2 and two rows are different steps, but here they lead to the same labels, all that is compared."""
    assert_checks_pass(CostSensitive(OneVsAll(), method="expansion"), failing=())


def test_pipelines_grids_and_passes() -> None:
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    for kind in (OneVsAll, OneVsOne, ErrorCorrectingOutputCodes, FilterTree):
        base = LinearClassifier(rules.PA1(C=0.1), passes=5, shuffle=True, random_state=0)
        pipe = make_pipeline(StandardScaler(), kind(base))
        assert pipe.fit(X, names).score(X, names) > 0.85, kind
        again = clone(pipe).fit(X, names)
        assert saved(again[-1]) == saved(pipe[-1]) and pipe[-1].t_ == 5 * len(X)
        assert pipe[-1].classes_.tolist() == ["setosa", "versicolor", "virginica"]
    search = GridSearchCV(OneVsAll(LinearClassifier(rules.PA1())), {"base__rule__C": [1e3, 0.01]}, cv=3)
    assert search.fit(StandardScaler().fit_transform(X), y).best_params_ == {"base__rule__C": 0.01}


def test_what_a_fit_takes_from_its_base() -> None:
    for option, message in (({"mode": "batch"}, "online"), ({"passes": 0}, "passes=0"), ({"shuffle": 3}, "shuffle=3")):
        with pytest.raises(ParameterError, match=message):
            OneVsAll(LinearClassifier("perceptron", **option)).fit(STREAM.X, STREAM.y)
    drawn = OneVsAll(LinearClassifier(RULE, passes=2, shuffle="random", random_state=4)).fit(STREAM.X, STREAM.y)
    random = np.random.RandomState(4)
    hand = OneVsAll(RULE, classes=LABELS)
    for _ in range(2):
        order = random.randint(len(C), size=len(C))
        hand.learn_many(STREAM.X[order], STREAM.y[order])
    assert saved(hand) == saved(drawn)


def test_shuffled_fit_names_the_row_as_it_was_given() -> None:
    X = STREAM.X.copy()
    X[31] = 1e200
    base = LinearClassifier("pa1", shuffle=True, random_state=3)
    with pytest.raises(NumericalError, match="row 31:") as caught:
        OneVsAll(base).fit(X, STREAM.y)
    assert caught.value.row == 31


def test_tables_of_costs() -> None:
    """Columns follow the classes; without classes they are numbered."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    true = X @ rng.normal(size=(5, 3))
    for model in (CostSensitive("nlms"), CostSensitive(method="all_pairs"), FilterTree()):
        numbered = clone(model).fit(X, true)
        assert numbered.classes_.tolist() == [0, 1, 2]
        named = clone(model).partial_fit(X, true, classes=["c", "a", "b"])
        assert named.classes_.tolist() == ["c", "a", "b"]
        np.testing.assert_array_equal(named.predict(X), named.classes_[numbered.predict(X)])
        by_name = clone(model).fit(X, [dict(zip("cab", row, strict=True)) for row in true.tolist()])
        assert by_name.classes_.tolist() == ["a", "b", "c"]
        framed = clone(model).fit(X, pd.DataFrame(true))
        assert saved(framed) == saved(numbered)
    cheap = true[np.arange(400), CostSensitive("nlms:mu=0.1").fit(X, true).predict(X)].mean()
    assert cheap < true.mean(axis=0).min()


def test_scores() -> None:
    two = OneVsAll().fit(STREAM.X, STREAM.y > 20)
    scores = two.decision_function(STREAM.X)
    assert scores.shape == (len(STREAM.X),)
    np.testing.assert_array_equal(scores > 0, two.predict(STREAM.X))
    many = OneVsOne().fit(STREAM.X, STREAM.y)
    table = many.decision_function(STREAM.X)
    assert list(many.score_one(STREAM.X[3])) == LABELS
    assert list(many.score_one(STREAM.X[3]).values()) == table[3].tolist()
    assert OneVsAll().score_one({"a": 1.0}) == {}
    assert not hasattr(CostSensitive(method="expansion"), "decision_function") and not hasattr(
        FilterTree(), "score_one"
    )
    with pytest.raises(NotFittedError):
        OneVsAll().predict(STREAM.X)
    with pytest.raises(AttributeError):
        _ = OneVsAll().classes_


def test_regression_by_sampling() -> None:
    s = stream("regression")
    model = ImportanceSampling(LinearRegressor("nlms"), c_max=2.5, samples=4)
    for x, y, c in zip(s.X, s.y, s.importance, strict=True):
        model.learn_one(x, y, float(c))
    again = ImportanceSampling(LinearRegressor("nlms"), c_max=2.5, samples=4)
    again.partial_fit(s.X, s.y, sample_weight=s.importance)
    assert saved(again) == saved(model)
    mean = np.mean([learner.predict_many(s.X) for learner in model.learners_], axis=0)
    np.testing.assert_allclose(model.predict(s.X), mean, rtol=1e-12)
    assert model.predict_one(s.X[0]) == model.predict_many(s.X)[0]
    assert model.score(s.X, s.y) == pytest.approx(r2_score(s.y, mean), rel=1e-12)
    for bad in (NAN, "1", None, [1.0], 1j):
        refuses(model, LabelError, "y must", lambda b=bad: model.learn_one(s.X[0], b))


def test_frames_name_their_columns() -> None:
    frame = pd.DataFrame(STREAM.X[:, :3], columns=["a", "b", "c"])
    for name in REDUCTIONS:
        model = make(name, LABELS)
        model.learn_many(frame, STREAM.y, C)
        assert model.predict_one(frame.iloc[0].to_dict()) == model.predict_many(frame)[0]
        model.learn_one({"a": 1.0, "new": 2.0}, 10)
        refuses(model, FeatureError, "column 0", lambda m=model: m.learn_many(frame[["b", "a", "c"]], STREAM.y))
        model.learn_many(frame, STREAM.y, C)


@pytest.mark.parametrize("name", ["ova", "ovo", "oaa", "all_pairs", "expansion"])
def test_a_class_that_comes_after_a_frame_knows_its_columns(name: str) -> None:
    frame = pd.DataFrame(STREAM.X[:, :3], columns=["a", "b", "c"])
    model = make(name)
    model.learn_many(frame[:2], [10, 20])
    model.learn_one({"c": 1.0, "new": 2.0}, 30)
    model.learn_many(frame, STREAM.y)
    assert model.predict_one(frame.iloc[0].to_dict()) == model.predict_many(frame)[0]


def test_rows_of_sparse_arrays_and_hashed_frames() -> None:
    frame = pd.DataFrame(STREAM.X[:, :3], columns=["a", "b", "c"])
    for name in REDUCTIONS:
        by_array, by_row = make(name, LABELS), make(name, LABELS)
        by_array.learn_many(sparse.csr_array(STREAM.X), STREAM.y, C)
        for i in range(len(C)):
            x = sparse.coo_array(STREAM.X[i]) if i % 2 else sparse.lil_matrix(STREAM.X[i : i + 1])
            by_row.learn_one(x, STREAM.y[i], C[i])
        assert saved(by_array) == saved(by_row)
        assert by_row.predict_one(sparse.coo_array(STREAM.X[3])) == by_array.predict_many(STREAM.X)[3]
        hashed, whole = make(name, LABELS, hash_bits=6), make(name, LABELS, hash_bits=6)
        hashed.learn_many(frame[:9], STREAM.y[:9])
        hashed.learn_many(frame[9:], STREAM.y[9:])
        whole.learn_many(frame, STREAM.y)
        assert saved(hashed) == saved(whole)
        row = frame.iloc[4].to_dict()
        assert hashed.predict_one(row) == hashed.predict_many(frame)[4]


def test_rows_that_are_taken() -> None:
    at = np.array([2, 0, 0, 3])
    for X in (STREAM.X[:4], csr(STREAM.X[:4]), csr(STREAM.X[:4], np.int64)):
        for those in (at, np.arange(4), np.array([1, 3]), np.array([], dtype=int)):
            found = take(as_batch(X), those)
            assert np.array_equal(
                [sparse.csr_array(x).toarray().ravel() for x in singles(found)], STREAM.X[those]
            ) or not len(those)
            assert count(found) == len(those)
    assert take(["a", "b", "c", "d"], at) == ["c", "a", "a", "d"]


def test_importing_does_not_bring_scikit_learn() -> None:
    known = "print('sklearn' in sys.modules)"
    code = f"import sys, onepass.reductions as r; {known}; r.OneVsAll; {known}"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.split() == ["False", "True"]
    assert dir(reductions) == sorted(reductions.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = reductions.nothing
