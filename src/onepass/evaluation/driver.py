"""How `prequential` brings a stream to the loop: in chunks, one by one, or by events (examples now, labels later)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from .. import metrics as metrics_module
from ..errors import InputError, ParameterError
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
    split,
    takes_mappings_only,
    unlabelled,
)
from .holdout import Holdout, is_held_out
from .loop import Loop
from .queries import Queries
from .recorder import Progress, RunRecorder
from .run import Run
from .run_state import RunState

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
        checkpoint: Callable[[RunState], object] | None = None,
        checkpoint_every: int = 1,
    ) -> None:
        self.loop, self.asker, self.model = loop, loop.asker, loop.asker.model
        self.run, self.metrics, self.holdout, self.calibrate = run, metrics, holdout, calibrate
        self.progress, self.on_predictions = progress, on_predictions
        self.learned_before = int(getattr(self.model, "t_", 0))
        self.checkpoint, self.checkpoint_every = checkpoint, checkpoint_every
        self.taken = self.checkpointed = 0  # examples of the stream so far, and at the last checkpoint
        self.queries: Queries | None = None
        self.pending: PendingLabels | None = None
        self.delayed: DelayedStream | None = None
        self.later: RunRecorder | None = None  # of the answers when labels came
        self.rounds: tuple[Rounds, Rounds] | None = None  # with late labels: answers when examples and labels came
        self.waited = 0.0  # seconds that the model spent on them
        self.resumed: Mapping[str, Any] = {}  # the state that this run goes on from

    @property
    def ranks(self) -> bool:
        return self.metrics is not None and self.metrics[0].kind == "rankings"

    # -- the three ways through a stream ---------------------------------------------------------------------------

    def go(self, stream: Any, delay: Any, time: Any, max_pending: int) -> None:
        self.pending = store = PendingLabels(max_pending)
        named = takes_mappings_only(self.model)
        if not (isinstance(delay, int) and delay == 0 and time is None):
            stream = self.delayed = DelayedStream(stream, delay, time=time, named=named)
        self._restore_late()
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
        for rows in chunks:
            if not rows.size():
                continue
            self.whole_chunk(rows)
            self.taken += rows.size()
            if self.is_due():
                self.save_state()
        if self.queries is not None:
            self.add_queries(self.queries.close(), 0.0)

    def whole_chunk(self, rows: Examples) -> None:
        count = rows.size()
        if rows.query is not None and (self.metrics is None or self.ranks):
            self.queries = self.queries or Queries()
            self.chunk_of_queries(rows, self.queries)
            return
        if self.ranks:
            self.chunk_of_label_sets(rows)
            return
        missing = unlabelled(rows.y, count, self.loop.examples)
        for start, stop in self.segments(count, missing):
            part = rows if stop - start == count else rows.part(start, stop)
            if missing is not None and missing[start]:
                self.tell(part.X, self.asker.predict(part.X, iter(part.X), part.base))
                self.run.unlabelled += stop - start
            else:
                self.learn_rows(part)

    def segments(self, count: int, missing: Any) -> Iterator[tuple[int, int]]:
        """Consecutive rows of which all have a label or none, up to the next judging of a fixed set: (start, stop)."""
        for start, stop in equal_runs(np.zeros(count, dtype=bool) if missing is None else missing):
            while start < stop:
                seen = self.loop.recorder.added if self.loop.recorder is not None else 0
                labelled = missing is None or not missing[start]
                until = min(stop, start + self.holdout.next_judging(seen)) if labelled else stop
                yield start, until
                start = until

    def learn_rows(self, rows: Examples) -> None:
        if self.asker.asks_more and isinstance(rows.X, list):
            self.learn_mappings(rows)
            return
        held = self.loop.held_out_of_next(rows.size(), self.holdout.nth)
        began = perf_counter()
        said = self.loop.predict_then_learn(rows, held)
        seconds = perf_counter() - began
        if self.loop.recorder is None:
            self.begin(rows.y[0], None if self.asker.asks_more else said[0])
        outcomes = self.loop.judge(rows, said)
        if self.on_predictions is not None:
            self.tell(rows.X, said if not self.asker.asks_more else _labels_of(outcomes))
        self.loop.examples += len(outcomes)
        self.account(outcomes, seconds, held)

    def learn_mappings(self, rows: Examples) -> None:
        """A list of mappings whose scores are needed: one by one, as there is no call for many."""
        if self.loop.recorder is None:
            self.begin(rows.y[0], None)
        rounds, said = Rounds(self.loop.kind, self.loop.labels), []
        held = self.loop.held_out_of_next(rows.size(), self.holdout.nth)
        columns = rows.X, _listed(rows.y), _weights(rows), _bases(rows)
        began = perf_counter()
        for i, (x, y, weight, base) in enumerate(zip(*columns, strict=True)):
            answer = self.asker.answer(x, base)
            said.append(answer.prediction)
            rounds.add(answer, y, weight)
            if held is not None and held[i]:
                continue
            if self.loop.regret is not None:
                self.loop.regret.add_one(x, y, weight, base, self.model)
            self.asker.learn(x, y, weight, base)
        seconds = perf_counter() - began
        self.tell(rows.X, said)
        self.loop.examples += len(rounds)
        self.account(rounds.take(), seconds, held)

    def chunk_of_queries(self, rows: Examples, queries: Queries) -> None:
        """Examples of a ranking: each query is judged when it is complete."""
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
        held: list[bool] = []
        nth = self.holdout.nth
        seconds = 0.0
        for x, y, weight, _, _, base in as_examples(stream, named, self.asker.no_base):
            if self.is_due():  # all examples before this one are done
                if rounds:
                    self.account(rounds.take(), seconds, np.array(held))
                    held, seconds = [], 0.0
                self.save_state()
            self.taken += 1
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
            # Judge before learning: the model may have returned an object that learning changes.
            rounds.add(answer, y, weight)
            self.loop.examples += 1
            held.append(nth > 0 and is_held_out(self.loop.examples, nth))
            if not held[-1]:
                if self.loop.regret is not None:
                    self.loop.regret.add_one(x, y, weight, base, self.model)
                began = clock()
                learn(x, y, weight, base)
                seconds += clock() - began
            if len(rounds) >= min(flush, self.holdout.next_judging(self.loop.recording.added)):
                self.account(rounds.take(), seconds, np.array(held))
                held, seconds = [], 0.0
        if rounds:
            self.account(rounds.take(), seconds, np.array(held))

    def by_event(self, events: Iterable[Any], store: PendingLabels) -> None:
        if self.later is not None:
            self.rounds = Rounds(self.loop.kind, self.loop.labels), Rounds(self.later.kind, self.later.labels)
        for event in events:
            if not is_event(event):
                raise InputError(f'expected an event ("x", id, x) or ("y", id, y), got {event!r:.80}')
            if event[0] == "x":
                self.arrive(event, store)
            else:
                self.reveal(event, store)
            self.taken = self.taken + 1 if self.delayed is None else self.delayed.taken
            if self.is_due():
                self.flush()
                self.save_state()
        self.flush()
        self.run.unlabelled += len(store)
        if self.later is not None:
            self.later.close()

    def flush(self) -> None:
        """Record the examples whose labels have come."""
        if self.rounds is None or not len(self.rounds[0]):
            return
        assert self.later is not None
        self.account(self.rounds[0].take(), self.waited)
        self.later.add(self.rounds[1].take(), self.waited)
        self.waited = 0.0

    def arrive(self, event: Any, store: PendingLabels) -> None:
        """Predict an example; its label comes later."""
        weight = event[3] if len(event) > 3 else None
        base = event[4] if len(event) > 4 else 0.0
        began = perf_counter()
        answer = self.asker.answer(event[2], base)
        self.waited += perf_counter() - began
        if self.on_predictions is not None:
            self.tell([event[2]], [answer.prediction])
        store.put(event[1], (event[2], weight, base, tuple(answer)))

    def reveal(self, event: Any, store: PendingLabels) -> None:
        """A label: judge the prediction that was made, and one made now; then learn."""
        found = store.take(event[1])
        if found is None:
            return
        x, weight, base, said = found
        answer, y = Answer(*said), event[2]
        if has_no_label(y, self.loop.examples + 1):
            self.run.unlabelled += 1
            return
        if self.rounds is None:
            self.begin(y, answer.prediction)
            assert self.metrics is not None
            self.run.at_label = Run(
                every=self.run.every, window_size=self.run.window_size, fading_factor=self.run.fading_factor
            )
            self.later = RunRecorder(self.run.at_label, self.metrics, calibrate=self.calibrate)
            self.rounds = Rounds(self.loop.kind, self.loop.labels), Rounds(self.later.kind, self.later.labels)
        self.rounds[0].add(answer, y, weight)
        self.rounds[1].add(self.asker.answer(x, base), y, weight)
        began = perf_counter()
        self.asker.learn(x, y, weight, base)
        self.waited += perf_counter() - began
        self.loop.examples += 1
        if len(self.rounds[0]) == min(self.run.every, CHUNK):
            self.flush()

    # -- state -------------------------------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Is the state to be given to `checkpoint`?"""
        return self.checkpoint is not None and self.taken - self.checkpointed >= self.checkpoint_every

    def save_state(self) -> None:
        assert self.checkpoint is not None and self.pending is not None
        arrays: dict[str, Any] = {}
        content: dict[str, Any] = {
            "loop": self.loop.state(arrays),
            "holdout": self.holdout.nth,
            "unlabelled": self.run.unlabelled,
            "unit": self.run.unit,
            "learned_before": self.learned_before,
            "pending": self.pending.state(),
            "delayed": None if self.delayed is None else self.delayed.state(),
            "queries": None if self.queries is None else self.queries.state(),
            "at_label": None if self.later is None else self.later.state("at_label", arrays),
        }
        self.checkpointed = self.taken
        self.checkpoint(RunState(self.taken, content, {name: np.array(array) for name, array in arrays.items()}))

    def restore(self, state: RunState) -> None:
        """Go on where the run was whose state this is; its loop has been restored."""
        content = state.config
        if content["holdout"] != self.holdout.nth:
            raise ParameterError(f"resume: holdout was {content['holdout'] or None} in that run; give the same")
        self.run.unlabelled, self.run.unit = content["unlabelled"], content["unit"]
        self.learned_before = content["learned_before"]
        self.taken = self.checkpointed = state.rows
        self.resumed = content
        if self.loop.recorder is not None:
            self.loop.recorder.progress = self.progress
        if content["queries"] is not None:
            self.queries = Queries()
            self.queries.restore(content["queries"])
        if content["at_label"] is not None:
            self.later = RunRecorder.from_state(content["at_label"], "at_label", state.arrays)
            self.run.at_label = self.later.run

    def _restore_late(self) -> None:
        """The labels that are still to come."""
        if not self.resumed:
            return
        if (self.delayed is None) != (self.resumed["delayed"] is None):
            raise ParameterError("resume: that run had a delay and this one has none, or the reverse; give the same")
        assert self.pending is not None
        self.pending.restore(self.resumed["pending"])
        if self.delayed is not None:
            self.delayed.restore(self.resumed["delayed"])

    # -- the run --------------------------------------------------------------------------------------------------

    def begin(self, y: Any, prediction: Any) -> None:
        """The first answer says what kind of answers these are, where no metric does."""
        self.begin_with(self.metrics[0].kind if self.metrics else answer_kind(self.model, y, prediction))

    def begin_with(self, kind: str) -> None:
        if self.metrics is None:
            self.metrics = [metrics_module.make(DEFAULTS[kind])]
        elif self.metrics[0].kind != kind:
            raise InputError(f"{self.metrics[0].label} is for {self.metrics[0].kind}, but the stream gives {kind}")
        self.loop.begin(
            self.run, self.metrics, self.progress, calibrate=self.calibrate, holds_out=bool(self.holdout.nth)
        )

    def account(self, outcomes: Outcomes, seconds: float, held: Any = None) -> None:
        """Outcomes of examples, of which some are `held` out, up to the next judging of a fixed set."""
        assert self.metrics is not None
        self.loop.record(outcomes, seconds, held)
        self.holdout.report(self.asker, self.loop.recording, self.metrics)

    def close(self) -> None:
        for t in getattr(self.model, "drifts_", ()):
            if t >= self.learned_before:
                self.run.mark(t - self.learned_before + 1, "drift")
        if self.loop.recorder is not None:
            assert self.metrics is not None
            self.loop.close()
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
