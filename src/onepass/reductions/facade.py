"""The two façades of a reduction: scikit-learn's methods, and the stream's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..errors import LabelError, ParameterError, RowError
from ..estimators.tables import TableEstimator, class_array, read_labels, read_order
from ..learner import LearnerTraits, traits_of
from ..persistence import store
from ..rows.batches import Batch
from ..rows.labels import alike, sorted_classes
from ..scheme.rounds import Array
from .examples import read_one, read_rows
from .learners import BaseLearner, ForeignLearner, RuleLearner
from .scheme import Reduction

__all__ = ["ReductionEstimator", "ScoringEstimator"]


class ReductionEstimator(TableEstimator):
    """Base of the reductions: one `Reduction` inside, two façades over it.

    The number of passes of `fit`, and their order, are those of the base (`passes`, `shuffle`, `random_state`).
    """

    base: Any
    classes: Any
    _core: Reduction | None = None
    _divides = False  # can it be the base of a reduction to two classes?

    def _make(self, base: Any, classes: list[Any] | None) -> Reduction:
        raise NotImplementedError

    def _new_core(self, classes: list[Any] | None = None) -> Reduction:
        return self._make(clone(self.base, safe=False), self._declared_classes() if classes is None else classes)

    def _declared_classes(self) -> list[Any] | None:
        return None if self.classes is None else listed(self.classes)

    def _new_learner(self, task: str, classes: list[Any] | None, owner: str) -> BaseLearner:
        """This reduction as the base of another one."""
        if task != "multiclass":
            wanted = {"binary": "a learner of two classes", "regression": "a regressor"}[task]
            raise ParameterError(
                f"{owner} needs {wanted} as its base, but {type(self).__name__} is a reduction of many classes; "
                f"give {owner} the base of {type(self).__name__} itself"
            )
        return self._new_core(classes)

    # -- the scikit-learn façade -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn a table from scratch."""
        with self._all_or_nothing():
            table = self._validated(X, reset=True)
            answers = self._answers(y, table.rows)
            importance = self._weights_of(sample_weight, table, whole=True)
            self._core = core = self._new_core(self._classes_of(answers))
            for order in _orders(self.base, table.rows):
                self._learn(core, table, answers, importance, order)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. The first call must declare the classes."""
        with self._all_or_nothing():
            core = self._core
            table = self._validated(X, reset=core is None)
            answers = self._answers(y, table.rows)
            if core is None:
                if classes is None and self.classes is None:
                    raise LabelError(
                        "classes must be given in the first call of partial_fit: partial_fit(X, y, classes=[…])"
                    )
                core = self._new_core(self._declared(classes, answers))
            elif classes is not None and set(listed(classes)) != set(core.labels.values):
                raise LabelError(f"classes={classes!r} differ from the first call's {core.labels.values!r}")
            importance = self._weights_of(sample_weight, table)
            self._core = core
            self._learn(core, table, answers, importance, None)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        core, rows = self._core_and_rows(X)
        return np.asarray(self.classes_[core.choose_rows(rows)])

    def _core_and_rows(self, X: Any) -> tuple[Reduction, Any]:
        """The fitted reduction and the validated rows to predict."""
        core = self._fitted()
        rows = self._validated(X, reset=False) if hasattr(self, "n_features_in_") else read_rows(X)
        core.check_rows(rows)
        return core, rows

    def _answers(self, y: Any, rows: int) -> Any:
        return read_labels(y, rows)

    def _classes_of(self, answers: Any) -> list[Any] | None:
        """The classes that `fit` declares: those of the constructor, or those that it finds."""
        return self._declared(None if self.classes is not None else answers, answers)

    def _declared(self, classes: Any, answers: Any) -> list[Any] | None:
        if self.classes is not None:
            if classes is not None and set(listed(classes)) != set(listed(self.classes)):
                raise LabelError(f"classes={classes!r} differ from the constructor's {self.classes!r}")
            return None
        distinct = sorted_classes(classes)
        self._class_dtype = distinct.dtype
        return list(distinct.tolist())

    def _learn(
        self, core: Reduction, table: Batch, answers: Any, importance: Array | None, order: NDArray[Any] | None
    ) -> None:
        if order is not None:
            table.require_finite()  # here, where rows still have the user's row numbers
            table, importance = table.take(order), None if importance is None else importance[order]
            answers = [answers[i] for i in order.tolist()] if isinstance(answers, list) else answers[order]
        try:
            core.learn_many(table, answers, importance)
        except RowError as error:
            raise (error if order is None else error.at(int(order[error.row]))) from None

    def _fitted(self) -> Reduction:
        if self._core is None or not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        return self._core

    def __sklearn_is_fitted__(self) -> bool:
        return self._core is not None and self._core.t > 0

    # -- the stream façade -----------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        """Learn one example: x a mapping of names to numbers, strings or booleans, or a row of numbers."""
        core = self._core or self._new_core()
        core.learn(x, y, importance)
        self._core = core

    def predict_one(self, x: Any) -> Any:
        """The prediction for one example; changes nothing. None before any class is known."""
        return (self._core or self._new_core()).predict(x)

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn rows in order, bit for bit the loop of `learn_one`: an array, a frame, a CSR matrix, or mappings."""
        core = self._core or self._new_core()
        try:
            core.learn_many(X, y, importance)
        finally:
            if core.t > 0:
                self._core = core

    def predict_many(self, X: Any) -> Any:
        """An array of labels or numbers (a list where labels are of mixed types)."""
        labels = (self._core or self._new_core()).predict_rows(read_rows(X))
        return np.array(labels) if isinstance(labels, list) and alike(labels) else labels

    # -- what was learned ------------------------------------------------------------------------------------------

    def _learned(self) -> Any:
        if self._core is None or self._core.t == 0:
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        return self._core

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the scores."""
        return class_array(self._learned().labels.values, getattr(self, "_class_dtype", None))

    @property
    def t_(self) -> int:
        """Examples seen."""
        return int(self._learned().t)

    @property
    def learners_(self) -> Any:
        """The bases that predict: `LinearModel` where the base is linear."""
        return [public_learner(learner) for learner in self._learned().learners]

    # -- the contract of a learner ---------------------------------------------------------------------------------

    @property
    def traits(self) -> LearnerTraits:
        verbs = frozenset({"score_one"}) if hasattr(self, "score_one") else frozenset()
        answers = "number" if self._predicts_numbers() else "class"
        return LearnerTraits(answers, verbs, ordered=True, binary=self._divides)

    def _predicts_numbers(self) -> bool:
        return False

    @property
    def _risky(self) -> bool:
        return self._core is not None and self._core.risky

    @property
    def nbytes(self) -> int:
        """Bytes of what all bases have learned."""
        return 0 if self._core is None else self._core.nbytes

    def _learned_state(self) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
        return self._core.state() if self._core is not None and self._core.t > 0 else (None, {})

    def _resume(self, learned: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        core = self._new_core(store.decode_values(learned["labels"]) if learned["declared"] else None)
        core.restore(learned, arrays)
        self._core = core


class ScoringEstimator(ReductionEstimator):
    """Reductions that score every label."""

    def decision_function(self, X: Any) -> Array:
        """Scores: one per row for two classes (above 0 is the second class), one per class for more."""
        core, rows = self._core_and_rows(X)
        scores = core.label_scores_rows(rows)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def score_one(self, x: Any) -> dict[Any, float]:
        """label → score."""
        core = self._core or self._new_core()
        x = read_one(x)
        core.check(x)
        return dict(zip(core.labels.values, core.label_scores(x).tolist(), strict=True)) if len(core.labels) else {}


def _orders(base: Any, rows: int) -> Iterator[NDArray[Any] | None]:
    """The order of the rows in each pass of `fit`, by the parameters of the innermost base; None keeps their order."""
    while hasattr(base, "_new_learner"):  # a reduction
        base = base.base
    traits = traits_of(base)
    if traits is None or not traits.ordered:  # in other learners these parameters may mean something else
        yield None
        return
    passes, order, generator = read_order(base.passes, base.shuffle, base.random_state)
    mode = getattr(base, "mode", "online")
    if mode != "online":
        raise ParameterError(f"a reduction goes through its data online; its base has mode={mode!r}")
    for _ in range(passes):
        if order == "random":
            yield generator.randint(rows, size=rows)
        else:
            yield generator.permutation(rows) if order == "shuffle" else None


def listed(classes: Any) -> list[Any]:
    if isinstance(classes, (str, bytes)):
        raise LabelError(f"classes={classes!r}: expected a list of labels")
    return list(np.asarray(classes).tolist()) if isinstance(classes, np.ndarray) else list(classes)


def public_learner(learner: BaseLearner) -> Any:
    if isinstance(learner, RuleLearner):
        return learner.model
    return learner.learner if isinstance(learner, ForeignLearner) else learner
