"""The base classes of the linear and the kernel estimators, which learn by any rule."""

from __future__ import annotations

import dataclasses
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if

from .. import rules
from ..errors import ParameterError
from ..learner import LearnerTraits
from ..models.base import locked, unlocked
from ..models.rule_model import RuleModel
from ..rows.batches import Batch, as_importance
from ..rows.labels import sorted_classes
from ..scheme.rounds import Array, Rule
from .classes import ModelClassifier
from .model_estimator import ModelEstimator
from .tables import read_labels, read_order, read_targets
from .training import Training

__all__ = ["BasedEstimator", "RuleClassifier", "RuleEstimator", "RuleRegressor"]

M = TypeVar("M", bound=RuleModel)


class RuleEstimator(ModelEstimator[M]):
    """Base of the estimators over one `RuleModel`."""

    rule: str | Rule
    hash_bits: int | None
    passes: int
    shuffle: bool | str
    random_state: Any

    _answers_with = "class"
    _linear = False

    @property
    def traits(self) -> LearnerTraits:
        verbs = frozenset({"score_one", "predict_then_learn"} | ({"explain_one"} if self._linear else set()))
        return LearnerTraits(self._answers_with, verbs, by_rule=True, linear=self._linear, ordered=True)

    def _known_rule(self) -> Rule | None:
        """The rule; None if its name or a parameter is wrong: learning refuses it, but `traits` must not raise."""
        try:
            return rules.make(self.rule)
        except ParameterError:
            return None

    @classmethod
    def of_model(cls, model: M) -> Self:
        made = super().of_model(model)
        if "costs" in cls._get_param_names():
            made.costs = model.costs  # no option of a model: they are those of its classes
        return made

    def new_model(self, classes: list[Any] | None = None) -> M:
        """An unfitted model with these parameters, for wrappers."""
        return self._new_model(classes)

    def _passes(self, model: RuleModel, table: Batch, y: NDArray[Any], importance: Array | None) -> None:
        """Make the passes of `fit` by `mode`, `passes` and `shuffle`; `stopped_by_` says which test ended it."""
        passes, order, generator = read_order(self.passes, self.shuffle, self.random_state)
        options = {name: getattr(self, name) for name in ("mode", "tol", "tol_w", "reduction") if hasattr(self, name)}
        training = Training(passes=passes, order=order, random=generator, **options)
        training.run(model, table, y, importance)
        self.stopped_by_ = training.stopped_by
        self.n_passes_ = training.passes_made
        self.losses_ = training.losses

    def flush(self) -> None:
        """Take the step of a mini-batch that is not full (rules with batch_size); `fit` does so after every pass."""
        if self._model is not None:
            self._model.flush()

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None) -> Any:
        """For each row the prediction made just before that row is learned: a prequential run in one call."""
        with self._learning() as model:
            return model.predict_then_learn(X, y, importance)


class BasedEstimator(RuleEstimator[M]):
    """Estimators with initial predictions: the score of an example is base + ⟨w, x⟩; `base` is 0 by default."""

    @unlocked
    def learn_one(self, x: Any, y: Any, importance: float = 1.0, base: float = 0.0) -> None:
        """Learn one example: x a mapping of names to numbers, strings or booleans, or a row of numbers."""
        model = self._model
        if model is None:
            with self._lock, self._learning() as model:
                model.learn_one(x, y, importance, base)
        else:
            model.learn_one(x, y, importance, base)

    def learn_many(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> None:
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        with self._learning() as model:
            model.learn_many(X, y, importance, base)

    def predict_many(self, X: Any, base: Any = None) -> Any:
        """The predictions of rows in any shape; changes nothing."""
        return (self._model or self._new_model()).predict_many(X, base)

    def predict_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None, held: NDArray[np.bool_] | None = None
    ) -> Any:
        """For each row the prediction made just before that row is learned: a prequential run in one call.

        Rows that are `held` out (a mask) are predicted in their place, and not learned: they leave no trace.
        """
        with self._learning() as model:
            return model.predict_then_learn(X, y, importance, base, held)

    @unlocked
    def score_one(self, x: Any, base: float = 0.0) -> Any:
        """The score of one example: a number for up to two classes (above 0 is the second), one per class for more."""
        return (self._model or self._new_model()).score_one(x, base)


