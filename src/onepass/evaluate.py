"""Prequential evaluation (progressive validation): every example is first predicted, then learned.

>>> from onepass import datasets, evaluate
>>> class Majority:
...     def __init__(self): self.counts = {}
...     def predict_one(self, x): return max(self.counts, key=self.counts.get, default=None)
...     def learn_one(self, x, y): self.counts[y] = self.counts.get(y, 0) + 1
>>> run = evaluate.prequential(Majority(), datasets.SEA(4000, noise=0), every=1000)
>>> run.t
[1000, 2000, 3000, 4000]
"""

from __future__ import annotations

import dataclasses
import html
import json
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, MissingDependencyError, ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["METRICS", "Chunked", "Run", "StreamModel", "prequential", "text_table"]

Array = NDArray[np.float64]

# Rows given to predict_then_learn at once: enough to drown the cost of a call, few enough to stay in cache.
CHUNK = 4096


class StreamModel(Protocol):
    """What `prequential` asks of a model: ours, River's, or one's own."""

    def predict_one(self, x: Any, /) -> Any: ...
    def learn_one(self, x: Any, y: Any, /) -> object: ...


class Chunked(Protocol):
    """A stream that can also be had as arrays."""

    def chunks(self, size: int, /) -> Iterable[tuple[Any, Any]]: ...


# The loss ℓ of one round; the metric is the mean of ℓ, for rmse its square root. No prediction (None) is a
# mistake in classification, and 0 in regression.


def _error(y: Any, prediction: Any) -> float:
    return 1.0 if prediction is None or prediction != y else 0.0


def _absolute(y: Any, prediction: Any) -> float:
    try:
        return abs(float(y) - (0.0 if prediction is None else float(prediction)))
    except (TypeError, ValueError):
        raise InputError(f"mae and rmse need numbers, got y={y!r:.80}, prediction={prediction!r:.80}") from None


def _squared(y: Any, prediction: Any) -> float:
    residual = _absolute(y, prediction)
    return residual * residual


METRICS: dict[str, Callable[[Any, Any], float]] = {"error": _error, "mae": _absolute, "rmse": _squared}


def prequential(
    model: StreamModel,
    stream: Iterable[tuple[Any, Any]] | Chunked,
    *,
    every: int = 1000,
    metric: str | None = None,
    fading: float = 0.999,
    progress: Callable[[Run], object] | None = None,
) -> Run:
    """Predict, reveal, learn, for every example of `stream`; report each `every` examples and at the end.

    `stream` yields (x, y), or has `chunks(size)` yielding arrays (X, y). When the model has
    `predict_then_learn(X, y)`, which returns the predictions made for each row before that row was learned,
    whole chunks go through it, with the same results.
    `metric` is "error", "mae" or "rmse"; by default "error" for classes and "mae" for real y.
    `progress(run)` is called at least every few thousand examples, `run` being the results so far.

    Memory: one row for each report, and the losses of the last `every` examples.
    """
    run = Run(every=_whole("every", every), fading_factor=_factor(fading))
    if metric is not None and metric not in METRICS:
        raise ParameterError(f"metric={metric!r} is not a metric; expected one of {', '.join(METRICS)}")
    chunks = getattr(stream, "chunks", None)
    if not hasattr(model, "predict_then_learn"):
        chunks = None
    if chunks is None and not (hasattr(model, "predict_one") and hasattr(model, "learn_one")):
        raise ParameterError(
            f"model={model!r:.80}: expected predict_one and learn_one, or predict_then_learn for chunks"
        )
    tally = _Tally(run)
    try:
        if chunks is not None:
            _by_chunk(model, chunks(min(run.every, CHUNK)), metric, tally, progress)
        else:
            _one_by_one(model, _pairs(stream), metric, tally, progress)
    except Exception as error:
        error.add_note(f"prequential: {tally.seen} examples were through before this")
        raise
    return run


def _by_chunk(
    model: Any,
    chunks: Iterable[tuple[Any, Any]],
    metric: str | None,
    tally: _Tally,
    progress: Callable[[Run], object] | None,
) -> None:
    for X, y in chunks:
        if not len(y):
            continue
        truth = np.asarray(y)
        if truth.dtype.kind == "f" and not np.all(np.isfinite(truth)):
            row = int(np.argmin(np.isfinite(truth)))
            raise InputError(f"example {tally.seen + row + 1}: y must be finite, got {truth[row]!r}")
        start = perf_counter()
        predictions = model.predict_then_learn(X, y)
        seconds = perf_counter() - start
        if len(predictions) != len(y):
            raise InputError(f"predict_then_learn gave {len(predictions)} predictions for {len(y)} rows")
        metric = metric or _kind(model, y[0], predictions[0])
        tally.add(_losses(metric, y, predictions), seconds, metric)
        if progress is not None:
            progress(tally.run)
    tally.close()


