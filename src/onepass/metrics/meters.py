"""The four views of a metric over a stream.

cumulative   all examples so far
since_last   the examples since the last report
window       the last W examples
fading       all examples; one i rounds ago has the weight α^i: S ← c·ℓ + αS, B ← c + αB

States are updated at fixed positions of the stream (multiples of BLOCK, and reports), whatever the sizes of the chunks:
the values are the same bits however a stream is chunked. A window is computed from its own examples at each read, never
by subtraction.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError, ParameterError
from .kinds import Metric
from .outcomes import Array, Labels, Outcomes, of_sets, widened
from .statistics import Statistic

__all__ = ["VIEWS", "Meter", "Recorder", "evaluate", "observed"]

VIEWS = ("cumulative", "since_last", "window", "fading")
BLOCK = 1 << 13  # the number of examples whose states are computed together


class Recorder:
    """Several metrics in all views. `extra` are more statistics, over all examples."""

    def __init__(
        self, metrics: Sequence[Metric], *, every: int, window: int, fading: float, extra: Sequence[Statistic] = ()
    ) -> None:
        self.metrics = list(metrics)
        self.every, self.window, self.factor = every, window, fading
        self.labels = Labels()
        self.statistics = list(dict.fromkeys(metric.statistic() for metric in metrics))
        self.extra = [statistic for statistic in extra if statistic not in self.statistics]
        self.seen = 0  # examples in the states
        self.weight = 0.0
        self._waiting: list[Outcomes] = []  # examples not yet in the states
        self._waiting_rows = 0
        self._powers: Array = np.empty(0)
        self._recent: list[Outcomes] = []  # the window
        self._recent_rows = 0
        self._states: dict[str, dict[Statistic, Any]] = {"cumulative": {}, "since_last": {}, "fading": {}}

    def add(self, outcomes: Outcomes) -> bool:
        """Add examples, none of them beyond the next report; return True when a report is due."""
        start = 0
        while start < len(outcomes):
            stop = start + min(self.room(), len(outcomes) - start)
            self._waiting.append(outcomes.part(start, stop))
            self._waiting_rows += stop - start
            start = stop
            if self._waiting_rows == self._span():
                self.settle()
        return self.seen > 0 and self.seen % self.every == 0 and not self._waiting_rows

    @property
    def waiting(self) -> int:
        """The number of examples that are not yet in the states."""
        return self._waiting_rows

    def room(self) -> int:
        """Examples until the next fixed position."""
        return self._span() - self._waiting_rows

    def _span(self) -> int:
        return min(BLOCK - self.seen % BLOCK, self.every - self.seen % self.every)

    def settle(self) -> None:
        """Add waiting examples to the states: at the end of a stream, or to read a value between reports."""
        if not self._waiting:
            return
        part = Outcomes.join(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        count = len(part)
        self.seen += count
        self.weight += float(np.sum(part.weight))
        self._keep_recent(part)
        faded = part if self.factor == 1.0 else part.weighted(self._decay(count))
        for statistic in (*self.statistics, *self.extra):
            new = statistic.of(part)
            self._join("cumulative", statistic, new)
            if statistic in self.extra:
                continue
            self._join("since_last", statistic, new)
            past = self._states["fading"].get(statistic)
            if past is not None:
                self._states["fading"][statistic] = statistic.fade(past, self.factor**count)
            self._join("fading", statistic, new if faded is part else statistic.of(faded))

    def _decay(self, count: int) -> Array:
        """α^(count − 1), …, α, 1; at most BLOCK of them."""
        if len(self._powers) != BLOCK:
            self._powers = self.factor ** np.arange(BLOCK - 1, -1, -1.0)
        return self._powers[BLOCK - count :]

    def _join(self, view: str, statistic: Statistic, new: Any) -> None:
        states = self._states[view]
        states[statistic] = statistic.join(states[statistic], new) if statistic in states else new

    def _keep_recent(self, part: Outcomes) -> None:
        self._recent.append(part)
        self._recent_rows += len(part)
        while self._recent_rows - len(self._recent[0]) >= self.window:
            self._recent_rows -= len(self._recent.pop(0))

    def drop(self, statistic: Statistic) -> None:
        """Drop one of the extra statistics."""
        self.extra = [each for each in self.extra if each != statistic]
        self._states["cumulative"].pop(statistic, None)

    def begin_period(self) -> None:
        """After a report: restart since_last."""
        self._states["since_last"] = {}

    def state(self, statistic: Statistic, view: str = "cumulative") -> Any:
        return self._states[view].get(statistic)

    def values(self, view: str) -> list[float]:
        """One value for each metric; NaN before any example."""
        if view == "window":
            if not self._recent:
                return [np.nan] * len(self.metrics)
            whole = Outcomes.join(self._recent)
            whole = whole.part(max(0, len(whole) - self.window), len(whole))
            self._recent, self._recent_rows = [whole], len(whole)
            states = {statistic: statistic.of(whole) for statistic in self.statistics}
        else:
            states = self._states[view]
        return [
            metric.value(states[metric.statistic()], self.labels) if metric.statistic() in states else np.nan
            for metric in self.metrics
        ]


class Meter:
    """One metric, fed by hand: `add` rows or `add_one`, then read `value` (over all), `since_last`, `window`, `fading`.

    `report()` starts a new period for `since_last`.
    """

    def __init__(self, metric: str | Metric, *, window: int = 1000, fading: float = 0.999) -> None:
        from . import make

        self.metric = make(metric)
        no_reports = 1 << 62
        self._recorder = Recorder(
            [self.metric], every=no_reports, window=whole("window", window), fading=factor("fading", fading)
        )

    def add(
        self,
        y: Any,
        prediction: Any = None,
        *,
        scores: Any = None,
        probabilities: Any = None,
        classes: Sequence[Any] | None = None,
        weight: Any = None,
    ) -> None:
        """Rows: true answers, predictions, and where the metric needs them a column of scores or probabilities for each
        of `classes` (one column: of the larger of two classes)."""
        self._recorder.add(
            observed(self.metric, self._recorder.labels, y, prediction, scores, probabilities, classes, weight)
        )

    def add_one(self, y: Any, prediction: Any = None, *, weight: float = 1.0, **more: Any) -> None:
        rows = {name: None if value is None else [value] for name, value in more.items() if name != "classes"}
        self.add([y], [prediction], weight=[weight], classes=more.get("classes"), **rows)

    def report(self) -> float:
        """The value since the last report, which ends here."""
        value = self.since_last
        self._recorder.begin_period()
        return value

    @property
    def value(self) -> float:
        return self._read("cumulative")

    @property
    def since_last(self) -> float:
        return self._read("since_last")

    @property
    def window(self) -> float:
        return self._read("window")

    @property
    def fading(self) -> float:
        return self._read("fading")

    def _read(self, view: str) -> float:
        self._recorder.settle()
        return self._recorder.values(view)[0]

    def __repr__(self) -> str:
        return f"Meter({self.metric.label}: {self.metric.show(self.value)}, {self._recorder.seen:,} examples)"


def evaluate(
    metric: str | Metric,
    y: Any,
    prediction: Any = None,
    *,
    scores: Any = None,
    probabilities: Any = None,
    classes: Sequence[Any] | None = None,
    weight: Any = None,
) -> float:
    """The metric over given rows at once; see `Meter.add`."""
    from . import make

    made, labels = make(metric), Labels()
    outcomes = observed(made, labels, y, prediction, scores, probabilities, classes, weight)
    return made.value(made.statistic().of(outcomes), labels)


def observed(
    metric: Metric,
    labels: Labels,
    y: Any,
    prediction: Any,
    scores: Any,
    probabilities: Any,
    classes: Sequence[Any] | None,
    weight: Any,
) -> Outcomes:
    """Convert the rows that users give to `Outcomes`."""
    rows = len(y)
    c = _row_weights(weight, rows)
    if prediction is not None and len(prediction) != rows:
        raise InputError(f"y has {rows} rows, prediction has {len(prediction)}")
    _require_needs(metric, prediction, scores, probabilities)
    if metric.kind == "rankings":
        return _rankings(metric, labels, y, scores, c)
    if metric.kind == "sets":
        return of_sets(y, prediction, c, labels)
    if metric.kind == "numbers":
        return Outcomes("numbers", as_numbers(y), as_numbers(prediction), c, None, None, labels)
    if classes is not None:
        labels.codes(list(classes))
    truth = labels.codes(y)
    predicted = np.zeros(rows, dtype=np.int64) if prediction is None else labels.codes(prediction)
    score_table = _columns("scores", scores, labels, classes, rows)
    probability_table = _columns("probabilities", probabilities, labels, classes, rows)
    return Outcomes("classes", truth, predicted, c, score_table, probability_table, labels)


def _row_weights(weight: Any, rows: int) -> Array:
    c = np.ones(rows) if weight is None else np.asarray(weight, dtype=np.float64)
    if c.shape != (rows,) or not np.all(np.isfinite(c)) or np.any(c < 0):
        raise InputError(f"weight: expected {rows} finite numbers >= 0, one for each row")
    return c


def _require_needs(metric: Metric, prediction: Any, scores: Any, probabilities: Any) -> None:
    """Refuse a call without the predictions, scores or probabilities that the metric reads."""
    if metric.needs == "probabilities" and probabilities is None:
        raise InputError(f"{metric.label} needs probabilities=, a column for each class")
    if metric.needs == "margins" and scores is None:
        raise InputError(f"{metric.label} needs scores=")
    if metric.needs == "scores" and scores is None and probabilities is None:
        raise InputError(f"{metric.label} needs scores= (or probabilities=)")
    if metric.kind == "sets" and prediction is None:
        raise InputError(f"{metric.label} needs predictions: a collection of labels for each row")
    if metric.kind == "numbers" and prediction is None:
        raise InputError(f"{metric.label} needs predictions")


def _rankings(metric: Metric, labels: Labels, y: Any, scores: Any, c: Array) -> Outcomes:
    relevance = np.asarray(y, dtype=np.float64)
    table = np.asarray(scores, dtype=np.float64)
    if relevance.ndim != 2 or relevance.shape != table.shape:
        raise InputError(
            f"{metric.label} needs rows of relevances and of scores of the same shape, "
            f"got {relevance.shape} and {table.shape}"
        )
    return Outcomes("rankings", relevance, np.zeros(len(c)), c, table, None, labels)


def _columns(name: str, given: Any, labels: Labels, classes: Sequence[Any] | None, rows: int) -> Array | None:
    """A table with a column for each label, in the order of their codes."""
    if given is None:
        return None
    table = np.asarray(given, dtype=np.float64)
    missing = np.nan if name == "scores" else 0.0
    if table.ndim == 1:
        names = sorted(labels.values[1:]) if classes is None else list(classes)
        if len(names) > 2:
            raise InputError(f"{name}: expected a column for each of {len(names)} classes, got one for all")
        if len(names) < 2:
            raise InputError(f"{name}: the class they belong to is not known yet; give classes=[…]")
        table = np.stack([-0.5 * table, 0.5 * table] if name == "scores" else [1.0 - table, table], axis=1)
    else:
        if classes is None:
            raise InputError(f"{name}: a table needs classes=[…], the label of each column")
        names = list(classes)
    if table.shape != (rows, len(names)):
        raise InputError(f"{name}: expected shape {(rows, len(names))}, got {table.shape}")
    out = np.full((rows, len(labels)), missing)
    out[:, labels.codes(names) - 1] = table
    return widened(out, len(labels), missing)


def as_numbers(values: Any) -> Array:
    """Real numbers; no prediction (None) is 0."""
    try:
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            return values.astype(np.float64)
        return np.array([0.0 if value is None else float(value) for value in values], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"metrics of numbers need numbers, got {values!r:.80}") from None


def whole(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name}={value!r}: expected a whole number >= {least}")
    return int(value)


def factor(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) <= 1:
        raise ParameterError(f"{name}={value!r}: expected a number > 0 and <= 1")
    return float(value)
