"""The base of all estimators that learn from tables: scikit-learn's contract."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags, TargetTags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from ..errors import InputError, LabelError, ParameterError, RowError
from ..models.base import EstimatorBase, restore
from ..rows.batches import Batch, as_batch, as_importance, column_names, require_reals
from ..rows.labels import as_targets, label_array, plain, require_no_dates
from ..scheme.rounds import Array

__all__ = [
    "TableEstimator",
    "as_classifier",
    "as_regressor",
    "class_array",
    "read_labels",
    "read_order",
    "read_passes",
    "read_targets",
]


class TableEstimator(EstimatorBase, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: tables and importances are validated as scikit-learn requires; refused calls change
    nothing."""

    _class_dtype: np.dtype[Any]  # the type of the labels in the first table
    _takes_sparse: ClassVar[bool] = True

    def _validated(self, X: Any, *, reset: bool) -> Batch:
        """X after scikit-learn's checks of shape and names. The loops check for NaN and infinity."""
        if not reset and _is_plain(self, X):
            return as_batch(X)
        # Our checks come first: scikit-learn does not validate sparse rows, and converts dates to numbers.
        sparse = as_batch(X) if hasattr(X, "tocsr") else None
        names = column_names(X)
        if sparse is None:
            require_reals(X)
        try:
            table = validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype="numeric",  # refuses text; `as_batch` converts the rest to floats
                order="C",
                ensure_all_finite=False,
                accept_large_sparse=True,
                reset=reset,
            )
        except InputError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from None
        batch = sparse or as_batch(table)
        batch.names = names
        if hasattr(self, "feature_names_in_"):
            batch.names = [str(name) for name in self.feature_names_in_]
        return batch

    def _weights_of(self, sample_weight: Any, table: Batch, *, whole: bool = False) -> Array | None:
        """Importances. With `whole`, for `fit`, they must not all be 0, as scikit-learn's contract says."""
        weights = as_importance(sample_weight, table.rows)
        if whole and weights is not None and not weights.any():
            raise InputError("sample_weight is zero for every row: there is nothing to fit; give some row a weight")
        return weights

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A refused call leaves the estimator unchanged; if a row overflows, the rows before it stay learned."""
        before = dict(self.__dict__)
        try:
            yield
        except RowError:
            raise
        except BaseException:
            restore(self, before)
            raise

    def _attributes(self) -> dict[str, Any]:
        """The attributes that scikit-learn's contract adds to a fitted estimator, as JSON."""
        out: dict[str, Any] = {}
        if hasattr(self, "n_features_in_"):
            out["n_features_in_"] = int(self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            out["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        if hasattr(self, "_class_dtype"):
            out["class_dtype"] = self._class_dtype.str
        return out

    def _set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """The inverse of `_attributes`."""
        if "n_features_in_" in attributes:
            self.n_features_in_ = attributes["n_features_in_"]
        if "feature_names_in_" in attributes:
            self.feature_names_in_ = np.array(attributes["feature_names_in_"], dtype=object)
        if "class_dtype" in attributes:
            self._class_dtype = np.dtype(attributes["class_dtype"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


def as_classifier(tags: Any) -> Any:
    """scikit-learn's tags of a classifier that learns in one pass."""
    tags.estimator_type, tags.target_tags = "classifier", TargetTags(required=True)
    # One pass over the 50 rows of scikit-learn's class-weight check is too little for any rule; the accuracy checks
    # that this tag also switches off are run by tests/estimators/test_sklearn.py with the tag off.
    tags.classifier_tags, tags.regressor_tags = ClassifierTags(poor_score=True), None
    return tags


def as_regressor(tags: Any) -> Any:
    """scikit-learn's tags of a regressor."""
    tags.estimator_type, tags.target_tags = "regressor", TargetTags(required=True)
    tags.classifier_tags, tags.regressor_tags = None, RegressorTags()
    return tags


def read_labels(y: Any, rows: int) -> NDArray[Any]:
    """The labels of a table, one for each row."""
    if isinstance(y, (list, tuple)):
        y = _column(y)
    try:
        labels = np.asarray(column_or_1d(y, warn=True))
        require_no_dates(labels)
        if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
            raise ValueError("Input y contains NaN or infinity; every example needs a label")
        if labels.dtype.kind not in "biu":  # integers are always finite
            check_classification_targets(labels)
    except LabelError:
        raise
    except (TypeError, ValueError) as error:  # TypeError: labels that do not sort, None among them
        raise LabelError(str(error)) from None
    if len(labels) != rows:
        raise InputError(f"X has {rows} rows, y has {len(labels)} labels")
    return labels


def _column(y: Any) -> Any:
    """A list of labels without conversion: NumPy would turn numbers among texts into texts, and large integers into
    floats."""
    labels = [plain(label) for label in y]
    if any(isinstance(label, (list, tuple, np.ndarray)) for label in labels):
        return y  # a column in two dimensions: scikit-learn warns about it
    numbers = all(isinstance(label, (bool, int, float)) for label in labels)
    if numbers and all(type(label) is not int or abs(label) < 2**53 for label in labels):
        return np.array(labels)
    return label_array(labels)


def read_targets(y: Any, rows: int) -> Array:
    """The numbers to predict, one for each row of a table."""
    try:
        targets = as_targets(column_or_1d(y, warn=True))
    except LabelError:
        raise
    except ValueError as error:
        raise LabelError(str(error)) from None
    if len(targets) != rows:
        raise InputError(f"X has {rows} rows, y has {len(targets)} targets")
    return targets


def class_array(labels: list[Any], dtype: np.dtype[Any] | None) -> NDArray[Any]:
    """The array `classes_`, of the type of the labels, or a type that can hold them all."""
    return label_array(labels) if dtype is None else np.array(labels, dtype=dtype)


def read_passes(passes: Any) -> int:
    if isinstance(passes, bool) or not isinstance(passes, (int, np.integer)) or passes < 1:
        raise ParameterError(f"passes={passes!r}: expected a whole number >= 1")
    return int(passes)


def read_order(
    passes: Any, shuffle: Any, random_state: Any, *, drawn: bool = True
) -> tuple[int, str, np.random.RandomState]:
    """The number of passes, the order of rows (`drawn`: "random" is allowed), and the random generator."""
    times = read_passes(passes)
    orders: dict[Any, str] = {False: "sequential", True: "shuffle"} | ({"random": "random"} if drawn else {})
    if not isinstance(shuffle, (bool, np.bool_, str)) or shuffle not in orders:
        expected = "False, True or 'random'" if drawn else "True or False"
        raise ParameterError(f"shuffle={shuffle!r}: expected {expected}")
    try:
        generator = check_random_state(random_state)
    except ValueError:
        expected = "None, a whole number or a numpy.random.RandomState"
        raise ParameterError(f"random_state={random_state!r}: expected {expected}") from None
    return times, orders[shuffle if isinstance(shuffle, str) else bool(shuffle)], generator


def _is_plain(estimator: Any, X: Any) -> bool:
    """True for rows of doubles of the known width without names. scikit-learn's check would take 0.1 ms."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or not X.flags.c_contiguous:
        return False
    known = estimator.__dict__
    return len(X) > 0 and X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known
