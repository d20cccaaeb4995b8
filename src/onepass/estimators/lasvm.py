"""`LaSVMClassifier`: a kernel SVM that learns example by example (Bordes, Ertekin, Weston, Bottou 2005)."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from .. import kernels
from ..errors import LabelError, ParameterError
from ..learner import LearnerTraits
from ..models.lasvm import LasvmModel, Settings
from ..rows.batches import as_importance
from ..rows.labels import label_array, sorted_classes
from ..scheme.parameters import Parameters, choice, flag, number
from ..scheme.rounds import Array
from .class_weights import WeightedClasses
from .model_estimator import ModelEstimator
from .selection import SELECTIONS, Visit
from .tables import class_array, read_labels, read_order

__all__ = ["LaSVMClassifier"]


@dataclasses.dataclass(repr=False)
class _Fit(Parameters):
    """What `fit` alone reads, checked."""

    selection: str = choice("random", *SELECTIONS)
    candidates: int = number(50, at_least=1, integer=True)
    max_examples: int | None = number(None, at_least=1, integer=True)
    max_support: int | None = number(None, at_least=1, integer=True)
    max_seconds: float | None = number(None, above=0)
    finish: bool = flag(True)


class LaSVMClassifier(ClassifierMixin, WeightedClasses, ModelEstimator[LasvmModel]):  # type: ignore[misc]
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

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | kernels.Kernel | Callable[..., Any] = "rbf",
        *,
        gamma: float | None = None,
        tau: float = 1e-3,
        cache_mb: float = 256,
        multiclass: str = "ovr",
        reprocess_steps: int = 1,
        reprocess_until: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        passes: int = 1,
        selection: str = "random",
        candidates: int = 50,
        max_examples: int | None = None,
        max_support: int | None = None,
        max_seconds: float | None = None,
        finish: bool = True,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.tau = tau
        self.cache_mb = cache_mb
        self.multiclass = multiclass
        self.reprocess_steps = reprocess_steps
        self.reprocess_until = reprocess_until
        self.class_weight = class_weight
        self.passes = passes
        self.selection = selection
        self.candidates = candidates
        self.max_examples = max_examples
        self.max_support = max_support
        self.max_seconds = max_seconds
        self.finish = finish
        self.random_state = random_state

    # -- the scikit-learn façade -------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table."""
        with self._all_or_nothing():
            options = self._checked(_Fit)
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
            limits = {name: getattr(options, name) for name in ("max_examples", "max_support", "max_seconds")}
            visit = Visit(options.selection, random, passes, int(options.candidates), **limits)
            self._class_dtype = classes.dtype
            self._model = model
            try:
                visit.run(model, model.fitting(table), codes.astype(np.int64), weights)
            finally:
                model.engine.forget_ids()  # the stream that may follow knows nothing of this table
            self.stopped_by_ = visit.stopped_by
            if options.finish:
                self.finish_now()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. `classes` is required by the first call."""
        if self.class_weight == "balanced":
            raise ParameterError("class_weight='balanced' needs all labels at once: use fit, or give a dict")
        with self._all_or_nothing():
            model = self._model
            table = self._validated(X, reset=model is None)
            labels = read_labels(y, table.rows)
            if model is None:
                if classes is None:
                    example = "partial_fit(X, y, classes=[…])"
                    raise LabelError(f"classes must be given in the first call of partial_fit: {example}")
                declared = sorted_classes(classes)
                model = self._new_model(declared.tolist())
                self._class_dtype = declared.dtype
            elif classes is not None and set(sorted_classes(classes).tolist()) != set(model.classes):
                raise LabelError(f"classes={classes!r} differ from the first call's {model.classes!r}")
            importance = self._importance(sample_weight, table, labels, label_array(model.classes))
            self._model = model
            model.learn_many(table, labels, importance)
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: one per row for two classes (above 0 is the second class), one per class for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        scores = self._scores(X)
        return np.asarray(self.classes_[self._fitted().class_indices(scores)])

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
        self._checked(_Fit)
        read_order(self.passes, False, self.random_state)
        return LasvmModel(self._kernel(), classes=classes, **self._checked(Settings).get_params())

    def _checked(self, kind: type[Any]) -> Any:
        """Some of the parameters, in a dataclass that refuses what is out of range."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(kind)}
        try:
            return kind(**given)
        except ParameterError as error:
            raise ParameterError(str(error).replace(f"{kind.__name__}(", "LaSVMClassifier(", 1)) from None

    def _kernel(self) -> kernels.Kernel:
        kernel = kernels.make(self.kernel)
        if self.gamma is None:
            return kernel
        if not hasattr(kernel, "gamma"):
            raise ParameterError(f"gamma={self.gamma!r}: {kernel!r} has no gamma; leave it out")
        return type(kernel)(**{**kernel.get_params(), "gamma": self.gamma})

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the scores."""
        return class_array(self._learned().classes, getattr(self, "_class_dtype", None))

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
