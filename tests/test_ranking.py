"""`Ranker`: pairs made of queries, the same however they arrive, refused whole when malformed."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import onepass as op
from onepass import core, rules, store
from onepass.batches import Batch, as_batch, to_row
from onepass.core import Rule, Scalars, Step
from onepass.errors import DamagedFileError, FeatureError, InputError, LabelError, NumericalError, ParameterError
from onepass.queries import Stream
from onepass.ranking import Ranker

RULES = [
    "perceptron",
    "perceptron:beta=1,rho=0.5",
    "pa",
    "pa1",
    "pa1:C=0.1",
    "pa2:C=0.5",
    "sgd",
    "sgd:loss=logistic",
    "sgd:loss=squared_hinge,eta=0.05,l2=0.01",
    "sgd:loss=perceptron,schedule=constant,eta=0.1",
    "sgd:loss=ramp",
    "pegasos:lam=0.01",
    "pegasos:lam=0.1,project=true",
    "mira",
    "alma",
    "shifting",
    "pamir:C=0.1",
    "mroc:beta=2",
    "romma",
    "aromma",
    "fobos:lam1=0.01",
    "ftrl:lam1=0.01",
    "adagrad",
    "adadelta",
    "rmsprop",
    "adam:eta=0.01",
    "arow",
    "cw",
    "scw1",
    "scw2",
    "nherd",
    "ons:covariance=diagonal",
    "adagrad:loss=hinge",
    "truncated:gravity=0.01,K=2",
    "pocket",
]


@dataclasses.dataclass(repr=False)
class HalfPair(Rule):
    """A user's rule: half of a hard PA step."""

    name = "half_pair"
    tasks = ("ranking",)

    def step(self, s: Scalars) -> Step:
        return Step(add=0.5 * self.suffer(s) / s.xx)


# -- streams and forms ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Data:
    X: np.ndarray
    y: np.ndarray
    qid: list[Any]
    importance: np.ndarray


def data(n: int = 80, d: int = 8, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.clip(np.round(X @ rng.normal(size=d) + 2 * rng.normal(size=n)), -1, 2)
    lengths = rng.integers(1, 12, size=n)
    qid = np.repeat(np.arange(n), lengths)[:n].tolist()
    return Data(X, y, qid, rng.choice([0.0, 0.5, 1.0, 2.0], size=n))


def pairs(s: Data, room: int = 1000) -> Iterator[tuple[int, int, float]]:
    """By the definition: (preferred, other, importance), the arriving example against its query, oldest first."""
    for i in range(len(s.y)):
        first = next(j for j in range(i, -1, -1) if j == 0 or s.qid[j - 1] != s.qid[i])
        for j in range(max(first, i - room), i):
            c = s.importance[i] * s.importance[j]
            if s.y[i] > s.y[j]:
                yield i, j, c
            elif s.y[i] < s.y[j]:
                yield j, i, c


def mappings(X: np.ndarray) -> list[dict[str, float]]:
    return [{f"f{j}": float(row[j]) for j in np.flatnonzero(row)} for row in X]


@dataclasses.dataclass
class Form:
    """A way to hold rows: the whole of them, a part, and one."""

    whole: Callable[[np.ndarray], Any]
    one: Callable[[Any, int], Any] = lambda X, i: X[i]
    hash_bits: int | None = None

    def part(self, X: Any, start: int, stop: int) -> Any:
        return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]


def sparse_row(X: Any, i: int) -> Any:
    return X[[i]]


FORMS = {
    "dense": Form(lambda X: X),
    "float32": Form(lambda X: X.astype(np.float32)),
    "csr32": Form(sparse.csr_array, sparse_row),
    "csr64": Form(lambda X: csr64(X), sparse_row),
    "named": Form(mappings),
    "hashed": Form(mappings, hash_bits=4),
    "hashed dense": Form(lambda X: X, hash_bits=4),
    "hashed csr": Form(sparse.csr_array, sparse_row, hash_bits=4),
}


