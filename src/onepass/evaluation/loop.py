"""The prequential loop: each labelled row is predicted, then learned, and the prediction is judged.

`prequential` drives it over any stream, `onepass learn` and `onepass compare` over files. Between two calls, `state`
gives what the loop has measured so far; a loop that reads it back with `restore` goes on to the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..metrics import Labels, Metric, Outcomes
from ..rows.examples import Examples
from .answers import Asker
from .holdout import is_held_out
from .recorder import Progress, RunRecorder
from .run import Run

if TYPE_CHECKING:
    from ..drift.base import Detector
    from .regret_recorder import RegretRecorder

__all__ = ["Loop"]

NEVER = 1 << 62  # examples from one report to the next of a recorder that is read at the reports of another


class Loop:
    """One pass. `examples` counts its labelled rows.

    `begin` makes the recorders, once it is known what is judged (classes, numbers, …): `recorder` writes the `Run`.

    Of the labelled examples of a pass, counted from 1, every nth may be held out: it is predicted and recorded by
    `held_out`, and never learned. The model stays, bit for bit, that of the stream without these examples. With each
    report of the run, `Run.holdout` gets the metrics over all examples held out before it; the last row has them all.
    """

    def __init__(self, asker: Asker, *, regret: RegretRecorder | None = None, drift: Detector | None = None) -> None:
        self.asker, self.regret, self.drift = asker, regret, drift
        self.recorder: RunRecorder | None = None
        self.held_out: RunRecorder | None = None
        self.examples = 0

    def begin(
        self,
        run: Run,
        metrics: Sequence[Metric],
        progress: Progress | None = None,
        *,
        calibrate: bool = False,
        holds_out: bool = False,
    ) -> None:
        """Record in `run`; where it `holds_out` examples, record these apart."""
        self.recorder = RunRecorder(run, metrics, progress, calibrate=calibrate)
        if holds_out:
            self.held_out = RunRecorder(Run(every=NEVER), metrics, labels=self.labels)

    @property
    def recording(self) -> RunRecorder:
        """The recorder, after `begin`."""
        assert self.recorder is not None
        return self.recorder

    @property
    def kind(self) -> str:
        """What is judged: classes, numbers, sets or rankings."""
        return self.recording.kind

    @property
    def labels(self) -> Labels:
        return self.recording.labels

    # -- a round for each row ----------------------------------------------------------------------------------------

    def held_out_of_next(self, rows: int, nth: int) -> NDArray[np.bool_] | None:
        """Which of the next labelled rows are held out. None if `nth` is 0: no example of the pass is held out."""
        if not nth:
            return None
        return np.asarray(is_held_out(self.examples + np.arange(1, rows + 1), nth))

    def predict_then_learn(self, rows: Examples, held: NDArray[np.bool_] | None = None) -> Any:
        """Predictions (or scored parts), each made before its row was learned. Rows that are `held` are not learned."""
        if self.regret is not None:
            self.regret.require_no_base(rows)
        said = self.asker.predict_then_learn(rows, held)
        if self.regret is not None:
            self.regret.add(rows, said, held)
        return said

    def judge(self, rows: Examples, said: Any) -> Outcomes:
        """Predictions beside the labels."""
        return self.asker.outcomes_of(self.kind, self.labels, said, rows.y, rows.weight)

    def record(self, outcomes: Outcomes, seconds: float, held: NDArray[np.bool_] | None = None) -> None:
        """Add outcomes, on which the model spent `seconds`, to the run; those that are `held` out apart."""
        if held is None or self.held_out is None or not held.any():
            self._record_learned(outcomes, seconds)
            return
        learned, apart = np.flatnonzero(~held), np.flatnonzero(held)
        each, start, first = seconds / len(held), 0, 0
        while start < len(learned):  # up to each report, so that it has what was held out before it
            stop = min(len(learned), start + self.recording.room())
            last = int(np.searchsorted(apart, learned[stop - 1]))
            self._record_apart(outcomes, apart[first:last])
            self._record_learned(select(outcomes, learned[start:stop]), each * (stop - start))
            start, first = stop, last
        self._record_apart(outcomes, apart[first:])

    def _record_learned(self, outcomes: Outcomes, seconds: float) -> None:
        if self.drift is not None:
            for i in self.drift.update_many(losses(outcomes)).tolist():
                self.recording.run.mark(self.recording.added + i + 1, "drift")
        before = len(self.recording.run.t)
        self.recording.add(outcomes, seconds)
        if len(self.recording.run.t) > before:
            self._report_apart()

    def _record_apart(self, outcomes: Outcomes, rows: NDArray[np.intp]) -> None:
        if self.held_out is not None and len(rows):
            self.held_out.add(select(outcomes, rows), 0.0)

    def _report_apart(self) -> None:
        """With a report of the run, one of all examples held out so far."""
        run = self.recording.run
        if self.held_out is None or not self.held_out.added or not run.t:
            return
        columns = {"t": run.t[-1], **dict(zip(run.metrics, self.held_out.current_values(), strict=True))}
        repeated = run.holdout.get("t", [])[-1:] == run.t[-1:]  # at the end: more were held out after the last report
        for name, value in columns.items():
            column = run.holdout.setdefault(name, [])
            column[len(column) - repeated :] = [value]

    def close(self) -> None:
        """The end of the pass."""
        self.recording.close()
        self._report_apart()

    # -- state -------------------------------------------------------------------------------------------------------

    def state(self, arrays: dict[str, Any], *, times: bool = True) -> dict[str, Any]:
        """What `restore` needs, as JSON and `arrays`; without `times`, the same for the same rows on any machine."""
        content: dict[str, Any] = {"examples": self.examples}
        for name, recorder in (("recorder", self.recorder), ("held_out", self.held_out)):
            if recorder is not None:
                content[name] = recorder.state(name, arrays, times=times)
        if self.drift is not None:
            content["drift"] = {"detector": repr(self.drift), "state": self.drift.state()}
        if self.regret is not None:
            content["regret"] = self.regret.state(arrays)
        return content

    def restore(self, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Go on where the loop was whose `state` this is: one with the same detector, and a recorder if it had one."""
        self.examples = int(content["examples"])
        if "recorder" in content:
            self.recorder = RunRecorder.from_state(content["recorder"], "recorder", arrays)
        if "held_out" in content:
            self.held_out = RunRecorder.from_state(content["held_out"], "held_out", arrays, self.labels)
        if self.drift is not None:
            self.drift.restore(content["drift"]["state"])
        if self.regret is not None:
            self.regret.restore(content["regret"], arrays)


def losses(outcomes: Outcomes) -> Any:
    """0 or 1 for each label, |y − ŷ| for each number: what a drift detector hears."""
    if outcomes.kind == "numbers":
        return np.abs(outcomes.truth - outcomes.predicted)
    return (outcomes.truth != outcomes.predicted).astype(np.float64)


def select(outcomes: Outcomes, rows: Any) -> Outcomes:
    """Some of the outcomes, by index or mask."""
    columns = ("truth", "predicted", "weight", "scores", "probabilities")
    kept: dict[str, Any] = {name: None if (c := getattr(outcomes, name)) is None else c[rows] for name in columns}
    return Outcomes(outcomes.kind, labels=outcomes.labels, **kept)
