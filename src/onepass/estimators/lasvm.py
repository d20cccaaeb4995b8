"""`LaSVMClassifier`: a kernel SVM that learns example by example (Bordes, Ertekin, Weston, Bottou 2005)."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import kernels
from ..errors import ParameterError
from ..learner import LearnerTraits
from ..models.lasvm import LasvmModel
from ..models.lasvm_options import LasvmOptions
from ..models.options import shared_options
from ..rows.batches import as_importance
from ..scheme.parameters import check_fields, choice, flag, number
from ..scheme.rounds import Array
from .classes import ModelClassifier
from .fit_options import RepeatOptions
from .selection import SELECTIONS, Visit
from .tables import read_labels, read_order

__all__ = ["LaSVMClassifier"]


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class LaSVMClassifier(ModelClassifier[LasvmModel], RepeatOptions, LasvmOptions):
    """A support vector machine learned online: one pass comes near the batch solution, more converge to it.

    `fit` goes through a stored set; `partial_fit` and `learn_one` are a stream, in which every arrival is new and which
    `finish` may polish at any time.

    Parameters
    ----------
    C : the bound of the coefficients; an example's importance multiplies it.
    kernel : one of `onepass.kernels`, its name (``"rbf"``, ``"polynomial:degree=3"``) or a function of two vectors.
    gamma : the kernel's γ; by default 1/d where it has one that is not given, d the number of features.
    tau : a pair of coefficients is moved while its gradients differ by more.
    cache_mb : megabytes for kernel rows; those used longest ago go first. No result depends on it.
    multiclass : more than two classes: one against the rest ("ovr") or one against one ("ovo").
    reprocess_steps, reprocess_until : how often REPROCESS runs after each example; then on while δ is larger.
    class_weight : label → importance, or "balanced" (`fit` only).
    passes : how often `fit` goes through its data.
    selection : which unseen example is next in `fit`: "random", "gradient", "active", "autoactive".
    candidates : of how many drawn "gradient" and "active" take the best.
    max_examples, max_support, max_seconds : ends `fit` early; `stopped_by_` tells.
    finish : REPROCESS until δ ≤ τ after the last pass of `fit`.
    random_state : of the order in `fit`.
    """

    _model_kind = "LasvmModel"
    traits = LearnerTraits("class", frozenset({"score_one"}))

    gamma: float | None = None
    class_weight: dict[Any, float] | str | None = None
    selection: str = choice("random", *SELECTIONS, kw_only=True)
    candidates: int = number(50, at_least=1, integer=True, kw_only=True)
    max_examples: int | None = number(None, at_least=1, integer=True, kw_only=True)
    max_support: int | None = number(None, at_least=1, integer=True, kw_only=True)
    max_seconds: float | None = number(None, above=0, kw_only=True)
    finish: bool = flag(True)
    random_state: Any = None

    # -- the scikit-learn façade -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table."""
        with self._all_or_nothing():
            check_fields("LaSVMClassifier", self)
            passes, _, random = read_order(self.passes, False, self.random_state)
            table = self._validated(X, reset=True)
            labels = read_labels(y, table.rows)
            classes, codes = np.unique(labels, return_inverse=True)
            model = self._new_model(classes.tolist())
            weights = self._importance(sample_weight, table, labels, classes, whole=True)
            weights = np.ones(table.rows) if weights is None else weights
            model.require_finite_bounds(weights)
            table = model.table(table)
            model.begin(table.columns, table.csr is not None)
            limits = {name: getattr(self, name) for name in ("max_examples", "max_support", "max_seconds")}
            visit = Visit(self.selection, random, passes, int(self.candidates), **limits)
            self._class_dtype = classes.dtype
            self._model = model
            try:
                visit.run(model, model.fitting(table), codes.astype(np.int64), weights)
            finally:
                model.engine.forget_ids()  # the stream that may follow knows nothing of this table
            self.stopped_by_ = visit.stopped_by
            if self.finish:
                self.finish_now()
        return self

    def _scores_of(self, model: LasvmModel, X: Any) -> Array:
        return model.scores(X)

    # -- the stream façade -------------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        """Learn one example: x a row of numbers, or a mapping of names to numbers, strings or booleans."""
        weight = self._weighted([y], as_importance([importance], 1))[0]
        with self._learning() as model:
            model.learn_one(x, y, weight)

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        with self._learning() as model:
            model.learn_many(X, y, self._weighted(y, importance))

    def score_one(self, x: Any) -> Any:
        """The score of one example: a number for up to two classes (above 0 is the second), one per class for more."""
        return (self._model or self._new_model()).score_one(x)

    def finish_now(self) -> Self:
        """REPROCESS until no pair in S violates by more than τ. The stream may go on afterwards."""
        engine = self._fitted().engine
        left = engine.finish()
        if left:
            warnings.warn(
                f"{left} of {engine.machines} machines violate by more than tau={self.tau:g} after 100 |S| steps; "
                "scale the features, make C smaller or tau larger",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _new_model(self, classes: list[Any] | None = None) -> LasvmModel:
        check_fields("LaSVMClassifier", self)
        read_order(self.passes, False, self.random_state)
        return LasvmModel(**shared_options(self, LasvmModel) | {"kernel": self._kernel()}, classes=classes)

    def _named(self, model: LasvmModel) -> LasvmModel:
        return model  # its first table names its columns

    def _kernel(self) -> kernels.Kernel:
        kernel = kernels.make(self.kernel)
        if self.gamma is None:
            return kernel
        if not hasattr(kernel, "gamma"):
            raise ParameterError(f"gamma={self.gamma!r}: {kernel!r} has no gamma; leave it out")
        return type(kernel)(**{**kernel.get_params(), "gamma": self.gamma})

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def n_support_(self) -> int:
        """Stored vectors with a coefficient other than 0 in some machine."""
        return self._learned().engine.support

    @property
    def n_stored_(self) -> int:
        """Stored vectors: the set S, in which some have the coefficient 0 in every machine."""
        return self._learned().engine.stored

    @property
    def support_vectors_(self) -> Any:
        return self._learned().expansion()[0]

    @property
    def dual_coef_(self) -> Array:
        """α of the support vectors, a row for each machine."""
        return self._learned().expansion()[1]

    @property
    def intercept_(self) -> Array:
        """b of each machine."""
        return np.array(self._learned().engine.biases())

    @property
    def objective_(self) -> Array:
        """W = Σ α y − ½ Σ α α k of each machine."""
        return np.array(self._learned().engine.objectives())

    @property
    def delta_(self) -> Array:
        """The largest violation on S at the last REPROCESS, of each machine; infinite with one class only."""
        return np.array(self._learned().engine.deltas())

    @property
    def k_(self) -> int:
        """Steps made, in all machines."""
        return self._learned().engine.steps()

    @property
    def kernel_evaluations_(self) -> int:
        """Kernel values computed to learn, since this object was made or loaded. Depends on cache and chunks."""
        return self._learned().engine.evaluations

    @property
    def cache_bytes_(self) -> int:
        """Bytes of kernel rows held now."""
        return self._learned().engine.cache_bytes
