"""`Ranker`: pairs made of queries, as the core makes them, the same however they arrive, within their bound."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from support.direction_rules import HalfStep
from support.ranking_grid import (
    FORMS,
    RULES,
    bits,
    data,
    mappings,
    pairs,
    saved,
)

import onepass as op
from onepass import ReferenceLearner, rules
from onepass.estimators.queries import Stream
from onepass.estimators.ranking import Ranker
from onepass.rows.batches import Batch, as_batch, to_row

# -- the scheme ----------------------------------------------------------------------------------------------------


def test_every_rule_for_ranking_is_tested():
    assert {rules.make(rule).name for rule in RULES} == {
        name for name, kind in rules.RULES.items() if "ranking" in kind.tasks
    }


_LEARNERS: dict[Any, ReferenceLearner] = {}


def by_the_core(rule: Any, readout: str) -> ReferenceLearner:
    if (str(rule), readout) not in _LEARNERS:
        s = data()
        s.X = s.X.astype(np.float32).astype(np.float64)
        learner = ReferenceLearner(rule, "ranking", fit_intercept=False, readout=readout)
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
        if not rules.make(r).traits.soft_thresholds or readout == "last"
    ]


@pytest.mark.full
@pytest.mark.parametrize("form", [form for form in FORMS if form != "hashed"])  # whose names may collide: see below
@pytest.mark.parametrize(("rule", "readout"), admitted([*RULES, HalfStep()]), ids=str)
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
    learner = ReferenceLearner("pa1", "ranking", fit_intercept=False)
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
CELLS += [(HalfStep(), "average", "dense"), ("pegasos:lam=0.01", "average", "csr64")]


@pytest.mark.full(strength=1)
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
    learner = ReferenceLearner("pa1", "ranking", fit_intercept=False)
    for p, q, c in pairs(s, room):
        learner.learn((s.X[p], s.X[q]), 1, c)
    np.testing.assert_allclose(ranker.predict(X), s.X @ learner.w, rtol=0, atol=1e-12)
