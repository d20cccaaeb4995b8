"""The base of learners with a small `State`: rows in every form, checked parameters, files.

What was learned is one `State`: numbers and arrays, which a model file stores. A learner defines how rows change it.
This module does the rest: rows as vectors, or as mappings with new names; calls that are all or nothing; `save` and
`onepass.load`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from .. import _native
from ..errors import DamagedFileError, InputError, NumericalError, OnepassError, ParameterError, RowError
from ..models.base import array_bytes, restore
from ..rows.batches import Batch, as_importance, as_rows
from ..scheme.parameters import Parameters
from ..scheme.rounds import Array
from .state import State, values_of, vector_of
from .tables import TableEstimator

__all__ = ["StatefulEstimator", "dense_parts", "read_seed", "require_moderate"]

LARGEST = 1e100  # the largest absolute value: sums of larger squares over a long stream may overflow
PART = 1024  # the number of rows of a sparse table that are made dense at once


class StatefulEstimator(TableEstimator):
    """Base of learners whose state is a `State`. A subclass names its checked parameters and its state's class."""

    _Parameters: ClassVar[type[Parameters]]
    _State: ClassVar[type[State]]
    _bounded: ClassVar[bool] = False  # True if `_require_domain` refuses some numbers
    _state: Any = None
    random_state: Any

    # -- parameters ----------------------------------------------------------------------------------------------------

    def _checked(self) -> Any:
        """The parameters, validated by a dataclass."""
        kind = self._Parameters
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(kind)}
        try:
            return kind(**given)
        except ParameterError as error:
            named = str(error).replace(f"{kind.__name__}(", f"{type(self).__name__}(", 1)
            raise ParameterError(named) from None

    def _new_state(self) -> Any:
        """A state that has learned nothing; also checks the parameters."""
        self._checked()
        return self._State(seed=read_seed(getattr(self, "random_state", 0)))

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _blocks(self, state: State, X: Any, weights: Array | None, learn: bool) -> Iterator[tuple[Array, Array]]:
        """Validated rows as dense blocks with their weights. Raises at a row that is too large, after those before."""
        require_weights(weights)
        rows = state.read(X)
        if isinstance(rows, list):
            yield from self._named_blocks(state, rows, weights, learn)
            return
        table = self._settled(state, rows, learn)
        ones = np.ones(table.rows) if weights is None else weights
        sound = require_moderate(table)
        for start, block in dense_parts(table.part(0, sound)):
            yield block, ones[start : start + len(block)]
        if sound < table.rows:
            raise too_large(sound)

    def _named_blocks(
        self, state: State, X: list[Any], weights: Array | None, learn: bool
    ) -> Iterator[tuple[Array, Array]]:
        """Blocks of rows between new names, so that no row is wider than when it is learned alone."""
        sound = len(X)
        try:
            state._reader.check(X)
        except NumericalError as error:
            sound = error.row
        if self._bounded:
            for x in X:
                self._require_domain(values_of(x))
        columns = state._reader.columns
        try:
            rows = [state._reader.row(x, learn) for x in X[:sound]]
            if learn and rows:
                self._require_memory(len(rows[-1]), state.labels)
        except OnepassError:
            state._reader.truncate(columns)
            raise
        if learn:
            self._require_widths(state, [len(row) for row in rows], columns)
        ones = np.ones(len(X)) if weights is None else weights
        start = 0
        for stop in range(1, sound + 1):
            if stop == sound or len(rows[stop]) != len(rows[start]):
                yield np.array(rows[start:stop]), ones[start:stop]
                start = stop
        if sound < len(X):
            raise too_large(sound)

    def _settled(self, state: State, table: Batch, learn: bool) -> Batch:
        if table.rows == 0:
            raise InputError("X has no rows: there is nothing to learn" if learn else "X has no rows")
        table.require_finite()
        values = table.dense if table.csr is None else table.csr[0]
        assert values is not None
        self._require_domain(values)
        if learn:
            state._reader.native.require_few(table.columns)
            self._require_memory(table.columns, state.labels)
            self._require_start(table.columns)
        columns = state._reader.columns
        if learn or columns:
            state._reader.native.settle(table.columns)
        state.check_names(table, learn, columns)
        return table

    def _vector(self, state: State, x: Any, learn: bool, fresh: bool = False) -> Array:
        """A single example as a vector of the state's columns; `fresh`: its class is new."""
        x = state.mapping(x)
        if learn and self._bounded:
            with contextlib.suppress(NumericalError):  # numbers outside the domain are reported first
                state._reader.row(x, False)  # refuses malformed rows
            self._require_domain(values_of(x) if isinstance(x, Mapping) else vector_of(x))
        if not learn:
            return state._reader.row(x, False)
        columns = state._reader.columns
        row = state._reader.row(x, True)
        if fresh or len(row) > columns:
            try:
                self._require_memory(len(row), state.labels + fresh)
            except OnepassError:
                state._reader.truncate(columns)
                raise
        return row

    def _numbers(self, columns: int, classes: int) -> int:
        """The number of stored numbers for so many columns and classes."""
        raise NotImplementedError

    def _require_memory(self, columns: int, classes: int) -> None:
        """Refuse columns and classes whose tables would take more than the limit, before the tables grow."""
        classes = max(classes, 1)
        of = f" x {classes} classes" if classes > 1 else ""
        numbers, what = self._numbers(columns, classes), f"{columns} features{of} of {type(self).__name__}"
        error, advice = "FeatureError" if classes == 1 else "LabelError", "use fewer features or classes"
        try:
            _native.require_memory(8.0 * numbers, what, advice, error)
        except OnepassError:
            large = self._large_options(columns, classes)
            _native.require_memory(8.0 * numbers, what, advice + large, error)

    def _large_options(self, columns: int, classes: int) -> str:
        """Advice: the parameters on which the size depends most."""
        given = self.get_params(deep=False)
        numbers, large = self._numbers(columns, classes), []
        for name, value in given.items():
            if isinstance(value, int) and value > 1:
                less = type(self)(**{**given, name: value // 2})
                if less._numbers(columns, classes) <= 0.8 * numbers:
                    large.append(f"{name}={value}")
        return f", or a smaller {' or '.join(large)}" if large else ""

    def _require_domain(self, values: Array) -> None:
        """Refuse numbers outside the learner's domain, in a table or a row."""

    def _require_start(self, columns: int) -> None:
        """Refuse rows whose number of columns does not fit the initial parameters."""

    def _require_widths(self, state: Any, widths: list[int], columns: int) -> None:
        """As `_require_start`, for named rows; the state had `columns` columns before them."""

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """As for every estimator. If the first row of the first call overflows, the table's shape is forgotten, too."""
        before = dict(self.__dict__)
        t = self._state.t if self._state is not None else 0
        with super()._all_or_nothing():
            try:
                yield
            except RowError:
                if self._state is before.get("_state") and (self._state is None or self._state.t == t):
                    restore(self, before)
                raise

    # -- what was learned ----------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None and self._state.t > 0

    def _fitted(self) -> Any:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        return self._state

    def _learned(self) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        return self._state

    @property
    def t_(self) -> int:
        """Examples seen."""
        return int(self._learned().t)

    # -- state and files -----------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of what was learned."""
        return 0 if self._state is None else array_bytes(self._to_config(self._state)[1])

    def _learned_state(self) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
        return self._to_config(self._state) if self.__sklearn_is_fitted__() else (None, {})

    def _resume(self, learned: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._state = self._from_config(learned, arrays)
        if not isinstance(self._state.t, int) or self._state.t < 1:
            raise DamagedFileError("t must be a whole number >= 1")

    def _check_parameters(self) -> None:
        self._new_state()

    def _to_config(self, state: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        numbers, arrays = state.config()
        return dict(numbers), {
            name: np.array(array) for name, array in arrays.items()
        }  # a copy: the learner may change later

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
        return self._State.from_config(config, arrays)


def read_seed(random_state: Any) -> int:
    """The given seed, or a random one."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ParameterError(f"random_state={random_state!r}: expected a whole number >= 0")
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError:
        expected = "None, a whole number or a numpy.random.RandomState"
        raise ParameterError(f"random_state={random_state!r}: expected {expected}") from None


def require_moderate(table: Batch) -> int:
    """The number of rows before the first one with a number that is too large to square."""
    data = table.dense if table.csr is None else table.csr[0]
    assert data is not None
    if data.size == 0 or (float(data.max()) <= LARGEST and float(data.min()) >= -LARGEST):
        return table.rows
    first = int(np.argmax(np.abs(data, dtype=np.float64) > LARGEST))
    return first // table.columns if table.csr is None else table._place(first)[0]


def dense_parts(table: Batch) -> Iterator[tuple[int, Array]]:
    """The rows as contiguous doubles and where each block starts; a sparse table a thousand rows at a time."""
    size = PART if table.dense is None else max(1, table.rows)
    for start in range(0, table.rows, size):
        yield start, table.filled(start, min(start + size, table.rows))


def too_large(row: int) -> NumericalError:
    """The error for a row with a number that is too large to square; the rows before it are learned."""
    return NumericalError(
        f"row {row}: a number above {LARGEST:g} in size, whose squares overflow; scale the features down", row
    )


def rows_of(X: Any) -> int:
    """The number of rows."""
    rows = as_rows(X)
    return rows.rows if isinstance(rows, Batch) else len(rows)


def require_weights(weights: Array | None) -> None:
    """Refuse importances whose sums may overflow."""
    if weights is not None and len(weights) and weights.max() > LARGEST:
        raise InputError(f"importance {weights.max():g} is too large; expected at most {LARGEST:g}")


def one_weight(importance: Any) -> float:
    """The importance of a single example."""
    if type(importance) is float and 0.0 <= importance <= LARGEST:
        return importance
    weights = as_importance([importance], 1)
    assert weights is not None
    require_weights(weights)
    return float(weights[0])
