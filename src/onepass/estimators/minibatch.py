"""Mini-batches that do not depend on chunks: rows are buffered until there are `batch_size` of them.

A learner is seeded from the first `_prefix` rows of the stream, which are then learned, too. After that every full
mini-batch is one step. `flush` takes the step of the buffered rows; `fit` does so after every pass. Before the prefix
is full, predictions come from a provisional state: that after flushing the first 1, 2, 4, 8, … rows.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError, RowError
from ..rows.batches import as_importance, as_rows
from ..scheme.rounds import Array
from .state import State
from .stateful import StatefulEstimator, one_weight, rows_of
from .tables import read_passes

__all__ = ["MiniBatchLearner", "MiniBatchState"]

ONE = np.ones(1)  # the importance of nearly every single row


@dataclasses.dataclass
class MiniBatchState(State):
    """`waiting` is the buffer of rows that are not learned yet; the first `filled` rows are in use."""

    steps: int = 0
    seeded: bool = False
    filled: int = 0
    waiting: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    waiting_weight: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    _provisional: Any = None  # ((rows, columns), state)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        room = len(self.waiting_weight)
        if not 0 <= self.filled <= room:
            raise ValueError(f"filled={self.filled} of {room} places")
        if not self.seeded and not self.filled:
            raise ValueError("nothing was learned")
        if not np.all(self.waiting_weight >= 0):
            raise ValueError("a row that waits has a weight below 0")
        return {"waiting": (room, self._reader.columns), "waiting_weight": (room,)}

    def widen(self, columns: int) -> None:
        if columns > self.waiting.shape[1]:
            self.waiting = widened(self.waiting, columns)
            self._widen_learned(columns)

    def _widen_learned(self, columns: int) -> None:
        """Add new columns to what was learned. Called only after seeding."""

    def config(self) -> Any:
        numbers, arrays = super().config()
        # Rows that were learned are not stored.
        arrays["waiting"] = arrays["waiting"][: self.filled]
        arrays["waiting_weight"] = arrays["waiting_weight"][: self.filled]
        return numbers, arrays


def widened(table: Array, columns: int, value: float = 0.0) -> Array:
    """A table with more columns."""
    more = columns - table.shape[-1]
    return np.pad(table, [(0, 0)] * (table.ndim - 1) + [(0, more)], constant_values=value)


class MiniBatchLearner(StatefulEstimator):
    """Base of learners that learn by mini-batches and need no labels."""

    passes: int

    # -- what a learner defines ----------------------------------------------------------------------------------------

    def _batch_size(self) -> int:
        return int(self.batch_size)

    def _prefix(self) -> int:
        """The number of rows that seed the state."""
        raise NotImplementedError

    def _seed(self, state: Any, X: Array, w: Array) -> None:
        """Start from a prefix."""
        raise NotImplementedError

    def _step(self, state: Any, X: Array, w: Array) -> None:
        """Learn one mini-batch."""
        raise NotImplementedError

    def _require_widths(self, state: Any, widths: list[int], columns: int) -> None:
        last = self._prefix() - state.filled - 1
        if state.seeded or not 0 <= last < len(widths):
            return
        try:
            self._require_start(widths[last])
        except ParameterError:
            state._reader.truncate(columns)
            raise

    def _first_vector(self, state: Any, x: Any) -> Array:
        """Validate a row before the state is seeded."""
        columns = state._reader.columns
        row = self._vector(state, x, True)
        if state._reader.native.named:
            self._require_widths(state, [len(row)], columns)
        else:
            self._require_start(len(row))
        return row

    # -- learning ------------------------------------------------------------------------------------------------------

    def _numbers(self, columns: int, classes: int) -> int:
        return max(self._prefix(), self._batch_size()) * columns + self._parts(columns)

    def _parts(self, columns: int) -> int:
        """The number of learned numbers for so many columns, without the buffered rows."""
        raise NotImplementedError

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
        state = super()._from_config(config, arrays)
        if state._reader.columns:
            self._require_memory(state._reader.columns, state.labels)
        return state

    def _absorb(self, state: Any, X: Array, w: Array) -> None:
        """Learn rows in order: each is buffered until its mini-batch is full."""
        b, i, n = self._batch_size(), 0, len(X)
        state.widen(X.shape[1])
        while i < n:
            if state.seeded and state.filled == 0 and n - i >= b:  # whole mini-batches are not buffered
                whole = (n - i) // b * b
                self._take(state, X[i : i + whole], w[i : i + whole])
                i += whole
                continue
            wanted = b if state.seeded else self._prefix()
            taken = min(
                max(wanted - state.filled, 1), n - i
            )  # the buffer may hold more rows than a batch_size that was set later
            self._make_room(state, state.filled + taken, wanted, X.shape[1])
            state.waiting[state.filled : state.filled + taken] = X[i : i + taken]
            state.waiting_weight[state.filled : state.filled + taken] = w[i : i + taken]
            state.filled += taken
            i += taken
            if state.filled >= wanted:
                self._settle(state)
        state.t += n

    def _make_room(self, state: Any, needed: int, wanted: int, columns: int) -> None:
        """Enlarge the buffer, about twofold each time: a mini-batch may be larger than the stream."""
        if len(state.waiting) < needed or state.waiting.shape[1] < columns:
            rows = max(needed, min(wanted, 2 * needed + 64))
            waiting, weight = np.zeros((rows, columns)), np.zeros(rows)
            waiting[: state.filled, : state.waiting.shape[1]] = state.waiting[: state.filled]
            weight[: state.filled] = state.waiting_weight[: state.filled]
            state.waiting, state.waiting_weight = waiting, weight

    def _settle(self, state: Any, all_of_it: bool = False) -> None:
        """Learn the buffered rows: the prefix, or a full mini-batch; with `all_of_it` also a part of one."""
        X, w = state.waiting[: state.filled].copy(), state.waiting_weight[: state.filled].copy()
        if not state.seeded:
            self._require_start(X.shape[1])
        state.filled = 0
        if not state.seeded:
            self._seed(state, X, w)
            state.seeded, state._provisional = True, None
        b = self._batch_size()
        whole = len(X) if all_of_it else len(X) - len(X) % b
        if whole:
            self._take(state, X[:whole], w[:whole])
        if whole < len(X):
            state.filled = len(X) - whole
            state.waiting[: state.filled], state.waiting_weight[: state.filled] = X[whole:], w[whole:]

    def _take(self, state: Any, X: Array, w: Array) -> None:
        """Learn mini-batches in order; the last one may be incomplete."""
        b = self._batch_size()
        for start in range(0, len(X), b):
            weights = w[start : start + b]
            state.steps += 1
            if weights.any():
                self._step(state, X[start : start + b], weights)

    def _view(self, state: Any) -> Any:
        """The state that predicts: the state itself, or a provisional one while the prefix is not full."""
        if state.seeded:
            return state
        if state.filled == 0:
            return None
        rows = 1 << (state.filled.bit_length() - 1)
        of = (rows, state.waiting.shape[1])
        if state._provisional is None or state._provisional[0] != of:
            trial = copy.deepcopy(dataclasses.replace(state, _provisional=None, filled=rows))
            self._settle(trial, all_of_it=True)
            state._provisional = (of, trial)
        return state._provisional[1]

    def flush(self) -> None:
        """Take the step of a mini-batch that is not full. `fit` does so after every pass."""
        if self._state is not None and self._state.filled:
            self._settle(self._state, all_of_it=True)

    def _fit_passes(self, X: Any, sample_weight: Any) -> None:
        """Learn afresh from a table, `passes` times."""
        passes = read_passes(self.passes)
        table = self._validated(X, reset=True)
        weights = self._weights_of(sample_weight, table, whole=True)
        state = self._new_state()
        try:
            for _ in range(passes):
                for block, w in self._blocks(state, table, weights, True):
                    self._absorb(state, block, w)
                if state.filled:
                    self._settle(state, all_of_it=True)
        finally:
            if state.t:
                self._state = state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn afresh from a table; y is ignored."""
        with self._all_or_nothing():
            self._fit_passes(X, sample_weight)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row."""
        with self._all_or_nothing():
            table = self._validated(X, reset=not hasattr(self, "n_features_in_"))
            self._learn_rows_of(table, self._weights_of(sample_weight, table))
        return self

    def learn_many(self, X: Any, y: Any = None, importance: Any = None) -> None:
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        X = as_rows(X)
        self._learn_rows_of(X, as_importance(importance, rows_of(X)))

    def _learn_rows_of(self, X: Any, weights: Array | None) -> None:
        state = self._new_state() if self._state is None else self._state
        try:
            for block, w in self._blocks(state, X, weights, True):
                self._absorb(state, block, w)
        except RowError:
            if state.t:
                self._state = state
            raise
        self._state = state

    def learn_one(self, x: Any, y: Any = None, importance: float = 1.0) -> None:
        """Learn one example: a row of numbers, or a mapping of names to numbers."""
        weight = one_weight(importance)
        state = self._new_state() if self._state is None else self._state
        row = self._vector(state, x, True) if state.seeded else self._first_vector(state, x)
        place = state.filled
        wanted = self._batch_size() if state.seeded else self._prefix()
        if wanted == 1 and state.seeded and place == 0:  # the row is not buffered
            state.widen(len(row))
            self._take(state, row[np.newaxis], ONE if weight == 1.0 else np.array([weight]))
            state.t += 1
            return
        if len(state.waiting) < place + 1 or state.waiting.shape[1] != len(row):
            state.widen(len(row))
            self._make_room(state, place + 1, wanted, len(row))
        state.waiting[place] = row
        state.waiting_weight[place] = weight
        state.filled = place + 1
        state.t += 1
        self._state = state
        if state.filled >= wanted:
            self._settle(state)
