"""Reductions: multiclass and cost-sensitive problems solved by learners that know only two classes, or one number.

A reduction turns each example into examples for its base learners, and their answers into one answer; a theorem says
what the base learners' regret costs there. They compose: ``FilterTree(ImportanceSampling(base, c_max=5))``.

================================  ===========================  ========================================
reduction                         base must take               bases for K classes; used to predict
================================  ===========================  ========================================
OneVsAll                          two classes                  K; K
OneVsOne                          two classes                  K(K−1)/2; all
ErrorCorrectingOutputCodes        two classes                  as many as the code has columns; all
CostSensitive method="oaa"        a number                     K; K
CostSensitive method="all_pairs"  two classes, importances     K(K−1)/2; all
CostSensitive method="expansion"  classes, importances         1; 1
FilterTree                        two classes, importances     K−1; at most ⌈log₂ K⌉
ImportanceSampling                anything, no importances     `samples`; all
================================  ===========================  ========================================

A base is a rule or its name, a `LinearClassifier` or `LinearRegressor`, a `LinearModel`, another reduction, or any
object with `learn_one` and `predict_one` (River's learners). A reduction copies its parameters, not what it has
learned. Importing this module does not import scikit-learn; using one of its classes does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import lazily_loaded

if TYPE_CHECKING:
    from .estimators import (
        CostSensitive,
        ErrorCorrectingOutputCodes,
        FilterTree,
        ImportanceSampling,
        OneVsAll,
        OneVsOne,
    )

__all__ = [
    "CostSensitive",
    "ErrorCorrectingOutputCodes",
    "FilterTree",
    "ImportanceSampling",
    "OneVsAll",
    "OneVsOne",
]


__getattr__ = lazily_loaded(__name__, dict.fromkeys(__all__, "estimators"))


def __dir__() -> list[str]:
    return __all__
