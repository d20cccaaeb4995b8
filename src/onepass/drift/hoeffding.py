"""HDDM: tests whether the mean has changed, by Hoeffding's inequality for averages (A) and by McDiarmid's for weighted
averages (W).
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from ..errors import ParameterError
from ..scheme.parameters import flag, number
from .base import Detector

__all__ = ["HDDMA", "HDDMW"]


@dataclasses.dataclass(repr=False)
class _Bounded(Detector):
    """Numbers in [0, 1]; a false alarm has probability at most `drift_confidence` for a fixed cut.

    Only a rise is detected; with `two_sided`, a fall too.
    """

    unit_interval: ClassVar[bool] = True

    drift_confidence: float = number(0.001, above=0, below=1)
    warning_confidence: float = number(0.005, above=0, below=1)
    two_sided: bool = flag(False)

    def validate(self) -> None:
        if self.warning_confidence < self.drift_confidence:
            raise ParameterError(
                f"{type(self).__name__}(warning_confidence={self.warning_confidence!r}): "
                f"expected at least drift_confidence={self.drift_confidence!r}"
            )


@dataclasses.dataclass(repr=False)
class HDDMA(_Bounded):
    """The mean of all numbers against that of a prefix, whose end is where mean + Hoeffding bound was smallest.

    Of n numbers the first k, Z̄ the mean of all, X̄ that of the prefix: a drift where
    Z̄ − X̄ ≥ √((n−k)/(2kn) · ln(2/δ)). (Frías-Blanco, del Campo-Ávila, Ramos-Jiménez, Morales-Bueno, Ortiz-Díaz and
    Caballero-Mota 2015, A-test.)
    """

    name: ClassVar[str] = "hddma"
    slots: ClassVar[tuple[str, ...]] = ("total", "low", "low_n", "high", "high_n")

    def begin(self) -> None:
        self.total = self.low = self.high = 0.0
        self.low_n = self.high_n = 0

    def watch(self, x: float) -> bool:
        self.total += x
        n, mean = self.n, self.total / self.n
        if self.low_n == 0 or self.low / self.low_n + self._reach(self.low_n) >= mean + self._reach(n):
            self.low, self.low_n = self.total, n
        if self.high_n == 0 or self.high / self.high_n - self._reach(self.high_n) <= mean - self._reach(n):
            self.high, self.high_n = self.total, n
        rise = mean - self.low / self.low_n
        fall = self.high / self.high_n - mean if self.two_sided else -math.inf
        if self._differs(rise, self.low_n, self.drift_confidence):
            return True
        if self._differs(fall, self.high_n, self.drift_confidence):
            return True
        self.warning = self._differs(rise, self.low_n, self.warning_confidence) or self._differs(
            fall, self.high_n, self.warning_confidence
        )
        return False

    def _reach(self, n: int) -> float:
        return math.sqrt(math.log(1.0 / self.drift_confidence) / (2.0 * n))

    def _differs(self, difference: float, k: int, delta: float) -> bool:
        if k == self.n:
            return False
        return difference >= math.sqrt((self.n - k) / (2.0 * k * self.n) * math.log(2.0 / delta))


@dataclasses.dataclass(repr=False)
class HDDMW(_Bounded):
    """As `HDDMA` with means that fade: z ← λx + (1−λ)z, whose variance shrinks with b ← λ² + (1−λ)²b.

    The numbers since the cut against those before: a drift where z₂ − z₁ > √((b₁ + b₂)/2 · ln(1/δ)). The cut is where
    z + √(b/2 · ln(1/δ)) was least. Detects gradual changes early. (Frías-Blanco et al. 2015, W-test.)
    """

    name: ClassVar[str] = "hddmw"
    slots: ClassVar[tuple[str, ...]] = ("all", "rise", "fall")

    lam: float = number(0.05, above=0, at_most=1)

    def begin(self) -> None:
        # A fading mean is (z, b), with b = 0 if there are no numbers. A side is: cut point, (z, b) before it, (z, b)
        # after it.
        self.all = [0.0, 0.0]
        self.rise = [0.0, 0.0, 0.0, 0.0, 0.0]
        self.fall = [0.0, 0.0, 0.0, 0.0, 0.0]

    def watch(self, x: float) -> bool:
        _faded(self.all, 0, x, self.lam)
        self._cut(self.rise, x, 1.0)
        self._cut(self.fall, x, -1.0)
        sides = [(self.rise, 1.0), (self.fall, -1.0)] if self.two_sided else [(self.rise, 1.0)]
        if any(_differ(side, sign, self.drift_confidence) for side, sign in sides):
            return True
        self.warning = any(_differ(side, sign, self.warning_confidence) for side, sign in sides)
        return False

    def _cut(self, side: list[float], x: float, sign: float) -> None:
        z, b = self.all
        reach = sign * z + math.sqrt(b * math.log(1.0 / self.drift_confidence) / 2.0)
        if side[2] == 0.0 or reach < side[0]:
            side[:] = [reach, z, b, 0.0, 0.0]
        else:
            _faded(side, 3, x, self.lam)


def _faded(means: list[float], at: int, x: float, lam: float) -> None:
    z, b = means[at], means[at + 1]
    if b == 0.0:
        means[at], means[at + 1] = x, 1.0
    else:
        means[at], means[at + 1] = lam * x + (1.0 - lam) * z, lam**2 + (1.0 - lam) ** 2 * b


def _differ(side: list[float], sign: float, delta: float) -> bool:
    _, before, b_before, after, b_after = side
    if b_after == 0.0:
        return False
    return sign * (after - before) > math.sqrt((b_before + b_after) * math.log(1.0 / delta) / 2.0)
