"""Learners that notice when the world has changed."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ..errors import ParameterError
from ..reductions.either_facade import EitherEstimator
from ..reductions.learners import Learner
from ..reductions.scheme import Reduction
from .adapting import Adapting, Resetting
from .base import Detector
from .registry import make_detector

__all__ = ["DriftAdapt", "DriftReset"]


class _DriftEstimator(EitherEstimator):
    detector: Any

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        return self._watched(base, "regression" if self._predicts_numbers() else "multiclass", classes)

    def _new_learner(self, task: str, classes: list[Any] | None, owner: str) -> Learner:
        if task == "multiclass" and classes is None:
            classes = self._own_classes()
        return self._watched(clone(self.base, safe=False), task, classes)

    def _watched(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        raise NotImplementedError

    @property
    def detector_(self) -> Detector:
        """The detector at work."""
        found: Detector = self._learned().detectors[0]
        return found

    @property
    def drifts_(self) -> list[int]:
        """At which examples, counted from 0, the learner was replaced (the last thousand)."""
        return list(self._learned().drifts)

    @property
    def n_drifts_(self) -> int:
        """How often the learner was replaced."""
        return int(self._learned().changes)


class DriftReset(_DriftEstimator):
    """A learner that begins anew when a detector sees its losses change.

    For abrupt changes that leave nothing worth keeping; where the alarm may be false, `DriftAdapt` loses less.

    Parameters
    ----------
    base : a rule or its name, an estimator, a `LinearModel`, a reduction, a River learner.
    detector : a detector of `onepass.drift` or its name, such as "adwin" or "ddm:drift_level=3". It hears 0 or 1 for a
        right or wrong label, |y − ŷ| for a number, each made before its example was learned.
    classes : the labels, where they are known.
    """

    def __init__(self, base: Any = "pa1", *, detector: Any = "adwin", classes: Any = None) -> None:
        self.base = base
        self.detector = detector
        self.classes = classes

    def _watched(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        return Resetting(base, task, classes, [make_detector(self.detector)])


class DriftAdapt(_DriftEstimator):
    """A warning starts a fresh learner in the background, which takes over when it has become the better one.

    Nothing is thrown away on a false alarm: the learner in place predicts and learns on, and the one in the background
    is dropped after `patience` examples if it has not won by then. It wins once it is `grace` examples old and its
    losses, which fade at `fading`, are below the other's by two standard deviations of the difference; at a drift it
    need only be ahead. (After Gama and Kosina's and Gomes et al.'s background learners, with a race in place of trust
    in the alarm.)

    Parameters
    ----------
    base : a rule or its name, an estimator, a `LinearModel`, a reduction, a River learner.
    detector : a detector of `onepass.drift` or its name, for drifts.
    warning : another, more easily alarmed, for warnings; None takes those of `detector`, if it gives any (DDM, EDDM,
        HDDM).
    grace, patience, fading : of the race.
    classes : the labels, where they are known.
    """

    def __init__(
        self,
        base: Any = "pa1",
        *,
        detector: Any = "adwin",
        warning: Any = "adwin:delta=0.1",
        grace: int = 100,
        patience: int = 2000,
        fading: float = 0.995,
        classes: Any = None,
    ) -> None:
        self.base = base
        self.detector = detector
        self.warning = warning
        self.grace = grace
        self.patience = patience
        self.fading = fading
        self.classes = classes

    def _watched(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        for name, value in (("grace", self.grace), ("patience", self.patience)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ParameterError(f"{name}={value!r}: expected a whole number >= 1")
        if isinstance(self.fading, bool) or not isinstance(self.fading, int | float) or not 0 < self.fading <= 1:
            raise ParameterError(f"fading={self.fading!r}: expected a number > 0 and <= 1")
        warning = None if self.warning is None else make_detector(self.warning)
        return Adapting(
            base, task, classes, make_detector(self.detector), warning, self.grace, self.patience, float(self.fading)
        )


WATCHED: dict[str, type[EitherEstimator]] = {kind.__name__: kind for kind in (DriftAdapt, DriftReset)}
