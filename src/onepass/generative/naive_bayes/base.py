"""The base of the naive Bayes classifiers: counts by class, priors, probabilities."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...errors import DamagedFileError, InputError, NumericalError, ParameterError
from ...estimators.labelled import LabelledLearner, LabelledState
from ...estimators.state import Reader, vector_of
from ...estimators.stateful import LARGEST, require_moderate, too_large
from ...learner import LearnerTraits
from ...rows.batches import Batch
from ...scheme.rounds import Array

__all__ = ["BayesLearner", "CountingLearner", "CountingState", "log_prior", "normalised"]


def log_prior(mass: Array, fit_prior: bool, class_prior: Any) -> Array:
    """ln P(c): as given, uniform, or the frequency of the class."""
    if class_prior is not None:
        return np.log(np.asarray(class_prior, dtype=np.float64))
    if not fit_prior or not mass.any():  # or every example had importance 0
        return np.full(len(mass), -np.log(max(1, len(mass))))
    with np.errstate(divide="ignore"):  # of a class that was declared and had no example
        return np.asarray(np.log(mass) - np.log(mass.sum()))


def normalised(joint: Array) -> Array:
    """ln P(c | x) from ln P(c, x)."""
    top = joint.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))


class BayesLearner(LabelledLearner):
    """Probabilities from joint densities, and the parameters of the prior."""

    fit_prior: bool
    class_prior: Any

    traits = LearnerTraits("class", frozenset({"predict_proba_one"}))

    def predict_joint_log_proba(self, X: Any) -> Array:
        """ln P(c, x) of each row and class."""
        return self._table_scores(X)

    def predict_log_proba(self, X: Any) -> Array:
        """ln P(c | x) of each row and class."""
        return normalised(self._table_scores(X))

    def predict_proba(self, X: Any) -> Array:
        """P(c | x) of each row and class."""
        return np.exp(self.predict_log_proba(X))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each label. Empty before any class is known."""
        state = self._state
        if state is None or not state.t:
            self.predict_one(x)
            return {}
        row = np.exp(normalised(self._score_single(state, x)[np.newaxis]))[0]
        return dict(zip(state.classes, row.tolist(), strict=True))

    def _prior(self, mass: Array) -> Array:
        if self.class_prior is not None and len(self.class_prior) != len(mass):
            raise ParameterError(f"class_prior has {len(self.class_prior)} numbers for {len(mass)} classes")
        return log_prior(mass, self.fit_prior, self.class_prior)

    def _new_state(self) -> Any:
        if not isinstance(self.fit_prior, (bool, np.bool_)):
            raise ParameterError(f"{type(self).__name__}(fit_prior={self.fit_prior!r}): expected True or False")
        if self.class_prior is not None:
            given = np.asarray(self.class_prior, dtype=object)
            valid = given.ndim == 1 and all(isinstance(p, (int, float, np.number)) and p > 0 for p in given)
            if not valid or not np.isclose(np.sum(given), 1.0):
                raise ParameterError(
                    f"{type(self).__name__}(class_prior={self.class_prior!r}): expected None, or a number > 0 for each "
                    "class that together make 1"
                )
        return super()._new_state()


class _CounterReader(Reader):
    """The native counter's names and columns, with the interface of a reader of dense rows."""

    def __init__(self, counter: _native.Counter) -> None:
        self.native = counter  # type: ignore[assignment]


@dataclasses.dataclass
class CountingState(LabelledState):
    """A native counter, and tables that were computed from it and are cached until it learns again."""

    _counter: Any = None
    _tables: Any = None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {}  # the native counter checks its own arrays


