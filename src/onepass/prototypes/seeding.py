"""k-means++: starting points far apart (Arthur and Vassilvitskii 2007)."""

from __future__ import annotations

import numpy as np

from .. import _native
from ..scheme.rounds import Array

__all__ = ["plus_plus", "squared_distances"]


def squared_distances(X: Array, points: Array) -> Array:
    """‖x − p‖² for every row x and point p."""
    stride = -(-len(points) // 16) * 16
    columns = np.zeros((X.shape[1], stride))
    columns[:, : len(points)] = points.T
    return np.asarray(_native.distances(np.ascontiguousarray(X, dtype=np.float64), columns))[:, : len(points)]


def plus_plus(X: Array, K: int, w: Array, random: np.random.Generator) -> Array:
    """K rows of X, chosen one after another. A few candidates are drawn, with probabilities proportional to the weight
    times the squared distance to the nearest chosen row. The candidate that leaves the smallest total distance is
    chosen. If X has fewer than K different rows, some are chosen twice."""
    weights = w if w.any() else np.ones(len(X))
    shares = weights / weights.sum()
    chosen = [int(random.choice(len(X), p=shares))]
    nearest = squared_distances(X, X[chosen])[:, 0]
    trials = 2 + int(np.log(K))
    while len(chosen) < K:
        mass = weights * nearest
        total = mass.sum()
        if not total > 0:  # every row is chosen already
            chosen += random.choice(len(X), size=K - len(chosen), p=shares).tolist()
            break
        candidates = np.searchsorted(np.cumsum(mass), random.random(trials) * total).clip(0, len(X) - 1)
        left = np.minimum(nearest[:, np.newaxis], squared_distances(X, X[candidates]))
        best = int(np.argmin(weights @ left))
        chosen.append(int(candidates[best]))
        nearest = left[:, best]
    return X[chosen].copy()
