"""Prequential evaluation: the order of events, the arithmetic of the columns, and what people read."""

from __future__ import annotations

import json
import math
import random
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra

from onepass import metrics
from onepass.datasets import SEA, RotatingHyperplane
from onepass.errors import InputError, ParameterError
from onepass.evaluation import Run, prequential, recorder
from onepass.models.linear import LinearModel


class Perceptron:
    """Pure Python, on dicts or rows, with the methods of a LinearModel."""

    def __init__(self) -> None:
        self.w: dict[Any, float] = {}

    def predict_one(self, x: Any) -> int:
        items = x.items() if isinstance(x, dict) else enumerate(x)
        return int(sum(self.w.get(f"x{j}" if isinstance(j, int) else j, 0.0) * v for j, v in items) > 0)

    def learn_one(self, x: Any, y: int) -> None:
        if self.predict_one(x) != y:
            for j, v in x.items() if isinstance(x, dict) else enumerate(x):
                key = f"x{j}" if isinstance(j, int) else j
                self.w[key] = self.w.get(key, 0.0) + (2 * y - 1) * v


class Chunky(Perceptron):
    """The same with the fast path."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def predict_then_learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        self.sizes.append(len(y))
        predictions = []
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            predictions.append(self.predict_one(x))
            self.learn_one(x, label)
        return np.array(predictions)


class Mean:
    """Regression: predicts the mean of what it heard, None before."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def predict_one(self, x: Any) -> float | None:
        return self.total / self.count if self.count else None

    def learn_one(self, x: Any, y: float) -> None:
        self.total, self.count = self.total + y, self.count + 1


class Memory:
    """Knows every answer it was told, and nothing else."""

    def __init__(self) -> None:
        self.told: dict[Any, Any] = {}

    def predict_one(self, x: Any) -> Any:
        return self.told.get(x)

    def learn_one(self, x: Any, y: Any) -> None:
        self.told[x] = y


def test_equals_a_hand_loop() -> None:
    stream, every, alpha = SEA(2345), 500, 0.99
    run = prequential(Perceptron(), stream, every=every, window=every, fading=alpha)

    model, losses = Perceptron(), []
    window: deque[float] = deque(maxlen=every)
    s = b = 0.0
    rows = []
    for t, (x, y) in enumerate(stream, start=1):
        loss = float(model.predict_one(x) != y)
        model.learn_one(x, y)
        losses.append(loss)
        window.append(loss)
        s, b = loss + alpha * s, 1 + alpha * b
        if t % every == 0 or t == len(stream):
            rows.append((t, sum(losses) / t, sum(window) / len(window), s / b))
    exact = list(zip(run.t, run.cumulative, run.window, strict=True))
    assert exact == [row[:3] for row in rows]
    assert run.fading == pytest.approx([row[3] for row in rows], rel=1e-12)
    assert run.t == [500, 1000, 1500, 2000, 2345]
    assert (run.examples, run.value, run.metric) == (2345, rows[-1][1], "error")
    assert len(run.throughput) == len(run) == 5 and all(speed > 0 for speed in run.throughput)


@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_regression_by_hand(metric: str) -> None:
    rng = random.Random(1)
    pairs = [((), rng.gauss(3, 2)) for _ in range(1050)]
    run = prequential(Mean(), pairs, every=100, window=100, metrics=metric)
    model, residuals = Mean(), []
    for x, y in pairs:
        prediction = model.predict_one(x)
        residuals.append(y - (0.0 if prediction is None else prediction))
        model.learn_one(x, y)

    def value(part: list[float]) -> float:
        if metric == "mae":
            return math.fsum(map(abs, part)) / len(part)
        return math.sqrt(math.fsum(r * r for r in part) / len(part))

    assert run.t[-2:] == [1000, 1050]
    for t, cumulative, window in zip(run.t, run.cumulative, run.window, strict=True):
        assert cumulative == pytest.approx(value(residuals[:t]), rel=1e-12)
        assert window == pytest.approx(value(residuals[max(0, t - 100) : t]), rel=1e-12)


def test_the_three_means_coincide_without_forgetting() -> None:
    pairs = [((), float(y)) for y in np.random.default_rng(0).normal(size=800)]
    run = prequential(Mean(), pairs, every=10_000, window=10_000, fading=1.0)
    assert run.t == [800]
    assert run.window[0] == pytest.approx(run.cumulative[0], rel=1e-13)
    assert run.fading[0] == pytest.approx(run.cumulative[0], rel=1e-13)


