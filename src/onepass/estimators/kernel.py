"""`KernelClassifier` and `KernelRegressor`: every rule with a kernel in place of the inner product, within a budget."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..errors import ParameterError
from ..kernels import Kernel
from ..kernels.budgets import Budget, make
from ..models.kernel import KernelModel
from ..models.options import ClassOptions, FeatureLimitOptions, KernelOptions, LimitOptions, shared_options
from ..scheme.rounds import Array
from .fit_options import FitOptions
from .rule_estimator import RuleClassifier, RuleEstimator, RuleRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]


class _KernelEstimator(RuleEstimator[KernelModel]):
    """The base of the classifier and the regressor."""

    _model_kind = "KernelModel"

    kernel: str | Kernel | Callable[..., Any]
    budget: str | Budget | None
    mode: str

    tol_w = None  # an expansion has no weights whose change could end `fit`

    def _kernel_options(self) -> dict[str, Any]:
        if self.mode not in ("online", "incremental"):
            raise ParameterError(f"mode={self.mode!r}: expected 'online' or 'incremental' for a kernel learner")
        return shared_options(self, KernelModel)

    @property
    def n_support_(self) -> int:
        """Support vectors: at most B under a budget."""
        return self._learned().n_support

    @property
    def support_vectors_(self) -> Any:
        return self._learned().support

    @property
    def dual_coef_(self) -> Array:
        """Their coefficients, outputs × support vectors as in scikit-learn's SVC."""
        return np.ascontiguousarray(self._learned().coefficients.T)

    @property
    def births_(self) -> NDArray[np.int64]:
        """The round in which each support vector was added."""
        return self._learned().births

    @property
    def kernel_(self) -> Kernel:
        """The kernel as it is evaluated, with γ filled in."""
        return self._learned().resolved_kernel()

    @property
    def coef_(self) -> NoReturn:
        raise AttributeError("a kernel learner has no weight per feature; see support_vectors_ and dual_coef_")

    intercept_ = weights_ = explain_one = coef_

    def _parameter_state(self) -> dict[str, Any]:
        if not isinstance(self.kernel, kernels.Precomputed) or not self._started():
            return super()._parameter_state()
        kernel, self.kernel = self.kernel, None  # type: ignore[assignment]  # the model's state has the matrix
        try:
            return super()._parameter_state()
        finally:
            self.kernel = kernel

    def _resume(self, learned: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._resume(learned, arrays)
        if self.kernel is None:
            self.kernel = self._learned().kernel


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class KernelClassifier(
    _KernelEstimator, RuleClassifier[KernelModel], FitOptions, LimitOptions, ClassOptions, KernelOptions
):
    """A kernel classifier that learns by any rule, in one pass, within a budget.

    Parameters
    ----------
    rule : a rule's name (``"pa1"``, ``"pa1:C=0.1"``) or a `Rule`.
    kernel : a kernel's name (``"rbf"``, ``"rbf:gamma=0.5"``), a `kernels.Kernel`, or a function of two vectors.
    budget : None keeps every update; otherwise a budget's name (``"bpann:B=500"``) or a `budgets.Budget`.
    task : "auto" grows with the classes that appear; "binary" and "multiclass" fix the kind.
    fit_intercept, intercept_scaling : add intercept_scaling² to the kernel.
    hash_bits : hash feature names into 2^b columns.
    multiclass, costs, max_classes, max_features, class_weight : as in `LinearClassifier`.
    mode, passes, shuffle, tol, random_state : how `fit` goes through its data; "incremental" stops by its tests.
        With several passes, ``budgets.Unlimited(merge_duplicates=True)`` counts a row that is back in its coefficient.
    """

    task: str = "auto"
    class_weight: dict[Any, float] | str | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with contextlib.suppress(ParameterError):  # `fit` refuses an unknown budget
            tags.classifier_tags.multi_class = self.task != "binary" and "multiclass" in make(self.budget).tasks
        return tags

    def _new_model(self, classes: list[Any] | None = None) -> KernelModel:
        if self.task not in ("auto", "binary", "multiclass"):
            raise ParameterError(f"task={self.task!r}: expected one of auto, binary, multiclass")
        return KernelModel(**self._kernel_options(), classes=classes)


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class KernelRegressor(_KernelEstimator, RuleRegressor[KernelModel], FitOptions, FeatureLimitOptions, KernelOptions):
    """A kernel regressor. Parameters are those of `KernelClassifier`, without classes."""

    def _new_model(self, classes: list[Any] | None = None) -> KernelModel:
        return KernelModel(**self._kernel_options(), task="regression")
