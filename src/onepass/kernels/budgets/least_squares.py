"""Kernel recursive least squares, sparse by approximate linear dependence (Engel, Mannor and Meir 2004)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import ParameterError
from ...scheme.parameters import number
from ...scheme.rounds import Array, Rule
from .base import Budget, Memory
from .projection import solve

if TYPE_CHECKING:
    from ..algebra import Kernel
    from ..expansion import Expansion, Round

__all__ = ["ALD"]


@dataclasses.dataclass(repr=False)
class ALD(Budget):
    """KRLS: least squares over all rounds, with a vector added only where it is farther than ν from the span of S.

    â = K⁻¹k, δ = K(x, x) − kᵀâ, e = y − f(x). δ > ν K(x, x), and room: c ← [c − âe/δ; e/δ], P ← diag(P, 1). Otherwise
    q = Pâ/(1 + âᵀPâ), P ← P − q âᵀP, c ← c + K⁻¹q e. An importance w replaces the two 1s by 1/w. O(m²).
    c = K⁻¹ argmin_b ‖A b − y‖², where row t of A is â_t. The rule ("adaline") only selects the squared loss; its ρ is
    not used.
    """

    name = "ald"
    formulas = ("adaline",)
    tasks: ClassVar[Sequence[str]] = ("binary", "regression")
    every_round = True
    inverts = True
    B: int | None = number(None, at_least=1, integer=True)
    nu: float = number(1e-3, above=0)

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        super().require(rule, task, kernel)
        if rule.traits.epsilon:
            raise ParameterError(f"{self!r} is least squares: rules with an epsilon are not supported")

    def start(self) -> Memory:
        return {"P": np.zeros((0, 0))}

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        residual = float(r.parts[0]) * r.loss
        d = solve(f, r.k) if len(f) else np.zeros(0)
        delta = max(0.0, r.ktt - float(r.k @ d))
        if len(f) == 0 or (delta > self.nu * r.ktt and not self.full(f)):
            _add_vector(f, r, memory, d, delta, residual)
        else:
            _update_coefficients(f, r, memory, d, residual)
        return True

    def numbers(self, rule: Rule) -> dict[str, float]:
        return {"nu": float(self.nu)}

    def reason(self) -> str:
        return "it is least squares"


def _add_vector(f: Expansion, r: Round, memory: Memory, d: Array, delta: float, residual: float) -> None:
    """x is far from the span of the stored vectors and becomes one of them."""
    n = len(f)
    f.c[:, 0] -= d * residual / delta
    f.append(r, np.array([residual / delta]))
    added = np.array([[1 / r.importance]])
    memory["P"] = np.block([[memory["P"], np.zeros((n, 1))], [np.zeros((1, n)), added]])


def _update_coefficients(f: Expansion, r: Round, memory: Memory, d: Array, residual: float) -> None:
    """x is close to the span of the stored vectors."""
    g = memory["P"] @ d
    s = 1 / r.importance + float(d @ g)
    memory["P"] = memory["P"] - np.outer(g, g) / s
    f.c[:, 0] += solve(f, g) * residual / s
