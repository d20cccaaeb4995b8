"""Page–Hinkley: cumulative deviation from the running mean."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from ..scheme.parameters import choice, flag, number
from .base import Detector

__all__ = ["PageHinkley"]


@dataclasses.dataclass(repr=False)
class PageHinkley(Detector):
    """U ← αU + (x − x̄ − δ) rises when the mean does, D ← αD + (x − x̄ + δ) falls when it falls.

    A drift is detected where U − min U > λ, or max D − D > λ, from the `warm`-th number on. λ is in the unit of x.
    Scale it to the data: with the default there can be alarms for numbers of unit variance that do not change. (Page
    1954; Hinkley 1971.)

    `river_start` begins max D at −1, as River does.
    """

    name: ClassVar[str] = "page_hinkley"
    slots: ClassVar[tuple[str, ...]] = ("mean", "up", "up_min", "down", "down_max")

    delta: float = number(0.005, at_least=0)
    lam: float = number(50.0, above=0)
    alpha: float = number(1.0 - 1e-4, above=0, at_most=1)
    warm: int = number(30, at_least=1, integer=True)
    direction: str = choice("both", "both", "up", "down")
    river_start: bool = flag(False)

    def begin(self) -> None:
        self.mean = self.up = self.down = 0.0
        self.up_min = math.inf
        self.down_max = -1.0 if self.river_start else -math.inf

    def watch(self, x: float) -> bool:
        self.mean += (x - self.mean) / self.n
        self.up = self.alpha * self.up + (x - self.mean - self.delta)
        self.down = self.alpha * self.down + (x - self.mean + self.delta)
        self.up_min = min(self.up_min, self.up)
        self.down_max = max(self.down_max, self.down)
        if self.n < self.warm:
            return False
        risen = self.direction != "down" and self.up - self.up_min > self.lam
        fallen = self.direction != "up" and self.down_max - self.down > self.lam
        return risen or fallen
