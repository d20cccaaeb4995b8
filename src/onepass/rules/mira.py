"""MIRA, the margin infused relaxed algorithm (Crammer and Singer 2003)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..scheme.parameters import choice, number
from ..scheme.rounds import Array, Rule, Scalars, Step
from ..scheme.traits import DIRECTIONS, RuleTraits

__all__ = ["MIRA"]


@dataclasses.dataclass(repr=False)
class MIRA(Rule):
    """w ← w + α φ, α = clip((β − m)/‖φ‖², 0, c·cap): with β = 0 the smallest w that the step can reach, so ‖w‖ never
    grows.

    multiclass="mira" solves the exact problem over all classes: τ = C e_y − Π(C e_y + s/‖x‖²), Π the projection onto
    {ν ≥ 0, Σν = C}, C = c·cap. From w = 0 the rule alone would make no update; tie_update="perceptron" makes the whole
    step if m = 0 (with several classes, the uniform step if the true class ties with the best). β = 1 is PA-I with C =
    cap.
    """

    name = "mira"
    cost = "O(features of the example) × classes; exact multiclass O(K log K) more"
    guarantee = "a mistake bound as the Perceptron's"
    paper = "Crammer and Singer 2003"
    tasks = ("binary", "multiclass", "multilabel", "ranking")
    beta: float = number(0.0, at_least=0)
    cap: float = number(1.0, above=0)
    tie_update: str = choice("perceptron", "perceptron", "none")

    @property
    def traits(self) -> RuleTraits:
        # Not `additive`, for the voted readout: an update below the cap ends at a score of exactly 0, which is a vote
        # for neither class.
        return super().traits.replace(
            multiclass=(*DIRECTIONS, "mira"),
            solves=("mira",),
            mistake_driven=True,
            stays_at_zero=self.beta == 0 and self.tie_update == "none",
            sums_steps=True,
        )

    def step(self, s: Scalars) -> Step:
        if self.beta == 0 and s.m == 0:
            return Step(add=s.importance * self.cap if self.tie_update == "perceptron" else 0.0)
        return Step(add=min(s.importance * self.cap, max(0.0, (self.beta - s.m) / s.xx)))

    def suffer(self, s: Scalars) -> float:
        return max(0.0, self.beta - s.m)

    def suffer_all(self, scores: Array, y: int) -> float:
        return float(np.max(scores) - scores[y])

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        cap = s.importance * self.cap
        errors = (scores >= scores[y]) & (np.arange(len(scores)) != y)
        if np.any(errors) and np.max(scores) == scores[y] and self.tie_update == "perceptron":
            return np.where(np.arange(len(scores)) == y, cap, -cap * errors / np.sum(errors)), Step(add=1.0)
        truth = cap * (np.arange(len(scores)) == y)
        return truth - project_to_simplex(truth + scores / s.xx, cap), Step(add=1.0)

    def native(self) -> Mapping[str, float | str]:
        return {"beta": self.beta, "cap": self.cap, "step_on_tie": self.tie_update == "perceptron"}


def project_to_simplex(z: Array, total: float) -> Array:
    """The nearest point with ν ≥ 0 and Σν = total, by sorting."""
    z = z - np.max(z)  # the result does not change, large scores lose no digits
    ordered = np.sort(z)[::-1]
    thresholds = (np.cumsum(ordered) - total) / np.arange(1, len(z) + 1)
    kept = np.flatnonzero(ordered - thresholds > 0)[-1]
    return np.asarray(np.maximum(0.0, z - thresholds[kept]))
