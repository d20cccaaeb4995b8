"""`MultilabelClassifier`: every example has a set of labels, which should score above all other labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import LabelError
from ..models.linear import LinearModel
from ..models.options import LimitOptions, LinearOptions, ThresholdOptions, shared_options
from ..rows import csr
from ..rows.labels import require_no_dates
from ..scheme.rounds import Array
from .fit_options import PassOptions
from .linear import ClassWeights
from .rule_estimator import RuleClassifier

__all__ = ["MultilabelClassifier"]


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class MultilabelClassifier(
    ClassWeights, RuleClassifier[LinearModel], PassOptions, LimitOptions, ThresholdOptions, LinearOptions
):
    """Multilabel learning by any rule defined for it (Crammer et al. 2006, section 8).

    An update raises the lowest score in the set and lowers the highest score outside. Labels with a score above 0 are
    predicted.

    threshold="uncalibrated", as in the paper, moves both in one step: only the order of the labels is learned, and
    nothing ties the scores to 0. "calibrated" is calibrated label ranking (Fürnkranz et al. 2008) with the virtual
    label at 0: one score should reach +1, the other −1, each in its own step, so that 0 separates them. It is for rules
    whose steps add up (all but romma, aromma, alma, shifting and pegasos with projection). Use it to predict sets.

    y is a table of 0 and 1, one column per label, for `fit` and `partial_fit`; a collection of labels for `learn_one`.
    A plain column of labels is taken as sets of one, and the best-scoring label predicted.
    The other parameters are those of `LinearClassifier`.
    """

    fit_intercept: bool = True

    class_weight = None
    _answers_with = "labels"
    _sets = False  # True if it was fitted on a table of labels

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table and a table of labels."""
        sets = _table(y)
        self._sets = sets is not None
        if sets is None:
            return super().fit(X, y, sample_weight)
        with self._all_or_nothing():
            table = self._validated(X, reset=True)
            self._class_dtype = np.dtype(np.int64)
            model = self._begin(list(range(sets.shape[1])))
            self._passes(model, table, sets, self._weights_of(sample_weight, table, whole=True))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row."""
        sets = _table(y)
        if sets is None:
            return super().partial_fit(X, y, classes, sample_weight)
        with self._all_or_nothing():
            model = self._model
            table = self._validated(X, reset=model is None)
            if model is None:
                self._sets = True
                self._class_dtype = np.dtype(np.int64)
                model = self._begin(list(range(sets.shape[1])))
            model.learn_many(table, sets, self._weights_of(sample_weight, table))
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores, one column per label."""
        scores = self._scores(X)
        two = not self._sets and scores.shape[1] == 2
        return np.asarray(scores[:, 1] - scores[:, 0]) if two else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """A table of 0 and 1; for a model fitted on a plain column, the best-scoring labels."""
        scores = self._scores(X)
        if not self._sets and hasattr(self, "_class_dtype"):
            return np.asarray(self.classes_[np.argmax(scores, axis=1)])
        return np.asarray(scores > 0).astype(np.int64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        return LinearModel(**shared_options(self, LinearModel), task="multilabel", classes=classes)

    def _attributes(self) -> dict[str, Any]:
        return {**super()._attributes(), "sets": self._sets}

    def _set_attributes(self, attributes: Mapping[str, Any]) -> None:
        super()._set_attributes(attributes)
        self._sets = bool(attributes["sets"])


def _table(y: Any) -> NDArray[Any] | None:
    """y as a table of 0 and 1, or None if it is a plain column."""
    sets = csr.dense(y, "y")
    require_no_dates(sets)
    if sets.ndim != 2 or sets.shape[1] < 2:
        return None
    if not np.all((sets == 0) | (sets == 1)):
        raise LabelError(f"y must be a table of 0 and 1 with a column for each label, got {sets.dtype} {sets.shape}")
    return sets
