"""What the scikit-learn estimators share: one `LinearModel` inside, two façades over it.

scikit-learn's methods (`fit`, `partial_fit`, `predict`) hold to a fixed number of features; the stream's methods
(`learn_one`, `predict_one`) let features and classes grow.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from .batches import Batch
from .core import Array, Readout, Rule
from .model import LinearModel
from .parameters import to_config
from .store import write
from .tables import TableEstimator, read_order
from .training import Training

__all__ = ["LinearEstimator"]


class LinearEstimator(TableEstimator):
    """Base of the estimators with linear weights."""

    rule: str | Rule
    fit_intercept: bool
    intercept_scaling: float
    bias_in_norm: bool
    readout: str | Readout
    hash_bits: int | None
    passes: int
    shuffle: bool | str
    random_state: Any

    _model: LinearModel | None = None

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        raise NotImplementedError

    def new_model(self, classes: list[Any] | None = None) -> LinearModel:
        """A model with these parameters that has learned nothing: what a reduction teaches."""
        return self._new_model(classes)

    # -- the scikit-learn façade -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _learning(self) -> Iterator[LinearModel]:
        """The model to teach. A new one is kept once it has learned something."""
        model = self._model or self._new_model()
        try:
            yield model
        finally:
            if model.started:
                self._model = model

    def _begin(self, classes: list[Any] | None = None) -> LinearModel:
        self._model = self._named(self._new_model(classes))
        return self._model

    def _named(self, model: LinearModel) -> LinearModel:
        """The model, its columns named where a data frame named them."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None and model.hash_bits is None:
            model.name_columns([str(name) for name in names])
        return model

    def _passes(self, model: LinearModel, table: Batch, y: NDArray[Any], importance: Array | None) -> None:
        """Go through the data as `mode`, `passes` and `shuffle` say; `stopped_by_` tells which test ended it."""
        passes, order, generator = read_order(self.passes, self.shuffle, self.random_state)
        options = {name: getattr(self, name) for name in ("mode", "tol", "tol_w", "reduction") if hasattr(self, name)}
        training = Training(passes=passes, order=order, random=generator, **options)
        training.run(model, table, y, importance)
        self.stopped_by_ = training.stopped_by
        self.n_passes_ = training.passes_made
        self.losses_ = training.losses

    def _started(self) -> bool:
        """Has anything been learned?"""
        return self._model is not None and self._model.started

    def _fitted(self) -> LinearModel:
        if self._model is None or not self._started():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call fit, partial_fit or learn_one first"
            )
        return self._model

    def _scores(self, X: Any) -> Array:
        model = self._fitted()
        if not hasattr(self, "n_features_in_"):  # learned by names or rows, never by table
            return model.score_many(X)
        return model.score_many(self._validated(X, reset=False))

    def __sklearn_is_fitted__(self) -> bool:
        return self._started()

    # -- the stream façade -----------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        """Learn one example: x a mapping of names to numbers, strings or booleans, or a row of numbers."""
        model = self._model
        if model is None:
            with self._learning() as model:
                model.learn_one(x, y, importance)
        else:
            model.learn_one(x, y, importance)

    def predict_one(self, x: Any) -> Any:
        """The prediction for one example; changes nothing. None before any class is known."""
        model = self._model
        if model is None:
            model = self._new_model()
        return model.predict_one(x)

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        with self._learning() as model:
            model.learn_many(X, y, importance)

    def flush(self) -> None:
        """Take the step of a mini-batch that is not full (rules with batch_size); `fit` does so after every pass."""
        if self._model is not None:
            self._model.flush()

    def predict_many(self, X: Any) -> Any:
        return (self._model or self._new_model()).predict_many(X)

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None) -> Any:
        """For each row the prediction made just before that row is learned: a prequential run in one call."""
        with self._learning() as model:
            return model.predict_then_learn(X, y, importance)

    def explain_one(self, x: Any, label: Any = None) -> dict[Any, float]:
        """Each feature's contribution to the score, largest first, and the intercept."""
        return self._fitted().explain_one(x, label)

    # -- what was learned ------------------------------------------------------------------------------------------

    @property
    def weights_(self) -> dict[Any, Any]:
        """name → weight (label → name → weight with more than two classes)."""
        return self._learned().named_weights()

    @property
    def t_(self) -> int:
        """Examples seen."""
        return self._learned().t

    @property
    def k_(self) -> int:
        """Updates made."""
        return self._learned().k

    def _learned(self) -> LinearModel:
        if self._model is None or not self._started():
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        return self._model

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator and all it has learned; `onepass.load` resumes bit for bit."""
        config, arrays = self._state_with_parameters()
        write(path, self._fitted().kind, config, arrays)

    def _state_with_parameters(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file holds: the model, and how the estimator was made."""
        model = self._fitted()
        model.extra = {"estimator": type(self).__name__, "params": self._config(), "fitted": self._attributes()}
        return model.state()

    def _config(self) -> dict[str, Any]:
        """The constructor's parameters as JSON."""
        from .store import encode_values

        plain = self.get_params(deep=False)
        params = {
            name: value.tolist() if hasattr(value, "tolist") else to_config(value) for name, value in plain.items()
        }
        if isinstance(params.get("class_weight"), dict):
            table = params["class_weight"]
            weights = [float(weight) for weight in table.values()]
            params["class_weight"] = {"labels": encode_values(list(table)), "weights": weights}
        if not isinstance(params.get("random_state"), (int, type(None))):
            params["random_state"] = None  # a generator's state is not kept; it is used by fit alone
        return params

    def _adopt(self, model: LinearModel, attributes: dict[str, Any]) -> Self:
        self._model = model
        if model.positional and "fitted" not in model.extra:  # saved without an estimator: by the command, or a model
            self.n_features_in_ = model.n_features
        self._set_attributes(attributes)
        return self