def csr64(X: np.ndarray) -> Any:
    out = sparse.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


@pytest.fixture(autouse=True)
def no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk is tested with the store; here it would be most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def saved(ranker: Ranker, folder: Path) -> bytes:
    ranker.save(folder / "ranker.onepass")
    return (folder / "ranker.onepass").read_bytes()


def bits(ranker: Ranker, folder: Path) -> bytes:
    """The saved bytes, but for how many columns scikit-learn was told of: `learn_one` tells it nothing."""
    _, config, arrays = store.from_bytes(saved(ranker, folder), "ranker")
    config["extra"]["fitted"].pop("n_features_in_", None)
    return store.to_bytes("ranker", config, arrays)


# -- the scheme ----------------------------------------------------------------------------------------------------


def test_every_rule_for_ranking_is_tested():
    assert {rules.make(rule).name for rule in RULES} == {
        name for name, kind in rules.RULES.items() if "ranking" in kind.tasks
    }


_LEARNERS: dict[Any, core.Learner] = {}


def by_the_core(rule: Any, readout: str) -> core.Learner:
    if (str(rule), readout) not in _LEARNERS:
        s = data()
        s.X = s.X.astype(np.float32).astype(np.float64)
        learner = core.Learner(rule, "ranking", fit_intercept=False, readout=readout)
        for p, n, c in pairs(s):
            learner.learn((s.X[p], s.X[n]), 1, c)
        assert learner.k > 15  # it bites
        _LEARNERS[str(rule), readout] = learner
    return _LEARNERS[str(rule), readout]


def admitted(every: list[Any]) -> list[tuple[Any, str]]:
    """Rules with the readouts that they admit: under lazy L1 the last weights alone."""
    return [
        (r, readout)
        for r in every
        for readout in ("last", "average")
        if not rules.make(r).uses_soft() or readout == "last"
    ]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "hashed"])  # whose names may collide: see below
@pytest.mark.parametrize(("rule", "readout"), admitted([*RULES, HalfPair()]), ids=str)
def test_agrees_with_the_core(rule, readout, form):
    s = data()
    s.X = s.X.astype(np.float32).astype(np.float64)
    learner = by_the_core(rule, readout)
    made = FORMS[form]
    ranker = Ranker(rule, readout=readout, hash_bits=made.hash_bits)
    X = made.whole(s.X)
    ranker.partial_fit(X, s.y, s.qid, s.importance)
    expected = s.X @ learner.w
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=0, atol=1e-12 * (1 + np.abs(expected).max()))
    assert (ranker.t_, ranker.k_) == (learner.t, learner.k)


def test_hashed_names_agree_with_the_core():
    s = data()
    columns = np.array([op._native.murmur3(f"f{j}") & 15 for j in range(s.X.shape[1])])
    table = np.zeros((len(s.X), 16))
    np.add.at(table, (slice(None), columns), s.X)
    learner = core.Learner("pa1", "ranking", fit_intercept=False)
    for p, n, c in pairs(s):
        learner.learn((table[p], table[n]), 1, c)
    ranker = Ranker("pa1", hash_bits=4).partial_fit(mappings(s.X), s.y, s.qid, s.importance)
    np.testing.assert_allclose(ranker.coef_, learner.w, rtol=0, atol=1e-12)


def test_worked_numbers():
    """01 §16, PAMIR with C = 0.1."""
    given = [((1, 2), (2, -1)), ((1, 1), (-1, 1)), ((1, 1), (2, -1))]
    ranker = Ranker("pa1:C=0.1")
    named = Ranker("pa1:C=0.1")
    for (p, n), w in zip(given, [(-0.1, 0.3), (0.1, 0.3), (0, 0.5)], strict=True):
        ranker.learn_pair(np.array(p), list(n))
        named.learn_pair(*({"a": a, "b": b} for a, b in (p, n)))
        np.testing.assert_allclose(ranker.coef_, w, atol=1e-12)
        assert {name: named.weights_.get(name, 0.0) for name in "ab"} == pytest.approx(
            {"a": w[0], "b": w[1]}, abs=1e-12
        )
    assert ranker.predict_one([1.0, 1.0]) == pytest.approx(0.5)


