"""`RunRecorder`: adds the outcomes of examples to the metrics, and writes their values to a `Run` at each report."""

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
    """Computes metrics over the outcomes that it is given, and reports to its `Run` every `run.every` examples."""

    def __init__(
        self,
        run: Run,
        metrics: Sequence[Metric],
        progress: Progress | None = None,
        *,
        calibrate: bool = False,
        labels: Labels | None = None,
    ) -> None:
        """`labels` is the table of labels of another recorder, if the two must give a label the same code."""
        self.run, self.progress = run, progress
        run.metrics = [metric.label for metric in metrics]
        run.values = dict.fromkeys(run.metrics, math.nan)
        run.curves = {label: {view: [] for view in VIEWS} for label in run.metrics}
        self.kind = metrics[0].kind
        extra: list[Any] = [CONFUSION] if self.kind == "classes" else []
        if calibrate:
            extra.append(BINS)
        self._totals = Recorder(metrics, every=run.every, window=run.window_size, fading=run.fading_factor, extra=extra)
        if labels is not None:
            self._totals.labels = labels

    @property
    def labels(self) -> Labels:
        """The table that gives each label its code in the outcomes."""
        return self._totals.labels

    @property
    def added(self) -> int:
        """The number of examples added so far. The metrics may not include the last of them yet."""
        return self._totals.seen + self._totals.waiting

    def room(self) -> int:
        """How many more examples can be added before the metrics are updated; a report comes only with an update."""
        return self._totals.room()

    def current_values(self) -> list[float]:
        """The value of each metric over all examples added so far."""
        self._totals.settle()
        return self._totals.values("cumulative")

    def add(self, outcomes: Outcomes, seconds: float) -> None:
        """Add the outcomes of some examples. The model spent `seconds` on these examples."""
        seconds_per_example = seconds / max(len(outcomes), 1)
        start = 0
        while start < len(outcomes):
            stop = start + min(self.room(), len(outcomes) - start)
            before = self._totals.seen
            report_is_due = self._add_part(outcomes.part(start, stop))
            self.run.seconds += seconds_per_example * (stop - start)
            start = stop
            updated = self._totals.seen > before
            if updated:
                self._update_run(values=report_is_due or self.progress is not None)
            if report_is_due:
                self._report()
            if updated and self.progress is not None:
                self.progress(self.run)

    def _add_part(self, part: Outcomes) -> bool:
        """Add outcomes, at most `room()` of them; return True if a report is due.

        The confusion matrix is dropped when there are too many classes for the table of classes that is made of it.
        """
        if CONFUSION in self._totals.extra and len(part.labels) > CONFUSION.limit:
            self._totals.drop(CONFUSION)
        return self._totals.add(part)

    def close(self) -> None:
        """End the run: write a last report, the table of classes and the calibration curve."""
        waited = bool(self._totals.waiting)
        self._totals.settle()
        if self._totals.seen and (not self.run.t or self.run.t[-1] != self._totals.seen):
            self._update_run(values=True)
            self._report()
        state = self._totals.state(CONFUSION)
        if state is not None:
            self.run.per_class = per_class(state, self.labels)
        state = self._totals.state(BINS)
        if state is not None:
            self.run.calibration = calibration(state, self.labels)
        if waited and self.progress is not None:
            self.progress(self.run)

    def _update_run(self, *, values: bool) -> None:
        """Update the number of examples and their weight in the run; if `values`, the values of the metrics too.

        The values are computed only on request, because some metrics sort all scores for it.
        """
        run = self.run
        run.examples, run.weight = self._totals.seen, self._totals.weight
        if values:
            run.values = dict(zip(run.metrics, self._totals.values("cumulative"), strict=True))

    def _report(self) -> None:
        """Append the values of this moment to the curves of the run."""
        run = self.run
        run.t.append(run.examples)
        for view in VIEWS:
            for metric, value in zip(run.metrics, self._totals.values(view), strict=True):
                run.curves[metric][view].append(value)
        run.throughput.append(run.speed)
        self._totals.begin_period()

    # -- state -------------------------------------------------------------------------------------------------------

    def state(self, name: str, arrays: dict[str, Any], *, times: bool = True) -> dict[str, Any]:
        """The state for `from_state`: a dictionary that JSON can hold, and large columns, which are added to `arrays`.

        The names of these columns begin with `name`. Without `times`, the seconds of the run are left out.
        """
        from ..metrics.saving import save

        config, columns = save(self._totals)
        arrays.update({f"{name}.{key}": column for key, column in columns.items()})
        return {
            "recorder": config,
            "run": self.run.content(times=times),
            "metrics": self.run.metrics,
            "calibrates": BINS in self._totals.extra,
        }

    @classmethod
    def from_state(
        cls, content: Mapping[str, Any], name: str, arrays: Mapping[str, Any], labels: Labels | None = None
    ) -> RunRecorder:
        """Make a recorder from a saved `state`; it continues exactly as the saved one would have."""
        from ..metrics.saving import restore

        run = Run.from_json(json.dumps(content["run"]))
        values, curves = run.values, run.curves
        metrics = [metrics_module.make(metric) for metric in content["metrics"]]
        recorder = cls(run, metrics, calibrate=content["calibrates"], labels=labels)
        run.values, run.curves = values, curves  # the constructor has emptied them
        prefix = f"{name}."
        columns = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        restore(recorder._totals, content["recorder"], columns)
        return recorder
