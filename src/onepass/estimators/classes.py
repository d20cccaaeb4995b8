"""The base of classifiers over one model: the first call declares the classes, and scores become predictions."""

from __future__ import annotations

from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ..errors import LabelError, ParameterError
from ..rows.labels import label_array, sorted_classes
from ..scheme.rounds import Array
from .class_weights import WeightedClasses
from .model_estimator import ModelEstimator
from .tables import class_array, read_labels

__all__ = ["ClassEstimator", "ModelClassifier"]

M = TypeVar("M", bound=Any)


class ClassEstimator(ModelEstimator[M]):
    """The labels that the first table declares, and the scores of a table as predictions."""

    def _declare_classes(self, classes: Any) -> M:
        """The model that learns: a new one with these classes, or the existing one, which must have the same."""
        model = self._model
        if model is None:
            if classes is None:
                example = "partial_fit(X, y, classes=[…])"
                raise LabelError(f"classes must be given in the first call of partial_fit: {example}")
            return self._begin_with(sorted_classes(classes))
        if classes is not None and set(sorted_classes(classes).tolist()) != set(model.classes):
            raise LabelError(f"classes={classes!r} differ from the first call's {model.classes!r}")
        return model

    def _begin_with(self, classes: NDArray[Any]) -> M:
        """A new model of these classes."""
        self._class_dtype = classes.dtype
        return self._begin(classes.tolist())

    def decision_function(self, X: Any) -> Array:
        """Scores: one per row for two classes (above 0 is the second class), one per class for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        scores = self._scores(X)
        return np.asarray(self.classes_[self._fitted().class_indices(scores)])

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the scores."""
        return class_array(self._learned().classes, getattr(self, "_class_dtype", None))


class ModelClassifier(ClassifierMixin, WeightedClasses, ClassEstimator[M]):  # type: ignore[misc]
    """A classifier whose classes may have weights."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. `classes` is required by the first call."""
        if self.class_weight == "balanced":
            raise ParameterError("class_weight='balanced' needs all labels at once: use fit, or give a dict")
        with self._all_or_nothing():
            table = self._validated(X, reset=self._model is None)
            labels = read_labels(y, table.rows)
            model = self._declare_classes(classes)
            importance = self._importance(sample_weight, table, labels, label_array(model.classes))
            model.learn_many(table, labels, importance)
        return self
