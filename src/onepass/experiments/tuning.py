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
    make: Callable[..., Any], grid: Mapping[str, Sequence[float]], X: Array, y: Labels, *, folds: int = 3
) -> tuple[dict[str, float], float]:
    """The point of the grid with the highest cross-validated accuracy (per cent), and that accuracy.

    Every point is tried on the first fold, the best FINALISTS on the others too. A learner that overflows has lost.
    """
    parts = np.array_split(np.arange(len(y)), folds)
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]

    def tried(point: dict[str, float], fold: int) -> float:
        train = np.concatenate([part for i, part in enumerate(parts) if i != fold])
        try:
            model = make(**point).fit(X[train], y[train])
        except NumericalError:
            return 0.0
        return accuracy(model, X[parts[fold]], y[parts[fold]])

    first = [tried(point, 0) for point in points]
    best = sorted(range(len(points)), key=lambda i: -first[i])[:FINALISTS]
    means = [(first[i] + sum(tried(points[i], fold) for fold in range(1, folds))) / folds for i in best]
    winner = int(np.argmax(means))
    return points[best[winner]], means[winner]