@pytest.mark.parametrize("every", [1, 7, 1000, 4096, 5000, sys.maxsize])
def test_chunks_and_one_by_one_give_the_same_bits(every: int) -> None:
    stream = RotatingHyperplane(9000 if every > 7 else 1000, d=3)
    chunky = Chunky()
    fast = prequential(chunky, stream, every=every)
    slow = prequential(Perceptron(), stream, every=every)
    assert chunky.sizes and max(chunky.sizes) == min(every, 4096)
    for column in ("t", "cumulative", "window", "fading", "value", "metric", "examples"):
        assert getattr(fast, column) == getattr(slow, column), column


def test_real_losses_have_the_same_bits_however_they_are_cut() -> None:
    class Regressor(Mean):
        def predict_then_learn(self, X: Any, y: np.ndarray) -> list[float | None]:
            out = []
            for value in y.tolist():
                out.append(self.predict_one(None))
                self.learn_one(None, value)
            return out

    class Cut:
        def __init__(self, size: int) -> None:
            self.size, self.y = size, np.random.default_rng(3).normal(size=3000)

        def chunks(self, _: int) -> Iterator[tuple[Any, np.ndarray]]:
            for start in range(0, 3000, self.size):
                part = self.y[start : start + self.size]
                yield np.zeros((len(part), 1)), part

    runs = [prequential(Regressor(), Cut(size), every=400, metrics="rmse") for size in (1, 17, 400, 3000)]
    runs.append(prequential(Mean(), [(None, y) for y in Cut(1).y.tolist()], every=400, metrics="rmse"))
    for run in runs[1:]:
        assert (run.cumulative, run.window, run.fading) == (
            runs[0].cumulative,
            runs[0].window,
            runs[0].fading,
        )


def test_what_was_only_memorised_earns_nothing() -> None:
    fresh = [(i, i % 2) for i in range(1000)]
    assert prequential(Memory(), fresh).value == 1.0
    # Seen twice: wrong the first time, right the second.
    assert prequential(Memory(), fresh + fresh).value == 0.5


def test_the_model_hears_y_only_after_its_prediction() -> None:
    events: list[tuple[str, Any]] = []

    class Witness:
        def predict_one(self, x: Any) -> int:
            events.append(("predict", x))
            return 0

        def learn_one(self, x: Any, y: Any) -> None:
            events.append(("learn", x))

    prequential(Witness(), ((i, 0) for i in range(5)))
    assert events == [(verb, i) for i in range(5) for verb in ("predict", "learn")]


def test_a_prediction_is_judged_as_it_was_made() -> None:
    """A prediction object that learning rewrites must not be judged after the rewrite."""

    class Label:
        value: Any = None

        def __eq__(self, other: object) -> bool:
            return bool(self.value == other)

        __hash__ = None  # type: ignore[assignment]

    class Sly:
        def __init__(self) -> None:
            self.label = Label()

        def predict_one(self, x: Any) -> Label:
            self.label = Label()
            return self.label

        def learn_one(self, x: Any, y: Any) -> None:
            self.label.value = y

    assert prequential(Sly(), [(i, "a") for i in range(10)]).value == 1.0


def test_a_static_model_shows_the_drift() -> None:
    class Frozen(Perceptron):
        heard = 0

        def learn_one(self, x: Any, y: int) -> None:
            self.heard += 1
            if self.heard <= 1000:
                super().learn_one(x, y)

    stream = RotatingHyperplane(10_000, turns=0.5, d=4, noise=0)
    frozen = prequential(Frozen(), stream, every=1000).window
    follower = prequential(Perceptron(), stream, every=1000).window
    assert frozen[-1] > 0.8
    assert follower[-1] < 0.2


def test_no_prediction_is_a_mistake_or_zero() -> None:
    class Silent:
        def predict_one(self, x: Any) -> None:
            return None

        def learn_one(self, x: Any, y: Any) -> None:
            pass

    assert prequential(Silent(), [((), "a")] * 4).cumulative == [1.0]
    assert prequential(Silent(), [((), 0)] * 4).cumulative == [1.0]
    run = prequential(Silent(), [((), -2.0), ((), 4.0)])
    assert (run.metric, run.cumulative) == ("mae", [3.0])


