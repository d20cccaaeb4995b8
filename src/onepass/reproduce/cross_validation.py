"""Choosing the parameters of a kernel learner on training rows alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import NumericalError
from .sets import Array, Labels

__all__ = ["accuracy", "choose"]

FINALISTS = 12


def accuracy(model: Any, X: Array, y: Labels) -> float:
    """Per cent."""
    return 100.0 * float(np.mean(model.predict(X) == y))


def choose(
    make: Callable[..., Any],
    grid: Mapping[str, Sequence[float]],
    X: Array,
    y: Labels,
    *,
    folds: int = 3,
    fewest: bool = False,
) -> tuple[dict[str, float], float]:
    """The point of the grid with the highest cross-validated accuracy (per cent), and that accuracy.

    Every point is tried on the first fold, the best FINALISTS on the others too. A learner that overflows counts
    as 0 per cent. Among equals the first wins; with `fewest`, the one with the fewest support vectors.
    """
    parts = np.array_split(np.arange(len(y)), folds)
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]

    def tried(point: dict[str, float], fold: int) -> tuple[float, int]:
        train = np.concatenate([part for i, part in enumerate(parts) if i != fold])
        try:
            model = make(**point).fit(X[train], y[train])
        except NumericalError:
            return 0.0, 0
        return accuracy(model, X[parts[fold]], y[parts[fold]]), model.n_support_ if fewest else 0

    first = [tried(point, 0) for point in points]
    best = sorted(range(len(points)), key=lambda i: -first[i][0])[:FINALISTS]
    outcomes = []
    for i in best:
        found = [first[i], *(tried(points[i], fold) for fold in range(1, folds))]
        mean = (found[0][0] + sum(right for right, _ in found[1:])) / folds
        outcomes.append((round(mean, 9) if fewest else mean, -sum(support for _, support in found)))
    winner = max(range(len(best)), key=outcomes.__getitem__)
    return points[best[winner]], outcomes[winner][0]
