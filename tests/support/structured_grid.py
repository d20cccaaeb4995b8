"""Sentences and a decoder for the tests of `StructuredLearner`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from onepass.estimators.structured import StructuredLearner
from onepass.persistence import store

TAGS = ("A", "B", "C")


def sentences(n: int = 40, seed: int = 0, *, real: bool = False) -> tuple[list[Any], list[Any], list[float]]:
    """Positions as words, lists of words, mappings and rows; any length from 0.

    With `real`, only what has real numbers: between counts there are ties, which the last bit of a sum may break.
    """
    rng = np.random.default_rng(seed)
    X: list[Any] = []
    for _ in range(n):
        words = rng.choice(list("abcdef"), size=rng.integers(0, 6)).tolist()
        kinds = [
            words,
            [[word, word.upper()] for word in words],
            [{"word": word, "size": float(rng.normal()), "last": i == len(words) - 1} for i, word in enumerate(words)],
            rng.normal(size=(len(words), 2)),
        ]
        X.append(kinds[rng.integers(2 if real else 0, 4)])
    Y = [rng.choice(TAGS, size=len(x)).tolist() for x in X]
    return X, Y, rng.choice([0.0, 0.5, 1.0, 2.0], size=n).tolist()


def saved(learner: StructuredLearner, folder: Path) -> bytes:
    learner.save(folder / "learner.onepass")
    return (folder / "learner.onepass").read_bytes()


def bits(learner: StructuredLearner, folder: Path) -> bytes:
    """The saved bytes, but for how many columns scikit-learn was told of: `learn_one` tells it nothing."""
    _, config, arrays = store.from_bytes(saved(learner, folder), "learner")
    for key in ("n_features_in_", "class_dtype"):
        config["fitted"].pop(key, None)
    return store.to_bytes("learner", config, arrays)


class Fixed:
    """A decoder of a user's: answers 1 whatever it is asked; answering wrongly costs 2."""

    def decode(self, w: Any, x: Any) -> int:
        return 1

    def features(self, x: Any, y: int) -> dict[str, float]:
        return {"wrong" if y else "right": 1.0}

    def cost(self, y: int, y_hat: int) -> float:
        return 2.0 * (y != y_hat)
