"""Learners of different ages: a young learner knows recent examples only.

Every learner learns every example since it began; from time to time a new one replaces another. Nothing of the past is
stored, so this works for any base: a sliding window is the oldest of learners that begin at equal distances, fading is
the vote of learners whose ages fall off exponentially.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, rows_from
from ..reductions.either import EitherTask
from ..reductions.examples import Indices, Rows, count, part
from ..reductions.learners import BaseLearner
from ..reductions.sampling import uniforms
from ..scheme.rounds import Array
from .adapting import listed

__all__ = ["Fading", "Sliding", "Staggered"]

AHEAD = 1024  # draws made at once


class Staggered(EitherTask):
    """`learners` began at the examples in `since`. A subclass defines when each is renewed, and how they predict."""

    def __init__(self, base: Any, task: str, classes: Any) -> None:
        super().__init__(base, task, classes)
        self.learners = [self.make()]
        self.since = [0]

    # -- what a subclass defines -----------------------------------------------------------------------------------

    def _renew(self, t: int) -> None:
        """Before example t: drop old learners and start new ones."""
        raise NotImplementedError

    def _next(self, t: int, most: int) -> int:
        """How many examples from t on, `most` at most, come before anything else is renewed."""
        raise NotImplementedError

    # -- learning --------------------------------------------------------------------------------------------------

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        self._renew(self.t)
        for learner in self.learners:
            learner.learn(x, answer, c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        start, n = 0, count(rows)
        while start < n:
            self._renew(self.t + start)
            stop = start + self._next(self.t + start, n - start)
            for learner in self.learners:
                with rows_from(start):
                    learner.learn_rows(
                        part(rows, start, stop), answers[start:stop], None if c is None else c[start:stop]
                    )
            start = stop

    # -- files -----------------------------------------------------------------------------------------------------

    def _sizes(self) -> tuple[int, int]:
        return len(self.since), 0

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        config, arrays = super().state()
        return {**config, "since": list(self.since)}, arrays

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        since = config["since"]
        if not isinstance(since, list) or not self._fits(since, config["t"]):
            raise DamagedFileError("the learners' ages do not fit the number of examples; restore it from a backup")
        self.since = list(since)
        super().restore(config, arrays)

    def _fits(self, since: list[Any], t: Any) -> bool:
        return type(t) is int and all(type(began) is int and 0 <= began <= t for began in since)


class Sliding(Staggered):
    """The oldest of up to `most` learners predicts; one begins every `step` examples."""

    name = "DriftWindow"

    def __init__(self, base: Any, task: str, classes: Any, window: int, most: int) -> None:
        self.most = most
        self.step = -(-window // (most - 1))
        super().__init__(base, task, classes)

    def _renew(self, t: int) -> None:
        if t and t % self.step == 0 and self.since[-1] != t:
            late = max(0, len(self.learners) + 1 - self.most)
            self.learners = [*self.learners[late:], self.make()]
            self.since = [*self.since[late:], t]
            self._representative = None

    def _next(self, t: int, most: int) -> int:
        return min(most, self.step - t % self.step)

    def _fits(self, since: list[Any], t: Any) -> bool:
        return super()._fits(since, t) and 1 <= len(since) <= self.most

    def score(self, x: Any) -> float:
        return self.learners[0].score(x)

    def score_rows(self, rows: Rows) -> Array:
        return self.learners[0].score_rows(rows)

    def _choose(self, x: Any) -> int:
        return self.labels.index.get(self.learners[0].predict(x), 0)

    def choose_rows(self, rows: Rows) -> Indices:
        predicted = listed(self.learners[0].predict_rows(rows))
        return np.array([self.labels.index.get(label, 0) for label in predicted], dtype=np.intp)


class Fading(Staggered):
    """A vote of `size` learners; before each example each is replaced with probability 1/horizon."""

    name = "DriftFade"

    def __init__(self, base: Any, task: str, classes: Any, horizon: int, size: int, seed: int) -> None:
        self.horizon, self.seed = horizon, seed
        super().__init__(base, task, classes)
        self.learners = [self.make() for _ in range(size)]
        self.since = [0] * size

    def _chosen(self, t: int, examples: int) -> NDArray[np.bool_]:
        """Examples × learners: which is replaced before which. Depends on t alone, so chunks change nothing."""
        size = len(self.since)
        draws = uniforms(self.seed, 0, t * size, examples * size).reshape(examples, size)
        chosen = draws < 1.0 / self.horizon
        if t == 0:
            chosen[0] = False  # all have just begun
        return np.asarray(chosen)

    def _renew(self, t: int) -> None:
        for i in np.flatnonzero(self._chosen(t, 1)[0]).tolist():
            self.learners = [*self.learners[:i], self.make(), *self.learners[i + 1 :]]
            self.since = [*self.since[:i], t, *self.since[i + 1 :]]
            self._representative = None

    def _next(self, t: int, most: int) -> int:
        most = min(most, AHEAD)
        later = np.flatnonzero(self._chosen(t + 1, most - 1).any(axis=1))
        return int(later[0]) + 1 if len(later) else most

    def _fits(self, since: list[Any], t: Any) -> bool:
        return super()._fits(since, t) and len(since) == len(self.since)

    @property
    def _trained(self) -> list[BaseLearner]:
        """The learners that have learned an example; all of them where none has."""
        found = [learner for learner, began in zip(self.learners, self.since, strict=True) if began < self.t]
        return found or self.learners

    def score(self, x: Any) -> float:
        return float(np.mean([learner.score(x) for learner in self._trained]))

    def score_rows(self, rows: Rows) -> Array:
        return np.asarray(np.mean([learner.score_rows(rows) for learner in self._trained], axis=0))

    def label_scores(self, x: Any) -> Array:
        votes = self._votes([[learner.predict(x)] for learner in self._trained], 1)
        return np.asarray(votes[0])

    def label_scores_rows(self, rows: Rows) -> Array:
        return self._votes([listed(learner.predict_rows(rows)) for learner in self._trained], count(rows))

    def _votes(self, predicted: list[list[Any]], rows: int) -> Array:
        """The part of the learners for each label; ties go to the label that appeared first."""
        votes = np.zeros((rows, len(self.labels)))
        for answers in predicted:
            for row, label in enumerate(answers):
                votes[row, self.labels.index.get(label, 0)] += 1.0
        return votes / max(1, len(predicted))
