"""ADWIN: the longest window whose numbers are consistent with one mean."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ..errors import DamagedFileError
from ..scheme.parameters import flag, number
from .base import LARGEST, Detector

__all__ = ["ADWIN"]


@dataclasses.dataclass(repr=False)
class ADWIN(Detector):
    """Old numbers are dropped while some cut of the window has two parts whose means differ by more than ε.

    With n₀ and n₁ numbers in the parts, W in all, σ² their variance, 1/m = 1/(n₀ − l + 1) + 1/(n₁ − l + 1), l =
    `min_part`, δ' = ln(2 ln W / δ): ε = √(2σ²δ'/m) + 2δ'/(3m). The window is an exponential histogram: row i holds at
    most `buckets` sums of 2^i numbers, so that W numbers take O(log W) memory. Cuts are tried every `clock` numbers,
    between buckets. `mean` and `width` are those of the window. (Bifet and Gavaldà 2007.)

    After a drift the window keeps its new part, as in the paper; `reset_on_drift` empties it.
    """

    name: ClassVar[str] = "adwin"
    slots: ClassVar[tuple[str, ...]] = ("width", "total", "squares", "sums", "spreads")

    delta: float = number(0.002, above=0, below=1)
    clock: int = number(32, at_least=1, integer=True)
    buckets: int = number(5, at_least=1, integer=True)
    min_part: int = number(5, at_least=1, integer=True)
    grace: int = number(10, at_least=0, integer=True)
    reset_on_drift: bool = flag(False)

    def begin(self) -> None:
        self.width = 0
        self.total = self.squares = 0.0  # sum of the window, and of squared deviations from its mean
        # Row i, newest bucket last: the sum of its 2^i numbers, and of their squared deviations.
        self.sums: list[list[float]] = [[]]
        self.spreads: list[list[float]] = [[]]

    def restore(self, state: Mapping[str, Any]) -> Self:
        super().restore(state)
        buckets = [len(row) if isinstance(row, list) else -1 for row in self.sums]
        same = buckets == [len(row) if isinstance(row, list) else -1 for row in self.spreads]
        if not same or not buckets or min(buckets) < 0 or self.width != sum(n << i for i, n in enumerate(buckets)):
            raise DamagedFileError(f"the buckets of {self!r} do not fit together")
        if any(abs(each) > LARGEST * 2.0**i for i, row in enumerate(self.sums) for each in row) or not (
            abs(self.total) <= LARGEST * self.width
        ):
            raise DamagedFileError(f"the sums of {self!r} are too large for the numbers that it takes")
        return self

    def after_drift(self) -> None:
        if self.reset_on_drift:
            super().after_drift()

    @property
    def mean(self) -> float:
        """The mean of the window; 0 while it is empty."""
        return self.total / self.width if self.width else 0.0

    def watch(self, x: float) -> bool:
        self._insert(x)
        if self.n % int(self.clock) or self.width <= self.grace:
            return False
        shrunk = False
        while self._cut():
            self._drop_oldest()
            shrunk = True
        return shrunk

    def _insert(self, x: float) -> None:
        if self.width:
            self.squares += self.width * (x - self.mean) ** 2 / (self.width + 1)
        self.width += 1
        self.total += x
        self.sums[0].append(x)
        self.spreads[0].append(0.0)
        for i in range(len(self.sums)):
            if len(self.sums[i]) <= self.buckets:
                return
            if i + 1 == len(self.sums):
                self.sums.append([])
                self.spreads.append([])
            a, b = self.sums[i][:2]
            between = (a - b) ** 2 / 2.0 ** (i + 1)  # n·n/(2n)·(a/n − b/n)² with n = 2^i
            self.sums[i + 1].append(a + b)
            self.spreads[i + 1].append(sum(self.spreads[i][:2]) + between)
            del self.sums[i][:2], self.spreads[i][:2]

    def _cut(self) -> bool:
        """Is there a cut between buckets with two different means? Old cuts are tried first."""
        least, width = int(self.min_part), self.width
        confidence = math.log(2.0 * math.log(width) / self.delta) if width > 1 else 0.0
        variance = max(self.squares, 0.0) / width
        old, old_sum = 0, 0.0
        for i in range(len(self.sums) - 1, -1, -1):
            for bucket in self.sums[i]:
                old += 1 << i
                old_sum += bucket
                new = width - old
                if new < least or new == 0:
                    return False
                if old < least:
                    continue
                inverse = 1.0 / (old - least + 1) + 1.0 / (new - least + 1)
                limit = math.sqrt(2.0 * inverse * variance * confidence) + 2.0 / 3.0 * confidence * inverse
                if abs(old_sum / old - (self.total - old_sum) / new) > limit:
                    return True
        return False

    def _drop_oldest(self) -> None:
        i = len(self.sums) - 1
        size, gone, spread = 1 << i, self.sums[i].pop(0), self.spreads[i].pop(0)
        self.width -= size
        self.total -= gone
        if self.width:
            self.squares -= spread + size * self.width * (gone / size - self.mean) ** 2 / (size + self.width)
        else:
            self.total = self.squares = 0.0
        while i > 0 and not self.sums[i]:
            del self.sums[i], self.spreads[i]
            i -= 1
