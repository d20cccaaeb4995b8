"""The uncertainty of linear models with Gaussian weights: variances xᵀΣx, standard deviations and intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ParameterError
from ..rows.batches import is_mappings
from ..scheme.rounds import Array

if TYPE_CHECKING:
    from .rule_model import RuleModel

__all__ = ["deviation_one", "deviations", "interval", "variances"]


def variances(model: RuleModel, X: Any) -> Array:
    """xᵀΣx, rows × class rows (one if they share Σ): the variance of each score. Changes nothing."""
    engine = model._engine
    if is_mappings(X):
        return np.array([engine.variance_one(x) for x in X], dtype=np.float64).reshape(len(X), -1)
    batch = model.check_rows(X)
    if model.n_features == 0:  # nothing was learned: rows are taken one by one
        rows = [engine.variance_one(batch.part(i, i + 1).single()) for i in range(batch.rows)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    out = np.zeros((batch.rows, int(engine.variances)))
    if batch.dense is not None:
        engine.variance(batch.dense, out)
    else:
        assert batch.csr is not None
        engine.variance_csr(*batch.csr, batch.columns, out, batch.distinct)
    return out


def _deviation(model: RuleModel, v: float) -> float:
    state = dict(zip(model.rule.slots, model._engine.slots, strict=True))
    return math.sqrt(model.rule.predictive_variance(v, state))


def deviations(model: RuleModel, X: Any) -> Array:
    """Regression: the standard deviation of y around each prediction, the noise of y included."""
    return np.array([_deviation(model, float(v)) for v in variances(model, X)[:, 0]])


def deviation_one(model: RuleModel, x: Any) -> float:
    return _deviation(model, float(model._engine.variance_one(x)))


def interval(means: Array, stds: Array, coverage: float) -> tuple[Array, Array]:
    """The interval in which y falls with probability `coverage`, if the model is right: lower and upper ends."""
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float)) or not 0 < coverage < 1:
        raise ParameterError(f"coverage={coverage!r}: expected a number between 0 and 1")
    from statistics import NormalDist

    reach = NormalDist().inv_cdf(0.5 + coverage / 2.0) * stds
    return means - reach, means + reach
