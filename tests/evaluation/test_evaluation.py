"""What prequential evaluation adds to the plain loop: metrics of scores, weights, missing and late labels, hold-out,
distributed copies, rankings. Each against a loop written out by hand."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
from support.extras import require_extra

import onepass as op
from onepass import evaluation, metrics
from onepass.datasets import SEA, RotatingHyperplane
from onepass.errors import InputError, ParameterError
from onepass.evaluation import DelayedStream, PendingLabels, prequential
from onepass.models.linear import LinearModel

STREAM = RotatingHyperplane(6000, d=4, turns=2)
X, Y = next(STREAM.chunks(6000))


class Chunks:
    """A stream of objects like those of `onepass.stream`: `batches(size)` with named columns."""

    def __init__(self, X: Any, y: Any, **columns: Any) -> None:
        self.X, self.y, self.columns = X, y, columns

    def batches(self, size: int) -> Iterator[Any]:
        for start in range(0, len(self.X), size):
            cut = slice(start, start + size)
            named = {name: column[cut] for name, column in self.columns.items()}
            yield SimpleNamespace(X=self.X[cut], y=None if self.y is None else self.y[cut], id=None, **named)


def rows() -> Iterator[tuple[np.ndarray, int]]:
    return zip(X, Y.tolist(), strict=True)


def same(a: op.Run, b: op.Run, exact: bool = True) -> None:
    assert (a.t, a.examples, a.metrics) == (b.t, b.examples, b.metrics)
    for metric, views in a.curves.items():
        for view, values in views.items():
            other = b.curves[metric][view]
            if exact:
                np.testing.assert_array_equal(values, other, err_msg=f"{metric} {view}")
            else:
                np.testing.assert_allclose(values, other, rtol=1e-12, err_msg=f"{metric} {view}")


# -- metrics of scores and probabilities ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [LinearModel, op.LinearClassifier], ids=["model", "estimator"])
def test_scores_in_chunks_are_those_one_by_one(make: Any) -> None:
    wanted = ["error", "auc", "log_loss", "hinge", "top_k:k=1", "f1", "kappa", "balanced_accuracy"]
    fast = prequential(make("sgd:loss=logistic"), STREAM, wanted, every=700)
    slow = prequential(make("sgd:loss=logistic"), rows(), wanted, every=700)
    same(fast, slow)
    assert fast.per_class == slow.per_class and fast.calibration == slow.calibration
    assert fast.calibration is not None and fast.calibration["of"] == 1


def test_scores_are_those_before_learning() -> None:
    run = prequential(LinearModel("sgd:loss=logistic"), STREAM, ["auc", "log_loss", "hinge"], every=6000)
    model = LinearModel("sgd:loss=logistic")
    scores = np.zeros(6000)
    for i, (x, y) in enumerate(rows()):
        scores[i] = model.score_one(x) if len(model.classes) == 2 else 0.0
        model.learn_one(x, y)
    start = int(np.argmax(Y != Y[0])) + 1  # from here on both classes are known
    sure = Y[start:]
    p = 1 / (1 + np.exp(-scores[start:]))
    assert run.values["log_loss"] == pytest.approx(sk.log_loss(sure, p), rel=1e-9)
    assert run.values["auc"] == pytest.approx(sk.roc_auc_score(Y, scores), abs=2 * start / 6000)
    margins = (2 * Y - 1) * scores
    assert run.values["hinge"] == pytest.approx(np.mean(np.maximum(0, 1 - margins)), rel=1e-9)


def test_classes_that_grow_within_a_chunk() -> None:
    rng = np.random.default_rng(0)
    y = np.array([3, 3, 1, 3, 1, 2, 0, *rng.integers(0, 5, size=500).tolist()])
    table = rng.normal(size=(len(y), 3)) + y[:, np.newaxis]
    wanted = ["error", "auc", "top_k:k=2"]
    fast = prequential(LinearModel("pa1"), [(table, y)], wanted, every=100)
    slow = prequential(LinearModel("pa1"), zip(table, y.tolist(), strict=True), wanted, every=100)
    same(fast, slow)
    parts = LinearModel("pa1").score_then_learn(table, y)
    assert sum(len(scores) for _, scores in parts) == len(y)
    assert [len(classes) for classes, _ in parts][:3] == [0, 1, 1]
    one, two = LinearModel("pa1"), LinearModel("pa1")
    one.score_then_learn(table, y)
    two.learn_many(table, y)
    assert one.weights()[0].tobytes() == two.weights()[0].tobytes()
    with pytest.raises(InputError, match="score_one"):
        one.score_then_learn([{"a": 1.0}], [1])


def test_river_models_give_probabilities() -> None:
    linear_model = require_extra("river.linear_model")
    river_metrics = require_extra("river.metrics")
    stream = SEA(1500)
    run = prequential(linear_model.LogisticRegression(), stream, ["auc", "log_loss", "error"], every=500)
    model, loss = linear_model.LogisticRegression(), river_metrics.LogLoss()
    p, truth = [], []
    for x, y in stream:
        said = model.predict_proba_one(x)
        loss.update(y, said)
        p.append(said[True])
        truth.append(y)
        model.learn_one(x, y)
    assert run.values["auc"] == pytest.approx(sk.roc_auc_score(truth, p), rel=1e-12)
    assert run.values["log_loss"] == pytest.approx(loss.get(), rel=1e-9)
    with pytest.raises(ParameterError, match="score_one"):
        prequential(linear_model.LogisticRegression(), stream, "hinge")


@pytest.mark.parametrize(
    ("metric", "match"), [("log_loss", "predict_proba_one|probabilities"), ("hinge", "score_one"), ("auc", "scores")]
)
def test_a_model_that_cannot_answer_is_refused_before_it_learns(metric: str, match: str) -> None:
    class Plain:
        heard = 0

        def predict_one(self, x: Any) -> int:
            return 0

        def learn_one(self, x: Any, y: Any) -> None:
            self.heard += 1

    model = Plain()
    with pytest.raises(ParameterError, match=match):
        prequential(model, STREAM, metric)
    assert model.heard == 0
    with pytest.raises(ParameterError, match="probabilities"):
        prequential(LinearModel("pa1"), STREAM, "log_loss")


def test_more_classes_than_a_confusion_matrix_holds() -> None:
    model = LinearModel("perceptron")
    pairs = [({"a": float(i)}, i) for i in range(1200)]
    run = prequential(model, pairs, "error")
    assert run.examples == 1200 and run.per_class == []
    with pytest.raises(InputError, match="1,000 classes"):
        prequential(LinearModel("perceptron"), pairs, "kappa")


# -- weights, missing labels, kinds of streams ------------------------------------------------------------------------


def test_weights_count_in_learning_and_in_metrics() -> None:
    weight = np.random.default_rng(1).exponential(size=6000)
    weight[::7] = 0
    fast = prequential(LinearModel("pa1:C=0.1"), Chunks(X, Y, weight=weight), ["error", "auc"], every=900)
    triples = ((x, y, w) for (x, y), w in zip(rows(), weight.tolist(), strict=True))
    same(fast, prequential(LinearModel("pa1:C=0.1"), triples, ["error", "auc"], every=900))
    model, wrong = LinearModel("pa1:C=0.1"), 0.0
    for (x, y), w in zip(rows(), weight.tolist(), strict=True):
        wrong += w * (model.predict_one(x) != y)
        model.learn_one(x, y, w)
    assert fast.values["error"] == pytest.approx(wrong / weight.sum(), rel=1e-12)
    assert fast.weight == pytest.approx(weight.sum())


def test_weights_for_a_model_that_takes_none_are_an_error() -> None:
    class Plain:
        def predict_one(self, x: Any) -> int:
            return 0

        def learn_one(self, x: Any, y: Any) -> None: ...

    with pytest.raises(ParameterError, match="takes none"):
        prequential(Plain(), [((), 1, 2.0)])
    with pytest.raises(InputError, match="importance"):
        prequential(Plain(), [((), 1, -1.0)])


@pytest.mark.parametrize("kind", ["float", "object"])
def test_rows_without_label_are_predicted_not_learned(kind: str) -> None:
    y: Any = Y.astype(float) if kind == "float" else Y.astype(object)
    missing = np.random.default_rng(2).random(6000) < 0.3
    y[missing] = math.nan if kind == "float" else None
    told: list[Any] = []
    chunked = prequential(
        LinearModel("pa1"), Chunks(X, y), "error", every=500, on_predictions=lambda _, said: told.extend(said)
    )
    kept = zip(X[~missing], Y[~missing].tolist(), strict=True)
    same(chunked, prequential(LinearModel("pa1"), kept, "error", every=500))
    assert chunked.unlabelled == missing.sum() and len(told) == 6000
    one = prequential(LinearModel("pa1"), zip(X, y.tolist(), strict=True), "error", every=500)
    same(chunked, one)
    assert one.unlabelled == missing.sum() and "without label" in repr(one)
    assert prequential(LinearModel("pa1"), Chunks(X, None)).unlabelled == 6000


def test_streams_of_chunks_in_any_form() -> None:
    whole = prequential(LinearModel("pa1"), STREAM, every=700)
    same(whole, prequential(LinearModel("pa1"), [(X[:1234], Y[:1234]), (X[1234:], Y[1234:])], every=700))
    same(whole, prequential(LinearModel("pa1"), list(Chunks(X, Y).batches(999)), every=700))
    same(whole, prequential(LinearModel("pa1"), Chunks(X, Y), every=700))
    with pytest.raises(InputError, match="5 rows but 4 labels"):
        prequential(LinearModel("pa1"), [(X[:5], Y[:4])])


def test_frames_and_sparse_rows() -> None:
    pandas = require_extra("pandas")
    sparse = require_extra("scipy.sparse")
    whole = prequential(LinearModel("pa1"), STREAM, every=700)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    same(whole, prequential(LinearModel("pa1"), [(frame, Y)], every=700))
    matrix = sparse.csr_matrix(X)
    same(whole, prequential(LinearModel("pa1"), [(matrix, Y)], every=700), exact=False)
    linear_model = require_extra("river.linear_model")
    named = ({str(j): v for j, v in enumerate(x.tolist())} for x in X)
    expected = prequential(linear_model.PAClassifier(), zip(named, Y.tolist(), strict=True), every=700)
    same(expected, prequential(linear_model.PAClassifier(), [(X, Y)], every=700))
    same(expected, prequential(linear_model.PAClassifier(), [(frame, Y)], every=700))
    same(expected, prequential(linear_model.PAClassifier(), [(matrix, Y)], every=700))


def test_lists_of_mappings_as_chunks() -> None:
    pairs = list(STREAM)
    chunk = SimpleNamespace(X=[x for x, _ in pairs], y=Y)
    told: list[Any] = []
    for wanted in (["error"], ["error", "auc"]):
        expected = prequential(LinearModel("pa1"), pairs, wanted, every=700)
        got = prequential(LinearModel("pa1"), [chunk], wanted, every=700, on_predictions=lambda _, s: told.extend(s))
        same(expected, got)
    assert len(told) == 12_000


# -- late labels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 1, 3, 250, 10_000])
def test_a_delay_in_examples(delay: int) -> None:
    run = prequential(LinearModel("pa1"), STREAM, "error", every=6000, delay=delay)
    model, at_prediction, at_label = LinearModel("pa1"), 0, 0
    said: list[Any] = []
    answers = Y.tolist()

    def reveal(t: int) -> None:
        nonlocal at_prediction, at_label
        at_prediction += said[t] != answers[t]
        at_label += model.predict_one(X[t]) != answers[t]
        model.learn_one(X[t], answers[t])

    for t, x in enumerate(X):
        said.append(model.predict_one(x))
        if t - delay >= 0:
            reveal(t - delay)  # y_t is there after the prediction of round t + delay
    for t in range(max(0, 6000 - delay), 6000):
        reveal(t)
    assert run.value == at_prediction / 6000
    if delay:
        assert run.at_label is not None and run.at_label.value == at_label / 6000
    else:
        assert run.at_label is None and at_label == at_prediction


def test_a_delay_in_time() -> None:
    by_number = prequential(LinearModel("pa1"), rows(), every=500, delay=40)
    timed = (({"a": x[0], "b": x[1], "c": x[2], "d": x[3], "t": 0.0}, y) for x, y in rows())
    clock = iter(range(10**6))
    same(
        prequential(LinearModel("pa1"), ((x, y) for x, y in rows()), every=500, delay=40, time=lambda x: next(clock)),
        by_number,
    )
    day = datetime.datetime(2026, 1, 1)
    times = [day + datetime.timedelta(minutes=i) for i in range(6000)]
    with_times = Chunks(X, Y, time=times)
    same(prequential(LinearModel("pa1"), with_times, every=500, delay=datetime.timedelta(minutes=40)), by_number)
    stamps = Chunks(X, Y, time=np.array(times, dtype="datetime64[s]"))
    same(prequential(LinearModel("pa1"), stamps, every=500, delay=datetime.timedelta(minutes=40)), by_number)
    # All at one moment: no label comes before the last prediction.
    at_once = prequential(LinearModel("pa1"), timed, every=500, delay=0, time="t")
    assert at_once.value == 1.0 and at_once.at_label is not None and at_once.at_label.value < 0.5


def test_bad_times() -> None:
    with pytest.raises(InputError, match="no time"):
        prequential(LinearModel("pa1"), STREAM, delay=datetime.timedelta(1))
    with pytest.raises(InputError, match="no feature 'when'"):
        prequential(LinearModel("pa1"), STREAM, delay=1, time="when")
    with pytest.raises(InputError, match=r"example 3: its time 1 is before 5"):
        prequential(LinearModel("pa1"), [({"t": t}, 0) for t in (0, 5, 1)], delay=1, time="t")
    for delay in (-1, 1.5, "soon", True):
        with pytest.raises(ParameterError, match="delay"):
            prequential(LinearModel("pa1"), STREAM, delay=delay)
    with pytest.raises(ParameterError, match="delay"):
        prequential(LinearModel("pa1"), STREAM, delay=datetime.timedelta(-1))


def test_events_in_any_order() -> None:
    events = [
        ("x", "a", {"f": 1.0}),
        ("x", "b", {"f": -1.0}),
        ("y", "b", 0),
        ("x", "c", {"f": 1.0}),
        ("y", "a", 1),
        ("x", "d", {"f": 1.0}),
        ("y", "d", 1),
    ]
    run = prequential(LinearModel("pa1"), events, every=10)
    # a and b were predicted knowing nothing, d as 1; c never got its label.
    assert run.examples == 3 and run.unlabelled == 1
    assert run.value == pytest.approx(2 / 3)
    same(prequential(LinearModel("pa1"), DelayedStream(STREAM, 7)), prequential(LinearModel("pa1"), STREAM, delay=7))


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (("y", "z", 1), "no example came before"),
        (("y", "a", 1), "second one"),
        (("x", "a", {}), "come before"),
        (("x", "b", {}), "come before"),
        (("z", "b", {}), "event"),
    ],
)
def test_events_that_cannot_be(bad: Any, match: str) -> None:
    model = LinearModel("pa1")
    events = [("x", "a", {"f": 1.0}), ("y", "a", 1), ("x", "b", {"f": 1.0}), bad]
    with pytest.raises(InputError, match=match) as caught:
        prequential(model, events)
    assert isinstance(caught.value, ValueError) and model.t == 1


def test_the_store_is_bounded_and_counts_what_it_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    store = PendingLabels(3)
    for i in range(5):
        store.put(i, f"x{i}")
    assert (len(store), store.dropped, store.late) == (3, 2, 0)
    assert store.take(0) is None and store.late == 1
    with pytest.raises(InputError, match="second one"):
        store.take(0)
    assert store.take(3) == "x3" and len(store) == 2
    monkeypatch.setattr(evaluation.delays, "REMEMBERED", 5)
    store = PendingLabels(3)
    for i in range(10_000):
        store.put(i, None)
    assert sum(len(ids) for ids in (store._waiting, store._answered, store._dropped)) <= 3 + 5 + 5
    monkeypatch.undo()
    run = prequential(LinearModel("pa1"), STREAM, delay=100, max_pending=10)
    assert run.dropped == 6000 - 10 and run.late == 6000 - 10 and run.examples == 10
    with pytest.raises(ParameterError, match="max_pending"):
        PendingLabels(0)


# -- hold-out ---------------------------------------------------------------------------------------------------------


def test_every_nth_is_held_out() -> None:
    run = prequential(LinearModel("pa1"), STREAM, "error", every=500, holdout=10)
    same(run, prequential(LinearModel("pa1"), rows(), "error", every=500, holdout=10))
    model, wrong, count, learned = LinearModel("pa1"), 0, 0, 0
    for t, (x, y) in enumerate(rows(), start=1):
        right = model.predict_one(x) == y
        if t % 10 == 0:
            wrong, count = wrong + (not right), count + 1
        else:
            model.learn_one(x, y)
            learned += 1
    assert run.examples == learned == 5400
    assert run.holdout["t"] == run.t
    assert run.holdout["error"][-1] == pytest.approx(wrong / count)


@pytest.mark.parametrize("every", [500, 333])
def test_a_fixed_set_is_judged_now_and_then(every: int) -> None:
    test = (X[5000:], Y[5000:])
    train = [(X[:5000], Y[:5000])]
    run = prequential(LinearModel("pa1"), train, "error", every=500, holdout=test, holdout_every=every)
    pairs = list(zip(X[5000:], Y[5000:].tolist(), strict=True))
    slow = prequential(
        LinearModel("pa1"), zip(X[:5000], Y[:5000].tolist(), strict=True), "error", holdout=pairs, holdout_every=every
    )
    assert run.holdout == slow.holdout
    model, expected = LinearModel("pa1"), []
    for t in range(1, 5001):
        model.learn_one(X[t - 1], int(Y[t - 1]))
        if t % every == 0 or t == 5000:
            expected.append((t, float(np.mean(model.predict_many(X[5000:]) != Y[5000:]))))
    assert list(zip(run.holdout["t"], run.holdout["error"], strict=True)) == expected
    for bad in (1, 0, []):
        with pytest.raises(ParameterError, match="holdout"):
            prequential(LinearModel("pa1"), train, holdout=bad)


# -- rankings ---------------------------------------------------------------------------------------------------------


def test_queries_are_judged_whole() -> None:
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(200), rng.integers(3, 12, size=200))
    table = rng.normal(size=(len(query), 5))
    relevance = np.clip(np.round(table @ [1, 0.5, 0, -0.5, 0.2] + rng.normal(size=len(query)) * 0.3), 0, 2)
    stream = Chunks(table, relevance, query=query)
    run = prequential(op.Ranker("pa1:C=0.1"), stream, ["ndcg:k=5", "map"], every=50)
    assert (run.unit, run.examples, run.t) == ("queries", 200, [50, 100, 150, 200])
    scores = op.Ranker("pa1:C=0.1").predict_then_learn(table, relevance, qid=query)
    ndcg, precision = [], []
    for q in range(200):
        y, s = relevance[query == q], scores[query == q]
        ndcg.append(sk.ndcg_score([y], [s], k=5) if y.any() else 0.0)
        if y.any():
            precision.append(sk.average_precision_score(y > 0, s))
    assert run.values["ndcg:k=5"] == pytest.approx(np.mean(ndcg), rel=1e-9)
    assert run.values["map"] == pytest.approx(np.mean(precision), rel=1e-9)
    assert prequential(op.Ranker(), stream, every=50).metrics == ["ndcg"]
    with pytest.raises(InputError, match="query"):
        prequential(op.Ranker(), zip(table, relevance, strict=True), "ndcg")


def test_label_sets_are_rankings_of_labels() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(600, 6))
    sets = (table @ rng.normal(size=(6, 4)) > 0.5).astype(int)
    model = op.MultilabelClassifier("pa1")
    run = prequential(model, [(table, sets)], ["map", "ndcg"], every=200)
    scores = np.concatenate([s for _, s in op.MultilabelClassifier("pa1").score_then_learn(table, sets)])
    kept = sets.any(axis=1)
    assert run.values["map"] == pytest.approx(sk.label_ranking_average_precision_score(sets[kept], scores[kept]))
    exact = prequential(op.MultilabelClassifier("pa1"), [(table, sets)], "error", every=200)
    said = np.asarray(op.MultilabelClassifier("pa1").predict_then_learn(table, sets))
    assert exact.value == pytest.approx(np.mean(np.any(said != sets, axis=1)))


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_metrics_objects_and_settings() -> None:
    run = prequential(LinearModel("pa1"), STREAM, [metrics.F1("macro"), "error"], every=3000, delay=5)
    assert run.metrics == ["f1:average=macro", "error"]
    assert run.settings["delay"] == "5 examples" and "RotatingHyperplane" in run.settings["stream"]


def test_progress_may_mark() -> None:
    run = prequential(LinearModel("pa1"), STREAM, every=2000, progress=lambda run: run.mark(run.examples, "here"))
    assert [t for t, _ in run.marks] == [2000, 4000, 6000]
    with pytest.raises(ParameterError, match="t="):
        run.mark(-1, "x")
