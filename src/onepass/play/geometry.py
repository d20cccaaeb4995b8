"""Lines and half-planes, cut to a box."""

from __future__ import annotations

import dataclasses
import math

from ..scheme.rounds import Array

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top
Plane = tuple[float, float, float]  # (a, b, c): a·p₁ + b·p₂ + c, a line where it is 0, a half-plane where ≥ 0


@dataclasses.dataclass(frozen=True)
class Line:
    """Where a·p₁ + b·p₂ + c = 0, as far as the half-planes `within` go. `kind`: before, after, margin, readout."""

    kind: str
    plane: Plane
    within: tuple[Plane, ...] = ()

    def segment(self, box: Box) -> tuple[Point, Point] | None:
        """The part inside `box`, or None."""
        a, b, c = self.plane
        norm = math.hypot(a, b)
        if norm == 0:
            return None
        a, b, c = a / norm, b / norm, c / norm
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        away = a * x + b * y + c
        x, y = x - away * a, y - away * b  # the point nearest to the middle of the box; the line's direction is (−b, a)
        low, high = -math.inf, math.inf
        for p, q, r in (*sides(box), *self.within):
            slope, value = q * a - p * b, p * x + q * y + r
            if abs(slope) <= 1e-12 * math.hypot(p, q):
                if not value >= -1e-12 * (math.hypot(p, q) + abs(r)):
                    return None
            elif slope > 0:
                low = max(low, -value / slope)
            else:
                high = min(high, -value / slope)
        if not (low < high and math.isfinite(low) and math.isfinite(high)):
            return None
        return (x - low * b, y + low * a), (x - high * b, y + high * a)


@dataclasses.dataclass(frozen=True)
class Region:
    """Where a class is predicted: the points on the right side of all half-planes."""

    label: int
    within: tuple[Plane, ...]

    def polygon(self, box: Box) -> list[Point]:
        corners = [(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])]
        for a, b, c in self.within:
            kept: list[Point] = []
            for p, q in zip(corners, corners[1:] + corners[:1], strict=True):
                at_p, at_q = (a * x + b * y + c for x, y in (p, q))
                if at_p >= 0:
                    kept.append(p)
                if (at_p >= 0) != (at_q >= 0):
                    u = at_p / (at_p - at_q)
                    kept.append((p[0] + u * (q[0] - p[0]), p[1] + u * (q[1] - p[1])))
            corners = kept
        return corners


def plane_of(row: Array) -> Plane:
    a, b, c = row.tolist()
    return a, b, c


def sides(box: Box) -> list[Plane]:
    """A box as four half-planes."""
    return [(1.0, 0.0, -box[0]), (-1.0, 0.0, box[2]), (0.0, 1.0, -box[1]), (0.0, -1.0, box[3])]


def ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, four to eight of them."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((factor * power for factor in (1, 2, 5, 10)), key=lambda size: abs(size - rough))
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def balanced(columns: int, pictures: int) -> int:
    """At most so many columns, with as few gaps as possible in the last row."""
    return math.ceil(pictures / math.ceil(pictures / columns))
