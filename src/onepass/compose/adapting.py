"""Learners monitored by a drift detector, and how they react to a change.

Each example is predicted, its loss goes to the detector, and then it is learned, by the learner that is active after
the detector's answer. A batch is predicted and learned in blocks; where the detector fires in the middle of a block,
the learners are rolled back to that example, so that the size of blocks changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..drift.base import Detector
from ..errors import DamagedFileError, NumericalError, ParameterError, rows_from
from ..reductions.either import EitherTask
from ..reductions.examples import LARGE, Indices, Rows, count, part, singles
from ..reductions.learners import BaseLearner
from ..scheme.rounds import Array

__all__ = ["Adapting", "Resetting", "Watched", "listed"]

BLOCK = 512  # examples predicted and learned before the detector sees their losses
REMEMBERED = 1000  # how many changes `drifts` records
# Standard deviations of the fading sum of differences, as if these were independent, by which a learner must be ahead.
# The test runs after every example: of two equally good learners, one is ahead by two deviations at some time within
# the default `patience` in 58% of runs, by three in 8%, by four in 0.2%.
SURE = 4.0


class Watched(EitherTask):
    """`learners[0]` predicts; `spares` learn in the background. A subclass defines `_observe` and `_act`."""

    def __init__(self, base: Any, task: str, classes: Any, detectors: list[Detector]) -> None:
        super().__init__(base, task, classes)
        for detector in detectors:
            if task == "regression" and detector.unit_interval:
                raise ParameterError(
                    f"{self.name}(detector={detector!r}): it monitors 0/1 errors, but the base predicts numbers; "
                    "use adwin, page_hinkley or kswin, scaled to the absolute error"
                )
        self.detectors = detectors
        self.drifts: list[int] = []  # the last examples (from 0) at which the learner was replaced
        self.changes = 0
        self.learners = [self.make()]

    # -- what a subclass defines -----------------------------------------------------------------------------------

    def _observe(self, losses: list[float]) -> str | None:
        """The action to take before the example is learned, given all losses, the active learner's first."""
        raise NotImplementedError

    def _act(self, what: str) -> None:
        raise NotImplementedError

    def _judge(self, losses: list[float]) -> str | None:
        """As `_observe`, after checking that a detector can take the losses."""
        if self.task == "regression":
            for loss in losses:
                if not loss <= LARGE:
                    raise NumericalError(
                        f"row 0: a prediction is off by {loss:g}, so that squares in the detector overflow; scale the "
                        "numbers to predict down, or choose smaller steps"
                    )
        return self._observe(losses)

    # -- learning --------------------------------------------------------------------------------------------------

    @property
    def _all(self) -> list[BaseLearner]:
        return [*self.learners, *self.spares]

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        what = self._judge([self._loss(learner, x, answer) for learner in self._all])
        if what is not None:
            self._act(what)
        for learner in self._all:
            learner.learn(x, answer, c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        if not all(learner.in_blocks for learner in self._all) or isinstance(rows, list):
            weights = [1.0] * count(rows) if c is None else c.tolist()
            began = self.t
            for i, (x, answer, weight) in enumerate(zip(singles(rows), answers.tolist(), weights, strict=True)):
                with rows_from(i):
                    self._learn(x, answer, weight)
                self.t += 1
            self.t = began  # the caller counts
            return
        began, start = self.t, 0
        while start < count(rows):
            with rows_from(start):
                start += self._learn_block(rows, answers, c, start)
            self.t = began + start
        self.t = began

    def _learn_block(self, rows: Rows, answers: Any, c: Array | None, start: int) -> int:
        """Learn a block of rows from `start` on; return how many."""
        stop = min(start + BLOCK, count(rows))
        before = [learner.snapshot() for learner in self._all]
        losses = [self._losses(learner, *_cut(rows, answers, c, start, stop)) for learner in self._all]
        for i in range(stop - start):
            with rows_from(i):
                what = self._judge([float(each[i]) for each in losses])
            if what is None:
                self.t += 1
                continue
            here = start + i
            for learner, snapshot in zip(self._all, before, strict=True):
                learner.roll_back(snapshot)
                if i:
                    learner.learn_rows(*_cut(rows, answers, c, start, here))
            self._act(what)
            for learner in self._all:
                with rows_from(i):
                    learner.learn_rows(*_cut(rows, answers, c, here, here + 1))
            return i + 1
        return stop - start

    def _loss(self, learner: BaseLearner, x: Any, answer: Any) -> float:
        """|y − ŷ| of a number, 0 or 1 of a label."""
        if self.task == "regression":
            return abs(float(answer) - learner.score(x))
        return float(learner.predict(x) != answer)

    def _losses(self, learner: BaseLearner, rows: Rows, answers: Any, c: Array | None) -> Array:
        """As `_loss` for each row before that row was learned; then all are learned."""
        predicted = learner.predict_then_learn(rows, answers, c)
        if self.task == "regression":
            return np.abs(np.asarray(answers, dtype=np.float64) - np.asarray(predicted, dtype=np.float64))
        if isinstance(predicted, np.ndarray):
            return np.asarray(predicted != answers, dtype=np.float64)
        return np.array([a != b for a, b in zip(predicted, answers.tolist(), strict=True)], dtype=np.float64)

    def _replace(self, learner: BaseLearner) -> None:
        self.learners = [learner]
        self._representative = None
        self.changes += 1
        self.drifts = [*self.drifts, self.t][-REMEMBERED:]

    # -- predictions -----------------------------------------------------------------------------------------------

    def score(self, x: Any) -> float:
        return self.learners[0].score(x)

    def score_rows(self, rows: Rows) -> Array:
        return self.learners[0].score_rows(rows)

    def _choose(self, x: Any) -> int:
        return self._number(self.learners[0].predict(x))

    def choose_rows(self, rows: Rows) -> Indices:
        predicted = self.learners[0].predict_rows(rows)
        return np.array([self._number(label) for label in listed(predicted)], dtype=np.intp)

    def _number(self, label: Any) -> int:
        # A learner that has learned nothing predicts None, which counts as the first label.
        return self.labels.index.get(label, 0)

    # -- copies and files ------------------------------------------------------------------------------------------

    def _sizes(self) -> tuple[int, int]:
        return len(self.learners), len(self.spares)

    def copy(self) -> Any:
        out = super().copy()
        out.detectors = [detector.fresh().restore(detector.state()) for detector in self.detectors]
        return out

    def _take_snapshot(self, taught: list[BaseLearner]) -> Any:
        return super()._take_snapshot(taught), [detector.state() for detector in self.detectors]

    def roll_back(self, snapshot: Any) -> None:
        own, states = snapshot
        super().roll_back(own)
        for detector, state in zip(self.detectors, states, strict=True):
            detector.restore(state)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        config, arrays = super().state()
        config["detectors"] = [detector.state() for detector in self.detectors]
        config["drifts"], config["changes"] = list(self.drifts), self.changes
        config["background"] = len(self.spares)
        return config, arrays

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        background, drifts = config["background"], config["drifts"]
        if type(background) is not int or not 0 <= background <= 1 or len(config["detectors"]) != len(self.detectors):
            raise DamagedFileError("the watched learner's parts do not fit together; restore it from a backup")
        if type(config["changes"]) is not int or any(type(t) is not int or t < 0 for t in drifts):
            raise DamagedFileError("the watched learner's drifts are not counts; restore it from a backup")
        self.spares = [self.make() for _ in range(background)]
        super().restore(config, arrays)
        for detector, state in zip(self.detectors, config["detectors"], strict=True):
            detector.restore(state)
        self.drifts, self.changes = list(drifts), config["changes"]


class Resetting(Watched):
    """After a drift a new learner replaces the old one."""

    name = "DriftReset"

    def _observe(self, losses: list[float]) -> str | None:
        return "reset" if self.detectors[0].update(losses[0]) else None

    def _act(self, what: str) -> None:
        self._replace(self.make())


class Adapting(Watched):
    """A warning starts a learner in the background, which takes over when it has proved to be better.

    Both are compared by their fading losses (factor `fading`) since the younger learner began. It takes over once it
    has seen `grace` examples and its loss is below the other's by `SURE` standard deviations, or at a drift if it is
    ahead at all. If it is behind at an alarm, another one replaces it.
    """

    name = "DriftAdapt"

    def __init__(
        self,
        base: Any,
        task: str,
        classes: Any,
        detector: Detector,
        warning: Detector | None,
        grace: int,
        patience: int,
        fading: float,
    ) -> None:
        super().__init__(base, task, classes, [detector] if warning is None else [detector, warning])
        self.grace, self.patience, self.fading = grace, patience, fading
        self.ahead = self.spread = 0.0  # the fading sum of differences in loss, and its variance
        self.age = 0  # examples the background learner has seen

    def _observe(self, losses: list[float]) -> str | None:
        detector = self.detectors[0]
        drift = detector.update(losses[0])
        warning = self.detectors[1].update(losses[0]) if len(self.detectors) > 1 else detector.warning
        if not self.spares:
            return "start" if drift or warning else None
        self.age += 1
        gain = losses[0] - losses[1]
        self.ahead = self.fading * self.ahead + gain
        self.spread = self.fading**2 * self.spread + gain * gain
        if self.age < self.grace:
            return None
        if self.ahead > 0.0 and (drift or self.ahead * self.ahead > SURE**2 * self.spread):
            return "swap"
        if drift or (warning and self.ahead <= 0.0):
            return "start"  # the background learner has learned from the past as well
        return "drop" if self.age >= self.patience else None

    def _act(self, what: str) -> None:
        if what == "swap":
            self._replace(self.spares[0])
        self.spares = [self.make()] if what == "start" else []
        self.ahead = self.spread = 0.0
        self.age = 0

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        config, arrays = super().state()
        config["race"] = [self.ahead, self.spread, self.age]
        return config, arrays

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        ahead, spread, age = config["race"]
        if type(age) is not int or not all(isinstance(value, float) for value in (ahead, spread)):
            raise DamagedFileError(
                "the statistics of the watched learner's background learner are not numbers; restore it from a backup"
            )
        super().restore(config, arrays)
        self.ahead, self.spread, self.age = ahead, spread, age


def _cut(rows: Rows, answers: Any, c: Array | None, start: int, stop: int) -> tuple[Rows, Any, Array | None]:
    return part(rows, start, stop), answers[start:stop], None if c is None else c[start:stop]


def listed(values: Any) -> list[Any]:
    return list(values.tolist()) if isinstance(values, np.ndarray) else list(values)
