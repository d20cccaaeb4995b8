"""`Examples`: consecutive examples with their labels, importances and initial predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Examples"]


@dataclass(frozen=True)
class Examples:
    """Consecutive examples: the rows `X`, a table or a list, and what each row has besides.

    A column is None where no row has it: `y`, `weight` (importance), `time`, `query`, and `base`, the initial
    prediction, which is then 0. A stream's own are `streams.Chunk`.
    """

    X: Any
    y: Any
    weight: NDArray[np.float64] | None = None
    time: Any = None
    query: Any = None
    base: NDArray[np.float64] | None = None

    def size(self) -> int:
        """How many examples there are."""
        return len(self.X) if not hasattr(self.X, "shape") else int(self.X.shape[0])

    def part(self, start: int, stop: int) -> Examples:
        """Some of the examples."""
        cut = slice(start, stop)
        columns = (self.y, self.weight, self.time, self.query, self.base)
        X = self.X.iloc[cut] if hasattr(self.X, "iloc") else self.X[cut]
        return Examples(X, *(None if column is None else column[cut] for column in columns))
