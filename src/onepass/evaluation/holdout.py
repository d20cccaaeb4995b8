"""Which examples are evaluated and never learned: every n-th of the stream, or a fixed set beside the stream.

The models carry it out: `models/prediction_only.py`.
"""

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

__all__ = ["Holdout", "is_held_out"]


def is_held_out(number: Any, nth: int) -> Any:
    """Is the labelled example `number` of a pass (from 1) held out? For an array of numbers: the answer for each."""
    return number % nth == 0


class Holdout:
    """The argument `holdout` of `prequential`: a number n, or a set of examples.

    With n, `Loop` holds out every n-th example, and `nth` is n; otherwise `nth` is 0. With a set, `report` predicts its
    examples every `every` examples of the stream, and adds the metrics to `run.holdout`.
    """

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

    def next_judging(self, seen: int) -> int:
        """How many examples of the stream come before the fixed set is evaluated again."""
        return self.every - seen % self.every if self._fixed else 1 << 62

    def report(self, asker: Asker, recorder: RunRecorder, metrics: list[Metric], *, end: bool = False) -> None:
        """Evaluate the fixed set if that is due, or at the `end` of the stream. Called after every step."""
        seen, done = recorder.added, self.run.holdout.get("t", [])
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
