"""Stochastic (sub)gradient descent on a loss: plain, FOBOS, truncated; and Pegasos."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from ..errors import ParameterError
from ..scheme import losses, schedules
from ..scheme.parameters import choice, flag, number
from ..scheme.rounds import Array, Rule, Scalars, Step
from ..scheme.traits import DIRECTIONS, RuleTraits
from .adaline import one_hot

__all__ = ["FOBOS", "SGD", "Pegasos", "TruncatedGradient"]


@dataclasses.dataclass(repr=False)
class LossRule(Rule):
    """Base of the rules that follow the gradient of a loss.

    With more than two classes the logistic loss is softmax cross-entropy, the squared loss has targets ±1
    in every row, and the other margin losses act on the best rival.
    """

    tasks: ClassVar[Sequence[str]] = ("binary", "multiclass", "regression", "ranking", "structured")
    loss: str | losses.Loss = "hinge"

    def validate(self) -> None:
        losses.make(self.loss)

    @property
    def traits(self) -> RuleTraits:
        loss = losses.make(self.loss)
        return super().traits.replace(
            tasks=self.tasks_of(loss),
            solves=DIRECTIONS if loss.name in ("logistic", "squared") else (),
            probabilities=("binary", "multiclass") if loss.name == "logistic" else (),
        )

    def tasks_of(self, loss: losses.Loss) -> tuple[str, ...]:
        """The tasks that have this loss."""
        if loss.name == "squared":
            return ("binary", "multiclass", "regression")
        return ("binary", "multiclass", "multilabel", "ranking", "structured") if loss.margin else ("regression",)

    def pull(self, s: Scalars) -> float:
        """The pull of the loss along φ."""
        loss = losses.make(self.loss)
        # A target other than 1 (a structured cost) shifts the margin from which on the loss is 0.
        return loss.pull(s.m + (1.0 - s.target)) if loss.margin else s.side * loss.pull(s.residual)

    def pull_rows(self, scores: Array, y: int) -> Array:
        """The pull of the loss on each class row, along x."""
        if losses.make(self.loss).name == "logistic":
            e = np.exp(scores - np.max(scores))
            return np.asarray((np.arange(len(scores)) == y) - e / np.sum(e))
        return one_hot(scores, y) - scores

    def suffer(self, s: Scalars) -> float:
        loss = losses.make(self.loss)
        return loss.value(s.m + (1.0 - s.target)) if loss.margin else loss.value(s.residual)

    def suffer_all(self, scores: Array, y: int) -> float:
        if losses.make(self.loss).name == "logistic":
            return float(np.max(scores) - scores[y] + np.log(np.sum(np.exp(scores - np.max(scores)))))
        return float(0.5 * np.sum((one_hot(scores, y) - scores) ** 2))


@dataclasses.dataclass(repr=False)
class GradientDescent(LossRule):
    """Base of the rules of gradient descent: w ← w − η_t c ∇ℓ, c the importance; then the step of a penalty.

    `eta` replaces the η of a schedule given by name. `clock` says whether t counts rounds or updates.
    With `batch_size` b > 1 the gradients of b rounds in a row are taken at the same w, and their mean (or sum:
    `reduction`) makes one step; t then counts steps. An unfinished batch is stored, also in files.
    """

    schedule: str | schedules.Schedule = "inv_sqrt"
    eta: float | None = number(None, above=0)
    clock: str = choice("rounds", "rounds", "updates", kw_only=True)
    batch_size: int = number(1, at_least=1, integer=True, kw_only=True)
    reduction: str = choice("mean", "mean", "sum", kw_only=True)

    def validate(self) -> None:
        super().validate()
        self._schedule()

    @property
    def traits(self) -> RuleTraits:
        # Steps may be summed: the penalty depends on η alone.
        return super().traits.replace(sums_steps=True, batch_size=int(self.batch_size), reduction=self.reduction)

    def penalised(self, add: float, eta: float, s: Scalars) -> Step:
        """The step with the rule's penalty."""
        raise NotImplementedError

    def penalty(self) -> Mapping[str, float]:
        """The penalty's parameters of the compiled formula."""
        raise NotImplementedError

    def step(self, s: Scalars) -> Step:
        eta = self._eta(s)
        return self.penalised(eta * s.importance * self.pull(s), eta, s)

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        eta = self._eta(s)
        return eta * s.importance * self.pull_rows(scores, y), self.penalised(1.0, eta, s)

    def native(self) -> Mapping[str, float | str]:
        loss, schedule = losses.make(self.loss).native(), self._schedule().native()
        return {**loss, **schedule, "by_updates": self.clock == "updates", **self.penalty()}

    def _eta(self, s: Scalars) -> float:
        return self._schedule()(s.t if self.clock == "rounds" else s.k + 1)

    def _schedule(self) -> schedules.Schedule:
        schedule = schedules.make(self.schedule)
        if self.eta is None:
            return schedule
        if isinstance(self.schedule, schedules.Schedule) or "eta" not in schedule.get_params():
            raise ParameterError(
                f"{type(self).__name__}(eta={self.eta!r}) goes with a schedule by name that has an eta"
            )
        return dataclasses.replace(schedule, eta=self.eta)  # type: ignore[call-arg]


