"""Losses of single examples, row by row, from `Outcomes`. NaN: not defined for that row, which is then left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .outcomes import Array, Outcomes


def zero_one(outcomes: Outcomes) -> Array:
    """1[ŷ ≠ y]; no prediction is a mistake."""
    return np.asarray(outcomes.truth != outcomes.predicted, dtype=np.float64)


def absolute(outcomes: Outcomes) -> Array:
    return np.asarray(np.abs(outcomes.truth - outcomes.predicted))


def above(outcomes: Outcomes) -> Array:
    return np.asarray(outcomes.predicted > outcomes.truth, dtype=np.float64)


def excess(outcomes: Outcomes) -> Array:
    return np.asarray(np.maximum(0.0, outcomes.predicted - outcomes.truth))


def squared(outcomes: Outcomes) -> Array:
    return np.asarray(np.square(outcomes.truth - outcomes.predicted))


def pinball(outcomes: Outcomes, q: float) -> Array:
    """q·r for r = y − ŷ ≥ 0, (q − 1)·r below."""
    residual = outcomes.truth - outcomes.predicted
    return np.asarray(np.maximum(q * residual, (q - 1.0) * residual))


def log(outcomes: Outcomes) -> Array:
    """−ln p(y), p clipped to [ε, 1 − ε] of double precision, as scikit-learn does."""
    epsilon = np.finfo(np.float64).eps
    return np.asarray(-np.log(np.clip(_of_truth(outcomes.probabilities, outcomes.truth, 0.0), epsilon, 1.0 - epsilon)))


def hinge(outcomes: Outcomes) -> Array:
    """max(0, 1 − (s_y − max of the others)): with two classes max(0, 1 − y·s) of their margin s.

    Before the model knows two classes it has no margin, and the loss is 1.
    """
    own, others = _own_and_others(outcomes)
    with np.errstate(invalid="ignore"):  # −inf − −inf, replaced below
        margin = own - np.max(others, axis=1, initial=-np.inf)
    return np.maximum(0.0, 1.0 - np.where(np.isfinite(margin), margin, 0.0))


def miss(outcomes: Outcomes, k: float) -> Array:
    """1 where k or more other classes score at least as much as the true one: a tie counts against."""
    own, others = _own_and_others(outcomes)
    above = np.sum(others >= own[:, np.newaxis], axis=1)
    return np.asarray((above >= k) | np.isneginf(own), dtype=np.float64)


def query_average_precision(outcomes: Outcomes) -> Array:
    """Per row, the average over its relevant items of the precision at their rank; tied items share the worst rank."""
    return np.array([_average_precision(y, s) for y, s in _rows(outcomes)], dtype=np.float64)


def query_ndcg(outcomes: Outcomes, k: float, exponential: bool = False) -> Array:
    """DCG over the ideal DCG of the first k, discount 1/log₂(rank + 1); tied items share their discounts evenly
    (McSherry and Najork 2008). A row without relevant items scores 0."""
    return np.array([_ndcg(2.0**y - 1.0 if exponential else y, s, k) for y, s in _rows(outcomes)], dtype=np.float64)


def query_ndcg_exponential(outcomes: Outcomes, k: float) -> Array:
    return query_ndcg(outcomes, k, exponential=True)


def set_difference(outcomes: Outcomes) -> Array:
    """How many labels are in one of the sets only."""
    return np.asarray(outcomes.truth + outcomes.predicted - 2.0 * _in_both(outcomes))


def set_unequal(outcomes: Outcomes) -> Array:
    return np.asarray(set_difference(outcomes) > 0, dtype=np.float64)


def set_f1(outcomes: Outcomes) -> Array:
    """2|T ∩ P|/(|T| + |P|); two empty sets agree."""
    total = outcomes.truth + outcomes.predicted
    return np.where(total > 0, 2.0 * _in_both(outcomes) / np.where(total > 0, total, 1.0), 1.0)


def _in_both(outcomes: Outcomes) -> Array:
    assert outcomes.scores is not None
    return outcomes.scores[:, 0]


def _of_truth(table: Array | None, truth: NDArray[np.int64], missing: float) -> Array:
    assert table is not None
    known = truth <= table.shape[1]
    out = np.full(len(truth), missing)
    out[known] = table[np.flatnonzero(known), truth[known] - 1]
    return out


def _own_and_others(outcomes: Outcomes) -> tuple[Array, Array]:
    """The score of the true class, and those of the others; −inf where there is none."""
    table = outcomes.probabilities if outcomes.scores is None else outcomes.scores
    assert table is not None
    scores = np.where(np.isnan(table), -np.inf, table)
    own = _of_truth(scores, outcomes.truth, -np.inf)
    others = scores.copy()
    known = np.flatnonzero(outcomes.truth <= table.shape[1])
    others[known, outcomes.truth[known] - 1] = -np.inf
    return own, others


def _rows(outcomes: Outcomes) -> list[tuple[Array, Array]]:
    assert outcomes.scores is not None
    rows = []
    for y, s in zip(outcomes.truth, outcomes.scores, strict=True):
        there = ~np.isnan(y)
        rows.append((y[there], np.where(np.isnan(s[there]), -np.inf, s[there])))
    return rows


def _average_precision(y: Array, s: Array) -> float:
    relevant = y > 0
    if not np.any(relevant):
        return np.nan
    above = s[:, np.newaxis] >= s[relevant]  # for each relevant item, the items at or above it
    return float(np.mean(np.sum(above[relevant], axis=0) / np.sum(above, axis=0)))


def _ndcg(gain: Array, s: Array, k: float) -> float:
    discount = 1.0 / np.log2(np.arange(2.0, len(gain) + 2.0))
    if k < len(discount):
        discount[int(k) :] = 0.0
    ideal = float(np.sum(np.sort(gain)[::-1] * discount))
    if ideal <= 0.0:
        return 0.0
    _, group = np.unique(-s, return_inverse=True)
    counts = np.bincount(group)
    ends = np.cumsum(counts)
    shared = np.add.reduceat(discount, ends - counts) / counts
    return float(np.sum(shared * np.bincount(group, weights=gain)) / ideal)
