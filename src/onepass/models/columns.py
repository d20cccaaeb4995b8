"""Map the columns of tables and of stream rows to a model's features: by name, by hash, or by position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError
from ..rows.batches import Batch

if TYPE_CHECKING:
    from .rule_model import RuleModel

__all__ = ["StreamColumns", "placed", "require_same_names"]

UNSEEN, ABSENT = -1, -2  # a column that was not looked up yet; one that is no feature of the model


class Named(Protocol):
    """An object that has features by name: a model, or the statistics of a transform."""

    @property
    def n_features(self) -> int: ...
    @property
    def n_names(self) -> int: ...
    def find(self, names: Iterable[str | int]) -> NDArray[np.int64]: ...
    def register(self, names: list[str]) -> None: ...


class StreamColumns:
    """Maps the columns of a stream's table to a model's features, with a cache: only new names cost time."""

    def __init__(self) -> None:
        self.table: Any = None
        self.at: NDArray[np.int32] = np.empty(0, dtype=np.int32)  # or UNSEEN, ABSENT
        self.looked = 0  # how many features the model had when last asked

    def place(self, model: RuleModel, batch: Batch, learning: bool) -> Batch:
        """The batch in the model's features. When `learning`, new names are registered. Otherwise they are left out; if
        the model's scores depend on ‖x‖ (`counts_unknown`), they follow all other features instead."""
        self._require_fit(model, batch)
        if batch.table is not None:
            return self._named(model, batch, learning)
        if batch.hash_bits is not None:
            return self._same_rows(batch, named=True)
        assert batch.csr is not None
        if learning or model.counts_unknown or batch.columns <= model.n_features:
            return self._same_rows(batch, columns=max(batch.columns, model.n_features))
        return batch.only(batch.csr[1] < model.n_features, model.n_features)

    @staticmethod
    def _same_rows(batch: Batch, **changes: Any) -> Batch:
        placed = replace(batch, **changes)
        placed.validated = batch.validated
        return placed

    def row(self, model: RuleModel, batch: Batch) -> Any:
        """A single row as the engine reads it, its features in the order in which a batch of them is learned: a mapping
        where they have names; otherwise (indices, values, columns), where 0 columns say that these are the model's own,
        and a fourth part that the row is as wide as it reaches: others may be wider.
        """
        if batch.rows != 1:
            raise FeatureError(f"x must be one row of numbers, got {batch.rows}; use learn_many for several")
        self._require_fit(model, batch)
        batch.require_finite()
        assert batch.csr is not None
        data, indices, _ = batch.csr
        if batch.table is None:
            row = indices.astype(np.int64), data.astype(np.float64)
            if batch.hash_bits is not None:
                return *row, 0
            return *row, max(int(indices.max(initial=-1)) + 1, model.n_features), True
        names = [batch.table.names(column, column + 1)[0] for column in indices.tolist()]
        return dict(zip(names, data.tolist(), strict=True))

    def _require_fit(self, model: RuleModel, batch: Batch) -> None:
        """Refuse features of another kind than the model's."""
        if batch.table is not None:
            if model.hash_bits is not None:
                raise FeatureError(f"the model hashes its features: give op.stream hash_bits={model.hash_bits} too")
            if model.positional and not model.n_names:
                raise FeatureError("this model has learned rows of unnamed features; the stream's have names")
        elif batch.hash_bits is not None:
            if batch.hash_bits != model.hash_bits:
                raise FeatureError(
                    f"the stream's features are hashes of {batch.hash_bits} bits, the model has "
                    f"hash_bits={model.hash_bits}: give both the same"
                )
        elif model.n_names and not model.positional:
            raise FeatureError("this model has learned named features; the stream's are numbers")
        elif model.hash_bits is not None:
            raise FeatureError(f"the stream's features are numbers: give op.stream hash_bits={model.hash_bits} too")

    def _named(self, model: RuleModel, batch: Batch, learning: bool) -> Batch:
        at = self.find(model, batch, learning)
        assert batch.csr is not None
        data, indices, starts = batch.csr
        if model.counts_unknown and not learning:
            behind = np.where(at < 0, model.n_features + np.arange(batch.columns), at)
            csr = (data, behind[indices], starts)
            return replace(batch, csr=csr, columns=model.n_features + batch.columns, table=None, named=True)
        if not np.array_equal(at, np.arange(batch.columns)):
            indices = at[indices]
        batch = replace(batch, csr=(data, indices, starts), columns=model.n_features, table=None, named=True)
        return batch if learning else batch.only(indices >= 0, model.n_features)

    def find(self, model: Named, batch: Batch, learning: bool) -> NDArray[np.int32]:
        """The model's feature for each column of the stream's table; when `learning`, new names are registered."""
        self._look_up(model, batch, learning)
        return self.at[: batch.columns]

    def _look_up(self, model: Named, batch: Batch, learning: bool) -> None:
        if self.table is not batch.table:
            self.table, self.at, self.looked = batch.table, np.empty(0, dtype=np.int32), 0
        known = len(self.at)
        if batch.columns > known:
            self.at = np.concatenate([self.at, np.full(batch.columns - known, UNSEEN, dtype=np.int32)])
        if self.looked != model.n_features:
            self.at[self.at == ABSENT] = UNSEEN
        missing = self._missing(batch, learning)
        if len(missing):
            first, last = int(missing.min()), int(missing.max()) + 1
            names = self.table.names(first, last)
            names = [names[column - first] for column in missing.tolist()]
            found = model.find(names)
            if learning:
                new = [name for name, place in zip(names, found.tolist(), strict=True) if place < 0]
                found[found < 0] = model.n_names + np.arange(len(new))
                model.register(new)
            self.at[missing] = np.where(found < 0, ABSENT, found)
        self.looked = model.n_features

    def _missing(self, batch: Batch, learning: bool) -> NDArray[np.intp]:
        """The columns to look up: those that occur in the batch, in the order in which they occur. Names of other rows
        must not change the order of the features, or a stream that is stopped and resumed would differ."""
        unknown = self.at[: batch.columns] < 0 if learning else self.at[: batch.columns] == UNSEEN
        if not unknown.any():
            return np.empty(0, dtype=np.intp)
        assert batch.csr is not None
        met = batch.csr[1][unknown[batch.csr[1]]]
        columns, first = np.unique(met, return_index=True)
        return np.asarray(columns[np.argsort(first)], dtype=np.intp)

    def forget(self, model: RuleModel, batch: Batch, known: int, learned: int) -> None:
        """After a refusal: unregister the names beyond `known`, except those of the first `learned` rows."""
        assert batch.csr is not None
        seen = batch.csr[1][: batch.csr[2][learned]]
        keep = max(known, int(seen.max()) + 1 if len(seen) else 0)
        model.forget(model.n_names - keep)
        self.at[self.at >= keep] = UNSEEN
        self.looked = -1