def _one_by_one(
    model: StreamModel,
    pairs: Iterator[tuple[Any, Any]],
    metric: str | None,
    tally: _Tally,
    progress: Callable[[Run], object] | None,
) -> None:
    predict_one, learn_one, clock = model.predict_one, model.learn_one, perf_counter
    flush = min(tally.run.every, CHUNK)
    losses: list[float] = []
    loss = METRICS.get(metric or "")
    seconds = 0.0
    for x, y in pairs:
        if y is None or (isinstance(y, float | np.floating) and not math.isfinite(y)):
            raise InputError(f"example {tally.seen + 1}: y must be a class or a finite number, got {y!r}")
        start = clock()
        prediction = predict_one(x)
        predicted = clock()
        if loss is None:
            metric = _kind(model, y, prediction)
            loss = METRICS[metric]
        # Judged before the model hears y: what it returned may be a thing that learning changes.
        suffered = loss(y, prediction)
        revealed = clock()
        learn_one(x, y)
        seconds += clock() - revealed + predicted - start
        losses.append(suffered)
        tally.seen += 1
        if len(losses) == flush:
            tally.add(losses, seconds, metric)
            losses, seconds = [], 0.0
            if progress is not None:
                progress(tally.run)
    if losses:
        tally.add(losses, seconds, metric)
    tally.close()
    if losses and progress is not None:
        progress(tally.run)


def _pairs(stream: Any) -> Iterator[tuple[Any, Any]]:
    if not hasattr(stream, "__iter__") and not hasattr(stream, "chunks"):
        raise ParameterError(f"stream={stream!r:.80}: expected an iterable of (x, y), or one with chunks(size)")
    if not hasattr(stream, "__iter__"):
        for X, y in stream.chunks(CHUNK):
            yield from zip(X, y.tolist() if isinstance(y, np.ndarray) else y, strict=True)
        return
    for number, item in enumerate(stream, start=1):
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise InputError(
                f"example {number}: expected a pair (x, y), got {type(item).__name__}; arrays go as zip(X, y)"
            )
        yield item[0], item[1]


def _kind(model: Any, y: Any, prediction: Any) -> str:
    """The metric that fits: by the model's declared task, else by the kinds of y and of the prediction."""
    task = getattr(model, "task", None)
    if isinstance(task, str) and task != "auto":
        return "mae" if task == "regression" else "error"

    def real(value: Any) -> bool:
        return isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral | np.bool_)

    number = isinstance(y, numbers.Real) and not isinstance(y, bool | np.bool_)
    # 3 predicted as 2.7 is regression; so is 3.0 with no prediction yet.
    return "mae" if number and (real(prediction) if prediction is not None else real(y)) else "error"


def _losses(metric: str, y: Any, predictions: Any) -> Array:
    kinds = {values.dtype.kind if isinstance(values, np.ndarray) else "O" for values in (y, predictions)}
    if kinds <= set("biuf") or (kinds == {"U"} and metric == "error"):
        if metric == "error":
            mistakes: Array = (y != predictions).astype(np.float64)
            return mistakes
        residual: Array = np.abs(y.astype(np.float64) - predictions.astype(np.float64))
        return residual if metric == "mae" else residual * residual
    loss = METRICS[metric]
    pairs = zip(_listed(y), _listed(predictions), strict=True)
    return np.array([loss(label, prediction) for label, prediction in pairs], dtype=np.float64)


