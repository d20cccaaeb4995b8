"""Streams for the paper tests: A, R and M of the specification, random ones, and adversaries.

An adversary sees the learner before it answers; `play` and `worst_of` return what it chose, so that a test
can both check a bound and show that the adversary bites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onepass.models.reference import ReferenceLearner


class Example(NamedTuple):
    x: Any
    y: Any
    c: float = 1.0  # importance


# Specification 00 §14; all without a constant feature.
A = [Example((1, 2), 1), Example((2, -1), -1), Example((-1, 1), -1), Example((1, 1), 1), Example((0, -2), -1)]
R = [Example((1, 0), 1), Example((1, 1), 3), Example((0, 2), 2), Example((2, 1), 1)]
M = [Example((1, 0), 0), Example((0, 1), 1), Example((-1, -1), 2), Example((1, 1), 1), Example((2, -1), 0)]
PAIRS = [Example(((1, 2), (2, -1)), 1), Example(((1, 1), (-1, 1)), 1), Example(((1, 1), (2, -1)), 1)]

# The importance weights of the worked example in 01 §17.
A_IMPORTANCE = (1, 3, 0.5, 2, 1)


def inputs(rng: np.random.Generator, rounds: int, d: int) -> np.ndarray:
    """Rows of varied length, a third of their entries 0, and now and then a zero vector."""
    X = rng.normal(size=(rounds, d)) * rng.uniform(0.2, 2.0, size=(rounds, 1))
    X *= rng.random((rounds, d)) > 1 / 3
    X[rng.random(rounds) < 0.05] = 0.0
    return X


def importances(rng: np.random.Generator, rounds: int, weighted: bool) -> np.ndarray:
    """Ones, or weights of which some are 0 (a legal round without update)."""
    if not weighted:
        return np.ones(rounds)
    return rng.exponential(size=rounds) * (rng.random(rounds) > 0.1)


def random_stream(
    rng: np.random.Generator,
    task: str,
    rounds: int = 60,
    d: int = 4,
    weighted: bool = False,
    noise: float = 0.5,
) -> list[Example]:
    """A noisy linear stream for "binary", "regression", "multiclass" (3 classes) or "ranking"."""
    X, C, u = inputs(rng, rounds, d), importances(rng, rounds, weighted), rng.normal(size=d)
    if task == "ranking":
        return [Example((a, b), 1, c) for a, b, c in zip(X, inputs(rng, rounds, d), C, strict=True)]
    if task == "multiclass":
        Y: Iterable[Any] = np.argmax(X @ rng.normal(size=(d, 3)) + noise * rng.normal(size=(rounds, 3)), axis=1)
    else:
        Y = X @ u + noise * rng.normal(size=rounds)
        if task == "binary":
            Y = np.where(Y > 0, 1, -1)
    return [Example(x, y, float(c)) for x, y, c in zip(X, np.asarray(Y).tolist(), C, strict=True)]


def separable(rng: np.random.Generator, rounds: int, d: int, margin: float = 0.05) -> tuple[list[Example], np.ndarray]:
    """A stream and a unit u with y u·x ≥ `margin` throughout."""
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(rounds, d))
    Y = np.where(X @ u > 0, 1, -1)
    X += (Y * np.maximum(0.0, margin - Y * (X @ u)))[:, np.newaxis] * u
    return [Example(x, int(y)) for x, y in zip(X, Y, strict=True)], u


def orthogonal(d: int) -> tuple[list[Example], np.ndarray]:
    """e₁ … e_d with label +1 and u = (1, …, 1)/√d: the stream on which several bounds hold with equality."""
    return [Example(row, 1) for row in np.eye(d)], np.full(d, d**-0.5)


def run(learner: ReferenceLearner, stream: Iterable[Example]) -> np.ndarray:
    """Learn the stream; the predicting weights after every round, the intercept appended."""
    rows = []
    for x, y, c in stream:
        learner.learn(x, y, c)
        rows.append(weights(learner))
    return np.array(rows)


def weights(learner: ReferenceLearner) -> np.ndarray:
    w, b = np.asarray(learner.w), np.asarray(learner.intercept)
    return np.concatenate([w, b[..., np.newaxis]], axis=-1)


def with_constant(stream: Iterable[Example], value: float = 1.0) -> list[Example]:
    """Every x with a constant feature appended: a pair has none, since it would cancel."""
    return [Example(np.append(x, value), y, c) for x, y, c in stream]


def play(learner: ReferenceLearner, X: Iterable[Any], answer: Callable[[Any, Any], Any]) -> list[Example]:
    """The adversary `answer(score, x)` picks y after seeing the learner's score."""
    played = []
    for x in X:
        played.append(Example(x, answer(learner.score(x), x)))
        learner.learn(x, played[-1].y)
    return played


def worst_of(
    learner: ReferenceLearner, pool: Sequence[Example], loss: Callable[[Any, Any], float], rounds: int
) -> list[Example]:
    """The adversary shows, each round, the example of the pool with the largest `loss(score, y)`."""
    played = []
    for _ in range(rounds):
        played.append(max(pool, key=lambda example: loss(learner.score(example.x), example.y)))
        learner.learn(*played[-1])
    return played


def opposite(score: float, x: Any) -> int:
    """The label that the learner (which says +1 iff its score is above 0) did not predict."""
    return -1 if score > 0 else 1


def comparators(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, *more: np.ndarray) -> list[np.ndarray]:
    """The u to hold a bound against: 0; least squares, a random one and those given, at three lengths."""
    base = [np.linalg.lstsq(X, y, rcond=None)[0], rng.normal(size=X.shape[1]), *more]
    return [np.zeros(X.shape[1])] + [scale * u for u in base for scale in (0.3, 1.0, 3.0)]
