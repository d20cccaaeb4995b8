"""The base of rules that update every weight by its own history."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..scheme import losses
from ..scheme.rounds import Array, Scalars, Seen, Step
from ..scheme.traits import RuleTraits
from .gradient import LossRule

__all__ = ["CoordinateRule"]


@dataclasses.dataclass(repr=False)
class CoordinateRule(LossRule):
    """g = c ∇ℓ, c the importance; then `move` updates each weight with g_j ≠ 0 from the numbers stored for it.

    `RuleTraits.planes` names these numbers; `native/loops/coordinates.hpp` has the same formulas.
    """

    slots: ClassVar[Mapping[str, float]] = {"rounds": 0.0}
    loss: str | losses.Loss = "logistic"

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(by_coordinate=True, sums_steps=True)

    def step(self, s: Scalars) -> Step:
        return Step(add=s.importance * self.pull(s))

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        return s.importance * self.pull_rows(scores, y), Step(add=1.0)

    def move(self, w: Array, g: Array, planes: dict[str, Array], spared: Any, s: Scalars) -> Array:
        """The weights after gradients g; may change the numbers stored for them. Penalties do not apply to `spared`
        weights.
        """
        raise NotImplementedError

    def moved(self, w: Array, seen: Seen, planes: dict[str, Array], s: Scalars) -> Array:
        s.state["rounds"] += 1.0
        g = -seen.pull
        at = np.ones_like(w, dtype=bool) if self.traits.dense_update else g != 0
        spared = np.zeros_like(at)
        spared[:, -1] = True
        out, parts = w.copy(), {name: plane[at] for name, plane in planes.items()}
        out[at] = self.move(w[at], g[at], parts, spared[at], s)
        for name, plane in planes.items():
            plane[at] = parts[name]
        return out

    def own(self) -> Mapping[str, float]:
        """The parameters of the compiled formula beside the loss: all fields that are no words."""
        fields = self.get_params().items()
        return {name: float(value) for name, value in fields if not isinstance(value, (str, losses.Loss))}

    def native(self) -> Mapping[str, float | str]:
        return {**losses.make(self.loss).native(), **self.own()}