def test_importance_of_a_pair_is_the_product():
    a, b = Ranker("pa1:C=0.01"), Ranker("pa1:C=0.01")
    a.learn_one([1.0, 0.0], 0, importance=2.0)
    a.learn_one([0.0, 1.0], 1, importance=3.0)
    b.learn_pair([0.0, 1.0], [1.0, 0.0], importance=6.0)
    assert a.coef_.tolist() == b.coef_.tolist() == [-0.06, 0.06]


def test_categories_and_booleans_compare_by_value():
    ranker = Ranker("pa")
    ranker.learn_pair({"colour": "red", "new": True, "size": 2}, {"colour": "blue", "new": True, "size": 1})
    assert ranker.weights_ == pytest.approx({"colour=red": 1 / 3, "colour=blue": -1 / 3, "size": 1 / 3})


def test_learns_to_rank():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 8)) + rng.normal(size=(2000, 8))  # what is common to a query is of no use
    shift = np.repeat(rng.normal(size=(100, 8)) * 5, 20, axis=0)
    y = np.digitize(X @ np.arange(8), [-20, 0, 20])
    qid = np.repeat(np.arange(100), 20)
    ranker = Ranker(readout="average").fit((X + shift)[:1000], y[:1000], qid[:1000])
    assert ranker.score((X + shift)[1000:], y[1000:], qid[1000:]) > 0.97


# -- promise 1 -----------------------------------------------------------------------------------------------------


CELLS = [(rule, "last", form) for rule in RULES for form in ("dense", "csr32", "named")]
CELLS += [("pa1", "average", form) for form in FORMS]
CELLS += [(HalfPair(), "average", "dense"), ("pegasos:lam=0.01", "average", "csr64")]


@pytest.mark.parametrize(("rule", "readout", "form"), CELLS, ids=str)
def test_chunks_do_not_matter(rule, readout, form, tmp_path):
    """Bit for bit: one by one, in one call, in chunks that cut queries, saved and loaded between chunks."""
    s, made = data(), FORMS[form]
    X = made.whole(s.X)
    n = len(s.y)

    def new() -> Ranker:
        return Ranker(rule, readout=readout, hash_bits=made.hash_bits, max_query=6)

    one = new()
    for i in range(n):
        one.learn_one(made.one(X, i), s.y[i], qid=s.qid[i], importance=s.importance[i])
    assert one.dropped_ > 0
    expected = bits(one, tmp_path)

    for size in (n, 1, 17):
        chunks, resumed = new(), new()
        for start in range(0, n, size):
            stop = min(n, start + size)
            given = made.part(X, start, stop), s.y[start:stop], s.qid[start:stop], s.importance[start:stop]
            chunks.partial_fit(*given)
            if size > 1:
                resumed.partial_fit(*given)
                resumed.save(tmp_path / "between")
                resumed = op.load(tmp_path / "between")
        assert bits(chunks, tmp_path) == expected
        assert size == 1 or saved(resumed, tmp_path) == saved(chunks, tmp_path)

    resumed = new()
    for i in range(n):
        resumed.learn_one(made.one(X, i), s.y[i], qid=s.qid[i], importance=s.importance[i])
        if i % 9 == 4:
            resumed.save(tmp_path / "between")
            resumed = op.load(tmp_path / "between") if i % 2 else pickle.loads(pickle.dumps(resumed))
    assert bits(resumed, tmp_path) == expected


def test_without_qid_the_stream_is_one_query(tmp_path):
    s = data()
    whole = Ranker(max_query=9).partial_fit(s.X, s.y)
    chunks = Ranker(max_query=9).partial_fit(s.X[:17], s.y[:17]).partial_fit(s.X[17:], s.y[17:])
    named = Ranker(max_query=9).partial_fit(s.X, s.y, ["one"] * len(s.y))
    assert saved(whole, tmp_path) == saved(chunks, tmp_path)
    assert whole.coef_.tobytes() == named.coef_.tobytes()


