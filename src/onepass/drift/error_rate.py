"""Detectors for the errors of a classifier: DDM on their rate, EDDM on the distance between them."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from ..errors import ParameterError
from ..scheme.parameters import number
from .base import Detector

__all__ = ["DDM", "EDDM"]


@dataclasses.dataclass(repr=False)
class DDM(Detector):
    """The error rate p and its deviation s = √(p(1−p)/n) stay near their minimum while nothing changes.

    A warning if p + s > p_min + `warning_level`·s_min, a drift at `drift_level`; p_min and s_min are the values where p
    + s was smallest. (Gama, Medas, Castillo and Rodrigues 2004.)
    """

    name: ClassVar[str] = "ddm"
    slots: ClassVar[tuple[str, ...]] = ("p", "p_min", "s_min")
    unit_interval: ClassVar[bool] = True

    warm: int = number(30, at_least=1, integer=True)
    warning_level: float = number(2.0, above=0)
    drift_level: float = number(3.0, above=0)

    def validate(self) -> None:
        if self.warning_level > self.drift_level:
            raise ParameterError(f"DDM(warning_level={self.warning_level!r}): expected at most drift_level")

    def begin(self) -> None:
        self.p = 0.0
        self.p_min = self.s_min = math.inf

    def watch(self, x: float) -> bool:
        self.p += (x - self.p) / self.n
        # Rounding may carry p of constant numbers beyond [0, 1] by an ulp.
        s = math.sqrt(max(self.p * (1.0 - self.p), 0.0) / self.n)
        if self.n <= self.warm:
            return False
        if self.p + s <= self.p_min + self.s_min:
            self.p_min, self.s_min = self.p, s
        self.warning = self.p + s > self.p_min + self.warning_level * self.s_min
        return self.p + s > self.p_min + self.drift_level * self.s_min


@dataclasses.dataclass(repr=False)
class EDDM(Detector):
    """While a learner improves, the distance between its errors grows: p is the mean distance, s its deviation.

    A warning where (p + 2s) / max (p + 2s) < `alpha`, a drift below `beta`, once `warm` errors have been seen. Detects
    slow changes that leave the error rate within its deviation. (Baena-García, del Campo-Ávila, Fidalgo, Bifet,
    Gavaldà and Morales-Bueno 2006.)
    """

    name: ClassVar[str] = "eddm"
    slots: ClassVar[tuple[str, ...]] = ("errors", "last", "mean", "squares", "most")
    unit_interval: ClassVar[bool] = True

    alpha: float = number(0.95, above=0, at_most=1)
    beta: float = number(0.9, above=0, at_most=1)
    warm: int = number(30, at_least=1, integer=True)

    def validate(self) -> None:
        if self.alpha < self.beta:
            raise ParameterError(f"EDDM(alpha={self.alpha!r}): expected at least beta={self.beta!r}")

    def begin(self) -> None:
        self.errors = self.last = 0
        self.mean = self.squares = 0.0
        self.most = -math.inf

    def watch(self, x: float) -> bool:
        if x < 0.5:
            return False
        distance, self.last = self.n - self.last, self.n
        self.errors += 1
        off = distance - self.mean
        self.mean += off / self.errors
        self.squares += off * (distance - self.mean)
        if self.n <= self.warm or self.errors < 2:
            return False
        spread = self.mean + 2.0 * math.sqrt(self.squares / (self.errors - 1))
        if spread > self.most:
            self.most = spread
            return False
        if self.errors <= self.warm:
            return False
        level = spread / self.most
        self.warning = level < self.alpha
        return level < self.beta
