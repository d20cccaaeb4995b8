"""The base of classifiers with a `State`: labels that grow, scikit-learn's methods and the stream's methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ..errors import InputError, LabelError, RowError
from ..learner import LearnerTraits
from ..persistence import store
from ..rows.batches import as_importance, as_rows
from ..rows.labels import not_hashable, plain, require_few, require_label, sorted_classes
from ..scheme.rounds import Array
from .state import State
from .stateful import StatefulEstimator, one_weight, rows_of
from .tables import class_array, read_labels, read_passes

__all__ = ["LabelledLearner", "LabelledState"]


@dataclasses.dataclass
class LabelledState(State):
    """`classes`: the labels, in the order of their codes. If they were `declared`, other labels are refused."""

    classes: list[Any] = dataclasses.field(default_factory=list)
    declared: bool = False
    _index: dict[Any, int] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self._index = {label: code for code, label in enumerate(self.classes)}

    @property
    def labels(self) -> int:
        return len(self.classes)

    def register_all(self, labels: list[Any]) -> NDArray[np.int64]:
        """The codes of validated labels; new ones are registered. If there are too many, none is registered."""
        before = len(self.classes)
        try:
            for label in dict.fromkeys(labels):
                self.check(label)  # the new labels before this one count
                self.register(label)
        except LabelError:
            self.forget(before)
            raise
        return np.fromiter(map(self._index.__getitem__, labels), dtype=np.int64, count=len(labels))

    def register(self, label: Any) -> int:
        """The code of a label, which may be new."""
        code = self._index.setdefault(label, len(self.classes))
        if code == len(self.classes):
            self.classes.append(label)
        return code

    def forget(self, count: int) -> None:
        """Unregister the labels beyond the first `count`."""
        for label in self.classes[count:]:
            del self._index[label]
        del self.classes[count:]

    def check(self, label: Any, row: int | None = None) -> Any:
        """The label in the form in which it is stored, or an error. Registers nothing."""
        label = plain(label)
        try:
            known = label in self._index
        except TypeError:
            raise not_hashable(label, row) from None
        if not known:
            if self.declared:
                where = "the label" if row is None else f"y[{row}]"
                raise LabelError(f"{where} is {label!r}, which is not one of the classes {self.classes!r}")
            require_label(label)
            require_few(label, self._index, None, self.t + (row or 0) + 1)
        return label

    def config(self) -> Any:
        numbers, arrays = super().config()
        return {**numbers, "classes": store.encode_values(self.classes)}, arrays

    @classmethod
    def from_config(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        if not isinstance(config["declared"], bool):
            raise TypeError("declared must be true or false")
        return super().from_config({**config, "classes": store.decode_values(config["classes"])}, arrays)


class LabelledLearner(ClassifierMixin, StatefulEstimator):  # type: ignore[misc]
    """Base of classifiers that learn rows in order and keep their own state."""

    traits = LearnerTraits("class")

    # -- what a learner defines ----------------------------------------------------------------------------------------

    def _absorb(self, state: Any, X: Array, codes: NDArray[np.int64], w: Array) -> None:
        """Learn rows in order. A row whose step overflows raises a `RowError` with its number and changes nothing."""
        raise NotImplementedError

    def _scores(self, state: Any, X: Array) -> Array:
        """One score for each row and class; the largest is predicted."""
        raise NotImplementedError

    def _learn_table(self, state: Any, X: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        start, columns = 0, state._reader.columns
        for block, w in self._blocks(state, X, weights, True):
            try:
                self._absorb(state, block, codes[start : start + len(block)], w)
            except RowError as error:
                state.t += error.row
                state._reader.truncate(block.shape[1] if error.row else columns)
                raise error.at(start + error.row) from None
            start, columns = start + len(block), block.shape[1]
            state.t += len(block)

    def _score_table(self, state: Any, X: Any) -> Array:
        parts = [self._scores(state, self._fitting(state, block)) for block, _ in self._blocks(state, X, None, False)]
        return np.concatenate(parts)

    def _learn_single(self, state: Any, x: Any, label: Any, weight: float) -> None:
        columns, classes = state._reader.columns, len(state.classes)
        row = self._vector(state, x, True, label not in state._index)
        try:
            self._absorb(state, row[np.newaxis], np.array([state.register(label)]), np.array([weight]))
        except RowError:
            state._reader.truncate(columns)
            state.forget(classes)
            raise
        state.t += 1

    def _score_single(self, state: Any, x: Any) -> Array:
        row = self._vector(state, x, False)
        return np.asarray(self._scores(state, self._fitting(state, row[np.newaxis]))[0])

    def _check_one(self, state: Any, x: Any) -> None:
        """Refuse a malformed example, even before any class is known."""
        self._vector(state, x, False)

    def _fitting(self, state: Any, X: Array) -> Array:
        """Cut or pad rows to the columns of the state."""
        return X

    # -- scikit-learn --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table."""
        with self._all_or_nothing():
            passes = read_passes(getattr(self, "passes", 1))
            table = self._validated(X, reset=True)
            labels = read_labels(y, table.rows)
            weights = self._weights_of(sample_weight, table, whole=True)
            classes, codes = np.unique(labels, return_inverse=True)
            state = self._declared(classes)
            try:
                for _ in range(passes):
                    self._learn_table(state, table, codes.astype(np.int64), weights)
            finally:
                if state.t:
                    self._class_dtype, self._state = classes.dtype, state
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. `classes` is required by the first call."""
        with self._all_or_nothing():
            state = self._state
            table = self._validated(X, reset=not hasattr(self, "n_features_in_"))
            labels = read_labels(y, table.rows)
            if state is None:
                if classes is None:
                    example = "partial_fit(X, y, classes=[…])"
                    raise LabelError(f"classes must be given in the first call of partial_fit: {example}")
                known = sorted_classes(classes)
                state = self._declared(known)
                self._class_dtype = known.dtype
            elif classes is not None and set(sorted_classes(classes).tolist()) != set(state.classes):
                raise LabelError(f"classes={classes!r} differ from the first call's {state.classes!r}")
            weights = self._weights_of(sample_weight, table)
            self._learn_labels(state, table, labels.tolist(), weights)
        return self

    def _declared(self, classes: NDArray[Any]) -> Any:
        state = self._new_state()
        for label in classes.tolist():
            state.register(label)
        state.declared = True
        self._classes_known(state)
        return state

    def _classes_known(self, state: Any) -> None:
        """Called after classes were declared."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        scores = self._table_scores(X)
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def _table_scores(self, X: Any) -> Array:
        state = self._fitted()
        if hasattr(self, "n_features_in_"):
            X = self._validated(X, reset=False)
        return self._score_table(state, X)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of scores and probabilities."""
        return class_array(self._learned().classes, getattr(self, "_class_dtype", None))

    # -- the stream ----------------------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        """Learn one example: x a row of numbers, or a mapping of names to numbers, strings or booleans."""
        weight = one_weight(importance)
        state = self._new_state() if self._state is None else self._state
        label, classes = state.check(y), len(state.classes)
        try:
            self._learn_single(state, x, label, weight)
        except Exception:
            state.forget(classes)
            raise
        self._state = state

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
            raise LabelError(f"y must hold one label per row, got {y!r:.80}")
        if isinstance(y, np.ndarray) and y.ndim != 1:
            raise LabelError(f"y must hold one label per row, got shape {y.shape}")
        state = self._new_state() if self._state is None else self._state
        X = as_rows(X)
        if (rows := rows_of(X)) != len(y):
            raise InputError(f"X has {rows} rows, y has {len(y)}")
        self._learn_labels(state, X, list(y), as_importance(importance, len(y)))

    def _learn_labels(self, state: Any, X: Any, labels: list[Any], weights: Array | None) -> None:
        """All or nothing; but if a row is too large, the rows before it and their labels stay learned."""
        labels = [state.check(label, row) for row, label in enumerate(labels)]
        before = len(state.classes)
        codes = state.register_all(labels)
        t = state.t
        try:
            self._learn_table(state, X, codes, weights)
        except Exception:
            state.forget(max([before, *(codes[: state.t - t] + 1).tolist()]))
            if state.t:
                self._state = state
            raise
        self._state = state

    def predict_one(self, x: Any) -> Any:
        """The prediction for one example; changes nothing. None before any class is known."""
        state = self._new_state() if self._state is None else self._state
        if not state.t:
            self._check_one(state, x)
            return None
        return state.classes[int(np.argmax(self._score_single(state, x)))]

    def predict_many(self, X: Any) -> list[Any]:
        """The predictions of rows in any shape."""
        state = self._state
        if state is None or not state.t:
            return [None] * rows_of(X)
        return [state.classes[code] for code in np.argmax(self._score_table(state, X), axis=1).tolist()]
