"""Reductions that pass answers to their bases unchanged: labels to a classifier, numbers to a regressor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..rows.labels import as_target, as_targets
from .examples import LARGE, Rows, read_one
from .scheme import Reduction

__all__ = ["EitherTask"]


class EitherTask(Reduction):
    """Bases of the task "multiclass" or "regression", which is also the reduction's task."""

    def __init__(self, base: Any, task: str, classes: Any) -> None:
        self.task = self.needs = task
        super().__init__(base, classes)

    def _base_classes(self) -> list[Any] | None:
        return list(self.labels.values) if self.labels.declared else None

    def read_answers(self, y: Any, rows: int) -> Any:
        if self.task != "regression":
            return super().read_answers(y, rows)
        targets = as_targets(y)
        if len(targets) != rows:
            raise InputError(f"X has {rows} rows, y has {len(targets)} targets")
        return targets

    def _read(self, y: Any) -> tuple[list[Any], Any]:
        if self.task != "regression":
            new, _ = self.labels.one(y)
            return new, y
        return [], as_target(y)

    def _read_many(self, y: Any) -> tuple[list[Any], Any]:
        return ([], y) if self.task == "regression" else (self.labels.many(y)[0], y)

    def _is_extreme(self, answers: Any) -> bool:
        return self.task == "regression" and float(np.max(np.abs(answers))) > LARGE

    def predict(self, x: Any) -> Any:
        if self.task != "regression":
            return super().predict(x)
        x = read_one(x)
        self.check(x)
        return self.score(x)

    def predict_rows(self, rows: Rows) -> Any:
        if self.task != "regression":
            return super().predict_rows(rows)
        self.check_rows(rows)
        return self.score_rows(rows)
