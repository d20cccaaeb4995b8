"""`LinearClassifier` and `LinearRegressor`: every rule of `onepass.rules` as a scikit-learn estimator."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..learner import LearnerTraits
from ..models import uncertainty
from ..models.base import unlocked
from ..models.linear import LinearModel
from ..models.options import ClassOptions, FeatureLimitOptions, LimitOptions, LinearOptions, shared_options
from ..scheme.rounds import Array
from .fit_options import LinearFitOptions
from .rule_estimator import RuleClassifier, RuleEstimator, RuleRegressor

__all__ = ["ClassWeights", "LinearClassifier", "LinearRegressor", "LinearWeights"]


class LinearWeights(RuleEstimator[LinearModel]):
    """The learned weights, by feature."""

    _model_kind = "LinearModel"
    _linear = True

    @property
    def weights_(self) -> dict[Any, Any]:
        """name → weight (label → name → weight with more than two classes)."""
        return self._learned().named_weights()

    def explain_one(self, x: Any, label: Any = None) -> dict[Any, float]:
        """Each feature's contribution to the score, largest first, and the intercept."""
        return self._fitted().explain_one(x, label)


class ClassWeights(LinearWeights):
    """The learned weights in scikit-learn's form: a row for each class, one row for two classes."""

    @property
    def coef_(self) -> Array:
        return self._learned().weights()[0]

    @property
    def intercept_(self) -> Array:
        return self._learned().weights()[1]


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class LinearClassifier(
    ClassWeights, RuleClassifier[LinearModel], LinearFitOptions, LimitOptions, ClassOptions, LinearOptions
):
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
    max_classes, max_features : how many classes, and features that are not hashed, there may be; more are an error.
    class_weight : label → importance, or "balanced" (`fit` only).
    mode : how `fit` goes through its data: "online"; "incremental", up to `passes` times until a test ends it
        (`stopped_by_`); "batch", one summed (or `reduction="mean"`) step a pass, for perceptron and adaline.
    passes, shuffle, random_state : how often, and in which order: False, True (a new one each pass), "random" (drawn).
    tol, tol_w : the incremental tests: five passes without the loss falling by `tol`; weights that move less than
        `tol_w` of their length. Rules driven by mistakes stop at a pass without an update.
    """

    task: str = "auto"
    fit_intercept: bool = True
    class_weight: dict[Any, float] | str | None = None

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        if self.task not in ("auto", "binary", "multiclass"):
            raise ParameterError(f"task={self.task!r}: expected one of auto, binary, multiclass")
        return LinearModel(**shared_options(self, LinearModel), classes=classes)


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class LinearRegressor(LinearWeights, RuleRegressor[LinearModel], LinearFitOptions, FeatureLimitOptions, LinearOptions):
    """A linear regressor that learns by any rule defined for regression, in one pass.

    Parameters are those of `LinearClassifier`, without classes.
    """

    fit_intercept: bool = True

    @property
    def traits(self) -> LearnerTraits:
        base, rule = super().traits, self._known_rule()
        intervals = {"predict_interval"} if rule is not None and rule.traits.spread is not None else set()
        return dataclasses.replace(base, verbs=base.verbs | intervals)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted numbers; with `return_std` also the deviation of y around each (rls, kalman, arow)."""
        means = np.asarray(self._scores(X)[:, 0])
        return (means, self._deviations(X)) if return_std else means

    def predict_interval(self, X: Any, coverage: float = 0.95) -> tuple[Array, Array]:
        """The ends of the intervals in which y falls with probability `coverage`, if the model is right."""
        means, stds = self.predict(X, return_std=True)
        return uncertainty.interval(means, stds, coverage)

    @unlocked
    def predict_one(self, x: Any, std: bool = False, base: float = 0.0) -> Any:  # type: ignore[override]
        """The prediction for one example; with `std` also the deviation of y around it. Changes nothing."""
        model = self._model or self._new_model()
        if not std:
            return model.predict_one(x, base)
        with self._lock:
            return model.predict_one(x, base), uncertainty.deviation_one(model, x)

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
        return LinearModel(**shared_options(self, LinearModel), task="regression")
