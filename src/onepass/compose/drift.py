"""Learners for streams that drift: some react to a detector, others always forget."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from ..drift.base import Detector
from ..drift.registry import make_detector
from ..errors import ParameterError
from ..reductions.either_facade import EitherEstimator
from ..reductions.learners import BaseLearner
from ..reductions.scheme import Reduction
from ..scheme.sizes import MOST_LEARNERS
from .adapting import Adapting, Resetting
from .staggered import Fading, Sliding

__all__ = ["DriftAdapt", "DriftFade", "DriftReset", "DriftWindow"]


class _DriftEstimator(EitherEstimator):
    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        return self._new_wrapper(base, "regression" if self._predicts_numbers() else "multiclass", classes)

    def _new_learner(self, task: str, classes: list[Any] | None, owner: str) -> BaseLearner:
        if task == "multiclass" and classes is None:
            classes = self._declared_classes()
        return self._new_wrapper(clone(self.base, safe=False), task, classes)

    def _new_wrapper(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        raise NotImplementedError

    def _count(self, name: str, least: int, most: int | None = None) -> int:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least or (most and value > most):
            expected = f">= {least}" if most is None else f"from {least} to {most:,}"
            raise ParameterError(f"{name}={value!r}: expected a whole number {expected}")
        return value


class _Watched(_DriftEstimator):
    detector: Any

    @property
    def detector_(self) -> Detector:
        """The detector."""
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


class DriftReset(_Watched):
    """A learner that starts again when a detector sees its losses change.

    For abrupt changes, after which nothing learned is useful; where alarms may be false, `DriftAdapt` loses less.

    Parameters
    ----------
    base : a rule or its name, an estimator, a `LinearModel`, a reduction, a River learner.
    detector : a detector of `onepass.drift` or its name, such as "adwin" or "ddm:drift_level=3". Its input is 0 or 1
        for a right or wrong label, |y − ŷ| for a number, predicted before the example is learned.
    classes : the labels, where they are known.
    """

    def __init__(self, base: Any = "pa1", *, detector: Any = "adwin", classes: Any = None) -> None:
        self.base = base
        self.detector = detector
        self.classes = classes

    def _new_wrapper(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        return Resetting(base, task, classes, [make_detector(self.detector)])


class DriftAdapt(_Watched):
    """A warning starts a new learner in the background, which takes over when it is better.

    A false alarm loses nothing: the active learner goes on predicting and learning, and the background learner is
    dropped after `patience` examples if it has not won by then. It wins once it is `grace` examples old and its
    losses, which fade at `fading`, are below the other's by four standard deviations of the difference; at a drift it
    need only be ahead. (After the background learners of Gama and Kosina and of Gomes et al., with a comparison
    instead of trust in the alarm.)

    Parameters
    ----------
    base : a rule or its name, an estimator, a `LinearModel`, a reduction, a River learner.
    detector : a detector of `onepass.drift` or its name, for drifts.
    warning : a more sensitive one, for warnings; None takes the warnings of `detector`, if it has any (DDM, EDDM,
        HDDM).
    grace, patience, fading : of the comparison.
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

    def _new_wrapper(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        grace, patience = self._count("grace", 1), self._count("patience", 1)
        if isinstance(self.fading, bool) or not isinstance(self.fading, int | float) or not 0 < self.fading <= 1:
            raise ParameterError(f"fading={self.fading!r}: expected a number > 0 and <= 1")
        warning = None if self.warning is None else make_detector(self.warning)
        detector = make_detector(self.detector)
        return Adapting(base, task, classes, detector, warning, grace, patience, float(self.fading))


class DriftWindow(_DriftEstimator):
    """A learner that has learned little more than the last `window` examples: no detector, nothing stored.

    A learner begins every window/(learners − 1) examples, and the oldest of them predicts: it has learned at
    least the last `window` examples and at most window·learners/(learners − 1). More learners are closer to the window,
    but each has to learn every example.

    Parameters
    ----------
    base : a rule or its name, an estimator, a `LinearModel`, a reduction, a River learner.
    window : the last examples that count.
    learners : how many are taught at once.
    classes : the labels, where they are known.
    """

    def __init__(self, base: Any = "pa1", *, window: int = 1000, learners: int = 2, classes: Any = None) -> None:
        self.base = base
        self.window = window
        self.learners = learners
        self.classes = classes

    def _new_wrapper(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        return Sliding(base, task, classes, self._count("window", 1), self._count("learners", 2, MOST_LEARNERS))

    @property
    def memory_(self) -> int:
        """How many of the last examples the predicting learner has learned."""
        core = self._learned()
        return int(core.t - core.since[0])


class DriftFade(_DriftEstimator):
    """A vote of learners of different ages, in which old examples fade: no detector, nothing stored.

    Before each example, each learner is replaced with probability 1/horizon. So an example that is a examples old is
    known to a part e^(−a/horizon) of them, which is its weight in the vote. Numbers are averaged.

    Parameters
    ----------
    base : a rule or its name, an estimator, a `LinearModel`, a reduction, a River learner.
    horizon : the mean age of a learner, in examples.
    learners : how many vote; each is taught every example.
    seed : of the draws.
    classes : the labels, where they are known.
    """

    def __init__(
        self, base: Any = "pa1", *, horizon: int = 1000, learners: int = 9, seed: int = 0, classes: Any = None
    ) -> None:
        self.base = base
        self.horizon = horizon
        self.learners = learners
        self.seed = seed
        self.classes = classes

    def _new_wrapper(self, base: Any, task: str, classes: list[Any] | None) -> Reduction:
        numbers = (self._count("horizon", 1), self._count("learners", 1, MOST_LEARNERS), self._count("seed", 0))
        return Fading(base, task, classes, *numbers)

    @property
    def ages_(self) -> list[int]:
        """How many examples each learner has learned."""
        core = self._learned()
        return [int(core.t - began) for began in core.since]