@pytest.mark.parametrize(
    ("y", "prediction", "task", "expected"),
    [
        ("spam", "ham", None, "error"),
        (True, False, None, "error"),
        (1, 0, None, "error"),
        (1, True, None, "error"),
        (np.int64(1), np.int64(0), None, "error"),
        (np.True_, np.False_, None, "error"),
        (("a", 1), None, None, "error"),
        (1.0, 1, None, "error"),  # labels kept as floats, a classifier that answers with an int
        (2.5, 1.0, None, "mae"),
        (3, 2.7, None, "mae"),
        (np.float32(3), np.float64(2.7), None, "mae"),
        (2.5, None, None, "mae"),
        (1.0, 1.0, "binary", "error"),
        (1, 2, "regression", "mae"),
        (1, 2, "auto", "error"),
    ],
)
def test_the_metric_follows_the_kind(y: Any, prediction: Any, task: str | None, expected: str) -> None:
    class Fixed:
        def predict_one(self, x: Any) -> Any:
            return prediction

        def learn_one(self, x: Any, y: Any) -> None:
            pass

    model = Fixed()
    if task is not None:
        model.task = task  # type: ignore[attr-defined]
    assert prequential(model, [((), y)] * 3).metric == expected


@pytest.mark.parametrize(
    ("y", "predictions", "error"),
    [
        (np.array(["a", "b", "a"]), np.array(["a", "a", "a"]), 1 / 3),
        (np.array(["a", "b", "a"]), [None, "b", "a"], 1 / 3),
        (np.array(["0", "b", "a"]), [0, "b", "a"], 1 / 3),  # 0 is not "0"
        (np.array([0, 1, 1]), np.array([None, 1, 1], dtype=object), 1 / 3),
        (np.array([0, 1, 1]), np.array(["0", "1", "1"]), 1.0),
        (["a", "b", "a"], ["a", "b", "b"], 1 / 3),
        (np.array([True, False, True]), np.array([1, 0, 0]), 1 / 3),
    ],
)
def test_predictions_of_any_container(y: Any, predictions: Any, error: float) -> None:
    class Stub:
        def predict_then_learn(self, X: Any, y: Any) -> Any:
            return predictions

    class Stream:
        def chunks(self, size: int) -> Iterator[tuple[Any, Any]]:
            yield np.zeros((3, 1)), y

    assert prequential(Stub(), Stream(), metrics="error").value == error  # type: ignore[arg-type]


def test_river_models_are_models() -> None:
    linear_model = require_extra("river.linear_model")
    tree = require_extra("river.tree")
    optim = require_extra("river.optim")
    stream = SEA(1500, noise=0)
    run = prequential(linear_model.PAClassifier(), stream, every=500)
    model, mistakes = linear_model.PAClassifier(), 0
    for x, y in stream:
        mistakes += model.predict_one(x) != y
        model.learn_one(x, y)
    assert (run.metric, run.value) == ("error", mistakes / 1500)

    hoeffding = tree.HoeffdingTreeClassifier()
    assert hoeffding.predict_one({"x0": 1.0}) is None
    assert prequential(hoeffding, stream).value < 0.3

    pairs = [({"a": float(v)}, 3.0 * float(v)) for v in np.random.default_rng(0).normal(size=500)]
    regression = prequential(linear_model.LinearRegression(optim.SGD(0.05)), pairs, every=100)
    assert regression.metric == "mae"
    assert regression.window[-1] < 0.2 < regression.window[0]


@pytest.mark.parametrize("rule", ["perceptron", "pa1:C=0.1", "sgd:loss=logistic"])
def test_our_model_in_chunks_is_our_model_one_by_one(rule: str) -> None:
    stream = RotatingHyperplane(9000, turns=3)
    fast = prequential(LinearModel(rule, task="binary"), stream, every=700)
    rows = ((x, int(y)) for X, labels in stream.chunks(1000) for x, y in zip(X, labels, strict=True))
    slow = prequential(LinearModel(rule, task="binary"), rows, every=700)
    for column in ("t", "cumulative", "window", "fading", "value", "metric"):
        assert getattr(fast, column) == getattr(slow, column), column
    assert 0.05 < fast.value < 0.5


