"""The pocket (Gallant 1990) and the vote (Freund and Schapire 1999). Specification 01 §1.4 and §1.5."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse

from onepass import rules
from onepass.errors import FullError, InputError, LabelError, ParameterError
from onepass.estimators.linear import LinearClassifier
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner
from onepass.persistence import store
from onepass.scheme.readouts import Pocket, Voted

from . import transcriptions
from .streams import A, random_stream, run, with_constant
from .ways import WAYS, model_of, same

# ---- pocket ----


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("rule", "options"), [("perceptron", {"readout": "pocket"}), ("pocket", {})])
def test_worked_pocket(rule, options, way):
    """A twice: after round 4 the pocket holds (0, 2), run 1; run 4 in round 7; round 8 updates, the pocket stays."""
    rows = WAYS[way](rule, "binary", A * 2, fit_intercept=False, **options)[:, :2]
    np.testing.assert_allclose(rows[3:], [(0, 2)] * 7, atol=1e-6)


def test_worked_runs():
    learner = ReferenceLearner("pocket", fit_intercept=False)
    seen = []
    for x, y, _ in A * 2:
        learner.learn(x, y)
        seen.append((learner.memory.run, learner.memory.best_run))
    assert seen[3:] == [(1, 1), (2, 2), (3, 3), (4, 4), (0, 4), (1, 4), (2, 4)]
    np.testing.assert_allclose(learner.records[7].w, (1, 1), atol=1e-6)


def pocket(vectors, stream):
    """The weights of the longest run; rounds that are skipped count for nothing. Before the first run, the current."""
    best, run, held, before = 0, 0, None, None
    for w, (x, _, c) in zip(vectors, stream, strict=True):
        before = np.zeros_like(w) if before is None else before
        if not transcriptions.skip(x, c):
            run = run + 1 if np.array_equal(w, before) else 0
            if run > best:
                best, held = run, before
        before = w
        yield w if held is None else held


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_pocket_equals_transcription(weighted, intercept, way):
    for seed in range(5):
        stream = random_stream(np.random.default_rng(seed), "binary", 120, weighted=weighted)
        constant = with_constant(stream, float(intercept))
        expected = list(pocket(transcriptions.perceptron(constant, 5, lambda t: 1.0), constant))
        same(WAYS[way]("pocket", "binary", stream, fit_intercept=intercept), expected)


@pytest.mark.parametrize("way", WAYS)
def test_pocket_over_classes(way):
    for seed in range(3):
        stream = random_stream(np.random.default_rng(seed), "multiclass", 120, noise=0.2)
        expected = list(
            pocket(transcriptions.multiclass_perceptron(with_constant(stream), 3, 5), with_constant(stream))
        )
        same(WAYS[way]("pocket", "multiclass", stream, classes=3), expected)


@pytest.mark.parametrize("way", WAYS)
def test_pocket_of_a_rule_that_shrinks(way):
    """The native pocket keeps a·v: another scale later must not touch it."""
    stream = random_stream(np.random.default_rng(1), "binary", 120)
    expected = list(pocket(transcriptions.shifting(stream, 4, 0.5, "constant"), stream))
    rows = WAYS[way](rules.Shifting(0.5, "constant"), "binary", stream, fit_intercept=False, readout=Pocket())
    same(rows[:, :-1], expected)


# ---- the ratchet ----


def ratcheted(vectors, stream, wrong):
    """Gallant 1990: a run longer than the record enters only with fewer errors on the stored set; else r* stays too."""
    best, run, held, fewest, inside, before = 0, 0, None, np.inf, False, None
    for w, (x, _, c) in zip(vectors, stream, strict=True):
        before = np.zeros_like(w) if before is None else before
        if not transcriptions.skip(x, c):
            moved = not np.array_equal(w, before)
            run, inside = (0, False) if moved else (run + 1, inside)
            if run > best and inside:
                best = run
            elif run > best and wrong(before) < fewest:
                best, held, fewest, inside = run, before, wrong(before), True
        before = w
        yield w if held is None else held


def noisy(seed, task="binary"):
    """A stored set that no weights separate, and its stream with the constant appended; even seeds unweighted."""
    rng = np.random.default_rng(seed)
    stream = [e for e in random_stream(rng, task, 60, noise=0.8, weighted=seed % 2 == 1) if e.c > 0]
    return stream, with_constant(stream)


def stored(stream):
    return np.array([e.x for e in stream]), np.array([e.y for e in stream]), np.array([e.c for e in stream])


@pytest.mark.parametrize("mode", ["online", "incremental"])
@pytest.mark.parametrize("sparse", [False, True])
def test_ratchet_equals_transcription(sparse, mode):
    differs = 0
    for seed in range(6):
        stream, constant = noisy(seed)
        X, y, c = stored(stream)
        Z = np.array([e.x for e in constant])

        def wrong(w, Z=Z, y=y, c=c):
            return np.sum(c[np.where(Z @ w > 0, 1, -1) != y])

        vectors = list(transcriptions.perceptron(constant * 8, 5, lambda t: 1.0))
        expected = list(ratcheted(vectors, constant * 8, wrong))
        learner = ReferenceLearner("perceptron", readout="pocket:ratchet=true", examples=stream)
        same(run(learner, stream * 8), expected)
        errors = [wrong(w) for w in expected[len(stream) :]]  # the pocket is no longer empty
        assert all(later <= earlier for earlier, later in itertools.pairwise(errors))
        model = LinearClassifier("perceptron", readout=Pocket(ratchet=True), mode=mode, passes=8)
        model.fit(scipy.sparse.csr_matrix(X) if sparse else X, y, sample_weight=c)
        same(np.append(model.coef_, model.intercept_), expected[-1])
        differs += not np.array_equal(expected[-1], list(pocket(vectors, constant * 8))[-1])
    assert differs  # from the plain pocket


@pytest.mark.parametrize("order", [True, "random"])
def test_ratchet_in_any_order_judges_by_the_whole_set(order):
    """A pass over rows drawn with replacement is not the set that errors are counted on."""
    stream, constant = noisy(1)
    X, y, c = stored(stream)
    model = LinearClassifier("pocket", readout="pocket:ratchet=true", passes=5, shuffle=order, random_state=0)
    model.fit(X, y, sample_weight=c)
    random = np.random.RandomState(0)
    rows = []
    for _ in range(5):
        at = random.permutation(len(X)) if order is True else random.randint(len(X), size=len(X))
        rows += [constant[i] for i in at]
    Z = np.array([e.x for e in constant])
    vectors = transcriptions.perceptron(rows, 5, lambda t: 1.0)
    expected = list(ratcheted(vectors, rows, lambda w: np.sum(c[np.where(Z @ w > 0, 1, -1) != y])))
    same(np.append(model.coef_, model.intercept_), expected[-1])


def test_ratchet_over_classes():
    stream, constant = noisy(3, "multiclass")
    X, y, c = stored(stream)
    Z = np.array([e.x for e in constant])
    vectors = transcriptions.multiclass_perceptron(constant * 5, 3, 5)
    expected = list(ratcheted(vectors, constant * 5, lambda W: np.sum(c[np.argmax(Z @ W.T, axis=1) != y])))
    same(
        run(ReferenceLearner("pocket", "multiclass", classes=3, readout=Pocket(True), examples=stream), stream * 5),
        expected,
    )
    model = LinearClassifier("pocket", readout="pocket:ratchet=true", passes=5).fit(X, y, sample_weight=c)
    same(np.hstack([model.coef_, model.intercept_[:, np.newaxis]]), expected[-1])


def test_a_stream_has_no_set_to_ratchet_by():
    stream, _ = noisy(0)
    X, y, _ = stored(stream)
    model = LinearClassifier("pocket", readout="pocket:ratchet=true", passes=3).fit(X, y)
    config, arrays = model._model.state()
    before = store.to_bytes("linear", config, arrays)
    for use in (
        lambda: model.learn_one(X[0], y[0]),
        lambda: model.learn_one(X[0], "new"),
        lambda: model.partial_fit(X, y),
        lambda: model.learn_many(X, y),
        lambda: LinearModel("perceptron", readout="pocket:ratchet=true").learn_one({"a": 1.0}, "b"),
    ):
        with pytest.raises(ParameterError, match=r"judges weights on a stored set.*use fit"):
            use()
    assert store.to_bytes("linear", *model._model.state()) == before
    resumed = LinearModel.from_state(config, arrays)  # and by hand it goes on where it was
    again = LinearModel.from_state(config, arrays)
    with resumed.judged_by(X, y), again.judged_by(X, y):
        resumed.learn_many(X, y)
        for x, label in zip(X, y, strict=True):
            again.learn_one(x, label)
    assert store.to_bytes("linear", *resumed.state()) == store.to_bytes("linear", *again.state()) != before
    with pytest.raises(LabelError, match=r"y\[1\] of the stored set"), resumed.judged_by(X[:2], [1, 7]):
        pass
    bad = np.where(np.arange(X.size).reshape(X.shape) == 9, np.nan, X)
    with pytest.raises(InputError, match=r"X\[2, 1\] is NaN"), resumed.judged_by(bad, y):
        pass


@pytest.mark.parametrize("task", ["multilabel", "ranking"])
def test_ratchet_counts_labels(task):
    for make in (ReferenceLearner, LinearModel):
        with pytest.raises(ParameterError, match="counts wrong labels"):
            make("perceptron", task, readout="pocket:ratchet=true", fit_intercept=False)
    with pytest.raises(ParameterError, match="give examples="):
        ReferenceLearner("perceptron", readout=Pocket(ratchet=True))


# ---- voted ----


def voters(vectors, stream):
    """(w_k, c_k): the first vector starts at 0, one made by an update at 1; a passive round adds 1."""
    kept = None
    for w, (x, _, c) in zip(vectors, stream, strict=True):
        if kept is None:
            kept = [[np.zeros_like(w), 0]]
        if transcriptions.skip(x, c):
            continue
        if np.array_equal(w, kept[-1][0]):
            kept[-1][1] += 1
        else:
            kept.append([w, 1])
    return kept


def vote(kept, x):
    return sum(count * (1 if w @ x > 0 else -1) for w, count in kept)


def test_worked_votes():
    """A: vectors 0, (1,2), (−1,3), (0,2) with counters 0, 1, 1, 3."""
    kept = voters(list(transcriptions.perceptron(A, 2, lambda t: 1.0)), A)
    assert [count for _, count in kept] == [0, 1, 1, 3]
    model = model_of("perceptron", readout="voted", fit_intercept=False)
    learner = ReferenceLearner("perceptron", readout="voted", fit_intercept=False)
    for x, y, _ in A:
        model.learn_one(x, y)
        learner.learn(x, y)
    for x, votes in (((1.0, 0.0), -3), ((0.0, 1.0), 5), ((4.0, -1.0), -3), ((0.0, -1.0), -5), ((5.0, 1.0), 3)):
        assert vote(kept, np.array(x)) == votes
        assert learner.score(x) == votes
        assert model.score_one(x) == votes
        assert model.predict_one(x) == learner.predict(x) == (1 if votes > 0 else -1)


VOTED = {
    "perceptron": (rules.Perceptron(), lambda s: transcriptions.perceptron(s, 5, lambda t: 1.0)),
    "margin": (rules.Perceptron(0.5, 0.3), lambda s: transcriptions.perceptron(s, 5, lambda t: 0.5, 0.3)),
    "pa1": (rules.PA1(0.3), lambda s: transcriptions.pa_classification(s, 5, "PA-I", 0.3)),
}


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", VOTED)
def test_voted_equals_brute_force(name, weighted, intercept):
    rule, transcription = VOTED[name]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        stream = random_stream(rng, "binary", 100, weighted=weighted)
        constant = with_constant(stream, float(intercept))
        kept = voters(list(transcription(constant)), constant)
        model = model_of(rule, readout="voted", fit_intercept=intercept)
        table = model_of(rule, readout="voted", fit_intercept=intercept)
        learner = ReferenceLearner(rule, readout="voted", fit_intercept=intercept)
        for x, y, c in stream:
            model.learn_one(x, y, c)
            learner.learn(x, y, c)
        table.learn_many(np.array([e.x for e in stream]), [e.y for e in stream], [e.c for e in stream])
        X = rng.normal(size=(40, 4))
        expected = [vote(kept, np.append(x, float(intercept))) for x in X]
        np.testing.assert_allclose([learner.score(x) for x in X], expected)
        np.testing.assert_allclose([model.score_one(x) for x in X], expected)
        np.testing.assert_allclose(model.score_many(X)[:, 0], expected)
        np.testing.assert_allclose(table.score_many(X)[:, 0], expected)
        named = model_of(rule, readout="voted", fit_intercept=intercept)
        for x, y, c in stream:
            named.learn_one({f"x{j}": v for j, v in enumerate(x) if v}, y, c)
        np.testing.assert_allclose([named.score_one({f"x{j}": v for j, v in enumerate(x)}) for x in X], expected)


def test_voted_over_classes():
    """Each vector gives its counter to the class it would predict."""
    rng = np.random.default_rng(0)
    stream = random_stream(rng, "multiclass", 100)
    constant = with_constant(stream)
    kept = voters(list(transcriptions.multiclass_perceptron(constant, 3, 5)), constant)
    model = model_of("perceptron", "multiclass", classes=3, readout="voted")
    learner = ReferenceLearner("perceptron", "multiclass", classes=3, readout="voted")
    for x, y, c in stream:
        model.learn_one(x, y, c)
        learner.learn(x, y, c)
    for x in rng.normal(size=(40, 4)):
        votes = np.zeros(3)
        for W, count in kept:
            votes[np.argmax(W @ np.append(x, 1.0))] += count
        np.testing.assert_allclose(learner.score(x), votes)
        np.testing.assert_allclose(model.score_one(x), votes)
        assert model.predict_one(x) == learner.predict(x) == np.argmax(votes)


def test_too_many_vectors_leave_the_model_unchanged():
    stream = [e for e in random_stream(np.random.default_rng(0), "binary", 60) if np.any(e.x)]
    model = LinearModel("perceptron", classes=[-1, 1], readout=Voted(max_vectors=4))
    probe = np.random.default_rng(1).normal(size=(20, 4))
    refused = 0
    for x, y, _ in stream:
        before, t, k = model.score_many(probe) if model.t else None, model.t, model.k
        state = {key: np.array(value) for key, value in model.state()[1].items()}
        try:
            model.learn_one(x, y)
        except MemoryError as error:
            assert "max_vectors" in str(error)
            refused += 1
            assert (model.t, model.k) == (t, k)
            np.testing.assert_array_equal(model.score_many(probe), before)
            for key, value in model.state()[1].items():
                np.testing.assert_array_equal(value, state[key])
    assert refused > 1
    assert model.k == 4


FORMS = {
    "dense": np.asarray,
    "sparse": scipy.sparse.csr_matrix,
    "named": lambda X: [dict(zip("abcd", x, strict=True)) for x in X],
}


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_too_many_vectors_in_a_table_stop_at_their_row(form, grows):
    """As one by one: the rows before it are learned, the error tells which it was."""
    stream = [e for e in random_stream(np.random.default_rng(0), "binary", 60) if np.any(e.x)]
    X, y = np.array([e.x for e in stream]), [e.y for e in stream]
    make = {} if grows else {"classes": [-1, 1]}
    one, table = (LinearModel("perceptron", readout=Voted(max_vectors=4), **make) for _ in range(2))
    row = 0
    with pytest.raises(MemoryError):
        for row, x in enumerate(FORMS[form](X) if form == "named" else X):
            one.learn_one(x, y[row])
    with pytest.raises(FullError, match=f"row {row}: .*max_vectors.*rows before it were learned") as caught:
        table.learn_many(FORMS[form](X), y)
    assert caught.value.row == row == table.t > 4
    if form != "sparse":  # of single rows as of tables
        assert store.to_bytes("linear", *one.state()) == store.to_bytes("linear", *table.state())
    learner = ReferenceLearner("perceptron", readout=Voted(max_vectors=4))
    with pytest.raises(FullError):
        run(learner, stream)
    assert learner.t == row
    estimator = LinearClassifier("perceptron", readout=Voted(max_vectors=4))
    if form != "named":
        with pytest.raises(FullError) as caught:
            estimator.partial_fit(FORMS[form](X), y, classes=[-1, 1])
        assert estimator.t_ == caught.value.row == row


def test_malformed_rows_beyond_the_bound_refuse_all():
    stream = [e for e in random_stream(np.random.default_rng(0), "binary", 60) if np.any(e.x)]
    X, y = np.array([e.x for e in stream]), [e.y for e in stream]
    X[-1, 0] = np.nan
    model = LinearModel("perceptron", classes=[-1, 1], readout=Voted(max_vectors=4))
    with pytest.raises(InputError, match="NaN"):
        model.learn_many(X, y)
    assert model.t == 0


@pytest.mark.parametrize("make", [ReferenceLearner, LinearModel])
@pytest.mark.parametrize("rule", [rules.Shifting(), rules.SGD(l2=0.1), rules.ALMA(), rules.ROMMA()], ids=repr)
def test_rules_that_shrink_have_no_vote(make, rule):
    with pytest.raises(ParameterError, match="voted"):
        make(rule, readout="voted")
