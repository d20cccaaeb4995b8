"""Kernel recursive least squares, sparse by approximate linear dependence (Engel, Mannor and Meir 2004)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import ParameterError
from ...scheme.parameters import number
from ...scheme.rounds import Rule
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
    c = K⁻¹ argmin_b ‖A b − y‖², row t of A being â_t. The rule ("adaline") only selects the squared loss; its ρ is
    not used.
    """

    name = "ald"
    code = 12
    formulas = ("adaline",)
    tasks: ClassVar[Sequence[str]] = ("binary", "regression")
    every_round = True
    inverts = True
    B: int | None = number(None, at_least=1, integer=True)
    nu: float = number(1e-3, above=0)

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        super().require(rule, task, kernel)
        if rule.traits.epsilon:
            raise ParameterError(f"{self!r} is least squares: no tube around y")

    def start(self) -> Memory:
        return {"P": np.zeros((0, 0))}

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        residual = float(r.parts[0]) * r.loss
        n, P = len(f), memory["P"]
        d = solve(f, r.k) if n else np.zeros(0)
        delta = max(0.0, r.ktt - float(r.k @ d))
        if n == 0 or (delta > self.nu * r.ktt and not self.full(f)):
            f.c[:, 0] -= d * residual / delta
            f.append(r, np.array([residual / delta]))
            memory["P"] = np.block([[P, np.zeros((n, 1))], [np.zeros((1, n)), np.array([[1 / r.importance]])]])
            return True
        g = P @ d
        size = 1 / r.importance + float(d @ g)
        memory["P"] = P - np.outer(g, g) / size
        f.c[:, 0] += solve(f, g) * residual / size
        return True

    def numbers(self) -> list[float]:
        return [float(self.nu)]

    def reason(self) -> str:
        return "it is least squares"
