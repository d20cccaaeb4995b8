"""`Ranker` as scikit-learn's estimator: contract, frames, sparse rows, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from support.estimator_checks import assert_checks_pass
from support.ranking_grid import (
    FORMS,
    INF,
    NAN,
    RULES,
    data,
    saved,
)

import onepass as op
from onepass import rules
from onepass.errors import DamagedFileError, InputError
from onepass.estimators.ranking import Ranker
from onepass.persistence import store

# -- the scikit-learn façade ---------------------------------------------------------------------------------------


@pytest.mark.full(most=6)
@pytest.mark.parametrize("rule", RULES)
def test_scikit_learn_contract(rule):
    """Weights of examples multiply in pairs, and pairs have an order: a weight is not a repetition."""
    assert_checks_pass(Ranker(rule), least=45)


def test_score_is_pairwise_accuracy():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 4, size=80)
    X[10:20] = X[:10]  # ties
    qid = rng.integers(0, 6, size=80)  # not in order: scoring looks at all of a query
    ranker = Ranker().fit(X, y, np.sort(qid))
    s = ranker.predict(X)
    shares = []
    for q in set(qid.tolist()):
        rows = np.flatnonzero(qid == q)
        hits = [(s[i] > s[j]) + 0.5 * (s[i] == s[j]) for i in rows for j in rows if y[i] > y[j]]
        shares.append(np.mean(hits))
    assert ranker.score(X, y, qid) == pytest.approx(np.mean(shares))
    assert ranker.score(X, y > 1) == pytest.approx(roc_auc_score(y > 1, s))
    with pytest.raises(InputError, match="no pair"):
        ranker.score(X, np.ones(80))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame, tmp_path):
    s = data(d=3)
    X = frame({name: s.X[:, j] for j, name in enumerate(("a", "b", "c"))})
    ranker = Ranker().fit(X, pd.Series(s.y), pd.Series(s.qid) if frame is pd.DataFrame else pl.Series(s.qid))
    assert ranker.feature_names_in_.tolist() == ["a", "b", "c"]
    assert set(ranker.weights_) == {"a", "b", "c"}
    np.testing.assert_array_equal(ranker.predict(X), Ranker().fit(s.X, s.y, s.qid).predict(s.X))
    # Mappings may follow, in the middle of a query, with new names; the file keeps it all.
    ranker.learn_one({"a": 1.0, "new": 2.0}, 5, qid=s.qid[-1])
    assert ranker.weights_["new"] > 0
    ranker.save(tmp_path / "r")
    again = op.load(tmp_path / "r")
    for each in (ranker, again):
        each.learn_one(np.array([1.0, 0.0, 2.0]), 7, qid=s.qid[-1])
    assert saved(again, tmp_path) == saved(ranker, tmp_path)


def test_dense_and_sparse_rows_meet():
    s = data()
    mixed, dense = Ranker(), Ranker().partial_fit(s.X, s.y)
    for i in range(0, len(s.y), 4):
        mixed.partial_fit(s.X[i : i + 2], s.y[i : i + 2])
        mixed.partial_fit(sparse.csr_array(s.X[i + 2 : i + 4]), s.y[i + 2 : i + 4])
    np.testing.assert_allclose(mixed.coef_, dense.coef_, rtol=0, atol=1e-12)
    assert mixed.t_ == dense.t_


def test_repeated_indices_add_up():
    """A CSR matrix may hold an index twice, in any order."""
    indices, values = np.array([2, 0, 2, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    X = sparse.csr_array((values, indices, np.array([0, 3, 4])), shape=(2, 3))
    assert Ranker().partial_fit(X, [1, 0]).coef_ == pytest.approx(
        Ranker().partial_fit(X.toarray(), [1, 0]).coef_, abs=1e-15
    )
    assert X.indices.tolist() == [2, 0, 2, 1]  # the caller's matrix is as it was


def test_what_was_given_may_change_afterwards():
    X = np.eye(2)
    ranker, kept = Ranker(), Ranker().fit(np.eye(2), [0, 1])
    ranker.partial_fit(X[:1], [0])
    row = X[1].copy()
    X[:] = 9.0
    ranker.learn_one(row, 1)
    row[:] = 9.0
    assert ranker.coef_.tobytes() == kept.coef_.tobytes()
    assert ranker._query.arrays()["rows"].tolist() == np.eye(2).tolist()


def test_grid_search_and_clone():
    s = data()
    search = GridSearchCV(Ranker(rules.PA1()), {"rule__C": [0.01, 1.0]}, cv=2).fit(s.X, s.y)
    assert search.best_params_["rule__C"] in (0.01, 1.0)
    assert clone(Ranker("pa2", max_query=7)).get_params() == Ranker("pa2", max_query=7).get_params()


def test_nothing_learned_yet(tmp_path):
    ranker = Ranker()
    assert ranker.predict_one({"a": 1.0}) == 0.0
    with pytest.raises(AttributeError):
        _ = ranker.n_examples_
    ranker.learn_one([1.0, 2.0], 1, qid="q")  # no pair yet, and yet something to keep
    ranker.save(tmp_path / "r")
    again = op.load(tmp_path / "r")
    again.learn_one([0.0, 1.0], 0, qid="q")
    assert again.t_ == 1 and again.n_examples_ == 2
    assert ranker.predict([[1.0, 2.0]]).tolist() == [0.0]
    assert again.explain_one([1.0, 0.0]) == {0: again.coef_[0], 1: 0.0}


@pytest.mark.parametrize(
    ("form", "array", "value"),
    [
        ("dense", "rows", np.zeros((6, 9))),
        ("dense", "rows", np.full((6, 8), NAN)),
        ("dense", "rows", np.zeros((5, 8))),
        ("dense", "relevance", np.full(6, INF)),
        ("csr32", "indices", np.full(40, 99)),
        ("csr32", "ends", np.arange(3)),
        ("named", "names.offsets", np.zeros(3, dtype=np.int64)),
        ("named", "importance", -np.ones(6)),
    ],
)
def test_a_forged_query_does_not_load(form, array, value, tmp_path):
    s = data()
    ranker = Ranker(max_query=6).partial_fit(FORMS[form].whole(s.X), s.y)
    kind, config, arrays = store.from_bytes(saved(ranker, tmp_path), "ranker")
    assert f"extra.{array}" in arrays
    store.write(tmp_path / "forged", kind, config, {**arrays, f"extra.{array}": value})
    with pytest.raises(DamagedFileError):
        op.load(tmp_path / "forged")


def test_a_model_without_its_estimator_opens_as_a_ranker(tmp_path):
    model = op.LinearModel("pa2", "ranking", fit_intercept=False, readout="average")
    model.learn_direction({"a": 1.0})
    model.save(tmp_path / "m")
    ranker = op.load(tmp_path / "m")
    assert isinstance(ranker, Ranker) and repr(ranker.rule) == "PA2()"
    ranker.learn_pair({"a": 1.0}, {"b": 1.0})
