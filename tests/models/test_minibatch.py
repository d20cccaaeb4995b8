"""Learners by mini-batches: what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onepass as op

MAKERS: dict[str, Callable[[], Any]] = {
    "KMeans": lambda: op.KMeans(2, batch_size=40, init_size=40),
    "GaussianMixture": lambda: op.GaussianMixture(2, batch_size=40, init_size=40),
    "DictionaryLearning": lambda: op.DictionaryLearning(2, batch_size=40),
}


@pytest.mark.parametrize("before", [1, 20, 39, 60])
@pytest.mark.parametrize("name", MAKERS)
def test_a_batch_size_may_be_lowered_while_more_rows_wait(name: str, before: int) -> None:
    X = np.random.default_rng(0).normal(size=(130, 3))
    one, many = MAKERS[name](), MAKERS[name]()
    answers = []
    for learner in (one, many):
        learner.learn_many(X[:before])
        learner.set_params(**{each: 4 for each in ("batch_size", "init_size") if each in learner.get_params()})
    for x in X[before:]:
        one.learn_one(x)
    many.learn_many(X[before:])
    for learner in (one, many):
        answers.append(learner.transform(X) if name == "DictionaryLearning" else learner.predict(X))
    np.testing.assert_array_equal(*answers)
