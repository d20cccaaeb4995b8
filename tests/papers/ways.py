"""The two ways to run a rule one example at a time: the readable `ReferenceLearner` and the native `LinearModel`.

Both return the predicting weights after every round, the intercept appended: rounds × [classes ×] features.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner

from .streams import Example, run

CLASSIFY = ("binary", "multiclass", "multilabel")


def by_core(rule: Any, task: str, stream: Iterable[Example], **options: Any) -> np.ndarray:
    return run(ReferenceLearner(rule, task, **options), stream)


def model_of(rule: Any, task: str = "binary", *, classes: int = 2, **options: Any) -> LinearModel:
    if task in CLASSIFY:
        options["classes"] = [-1, 1] if task == "binary" else list(range(classes))
    return LinearModel(rule, task, **options)


def learn(model: LinearModel, x: Any, y: Any, c: float = 1.0) -> None:
    if model.task == "ranking":
        model.learn_direction(np.asarray(x[0], dtype=float) - np.asarray(x[1], dtype=float), 1.0, c)
    else:
        model.learn_one(np.asarray(x, dtype=float), y, c)


def weights_of(model: LinearModel) -> np.ndarray:
    w, b = model.weights()
    both = np.concatenate([w, b[:, np.newaxis]], axis=1)
    return both[0] if len(both) == 1 else both


def by_model(rule: Any, task: str, stream: Iterable[Example], **options: Any) -> np.ndarray:
    model = model_of(rule, task, **options)
    rows = []
    for x, y, c in stream:
        learn(model, x, y, c)
        rows.append(weights_of(model))
    return np.array(rows)


WAYS = {"core": by_core, "model": by_model}


def same(a: Any, b: Any, rtol: float = 1e-12) -> None:
    """Equal, relative to the largest number there is: small weights are differences of larger ones."""
    b = np.asarray(b, dtype=float)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, float(np.max(np.abs(b), initial=0.0))))
