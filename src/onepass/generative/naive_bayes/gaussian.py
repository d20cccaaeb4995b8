"""`GaussianNB`: each feature is normal given the class."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...scheme.parameters import Parameters, number
from ...scheme.rounds import Array
from .base import CountingLearner

__all__ = ["GaussianNB"]

# The smallest variance of a feature that never varied, and the largest squared distance in units of the variance. With
# them the scores of all rows are finite.
SMALLEST_VARIANCE, FARTHEST = np.finfo(np.float64).tiny, 1e290


@dataclasses.dataclass(repr=False)
class _Parameters(Parameters):
    var_smoothing: float = number(1e-9, at_least=0)
    forgetting: float = number(1.0, above=0, at_most=1)


class GaussianNB(CountingLearner):
    """Mean and variance of each feature in each class, by Welford's update.

    Only numbers other than zero are counted; the zeros are added when a score is computed (Chan, Golub and LeVeque
    1983). Learning a sparse row therefore takes time for its own numbers only. A feature that a mapping does not have
    is 0.

    Parameters
    ----------
    var_smoothing : this part of the largest variance of a feature over all classes is added to all variances.
    fit_prior : whether P(c) is the frequency of the class; otherwise it is uniform.
    class_prior : P(c) of each class, in the order of `classes_`.
    forgetting : the weights of all earlier examples are multiplied by it at each example; below 1, they are forgotten.
    """

    _statistics: ClassVar[str] = "moments"
    _Parameters = _Parameters

    def __init__(
        self,
        var_smoothing: float = 1e-9,
        *,
        fit_prior: bool = True,
        class_prior: Any = None,
        forgetting: float = 1.0,
    ) -> None:
        self.var_smoothing = var_smoothing
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.forgetting = forgetting

    def _formula(self) -> tuple[str, float]:
        return "gaussian", float(self.var_smoothing)

    def _tables_of(self, learned: Mapping[str, Array], unit: float) -> Any:
        mass = learned["mass"][:, np.newaxis]
        n = np.where(mass > 0, mass, 1.0)
        there = learned["count"]
        zeros = np.maximum(mass - there, 0.0)
        mean = learned["mean"] * there / n
        variance = (learned["square"] + learned["mean"] ** 2 * (there * zeros / n)) / n
        total = max(float(mass.sum()), 1e-300)
        center = (mass * mean).sum(axis=0) / total
        largest = ((mass * (variance + (mean - center) ** 2)).sum(axis=0) / total).max(initial=0.0)
        return mean, np.maximum(variance + self.var_smoothing * largest, SMALLEST_VARIANCE)

    def _likelihood(self, tables: Any, X: Any) -> Array:
        mean, variance = tables
        X = X.toarray() if hasattr(X, "toarray") else X
        out = np.empty((len(X), len(mean)))
        with np.errstate(over="ignore"):
            for c in range(len(mean)):
                constant = np.log(2 * np.pi * variance[c]).sum()
                distance = np.minimum((X - mean[c]) ** 2 / variance[c], FARTHEST)
                out[:, c] = -0.5 * (constant + distance.sum(axis=1))
        return out

    @property
    def theta_(self) -> Array:
        """The mean of each feature in each class."""
        return np.asarray(self._tables_of(self._learned()._counter.state(), 1.0)[0])

    @property
    def var_(self) -> Array:
        """The variance of each feature in each class, smoothed."""
        return np.asarray(self._tables_of(self._learned()._counter.state(), 1.0)[1])
