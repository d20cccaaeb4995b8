"""Products of features: `Interactions` of namespaces, `PolynomialFeatures`. Neither learns anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import FeatureError, InputError, NumericalError, ParameterError
from ..rows.batches import Batch
from ..rows.expansion import expand_one, expand_rows, make_expansion, numbers_of, read_interactions
from ..rows.rows import CSR
from ..scheme.rounds import Array
from ..scheme.sizes import require_room
from .base import Rows, Transform, mappings_of, named_rows
from .scaling import flag

__all__ = ["Interactions", "PolynomialFeatures"]


class Stateless(Transform):
    """A transform that learns nothing: the result depends on the row alone."""

    _changes: ClassVar[bool] = False

    def _new_state(self) -> Any:
        return ()

    def _copy(self, state: Any) -> Any:
        return state

    def _transform_mapping(self, x: Mapping[Any, Any]) -> Any:
        """A mapping transformed."""
        raise NotImplementedError

    def _transform_rows(self, batch: Batch) -> Rows:
        raise NotImplementedError

    def _one(self, state: Any, x: Mapping[Any, Any], learn: bool) -> tuple[Any, Callable[[], None]]:
        return self._transform_mapping(x), lambda: None

    def _table(
        self, state: Any, batch: Batch, learn: bool, before: bool, after: bool = True
    ) -> tuple[Rows | None, Rows | None]:
        rows = self._transform_rows(batch)
        return rows if before or not learn else None, rows if learn else None

    def _to_config(self, state: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {}, {}

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
        return ()


class Interactions(Stateless):
    """The features of a row and their products across namespaces: VW's -q and --interactions.

    A feature called space^name is of that namespace. "ab" takes one feature of each namespace that begins with a and
    with b, ":" of any, " " of the nameless one; "user*item" takes namespaces, or columns of a table, by their whole
    names. The product of p and q is called p*q, and hashes by that name. Pairs that differ in order only are taken
    once, in the order of their names, each with itself too, as VW does.

    Parameters
    ----------
    interactions : a list of such strings.
    """

    _multiplies = True

    def __init__(self, interactions: Any = ("::",)) -> None:
        self.interactions = interactions

    def _new_state(self) -> Any:
        if not read_interactions(self.interactions):
            raise ParameterError("interactions=[]: expected at least one, such as 'ab'")
        return ()

    def _expansion(self) -> Any:
        self._new_state()
        return make_expansion(self.interactions)

    def _transform_mapping(self, x: Mapping[Any, Any]) -> Any:
        return expand_one(self._expansion(), numbers_of(x))

    def _transform_rows(self, batch: Batch) -> Rows:
        if batch.csr is not None and batch.table is not None:
            data, indices, starts = batch.csr
            csr = CSR(starts.astype(np.int32), indices.astype(np.int32), data, (batch.rows, batch.columns), True)
            return named_rows(expand_rows(self._expansion(), replace(csr, table=batch.table)))
        if batch.hash_bits is not None:
            raise FeatureError("hashes have no names: give op.stream the interactions")
        names = self._column_names(batch)
        table = _native.Names()
        table.intern(self._names_of(names))
        starts, indices, data = _nonzero(batch)
        rows = self._expansion().rows(starts, indices, data, names, -1, table)
        rows.assign_columns(table)
        return named_rows(CSR(rows.starts, rows.index, rows.value, (batch.rows, len(table)), True, table))

    def _names_of(self, names: list[str]) -> list[str]:
        return list(expand_one(self._expansion(), dict.fromkeys(names, 1.0)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        return np.array(self._names_of(self._names_in(input_features)), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PolynomialFeatures(Stateless):
    """All products of up to `degree` features of a row. The product of a and b is called a*b, names in order.

    Of an array, the columns are those of scikit-learn's, in the same order; of a mapping, products of its features.

    Parameters
    ----------
    degree : the most factors.
    interaction_only : no feature twice in a product.
    include_bias : a column of ones, called 1.
    """

    traits = dataclasses.replace(Stateless.traits, forms=("rows", "names"))

    _multiplies = True

    def __init__(self, degree: int = 2, *, interaction_only: bool = False, include_bias: bool = False) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_bias = include_bias

    def _new_state(self) -> Any:
        degree = self.degree
        if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or not 1 <= degree <= 100:
            raise ParameterError(f"degree={degree!r}: expected a whole number from 1 to 100")
        flag("interaction_only", self.interaction_only)
        flag("include_bias", self.include_bias)
        return ()

    def _count(self, n: int, rows: int) -> int:
        """How many products there are of n features, if there is room for them in so many rows."""
        if self.interaction_only:
            count = sum(comb(n, degree) for degree in range(min(n, self.degree) + 1))
        else:
            count = comb(n + self.degree, self.degree)
        of = f"{rows} rows of {count} products by PolynomialFeatures(degree={self.degree})"
        require_room((rows + 20) * count, of, "choose a smaller degree, or give fewer features or rows")
        return count if self.include_bias else count - 1

    def _choices(self, n: int) -> Iterator[tuple[int, ...]]:
        choose = combinations if self.interaction_only else combinations_with_replacement
        for degree in range(0 if self.include_bias else 1, self.degree + 1):
            yield from choose(range(n), degree)

    def _transform_mapping(self, x: Mapping[Any, Any]) -> Any:
        self._new_state()
        row = sorted(((str(name), value) for name, value in numbers_of(x).items()), key=lambda item: item[0])
        z: dict[str, float] = {}
        self._count(len(row), 1)
        for chosen in self._choices(len(row)):
            product = 1.0
            for i in chosen:
                product *= row[i][1]
            name = "*".join(row[i][0] for i in chosen) or "1"
            z[name] = z[name] + product if name in z else product
            if not np.isfinite(z[name]):
                raise NumericalError(f"the product {name!r:.80} is too large for a double; scale its features down")
        return z

    def _transform_rows(self, batch: Batch) -> Rows:
        self._new_state()
        if batch.dense is None:
            if batch.table is None:
                raise InputError("Sparse rows have too many products; use dense ones, or Interactions on named rows")
            return [self._transform_mapping(x) for x in mappings_of(batch, [])]
        X = np.asarray(batch.dense, dtype=np.float64)
        self._count(batch.columns, batch.rows)
        choices = list(self._choices(batch.columns))
        out = np.empty((batch.rows, len(choices)))
        made: dict[tuple[int, ...], Array] = {(): np.ones(batch.rows)}
        with np.errstate(over="ignore", invalid="ignore"):
            for place, chosen in enumerate(choices):
                # Every product is that of one factor less, so that each costs one multiplication.
                out[:, place] = made[chosen[:-1]] * X[:, chosen[-1]] if chosen else 1.0
                if len(chosen) < self.degree:
                    made[chosen] = out[:, place]
        wrong = np.flatnonzero(~np.isfinite(out).all(axis=1))
        if len(wrong):
            row = int(wrong[0])
            raise NumericalError(f"row {row}: a product is too large for a double; scale its features down", row)
        names = None if batch.names is None else self._names_of(batch.names)
        return Batch(batch.rows, len(choices), dense=out, names=names)

    def _names_of(self, names: list[str]) -> list[str]:
        return ["*".join(sorted(names[i] for i in chosen)) or "1" for chosen in self._choices(len(names))]

    @property
    def n_output_features_(self) -> int:
        return self._count(len(self._names_in()), 1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        return np.array(self._names_of(self._names_in(input_features)), dtype=object)


def _nonzero(batch: Batch) -> tuple[Any, Any, Any]:
    """The rows without their zeros: starts, columns, values."""
    if batch.dense is not None:
        there = batch.dense != 0.0
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))])
        indices, data = np.nonzero(there)[1], batch.dense[there]
    else:
        assert batch.csr is not None
        data, indices, starts = batch.csr
    return starts.astype(np.int32), indices.astype(np.int32), np.ascontiguousarray(data, dtype=np.float64)
