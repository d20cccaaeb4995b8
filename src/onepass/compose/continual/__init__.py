"""Continual learning: tasks in sequence, measures of forgetting, and learners that forget less.

>>> from onepass.compose.continual import TaskMatrix
>>> kept = TaskMatrix(["a", "b", "c"], [[.9, .2, .1], [.6, .8, .1], [.5, .7, .9]], [.1, .1, .1])
>>> round(kept.accuracy, 3), round(kept.forgetting, 3), round(kept.forward_transfer, 3)
(0.7, 0.25, 0.05)
"""

from __future__ import annotations

from .learners import AGEM, EWC, Replay, SoftmaxSGD
from .measures import Task, TaskMatrix, learn_tasks, permuted_tasks, split_tasks

__all__ = [
    "AGEM",
    "EWC",
    "Replay",
    "SoftmaxSGD",
    "Task",
    "TaskMatrix",
    "learn_tasks",
    "permuted_tasks",
    "split_tasks",
]