def _has_probabilities(self: RuleClassifier[Any]) -> bool:
    if "binary" not in rules.make(self.rule).traits.probabilities:
        raise AttributeError(f"rule {self.rule!r} has no probabilities; use rule='sgd:loss=logistic'")
    return True


class RuleClassifier(ModelClassifier[M], BasedEstimator[M]):
    """Base of the classifiers over one `RuleModel`."""

    task: str

    @property
    def traits(self) -> LearnerTraits:
        base, rule = super().traits, self._known_rule()
        probabilities = {"predict_proba_one"} if rule is not None and "binary" in rule.traits.probabilities else set()
        return dataclasses.replace(base, verbs=base.verbs | {"score_then_learn"} | probabilities)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table."""
        with self._all_or_nothing():
            table = self._validated(X, reset=True)
            labels = read_labels(y, table.rows)
            classes = sorted_classes(labels)
            model = self._begin_with(classes)
            importance = self._importance(sample_weight, table, labels, classes, whole=True)
            self._passes(model, table, labels, importance)
        return self

    @unlocked
    def learn_one(self, x: Any, y: Any, importance: float = 1.0, base: float = 0.0) -> None:
        """Learn one example: x a mapping of names to numbers, strings or booleans, or a row of numbers."""
        if self.class_weight is not None:
            importance = float(as_importance([importance], 1)[0]) * self._class_weights([y])[0]  # type: ignore[index]
        model = self._model
        if model is None:
            super().learn_one(x, y, importance, base)
        else:
            model.learn_one(x, y, importance, base)

    @unlocked
    def predict_one(self, x: Any, base: float = 0.0) -> Any:
        """The prediction for one example; changes nothing. None before any class is known."""
        return (self._model or self._new_model()).predict_one(x, base)

    def learn_many(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> None:
        super().learn_many(X, y, self._weighted(y, importance), base)

    def predict_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None, held: NDArray[np.bool_] | None = None
    ) -> Any:
        return super().predict_then_learn(X, y, self._weighted(y, importance), base, held)

    def score_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None, held: NDArray[np.bool_] | None = None
    ) -> list[tuple[list[Any], Array]]:
        """The scores of each row of a table before learning it, in parts: (classes known then, their scores)."""
        with self._learning() as model:
            return model.score_then_learn(X, y, self._weighted(y, importance), base, held)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @locked
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, for rules whose loss gives them."""
        scores = self._scores(X)
        return self._fitted().probabilities(scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @locked
    def predict_proba_one(self, x: Any, base: float = 0.0) -> dict[Any, float]:
        return (self._model or self._new_model()).predict_proba_one(x, base)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One pass over the 50 rows of scikit-learn's class-weight check is too little for any rule; the accuracy
        # checks that this tag also switches off are run by tests/estimators/test_sklearn.py with the tag off.
        tags.classifier_tags.poor_score = True
        return tags


class RuleRegressor(RegressorMixin, BasedEstimator[M]):  # type: ignore[misc]
    """Base of the regressors over one `RuleModel`."""

    _answers_with = "number"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table."""
        with self._all_or_nothing():
            table = self._validated(X, reset=True)
            targets = read_targets(y, table.rows)
            importance = self._weights_of(sample_weight, table, whole=True)
            self._passes(self._begin(), table, targets, importance)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row."""
        with self._all_or_nothing():
            table = self._validated(X, reset=self._model is None)
            targets = read_targets(y, table.rows)
            importance = self._weights_of(sample_weight, table)
            model = self._model or self._begin()
            model.learn_many(table, targets, importance)
        return self

    def predict(self, X: Any) -> Any:
        """Predicted numbers."""
        return np.asarray(self._scores(X)[:, 0])

    @unlocked
    def predict_one(self, x: Any, base: float = 0.0) -> Any:
        """The prediction for one example; changes nothing."""
        return (self._model or self._new_model()).predict_one(x, base)

    def score_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None, held: NDArray[np.bool_] | None = None
    ) -> list[tuple[list[Any], Array]]:
        """The predictions for each row of a table before learning it, in parts as a classifier's scores."""
        with self._learning() as model:
            return model.score_then_learn(X, y, importance, base, held)
