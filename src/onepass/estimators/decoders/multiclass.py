"""`Multiclass`: one label."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ...errors import ParameterError
from .base import Labelled, Transform, Weights, read_row


@dataclasses.dataclass(repr=False)
class Multiclass(Labelled):
    """One of `labels`: x, a mapping or a row of numbers, in the block of its label: Φ = {"label|feature": value}.

    `costs[i][j]` is what answering label j costs when label i is right; by default 1 for every wrong label, with
    which max_loss selection and a Passive-Aggressive rule is the classifier's multiclass="rival" without intercept.
    Of equals, the label listed first wins.
    """

    name = "multiclass"
    labels: tuple[Any, ...] = ()
    costs: tuple[tuple[float, ...], ...] | None = None

    def validate(self) -> None:
        if self.costs is None:
            return
        table = np.asarray(self.costs, dtype=np.float64)
        k = len(self.labels)
        if table.shape != (k, k) or not np.all(np.isfinite(table)) or np.any(table < 0) or np.any(np.diag(table)):
            raise ParameterError(
                f"costs={self.costs!r}: expected {k} rows of {k} finite numbers >= 0, with 0 on the diagonal"
            )
        if self.costs != (plain := tuple(tuple(row) for row in table.tolist())):
            self.costs = plain

    def decode(self, w: Weights, x: Any) -> Any:
        return self.labels[int(np.argmax(self.emissions(w, [read_row(x)])[0]))] if self.labels else None

    def loss_augmented(self, w: Weights, x: Any, y: Any, transform: Transform = math.sqrt) -> Any:
        truth = self.index_of(y)
        losses = [transform(self._cost(truth, r)) for r in range(len(self.labels))]
        return self.labels[int(np.argmax(self.emissions(w, [read_row(x)])[0] + losses))]

    def features(self, x: Any, y: Any) -> dict[str, float]:
        index = self.index_of(y)
        return {self.names_of(feature)[index]: value for feature, value in read_row(x).items()}

    def cost(self, y: Any, y_hat: Any) -> float:
        return self._cost(self.index_of(y), self.index_of(y_hat))

    def _cost(self, i: int, j: int) -> float:
        return float(i != j) if self.costs is None else self.costs[i][j]