def placed(model: RuleModel, batch: Batch, learning: bool) -> Batch:
    """The batch in the model's features: the rows of a stream, or a table whose columns must be those learned."""
    if batch.named:
        return batch
    if batch.distinct:  # rows of a stream
        return model._columns.place(model, batch, learning)
    if model.names and not model._engine.positional:
        raise FeatureError(
            "this model has learned named features; give mappings (learn_one, learn_many with a list of dicts)"
        )
    if model.hash_bits is not None:
        if batch.names:  # the columns of a frame are names, which are hashed as those of a mapping
            return batch.at(model.find(batch.names), model.n_features)
        if batch.columns > model.n_features:
            room = f"hash_bits={model.hash_bits} leaves room for {model.n_features}"
            raise FeatureError(f"X has {batch.columns} columns, but {room}; raise hash_bits")
    elif model._engine.columns and batch.columns != model._engine.columns:
        learned = model._engine.columns
        raise FeatureError(f"X has {batch.columns} features, but this model has learned rows of {learned} features")
    elif batch.names and model.names:
        require_same_names(batch.names, model.names)
    return batch


def require_same_names(given: Sequence[Any] | None, learned: Sequence[Any] | None) -> None:
    """Refuse a frame whose columns have other names than those learned. None stands for columns without names."""
    if given is None or learned is None:
        return
    if len(given) > len(learned):
        raise FeatureError(f"X has {len(given)} features, but this model has learned rows of {len(learned)} features")
    for at, (name, known) in enumerate(zip(given, learned, strict=False)):
        if name != known:
            raise FeatureError(
                f"column {at} of X is {name!r}, but this model has learned {known!r} there; "
                "give the columns in the same order"
            )
