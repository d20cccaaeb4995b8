"""Passive-Aggressive learning on a budget (Wang and Vucetic 2010)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import ParameterError
from ...scheme.parameters import flag, number
from ...scheme.rounds import Array, Rule
from .base import Budget, Memory
from .projection import solve

if TYPE_CHECKING:
    from ..algebra import Kernel
    from ..expansion import Expansion, Round

__all__ = ["BPANN", "BPAP", "BPAS", "Problem"]


@dataclasses.dataclass(repr=False)
class BudgetPA(Budget):
    """Base of the budgets of Wang and Vucetic (2010): the PA problem in which one vector is removed.

    min ½‖w − w_t‖² + C·loss(w) over w = w_t − c_r φ_r + Σ_{i∈V} βᵢ φᵢ, for every vector r that could be removed, the
    new one included. The best r is removed. With x_t ∈ V the step is PA's own τ, and removing r costs
    ½c_r²·dist²(φ_r, span V) more. `ramp`: the ramp loss, with which a margin m < −1 changes nothing.
    """

    formulas: ClassVar[Sequence[str]] = ("pa1", "pa2")
    B: int | None = number(100, at_least=1, integer=True, optional=True)
    ramp: bool = flag(False)

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        super().require(rule, task, kernel)
        params = rule.get_params()
        if params["update_on"] != "loss" or params["importance_mode"] != "loss":
            raise ParameterError(f"{self!r} solves the PA problem itself: update_on and importance_mode must be 'loss'")
        if self.ramp and task == "regression":
            raise ParameterError(f"{self!r}: the ramp loss is for classification")

    def reason(self) -> str:
        return "it solves the problem of PA-I (or PA-II)"

    def numbers(self, rule: Rule) -> dict[str, float]:
        C: float = rule.aggressiveness()  # type: ignore[attr-defined]
        return {"ramp": self.ramp, "C": C, "squared": rule.traits.formula == "pa2"}

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.add == 0 or (self.ramp and r.loss > 2):
            return False
        return self.maintain(f, r, Problem.of(r)) if self.full(f) else self.insert(f, r)

    def insert(self, f: Expansion, r: Round) -> bool:
        """The step while the budget is not full."""
        return f.take_step(r)

    def maintain(self, f: Expansion, r: Round, problem: Problem) -> bool:
        """The step when the budget is full: replace a vector, or take a step along the stored vectors."""
        raise NotImplementedError


@dataclasses.dataclass
class Problem:
    """min over τ of ½τ²p² + C·loss(H − τp²): the cost of a step along φ of squared length p²."""

    C: float
    H: float
    squared: bool

    @classmethod
    def of(cls, r: Round) -> Problem:
        return cls(r.importance * r.rule.aggressiveness(), r.loss, r.rule.traits.formula == "pa2")  # type: ignore[attr-defined]

    def loss(self, rest: float) -> float:
        return 0.0 if rest <= 0 else self.C * (rest * rest if self.squared else rest)

    def tau(self, p2: float) -> float:
        if self.squared:
            return self.H / (p2 + 1 / (2 * self.C))
        return self.C if p2 == 0 else min(self.C, self.H / p2)

    def cost(self, tau: float, p2: float) -> float:
        return 0.5 * tau * tau * p2 + self.loss(self.H - tau * p2)

    def keeps_all(self, r: Round, p2: float, removal: float) -> bool:
        """Whether a step along p² that removes no vector costs at most the rule's own step plus `removal`."""
        return self.cost(self.tau(p2), p2) <= self.cost(r.add, r.xx) + removal


@dataclasses.dataclass(repr=False)
class BPAS(BudgetPA):
    """BPA-S, V = {t}: r costs ½c_r²(k_rr − k_rt²/k_tt), and the new vector takes over c_r k_rt/k_tt. O(B).

    B=None never removes a vector: PA, and with `ramp` PA^R.
    """

    name = "bpas"

    def maintain(self, f: Expansion, r: Round, problem: Problem) -> bool:
        costs = 0.5 * np.sum(f.c**2, axis=1) * np.maximum(0.0, np.diag(f.gram) - r.k**2 / r.ktt)
        removed = f.argmin(costs)
        if problem.loss(problem.H) <= problem.cost(r.add, r.xx) + costs[removed]:
            return False
        f.replace(removed, r, f.c[removed] * r.k[removed] / r.ktt + r.coefficients)
        return True