class CountingLearner(BayesLearner):
    """Counts in the native core, row after row. There is a loop for dense, one for CSR and one for named rows."""

    _statistics: ClassVar[str]
    _State = CountingState
    _positive: ClassVar[bool] = False

    alpha: float
    forgetting: float

    # -- what a subclass defines ------------------------------------------------------------------------------------

    def _formula(self) -> tuple[str, float]:
        """The name of the native score, and its smoothing."""
        raise NotImplementedError

    def _tables_of(self, learned: Mapping[str, Array], unit: float) -> Any:
        """The tables that scores are computed from, given the counts."""
        raise NotImplementedError

    def _likelihood(self, tables: Any, X: Any) -> Array:
        """ln p(x | c) of every row and class. X is an array or a CSR matrix."""
        raise NotImplementedError

    # -- learning ------------------------------------------------------------------------------------------------------

    def _numbers(self, columns: int, classes: int) -> int:
        return (3 if self._statistics == "moments" else 1) * columns * classes  # single rows are checked natively

    def _new_state(self) -> CountingState:
        state: CountingState = super()._new_state()
        self._install(state)
        return state

    def _install(self, state: CountingState) -> None:
        threshold = float(getattr(self, "binarize", 0.0))
        state._counter = _native.Counter(self._statistics, threshold, float(self.forgetting))
        state._reader = _CounterReader(state._counter)

    def _classes_known(self, state: CountingState) -> None:
        self._add_classes(state, len(state.classes))

    @staticmethod
    def _add_classes(state: CountingState, count: int) -> None:
        while state._counter.classes < count:
            state._counter.add_class()

    def _learn_single(self, state: CountingState, x: Any, label: Any, weight: float) -> None:
        code, x = state._index.get(label, len(state.classes)), state.mapping(x)
        if not state._counter.learn_one(x, code, weight):
            state._counter.learn_one(self._plain_row(x), code, weight)
        state.register(label)
        state.t += 1

    def _plain_row(self, x: Any) -> Any:
        """Another mapping or sequence as a dict or a vector of doubles."""
        return dict(x) if isinstance(x, Mapping) else vector_of(x)

    def _check_one(self, state: CountingState, x: Any) -> None:
        x = state.mapping(x)
        if state._counter.score_one(x, self._formula()[0], 1.0) is None:
            state._counter.score_one(self._plain_row(x), self._formula()[0], 1.0)

    def _learn_table(self, state: CountingState, X: Any, codes: NDArray[np.int64], weights: Array | None) -> None:
        if weights is not None and len(weights) and weights.max() > LARGEST:
            raise InputError(f"importance {weights.max():g} is too large; expected at most {LARGEST:g}")
        batch = state.read(X)
        if isinstance(batch, list):
            self._learn_mappings(state, batch, codes, weights)
            return
        self._settled(state, batch, True)
        w = np.ones(batch.rows) if weights is None else weights
        accepted = require_moderate(batch)
        self._add_classes(state, int(codes[:accepted].max(initial=-1)) + 1)
        if batch.csr is None:
            X = np.ascontiguousarray(batch.dense, dtype=np.float64)[:accepted]
            state._counter.learn(X, codes[:accepted], w[:accepted])
        elif accepted:
            data, indices, starts = merge_duplicates(batch.part(0, accepted))
            csr = (data, indices.astype(np.int64), starts.astype(np.int64))
            state._counter.learn_csr(*csr, batch.columns, codes[:accepted], w[:accepted])
        state.t += accepted
        if accepted < batch.rows:
            raise too_large(accepted)

    def _learn_mappings(
        self, state: CountingState, X: list[Any], codes: NDArray[np.int64], weights: Array | None
    ) -> None:
        accepted = len(X)
        for row, x in enumerate(X):
            if not isinstance(x, Mapping):
                raise InputError(f"X[{row}] must be a mapping of names to numbers, like those before it")
            try:
                state._counter.score_one(dict(x), self._formula()[0], 1.0)
            except NumericalError:
                accepted = min(accepted, row)
            except InputError as error:
                raise type(error)(f"row {row}: {error}") from None
        for row, x in enumerate(X[:accepted]):
            state._counter.learn_one(dict(x), int(codes[row]), 1.0 if weights is None else float(weights[row]))
            state.t += 1
        if accepted < len(X):
            raise too_large(accepted)

    def _require_domain(self, values: Array) -> None:
        if self._positive and values.size and values.min() < 0:
            raise InputError(
                f"Negative values in data passed to {type(self).__name__}: it counts, so numbers must be >= 0; "
                "use GaussianNB, or shift the features"
            )

    # -- predicting ----------------------------------------------------------------------------------------------------

    def _score_single(self, state: CountingState, x: Any) -> Array:
        formula, smoothing = self._formula()
        x = state.mapping(x)
        scores = state._counter.score_one(x, formula, smoothing)
        if scores is None:
            scores = state._counter.score_one(self._plain_row(x), formula, smoothing)
        return np.asarray(scores) + self._prior_of(state)

    def _prior_of(self, state: CountingState) -> Array:
        return self._prior(np.array(state._counter.masses()))

    def _score_table(self, state: CountingState, X: Any) -> Array:
        batch = state.read(X)
        if isinstance(batch, list):
            return np.array([self._score_single(state, x) for x in batch])
        self._settled(state, batch, False)
        accepted = require_moderate(batch)
        if accepted < batch.rows:
            raise too_large(accepted)
        if state._tables is None or state._tables[0] != (state.t, state._counter.features):
            learned = state._counter.state()
            tables = self._tables_of(learned, state._counter.unit)
            state._tables = ((state.t, state._counter.features), tables)
        return self._likelihood(state._tables[1], table_of(batch)) + self._prior_of(state)

    @property
    def class_count_(self) -> Array:
        """Examples of each class, by importance."""
        state = self._learned()
        return np.asarray(np.array(state._counter.masses()) / state._counter.unit)

    # -- files ---------------------------------------------------------------------------------------------------------

    def _to_config(self, state: CountingState) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        numbers, arrays = state.config()
        numbers |= {"unit": state._counter.unit}
        return dict(numbers), {**arrays, **state._counter.state()}

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> CountingState:
        names = {key: value for key, value in arrays.items() if key.startswith("names.")}
        numbers = {key: value for key, value in config.items() if key != "unit"}
        made = super()._from_config(numbers, names)
        assert isinstance(made, CountingState)
        reader, unit = made._reader, config["unit"]
        self._install(made)
        counter = made._counter
        counter.set_state({key: value for key, value in arrays.items() if key not in names})
        if reader.names is not None:
            counter.names = reader.names
        elif reader.columns:
            counter.settle(reader.columns)
        if counter.classes != len(made.classes) or counter.features != reader.columns or not 1.0 <= unit <= LARGEST:
            raise DamagedFileError("the counts are not those of the classes and columns")
        counter.unit, counter.t = float(unit), made.t
        return made

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.get("_state") is not None:
            state["_state"] = self._to_config(state["_state"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if state.get("_state") is not None:
            self._state = self._from_config(*state["_state"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._positive
        tags.classifier_tags.poor_score = self._statistics != "moments"  # as in scikit-learn: its checks use no counts
        return tags


def merge_duplicates(batch: Batch) -> Any:
    """The three arrays of sparse rows as doubles, columns ascending and distinct."""
    csr = batch.merged().stored
    return np.asarray(csr[0], dtype=np.float64), *csr[1:]


def table_of(batch: Batch) -> Any:
    """Rows as an array of doubles, or as a CSR matrix of SciPy."""
    if batch.csr is None:
        return np.asarray(batch.dense, dtype=np.float64)
    import scipy.sparse

    return scipy.sparse.csr_matrix(merge_duplicates(batch), shape=(batch.rows, batch.columns))