def test_predict_then_learn_is_the_loop():
    s = data()
    for form in FORMS.values():
        X = form.whole(s.X)
        loop, once = Ranker(hash_bits=form.hash_bits), Ranker(hash_bits=form.hash_bits)
        expected = []
        for i in range(len(s.y)):
            expected.append(loop.predict_one(form.one(X, i)))
            loop.learn_one(form.one(X, i), s.y[i], s.qid[i])
        np.testing.assert_allclose(once.predict_then_learn(X, s.y, s.qid), expected, rtol=0, atol=1e-12)


def test_fit_forgets_and_passes_begin_anew(tmp_path):
    s = data()
    ranker = Ranker(passes=2).fit(s.X[::-1], s.y).fit(s.X, s.y)
    loop = Ranker()
    for _ in range(2):
        loop._query = None  # the first rows of a pass do not meet the last of the pass before
        loop.partial_fit(s.X, s.y)
    assert ranker.coef_.tobytes() == loop.coef_.tobytes()
    assert ranker.n_examples_ == 2 * len(s.y)


def test_shuffle_keeps_queries_together():
    s = data()
    for form in ("dense", "csr32", "named"):
        examples = mappings(s.X) if form == "named" else as_batch(FORMS[form].whole(s.X))
        stream = Stream(examples, s.y, s.importance, s.qid).shuffled(np.random.RandomState(0))
        order = [stream.row(i) for i in range(len(stream))]
        assert sorted(order) == list(range(len(s.y)))
        shuffled = [s.qid[i] for i in order]
        assert stream.queries == shuffled != s.qid
        assert stream.relevance.tolist() == s.y[order].tolist()
        for i in range(len(stream)):
            row = stream.part(i, i + 1).examples
            one = row.single() if isinstance(row, Batch) else row[0]
            expected = FORMS[form].one(FORMS[form].whole(s.X), order[i])
            assert (one == expected) if form == "named" else np.array_equal(to_row(one)[1], to_row(expected)[1])
    assert sum(a != b for a, b in itertools.pairwise(shuffled)) == len(set(s.qid)) - 1
    one, two = (Ranker(shuffle=True, random_state=5, passes=2).fit(s.X, s.y, s.qid) for _ in range(2))
    assert one.coef_.tobytes() == two.coef_.tobytes() != Ranker(passes=2).fit(s.X, s.y, s.qid).coef_.tobytes()


# -- promise 4 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "csr32", "named"])
def test_the_query_is_bounded(form, tmp_path):
    room, n = 5, 120
    s = data(n)
    s.qid = [None] * n
    made = FORMS[form]
    X = made.whole(s.X)
    ranker, sizes = Ranker("pa1", max_query=room), []
    for i in range(n):
        ranker.learn_one(made.one(X, i), s.y[i], importance=s.importance[i])
        assert len(ranker._query) <= room
        assert len(ranker._query.arrays()["relevance"]) == min(room, i + 1)
        sizes.append(len(saved(ranker, tmp_path)))
    assert ranker.dropped_ == n - room
    assert max(sizes[20:]) < sizes[20] + 200
    learner = core.Learner("pa1", "ranking", fit_intercept=False)
    for p, q, c in pairs(s, room):
        learner.learn((s.X[p], s.X[q]), 1, c)
    np.testing.assert_allclose(ranker.predict(X), s.X @ learner.w, rtol=0, atol=1e-12)


# -- promise 2 -----------------------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
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


# -- the scikit-learn façade ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_scikit_learn_contract(rule):
    """Weights of examples multiply in pairs, and pairs have an order: a weight is not a repetition."""
    reason = "an online learner's update for weight 2 is not two updates"
    check_estimator(
        Ranker(rule),
        on_skip=None,
        expected_failed_checks={
            "check_sample_weight_equivalence_on_dense_data": reason,
            "check_sample_weight_equivalence_on_sparse_data": reason,
        },
    )


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
