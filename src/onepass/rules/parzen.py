"""Parzen's classifier (Parzen 1962; Peña's kernel classifier): the sums of the classes' own examples."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..scheme.rounds import Array, Rule, Scalars, Step
from ..scheme.traits import DIRECTIONS, RuleTraits

__all__ = ["Parzen"]


@dataclasses.dataclass(repr=False)
class Parzen(Rule):
    """No learning: every example is added to its own class, w_y ← w_y + c x; with two classes, w ← w + c y x.

    With a kernel the score of a class is Σ K(xᵢ, x) over its examples, and a tie goes to the lowest class. Linear, it
    is Hebb's rule: the class with the largest projection on its sum.
    """

    name = "parzen"
    guarantee = "none: nothing is fitted; with a kernel whose width shrinks slowly, Bayes-consistent"
    paper = "Parzen 1962; Devroye and Krzyzak 1989"
    tasks = ("binary", "multiclass")
    formula = "parzen"

    def step(self, s: Scalars) -> Step:
        return Step(add=s.importance)

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(solves=DIRECTIONS, additive=True)

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        return np.where(np.arange(len(scores)) == y, s.importance, 0.0), Step(add=1.0)

    def suffer_all(self, scores: Array, y: int) -> float:
        return float(np.max(scores) > scores[y])
