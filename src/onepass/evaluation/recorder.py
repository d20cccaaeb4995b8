"""From outcomes to a `Run`: a recorder that knows when to report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import metrics as metrics_module
from ..metrics import VIEWS, Labels, Metric, Outcomes, Recorder, calibration, per_class
from ..metrics.tables import BINS, CONFUSION
from .run import Run

__all__ = ["Progress", "RunRecorder"]

Progress = Callable[[Run], object]


class RunRecorder:
    """Keeps a `Run` up to date with the outcomes it is given."""

    def __init__(
        self,
        run: Run,
        metrics: Sequence[Metric],
        progress: Progress | None = None,
        *,
        calibrate: bool = False,
        labels: Labels | None = None,
    ) -> None:
        """`labels`: those of another recorder, which this one shares."""
        self.run, self.progress = run, progress
        run.metrics = [metric.label for metric in metrics]
        run.values = dict.fromkeys(run.metrics, math.nan)
        run.curves = {label: {view: [] for view in VIEWS} for label in run.metrics}
        self.kind = metrics[0].kind
        extra: list[Any] = [CONFUSION] if self.kind == "classes" else []
        if calibrate:
            extra.append(BINS)
        self.recorder = Recorder(
            metrics, every=run.every, window=run.window_size, fading=run.fading_factor, extra=extra
        )
        if labels is not None:
            self.recorder.labels = labels

    @property
    def labels(self) -> Labels:
        return self.recorder.labels

    @property
    def seen(self) -> int:
        """Examples added, with those that wait to be recorded together."""
        return self.recorder.seen + self.recorder.waiting

    def add(self, outcomes: Outcomes, seconds: float) -> None:
        """Add the outcomes of some examples, on which the model spent `seconds`."""
        each = seconds / max(len(outcomes), 1)
        start = 0
        while start < len(outcomes):
            stop = start + min(self.recorder.room(), len(outcomes) - start)
            before = self.recorder.seen
            due = self._record(outcomes.part(start, stop))
            self.run.seconds += each * (stop - start)
            start = stop
            if self.recorder.seen > before:
                self._count(values=due or self.progress is not None)
            if due:
                self._report()
            if self.recorder.seen > before and self.progress is not None:
                self.progress(self.run)

    def _record(self, part: Outcomes) -> bool:
        """Record outcomes; with too many classes, the confusion matrix behind the per-class table is dropped."""
        if CONFUSION in self.recorder.extra and len(part.labels) > CONFUSION.limit:
            self.recorder.drop(CONFUSION)
        return self.recorder.add(part)

    def close(self) -> None:
        """The end of the stream: a last report, and the tables."""
        waited = bool(self.recorder.waiting)
        self.recorder.settle()
        if self.recorder.seen and (not self.run.t or self.run.t[-1] != self.recorder.seen):
            self._count(values=True)
            self._report()
        state = self.recorder.state(CONFUSION)
        if state is not None:
            self.run.per_class = per_class(state, self.labels)
        state = self.recorder.state(BINS)
        if state is not None:
            self.run.calibration = calibration(state, self.labels)
        if waited and self.progress is not None:
            self.progress(self.run)

    def _count(self, *, values: bool) -> None:
        """Update the totals of the run, and the `values`, which may need a sort, only when they are asked for."""
        run = self.run
        run.examples, run.weight = self.recorder.seen, self.recorder.weight
        if values:
            run.values = dict(zip(run.metrics, self.recorder.values("cumulative"), strict=True))

    def _report(self) -> None:
        run = self.run
        run.t.append(run.examples)
        for view in VIEWS:
            for metric, value in zip(run.metrics, self.recorder.values(view), strict=True):
                run.curves[metric][view].append(value)
        run.throughput.append(run.speed)
        self.recorder.begin_period()

    # -- state -------------------------------------------------------------------------------------------------------

    def state(self, name: str, arrays: dict[str, Any], *, times: bool = True) -> dict[str, Any]:
        """What `from_state` needs, as JSON; large columns go to `arrays`, under names that begin with `name`."""
        from ..metrics.saving import save

        config, mine = save(self.recorder)
        arrays.update({f"{name}.{key}": array for key, array in mine.items()})
        return {
            "recorder": config,
            "run": self.run.content(times=times),
            "metrics": self.run.metrics,
            "calibrates": BINS in self.recorder.extra,
        }

    @classmethod
    def from_state(
        cls, content: Mapping[str, Any], name: str, arrays: Mapping[str, Any], labels: Labels | None = None
    ) -> RunRecorder:
        """A recorder that goes on where the one was whose `state` this is."""
        from ..metrics.saving import restore

        run = Run.from_json(json.dumps(content["run"]))
        values, curves = run.values, run.curves
        made = [metrics_module.make(metric) for metric in content["metrics"]]
        recorder = cls(run, made, calibrate=content["calibrates"], labels=labels)
        run.values, run.curves = values, curves
        prefix = f"{name}."
        mine = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        restore(recorder.recorder, content["recorder"], mine)
        return recorder
