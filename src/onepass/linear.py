"""`LinearClassifier` and `LinearRegressor`: every rule of `onepass.rules` as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from . import rules, uncertainty
from .batches import as_importance
from .beginning import BeginningAtBase
from .class_weights import WeightedClasses
from .core import Array, Readout, Rule
from .errors import LabelError, ParameterError
from .model import LinearModel
from .tables import class_array, read_labels, read_targets

__all__ = ["LinearClassifier", "LinearRegressor"]


def _has_probabilities(self: LinearClassifier) -> bool:
    if not rules.make(self.rule).proba("binary"):
        raise AttributeError(f"rule {self.rule!r} has no probabilities; use rule='sgd:loss=logistic'")
    return True


class LinearClassifier(ClassifierMixin, WeightedClasses, BeginningAtBase):  # type: ignore[misc]
    """A linear classifier that learns by any rule, in one pass.

    Parameters
    ----------
    rule : a rule's name (``"pa1"``, ``"pa1:C=0.1"``) or a `Rule`; `onepass models` lists them.
    task : "auto" grows with the classes that appear; "binary" and "multiclass" fix the kind.
    fit_intercept : learn the weight of a constant feature.
    intercept_scaling : the value of that feature.
    bias_in_norm : count it in ‖x‖² (scikit-learn's and River's Passive-Aggressive do not).
    readout : which weights predict: "last" or "average".
    hash_bits : None gives every feature name its own weight; b hashes names into 2^b weights.
    multiclass : with more than two classes, learn against the best "rival", or against all that score no less, shared
        "uniform" or "proportional"; "mira" (for mira) and "all" (for pa, pa1, pa2) solve for all classes at once.
    costs : what predicting the column costs where the row is true, classes in sorted order; the rival is then the one
        that costs most, and the margin to reach is the root of its cost.
    class_weight : label → importance, or "balanced" (`fit` only).
    mode : how `fit` goes through its data: "online"; "incremental", up to `passes` times until a test ends it
        (`stopped_by_`); "batch", one summed (or `reduction="mean"`) step a pass, for perceptron and adaline.
    passes, shuffle, random_state : how often, and in which order: False, True (a new one each pass), "random" (drawn).
    tol, tol_w : the incremental tests: five passes without the loss falling by `tol`; weights that move less than
        `tol_w` of their length. Rules driven by mistakes stop at a pass without an update.
    """

    def __init__(
        self,
        rule: str | Rule = "pa1",
        *,
        task: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        bias_in_norm: bool = True,
        readout: str | Readout = "last",
        hash_bits: int | None = None,
        multiclass: str = "rival",
        costs: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        mode: str = "online",
        passes: int = 1,
        shuffle: bool | str = False,
        tol: float | None = 1e-3,
        tol_w: float | None = 1e-6,
        reduction: str = "sum",
        random_state: Any = None,
    ) -> None:
        self.rule = rule
        self.task = task
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.bias_in_norm = bias_in_norm
        self.readout = readout
        self.hash_bits = hash_bits
        self.multiclass = multiclass
        self.costs = costs
        self.class_weight = class_weight
        self.mode = mode
        self.passes = passes
        self.shuffle = shuffle
        self.tol = tol
        self.tol_w = tol_w
        self.reduction = reduction
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table."""
        with self._all_or_nothing():
            table = self._validated(X, reset=True)
            labels = read_labels(y, table.rows)
            classes = np.unique(labels)
            self._class_dtype = classes.dtype
            model = self._begin(classes.tolist())
            importance = self._importance(sample_weight, table, labels, classes, whole=True)
            self._passes(model, table, labels, importance)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. `classes` is required by the first call."""
        if self.class_weight == "balanced":
            raise ParameterError("class_weight='balanced' needs all labels at once: use fit, or give a dict")
        with self._all_or_nothing():
            model = self._model
            table = self._validated(X, reset=model is None)
            labels = read_labels(y, table.rows)
            model = self._declare_classes(classes)
            importance = self._importance(sample_weight, table, labels, np.array(model.classes))
            model.learn_many(table, labels, importance)
        return self

    def _declare_classes(self, classes: Any) -> LinearModel:
        """The model to teach: a new one of these classes, or the one there is, which must have them."""
        model = self._model
        if model is None:
            if classes is None:
                example = "partial_fit(X, y, classes=[…])"
                raise LabelError(f"classes must be given in the first call of partial_fit: {example}")
            declared = np.unique(np.asarray(classes))
            self._class_dtype = declared.dtype
            return self._begin(declared.tolist())
        if classes is not None and set(np.asarray(classes).tolist()) != set(model.classes):
            raise LabelError(f"classes={classes!r} differ from the first call's {model.classes!r}")
        return model

    def learn_one(self, x: Any, y: Any, importance: float = 1.0, base: float = 0.0) -> None:
        """Learn one example: x a mapping of names to numbers, strings or booleans, or a row of numbers."""
        if self.class_weight is not None:
            importance = float(as_importance([importance], 1)[0]) * self._class_weights([y])[0]  # type: ignore[index]
        model = self._model
        if model is None:
            super().learn_one(x, y, importance, base)
        else:
            model.learn_one(x, y, importance, base)

    def predict_one(self, x: Any, base: float = 0.0) -> Any:
        """The prediction for one example; changes nothing. None before any class is known."""
        return (self._model or self._new_model()).predict_one(x, base)

    def learn_many(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> None:
        super().learn_many(X, y, self._weighted(y, importance), base)

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> Any:
        return super().predict_then_learn(X, y, self._weighted(y, importance), base)

    def score_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None
    ) -> list[tuple[list[Any], Array]]:
        """The scores of each row of a table before learning it, in parts: (classes known then, their scores)."""
        with self._learning() as model:
            return model.score_then_learn(X, y, self._weighted(y, importance), base)

    def score_one(self, x: Any, base: float = 0.0) -> Any:
        """The score of one example: a number for up to two classes (above 0 is the second), one per class for more."""
        return (self._model or self._new_model()).score_one(x, base)

    def decision_function(self, X: Any) -> Array:
        """Scores: one per row for two classes (above 0 is the second class), one per class for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        scores = self._scores(X)
        return np.asarray(self.classes_[self._fitted().class_indices(scores)])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, for rules whose loss gives them."""
        scores = self._scores(X)
        return self._fitted().probabilities(scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba_one(self, x: Any, base: float = 0.0) -> dict[Any, float]:
        return (self._model or self._new_model()).predict_proba_one(x, base)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the scores."""
        return class_array(self._learned().classes, getattr(self, "_class_dtype", None))

    @property
    def coef_(self) -> Array:
        return self._learned().weights()[0]

    @property
    def intercept_(self) -> Array:
        return self._learned().weights()[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One pass over the 50 rows of scikit-learn's class-weight check is too little for any rule; the accuracy
        # checks that this tag also switches off are run by tests/test_sklearn.py with the tag off.
        tags.classifier_tags.poor_score = True
        return tags

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        if self.task not in ("auto", "binary", "multiclass"):
            raise ParameterError(f"task={self.task!r}: expected one of auto, binary, multiclass")
        return LinearModel(
            self.rule,
            self.task,
            classes=classes,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            bias_in_norm=self.bias_in_norm,
            readout=self.readout,
            hash_bits=self.hash_bits,
            multiclass=self.multiclass,
            costs=self.costs,
        )


class LinearRegressor(RegressorMixin, BeginningAtBase):  # type: ignore[misc]
    """A linear regressor that learns by any rule defined for regression, in one pass.

    Parameters are those of `LinearClassifier`, without classes.
    """

    def __init__(
        self,
        rule: str | Rule = "pa1",
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        bias_in_norm: bool = True,
        readout: str | Readout = "last",
        hash_bits: int | None = None,
        mode: str = "online",
        passes: int = 1,
        shuffle: bool | str = False,
        tol: float | None = 1e-3,
        tol_w: float | None = 1e-6,
        reduction: str = "sum",
        random_state: Any = None,
    ) -> None:
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.bias_in_norm = bias_in_norm
        self.readout = readout
        self.hash_bits = hash_bits
        self.mode = mode
        self.passes = passes
        self.shuffle = shuffle
        self.tol = tol
        self.tol_w = tol_w
        self.reduction = reduction
        self.random_state = random_state

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

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted numbers; with `return_std` also the deviation of y around each (rls, kalman, arow)."""
        means = np.asarray(self._scores(X)[:, 0])
        return (means, self._deviations(X)) if return_std else means

    def predict_interval(self, X: Any, coverage: float = 0.95) -> tuple[Array, Array]:
        """The ends of the intervals in which y falls with probability `coverage`, if the model is right."""
        means, stds = self.predict(X, return_std=True)
        return uncertainty.interval(means, stds, coverage)

    def predict_one(self, x: Any, std: bool = False, base: float = 0.0) -> Any:
        """The prediction for one example; with `std` also the deviation of y around it. Changes nothing."""
        model = self._model or self._new_model()
        mean = model.predict_one(x, base)
        return (mean, uncertainty.deviation_one(model, x)) if std else mean

    def _deviations(self, X: Any) -> Array:
        model = self._fitted()
        by_table = hasattr(self, "n_features_in_")
        return uncertainty.deviations(model, self._validated(X, reset=False) if by_table else X)

    @property
    def coef_(self) -> Array:
        return np.asarray(self._learned().weights()[0][0])

    @property
    def intercept_(self) -> Array:
        return self._learned().weights()[1]

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        return LinearModel(
            self.rule,
            "regression",
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            bias_in_norm=self.bias_in_norm,
            readout=self.readout,
            hash_bits=self.hash_bits,
        )
