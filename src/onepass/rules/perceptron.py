"""The Perceptron (Rosenblatt 1958), with margin β and step ρ."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..scheme import schedules
from ..scheme.parameters import flag, number
from ..scheme.rounds import Rule, Scalars, Step
from ..scheme.traits import RuleTraits

__all__ = ["Perceptron", "Pocket"]


@dataclasses.dataclass(repr=False)
class Perceptron(Rule):
    """If m ≤ β: w ← w + ρ φ. With `strict`, only if m < β. A `schedule` gives ρ_t in place of ρ.

    `strict` with β = 0 needs a start other than w = 0: give β > 0, or `ReferenceLearner(..., w=…)`.

    Updates k ≤ (R² + 2β/ρ)/γ² on separable data of margin γ; for any u with β = 0,
    k ≤ L + R‖u‖√L + R²‖u‖², L the hinge loss of u over the update rounds.
    """

    name = "perceptron"
    guarantee = "updates ≤ (R² + 2β/ρ)/γ² where a margin γ separates"
    paper = "Rosenblatt 1958; Novikoff 1962"
    tasks = ("binary", "multiclass", "multilabel", "ranking", "structured")
    formula = "perceptron"
    rho: float = number(1.0, above=0)
    beta: float = number(0.0, at_least=0)
    strict: bool = flag(False)
    schedule: str | schedules.Schedule | None = None

    def validate(self) -> None:
        self._schedule()

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(
            mistake_driven=True,
            additive=True,
            gradient=True,
            stays_at_zero=self.strict and self.beta == 0,  # 0 < 0 is false
        )

    def step(self, s: Scalars) -> Step:
        violated = s.m < self.beta if self.strict else s.m <= self.beta
        return Step(add=s.importance * self._schedule()(s.t)) if violated else Step()

    def suffer(self, s: Scalars) -> float:
        return max(0.0, self.beta - s.m)

    def native(self) -> Mapping[str, float | str]:
        return {"beta": self.beta, "strict": self.strict, **self._schedule().native()}

    def _schedule(self) -> schedules.Schedule:
        return schedules.Constant(self.rho) if self.schedule is None else schedules.make(self.schedule)


@dataclasses.dataclass(repr=False)
class Pocket(Perceptron):
    """The Perceptron that predicts with the weights of its longest run without an update (Gallant 1990)."""

    name = "pocket"
    cost = "O(features of the example); O(weights) when a run breaks the record"
    guarantee = "the best run's weights; converges on finite sets in probability"
    paper = "Gallant 1990"

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(readout="pocket")
