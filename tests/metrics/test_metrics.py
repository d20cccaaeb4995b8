"""Metrics: scikit-learn's numbers, on random streams, in every view, however the stream is cut."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.calibration
import sklearn.metrics as sk

from onepass import metrics
from onepass.errors import InputError, ParameterError
from onepass.metrics import Labels, Meter, Outcomes, Recorder
from onepass.metrics.meters import BLOCK
from onepass.metrics.statistics import Bins, Ranks, Table

N = 700


class Stream:
    """Random answers of `classes` labels with scores, probabilities and weights."""

    def __init__(self, classes: int, seed: int = 0, n: int = N, *, ties: bool = False, weighted: bool = True) -> None:
        rng = np.random.default_rng(seed)
        self.names = [f"c{i}" for i in range(classes)]
        truth = rng.choice(classes, size=n, p=rng.dirichlet(np.full(classes, 3.0)))
        truth[:classes] = range(classes)
        self.scores = rng.normal(size=(n, classes))
        self.scores[np.arange(n), truth] += 1.0
        if ties:
            self.scores = np.round(self.scores)
        e = np.exp(self.scores)
        self.proba = e / e.sum(axis=1, keepdims=True)
        self.y = np.array(self.names)[truth]
        self.said = np.array(self.names)[self.scores.argmax(axis=1)]
        self.margin = self.scores[:, -1] - self.scores[:, 0]
        self.weight = rng.exponential(size=n) if weighted else np.ones(n)

    def part(self, start: int, stop: int) -> dict[str, Any]:
        cut = slice(start, stop)
        return {
            "y": self.y[cut],
            "prediction": self.said[cut],
            "scores": self.scores[cut],
            "probabilities": self.proba[cut],
            "classes": self.names,
            "weight": self.weight[cut],
        }


class Numbers:
    def __init__(self, seed: int = 0, n: int = N) -> None:
        rng = np.random.default_rng(seed)
        self.y = 1e4 + rng.normal(size=n)  # far from 0: sums of squares would lose their digits
        self.said = self.y + rng.normal(size=n)
        self.weight = rng.exponential(size=n)

    def part(self, start: int, stop: int) -> dict[str, Any]:
        cut = slice(start, stop)
        return {"y": self.y[cut], "prediction": self.said[cut], "weight": self.weight[cut]}


# metric, number of classes, what scikit-learn says of (stream, rows, weights)
Judge = Callable[[Any, slice, np.ndarray], float]


def _auc(s: Stream, i: slice, w: np.ndarray) -> float:
    return float(
        np.mean([sk.roc_auc_score(s.y[i] == c, s.scores[i, j], sample_weight=w) for j, c in enumerate(s.names)])
    )


def _ap(s: Stream, i: slice, w: np.ndarray) -> float:
    each = [sk.average_precision_score(s.y[i] == c, s.scores[i, j], sample_weight=w) for j, c in enumerate(s.names)]
    return float(np.mean(each))


def _one_ap(s: Stream, i: slice, w: np.ndarray) -> float:
    return float(sk.average_precision_score(s.y[i] == "c1", s.scores[i, 1], sample_weight=w))


def _top(s: Stream, i: slice, w: np.ndarray) -> float:
    return float(sk.top_k_accuracy_score(s.y[i], s.scores[i], k=2, labels=s.names, sample_weight=w))


CLASSES: list[tuple[str, int, Judge]] = [
    ("accuracy", 4, lambda s, i, w: sk.accuracy_score(s.y[i], s.said[i], sample_weight=w)),
    ("error", 2, lambda s, i, w: sk.zero_one_loss(s.y[i], s.said[i], sample_weight=w)),
    ("balanced_accuracy", 5, lambda s, i, w: sk.balanced_accuracy_score(s.y[i], s.said[i], sample_weight=w)),
    ("kappa", 4, lambda s, i, w: sk.cohen_kappa_score(s.y[i], s.said[i], sample_weight=w)),
    ("log_loss", 2, lambda s, i, w: sk.log_loss(s.y[i], s.proba[i], labels=s.names, sample_weight=w)),
    ("log_loss", 5, lambda s, i, w: sk.log_loss(s.y[i], s.proba[i], labels=s.names, sample_weight=w)),
    ("auc", 2, lambda s, i, w: sk.roc_auc_score(s.y[i] == "c1", s.scores[i, 1], sample_weight=w)),
    ("auc:positive=c0", 2, lambda s, i, w: sk.roc_auc_score(s.y[i] == "c0", s.scores[i, 0], sample_weight=w)),
    ("auc", 4, _auc),
    (
        "average_precision",
        2,
        _one_ap,
    ),
    ("average_precision", 3, _ap),
    ("hinge", 3, lambda s, i, w: sk.hinge_loss(s.y[i], s.scores[i], labels=s.names, sample_weight=w)),
    ("hinge", 2, lambda s, i, w: sk.hinge_loss(s.y[i] == "c1", s.margin[i], sample_weight=w)),
    (
        "top_k:k=2",
        5,
        _top,
    ),
]
for _name, _score in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
    for _average in ("macro", "micro", "weighted"):

        def _judge(s: Any, i: slice, w: np.ndarray, score: Any = _score, average: str = _average) -> float:
            return float(score(s.y[i], s.said[i], average=average, sample_weight=w, zero_division=0))

        CLASSES.append((f"{_name}:average={_average}", 4, _judge))

    def _binary(s: Any, i: slice, w: np.ndarray, score: Any = _score) -> float:
        return float(score(s.y[i], s.said[i], pos_label="c1", sample_weight=w, zero_division=0))

    CLASSES.append((_name, 2, _binary))

NUMBERS: list[tuple[str, int, Judge]] = [
    ("mae", 0, lambda s, i, w: sk.mean_absolute_error(s.y[i], s.said[i], sample_weight=w)),
    ("rmse", 0, lambda s, i, w: sk.root_mean_squared_error(s.y[i], s.said[i], sample_weight=w)),
    ("r2", 0, lambda s, i, w: sk.r2_score(s.y[i], s.said[i], sample_weight=w)),
    ("quantile:q=0.9", 0, lambda s, i, w: sk.mean_pinball_loss(s.y[i], s.said[i], alpha=0.9, sample_weight=w)),
    ("above", 0, lambda s, i, w: float(np.average(s.said[i] > s.y[i], weights=w))),
    # Of r = y − ŷ, |r| − r is twice what ŷ is above y.
    ("excess", 0, lambda s, i, w: float(np.average(np.abs(s.y[i] - s.said[i]) - (s.y[i] - s.said[i]), weights=w) / 2)),
]
ALL = CLASSES + NUMBERS


def make(metric: str, classes: int, seed: int = 0) -> Any:
    return Stream(classes, seed) if classes else Numbers(seed)


def needed(metric: str, part: dict[str, Any]) -> dict[str, Any]:
    """Probabilities only where they are wanted: beside scores they are not used."""
    if metric != "log_loss":
        part.pop("probabilities", None)
    return part


@pytest.mark.full
@pytest.mark.parametrize(("metric", "classes", "judge"), ALL, ids=[f"{m}-{c}" for m, c, _ in ALL])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_view_is_what_scikit_learn_says(metric: str, classes: int, judge: Judge, seed: int) -> None:
    stream = make(metric, classes, seed)
    window, alpha = 150, 0.99
    meter = Meter(metric, window=window, fading=alpha)
    last = 0
    for start, stop in itertools.pairwise([0, 300, 303, 480, N]):
        meter.add(**needed(metric, stream.part(start, stop)))
        whole = slice(0, stop)
        assert meter.value == pytest.approx(judge(stream, whole, stream.weight[whole]), rel=1e-9)
        recent = slice(max(0, stop - window), stop)
        assert meter.window == pytest.approx(judge(stream, recent, stream.weight[recent]), rel=1e-9)
        faded = stream.weight[whole] * alpha ** np.arange(stop - 1, -1, -1.0)
        assert meter.fading == pytest.approx(judge(stream, whole, faded), rel=1e-8)
        if stop in (300, 480):
            period = slice(last, stop)
            assert meter.report() == pytest.approx(judge(stream, period, stream.weight[period]), rel=1e-9)
            last = stop
    rest = slice(last, N)
    assert meter.since_last == pytest.approx(judge(stream, rest, stream.weight[rest]), rel=1e-9)


def test_every_metric_is_compared_or_has_its_own_test() -> None:
    compared = {name.partition(":")[0] for name, _, _ in ALL}
    assert compared | {"map", "ndcg", "hamming", "set_error", "set_f1"} == set(metrics.METRICS)


@pytest.mark.parametrize("metric", ["auc", "average_precision", "f1", "kappa"])
def test_ties_and_zero_weights(metric: str) -> None:
    stream = Stream(2, ties=True)
    stream.weight[::3] = 0.0
    judge = next(judge for name, classes, judge in ALL if name == metric and (classes == 2 or metric == "kappa"))
    got = metrics.evaluate(metric, **needed(metric, stream.part(0, N)))
    assert got == pytest.approx(judge(stream, slice(0, N), stream.weight), rel=1e-9)


@pytest.mark.parametrize("metric", ["error", "auc", "log_loss", "kappa", "top_k:k=1"])
def test_the_same_bits_however_the_stream_is_cut(metric: str) -> None:
    n = 2 * BLOCK + 777
    stream = Stream(3, n=n)

    def views(cuts: list[int]) -> list[list[float]]:
        recorder = Recorder([metrics.make(metric)], every=1000, window=900, fading=0.999)
        rows = []
        for start, stop in itertools.pairwise(cuts):
            part = needed(metric, stream.part(start, stop))
            whole = metrics.meters.observed(
                recorder.metrics[0], recorder.labels, **{"scores": None, "probabilities": None, **part}
            )
            at = 0
            while at < len(whole):
                step = min(recorder.room(), len(whole) - at)
                if recorder.add(whole.part(at, at + step)):
                    rows.append([recorder.values(view)[0] for view in metrics.VIEWS])
                    recorder.begin_period()
                at += step
        recorder.settle()
        rows.append([recorder.values(view)[0] for view in metrics.VIEWS])
        return rows

    once = views([0, n])
    assert len(once) == n // 1000 + 1
    assert once == views([0, *range(1, n, 97), n]) == views([0, 5, BLOCK - 1, BLOCK, BLOCK + 1, n])


def test_auc_of_a_long_stream_is_within_its_own_doubt() -> None:
    stream = Stream(2, n=40_000)
    metric = metrics.RocAuc(limit=256)
    recorder = Recorder([metric], every=1 << 40, window=100, fading=1.0)
    for start in range(0, 40_000, 500):
        part = needed("auc", stream.part(start, start + 500))
        recorder.add(metrics.meters.observed(metric, recorder.labels, **{"probabilities": None, **part}))
    recorder.settle()
    state = recorder.state(metric.statistic())
    truth = sk.roc_auc_score(stream.y == "c1", stream.scores[:, 1], sample_weight=stream.weight)
    doubt = metric.doubt(state, recorder.labels)
    assert 0 < doubt < 2 / 256
    assert abs(metric.value(state, recorder.labels) - truth) <= doubt
    assert sum(map(len, state.tables[1])) <= 2 * 256 + BLOCK
    exact = metrics.evaluate("auc:limit=50000", **needed("auc", stream.part(0, 40_000)))
    assert exact == pytest.approx(truth, rel=1e-12)


def test_scores_that_fall_inside_a_merged_entry_join_it() -> None:
    """Otherwise their order against its members would be made up, beyond the stated doubt."""
    merged = Table(np.array([0.0]), np.array([1.0]), np.array([2.0]), np.array([3.0]))
    point = Table(np.array([0.4]), np.array([0.4]), np.array([1.0]), np.array([0.0]))
    joined = Table.merged([merged, point], 100)
    assert len(joined) == 1 and joined.positive[0] == 3.0
    assert joined.auc() == 0.5 and joined.auc_doubt() == 0.5


def test_a_class_that_comes_late_has_the_past_against_it() -> None:
    stream = Stream(3, n=300)
    early = np.sort(np.where(stream.y == "c2", 1, 0))  # all of c2 at the end
    order = np.argsort(np.where(stream.y == "c2", 1, 0), kind="stable")
    first = int(np.argmax(early))
    labels, ranks = Labels(), Ranks()
    states = []
    for rows, names in ((order[:first], ["c0", "c1"]), (order[first:], ["c0", "c1", "c2"])):
        labels.codes(names)
        table = stream.scores[rows][:, : len(names)]
        truth = labels.codes(stream.y[rows])
        states.append(ranks.of(Outcomes("classes", truth, truth, np.ones(len(rows)), table, None, labels)))
    table = ranks.table(ranks.join(*states), labels.code("c2"))
    assert table is not None
    known = np.where(np.arange(300) < first, -np.inf, stream.scores[order, 2])
    expected = sk.roc_auc_score(stream.y[order] == "c2", np.where(np.isinf(known), -1e9, known))
    assert table.auc() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("ties", [False, True])
def test_ndcg(k: int | None, ties: bool) -> None:
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, size=(60, 9)).astype(float), rng.normal(size=(60, 9))
    s = np.round(s) if ties else s
    metric = "ndcg" if k is None else f"ndcg:k={k}"
    assert metrics.evaluate(metric, y, scores=s) == pytest.approx(sk.ndcg_score(y, s, k=k), rel=1e-12)
    exponential = metrics.NDCG(k, "exponential")
    assert metrics.evaluate(exponential, y, scores=s) == pytest.approx(sk.ndcg_score(2**y - 1, s, k=k), rel=1e-12)


def test_map() -> None:
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, size=(60, 9)).astype(float), rng.normal(size=(60, 9))
    y[0] = 0  # without a relevant item: left out
    y[1:, 3] = 1
    expected = np.mean([sk.average_precision_score(a, b) for a, b in zip(y[1:], s[1:], strict=True)])
    assert metrics.evaluate("map", y, scores=s) == pytest.approx(expected, rel=1e-12)
    s = np.round(s)
    expected = sk.label_ranking_average_precision_score(y[1:], s[1:])
    assert metrics.evaluate("map", y, scores=s) == pytest.approx(expected, rel=1e-12)


def test_rows_of_different_lengths_are_filled_with_nan() -> None:
    nan = math.nan
    y, s = np.array([[1.0, 0.0, nan], [0.0, 1.0, 1.0]]), np.array([[2.0, 1.0, nan], [3.0, 2.0, 1.0]])
    expected = np.mean([sk.ndcg_score([[1, 0]], [[2, 1]]), sk.ndcg_score([[0, 1, 1]], [[3, 2, 1]])])
    assert metrics.evaluate("ndcg", y, scores=s) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 4])
def test_calibration_curve(classes: int) -> None:
    stream, labels, bins = Stream(classes, weighted=False), Labels(), Bins()
    truth = labels.codes([*stream.names, *stream.y])[classes:]
    outcomes = Outcomes("classes", truth, truth, stream.weight, None, stream.proba, labels)
    half = N // 2
    state = bins.join(bins.of(outcomes.part(0, half)), bins.of(outcomes.part(half, N)))
    curve = metrics.calibration(state, labels)
    top = stream.proba.argmax(axis=1)
    so, p = (
        (stream.y == "c1", stream.proba[:, 1])
        if classes == 2
        else (np.array(stream.names)[top] == stream.y, stream.proba.max(axis=1))
    )
    observed, predicted = sklearn.calibration.calibration_curve(so, p, n_bins=10)
    np.testing.assert_allclose(curve["observed"], observed, rtol=1e-12)
    np.testing.assert_allclose(curve["predicted"], predicted, rtol=1e-12)
    assert sum(curve["weight"]) == N and curve["of"] == ("c1" if classes == 2 else None)


def test_per_class_table() -> None:
    stream, labels = Stream(5, weighted=False), Labels()
    truth, said = labels.codes(stream.y), labels.codes(stream.said)
    state = metrics.tables.CONFUSION.of(Outcomes("classes", truth, said, stream.weight, labels=labels))
    rows = metrics.per_class(state, labels)
    precision, recall, f1, support = sk.precision_recall_fscore_support(stream.y, stream.said)
    assert [row["label"] for row in rows] == stream.names
    for name, column in (("precision", precision), ("recall", recall), ("f1", f1), ("support", support)):
        np.testing.assert_allclose([row[name] for row in rows], column, rtol=1e-12)


def test_no_prediction_is_wrong_and_of_no_class() -> None:
    y, said = ["a", "b", "a", "b"], [None, "b", "a", "a"]
    assert metrics.evaluate("accuracy", y, said) == 0.5
    assert metrics.evaluate("recall:average=macro", y, said) == 0.5
    assert metrics.evaluate("precision", y, said) == 1.0  # of "b", said once and rightly


def test_labels_are_the_same_when_python_says_so() -> None:
    labels = Labels()
    assert labels.codes(np.array([1, 0, 1])).tolist() == [1, 2, 1]
    assert labels.codes(np.array([True, False])).tolist() == [1, 2]
    assert labels.codes(np.array([1.0, 0.0])).tolist() == [1, 2]
    assert labels.codes(["1", 1, None]).tolist() == [3, 1, 0]
    assert labels.codes(np.array(["1", "x"])).tolist() == [3, 4]
    assert labels.codes(np.array([1, 7])).tolist() == [1, 5]
    big = np.array([2**53, 2**53 + 1])
    assert len(set(labels.codes(big).tolist())) == 2
    assert labels.codes(np.array([1, 7])).tolist() == [1, 5]
    assert labels.codes([{1, 2}, [1, 2], (1, 2)]).tolist()[1:] == [labels.code((1, 2))] * 2


@pytest.mark.parametrize("metric", sorted(metrics.METRICS))
def test_nothing_seen_is_nan(metric: str) -> None:
    meter = Meter(metric)
    assert all(math.isnan(getattr(meter, view)) for view in ("value", "since_last", "window", "fading"))


def test_one_at_a_time() -> None:
    stream = Stream(3)
    whole, single = Meter("auc"), Meter("auc")
    whole.add(**needed("auc", stream.part(0, 60)))
    for i in range(60):
        single.add_one(stream.y[i], scores=stream.scores[i], classes=stream.names, weight=stream.weight[i])
    assert single.value == whole.value
    margin = Meter("hinge")
    margin.add([0, 1, 1], scores=[-2.0, 0.25, 3.0])
    assert margin.value == pytest.approx((0 + 0.75 + 0) / 3)


def test_names_and_parameters() -> None:
    assert metrics.make("f1:average=macro").label == "f1:average=macro"
    assert metrics.make(metrics.make("quantile:q=0.9").label) == metrics.QuantileLoss(0.9)
    assert metrics.make("top_k:3").label == "top_k:k=3"
    for bad in ("accurate", "f1:average=all", "top_k:k=0", "quantile:q=1", "auc:limit=3"):
        with pytest.raises(ParameterError):
            metrics.make(bad)
    with pytest.raises(ParameterError, match="once"):
        metrics.make_all(["error", "error"])
    with pytest.raises(ParameterError, match="same kind"):
        metrics.make_all(["error", "mae"])


@pytest.mark.parametrize(
    ("metric", "options", "match"),
    [
        ("auc", {"y": [0, 1]}, "needs scores"),
        ("log_loss", {"y": [0, 1], "scores": [0.1, 0.2]}, "needs probabilities"),
        ("hinge", {"y": [0, 1], "probabilities": [0.1, 0.2]}, "needs scores"),
        ("auc", {"y": [0, 1, 2], "scores": [0.1, 0.2, 0.3]}, "column for each"),
        ("auc", {"y": [0, 1], "scores": [[0.1, 0.2], [0.3, 0.4]]}, "classes="),
        ("error", {"y": [0, 1], "prediction": [0]}, "2 rows"),
        ("error", {"y": [0, 1], "prediction": [0, 1], "weight": [1, -1]}, "weight"),
        ("error", {"y": [0, 1], "prediction": [0, 1], "weight": [1, math.nan]}, "weight"),
        ("mae", {"y": ["a"], "prediction": [1.0]}, "numbers"),
        ("ndcg", {"y": [1, 0], "scores": [1, 0]}, "rows of relevances"),
    ],
)
def test_malformed_rows_are_refused(metric: str, options: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        metrics.evaluate(metric, **options)


def test_a_confusion_matrix_has_a_bound() -> None:
    y = np.arange(1500)
    with pytest.raises(InputError, match="at most 1,000 classes"):
        metrics.evaluate("kappa", y, y)
    assert metrics.evaluate("accuracy", y, y) == 1.0
