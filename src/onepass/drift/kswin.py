"""KSWIN: are the latest numbers drawn from the distribution of those before? (Kolmogorov–Smirnov)"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from ..errors import ParameterError
from ..scheme.parameters import number
from .base import Detector

__all__ = ["KSWIN"]


@dataclasses.dataclass(repr=False)
class KSWIN(Detector):
    """Of the last `window` numbers, the newest r = `recent` against r drawn from the others.

    A drift where the greatest distance of the two empirical distributions exceeds √(−ln α / r); the window then holds
    the newest r. Detects any change of distribution, not of the mean alone, and tests at every number: α is the
    probability of a false alarm for one test. (Raab, Heusinger and Schleif 2020.)
    """

    name: ClassVar[str] = "kswin"
    slots: ClassVar[tuple[str, ...]] = ("values",)

    alpha: float = number(0.005, above=0, below=1)
    window: int = number(100, at_least=2, integer=True)
    recent: int = number(30, at_least=1, integer=True)
    seed: int = number(0, at_least=0, integer=True)

    def validate(self) -> None:
        if 2 * self.recent > self.window:
            raise ParameterError(f"KSWIN(recent={self.recent!r}): expected at most half of window={self.window!r}")

    def begin(self) -> None:
        self.values: list[float] = []

    def after_drift(self) -> None:
        self.values = self.values[-int(self.recent) :]
        self.n = len(self.values)

    def watch(self, x: float) -> bool:
        self.values.append(x)
        if len(self.values) <= self.window:
            if len(self.values) < self.window:
                return False
        else:
            del self.values[0]
        r = int(self.recent)
        # Draws depend on the position in the stream alone, so that a file need not hold a generator.
        draw = np.random.Generator(np.random.PCG64([int(self.seed), self.seen]))
        chosen = draw.choice(int(self.window) - r, r, replace=False, shuffle=False)
        old = np.sort(np.array(self.values)[chosen])
        new = np.sort(np.array(self.values[-r:]))
        return distance(old, new) > math.sqrt(-math.log(self.alpha) / r)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """sup |F₁ − F₂| of two sorted samples."""
    at = np.concatenate([one, other])
    below = np.searchsorted(one, at, side="right") / len(one) - np.searchsorted(other, at, side="right") / len(other)
    return float(np.abs(below).max())
