"""`LaSVMClassifier`: a kernel SVM that learns example by example (Bordes, Ertekin, Weston, Bottou 2005)."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from . import kernels, store
from .batches import as_importance
from .class_weights import WeightedClasses
from .core import Array
from .errors import DamagedFileError, LabelError, ParameterError
from .lasvm_model import KIND, LasvmModel, Settings, kernel_config, kernel_from
from .parameters import Parameters, choice, flag, number, to_config
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


class LaSVMClassifier(ClassifierMixin, WeightedClasses):  # type: ignore[misc]
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

    _model: LasvmModel | None = None

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
                declared = np.unique(np.asarray(classes))
                model = self._new_model(declared.tolist())
                self._class_dtype = declared.dtype
            elif classes is not None and set(np.asarray(classes).tolist()) != set(model.classes):
                raise LabelError(f"classes={classes!r} differ from the first call's {model.classes!r}")
            importance = self._importance(sample_weight, table, labels, np.array(model.classes))
            with self._kept(model):
                model.learn_many(table, labels, importance)
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores: one per row for two classes (above 0 is the second class), one per class for more."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        scores = self._scores(X)
        return np.asarray(self.classes_[self._fitted().class_indices(scores)])

    def _scores(self, X: Any) -> Array:
        model = self._fitted()
        if not hasattr(self, "n_features_in_"):  # learned by names or rows, never by table
            return model.scores(X)
        return model.scores(self._validated(X, reset=False))

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

    def predict_one(self, x: Any) -> Any:
        """The prediction for one example; changes nothing. None before any class is known."""
        return (self._model or self._new_model()).predict_one(x)

    def predict_many(self, X: Any) -> list[Any]:
        return (self._model or self._new_model()).predict_many(X)

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

    @contextlib.contextmanager
    def _learning(self) -> Iterator[LasvmModel]:
        model = self._model or self._new_model()
        with self._kept(model):
            yield model

    @contextlib.contextmanager
    def _kept(self, model: LasvmModel) -> Iterator[None]:
        """A new model is kept once it has learned something."""
        try:
            yield
        finally:
            if model.started:
                self._model = model

    def _new_model(self, classes: list[Any] | None = None) -> LasvmModel:
        self._checked(_Fit)
        read_order(self.passes, False, self.random_state)
        return LasvmModel(self._kernel(), self._checked(Settings), classes)

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

    def _started(self) -> bool:
        return self._model is not None and self._model.started

    def __sklearn_is_fitted__(self) -> bool:
        return self._started()

    def _fitted(self) -> LasvmModel:
        if self._model is None or not self._started():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        return self._model

    def _learned(self) -> LasvmModel:
        if self._model is None or not self._started():
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        return self._model

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
    def t_(self) -> int:
        """Examples seen."""
        return self._learned().t

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

    # -- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator and all it has learned; `onepass.load` resumes bit for bit."""
        model = self._fitted()
        config, arrays = model.state()
        config |= {"kernel": kernel_config(model.kernel), "params": self._config(), "fitted": self._attributes()}
        store.write(path, KIND, config, arrays)

    def _config(self) -> dict[str, Any]:
        params = {name: to_config(value) for name, value in self.get_params(deep=False).items()}
        if isinstance(params["class_weight"], dict):
            table = params["class_weight"]
            weights = [float(weight) for weight in table.values()]
            params["class_weight"] = {"labels": store.encode_values(list(table)), "weights": weights}
        if not isinstance(params["random_state"], (int, type(None))):
            params["random_state"] = None  # a generator's state is not kept; it is used by fit alone
        return params

    @classmethod
    def from_state(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The estimator that `save` wrote."""
        try:
            if not isinstance(config["params"], dict) or not isinstance(config["fitted"], dict):
                raise TypeError("params and fitted must be mappings")
            params = dict(config["params"])
            if isinstance(params["kernel"], dict):
                params["kernel"] = kernel_from(params["kernel"])
            if isinstance(params["class_weight"], dict):
                labels, weights = (
                    store.decode_values(params["class_weight"]["labels"]),
                    params["class_weight"]["weights"],
                )
                params["class_weight"] = dict(zip(labels, weights, strict=True))
            estimator = cls(**params)
            estimator._model = LasvmModel.from_state(kernel_from(config["kernel"]), config, arrays)
            estimator._set_attributes(config["fitted"])
        except (KeyError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"the estimator cannot be made again ({error}); restore it from a backup") from None
        return estimator
