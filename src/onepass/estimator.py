"""What the scikit-learn estimators share: one `LinearModel` inside, two façades over it.

scikit-learn's methods (`fit`, `partial_fit`, `predict`) hold to a fixed number of features; the stream's methods
(`learn_one`, `predict_one`) let features and classes grow.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .batches import Batch, as_batch, as_importance
from .core import Array, Readout, Rule
from .errors import InputError, NumericalError, ParameterError
from .model import KIND, LinearModel
from .parameters import to_config
from .store import write
from .training import Training

__all__ = ["LinearEstimator"]


class LinearEstimator(BaseEstimator):  # type: ignore[misc]
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

    # -- the scikit-learn façade -----------------------------------------------------------------------------------

    def _validated(self, X: Any, *, reset: bool) -> Batch:
        """X after scikit-learn's checks of shape and names; the loops themselves find NaN and infinity."""
        try:
            table = validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype="numeric",  # refuses text; `as_batch` makes floats of the rest
                order="C",
                ensure_all_finite=False,
                accept_large_sparse=True,
                reset=reset,
            )
        except InputError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from None
        batch = as_batch(table)
        if hasattr(self, "feature_names_in_"):
            batch.names = [str(name) for name in self.feature_names_in_]
        return batch

    def _weights_of(self, sample_weight: Any, table: Batch, *, whole: bool = False) -> Array | None:
        """Importances; `whole` is for `fit`, which by scikit-learn's contract refuses data that weigh nothing."""
        weights = as_importance(sample_weight, table.rows)
        if whole and weights is not None and not weights.any():
            raise InputError("sample_weight is zero for every row: there is nothing to fit; give some row a weight")
        return weights

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A refused call leaves the estimator as it was; where a row overflows, the rows before it stay learned."""
        before = dict(self.__dict__)
        try:
            yield
        except NumericalError:
            raise
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

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
        if isinstance(self.passes, bool) or not isinstance(self.passes, (int, np.integer)) or self.passes < 1:
            raise ParameterError(f"passes={self.passes!r}: expected a whole number >= 1")
        orders = {False: "sequential", True: "shuffle", "random": "random"}
        if not isinstance(self.shuffle, (bool, np.bool_, str)) or self.shuffle not in orders:
            raise ParameterError(f"shuffle={self.shuffle!r}: expected False, True or 'random'")
        try:
            generator = check_random_state(self.random_state)
        except ValueError:
            expected = "None, a whole number or a numpy.random.RandomState"
            raise ParameterError(f"random_state={self.random_state!r}: expected {expected}") from None
        options = {name: getattr(self, name) for name in ("mode", "tol", "tol_w", "reduction") if hasattr(self, name)}
        order = orders[bool(self.shuffle) if not isinstance(self.shuffle, str) else self.shuffle]
        training = Training(passes=int(self.passes), order=order, random=generator, **options)
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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
        write(path, KIND, config, arrays)

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

    def _attributes(self) -> dict[str, Any]:
        """What scikit-learn's contract adds to a fitted estimator."""
        out: dict[str, Any] = {}
        if hasattr(self, "n_features_in_"):
            out["n_features_in_"] = int(self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            out["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        return out

    def _adopt(self, model: LinearModel, attributes: dict[str, Any]) -> Self:
        self._model = model
        if "n_features_in_" in attributes:
            self.n_features_in_ = attributes["n_features_in_"]
        elif model.positional:
            self.n_features_in_ = model.n_features
        if "feature_names_in_" in attributes:
            self.feature_names_in_ = np.array(attributes["feature_names_in_"], dtype=object)
        return self
