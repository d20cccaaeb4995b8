"""How a model predicts some rows of a batch in their place, and learns only the others.

The caller chooses the rows (`evaluation/holdout.py` holds out every n-th). The model stays, bit for bit, that of the
stream without these rows: they register no features, names or classes, and are not counted. Their scores are those that
`score_one` would give in their place, whatever the chunks: only the features that the model knew by then count.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..rows.batches import Batch
from ..scheme.rounds import Array

if TYPE_CHECKING:
    from .rule_model import RuleModel

__all__ = ["importance_of", "labels_of", "model_features", "rows_before"]

HELD_OUT = -0.0  # the importance of rows that the native loops predict and do not learn (native/loops/learn_rows.hpp)


def importance_of(held: NDArray[np.bool_], c: Array | None) -> Array:
    """The importances for the loops, in which held-out rows have a special value."""
    return np.where(held, HELD_OUT, 1.0 if c is None else c)


def labels_of(held: NDArray[np.bool_], y: NDArray[Any]) -> NDArray[Any]:
    """The labels. A held-out row has no label of its own here, but that of the last learned row before it."""
    learned = np.flatnonzero(~held)
    return np.asarray(y[learned[np.searchsorted(learned, np.arange(len(held)), side="right") - 1]])


def model_features(model: RuleModel, batch: Batch, held: NDArray[np.bool_]) -> Batch:
    """The batch in the model's features; only the rows that are learned register new ones."""
    if not batch.distinct or batch.named or batch.hash_bits is not None:
        return model._placed(batch, learning=True)  # its columns are the features, whatever rows it has
    assert batch.csr is not None
    known = model.n_features
    if batch.table is None:
        if batch.columns <= known:
            return model._placed(batch, learning=True)
        out = model._placed(batch, learning=True)
    else:
        columns = model._columns
        columns._require_fit(model, batch)
        at = columns.find(model, batch, learning=False)
        if (at >= 0).all():
            return model._placed(batch, learning=True)
        at = columns.find(model, batch.only(~_elements(batch, held), batch.columns), learning=True)
        data, indices, starts = batch.csr
        out = dataclasses.replace(
            batch, csr=(data, at[indices], starts), columns=model.n_features, table=None, named=True
        )
    assert out.csr is not None
    indices, mask = out.csr[1], _elements(batch, held)
    # Names have places, and places are reached, in the order in which rows are learned.
    before = np.maximum(np.maximum.accumulate(np.where(mask, -1, indices)) + 1, known)
    return out.only(~mask | ((indices >= 0) & (indices < before)), out.columns)


def _elements(batch: Batch, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A mask of the stored elements that belong to held-out rows."""
    return np.repeat(held, np.diff(batch.stored[2]))


def rows_before(held: NDArray[np.bool_] | None, learned: int) -> int:
    """The number of rows, held-out ones included, before the row that follows the first `learned` learned ones."""
    if held is None:
        return learned
    at = np.flatnonzero(~held)
    return int(at[learned]) if learned < len(at) else len(held)