@dataclasses.dataclass(repr=False)
class BPANN(BudgetPA):
    """BPA-NN, V = {t, NN(r)}: r is projected on the new vector and r's nearest neighbour. O(B)."""

    name = "bpann"

    def maintain(self, f: Expansion, r: Round, problem: Problem) -> bool:
        projections = [self.project_on_neighbour(f, r, i) for i in range(len(f))]
        costs = [0.5 * float(np.sum(f.c[i] ** 2)) * max(0.0, rest) for i, (_, _, _, rest) in enumerate(projections)]
        removed = f.argmin(costs)
        n = f.argmin(np.diag(f.gram) - 2 * r.k)
        p2 = float(np.sum(r.parts**2)) * r.k[n] ** 2 / f.gram[n, n]
        if problem.keeps_all(r, p2, costs[removed]):
            f.c[n] += problem.tau(p2) * r.parts * r.k[n] / f.gram[n, n]
            return True
        neighbour, on_neighbour, on_new, _ = projections[removed]
        coefficients = f.c[removed] * on_new + r.coefficients
        if neighbour is not None:
            f.c[neighbour] += f.c[removed] * on_neighbour
        f.replace(removed, r, coefficients)
        return True

    def project_on_neighbour(self, f: Expansion, r: Round, i: int) -> tuple[int | None, float, float, float]:
        """Vector i's projection on its nearest neighbour and on the new vector: the neighbour, the parts of cᵢ that the
        two take over, and the squared distance of vector i from its projection."""
        krr, krt = f.gram[i, i], r.k[i]
        if len(f) > 1:
            distances = np.diag(f.gram) - 2 * f.gram[i]
            distances[i] = np.inf
            n = f.argmin(distances)
            knn, knt, krn = f.gram[n, n], r.k[n], f.gram[i, n]
            D = knn * r.ktt - knt**2
            if D > 1e-10 * knn * r.ktt:
                a_n, a_t = (r.ktt * krn - knt * krt) / D, (knn * krt - knt * krn) / D
                return n, a_n, a_t, krr - a_n * krn - a_t * krt
        return None, 0.0, krt / r.ktt, krr - krt**2 / r.ktt


@dataclasses.dataclass(repr=False)
class BPAP(BudgetPA):
    """BPA-P, V = S ∪ {t} ∖ {r}: r is projected on all others; r costs ½c_r²/M_rr, M = K⁻¹ with t. O(B²)."""

    name = "bpap"
    inverts = True

    def insert(self, f: Expansion, r: Round) -> bool:
        if len(f):
            d = solve(f, r.k)
            if r.ktt - float(r.k @ d) <= 1e-8 * r.ktt:
                return self.project(f, r, Problem.of(r), d)
        return f.take_step(r)

    def project(self, f: Expansion, r: Round, problem: Problem, d: Array) -> bool:
        """Take a step along the projection of x on the stored vectors."""
        tau = problem.tau(float(np.sum(r.parts**2)) * float(r.k @ d))
        f.c = f.c + np.outer(d, tau * r.parts)
        return True

    def maintain(self, f: Expansion, r: Round, problem: Problem) -> bool:
        d = solve(f, r.k)
        inside = float(r.k @ d)
        if r.ktt - inside <= 1e-8 * r.ktt:
            return self.project(f, r, problem, d)
        both = np.block([[f.gram, r.k[:, np.newaxis]], [r.k[np.newaxis], np.array([[r.ktt]])]])
        M = np.linalg.inv(both)
        costs = 0.5 * np.sum(f.c**2, axis=1) / np.diag(M)[:-1]
        removed = f.argmin(costs)
        if problem.keeps_all(r, float(np.sum(r.parts**2)) * inside, costs[removed]):
            return self.project(f, r, problem, d)
        c, parts = f.c[removed].copy(), -M[:, removed] / M[removed, removed]
        f.append(r)
        f.c = f.c + np.outer(np.where(np.arange(len(f)) == removed, 0.0, parts), c)
        f.remove(removed)
        return True
