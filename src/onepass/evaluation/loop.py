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
from .recorder import Progress, RunRecorder
from .run import Run

if TYPE_CHECKING:
    from ..drift.base import Detector
    from .regret_recorder import RegretRecorder

__all__ = ["Loop"]


class Loop:
    """One pass. `examples` counts its labelled rows.

    `begin` makes the recorders, once it is known what is judged (classes, numbers, …): `recorder` writes the `Run`,
    `held_out` the one of rows that are judged but never learned.
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
        held_out: Run | None = None,
    ) -> None:
        """Record in `run`, and outcomes of rows that are not learned in `held_out`."""
        self.recorder = RunRecorder(run, metrics, progress, calibrate=calibrate)
        if held_out is not None:
            self.held_out = RunRecorder(held_out, metrics, labels=self.labels)

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

    def is_held_out(self, nth: int, rows: int) -> NDArray[np.bool_]:
        """Which of the next labelled rows are held out: every nth of the pass."""
        number = self.examples + np.arange(1, rows + 1)
        return np.asarray(number % nth == 0)

    def predict_then_learn(self, rows: Examples) -> Any:
        """Predictions (or scored parts), each made before its row was learned."""
        if self.regret is not None:
            self.regret.require_no_base(rows)
        said = self.asker.predict_then_learn(rows)
        if self.regret is not None:
            self.regret.add(rows, said)
        return said

    def judge(self, rows: Examples, said: Any) -> Outcomes:
        """Predictions beside the labels."""
        return self.asker.outcomes_of(self.kind, self.labels, said, rows.y, rows.weight)

    def record(self, outcomes: Outcomes, seconds: float, held: NDArray[np.bool_] | None = None) -> None:
        """Add outcomes, on which the model spent `seconds`, to the run; those that are `held` out to the other one."""
        if held is not None and self.held_out is not None:
            self.held_out.add(select(outcomes, held), 0.0)
            outcomes = select(outcomes, ~held)
        if self.drift is not None:
            for i in self.drift.update_many(losses(outcomes)).tolist():
                self.recording.run.mark(self.recording.seen + i + 1, "drift")
        self.recording.add(outcomes, seconds)

    # -- state -------------------------------------------------------------------------------------------------------

    def state(self, arrays: dict[str, Any], *, times: bool = True) -> dict[str, Any]:
        """What `restore` needs, as JSON and `arrays`; without `times`, the same for the same rows on any machine."""
        content: dict[str, Any] = {"examples": self.examples}
        for name, recorder in (("recorder", self.recorder), ("held_out", self.held_out)):
            if recorder is not None:
                content[name] = recorder.state(name, arrays, times=times)
        return content

    def restore(self, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Go on where the loop was whose `state` this is. The regret recorder is not part of it."""
        self.examples = int(content["examples"])
        if "recorder" in content:
            self.recorder = RunRecorder.from_state(content["recorder"], "recorder", arrays)
        if "held_out" in content:
            self.held_out = RunRecorder.from_state(content["held_out"], "held_out", arrays, self.labels)


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
