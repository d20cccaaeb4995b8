"""Projectron and Projectron++ (Orabona, Keshet and Caputo)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...errors import ParameterError
from ...scheme.parameters import choice, number
from ...scheme.rounds import Array, Rule
from .base import Budget, Memory, mistake_driven

if TYPE_CHECKING:
    from ..algebra import Kernel
    from ..expansion import Expansion, Round

__all__ = ["Projectron", "ProjectronPP", "solve"]


def solve(f: Expansion, k: Array) -> Array:
    """K⁻¹k."""
    return np.asarray(np.linalg.solve(f.gram, k), dtype=np.float64)


@dataclasses.dataclass(repr=False)
class Projectron(Budget):
    """Projectron (Orabona, Keshet and Caputo 2009): a mistake within η of the span of S is projected, c ← c + y K⁻¹k.

    A vector farther away is added, up to B. (With B=None there is no limit, but on compact inputs their number is
    finite.) For any ‖g‖ < 1/η, K ≤ 1, κ = 1/(1 − η‖g‖): M ≤ (κ‖g‖)² + κL + κ‖g‖√(κL), unless B forced a projection.
    """

    name = "projectron"
    formulas = ("perceptron",)
    tasks: ClassVar[Sequence[str]] = ("binary", "multiclass")
    every_round: ClassVar[bool] = True
    inverts = True
    B: int | None = number(None, at_least=1, integer=True)
    eta: float = number(0.1, at_least=0)

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        super().require(rule, task, kernel)
        mistake_driven(rule, self, margin=False)

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.add == 0:
            return False
        if len(f) == 0:
            return f.take_step(r)
        d = solve(f, r.k)
        delta2 = max(0.0, r.ktt - float(r.k @ d))
        if math.sqrt(delta2) <= self.eta or self.full(f) or delta2 <= 1e-10 * r.ktt:
            f.c = f.c + np.outer(d, r.coefficients)
            return True
        return f.take_step(r)

    def numbers(self, rule: Rule) -> dict[str, float]:
        return {"eta": float(self.eta), "margin_errors": 0.0, "by_U": 0.0, "U": 0.0}

    def reason(self) -> str:
        return "it projects mistakes, m <= 0"


@dataclasses.dataclass(repr=False)
class ProjectronPP(Projectron):
    """Projectron++: also margin errors 0 < m < 1 with ℓ = 1 − m > δ/η take a projected step.

    τ = min{1, ℓ/‖Pφ‖², 2(ℓ − δ/η)/‖Pφ‖²}, c ← c + yτ K⁻¹k. update="U" is the version of 2008: τ = min{1, ℓ/‖Pφ‖²},
    taken iff 2ℓ − τ‖Pφ‖² − 2Uδ ≥ 0 (U = ¼√((B+1)/ln(B+1)) unless given).
    """

    name = "projectron_pp"
    tasks = ("binary",)
    eta: float = number(0.1, above=0)
    update: str = choice("eta", "eta", "U")
    U: float | None = number(None, above=0)

    def validate(self) -> None:
        if self.update == "U" and self.U is None and self.B is None:
            raise ParameterError("ProjectronPP(update='U') needs U, or a B to derive it from")

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.add != 0:
            return super().admit(f, r, memory)
        if not (r.m > 0 and r.loss > 0) or len(f) == 0:
            return False
        d = solve(f, r.k)
        p2 = float(r.k @ d)
        delta = math.sqrt(max(0.0, r.ktt - p2))
        if p2 <= 0:
            return False
        tau = self.step_on_margin_error(r.loss, p2, delta)
        if tau == 0:
            return False
        f.c = f.c + np.outer(d, r.importance * tau * r.parts)
        return True

    def step_on_margin_error(self, loss: float, p2: float, delta: float) -> float:
        """τ, or 0 for no step."""
        tau = min(1.0, loss / p2)
        if self.update == "U":
            return 0.0 if 2 * loss - tau * p2 - 2 * self.comparator() * delta < 0 else tau
        if loss <= delta / self.eta:
            return 0.0
        return min(tau, 2 * (loss - delta / self.eta) / p2)

    def comparator(self) -> float:
        """U: the bound holds for all g with ‖g‖ ≤ U."""
        if self.U is not None:
            return float(self.U)
        return 0.25 * math.sqrt((self.B + 1) / math.log(self.B + 1)) if self.B is not None else 0.0

    def numbers(self, rule: Rule) -> dict[str, float]:
        return {"eta": float(self.eta), "margin_errors": 1.0, "by_U": self.update == "U", "U": self.comparator()}