def _listed(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(f"{name}={value!r}: expected a whole number >= 1")
    return int(value)


def _factor(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) <= 1:
        raise ParameterError(f"fading={value!r}: expected a number > 0 and <= 1")
    return float(value)


class _Tally:
    """The running sums behind a `Run`. Its results do not depend on how the losses are handed over.

    cumulative Σℓ/T; window: the mean of the last W losses; fading: S ← ℓ + αS, B ← 1 + αB, S/B.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.seen = 0  # examples through the model, counted before their losses arrive here
        self.total = self.faded = self.faded_count = 0.0
        self.ring: Array = np.empty(min(run.every, CHUNK))  # example t in place t mod W; grows up to W

    def add(self, losses: Sequence[float] | Array, seconds: float, metric: str | None) -> None:
        run = self.run
        run.metric = metric or run.metric
        values = np.asarray(losses, dtype=np.float64)
        per_example = seconds / len(values)
        start = 0
        while start < len(values):
            to_report = run.every - run.examples % run.every
            part = values[start : start + to_report]
            self._take(part)
            run.examples += len(part)
            run.seconds += per_example * len(part)
            start += len(part)
            run.value = self._finish(self.total / run.examples)
            if run.examples % run.every == 0:
                self._report()
        self.seen = run.examples

    def close(self) -> None:
        if self.run.examples and (not self.run.t or self.run.t[-1] != self.run.examples):
            self._report()

    def _take(self, part: Array) -> None:
        """Add losses that end at or before the next report, hence never wrap around the ring."""
        place = self.run.examples % self.run.every
        needed = place + len(part)
        if needed > len(self.ring):
            grown = np.empty(min(self.run.every, max(needed, 2 * len(self.ring))))
            grown[: len(self.ring)] = self.ring
            self.ring = grown
        self.ring[place:needed] = part
        # Added in order, one by one, as a loop would: sums over halves would round otherwise.
        self.total = float(np.cumsum(np.concatenate([[self.total], part]))[-1])
        alpha, faded, count = self.run.fading_factor, self.faded, self.faded_count
        for loss in part.tolist():
            faded = loss + alpha * faded
            count = 1.0 + alpha * count
        self.faded, self.faded_count = faded, count

    def _report(self) -> None:
        run = self.run
        run.t.append(run.examples)
        run.cumulative.append(run.value)
        run.window.append(self._finish(float(np.mean(self.ring[: min(run.examples, run.every)]))))
        run.fading.append(self._finish(self.faded / self.faded_count))
        run.throughput.append(run.speed)

    def _finish(self, mean: float) -> float:
        return math.sqrt(mean) if self.run.metric == "rmse" else mean


@dataclasses.dataclass
class Run:
    """What a prequential evaluation saw. One entry in each column for every report.

    `t` examples so far; `cumulative` the metric over all of them; `window` over the last `every`;
    `fading` with the past forgotten at `fading_factor`; `throughput` examples per second of the model's time.
    """

    every: int = 1000
    fading_factor: float = 0.999
    metric: str = ""
    examples: int = 0
    seconds: float = 0.0  # spent in the model
    value: float = math.nan  # the metric over all examples so far
    t: list[int] = dataclasses.field(default_factory=list)
    cumulative: list[float] = dataclasses.field(default_factory=list)
    window: list[float] = dataclasses.field(default_factory=list)
    fading: list[float] = dataclasses.field(default_factory=list)
    throughput: list[float] = dataclasses.field(default_factory=list)

    @property
    def speed(self) -> float:
        """Examples per second of the model's time."""
        return self.examples / max(self.seconds, 1e-9)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        if not self.examples:
            return "Run(no examples)"
        return f"Run({self.metric}={self.show(self.value)}, {self.examples:,} examples, {len(self)} reports)"

    def __str__(self) -> str:
        return self.table()

    def show(self, value: float) -> str:
        """A value of the metric as people read it."""
        return f"{value:.2%}" if self.metric == "error" else f"{value:.4g}"

    def table(self, rows: int = 20) -> str:
        """The reports as text: at most `rows` of them, evenly spread, the last always there."""
        if not self.t:
            return "no examples: the stream was empty"
        return text_table(self._cells(rows))

    def _cells(self, rows: int) -> list[list[str]]:
        cells = [["t", self.metric, f"last {self.every:,}", f"fading {self.fading_factor:g}", "examples/s"]]
        for i in _spread(len(self), _whole("rows", rows)):
            values = [self.show(column[i]) for column in (self.cumulative, self.window, self.fading)]
            cells.append([f"{self.t[i]:,}", *values, f"{self.throughput[i]:,.0f}"])
        return cells

    def _repr_html_(self) -> str:
        if not self.t:
            return f"<p>{html.escape(self.table())}</p>"
        head, *body = ([html.escape(cell) for cell in row] for row in self._cells(20))
        lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in body]
        return (
            f"<table><caption>{html.escape(repr(self))}</caption>"
            f"<thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
        )

    def to_json(self) -> str:
        """Everything as one JSON object; what is not a finite number becomes null."""

        def plain(value: Any) -> Any:
            if isinstance(value, list):
                return [plain(item) for item in value]
            return None if isinstance(value, float) and not math.isfinite(value) else value

        content = {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return json.dumps(content, allow_nan=False)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """The windowed and the cumulative metric over t, with matplotlib.

        With a `label`, only the windowed curve, under that name: to lay several runs over each other.
        """
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise MissingDependencyError(
                    "Run.plot needs matplotlib, which is not installed: pip install onepass[plot]"
                ) from error
            ax = pyplot.figure().add_subplot()
        ax.plot(self.t, self.window, label=label or f"last {self.every:,}")
        if label is None:
            ax.plot(self.t, self.cumulative, label="cumulative")
        ax.set_xlabel("examples")
        ax.set_ylabel(self.metric)
        ax.legend()
        return ax


def _spread(n: int, rows: int) -> list[int]:
    """At most `rows` of 0..n−1, evenly spread, n − 1 among them."""
    return sorted({(n * (i + 1)) // min(n, rows) - 1 for i in range(min(n, rows))})


def text_table(cells: Sequence[Sequence[str]], *, left: int = 0) -> str:
    """Columns of text under their headings, the first `left` of them flush left, the others flush right."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        columns = zip(row, widths, strict=True)
        line = (cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(columns))
        lines.append("  ".join(line).rstrip())
    return "\n".join(lines)
