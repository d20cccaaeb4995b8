"""How well tasks in sequence are learned and retained."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...charts.text import text_table
from ...errors import InputError, ParameterError
from ...scheme.rounds import Array

__all__ = ["Task", "TaskMatrix", "learn_tasks", "permuted_tasks", "split_tasks"]


class Task(NamedTuple):
    """Training rows and test rows of a task."""

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any


@dataclasses.dataclass
class TaskMatrix:
    """`R[i][j]`: accuracy on task j after task i was learned; `baseline[j]`: before anything was.

    (Lopez-Paz and Ranzato 2017; forgetting as in Chaudhry et al. 2018.)
    """

    tasks: list[str]
    R: Array
    baseline: Array

    def __post_init__(self) -> None:
        self.R, self.baseline = np.asarray(self.R, dtype=np.float64), np.asarray(self.baseline, dtype=np.float64)
        T = len(self.tasks)
        if T == 0 or self.R.shape != (T, T) or self.baseline.shape != (T,):
            raise InputError(f"{T} tasks need R of shape ({T}, {T}), got {self.R.shape}, and as many baselines")

    @property
    def accuracy(self) -> float:
        """The mean over all tasks after the last: mean_j R_Tj."""
        return float(self.R[-1].mean())

    @property
    def backward_transfer(self) -> float:
        """How later tasks changed the accuracy on earlier ones: mean_{j<T} (R_Tj − R_jj). Below 0 is forgetting."""
        return float(np.mean(self.R[-1, :-1] - np.diag(self.R)[:-1])) if len(self.tasks) > 1 else 0.0

    @property
    def forgetting(self) -> float:
        """How far earlier tasks are below their best: mean_{j<T} (max_{i<T} R_ij − R_Tj)."""
        return float(np.mean(self.R[:-1, :-1].max(axis=0) - self.R[-1, :-1])) if len(self.tasks) > 1 else 0.0

    @property
    def forward_transfer(self) -> float:
        """How earlier tasks helped later ones before these were learned: mean_{j≥2} (R_{j−1,j} − b_j)."""
        above = np.diag(self.R, k=1)
        return float(np.mean(above - self.baseline[1:])) if len(self.tasks) > 1 else 0.0

    def __str__(self) -> str:
        cells = [["after", *self.tasks]]
        for name, row in zip(["nothing", *self.tasks], [self.baseline, *self.R], strict=True):
            cells.append([name, *(f"{value:.3f}" for value in row)])
        return text_table(cells, left=1) + (
            f"\naccuracy {self.accuracy:.3f}, forgetting {self.forgetting:.3f}, "
            f"backward transfer {self.backward_transfer:+.3f}, forward transfer {self.forward_transfer:+.3f}"
        )

    def to_json(self) -> str:
        return json.dumps({"tasks": self.tasks, "R": self.R.tolist(), "baseline": self.baseline.tolist()})


def learn_tasks(
    model: Any, tasks: Iterable[Task], *, classes: Sequence[Any] | None = None, size: int = 10
) -> TaskMatrix:
    """Let a model learn tasks in order, `size` rows at a time, and test it on all of them after each.

    The model has `learn_many` and `predict_many`; `classes` are declared to scikit-learn's `partial_fit` instead, where
    they are given. `end_task` is called at the end of each task, where the model has it.
    """
    tasks = list(tasks)
    if not tasks:
        raise ParameterError("tasks=[]: expected at least one Task")
    for i, task in enumerate(tasks):
        if not isinstance(task, Task):
            wanted = "a continual.Task(name, X, y, X_test, y_test), as split_tasks(X, y) makes"
            raise ParameterError(f"tasks[{i}] is {task!r:.60}: expected {wanted}")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ParameterError(f"size={size!r}: expected a whole number >= 1")
    baseline = [_accuracy(model, task, learned=False) for task in tasks]
    R = np.zeros((len(tasks), len(tasks)))
    for i, task in enumerate(tasks):
        rows = task.X.shape[0] if hasattr(task.X, "shape") else len(task.X)
        for start in range(0, rows, size):
            X, y = task.X[start : start + size], task.y[start : start + size]
            if classes is None:
                model.learn_many(X, y)
            else:
                model.partial_fit(X, y, classes=classes)
        if hasattr(model, "end_task"):
            model.end_task()
        R[i] = [_accuracy(model, other) for other in tasks]
    return TaskMatrix([task.name for task in tasks], R, np.array(baseline))


def _accuracy(model: Any, task: Task, learned: bool = True) -> float:
    if not learned and getattr(model, "t_", 0) == 0:
        return 0.0  # the model cannot predict yet
    predicted = model.predict_many(task.X_test)
    return float(np.mean([a == b for a, b in zip(predicted, np.asarray(task.y_test).tolist(), strict=True)]))


def permuted_tasks(X: Any, y: Any, n: int = 5, *, test: float = 0.25, passes: int = 1, seed: int = 0) -> list[Task]:
    """The same classes `n` times, each time with the columns in another order; the first task is unchanged."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    random = np.random.default_rng(seed)
    learned, judged = _parts(len(y), test, random)
    tasks = []
    for k in range(n):
        order = np.arange(X.shape[1]) if k == 0 else random.permutation(X.shape[1])
        rows = _shuffled_passes(learned, passes, random)
        tasks.append(Task(f"order {k + 1}", X[rows][:, order], y[rows], X[judged][:, order], y[judged]))
    return tasks


def split_tasks(X: Any, y: Any, size: int = 2, *, test: float = 0.25, passes: int = 1, seed: int = 0) -> list[Task]:
    """The classes, `size` of them at a time."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    random = np.random.default_rng(seed)
    learned, judged = _parts(len(y), test, random)
    classes = np.unique(y)
    tasks = []
    for start in range(0, len(classes), size):
        group = classes[start : start + size]
        rows = _shuffled_passes(learned[np.isin(y[learned], group)], passes, random)
        seen = judged[np.isin(y[judged], group)]
        tasks.append(Task(" ".join(map(str, group.tolist())), X[rows], y[rows], X[seen], y[seen]))
    return tasks


def _parts(n: int, test: float, random: np.random.Generator) -> tuple[Any, Any]:
    if not 0 < test < 1:
        raise ParameterError(f"test={test!r}: expected a share between 0 and 1")
    order = random.permutation(n)
    cut = max(1, round(n * test))
    return order[cut:], order[:cut]


def _shuffled_passes(rows: Any, passes: int, random: np.random.Generator) -> Any:
    return np.concatenate([random.permutation(rows) for _ in range(passes)])
