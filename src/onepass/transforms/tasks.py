"""Several tasks learned together: `TaskFeatures`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError
from ..learner import LearnerTraits
from ..rows.batches import Batch
from ..rows.expansion import numbers_of
from .base import Rows, mappings_of
from .products import Stateless

__all__ = ["TaskFeatures"]


class TaskFeatures(Stateless):
    """Every feature twice: √share of it for all tasks, √(1 − share) for the example's own.

    A linear rule on these features is the rule with the multitask kernel K((x, i), (z, j)) = (share + (1 − share)
    [i = j]) ⟨x, z⟩: an update for one task moves the weights of the others by `share` as much, and the norm of x stays.
    So `TaskFeatures("user") | LinearClassifier("perceptron")` is the multitask Perceptron of Cavallanti, Cesa-Bianchi
    and Gentile 2010, whose interaction matrix has share = b/(b + K) for K tasks, and any other rule is regularised
    alike. share=0 learns the tasks apart, share=1 all as one. (The same features in Daumé 2007.)

    A feature f of task t becomes two features, f and f@t.

    Parameters
    ----------
    task : the name of the feature that holds the task of an example; for a table, the number of its column.
    share : how much the tasks have in common, from 0 to 1.
    tasks : all values of that feature, for tables, whose number of columns must be known.
    """

    @property
    def traits(self) -> LearnerTraits:  # type: ignore[override]
        return dataclasses.replace(Stateless.traits, forms=("names",), needs=(str(self.task),))

    def __init__(self, task: Any = "task", *, share: float = 0.5, tasks: Any = None) -> None:
        self.task = task
        self.share = share
        self.tasks = tasks

    def _new_state(self) -> Any:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 <= self.share <= 1:
            raise ParameterError(f"share={self.share!r}: expected a number from 0 to 1")
        if not isinstance(self.task, str | int | np.integer):
            raise ParameterError(f"task={self.task!r}: expected the name or the number of a feature")
        if self.tasks is not None and (isinstance(self.tasks, str) or not len(self.tasks)):
            raise ParameterError(f"tasks={self.tasks!r}: expected a list of the values that the task feature takes")
        return ()

    def _scales(self) -> tuple[float, float]:
        self._new_state()
        return math.sqrt(self.share), math.sqrt(1.0 - self.share)

    def _transform_mapping(self, x: Mapping[Any, Any]) -> Any:
        common, own = self._scales()
        if self.task not in x:
            raise InputError(f"an example must say its task: the feature {self.task!r} is missing")
        task, rest = x[self.task], {name: value for name, value in x.items() if name != self.task}
        z: dict[Any, float] = {}
        for name, value in numbers_of(rest).items():
            if common:
                z[name] = common * value
            if own:
                z[f"{name}@{task}"] = own * value
        return z

    def _transform_rows(self, batch: Batch) -> Rows:
        if batch.table is not None:
            return [self._transform_mapping(x) for x in mappings_of(batch, [])]
        names = self._column_names(batch)
        if self.tasks is None or batch.dense is None:
            raise InputError("TaskFeatures of a table needs dense rows and tasks=[…]; or give mappings")
        at = names.index(self.task) if self.task in names else self.task
        if isinstance(at, bool) or not isinstance(at, int | np.integer) or not 0 <= at < batch.columns:
            raise InputError(f"task={self.task!r}: expected the name or the number of a column of {batch.columns}")
        X = np.asarray(batch.dense, dtype=np.float64)
        known, given = np.asarray(self.tasks, dtype=np.float64), X[:, at]
        strange = ~np.isin(given, known)
        if strange.any():
            row = int(np.argmax(strange))
            raise InputError(f"row {row}: task {given[row]:g} is not one of tasks={list(self.tasks)!r}")
        common, own = self._scales()
        rest = np.delete(X, at, axis=1)
        blocks = [common * rest, *(own * rest * (given == task)[:, np.newaxis] for task in known)]
        return replace(batch, dense=np.concatenate(blocks, axis=1), columns=rest.shape[1] * len(blocks), names=None)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        names = self._names_in(input_features)
        if self.task in names:
            names.remove(self.task)
        else:
            del names[self.task]
        return np.array([*names, *(f"{name}@{task}" for task in self.tasks or () for name in names)], dtype=object)
