"""Transforms whose state is learned by mini-batches: clusters, components and dictionaries as steps of a pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..estimators.minibatch import MiniBatchLearner
from ..learner import LearnerTraits
from ..rows.batches import Batch
from ..scheme.rounds import Array
from ..scheme.sizes import require_room
from .base import Rows, Transform

__all__ = ["LearnedTransform"]


class LearnedTransform(MiniBatchLearner, Transform):
    """Transforms a row to `_outputs()` numbers. `a | b` makes a pipeline; transforming never learns."""

    _gives_rows: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True
    traits = LearnerTraits("row", frozenset({"transform_one"}), supervised=False)

    def _outputs(self) -> int:
        """How many numbers a row is transformed to."""
        raise NotImplementedError

    def _transformed(self, state: Any, X: Array) -> Array:
        """Rows transformed by a seeded state."""
        raise NotImplementedError

    def _transform_block(self, state: Any, X: Array) -> Array:
        if len(X) * self._outputs() > 2**17:  # a megabyte
            of = f"{len(X)} rows of {self._outputs()} numbers by {type(self).__name__}"
            require_room(len(X) * self._outputs(), of, "give fewer rows at a time" + self._large_options(1, 1))
        view = self._view(state)
        if view is None:  # nothing was learned yet
            return np.zeros((len(X), self._outputs()))
        if X.shape[1] < view.waiting.shape[1]:
            X = np.pad(X, ((0, 0), (0, view.waiting.shape[1] - X.shape[1])))
        return self._transformed(view, np.ascontiguousarray(X[:, : view.waiting.shape[1]]))

    # -- one and many --------------------------------------------------------------------------------------------------

    def transform_one(self, x: Any) -> Any:
        """x transformed to a row of numbers. Learns nothing."""
        state = self._current()
        return self._transform_block(state, self._vector(state, x, False)[np.newaxis])[0]

    def _apply(self, state: Any, rows: Rows) -> Rows:
        parts = [self._transform_block(state, block) for block, _ in self._blocks(state, rows, None, False)]
        return self._batch(parts)

    def _batch(self, parts: list[Array]) -> Batch:
        table = np.concatenate(parts)
        return Batch(len(table), table.shape[1], dense=table)

    def _copy(self, state: Any) -> Any:
        fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
        copies = {name: value.copy() for name, value in fields.items() if isinstance(value, np.ndarray)}
        if state._reader.names is not None or state.t == 0:
            copies["_reader"] = type(state._reader)(state._reader.names, state._reader.columns)
        return dataclasses.replace(state, **copies, _provisional=None)

    def _advance(self, rows: Rows, *, before: bool, after: bool) -> tuple[Any, Rows | None, Rows | None]:
        """The state after all rows, and each row transformed before and after it was learned."""
        state = self._copy(self._current())
        old: list[Array] = []
        new: list[Array] = []
        for block, w in self._blocks(state, rows, None, True):
            i = 0
            while i < len(block):
                # Rows that do not complete a mini-batch change nothing, so they are transformed together.
                quiet = min(self._batch_size() - state.filled - 1, len(block) - i) if state.seeded else 0
                part = slice(i, i + max(quiet, 1))
                if before or quiet:
                    transformed = self._transform_block(state, block[part]) if before or after else np.empty((0, 0))
                    old.append(transformed)
                self._absorb(state, block[part], w[part])
                if after:
                    new.append(old[-1] if quiet else self._transform_block(state, block[part]))
                i = part.stop
        return state, self._batch(old) if before else None, self._batch(new) if after else None

    def _learn_rows(self, rows: Rows) -> None:
        self._learn_rows_of(rows, None)

    def _apply_along(self, queries: Rows, rows: Rows) -> Rows:
        """Transform each row of `queries` just before the same row of `rows` is learned."""
        state = self._copy(self._current())
        parts = []
        query_rows = [row for block, _ in self._blocks(self._copy(state), queries, None, False) for row in block]
        at = 0
        for block, w in self._blocks(state, rows, None, True):
            for i in range(len(block)):
                parts.append(self._transform_block(state, query_rows[at][np.newaxis]))
                self._absorb(state, block[i : i + 1], w[i : i + 1])
                at += 1
        return self._batch(parts)

    # -- scikit-learn --------------------------------------------------------------------------------------------------

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn a table from scratch, and transform it."""
        return self.fit(X, y, sample_weight).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the output columns."""
        self._names_in(input_features)
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(self._outputs())], dtype=object)

    def _row_of(self, x: Any) -> Rows:
        return [x] if isinstance(x, Mapping) else self._single(x)