@dataclasses.dataclass(repr=False)
class SGD(GradientDescent):
    """w ← max(0, 1 − η_t λ)·w − η_t c ∇ℓ, λ = `l2` (the intercept is not shrunk), c the importance.

    `eta` replaces the η of a schedule given by name. `clock` says whether t counts rounds or updates. `batch_size` > 1
    averages (or, by `reduction`, sums) the gradients of so many rounds at the same w into one step.
    With more than two classes the logistic loss is softmax cross-entropy, the squared loss has targets ±1
    in every row, and the other margin losses act on the best rival.
    """

    name = "sgd"
    guarantee = "regret O(√T) for convex losses with η ∝ 1/√t; O(log T) where strongly convex"
    paper = "Robbins and Monro 1951; Zinkevich 2003"
    formula = "sgd"
    l2: float = number(0.0, at_least=0)

    def penalised(self, add: float, eta: float, s: Scalars) -> Step:
        return Step(add=add, decay=max(0.0, 1.0 - eta * self.l2))

    def penalty(self) -> Mapping[str, float]:
        return {"l2": self.l2}


@dataclasses.dataclass(repr=False)
class FOBOS(GradientDescent):
    """Forward–backward splitting (Duchi and Singer 2009): a gradient step, then the proximal map of the elastic net.

    w½ = w − η_t c ∇ℓ; w_j ← sign(w½_j) max(0, |w½_j| − η_t λ₁)/(1 + η_t λ₂), every round, lazily for absent features;
    the intercept is not penalised. Σ[ℓ(w_t) + Ω(w_{t+1})] exceeds any u's by at most ‖u‖²/(2η) + (η/2) Σ‖g‖².
    """

    name = "fobos"
    guarantee = "Σ[ℓ(w_t) + Ω(w_{t+1})] exceeds any u's by at most ‖u‖²/(2η) + (η/2) Σ‖g‖²"
    paper = "Duchi and Singer 2009"
    lam1: float = number(0.0, at_least=0)
    lam2: float = number(0.0, at_least=0)

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(soft_thresholds=True)

    def penalised(self, add: float, eta: float, s: Scalars) -> Step:
        return Step(add=add, soft=eta * self.lam1, shrink=1.0 / (1.0 + eta * self.lam2))

    def penalty(self) -> Mapping[str, float]:
        return {"lam1": self.lam1, "lam2": self.lam2}


@dataclasses.dataclass(repr=False)
class TruncatedGradient(GradientDescent):
    """Truncated gradient (Langford, Li and Zhang 2009): every K-th round, weights up to θ move K η_t g₀ towards zero.

    `gravity` is g₀. θ = ∞ and K = 1 is FOBOS with λ₁ = g₀.
    """

    name = "truncated"
    guarantee = "regret O(√T), the gravity's penalty included"
    paper = "Langford, Li and Zhang 2009"
    gravity: float = number(0.0, at_least=0)
    threshold: float = number(math.inf, above=0, infinite=True)
    K: int = number(10, at_least=1, integer=True)

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(soft_thresholds=True, soft_limit=self.threshold)

    def penalised(self, add: float, eta: float, s: Scalars) -> Step:
        return Step(add=add, soft=self.K * eta * self.gravity if s.t % self.K == 0 else 0.0)

    def penalty(self) -> Mapping[str, float]:
        return {"gravity": self.gravity, "K": self.K}


@dataclasses.dataclass(repr=False)
class Pegasos(Rule):
    """η = 1/(λt); w ← (1 − ηλ)·w + η c φ [m < 1], then onto the ball of radius 1/√λ with `project`.

    (Shalev-Shwartz, Singer, Srebro and Cotter 2011.) Minimises (λ/2)‖w‖² + mean hinge loss; the intercept is a
    coordinate of w like any other.
    """

    name = "pegasos"
    guarantee = "(λ/2)‖w‖² + mean hinge within Õ(1/(λT)) of the best"
    paper = "Shalev-Shwartz, Singer, Srebro and Cotter 2011"
    tasks = ("binary", "multiclass", "multilabel", "ranking", "structured")
    lam: float = number(1e-4, above=0)
    project: bool = flag(False)

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(uses_ww=self.project, sums_steps=not self.project)

    def step(self, s: Scalars) -> Step:
        eta = 1.0 / (self.lam * s.t)
        scale = 1.0 - 1.0 / s.t
        add = eta * s.importance if s.m < s.target else 0.0
        if self.project:
            ww = scale * scale * s.ww + 2.0 * scale * add * s.inner + add * add * s.xx
            inside = min(1.0, 1.0 / math.sqrt(self.lam * ww)) if ww > 0 else 1.0
            scale, add = scale * inside, add * inside
        return Step(add=add, scale=scale)
