"""Stochastic (sub)gradient descent on a loss, and Pegasos."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from .. import losses, schedules
from ..core import Array, Rule, Scalars, Step
from ..errors import ParameterError
from ..parameters import choice, flag, number
from .adaline import one_hot

__all__ = ["SGD", "Pegasos"]


@dataclasses.dataclass(repr=False)
class SGD(Rule):
    """w ← max(0, 1 − η_t λ)·w − η_t c ∇ℓ, λ = `l2` (the intercept is not shrunk), c the importance.

    `eta` replaces the η of a schedule given by name. `clock` says whether t counts rounds or updates.
    With more than two classes the logistic loss is softmax cross-entropy, the squared loss has targets ±1
    in every row, and the other margin losses act on the best rival.
    """

    name = "sgd"
    tasks = ("binary", "multiclass", "regression", "ranking", "structured")
    code = 6
    loss: str | losses.Loss = "hinge"
    schedule: str | schedules.Schedule = "inv_sqrt"
    eta: float | None = number(None, above=0)
    l2: float = number(0.0, at_least=0)
    clock: str = choice("rounds", "rounds", "updates")

    def validate(self) -> None:
        losses.make(self.loss)
        self._schedule()

    def defined_for(self) -> Sequence[str]:
        loss = losses.make(self.loss)
        if loss.name == "squared":
            return ("binary", "multiclass", "regression")
        return ("binary", "multiclass", "ranking", "structured") if loss.margin else ("regression",)

    def step(self, s: Scalars) -> Step:
        eta = self._eta(s)
        loss = losses.make(self.loss)
        if loss.margin:
            # A target other than 1 (a structured cost) moves the margin at which the loss ends.
            pull = loss.pull(s.m + (1.0 - s.target))
        else:
            pull = s.side * loss.pull(s.residual)
        return Step(add=eta * s.importance * pull, decay=max(0.0, 1.0 - eta * self.l2))

    def suffer(self, s: Scalars) -> float:
        loss = losses.make(self.loss)
        return loss.value(s.m + (1.0 - s.target)) if loss.margin else loss.value(s.residual)

    def suffer_all(self, scores: Array, y: int) -> float:
        if losses.make(self.loss).name == "logistic":
            return float(np.max(scores) - scores[y] + np.log(np.sum(np.exp(scores - np.max(scores)))))
        return float(0.5 * np.sum((one_hot(scores, y) - scores) ** 2))

    def sees_all_scores(self, task: str) -> bool:
        return task == "multiclass" and losses.make(self.loss).name in ("logistic", "squared")

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        eta = self._eta(s)
        if losses.make(self.loss).name == "logistic":
            e = np.exp(scores - np.max(scores))
            pull = (np.arange(len(scores)) == y) - e / np.sum(e)
        else:
            pull = one_hot(scores, y) - scores
        return eta * s.importance * pull, Step(add=1.0, decay=max(0.0, 1.0 - eta * self.l2))

    def proba(self, task: str) -> bool:
        return losses.make(self.loss).name == "logistic" and task in ("binary", "multiclass")

    def native(self) -> Sequence[float]:
        loss, schedule = losses.make(self.loss), self._schedule()
        clock = float(self.clock == "updates")
        return [loss.code, loss.native(), schedule.code, *schedule.native(), clock, self.l2]

    def _eta(self, s: Scalars) -> float:
        return self._schedule()(s.t if self.clock == "rounds" else s.k + 1)

    def _schedule(self) -> schedules.Schedule:
        schedule = schedules.make(self.schedule)
        if self.eta is None:
            return schedule
        if isinstance(self.schedule, schedules.Schedule) or "eta" not in schedule.get_params():
            raise ParameterError(f"SGD(eta={self.eta!r}) goes with a schedule given by name that has an eta")
        return dataclasses.replace(schedule, eta=self.eta)  # type: ignore[call-arg]


@dataclasses.dataclass(repr=False)
class Pegasos(Rule):
    """η = 1/(λt); w ← (1 − ηλ)·w + η c φ [m < 1], then onto the ball of radius 1/√λ with `project`.

    (Shalev-Shwartz, Singer, Srebro and Cotter 2011.) Minimises (λ/2)‖w‖² + mean hinge loss; the intercept is a
    coordinate of w like any other.
    """

    name = "pegasos"
    tasks = ("binary", "multiclass", "ranking", "structured")
    code = 7
    lam: float = number(1e-4, above=0)
    project: bool = flag(False)

    def uses_ww(self) -> bool:
        return self.project

    def step(self, s: Scalars) -> Step:
        eta = 1.0 / (self.lam * s.t)
        scale = 1.0 - 1.0 / s.t
        add = eta * s.importance if s.m < s.target else 0.0
        if self.project:
            ww = scale * scale * s.ww + 2.0 * scale * add * s.m + add * add * s.xx
            inside = min(1.0, 1.0 / math.sqrt(self.lam * ww)) if ww > 0 else 1.0
            scale, add = scale * inside, add * inside
        return Step(add=add, scale=scale)
