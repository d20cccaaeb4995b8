"""What all transforms share: rows in every form, one at a time or many, and scikit-learn's contract.

A transform learns from x (`learn_one`, `learn_many`, `partial_fit`, `fit`) and transforms x (`transform_one`,
`transform_many`, `transform`), which never learns. What was learned is one `state`. A refused call leaves it unchanged:
a chunk is learned on a copy, which then replaces the state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.exceptions import NotFittedError

from ..errors import FeatureError, InputError, NumericalError
from ..estimators.tables import TableEstimator
from ..learner import LearnerTraits
from ..models.base import array_bytes
from ..rows import hashing
from ..rows.batches import Batch, Rows, as_batch, as_rows
from ..rows.rows import CSR
from ..scheme.sizes import FEW, require_few

__all__ = ["Rows", "Transform", "as_matrix", "as_rows", "length_of", "part_of"]


def length_of(rows: Rows) -> int:
    return len(rows) if isinstance(rows, list) else rows.rows


def part_of(rows: Rows, start: int, stop: int) -> Rows:
    return rows[start:stop] if isinstance(rows, list) else rows.part(start, stop)


def as_matrix(batch: Batch) -> Any:
    """A batch as NumPy's or SciPy's table."""
    if batch.dense is not None:
        return batch.dense
    import scipy.sparse

    return scipy.sparse.csr_matrix(batch.merged().stored, shape=(batch.rows, batch.columns))


def stacked(parts: list[Rows]) -> Rows:
    """Concatenate chunks of one row."""
    if isinstance(parts[0], list):
        return [x for part in parts for x in part]  # type: ignore[union-attr]
    batches: list[Batch] = [part for part in parts if isinstance(part, Batch)]
    if batches[0].dense is not None:
        return replace(batches[0], rows=len(parts), dense=np.concatenate([each.dense for each in batches]))
    csrs = [each.csr for each in batches if each.csr is not None]
    starts = np.cumsum([0, *(len(csr[0]) for csr in csrs)]).astype(csrs[0][2].dtype)
    csr = (np.concatenate([csr[0] for csr in csrs]), np.concatenate([csr[1] for csr in csrs]), starts)
    return replace(batches[-1], rows=len(parts), csr=csr)


def mappings_of(batch: Batch, names: list[str]) -> list[Mapping[Any, Any]]:
    """Each row as a mapping without zeros."""
    if batch.dense is not None:
        return [{name: value for name, value in zip(names, row, strict=True) if value} for row in batch.dense.tolist()]
    rows = batch if batch.distinct else batch.merged()
    data, indices, starts = (array.tolist() for array in rows.stored)
    called = batch.table.names(0, batch.columns) if batch.table is not None else names
    return [{called[j]: value for j, value in zip(indices[a:b], data[a:b], strict=True)} for a, b in pairwise(starts)]


class Transform(TransformerMixin, TableEstimator):  # type: ignore[misc]
    """Base of the transforms. `a | b | model` makes a `Pipeline`."""

    # The result for a single row is a row of numbers even where it came as a mapping.
    _gives_rows: ClassVar[bool] = False
    # Does learning change how a row is transformed?
    _changes: ClassVar[bool] = True
    # Does it multiply features, so that ordinary numbers may overflow?
    _multiplies: ClassVar[bool] = False
    _state: Any = None
    _takes_sparse: ClassVar[bool] = False
    traits = LearnerTraits("row", frozenset({"transform_one"}), supervised=False, weighted=False)

    # -- what a transform defines ----------------------------------------------------------------------------------

    def _new_state(self) -> Any:
        """A state that has learned nothing; also checks the parameters."""
        raise NotImplementedError

    def _copy(self, state: Any) -> Any:
        raise NotImplementedError

    def _one(self, state: Any, x: Mapping[Any, Any], learn: bool) -> tuple[Any, Callable[[], None]]:
        """x transformed (after learning it, with `learn`), and a function that commits the learning to the state."""
        raise NotImplementedError

    def _table(
        self, state: Any, batch: Batch, learn: bool, before: bool, after: bool = True
    ) -> tuple[Rows | None, Rows | None]:
        """The batch transformed before and after learning it row by row, as wanted; without `learn`, before only.

        If this raises, the caller must discard the state."""
        raise NotImplementedError

    def _to_config(self, state: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state as JSON and arrays."""
        raise NotImplementedError

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
        raise NotImplementedError

    # -- chains ----------------------------------------------------------------------------------------------------

    def __or__(self, other: Any) -> Any:
        from .pipeline import Pipeline

        return Pipeline.of(self, other)

    def __ror__(self, other: Any) -> Any:
        from .pipeline import Pipeline

        return Pipeline.of(other, self)

    # -- one at a time ---------------------------------------------------------------------------------------------

    def learn_one(self, x: Any) -> None:
        """Learn from one example: a mapping of names to values, or a row of numbers."""
        if not isinstance(x, Mapping):
            self.learn_many(self._single(x))
            return
        state = self._current()
        _, commit = self._one(state, x, True)
        commit()
        self._state = state

    def transform_one(self, x: Any) -> Any:
        """x transformed: a mapping or a row of numbers, as it came. Learns nothing."""
        if isinstance(x, Mapping):
            return self._one(self._current(), x, False)[0]
        rows = self.transform_many(self._single(x))
        if isinstance(rows, list):
            return rows[0]
        return rows.dense[0] if rows.dense is not None else rows.single()

    def _single(self, x: Any) -> Batch:
        """A row of numbers as a batch of one."""
        return single(x)

    def _read(self, X: Any) -> Rows:
        """Rows in any form that this transform takes."""
        return as_rows(X)

    def _current(self) -> Any:
        return self._new_state() if self._state is None else self._state

    # -- many ------------------------------------------------------------------------------------------------------

    def learn_many(self, X: Any) -> None:
        """Learn rows in order, bit for bit the loop of `learn_one`: arrays, frames, CSR, stream chunks, mappings."""
        self._learn_rows(self._read(X))

    def transform_many(self, X: Any) -> Any:
        """Rows transformed: a `Batch`, or a list of mappings. Learns nothing."""
        return self._apply(self._current(), self._read(X))

    def _apply(self, state: Any, rows: Rows) -> Rows:
        if isinstance(rows, list):
            return self._joined([at_row(row, self._one, state, x, False)[0] for row, x in enumerate(rows)])
        rows.require_finite()
        before = self._table(state, rows, False, True)[0]
        assert before is not None
        return before

    def _advance(self, rows: Rows, *, before: bool, after: bool) -> tuple[Any, Rows | None, Rows | None]:
        """The state after all rows, and each row transformed before and after it was learned."""
        state = self._copy(self._current())
        if not isinstance(rows, list):
            rows.require_finite()
            return state, *self._table(state, rows, True, before, after)
        old, new = [], []
        for row, x in enumerate(rows):
            if before:
                old.append(at_row(row, self._one, state, x, False)[0])
            z, commit = at_row(row, self._one, state, x, True)
            commit()
            new.append(z)
        return state, self._joined(old) if before else None, self._joined(new) if after else None

    def _learn_rows(self, rows: Rows) -> None:
        """All or nothing; where a row overflows, the rows before it stay learned."""
        try:
            self._state = self._advance(rows, before=False, after=False)[0]
        except NumericalError as error:
            if error.row > 0:
                self._state = self._advance(part_of(rows, 0, error.row), before=False, after=False)[0]
            raise

    def _apply_along(self, queries: Rows, rows: Rows) -> Rows:
        """Transform each row of `queries` just before the same row of `rows` is learned."""
        if not self._changes:
            return self._apply(self._current(), queries)
        state = self._copy(self._current())
        parts = []
        for row in range(length_of(rows)):
            one, one_query = part_of(rows, row, row + 1), part_of(queries, row, row + 1)
            parts.append(self._apply(state, one_query))
            if isinstance(one, list):
                self._one(state, one[0], True)[1]()
            else:
                self._table(state, one, True, False, False)
        return stacked(parts)

    def _joined(self, rows: list[Any]) -> Rows:
        """Join transformed rows."""
        return rows

    # -- scikit-learn ----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a table from scratch."""
        with self._all_or_nothing():
            batch = self._validated(X, reset=True)
            self._state = self._new_state()
            self._learn_rows(batch)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row."""
        with self._all_or_nothing():
            batch = self._validated(X, reset=not hasattr(self, "n_features_in_"))
            self._learn_rows(batch)
        return self

    def transform(self, X: Any) -> Any:
        """The table transformed: an array, or a CSR matrix."""
        if self._state is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        with self._all_or_nothing():
            rows = self._validated(X, reset=False) if hasattr(self, "n_features_in_") else self._read(X)
        return self._output(self._apply(self._state, rows))

    def _output(self, rows: Rows) -> Any:
        return rows if isinstance(rows, list) else as_matrix(rows)

    def _column_names(self, batch: Batch) -> list[str]:
        """The column names of a table: those of its frame, or x0, x1, …"""
        if batch.names is not None:
            return [str(name) for name in batch.names]
        return [f"x{j}" for j in range(batch.columns)]

    def _names_in(self, given: Any = None) -> list[str]:
        """The input's names, as `get_feature_names_out` takes and checks them."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted on a table yet")
        known = getattr(self, "feature_names_in_", None)
        if given is None:
            return [f"x{j}" for j in range(self.n_features_in_)] if known is None else [str(name) for name in known]
        if len(given) != self.n_features_in_:
            raise InputError(f"input_features should have length equal to number of features: {self.n_features_in_}")
        if known is not None and list(given) != list(known):
            raise InputError("input_features is not equal to feature_names_in_")
        return [str(name) for name in given]

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    # -- state and files -------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of what was learned."""
        return 0 if self._state is None else array_bytes(self._to_config(self._state)[1])

    def _learned_state(self) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
        return (None, {}) if self._state is None else self._to_config(self._state)

    def _resume(self, learned: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._state = self._from_config(learned, arrays)

    def _check_parameters(self) -> None:
        self._new_state()

    def _attributes(self) -> dict[str, Any]:
        return {**super()._attributes(), **hashing.record(getattr(self, "hash_bits", None))}

    def _set_attributes(self, attributes: Mapping[str, Any]) -> None:
        super()._set_attributes(attributes)
        if hasattr(self, "hash_bits"):
            error = hashing.other_hash(attributes, f"its {type(self).__name__}")
            if error is not None:
                raise error


def single(x: Any) -> Batch:
    """A row of numbers as a batch of one."""
    if hasattr(x, "tocsr"):
        batch = as_batch(x)
        if batch.rows != 1:
            raise FeatureError(f"x must be one row of numbers, got {batch.rows}; use learn_many for several")
        return batch
    if isinstance(x, (str, bytes)) or x is None or not hasattr(x, "__len__"):
        raise InputError(f"x must be a mapping of names to values or a row of numbers, got {x!r:.80}")
    row = np.asarray(x)
    if row.ndim != 1:
        raise FeatureError(f"x must be one row of numbers, got shape {row.shape}; use learn_many for several")
    return as_batch(row.reshape(1, -1))


def at_row(row: int, work: Callable[..., Any], *given: Any) -> Any:
    """Call `work`; an error from it gets the row number."""
    try:
        return work(*given)
    except InputError as error:
        raise type(error)(f"row {row}: {error}. Nothing of this call was learned") from None
    except NumericalError as error:
        raise NumericalError(f"row {row}: {error}", row) from None


class Vocabulary:
    """Names and their columns, in order of appearance: the table of the rows that a transform makes."""

    def __init__(self, names: list[str] | None = None) -> None:
        self.list: list[str] = list(names or [])
        self.index = {name: column for column, name in enumerate(self.list)}

    def __len__(self) -> int:
        return len(self.list)

    def names(self, start: int, stop: int) -> list[str]:
        return self.list[start:stop]

    def require_few(self, names: Collection[str], most: int | None, *advice: str) -> None:
        """Refuse too many new names; `most` is the limit, None the limit of the environment."""
        if most is not None or len(self.list) + len(names) > FEW:  # else the limit cannot be reached
            require_few(len(self.list) + sum(name not in self.index for name in set(names)), most, *advice)

    def register(self, name: str) -> int:
        column = self.index.get(name)
        if column is None:
            column = self.index[name] = len(self.list)
            self.list.append(name)
        return column

    def register_all(self, names: Iterable[str]) -> None:
        for name in names:
            self.register(name)

    def copy(self) -> Vocabulary:
        return Vocabulary(self.list)


def named_rows(csr: CSR) -> Batch:
    """Rows over a table of names, as a batch."""
    return replace(as_batch(csr), distinct=True)
