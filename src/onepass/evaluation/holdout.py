"""Examples that are judged and never learned: every n-th of the stream, or a fixed set judged at regular intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ParameterError
from ..metrics import Metric
from ..metrics.meters import whole
from .answers import Asker, Rounds
from .examples import as_examples, is_chunk, takes_mappings_only
from .recorder import RunRecorder
from .run import Run

__all__ = ["Holdout"]


class Holdout:
    """`nth` is n, or 0: `Loop` holds these out. A fixed set is judged here; results go to `run.holdout`."""

    def __init__(self, given: Any, every: int | None, model: Any, run: Run) -> None:
        self.run = run
        self.nth = 0
        self.every = run.every if every is None else whole("holdout_every", every)
        self._fixed: list[tuple[Any, Any, float]] = []
        if isinstance(given, int | np.integer):
            self.nth = whole("holdout", given, least=2)
        elif given is not None:
            stream = [given] if is_chunk(given) else given
            self._fixed = [(each.x, each.y, each.base) for each in as_examples(stream, takes_mappings_only(model))]
            if not self._fixed:
                raise ParameterError("holdout: expected n, or a set of at least one example")

    def is_due(self, number: int) -> bool:
        """Is labelled example `number` (from 1) held out?"""
        return bool(self.nth) and number % self.nth == 0

    def next_judging(self, seen: int) -> int:
        """Examples until the fixed set is to be judged."""
        return self.every - seen % self.every if self._fixed else 1 << 62

    def report(self, asker: Asker, recorder: RunRecorder, metrics: list[Metric], *, end: bool = False) -> None:
        """Called after every step: adds a row where one is due."""
        seen, done = recorder.seen, self.run.holdout.get("t", [])
        if self._fixed and seen and (seen % self.every == 0 or end) and (not done or done[-1] != seen):
            rounds = Rounds(recorder.kind, recorder.labels)
            for x, y, base in self._fixed:
                rounds.add(asker.answer(x, base), y, None)
            outcomes = rounds.take()
            self._add(seen, [metric.value(metric.statistic().of(outcomes), recorder.labels) for metric in metrics])

    def _add(self, t: int, values: list[float]) -> None:
        self.run.holdout.setdefault("t", []).append(t)
        for metric, value in zip(self.run.metrics, values, strict=True):
            self.run.holdout.setdefault(metric, []).append(value)
