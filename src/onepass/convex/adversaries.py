"""Adversaries choose the losses: each is called with (t, w), the round and the point about to be played.

An adaptive adversary depends on w, an oblivious one does not. `Outward`, `HeavyHalf` and `OppositeLabel` are adaptive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, ParameterError
from ..scheme.sizes import require_room
from .losses import Linear, Prediction, Quadratic, RoundLoss
from .sets import Array, norm, point

__all__ = [
    "Adversary",
    "Alternating",
    "DriftingTarget",
    "Examples",
    "HeavyHalf",
    "NoiseBursts",
    "OppositeLabel",
    "Outward",
    "RandomLinear",
    "RotatingHyperplane",
]

Adversary = Callable[[int, Array], RoundLoss]


def dimensions(owner: object, d: int) -> int:
    """Check that a vector of `d` numbers fits into memory."""
    require_room(4 * d, f"{type(owner).__name__}(d={d})")
    return d


class Alternating:
    """f_t(w) = ±w on [−1, 1]: −w/2 first, then w and −w in turn. The leader is wrong in every round."""

    def __init__(self, d: int = 1) -> None:
        self.d = dimensions(self, d)

    def __call__(self, t: int, w: Array) -> RoundLoss:
        z = np.zeros(self.d)
        z[0] = -0.5 if t == 1 else (1.0 if t % 2 == 0 else -1.0)
        return Linear(z)


class RandomLinear:
    """⟨z, w⟩ with independent z, Gaussian directions of length `size` around a fixed `mean`."""

    def __init__(self, d: int, size: float = 1.0, mean: ArrayLike = 0.0, seed: int = 0) -> None:
        self.generator = np.random.default_rng(seed)
        self.d, self.size = dimensions(self, d), size
        self.mean = np.broadcast_to(np.asarray(mean, dtype=np.float64), self.d)

    def __call__(self, t: int, w: Array) -> RoundLoss:
        z = self.mean + self.generator.normal(size=self.d)
        return Linear(self.size * z / np.linalg.norm(z))


class Outward:
    """z = w/‖w‖: a loss whose gradient points away from 0; in a random direction if w is 0.

    Points below 1e-12 of the largest norm so far are rounding errors and count as 0.
    """

    def __init__(self, d: int, size: float = 1.0, seed: int = 0) -> None:
        self.generator, self.d, self.size = np.random.default_rng(seed), dimensions(self, d), size
        self.farthest = 0.0

    def __call__(self, t: int, w: Array) -> RoundLoss:
        length = norm(w)
        self.farthest = max(self.farthest, length)
        away = w if length > 1e-12 * self.farthest else self.generator.normal(size=self.d)
        return Linear(self.size * away / norm(away))


class HeavyHalf:
    """On the simplex: +1 on the ⌊d/2⌋ heaviest coordinates by rank, −1 on the others. z ∝ w would be constant there."""

    def __call__(self, t: int, w: Array) -> RoundLoss:
        z = -np.ones(len(w))
        z[np.argsort(-w, kind="stable")[: len(w) // 2]] = 1.0
        return Linear(z)


class DriftingTarget:
    """½‖w − z_t‖² with z_t walking on a circle of radius r in the first two coordinates, `turns` times in T rounds."""

    def __init__(self, d: int, T: int, turns: float = 1.0, r: float = 1.0) -> None:
        if d < 2:
            raise ParameterError(f"DriftingTarget(d={d!r}): a circle needs two dimensions")
        self.d, self.T, self.turns, self.r = dimensions(self, d), T, turns, r

    def __call__(self, t: int, w: Array) -> RoundLoss:
        angle = 2.0 * math.pi * self.turns * t / self.T
        z = np.zeros(self.d)
        z[:2] = self.r * math.cos(angle), self.r * math.sin(angle)
        return Quadratic(z)


class RotatingHyperplane:
    """Examples on the unit sphere, labelled by a hyperplane that turns by `speed` radians a round."""

    def __init__(self, d: int, speed: float = 0.001, loss: str = "hinge", seed: int = 0) -> None:
        if d < 2:
            raise ParameterError(f"RotatingHyperplane(d={d!r}): a rotation needs two dimensions")
        self.generator, self.d = np.random.default_rng(seed), dimensions(self, d)
        self.speed, self.loss = speed, loss

    def __call__(self, t: int, w: Array) -> RoundLoss:
        x = self.generator.normal(size=self.d)
        x /= np.linalg.norm(x)
        side = x[0] * math.cos(self.speed * t) + x[1] * math.sin(self.speed * t)
        return Prediction(self.loss, x, 1.0 if side > 0 else -1.0)


class OppositeLabel:
    """Examples whose label is always the one that the player does not predict."""

    def __init__(self, d: int, loss: str = "hinge", seed: int = 0) -> None:
        self.generator, self.d, self.loss = np.random.default_rng(seed), dimensions(self, d), loss

    def __call__(self, t: int, w: Array) -> RoundLoss:
        x = self.generator.normal(size=self.d)
        x /= np.linalg.norm(x)
        return Prediction(self.loss, x, -1.0 if float(w @ x) > 0 else 1.0)


class NoiseBursts:
    """Another adversary's examples, with labels flipped in `length` of every `period` rounds."""

    def __init__(self, of: Adversary, period: int = 200, length: int = 20) -> None:
        if not 0 <= length <= period:
            raise ParameterError(f"NoiseBursts(period={period!r}, length={length!r}): expected 0 <= length <= period")
        self.of, self.period, self.length = of, period, length

    def __call__(self, t: int, w: Array) -> RoundLoss:
        f = self.of(t, w)
        if t % self.period >= self.length:
            return f
        if not isinstance(f, Prediction):
            raise InputError(f"NoiseBursts flips labels; {type(f).__name__} has none")
        return Prediction(f.loss, f.x, -f.y, f.importance)


class Examples:
    """A stream of (x, y) as losses on linear predictions; y is ±1 for margin losses."""

    def __init__(self, examples: Iterable[tuple[ArrayLike, float]], loss: str = "hinge") -> None:
        self.examples: Iterator[tuple[ArrayLike, float]] = iter(examples)
        self.loss = loss

    def __call__(self, t: int, w: Array) -> RoundLoss:
        got = next(self.examples, None)
        if got is None:
            raise InputError(f"the stream ended before round {t}")
        return Prediction(self.loss, point(got[0], "x"), float(got[1]))
