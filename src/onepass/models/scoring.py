"""The scores of many rows, their initial predictions (`base`), and predictions and probabilities from scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError
from ..rows.batches import Batch, as_base, as_batch, is_mappings
from ..rows.labels import alike
from ..scheme.rounds import Array

if TYPE_CHECKING:
    from .linear import LinearModel
    from .rule_model import RuleModel

__all__ = ["bases", "distances", "predictions", "probabilities", "refused_base", "score_many"]


def score_many(model: RuleModel, X: Any, base: Any) -> Array:
    """Scores, rows × outputs. One-class models: ‖x − w‖ − radius, above 0 for an anomaly."""
    if model.task == "oneclass":
        away = distances(cast("LinearModel", model), X)
        bases(model, base, len(away))
        return np.asarray(away - model.radius)[:, np.newaxis]
    return _products(model, X, base)


def _products(model: RuleModel, X: Any, base: Any = None) -> Array:
    """⟨w, x⟩, rows × outputs."""
    if is_mappings(X):
        begins_at = bases(model, base, len(X))
        at = [0.0] * len(X) if begins_at is None else begins_at.tolist()
        rows = [model._engine.score_one(x, b) for x, b in zip(X, at, strict=True)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    batch = model._placed(as_batch(X, inside=not model.n_features))  # which read nothing yet
    begins_at = bases(model, base, batch.rows)
    if not model.n_features and begins_at is not None:
        batch = batch.without_columns()  # no feature has a weight yet
    while True:
        scores = np.zeros((batch.rows, int(model._engine.rows)))
        try:
            if batch.rows and (model.n_features or begins_at is not None):
                _score_into(model, batch, scores, begins_at)
            return scores
        except InputError:
            if scores.shape[1] == model._engine.rows:
                raise  # otherwise another thread has registered a class: repeat


def _score_into(model: RuleModel, batch: Batch, scores: Array, base: Array | None) -> None:
    more = {} if base is None else {"base": base}
    if batch.dense is not None:
        model._engine.score(batch.dense, scores, **more)
    else:
        assert batch.csr is not None
        model._engine.score_csr(*batch.csr, batch.columns, scores, batch.distinct, batch.validated, **more)


def bases(model: RuleModel, base: Any, rows: int, labels: NDArray[Any] | None = None) -> Array | None:
    """The initial prediction of each row, None if all are 0. Raises if one is not allowed."""
    begins_at = as_base(base, rows)
    if begins_at is not None and (refused := model.refused_base(begins_at, labels)) is not None:
        row, why = refused
        raise InputError(f"base[{row}]={begins_at[row]:g} is an initial prediction, {why}")
    return begins_at


def refused_base(model: RuleModel, base: Array, labels: NDArray[Any] | None) -> tuple[int, str] | None:
    """The first row whose `base` is refused, and why. `labels` are given if the rows are to be learned."""
    at = np.flatnonzero(base)
    known = np.full(len(base), max(2, len(model.classes)))
    if labels is not None and model.task in ("auto", "binary", "multiclass"):
        known = _known_with(model, labels.tolist())
    for count in sorted(
        set(known[at].tolist()), reverse=True
    ):  # the message about too many classes is the more useful one
        if why := model._engine.why_no_base(count):
            return int(at[known[at] == count][0]), why
    return None


def _known_with(model: RuleModel, labels: list[Any]) -> NDArray[np.intp]:
    """The number of known classes after the registration of each label."""
    known = dict.fromkeys(model.classes)
    if known.keys() >= set(labels):
        return np.full(len(labels), len(known))
    counts = np.empty(len(labels), dtype=np.intp)
    for row, label in enumerate(labels):
        known[label] = None
        counts[row] = len(known)
    return counts


def predictions(model: RuleModel, scores: Array) -> Any:
    """An array of labels or numbers (a list if labels are of mixed types), or rows of 0 and 1 for label sets."""
    if model.task == "multilabel":
        return (scores > 0).astype(np.int64)
    if model.task not in ("auto", "binary", "multiclass"):
        return scores[:, 0]
    classes = model.classes
    if not classes:
        return [None] * len(scores)
    indices = model.class_indices(scores)
    if alike(classes):
        return np.array(classes)[indices]
    return [classes[i] for i in indices]


def probabilities(model: RuleModel, scores: Array) -> Array:
    """σ or softmax of scores, rows × classes; for rules whose loss gives probabilities."""
    if "binary" not in model.rule_traits.probabilities:
        raise ParameterError(f"{model.rule!r} has no probabilities; use SGD(loss='logistic')")
    if scores.shape[1] == 1:
        e = np.exp(-np.abs(scores[:, 0]))  # the exponent is never positive, so that exp does not overflow
        p = np.where(scores[:, 0] >= 0, 1.0, e) / (1.0 + e)
        return np.stack([1.0 - p, p], axis=1) if len(model._engine.classes) > 1 else np.ones((len(p), 1))
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


@np.errstate(over="ignore")  # ‖x‖ of numbers above 1e154: an infinite distance
def distances(model: LinearModel, X: Any) -> Array:
    """One-class: ‖x − w‖ of every row."""
    products = _products(model, X)[:, 0]  # this call also validates the rows
    w = model.weights()[0][0]
    if is_mappings(X):
        norms = np.array([_squared(model, x) for x in X])
    else:
        batch = as_batch(X)  # unknown features count, too
        if batch.dense is not None:
            norms = np.sum(np.square(batch.dense, dtype=np.float64), axis=1)
        else:
            assert batch.csr is not None
            values, columns, starts = batch.csr
            if not batch.distinct:  # values of the same feature are added
                from scipy.sparse import csr_array

                merged = csr_array((values, columns, starts), shape=(batch.rows, batch.columns), copy=True)
                merged.sum_duplicates()
                values, starts = merged.data, merged.indptr
            rows = np.repeat(np.arange(batch.rows), np.diff(starts))
            norms = np.bincount(rows, weights=np.square(values, dtype=np.float64), minlength=batch.rows)
    squared = float(w @ w) - 2.0 * products + norms
    return np.asarray(np.sqrt(np.maximum(0.0, squared)))


def _squared(model: RuleModel, x: Mapping[Any, Any]) -> float:
    """‖x‖² of a mapping, unknown features included."""
    known = sum(value * value for _, value in model._engine.row_of(x))
    named = {f"{n}={v}" if isinstance(v, str) else n: 1.0 if isinstance(v, str) else v for n, v in x.items()}
    new = [float(value) for name, value in named.items() if value and model._engine.find(name) < 0]
    return float(known + sum(value * value for value in new))
