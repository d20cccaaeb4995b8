"""NORMA (Kivinen, Smola and Williamson 2004): regularised descent on the hinge loss, with a margin that adapts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

from ..errors import ParameterError
from ..scheme import schedules
from ..scheme.parameters import choice, number
from ..scheme.rounds import Rule, Scalars, Step

__all__ = ["NORMA"]


@dataclasses.dataclass(repr=False)
class NORMA(Rule):
    """w ← (1 − η_t λ)·w + η_t c φ [m ≤ ρ]; with ν, then ρ ← max(0, ρ − η_t([m ≤ ρ] − ν)): about ν of the rounds have a
    margin below ρ.

    η_t = η/√t or η (`schedule`), η λ < 1. The intercept is not shrunk. λ = 0, ρ = 0, η = 1 is the Perceptron.
    The other losses of the paper are `sgd` with l2. With the constant schedule the terms older than τ rounds add up to
    at most (1 − ηλ)^τ X/λ, ‖φ‖ ≤ X: `window` gives the τ for a tolerance, `budgets.Oldest` removes older ones.
    """

    name = "norma"
    guarantee = "regularised risk within O(1/√T) of the best on average; about ν of the rounds below the margin"
    paper = "Kivinen, Smola and Williamson 2004"
    tasks = ("binary", "multiclass")
    slots: ClassVar[dict[str, float]] = {"raised": 0.0}  # how far ν has moved the margin
    lam: float = number(1e-4, at_least=0)
    eta: float = number(0.5, above=0)
    schedule: str = choice("inv_sqrt", "inv_sqrt", "constant")
    rho: float = number(1.0, at_least=0)
    nu: float | None = number(None, at_least=0, at_most=1)

    def validate(self) -> None:
        if self.eta * self.lam >= 1:
            raise ParameterError(f"NORMA(eta={self.eta!r}, lam={self.lam!r}): expected eta*lam < 1")

    def step(self, s: Scalars) -> Step:
        eta, rho = self._schedule()(s.t), self.rho + s.state["raised"]
        wrong = float(s.m <= rho)
        if self.nu is not None:
            s.state["raised"] = max(0.0, rho - eta * (wrong - self.nu)) - self.rho
        return Step(add=eta * s.importance * wrong, decay=1.0 - eta * self.lam)

    def suffer(self, s: Scalars) -> float:
        return max(0.0, self.rho + s.state["raised"] - s.m)

    def window(self, tolerance: float, X: float = 1.0) -> int:
        """How many of the newest terms to keep so that ‖f − f_kept‖ ≤ tolerance, ‖φ‖ ≤ X."""
        if not (0 < tolerance < math.inf and 0 < X < math.inf):
            raise ParameterError(f"window(tolerance={tolerance!r}, X={X!r}): expected finite numbers > 0")
        if self.schedule != "constant" or self.lam == 0:
            raise ParameterError(f"{self!r}: only schedule='constant' with lam > 0 forgets fast enough for a window")
        return max(1, math.ceil(math.log(tolerance * self.lam / X) / math.log1p(-self.eta * self.lam)))

    def native(self) -> Mapping[str, float | str]:
        nu = -1.0 if self.nu is None else self.nu
        return {**self._schedule().native(), "lam": self.lam, "rho": self.rho, "nu": nu}

    def _schedule(self) -> schedules.Schedule:
        return schedules.Constant(self.eta) if self.schedule == "constant" else schedules.InvSqrt(self.eta)
