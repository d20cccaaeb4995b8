"""How LASVM selects the next example of a stored set (Bordes et al. 2005, section 4).

random      any example that was not learned yet.
gradient    of `candidates` random ones, the one with the smallest y f(x): the worst mistake. Reads labels.
active      of `candidates` random ones, the one with the smallest |f(x)|: nearest to the boundary. Reads no labels.
autoactive  draws until five have |f(x)| < 1 + δ/2, at most `most`, and selects the smallest |f(x)|.

With several machines the smallest is over all of them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models.lasvm import LasvmModel
from ..rows.batches import Batch
from ..scheme.rounds import Array

__all__ = ["SELECTIONS", "Visit"]

SELECTIONS = ("random", "gradient", "active", "autoactive")
SEEDS = 5  # of each class, in S before the first example is processed
NEAR = 5  # that autoactive waits for
TRY = 10  # that autoactive scores at a time: the draws after the fifth near one are not looked at


@dataclass
class Visit:
    """Passes over a stored set until all examples are learned or a limit is reached; `stopped_by` says which limit."""

    selection: str
    random: Any
    passes: int = 1
    candidates: int = 50
    most: int = 100
    max_examples: int | None = None
    max_support: int | None = None
    max_seconds: float | None = None
    stopped_by: str = "passes"

    def run(self, model: LasvmModel, table: Batch, codes: NDArray[np.int64], weights: Array) -> None:
        self.model, self.table, self.codes, self.weights = model, table, codes, weights
        self.rows: Any = table.dense if table.csr is None else table.csr
        self.left = math.inf if self.max_examples is None else self.max_examples
        self.deadline = time.monotonic() + (math.inf if self.max_seconds is None else self.max_seconds)
        order = self.random.permutation(table.rows).astype(np.int64)
        self._learn(self._seeds(order), seeding=True)
        for _ in range(self.passes):
            complete = self._all(order) if self.selection == "random" else self._chosen(order)
            if not complete:
                return
            order = self.random.permutation(table.rows).astype(np.int64)

    def _seeds(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        labels = self.codes[order]
        return np.concatenate([order[labels == label][:SEEDS] for label in np.unique(labels)])

    def _learn(self, order: NDArray[np.int64], *, seeding: bool = False) -> int:
        seconds = math.inf if self.max_seconds is None else max(0.0, self.deadline - time.monotonic())
        most = 0 if seeding or self.max_support is None else self.max_support
        engine = self.model.engine
        return engine.learn(self.rows, self.codes, self.weights, order, True, most, seconds, seeding)

    def _all(self, order: NDArray[np.int64]) -> bool:
        """Learn a whole pass; return whether it was completed."""
        wanted = order[: int(min(len(order), self.left))]
        done = self._learn(wanted)
        self.left -= done
        if done < len(order) or self.left == 0:
            self.stopped_by = self._reason()
            return False
        return True

    def _chosen(self, order: NDArray[np.int64]) -> bool:
        unseen = order.copy()
        remaining = len(unseen)
        while remaining:
            drawn = self._draw(unseen, remaining)
            best = drawn[self._best(unseen[drawn])]
            self._learn(unseen[best : best + 1].copy())
            remaining -= 1
            unseen[best] = unseen[remaining]
            self.left -= 1
            reason = self._reason()
            if reason != "passes":
                self.stopped_by = reason
                return False
        return True

    def _reason(self) -> str:
        if self.left == 0:
            return "max_examples"
        if self.max_support is not None and self.model.engine.support >= self.max_support:
            return "max_support"
        return "max_seconds" if time.monotonic() >= self.deadline else "passes"

    def _draw(self, unseen: NDArray[np.int64], remaining: int) -> NDArray[np.int64]:
        """Draw the positions of some unseen examples, without repetition."""
        count = min(remaining, self.most if self.selection == "autoactive" else self.candidates)
        places = np.arange(count)
        # Fisher and Yates, as far as needed.
        for place, other in enumerate(self.random.randint(places, remaining)):
            unseen[place], unseen[other] = unseen[other], unseen[place]
        return places

    def _best(self, examples: NDArray[np.int64]) -> int:
        if self.selection == "autoactive":
            return self._nearest_of_enough(examples)
        f = self._f(examples)
        if self.selection == "gradient":
            f = np.where(np.isnan(signs := self._signs(examples)), math.inf, signs * f)
            return int(np.argmin(f.min(axis=1)))
        return int(np.argmin(np.abs(f).min(axis=1)))

    def _nearest_of_enough(self, examples: NDArray[np.int64]) -> int:
        """Draw examples one at a time until enough are near the boundary; return the nearest."""
        width = 1.0 + np.array(self.model.engine.deltas()) / 2.0
        distance: list[float] = []
        near = 0
        for start in range(0, len(examples), TRY):
            for f in np.abs(self._f(examples[start : start + TRY])):
                distance.append(float(f.min()))
                near += bool(np.any(f < width))
                if near == NEAR:
                    return int(np.argmin(distance))
        return int(np.argmin(distance))

    def _f(self, examples: NDArray[np.int64]) -> Array:
        out = np.empty((len(examples), self.model.engine.machines))
        part = self.table.take(examples)
        self.model.engine.score(part.dense if part.csr is None else part.csr, out, True)
        return out

    def _signs(self, examples: NDArray[np.int64]) -> Array:
        """y of every example in every machine; NaN if its class is neither of the machine's two."""
        codes = self.codes[examples][:, np.newaxis]
        positive, negative = np.array(self.model.layout()).T
        rest = np.where((negative == -1) | (codes == negative), -1.0, np.nan)
        return np.where(codes == positive, 1.0, rest)
