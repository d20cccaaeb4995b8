"""The base of the estimators with one model inside: scikit-learn's methods, the stream's methods, state and files.

With scikit-learn's methods (`fit`, `partial_fit`, `predict`) the number of features is fixed; with the stream's methods
(`learn_one`, `predict_one`) features and classes can grow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, Self, TypeVar

from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from ..models.base import unlocked
from ..persistence import registry
from ..scheme.rounds import Array
from .tables import TableEstimator

__all__ = ["ModelEstimator"]

M = TypeVar("M", bound=Any)


class ModelEstimator(TableEstimator, Generic[M]):
    """Base of the estimators with one model inside: linear, kernel, LASVM, ensemble."""

    _model_kind: ClassVar[str]  # a kind in the registry
    _model: M | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        """The model gets the estimator's lock, so that its native methods can be called without a second lock."""
        if name == "_model" and value is not None:
            value._join(self._lock)
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._model is not None:
            self._model._join(self._lock)

    def _new_model(self, classes: list[Any] | None = None) -> M:
        raise NotImplementedError

    # -- the scikit-learn façade -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _learning(self) -> Iterator[M]:
        """The model that learns. A new one is stored after it has learned something."""
        model = self._model or self._new_model()
        try:
            yield model
        finally:
            if model.started:
                self._model = model

    def _begin(self, classes: list[Any] | None = None) -> M:
        self._model = model = self._named(self._new_model(classes))
        return model

    def _named(self, model: M) -> M:
        """The model, with the names of columns if the first table was a data frame."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and model.hash_bits is None:
            model.name_columns([str(name) for name in names])
        return model

    def _started(self) -> bool:
        """Whether anything has been learned."""
        return self._model is not None and bool(self._model.started)

    def _fitted(self) -> M:
        if self._model is None or not self._started():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        return self._model

    def _learned(self) -> M:
        if self._model is None or not self._started():
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        return self._model

    def _scores(self, X: Any) -> Array:
        model = self._fitted()
        if not hasattr(self, "n_features_in_"):  # learned from mappings or rows, never from a table
            return self._scores_of(model, X)
        return self._scores_of(model, self._validated(X, reset=False))

    def _scores_of(self, model: M, X: Any) -> Array:
        scores: Array = model.score_many(X)
        return scores

    def __sklearn_is_fitted__(self) -> bool:
        return self._started()

    # -- the stream façade -----------------------------------------------------------------------------------------

    @unlocked
    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        """Learn one example: x a mapping of names to numbers, strings or booleans, or a row of numbers."""
        model = self._model
        if model is None:
            with self._lock, self._learning() as model:
                model.learn_one(x, y, importance)
        else:
            model.learn_one(x, y, importance)

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        with self._learning() as model:
            model.learn_many(X, y, importance)

    @unlocked
    def predict_one(self, x: Any) -> Any:
        """The prediction for one example; changes nothing. None before any class is known."""
        model = self._model
        if model is None:
            model = self._new_model()
        return model.predict_one(x)

    def predict_many(self, X: Any) -> Any:
        """The predictions of rows in any shape; changes nothing."""
        return (self._model or self._new_model()).predict_many(X)

    @property
    def t_(self) -> int:
        """The number of learned examples."""
        return int(self._learned().t)

    @property
    def k_(self) -> int:
        """The number of updates."""
        return int(self._learned().k)

    @property
    def _risky(self) -> bool:
        return self._model is not None and bool(self._model._risky)

    # -- state and files -------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of what was learned."""
        return 0 if self._model is None else int(self._model.nbytes)

    def _learned_state(self) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
        return (None, {}) if self._model is None or not self._started() else self._model.state()

    def _resume(self, learned: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._model = registry.class_of(self._model_kind).from_state(learned, arrays)

    @classmethod
    def of_model(cls, model: M) -> Self:
        """An estimator for a model that was saved without one, for example by the command."""
        options = model.options()
        made = cls(**{name: value for name, value in options.items() if name in cls._get_param_names()})
        made._lock = model._lock  # another thread may already use the model
        made._model = model
        if model.positional:
            made.n_features_in_ = model.n_features
        return made
