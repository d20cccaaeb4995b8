"""The weights of a model: those that predict, weights by name, contributions to a score, and the batch step."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LabelError, NumericalError
from ..rows.batches import Batch
from ..scheme import geometry
from ..scheme.readouts import Average, Pocket
from ..scheme.rounds import Array
from . import saved

if TYPE_CHECKING:
    from .linear import LinearModel

__all__ = ["add_rows", "explain_one", "met_weights", "named_weights", "weights", "weights_at"]


def weights(model: LinearModel, last: bool) -> tuple[Array, Array]:
    """The predicting weights (rows × features) and intercepts (rows); with `last`, the current ones."""
    return _predicting(model, model._engine.state(), last)


def met_weights(model: LinearModel, last: bool) -> tuple[NDArray[np.intp], Array, Array]:
    """The indices of the features whose weights have changed, and the same for these; all other weights are 0."""
    s = model._engine.state(met_only=True)
    return s["kept"].astype(np.intp), *_predicting(model, s, last)


def _predicting(model: LinearModel, s: dict[str, NDArray[Any]], last: bool) -> tuple[Array, Array]:
    scalars = saved.numbers("linear", s["scalars"])
    a, big_a, averaged = scalars["scale"], scalars["A"], scalars["averaged"]
    if isinstance(model.readout, Average) and averaged > 0 and not last:
        w, bias = (big_a * s["v"] - s["z"]) / averaged, s["bias_sum"] / averaged
    elif isinstance(model.readout, Pocket) and saved.number("pocket", s["pocket_scalars"], "best_run") > 0 and not last:
        w, bias = saved.number("pocket", s["pocket_scalars"], "scale") * s["pocket"], s["pocket_bias"]
    elif "owed_now" in s:
        limited = model.rule_traits.soft_limit < np.inf
        spared = (s["v"].view(np.int64) & 1 != 0) & limited  # see native/core/weights.hpp
        paid = np.sign(s["v"]) * np.maximum(0.0, np.abs(s["v"]) - s["owed_now"])
        w, bias = a * np.where(spared, s["v"], paid), s["bias"]
    else:
        both = geometry.link(np.vstack([a * s["v"], s["bias"]]), model.rule_traits.geometry)
        w, bias = both[:-1], both[-1]
    return np.ascontiguousarray(w.T), bias * (model.intercept_scaling if model.fit_intercept else 0.0)


def weights_at(model: LinearModel, indices: NDArray[np.int64]) -> Array:
    """The predicting weights of some features of a one-row model: cost in proportion to their number."""
    scores = np.zeros((len(indices), 1))
    if len(indices):
        starts = np.arange(len(indices) + 1, dtype=np.int64)
        model._engine.score_csr(np.ones(len(indices)), indices, starts, model.n_features, scores)
    return scores[:, 0]


def named_weights(model: LinearModel) -> dict[Any, Any]:
    """name → weight; with more than two classes label → name → weight. Positions or hashes where unnamed."""
    w, _ = model.weights()
    names = _names_or_positions(model)
    tables = [{name: float(row[j]) for j, name in names if row[j] != 0.0} for row in w]
    return tables[0] if len(tables) == 1 else dict(zip(model.classes, tables, strict=True))


def explain_one(model: LinearModel, x: Any, label: Hashable | None) -> dict[Any, float]:
    """Each feature's contribution to the score, largest first; the intercept under "intercept"."""
    if label is not None and label not in model.classes:
        raise LabelError(f"label {label!r} is not one of the classes {model.classes!r}")
    w, intercept = model.weights()
    row, sign = 0, 1.0
    if len(w) > 1:
        row = int(np.argmax(model.score_one(x))) if label is None else model.classes.index(label)
    elif label is not None and label == model.classes[0]:
        sign = -1.0  # a positive score is one for the second class
    names = dict(_names_or_positions(model))
    if model.hash_bits is not None and isinstance(x, Mapping):
        for name, value in x.items():  # several names may share a slot; list all names of x in it
            full = f"{name}={value}" if isinstance(value, str) else name
            names[int(model._engine.find(full))] = full
    parts = {names[j]: sign * float(w[row, j] * value) for j, value in model._engine.row_of(x) if j < w.shape[1]}
    if model.fit_intercept:
        parts["intercept" if "intercept" not in parts else "(intercept)"] = sign * float(intercept[row])
    return dict(sorted(parts.items(), key=lambda item: -abs(item[1])))


def _names_or_positions(model: LinearModel) -> list[tuple[int, Any]]:
    names = model.names
    return [(j, names[j] if j < len(names) else j) for j in range(model.n_features)]


def add_rows(model: LinearModel, batch: Batch, coefficients: Array) -> None:
    """w ← w + Σ coefficients_i x_i in one step (batch learning); one-row models."""
    state = model._engine.state()
    scalars = saved.numbers("linear", state["scalars"])
    w = state["v"] * scalars["scale"]
    if len(w) == 0:
        w = np.zeros((batch.columns, 1))
    if batch.dense is not None:
        w[:, 0] += batch.dense.T @ coefficients
    else:
        assert batch.csr is not None
        data, indices, starts = batch.csr
        np.add.at(w[:, 0], indices, data * np.repeat(coefficients, np.diff(starts)))
    bias = state["bias"] + np.sum(coefficients) * (model.intercept_scaling if model.fit_intercept else 0.0)
    if not (np.all(np.isfinite(w)) and np.all(np.isfinite(bias))):
        raise NumericalError(f"the batch step of {model.rule!r} overflows; scale the features down")
    scalars["scale"] = 1.0
    scalars["t"] += batch.rows
    scalars["k"] += float(np.any(coefficients))
    scalars["positional"] = 1.0
    if model.hash_bits is None:
        scalars["columns"] = len(w)  # as wide as the rows
    moved = {"v": w, "bias": bias, "scalars": saved.array("linear", scalars)}
    model._engine.set_state({**state, **moved})