def test_our_regression() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 3))
    pairs = zip(X, (X @ [1.0, -2.0, 0.5]).tolist(), strict=True)
    run = prequential(LinearModel("pa1", task="regression"), pairs, every=20)
    assert run.metric == "mae" and run.window[-1] < 0.2 < run.window[0]


def test_a_stream_with_chunks_only_is_read_row_by_row() -> None:
    class Only:
        def chunks(self, size: int) -> Iterator[tuple[Any, Any]]:
            return SEA(300).chunks(size)

    assert prequential(Perceptron(), Only()).value == prequential(Perceptron(), SEA(300)).value


@pytest.mark.parametrize("stream", [[], iter(()), SEA(0)])
@pytest.mark.parametrize("model", [Perceptron(), Chunky()])
def test_an_empty_stream_is_an_empty_run(stream: Any, model: Any) -> None:
    run = prequential(model, stream)
    assert (len(run), run.examples) == (0, 0) and math.isnan(run.value)
    assert "no examples" in run.table() and "no examples" in run._repr_html_() and "no examples" in repr(run)
    assert json.loads(run.to_json())["t"] == []
    assert Run.from_json(run.to_json()).t == []


def test_progress_sees_the_run_grow() -> None:
    for model in (Perceptron(), Chunky()):
        seen: list[tuple[int, float]] = []
        run = prequential(model, SEA(10_000), every=100_000, progress=lambda r, s=seen: s.append((r.examples, r.value)))
        assert [t for t, _ in seen] == [8192, 10_000]
        assert seen[-1] == (run.examples, run.value)


@pytest.mark.parametrize(
    "options",
    [
        {"every": 0},
        {"every": 2.5},
        {"every": True},
        {"window": 0},
        {"fading": 0},
        {"fading": 1.1},
        {"fading": "x"},
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        prequential(Perceptron(), [], **options)


def test_bad_models_and_streams_are_refused() -> None:
    with pytest.raises(ParameterError, match="predict_one and learn_one"):
        prequential(object(), [])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="iterable"):
        prequential(Perceptron(), 3)  # type: ignore[arg-type]
    X, y = next(SEA(10).chunks(10))
    with pytest.raises(InputError, match=r"example 1: expected a pair.*zip"):
        prequential(Perceptron(), (X, y))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="need numbers"):
        prequential(Perceptron(), [({"x0": 1.0}, "a")], metrics="mae")


def test_an_infinite_y_is_not_learned() -> None:
    model = Mean()
    with pytest.raises(InputError, match="example 3") as caught:
        prequential(model, [((), 1.0), ((), 2.0), ((), math.inf), ((), 4.0)])
    assert model.count == 2
    assert "2 examples" in caught.value.__notes__[0]


def test_an_infinite_y_in_a_chunk_stops_before_the_model() -> None:
    class Stream:
        def chunks(self, size: int) -> Iterator[tuple[Any, Any]]:
            yield np.zeros((2, 1)), np.zeros(2)
            yield np.zeros((2, 1)), np.array([0.0, np.inf])

    chunky = Chunky()
    with pytest.raises(InputError, match="example 4"):
        prequential(chunky, Stream(), metrics="mae")
    assert chunky.sizes == [2]


def test_a_wrong_number_of_predictions_is_an_error() -> None:
    class Short:
        def predict_then_learn(self, X: Any, y: Any) -> Any:
            return y[:-1]

    with pytest.raises(InputError, match="9 predictions for 10 rows"):
        prequential(Short(), SEA(10))  # type: ignore[arg-type]


def test_memory_is_a_row_per_report_and_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    recorders: list[metrics.Recorder] = []
    make = metrics.Recorder

    def spy(*args: Any, **options: Any) -> metrics.Recorder:
        recorders.append(make(*args, **options))
        return recorders[-1]

    monkeypatch.setattr(recorder, "Recorder", spy)
    run = prequential(Perceptron(), ((({"a": 1.0}), i % 2) for i in range(50_000)), every=5000, window=300)
    assert len(run) == 10
    assert recorders[0].waiting == 0
    assert sum(map(len, recorders[0]._recent)) == 300
    assert sum(state.size for view in recorders[0]._states.values() for state in view.values()) < 50
