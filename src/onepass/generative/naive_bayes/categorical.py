"""`CategoricalNB`: features with categories as values. Each value of each feature is counted for each class."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...errors import DamagedFileError, FeatureError, InputError
from ...estimators.labelled import LabelledState
from ...estimators.state import vector_of
from ...estimators.stateful import dense_parts, require_weights
from ...models.columns import require_same_names
from ...persistence import store
from ...rows.batches import as_batch
from ...rows.labels import not_hashable, plain, require_label
from ...scheme.parameters import Parameters, number
from ...scheme.rounds import Array
from .base import BayesLearner

__all__ = ["CategoricalNB"]

MOST = 1_000_000  # the most categories of a column: larger numbers are probably not categories


@dataclasses.dataclass(repr=False)
class _Parameters(Parameters):
    alpha: float = number(1.0, above=0)


@dataclasses.dataclass
class _Categories(LabelledState):
    """A cell is one value of one feature. `count` has a column for each of the `cells` and a row for each class."""

    cells: list[tuple[Any, Any]] = dataclasses.field(default_factory=list)
    count: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    mass: Array = dataclasses.field(default_factory=lambda: np.zeros(0))
    columns: int = 0  # of tables; 0 if features have names
    _at: dict[tuple[Any, Any], int] = dataclasses.field(default_factory=dict)  # cell → its column of `count`
    _of: dict[Any, list[int]] = dataclasses.field(default_factory=dict)  # feature → the columns of its cells

    def __post_init__(self) -> None:
        super().__post_init__()
        for at, (feature, category) in enumerate(self.cells):
            self._at[feature, category] = at
            self._of.setdefault(feature, []).append(at)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"count": (len(self.classes), len(self.cells)), "mass": (len(self.classes),)}

    def register_cell(self, feature: Any, category: Any) -> int:
        """The column of a cell, which may be new."""
        at = self._at.get((feature, category))
        if at is None:
            at = self._at[feature, category] = len(self.cells)
            self.cells.append((feature, category))
            self._of.setdefault(feature, []).append(at)
        return at

    def require_memory(self, cells: int) -> None:
        """Refuse so many cells for all classes if they exceed the memory limit."""
        _native.require_memory(
            8.0 * cells * len(self.classes),
            f"{cells} values x {len(self.classes)} classes of CategoricalNB",
            "use fewer values or classes",
            "LabelError" if cells == len(self.cells) else "FeatureError",
        )

    def grow(self) -> None:
        """Add zeros to the counts for new cells and classes."""
        shape = (len(self.classes), len(self.cells))
        if self.count.shape != shape:
            count = np.zeros(shape)
            count[: self.count.shape[0], : self.count.shape[1]] = self.count
            self.count = count
            self.mass = np.concatenate([self.mass, np.zeros(shape[0] - len(self.mass))])

    def config(self) -> Any:
        numbers, arrays = super().config()
        # The order in which the values of a table were seen depends on the chunks, so the cells are sorted.
        order = sorted(range(len(self.cells)), key=self.cells.__getitem__) if self.columns else range(len(self.cells))
        arrays["count"] = np.ascontiguousarray(arrays["count"][:, list(order)])
        return {**numbers, "cells": store.encode_values([self.cells[at] for at in order])}, arrays

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        cells = store.decode_values(config["cells"])
        if not all(isinstance(cell, tuple) and len(cell) == 2 for cell in cells) or len(set(cells)) < len(cells):
            raise DamagedFileError("the counted values are not distinct pairs of a feature and a value")
        made = super().from_config({**config, "cells": cells}, arrays)
        if made.columns and cells != [(j, value) for j, each in sorted(made._of.items()) for value in range(len(each))]:
            raise DamagedFileError("the counted values are not those of a table's columns")
        if made.columns and max(made._of, default=0) >= made.columns:
            raise DamagedFileError("there are values of columns that were not learned")
        return made


class CategoricalNB(BayesLearner):
    """P(x_i = v | c) = (N_civ + α)/(N_ci + α V_i), where V_i is the number of values of feature i so far.

    Tables hold whole numbers ≥ 0; all numbers up to the largest so far are values, as in scikit-learn. In mappings, any
    hashable object is a value. A new value has count 0. A feature that x does not have is ignored.

    Parameters
    ----------
    alpha : α, added to every count.
    fit_prior : whether P(c) is the frequency of the class; otherwise it is uniform.
    class_prior : P(c) of each class, in the order of `classes_`.
    """

    _Parameters = _Parameters
    _State = _Categories

    traits = dataclasses.replace(BayesLearner.traits, values="counts")

    def __init__(self, alpha: float = 1.0, *, fit_prior: bool = True, class_prior: Any = None) -> None:
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    # -- learning ------------------------------------------------------------------------------------------------------

    def _classes_known(self, state: _Categories) -> None:
        state.grow()

    def _learn_table(self, state: _Categories, X: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        require_weights(weights)
        w = np.ones(len(codes)) if weights is None else weights
        rows = state.read(X)
        if isinstance(rows, list):
            read = [self._items(state, x) for x in rows]
            for row, items in enumerate(read):
                self._count(state, items, int(codes[row]), float(w[row]))
            return
        values = self._values(state, rows)
        most = values.max(axis=0).tolist()
        state.require_memory(sum(max(len(state._of.get(j, ())), value + 1) for j, value in enumerate(most)))
        state.check_names(rows, True, state.columns)
        state.columns = values.shape[1]
        for j in range(values.shape[1]):
            for category in range(len(state._of.get(j, ())), int(values[:, j].max()) + 1):
                state.register_cell(j, category)
        state.grow()
        for j in range(values.shape[1]):
            np.add.at(state.count, (codes, np.array(state._of[j])[values[:, j]]), w)
        np.add.at(state.mass, codes, w)
        state.t += len(values)

    def _learn_single(self, state: _Categories, x: Any, label: Any, weight: float) -> None:
        x = state.mapping(x)
        if isinstance(x, Mapping):
            items = self._items(state, x)
            self._count(state, items, state.register(label), weight)
            return
        row = vector_of(x)[np.newaxis]
        self._values(state, row)  # validates before the label is registered
        self._learn_table(state, row, np.array([state.register(label)]), np.array([weight]))

    def _count(self, state: _Categories, items: list[tuple[Any, Any]], code: int, weight: float) -> None:
        fresh = sum(item not in state._at for item in items)
        if fresh or len(state.classes) > len(state.count):
            state.require_memory(len(state.cells) + fresh)
        at = [state.register_cell(*item) for item in items]
        state.grow()
        state.count[code, at] += weight
        state.mass[code] += weight
        state.t += 1

    # -- reading -------------------------------------------------------------------------------------------------------

    def _items(self, state: _Categories, x: Any) -> list[tuple[Any, Any]]:
        """The features of a mapping and their values, checked."""
        if state.columns:
            raise FeatureError(f"this model has learned rows of {state.columns} numbers; give rows, not mappings")
        if not isinstance(x, Mapping):
            raise FeatureError(f"x must be a mapping of names to values, got {x!r:.80}")
        items = [(plain(name), plain(value)) for name, value in x.items()]
        for name, value in items:
            if not isinstance(name, (str, int)) or isinstance(name, bool):
                raise FeatureError(f"feature names must be strings or whole numbers, got {name!r:.80}")
            try:
                if (name, value) not in state._at:
                    require_label(value)
            except TypeError:
                raise not_hashable(value) from None
            except InputError as error:
                raise InputError(f"feature {name!r}: {error}") from None
        return items

    def _values(self, state: _Categories, X: Any) -> NDArray[np.int64]:
        """A table as whole numbers, checked."""
        batch = as_batch(X)
        if state.cells and not state.columns:
            raise FeatureError("this model has learned named features; give mappings of names to values")
        if state.columns and batch.columns != state.columns:
            raise FeatureError(
                f"X has {batch.columns} features, but this model has learned rows of {state.columns} features"
            )
        if batch.rows == 0:
            raise InputError("X has no rows: there is nothing to learn or predict")
        batch.require_finite()
        require_same_names(batch.names, state._frame)
        table = np.concatenate([part for _, part in dense_parts(batch)])
        if table.min() < 0:
            raise InputError("Negative values in data passed to CategoricalNB: categories are whole numbers >= 0")
        if np.any(table != np.floor(table)) or table.max() >= MOST:
            bad = table[(table != np.floor(table)) | (table >= MOST)][0]
            raise InputError(f"categories are whole numbers from 0 to {MOST - 1}, got {bad:g}; encode them first")
        return table.astype(np.int64)

    # -- predicting ----------------------------------------------------------------------------------------------------

    def _score_table(self, state: _Categories, X: Any) -> Array:
        rows = state.read(X)
        if isinstance(rows, list):
            return np.array([self._score_single(state, x) for x in rows])
        values = self._values(state, rows)
        out = np.tile(self._prior(state.mass), (len(values), 1))
        for j in range(values.shape[1]):
            cells = np.array(state._of[j])
            counts = state.count[:, cells]
            seen = values[:, j] < len(cells)
            smoothed = np.log(counts[:, np.where(seen, values[:, j], 0)] + self.alpha)
            out += np.where(seen[:, np.newaxis], smoothed.T, np.log(self.alpha))
            out -= np.log(counts.sum(axis=1) + self.alpha * len(cells))
        return out

    def _score_single(self, state: _Categories, x: Any) -> Array:
        x = state.mapping(x)
        if not isinstance(x, Mapping):
            return np.asarray(self._score_table(state, vector_of(x)[np.newaxis])[0])
        out = self._prior(state.mass)
        for feature, category in self._items(state, x):
            cells = state._of.get(feature)
            if cells is None:
                continue
            counts = state.count[:, cells]
            at = state._at.get((feature, category))
            out = out + np.log((0.0 if at is None else state.count[:, at]) + self.alpha)
            out = out - np.log(counts.sum(axis=1) + self.alpha * len(cells))
        return out

    def _check_one(self, state: _Categories, x: Any) -> None:
        x = state.mapping(x)
        if isinstance(x, Mapping):
            self._items(state, x)
        else:
            self._values(state, vector_of(x)[np.newaxis])

    @property
    def class_count_(self) -> Array:
        """Examples of each class, by importance."""
        return np.array(self._learned().mass)

    @property
    def category_count_(self) -> list[Array]:
        """How often each value occurred in each class, an array for each feature."""
        state = self._learned()
        return [state.count[:, cells].copy() for cells in state._of.values()]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags
