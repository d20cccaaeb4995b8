"""Step sizes η_t for t = 1, 2, …; `name` selects the same formula in `native/core/schedules.hpp`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

from .. import _native
from ..errors import ParameterError
from .compiled import compiled_name
from .parameters import Parameters, from_text, number

__all__ = [
    "Constant",
    "Geometric",
    "InvScaling",
    "InvSqrt",
    "InvT",
    "Optimal",
    "Schedule",
    "StepDecay",
    "check_robbins_monro",
    "make",
]


@dataclasses.dataclass(repr=False)
class Schedule(Parameters):
    """Base of the schedules."""

    family = "schedule"
    name: ClassVar[str]
    compiled: ClassVar[str] = ""  # the `Schedule` of native/core/schedules.hpp with its name and its formula

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.compiled = compiled_name(cls, _native.enums["Schedule"])

    def __call__(self, t: float) -> float:
        raise NotImplementedError

    def robbins_monro(self) -> tuple[bool, bool]:
        """Whether Σ η diverges, and whether Σ η² converges."""
        raise NotImplementedError

    def constants(self) -> tuple[float, float, float]:
        """The constants of the compiled formula, which calls them eta, p and q: the fields, and 0 beyond them."""
        values = [float(v) for v in self.get_params().values()] + [0.0, 0.0, 0.0]
        return values[0], values[1], values[2]

    def native(self) -> dict[str, float | str]:
        """What a compiled formula reads of its schedule."""
        if not self.compiled:
            raise ParameterError(f"{self!r} has no compiled formula; write a rule whose `step` calls it")
        eta, p, q = self.constants()
        return {"schedule": self.compiled, "eta": eta, "p": p, "q": q}


@dataclasses.dataclass(repr=False)
class Constant(Schedule):
    """η: follows drift, and never converges."""

    name = "constant"
    eta: float = number(0.1, above=0)

    def __call__(self, t: float) -> float:
        return self.eta

    def robbins_monro(self) -> tuple[bool, bool]:
        return True, False


@dataclasses.dataclass(repr=False)
class InvT(Schedule):
    """η/t."""

    name = "inv_t"
    eta: float = number(0.1, above=0)

    def __call__(self, t: float) -> float:
        return self.eta / t

    def robbins_monro(self) -> tuple[bool, bool]:
        return True, True


@dataclasses.dataclass(repr=False)
class InvSqrt(Schedule):
    """η/√t: O(√T) regret for convex losses."""

    name = "inv_sqrt"
    eta: float = number(0.1, above=0)

    def __call__(self, t: float) -> float:
        return self.eta / math.sqrt(t)

    def robbins_monro(self) -> tuple[bool, bool]:
        return True, False


@dataclasses.dataclass(repr=False)
class InvScaling(Schedule):
    """η/(t + t₀)^p."""

    name = "inv_scaling"
    eta: float = number(0.1, above=0)
    p: float = number(0.5, at_least=0)
    t0: float = number(0.0, at_least=0)

    def __call__(self, t: float) -> float:
        return float(self.eta / math.pow(t + self.t0, self.p))

    def robbins_monro(self) -> tuple[bool, bool]:
        return self.p <= 1, self.p > 0.5


@dataclasses.dataclass(repr=False)
class Optimal(Schedule):
    """1/(α(t₀ + t − 1)) with t₀ = α^{−3/4} (Bottou's heuristic, as in scikit-learn).

    scikit-learn divides α^{−1/4} by max(1, ∂ℓ at y = 1, s = −α^{−1/4}); that derivative is never positive
    for a loss that falls with the margin, so the divisor is 1.
    """

    name = "optimal"
    alpha: float = number(1e-4, above=0)

    def __call__(self, t: float) -> float:
        alpha, t0, _ = self.constants()
        return 1.0 / (alpha * (t0 + t - 1.0))

    def robbins_monro(self) -> tuple[bool, bool]:
        return True, True

    def constants(self) -> tuple[float, float, float]:
        typical_weight = math.sqrt(1.0 / math.sqrt(self.alpha))
        return self.alpha, 1.0 / (typical_weight * self.alpha), 0.0


@dataclasses.dataclass(repr=False)
class Geometric(Schedule):
    """max(η_min, η γ^{t−1})."""

    name = "geometric"
    eta: float = number(0.1, above=0)
    gamma: float = number(0.999, above=0, below=1)
    eta_min: float = number(0.0, at_least=0)

    def __call__(self, t: float) -> float:
        return max(self.eta_min, self.eta * math.pow(self.gamma, t - 1.0))

    def robbins_monro(self) -> tuple[bool, bool]:
        return self.eta_min > 0, self.eta_min == 0


@dataclasses.dataclass(repr=False)
class StepDecay(Schedule):
    """η γ^{⌊(t−1)/every⌋}."""

    name = "step_decay"
    eta: float = number(0.1, above=0)
    gamma: float = number(0.999, above=0, below=1)
    every: int = number(10, at_least=1, integer=True)

    def __call__(self, t: float) -> float:
        return self.eta * math.pow(self.gamma, math.floor((t - 1.0) / self.every))

    def robbins_monro(self) -> tuple[bool, bool]:
        return False, True


SCHEDULES: dict[str, type[Schedule]] = {
    kind.name: kind for kind in (Constant, InvT, InvSqrt, InvScaling, Optimal, Geometric, StepDecay)
}


def make(schedule: str | Schedule) -> Schedule:
    """A schedule from its name (``"inv_sqrt"``, ``"geometric(eta=1,gamma=0.99)"``) or the schedule itself."""
    return schedule if isinstance(schedule, Schedule) else from_text(schedule, SCHEDULES, "schedule")


def check_robbins_monro(schedule: str | Schedule | Callable[[float], float]) -> tuple[bool, bool] | None:
    """The two conditions of Robbins and Monro: (Σ η = ∞, Σ η² < ∞); None for a function of your own."""
    return make(schedule).robbins_monro() if isinstance(schedule, (str, Schedule)) else None
