"""Learners that have learned, and a check that a call was refused without a trace."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from onepass.estimators.linear import LinearClassifier, LinearRegressor
from support import grid
from support.grid import dicts, saved, stream

NAN, INF = float("nan"), float("inf")
KINDS = ("binary", "multiclass", "regression")
ROWS = 5
D = grid.FEATURES


def learner(kind: str, form: str = "f64", **options: Any) -> Any:
    """An estimator that has learned: tables with declared classes, or mappings."""
    s = stream(kind)
    estimator = (LinearRegressor if kind == "regression" else LinearClassifier)(**options)
    if form in ("named", "hashed"):
        estimator.set_params(hash_bits=12 if form == "hashed" else None)
        estimator.learn_many(dicts(s.X), s.y)
    else:
        declared = {} if s.classes is None else {"classes": s.classes}
        estimator.partial_fit(grid.REPRESENTATIONS[form].make(s.X), s.y, **declared)
    return estimator


def answers(kind: str, n: int = ROWS) -> np.ndarray:
    return stream(kind, seed=9).y[:n]


def refuses(learner: Any, error: type[Exception], message: str, call: Any) -> Exception:
    """`call` raises `error` with `message`, and leaves the learner's file and attributes as they were."""
    before, attributes = saved(learner), {k: repr(v) for k, v in vars(learner).items() if k != "_model"}
    with pytest.raises(error) as caught:
        call()
    assert re.search(message, str(caught.value)), f"{message!r} is not in {str(caught.value)!r}"
    assert saved(learner) == before
    assert {k: repr(v) for k, v in vars(learner).items() if k != "_model"} == attributes
    return caught.value


def table(value: Any = 0.0, dtype: Any = np.float64) -> np.ndarray:
    X = stream("binary", seed=9).X[:ROWS].astype(dtype)
    X[1, 2] = value
    return X
