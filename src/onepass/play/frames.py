"""The record of a round, and what is drawn of it."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np

from ..scheme.rounds import Array, Step
from .geometry import Line, Plane, Region, plane_of
from .streams import Example
from .words import factor, plain, show, vector, written


class Weights(NamedTuple):
    """s = w·x + b; with K classes w has K rows and b is K numbers."""

    w: Array
    b: Any

    def rows(self) -> Array:
        """(w₁, …, b), one row per class."""
        return np.column_stack([np.atleast_2d(self.w), np.atleast_1d(self.b)])


@dataclasses.dataclass(frozen=True)
class Frame:
    """One round: score, prediction and loss are those of the weights `before`."""

    t: int
    task: str
    points: tuple[Example, ...]  # the examples so far, the new one last
    score: Any
    prediction: Any
    loss: float
    step: Step
    before: Weights
    after: Weights
    predicting: Weights  # the weights of the readout after the round; `after` for readout="last"
    tube: float = 0.0

    @property
    def x(self) -> tuple[float, ...]:
        return self.points[-1][0]

    @property
    def y(self) -> Any:
        return self.points[-1][1]

    @property
    def verdict(self) -> str:
        """mistake; passive (w did not change); narrow (right, but with a margin below 1); shrink (w was only scaled);
        or right.

        In regression: passive, shrink, too low, too high.
        """
        if self.task != "regression" and self.prediction != self.y:
            return "mistake"
        if self.step.passive:
            return "passive"
        if self.step.add == 0 and self.step.gain == 0:
            return "shrink"
        if self.task == "regression":
            return "too low" if self.score < self.y else "too high"
        return "narrow" if self.margin < 1 else "right"

    @property
    def margin(self) -> float:
        """y·s, the lead over the best rival, or −|y − s|: larger is better."""
        if self.task == "binary":
            return float(self.y * self.score)
        if self.task == "regression":
            return -abs(float(self.y - self.score))
        return float(self.score[self.y] - np.max(np.delete(self.score, self.y)))

    @property
    def title(self) -> str:
        # Numbers too small for a picture count as 0: after an update that was exact up to ε, this one may be 1e-11.
        loss, add = (value if abs(value) > 1e-9 else 0.0 for value in (self.loss, self.step.add))
        return f"round {self.t}: {self.verdict}, loss {show(loss, 3)}, add {show(add, 3)}"

    @property
    def lines(self) -> list[Line]:
        """What is drawn, from the bottom to the top: margins, the boundary before and after, and that of the readout if
        it differs.
        """
        lines = [*self._margins(), *self._boundary("before", self.before), *self._boundary("after", self.after)]
        return lines if self.predicting is self.after else [*lines, *self._boundary("readout", self.predicting)]

    @property
    def regions(self) -> list[Region]:
        """The regions of each prediction after the round; none while all scores are equal."""
        rows = self.predicting.rows()
        if self.task == "regression" or not np.any(rows - rows[0] if len(rows) > 1 else rows):
            return []
        if self.task == "binary":
            return [Region(1, (plane_of(rows[0]),)), Region(-1, (plane_of(-rows[0]),))]
        regions = []
        for k, row in enumerate(rows):
            if not any(np.array_equal(row, lower) for lower in rows[:k]):  # a tie goes to the lowest class
                others = [plane_of(row - other) for other in rows if not np.array_equal(row, other)]
                regions.append(Region(k, tuple(others)))
        return regions

    def _margins(self) -> list[Line]:
        if self.task == "multiclass" or (self.task == "regression" and not self.tube):
            return []
        a, b, c = self._planes(self.after)[0]
        away = self.tube if self.task == "regression" else 1.0
        return [Line("margin", (a, b, c - side * away)) for side in (1, -1)]

    def _boundary(self, kind: str, weights: Weights) -> list[Line]:
        if self.task != "multiclass":
            return [Line(kind, plane) for plane in self._planes(weights)]
        rows, lines = weights.rows(), []
        for k, j in itertools.combinations(range(len(rows)), 2):
            others = [plane_of(rows[k] - row) for i, row in enumerate(rows) if i not in (k, j)]
            lines.append(Line(kind, plane_of(rows[k] - rows[j]), tuple(others)))
        return lines

    def _planes(self, weights: Weights) -> list[Plane]:
        rows = weights.rows()
        if self.task == "regression":
            return [(float(w), -1.0, float(b)) for w, b in rows]  # the points (x, y) where w·x + b − y = 0
        return [plane_of(row) for row in rows]

    def arithmetic(self, ascii: bool = False) -> list[str]:
        """The round as one would compute it by hand, in a few lines."""
        lines = [f"x = {vector(self.x)}, y = {self._label(self.y)}"]
        if self.task != "regression":
            lines[0] += f"; predicted {self._label(self.prediction)}"
        rows = self.before.rows()
        if len(rows) > 1:
            scores = ", ".join(f"s{k} = {show(s)}" for k, s in enumerate(self.score))
            lines.append(f"{scores}; loss = {show(self.loss)}")
            for k, (old, new) in enumerate(zip(rows, self.after.rows(), strict=True)):
                moved = "" if np.array_equal(old, new) else f"{written(old, 4)} → "
                lines.append(f"w{k} = {moved}{written(new, 4)}")
        else:
            *w, b = rows[0].tolist()
            products = [f"{factor(weight)}·{factor(value)}" for weight, value in zip(w, self.x, strict=True)]
            b = 0.0 if show(b) == "0" else b
            terms = " + ".join([*products, factor(b)] if b else products)
            lines.append(f"s = w·x{' + b' if b else ''} = {terms} = {show(self.score)}")
            lines.append(f"loss = {show(self.loss)}; {self._update()}")
        if self.predicting is not self.after:
            lines.append(f"the readout's w = {'; '.join(written(row) for row in self.predicting.rows())}")
        return [plain(line) for line in lines] if ascii else lines

    def _label(self, y: Any) -> str:
        return f"{y:+d}" if self.task == "binary" else show(y)

    def _update(self) -> str:
        """w ← scale·w + add·y·x, if the update has this form (that of second-order weights has not).

        soft(w, u) subtracts u from every |w_j|, down to 0.
        """
        step, result = self.step, written(self.after.rows()[0])
        if step.passive:
            return f"w stays {result}"
        scale, side = (
            step.scale * step.decay,
            float(self.y) if self.task == "binary" else -1.0 + 2 * (self.y >= self.score),
        )
        parts = ["w" if scale == 1 else f"{show(scale)}·w"] if scale else []
        if step.add:
            parts.append(f"{factor(step.add)}·y·x" if self.task == "binary" else f"{factor(step.add * side)}·x")
        formula, w = " + ".join(parts) or "0", scale * self.before.w + step.add * side * np.array(self.x)
        if step.soft:
            formula, w = f"soft({formula}, {show(step.soft)})", np.sign(w) * np.maximum(0.0, np.abs(w) - step.soft)
        if step.shrink != 1:
            formula, w = f"{show(step.shrink)}·{formula if step.soft else f'({formula})'}", step.shrink * w
        same = np.allclose(w, self.after.w, rtol=1e-9)
        return f"w ← {formula} = {result}" if same else f"add = {show(step.add)}, w ← {result}"
