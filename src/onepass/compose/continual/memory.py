"""A uniform sample of all examples so far, in fixed memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...estimators.minibatch import widened
from ...reductions.sampling import uniform, uniforms
from ...scheme.rounds import Array

__all__ = ["Memory"]

KEPT, DRAWN = 0, 1  # streams of random numbers


@dataclasses.dataclass
class Memory:
    """Reservoir sampling (Vitter 1985, algorithm R): each of n examples offered is in the sample with probability m/n.

    Draws depend on the seed and on the number of examples offered alone, so that chunks and files change nothing.
    """

    room: int
    seed: int
    rows: Array
    codes: NDArray[np.int64]
    offered: int = 0

    @classmethod
    def empty(cls, room: int, seed: int) -> Memory:
        return cls(room, seed, np.empty((0, 0)), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.codes)

    def offer(self, x: Array, code: int) -> int | None:
        """The slot in which the example is stored; None where it is not."""
        place: int | None = len(self)
        if len(x) > self.rows.shape[1]:
            self.rows = widened(self.rows, len(x))
        if len(self) < self.room:
            self.rows = np.concatenate([self.rows, x[np.newaxis]]) if len(self) else x[np.newaxis].copy()
            self.codes = np.append(self.codes, code)
        else:
            drawn = int(uniform(self.seed, KEPT, self.offered) * (self.offered + 1))
            place = drawn if drawn < self.room else None
            if place is not None:
                self.rows[place], self.codes[place] = x, code
        self.offered += 1
        return place

    def draw(self, n: int) -> NDArray[np.intp]:
        """The slots of n distinct examples; all slots if there are no more than n."""
        if len(self) <= n:
            return np.arange(len(self))
        keys = uniforms(self.seed, DRAWN, self.offered * self.room, len(self))
        return np.sort(np.argpartition(keys, n)[:n])

    def parts(self) -> dict[str, Any]:
        return {"memory": self.rows, "memory_codes": self.codes, "offered": self.offered}
