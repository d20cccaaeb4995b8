"""A hint for one-class runs with a useless radius: the distribution of the distances."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Distances"]

KEPT = 4096  # distances in memory
NEARLY_ALL = 0.9


class Distances:
    """A sample of the distances from the centre before rows were learned: of all first rows, then every 2nd, 4th, …"""

    def __init__(self, radius: float) -> None:
        self.radius = radius
        self.rows = self.outside = 0
        self._every, self._kept = 1, np.empty(0)

    def add(self, distances: Any) -> None:
        first = -self.rows % self._every  # the first row whose number is a multiple of the stride
        self.rows += len(distances)
        self.outside += int(np.count_nonzero(distances > self.radius))
        self._kept = np.concatenate([self._kept, distances[first :: self._every]])
        while len(self._kept) > KEPT:
            self._every, self._kept = 2 * self._every, self._kept[::2]

    def hint(self) -> str:
        """A hint for --radius, where nearly all rows were outside, or none."""
        if not self.rows or 0 < self.outside <= NEARLY_ALL * self.rows:
            return ""
        half, most = np.quantile(self._kept, [0.5, 0.95])
        share = f"{self.outside / self.rows:.2%} of the rows lay" if self.outside else "no row lay"
        found = f"half of the distances were within {half:.3g}, 95% within {most:.3g}"
        return f"{share} outside the radius {self.radius:g}; {found}: choose with --radius"
