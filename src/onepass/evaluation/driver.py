"""How `prequential` brings a stream to the loop: in chunks, one by one, or by events (examples now, labels later)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from .. import metrics as metrics_module
from ..errors import InputError
from ..metrics import Metric, Outcomes
from ..rows.examples import Examples
from .answers import Answer, Rounds, answer_kind
from .delays import DelayedStream, PendingLabels
from .examples import (
    CHUNK,
    as_chunks,
    as_examples,
    chunks_of,
    equal_runs,
    has_no_label,
    is_chunk,
    is_event,
    single,
    split,
    takes_mappings_only,
    unlabelled,
)
from .holdout import Holdout
from .loop import Loop
from .queries import Queries
from .recorder import Progress, RunRecorder
from .run import Run

__all__ = ["DEFAULTS", "Driver"]

RANKINGS = "needs chunks with a query for each row (and a Ranker), or with a table of label sets as y"
DEFAULTS = {"classes": "error", "numbers": "mae", "rankings": "ndcg"}


class Driver:
    """One evaluation. Where no metric says what is judged, the first answer does."""

    def __init__(
        self,
        loop: Loop,
        run: Run,
        metrics: list[Metric] | None,
        holdout: Holdout,
        *,
        calibrate: bool = False,
        progress: Progress | None = None,
        on_predictions: Callable[[Any, Any], object] | None = None,
    ) -> None:
        self.loop, self.asker, self.model = loop, loop.asker, loop.asker.model
        self.run, self.metrics, self.holdout, self.calibrate = run, metrics, holdout, calibrate
        self.progress, self.on_predictions = progress, on_predictions
        self.learned_before = int(getattr(self.model, "t_", 0))

    @property
    def ranks(self) -> bool:
        return self.metrics is not None and self.metrics[0].kind == "rankings"

    # -- the three ways through a stream ---------------------------------------------------------------------------

    def go(self, stream: Any, delay: Any, time: Any, max_pending: int) -> None:
        store = PendingLabels(max_pending)
        named = takes_mappings_only(self.model)
        if not (isinstance(delay, int) and delay == 0 and time is None):
            stream = DelayedStream(stream, delay, time=time, named=named)
        size = min(self.run.every, CHUNK)
        chunks, first = as_chunks(stream, size, self.asker.no_base), None
        if chunks is None and hasattr(stream, "__iter__"):
            first, stream = split(stream)
            chunks = chunks_of(stream, size) if is_chunk(first) else None
        whole_chunks = chunks is not None and self.asker.takes_chunks()
        if self.ranks and first is not None and not whole_chunks:
            raise InputError(f"{self.metrics[0].label} {RANKINGS}")  # type: ignore[index]
        if is_event(first):
            self.by_event(stream, store)
        elif chunks is not None and whole_chunks:
            self.by_chunk(chunks)
        else:
            self.one_by_one(stream, named)
        self.close()
        self.run.dropped, self.run.late = store.dropped, store.late

    def by_chunk(self, chunks: Iterator[Examples]) -> None:
        queries: Queries | None = None
        for rows in chunks:
            count = rows.size()
            if not count:
                continue
            if rows.query is not None and (self.metrics is None or self.ranks):
                queries = queries or Queries()
                self.chunk_of_queries(rows, queries)
                continue
            if self.ranks:
                self.chunk_of_label_sets(rows)
                continue
            missing = unlabelled(rows.y, count, self.loop.examples)
            for start, stop, learned in self.segments(count, missing):
                part = rows if stop - start == count else rows.part(start, stop)
                if missing is not None and missing[start]:
                    self.tell(part.X, self.asker.predict(part.X, iter(part.X), part.base))
                    self.run.unlabelled += stop - start
                else:
                    self.learn_rows(part, learned)
        if queries is not None:
            self.add_queries(queries.close(), 0.0)

    def segments(self, count: int, missing: Any) -> Iterator[tuple[int, int, bool]]:
        """Consecutive rows of which all have a label or none, all are learned or none: (start, stop, learned)."""
        kind = np.zeros(count, dtype=np.int64) if missing is None else missing.astype(np.int64)
        if self.holdout.nth:
            labelled = np.flatnonzero(kind == 0)
            kind[labelled[self.loop.is_held_out(self.holdout.nth, len(labelled))]] = 2
        for start, stop in equal_runs(kind):
            while start < stop:
                learned = bool(kind[start] == 0)
                seen = self.loop.recorder.seen if self.loop.recorder is not None else 0
                until = min(stop, start + self.holdout.next_judging(seen)) if learned else stop
                yield start, until, learned
                start = until

    def learn_rows(self, rows: Examples, learn: bool) -> None:
        if not learn:
            columns = single(rows.X, named=False), _listed(rows.y), _weights(rows), _bases(rows)
            for x, y, weight, base in zip(*columns, strict=True):
                self.hold_out(self.asker.answer(x, base), y, weight)
            return
        if self.asker.asks_more and isinstance(rows.X, list):
            self.learn_mappings(rows)
            return
        began = perf_counter()
        said = self.loop.predict_then_learn(rows)
        seconds = perf_counter() - began
        if self.loop.recorder is None:
            self.begin(rows.y[0], None if self.asker.asks_more else said[0])
        outcomes = self.loop.judge(rows, said)
        if self.on_predictions is not None:
            self.tell(rows.X, said if not self.asker.asks_more else _labels_of(outcomes))
        self.loop.examples += len(outcomes)
        self.account(outcomes, seconds)

    def learn_mappings(self, rows: Examples) -> None:
        """A list of mappings whose scores are needed: one by one, as there is no call for many."""
        if self.loop.recorder is None:
            self.begin(rows.y[0], None)
        rounds, said = Rounds(self.loop.kind, self.loop.labels), []
        began = perf_counter()
        for x, y, weight, base in zip(rows.X, _listed(rows.y), _weights(rows), _bases(rows), strict=True):
            answer = self.asker.answer(x, base)
            said.append(answer.prediction)
            rounds.add(answer, y, weight)
            if self.loop.regret is not None:
                self.loop.regret.add_one(x, y, weight, base, self.model)
            self.asker.learn(x, y, weight, base)
        seconds = perf_counter() - began
        self.tell(rows.X, said)
        self.loop.examples += len(rounds)
        self.account(rounds.take(), seconds)

    def chunk_of_queries(self, rows: Examples, queries: Queries) -> None:
        """Rows of a ranking: each query is judged when it is complete."""
        if unlabelled(rows.y, rows.size(), self.loop.examples) is not None:
            raise InputError("rows of a query need a relevance each; some have none")
        began = perf_counter()
        said = self.asker.predict_then_learn(rows)
        seconds = perf_counter() - began
        if self.on_predictions is not None:
            self.tell(rows.X, said)
        self.loop.examples += rows.size()
        self.add_queries(queries.add(rows, np.asarray(said, dtype=np.float64)), seconds)

    def chunk_of_label_sets(self, rows: Examples) -> None:
        """Rows whose y is a row of relevances, one for each label (multilabel): the ranking of the labels is judged."""
        if getattr(rows.y, "ndim", 1) != 2 or not hasattr(self.model, "score_then_learn"):
            raise InputError(f"{self.metrics[0].label} {RANKINGS}")  # type: ignore[index]
        began = perf_counter()
        [(_, scores)] = self.model.score_then_learn(rows.X, rows.y)
        seconds = perf_counter() - began
        if self.loop.recorder is None:
            self.begin_with("rankings")
        count = rows.size()
        weight = np.ones(count) if rows.weight is None else rows.weight
        self.loop.examples += count
        self.account(Outcomes("rankings", np.asarray(rows.y, np.float64), np.zeros(count), weight, scores), seconds)

    def add_queries(self, outcomes: Outcomes | None, seconds: float) -> None:
        if self.loop.recorder is None:
            self.begin_with("rankings")
            self.run.unit = "queries"
        if outcomes is not None:
            self.loop.recording.add(outcomes, seconds)
        else:
            self.run.seconds += seconds

    def one_by_one(self, stream: Any, named: bool) -> None:
        clock, asker, learn = perf_counter, self.asker, self.asker.learn
        flush = min(self.run.every, CHUNK)
        rounds: Rounds | None = None
        seconds = 0.0
        for x, y, weight, _, _, base in as_examples(stream, named, self.asker.no_base):
            began = clock()
            answer = asker.answer(x, base)
            seconds += clock() - began
            if self.on_predictions is not None:
                self.tell([x], [answer.prediction])
            if has_no_label(y, self.loop.examples + 1):
                self.run.unlabelled += 1
                continue
            if self.loop.recorder is None:
                self.begin(y, answer.prediction)
            if rounds is None:
                rounds = Rounds(self.loop.kind, self.loop.labels)
            if self.holdout.is_due(self.loop.examples + 1):
                self.hold_out(answer, y, weight)
                continue
            # Judge before learning: the model may have returned an object that learning changes.
            rounds.add(answer, y, weight)
            if self.loop.regret is not None:
                self.loop.regret.add_one(x, y, weight, base, self.model)
            began = clock()
            learn(x, y, weight, base)
            seconds += clock() - began
            self.loop.examples += 1
            if len(rounds) >= min(flush, self.holdout.next_judging(self.loop.recording.seen)):
                self.account(rounds.take(), seconds)
                seconds = 0.0
        if rounds:
            self.account(rounds.take(), seconds)

    def by_event(self, events: Iterable[Any], store: PendingLabels) -> None:
        asker, clock = self.asker, perf_counter
        rounds: tuple[Rounds, Rounds] | None = None
        later: RunRecorder | None = None
        seconds = 0.0

        def flush() -> None:
            nonlocal seconds
            if rounds is not None and len(rounds[0]):
                assert later is not None
                self.account(rounds[0].take(), seconds)
                later.add(rounds[1].take(), seconds)
                seconds = 0.0

        for event in events:
            if not is_event(event):
                raise InputError(f'expected an event ("x", id, x) or ("y", id, y), got {event!r:.80}')
            if event[0] == "x":
                weight = event[3] if len(event) > 3 else None
                base = event[4] if len(event) > 4 else 0.0
                began = clock()
                answer = asker.answer(event[2], base)
                seconds += clock() - began
                if self.on_predictions is not None:
                    self.tell([event[2]], [answer.prediction])
                store.put(event[1], (event[2], weight, base, answer))
                continue
            waited = store.take(event[1])
            if waited is None:
                continue
            x, weight, base, answer = waited
            y = event[2]
            if has_no_label(y, self.loop.examples + 1):
                self.run.unlabelled += 1
                continue
            if rounds is None:
                self.begin(y, answer.prediction)
                assert self.metrics is not None
                self.run.at_label = Run(
                    every=self.run.every, window_size=self.run.window_size, fading_factor=self.run.fading_factor
                )
                later = RunRecorder(self.run.at_label, self.metrics, calibrate=self.calibrate)
                rounds = (
                    Rounds(self.loop.kind, self.loop.labels),
                    Rounds(later.kind, later.labels),
                )
            rounds[0].add(answer, y, weight)
            rounds[1].add(asker.answer(x, base), y, weight)
            began = clock()
            asker.learn(x, y, weight, base)
            seconds += clock() - began
            self.loop.examples += 1
            if len(rounds[0]) == min(self.run.every, CHUNK):
                flush()
        flush()
        self.run.unlabelled += len(store)
        if later is not None:
            later.close()

    # -- the run --------------------------------------------------------------------------------------------------

    def begin(self, y: Any, prediction: Any) -> None:
        """The first answer says what kind of answers these are, where no metric does."""
        self.begin_with(self.metrics[0].kind if self.metrics else answer_kind(self.model, y, prediction))

    def begin_with(self, kind: str) -> None:
        if self.metrics is None:
            self.metrics = [metrics_module.make(DEFAULTS[kind])]
        elif self.metrics[0].kind != kind:
            raise InputError(f"{self.metrics[0].label} is for {self.metrics[0].kind}, but the stream gives {kind}")
        self.loop.begin(self.run, self.metrics, self.progress, calibrate=self.calibrate)

    def account(self, outcomes: Outcomes, seconds: float) -> None:
        """Outcomes of examples that were learned, up to the next judging of a held-out set."""
        assert self.metrics is not None
        self.loop.record(outcomes, seconds)
        self.holdout.report(self.asker, self.loop.recording, self.metrics)

    def hold_out(self, answer: Answer, y: Any, weight: float | None) -> None:
        if self.loop.recorder is None:
            self.begin(y, answer.prediction)
        assert self.metrics is not None
        self.holdout.add(answer, y, weight, self.metrics)
        self.loop.examples += 1

    def close(self) -> None:
        for t in getattr(self.model, "drifts_", ()):
            if t >= self.learned_before:
                self.run.mark(t - self.learned_before + 1, "drift")
        if self.loop.recorder is not None:
            assert self.metrics is not None
            self.loop.recorder.close()
            self.holdout.report(self.asker, self.loop.recorder, self.metrics, end=True)
        elif self.metrics is not None:
            RunRecorder(self.run, self.metrics)  # an empty run still names its metrics

    def tell(self, X: Any, predictions: Any) -> None:
        if self.on_predictions is not None:
            self.on_predictions(X, predictions)


def _labels_of(outcomes: Outcomes) -> list[Any]:
    return [outcomes.labels.values[code] for code in outcomes.predicted.tolist()]


def _weights(rows: Examples) -> list[Any]:
    return [None] * rows.size() if rows.weight is None else rows.weight.tolist()


def _bases(rows: Examples) -> list[float]:
    return [0.0] * rows.size() if rows.base is None else rows.base.tolist()


def _listed(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values
