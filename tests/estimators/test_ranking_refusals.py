"""`Ranker` refuses what is malformed, or overflows, and stays as it was."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse
from support.ranking_grid import (
    FORMS,
    INF,
    NAN,
    bits,
    data,
    saved,
)

from onepass.errors import FeatureError, InputError, LabelError, NumericalError, ParameterError
from onepass.estimators.ranking import Ranker
from onepass.scheme.rounds import Rule, Scalars, Step

# -- promise 2 -----------------------------------------------------------------------------------------------------

ROWS = np.arange(6.0).reshape(2, 3)

BAD = {
    "NaN": (lambda r: r.partial_fit([[1, 2, NAN]], [1]), InputError, r"X\[0, 2\] is NaN"),
    "NaN in a later row": (lambda r: r.partial_fit([[1, 2, 3], [1, NAN, 3]], [0, 1]), InputError, r"X\[1, 1\]"),
    "infinity": (lambda r: r.partial_fit([[1, 2, 3], [-INF, 2, 3]], [0, 1]), InputError, "infinity"),
    "sparse NaN": (lambda r: r.partial_fit(sparse.csr_array([[0, 1, 2], [0, 0, NAN]]), [1, 2]), InputError, "NaN"),
    "NaN row": (lambda r: r.learn_one([1.0, NAN, 2.0], 1), InputError, "finite"),
    "NaN relevance": (lambda r: r.partial_fit(ROWS, [1, NAN]), LabelError, "NaN|nan"),
    "infinite relevance": (lambda r: r.learn_one(ROWS[0], INF), LabelError, "inf"),
    "relevance of text": (lambda r: r.learn_one(ROWS[0], "high"), LabelError, "number"),
    "no relevance": (lambda r: r.learn_one(ROWS[0], None), LabelError, "finite|number"),
    "relevance of several": (lambda r: r.learn_one(ROWS[0], [1, 2]), LabelError, "number"),
    "short y": (lambda r: r.partial_fit(ROWS, [1]), InputError, "2 rows"),
    "wide y": (lambda r: r.partial_fit(ROWS, ROWS), LabelError, "1d"),
    "short qid": (lambda r: r.partial_fit(ROWS, [0, 1], qid=[1]), InputError, "2 rows, qid has 1"),
    "qid a word": (lambda r: r.partial_fit(ROWS, [0, 1], qid="ab"), InputError, "qid"),
    "qid a list": (lambda r: r.learn_one(ROWS[0], 1, qid=[1]), InputError, "qid"),
    "qid NaN": (lambda r: r.partial_fit(ROWS, [0, 1], qid=[1, NAN]), InputError, "qid"),
    "qid no file can hold": (lambda r: r.learn_one(ROWS[0], 1, qid=3 + 4j), InputError, "qid"),
    "wide row": (lambda r: r.learn_one([1.0] * 4, 1), FeatureError, "4 features"),
    "wide table": (lambda r: r.partial_fit(np.ones((2, 4)), [0, 1]), InputError, "4 features"),
    "wide table of the stream": (lambda r: r.learn_many(np.ones((2, 4)), [0, 1]), InputError, "4 features"),
    "one dimension": (lambda r: r.partial_fit([1.0, 2.0, 3.0], [1]), InputError, "2D array"),
    "empty": (lambda r: r.partial_fit(np.zeros((0, 3)), []), InputError, "0 sample"),
    "text": (lambda r: r.partial_fit([["a", "b", "c"]], [1]), InputError, "string"),
    "complex": (lambda r: r.partial_fit(np.array([[1j, 0, 0]]), [1]), InputError, "[Cc]omplex"),
    "a mapping among unnamed rows": (lambda r: r.learn_one({"a": 1.0}, 1), FeatureError, "rows"),
    "mappings among unnamed rows": (lambda r: r.partial_fit([{"a": 1.0}], [1]), FeatureError, "rows"),
    "None": (lambda r: r.learn_one(None, 1), InputError, "mapping"),
    "negative importance": (lambda r: r.learn_one(ROWS[0], 1, importance=-1.0), InputError, "importance"),
    "NaN importance": (lambda r: r.partial_fit(ROWS, [0, 1], sample_weight=[1, NAN]), InputError, "importance"),
    "importance of text": (lambda r: r.learn_one(ROWS[0], 1, importance="much"), InputError, "importance"),
    "pair of unlike widths": (lambda r: r.learn_pair([1.0, 2.0, 3.0], [1.0]), FeatureError, "features"),
    "pair with NaN": (lambda r: r.learn_pair([1.0, 2.0, NAN], [1.0, 2.0, NAN]), InputError, "finite"),
    "pair with infinity": (lambda r: r.learn_pair([1.0, 2.0, INF], [1.0, 2.0, INF]), InputError, "finite"),
    "fit on NaN": (lambda r: r.fit([[1, 2, NAN, 4], [1, 2, 3, 4]], [0, 1]), InputError, "NaN"),
    "fit without weight": (lambda r: r.fit(ROWS, [0, 1], sample_weight=[0, 0]), InputError, "nothing to fit"),
    "damaged CSR": (lambda r: r.partial_fit(outside(), [0, 1]), InputError, "outside|columns"),
}


def outside() -> Any:
    table = sparse.csr_array(np.eye(3)[:2])
    table.indices[1] = 7
    return table


@pytest.mark.parametrize("case", BAD)
def test_malformed_input_changes_nothing(case, tmp_path):
    call, error, text = BAD[case]
    ranker = Ranker().partial_fit(data(20, 3).X, data(20, 3).y)
    before = saved(ranker, tmp_path)
    with pytest.raises(error, match=text):
        call(ranker)
    assert saved(ranker, tmp_path) == before
    ranker.partial_fit(ROWS, [0, 1])  # and it goes on


@pytest.mark.parametrize(
    ("x", "error"),
    [({"a": NAN}, InputError), ({"a": None}, InputError), ({"a": [1]}, InputError), ({("a",): 1.0}, FeatureError)],
)
def test_malformed_mappings_change_nothing(x, error, tmp_path):
    ranker = Ranker()
    ranker.learn_many([{"a": 1.0}, {"b": 1.0}, {"a": 2.0}], [0, 1, 2])
    before = saved(ranker, tmp_path)
    for call in (
        lambda: ranker.learn_one(x, 1),
        lambda: ranker.learn_many([{"new": 1.0}, x], [0, 1]),
        lambda: ranker.learn_pair({"new": 1.0}, x),
        lambda: ranker.learn_one([1.0, 2.0], 1),
        lambda: ranker.learn_many([{"new": 1.0}, [1.0]], [0, 1]),
    ):
        with pytest.raises((error, FeatureError, InputError)):
            call()
        assert saved(ranker, tmp_path) == before


def test_a_query_of_rows_alone_takes_no_mapping(tmp_path):
    """Before anything is learned the model has no features; the query knows."""
    ranker = Ranker(hash_bits=4)
    ranker.learn_one([1.0, 2.0], 1)
    before = saved(ranker, tmp_path)
    with pytest.raises(FeatureError, match="rows and mappings"):
        ranker.learn_one({"a": 1.0}, 0)
    with pytest.raises(FeatureError, match="rows and mappings"):
        ranker.learn_many([{"a": 1.0}], [0])
    assert saved(ranker, tmp_path) == before
    ranker.learn_one({"a": 1.0}, 0, qid="another")


def test_first_call_refused_leaves_nothing():
    ranker = Ranker()
    for call in (ranker.fit, ranker.partial_fit):
        with pytest.raises(InputError):
            call([[1.0, NAN], [0.0, 1.0]], [0, 1])
        assert set(vars(ranker)) == set(ranker.get_params())


@pytest.mark.parametrize("form", ["dense", "csr32", "named"])
def test_overflow_refuses_its_row(form, tmp_path):
    """Rows before it are learned and rows after it can be: the same by one call and by the loop."""
    made = FORMS[form]
    table = np.array([[1.0, 0.0], [0.0, 1.0], [1e200, 1.0], [2.0, 1.0]])
    X, y = made.whole(table), [0, 1, 2, 1]
    loop, chunks = Ranker(), Ranker()
    refused = []
    for i in range(4):
        try:
            loop.learn_one(made.one(X, i), y[i])
        except NumericalError:
            refused.append(i)
    with pytest.raises(NumericalError, match="row 2") as info:
        chunks.partial_fit(X, y)
    assert info.value.row == 2 and refused == [2]
    chunks.partial_fit(made.part(X, 3, 4), y[3:])
    assert bits(loop, tmp_path) == bits(chunks, tmp_path)
    assert chunks.n_examples_ == 3


@dataclasses.dataclass(repr=False)
class Fading(Rule):
    """Steps whose scale the model must fold now and then, and a slot; what is too important overflows."""

    name = "fading"
    tasks = ("ranking",)
    slots: ClassVar[dict[str, float]] = {"seen": 0.0}

    def step(self, s: Scalars) -> Step:
        s.state["seen"] += 1.0
        return Step(add=0.3 if s.importance < 1e300 else float("inf"), scale=0.05)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("form", ["dense", "csr32", "csr64", "named", "hashed", "hashed csr"])
@pytest.mark.parametrize(
    ("rule", "readout"),
    [
        *itertools.product([Fading()], ["last", "average", "pocket"]),
        ("sgd:eta=1000", "average"),
        ("perceptron:rho=1000", "voted"),
        ("sgd:eta=1000,l2=0.01", "last"),
        ("sgd:eta=1000,batch_size=3", "last"),
        ("fobos:eta=1000,lam1=0.001,lam2=0.01", "last"),
        ("truncated:eta=1000,gravity=0.01,threshold=1", "last"),
        ("adagrad", "average"),
        ("ftrl:lam1=0.01", "last"),
        ("ons:covariance=diagonal", "last"),
        ("ons", "average"),
    ],
    ids=str,
)
def test_an_example_is_refused_with_all_its_pairs(form, rule, readout, tmp_path):
    """Pairs that moved the weights before the one that overflows are taken back: the bytes are those before them."""
    made, n = FORMS[form], 50
    rng = np.random.default_rng(3)
    rows, y = made.whole(rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.6)), rng.integers(3, size=n)
    qid = np.repeat([0, 1], [12, n - 12])
    y[12:17] = 0
    importance = np.ones(n)
    importance[16] = 1e308  # the last one that others meet, till it leaves the window
    settings = {"readout": readout, "hash_bits": made.hash_bits, "max_query": 6}
    loop, chunks = Ranker(rule, **settings), Ranker(rule, **settings)
    refused = []
    for i in range(n):
        before = bits(loop, tmp_path) if i else b""
        try:
            loop.learn_one(made.one(rows, i), y[i], int(qid[i]), importance[i])
        except NumericalError:
            refused.append(i)
            assert bits(loop, tmp_path) == before
    assert len(refused) > 1 and max(refused) < n - 5
    start = 0
    for stop in refused:
        with pytest.raises(NumericalError) as info:
            chunks.partial_fit(made.part(rows, start, n), y[start:], qid[start:], importance[start:])
        assert info.value.row == stop - start
        start = stop + 1
    chunks.partial_fit(made.part(rows, start, n), y[start:], qid[start:], importance[start:])
    assert bits(chunks, tmp_path) == bits(loop, tmp_path)


@pytest.mark.parametrize("form", ["dense", "csr32", "named"])
def test_differences_that_overflow(form):
    X = FORMS[form].whole(np.array([[1.0, 1.7e308], [1.0, -1.7e308]]))
    with pytest.raises(NumericalError) as info:
        Ranker().partial_fit(X, [0, 1])
    assert info.value.row == 1
    with pytest.raises(NumericalError):
        Ranker().partial_fit(FORMS[form].whole(np.eye(2)), [0, 1], sample_weight=[1e200, 1e200])


@pytest.mark.parametrize(
    "params",
    [{"max_query": 0}, {"max_query": 2.5}, {"passes": 0}, {"rule": "adaline"}, {"rule": "nothing"}, {"hash_bits": 99}],
    ids=str,
)
def test_invalid_parameters(params):
    with pytest.raises(ParameterError):
        Ranker(**params).fit(ROWS, [0, 1])


def test_regression_losses_are_refused():
    with pytest.raises(ParameterError, match="ranking"):
        Ranker("sgd:loss=squared").learn_pair([1.0], [0.0])
