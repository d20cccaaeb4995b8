"""Budgets for the Perceptron: Crammer, Kandola and Singer; Peña; the Forgetron."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from ...scheme.parameters import choice, number
from ...scheme.rounds import Array, Rule
from .base import Budget, Memory, mistake_driven

if TYPE_CHECKING:
    from ..algebra import Kernel
    from ..expansion import Expansion, Round

__all__ = ["BudgetPerceptron", "BudgetSVM", "Forgetron", "self_tuned"]


@dataclasses.dataclass(repr=False)
class BudgetPerceptron(Budget):
    """The Budget Perceptron (Crammer, Kandola and Singer 2003): remove the vector that the others classify best.

    gᵢ = yᵢ(f(xᵢ) − cᵢ K(xᵢ, xᵢ)) is the margin of vector i without its own term. B=None is the paper's DC: after every
    insertion, while the largest gᵢ ≥ β (the rule's) that vector is removed; order="sweep" checks each once, the oldest
    first. If some unit u has y u(x) ≥ γ throughout, |S| ≤ (R² + 2β)/γ². With B, a full budget removes one, before
    or after the new one is added (`remove`).
    """

    name = "budget_perceptron"
    formulas = ("perceptron",)
    tasks = ("binary",)
    B: int | None = number(None, at_least=1, integer=True)
    remove: str = choice("before", "before", "after")
    order: str = choice("redundant", "redundant", "sweep")

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        super().require(rule, task, kernel)
        mistake_driven(rule, self, margin=True)

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.add == 0:
            return False
        was_full = self.full(f)
        if was_full and self.remove == "before":
            f.replace(f.argmin(-self.margins(f)), r)
        else:
            f.take_step(r)
        if self.B is None:
            self.distil(f, float(r.rule.get_params()["beta"]))
        elif was_full and self.remove == "after":
            f.remove(f.argmin(-self.margins(f)))
        return True

    @staticmethod
    def margins(f: Expansion) -> Array:
        """gᵢ of every vector: its margin without its own term."""
        c = f.c[:, 0]
        return np.asarray(np.sign(c) * (f.gram @ c - c * np.diag(f.gram)))

    def distil(self, f: Expansion, beta: float) -> None:
        """Remove the vectors with gᵢ ≥ β."""
        if self.order == "sweep":
            for birth in sorted(f.birth):
                i = f.birth.index(birth)
                if len(f) > 1 and self.margins(f)[i] >= beta:
                    f.remove(i)
            return
        while len(f) > 1:
            i = f.argmin(-self.margins(f))
            if self.margins(f)[i] < beta:
                return
            f.remove(i)

    def numbers(self, rule: Rule) -> dict[str, float]:
        beta = float(rule.get_params()["beta"])
        return {"after": self.remove == "after", "sweep": self.order == "sweep", "beta": beta}

    def reason(self) -> str:
        return "its margins are those of equal coefficients, added on m <= beta"


@dataclasses.dataclass(repr=False)
class BudgetSVM(BudgetPerceptron):
    """Peña's budget online SVM (β, M): add the vector, then remove the most redundant one, which may be the new one."""

    name = "budget_svm"
    B: int | None = number(100, at_least=1, integer=True)
    remove: str = choice("after", "before", "after")


@dataclasses.dataclass(repr=False)
class Forgetron(Budget):
    """The Forgetron (Dekel, Shalev-Shwartz and Singer 2005, 2008): when full, shrink by φ, then remove the oldest.

    tuning="self": φ is the largest with Q + Ψ(φ) ≤ (15/32) M, Ψ = (φσ)² + 2φσ − 2φ²σμ the damage of removing a
    vector of weight σ and margin μ, Q the damage so far, M the number of mistakes. "basic": φ is the smaller of
    (B+1)^(−1/(2(B+1))) and U/‖f‖, U = ¼√((B+1)/ln(B+1)).
    With K(x, x) ≤ 1, B ≥ 83 and any ‖g‖ ≤ U: M ≤ 2‖g‖² + 4 Σ hinge(g).
    """

    name = "forgetron"
    formulas = ("perceptron",)
    tasks = ("binary",)
    B: int = number(100, at_least=1, integer=True)
    tuning: str = choice("self", "self", "basic")

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        super().require(rule, task, kernel)
        mistake_driven(rule, self, margin=False)

    def start(self) -> Memory:
        return {"Q": 0.0, "M": 0.0}

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.add == 0:
            return False
        memory["M"] += 1
        was_full = self.full(f)
        f.take_step(r)
        if was_full:
            oldest = f.oldest
            f.c = self.factor(f, oldest, memory) * f.c
            f.remove(oldest)
        return True

    def factor(self, f: Expansion, oldest: int, memory: Memory) -> float:
        """φ, by which f is multiplied before the oldest vector is removed."""
        if self.tuning == "basic":
            floor = (self.B + 1) ** (-1 / (2 * (self.B + 1)))
            return float(min(floor, self.comparator() / math.sqrt(f.norm2))) if f.norm2 > 0 else floor
        sigma = abs(float(f.c[oldest, 0]))
        mu = float(np.sign(f.c[oldest, 0]) * (f.gram[oldest] @ f.c[:, 0]))
        phi = self_tuned(sigma, mu, memory["Q"] - 15 / 32 * memory["M"])
        memory["Q"] += (phi * sigma) ** 2 + 2 * phi * sigma - 2 * phi * sigma * phi * mu
        return phi

    def comparator(self) -> float:
        """U: the bound holds for all g with ‖g‖ ≤ U."""
        return 0.25 * math.sqrt((self.B + 1) / math.log(self.B + 1))

    def numbers(self, rule: Rule) -> dict[str, float]:
        return {"self_tuned": self.tuning == "self"}

    def reason(self) -> str:
        return "its bound counts mistakes, m <= 0, each adding 1"


def self_tuned(sigma: float, mu: float, c: float) -> float:
    """The largest φ ∈ (0, 1] with (σ² − 2σμ)φ² + 2σφ + c ≤ 0."""
    a, b = sigma * sigma - 2 * sigma * mu, 2 * sigma
    d = b * b - 4 * a * c
    if abs(a) < 1e-12:
        return min(1.0, -c / b)
    if a > 0 or (d > 0 and (-b - math.sqrt(d)) / (2 * a) > 1):
        return min(1.0, (-b + math.sqrt(d)) / (2 * a))
    return 1.0
