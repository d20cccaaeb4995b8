"""The base of all budgets, and those that remove by age, at random or never."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ... import _native
from ...errors import ParameterError
from ...scheme.compiled import compiled_class
from ...scheme.parameters import Parameters, flag, number
from ...scheme.rounds import Rule

if TYPE_CHECKING:
    from ..algebra import Kernel
    from ..expansion import Expansion, Round

__all__ = ["Budget", "Memory", "Oldest", "Random", "Reservoir", "Shrinking", "Stoptron", "Unlimited", "mistake_driven"]

Memory = dict[str, Any]


@dataclasses.dataclass(repr=False)
class Budget(Parameters):
    """Base of all budgets. `formulas` are the updates that it supports (`RuleTraits.formula`); none means all.

    `compiled` is found, not written: the row of the table in `native/kernels/budgets.cpp` with the same formula. It has
    the name of the class, and models learn with it alone.
    """

    family = "budget"
    name: ClassVar[str] = ""
    compiled: ClassVar[str] = ""
    formulas: ClassVar[Sequence[str]] = ()
    tasks: ClassVar[Sequence[str]] = ("binary", "multiclass", "regression")
    every_round: ClassVar[bool] = False  # `admit` is also called when the rule adds nothing
    inverts: ClassVar[bool] = False  # it needs K⁻¹, and so a positive definite kernel

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.compiled = compiled_class(cls, _native.budgets)

    def limit(self) -> int | None:
        """B, or None for no limit."""
        B = getattr(self, "B", None)
        return None if B is None else int(B)

    def full(self, f: Expansion) -> bool:
        limit = self.limit()
        return limit is not None and len(f) >= limit

    def start(self) -> Memory:
        """The numbers that the budget stores beside f, before the first round."""
        return {}

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        """Apply the rule's step, or a step that keeps the budget instead. Return whether f has changed."""
        raise NotImplementedError

    def numbers(self, rule: Rule) -> dict[str, float]:
        """The parameters of the compiled formula by name: its own, and those of the rule that it reads."""
        return {}

    def seed_number(self) -> int:
        return 0

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        """Refuse a rule, task or kernel that the budget is not defined for."""
        if not self.compiled:
            raise ParameterError(f"{self!r} has no compiled formula; use a budget whose methods are not overridden")
        if self.formulas and rule.traits.formula not in self.formulas:
            raise ParameterError(
                f"{self!r} is not defined for {rule!r}: {self.reason()}; use {' or '.join(self.formulas)}"
            )
        if ("binary" if task == "auto" else task) not in self.tasks:
            raise ParameterError(f"{self!r} is not defined for task={task!r}; it is for {', '.join(self.tasks)}")
        if self.inverts and not kernel.definite():
            raise ParameterError(f"{self!r} inverts the Gram matrix, and {kernel!r} may have one that is not definite")

    def reason(self) -> str:
        """Why only some rules are supported; part of an error message."""
        return "its step is not the rule's"


def mistake_driven(rule: Rule, budget: Budget, margin: bool) -> None:
    """Refuse a Perceptron whose step has a schedule or another ρ than 1. Importance is allowed."""
    params = rule.get_params()
    if params.get("schedule") is not None or params.get("rho", 1.0) != 1 or params.get("strict"):
        raise ParameterError(f"{budget!r} is defined for the plain step ρ = 1 on m <= beta, not for {rule!r}")
    if not margin and params.get("beta", 0.0) != 0:
        raise ParameterError(f"{budget!r} is defined for mistakes, m <= 0: beta must be 0, not {params['beta']!r}")


@dataclasses.dataclass(repr=False)
class Unlimited(Budget):
    """No budget: every update adds a vector. `merge_duplicates` adds to the coefficients of an equal vector instead."""

    name = "unlimited"
    merge_duplicates: bool = flag(False)

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if self.merge_duplicates and r.add != 0 and r.scale != 0:
            for i, x in enumerate(f.x):
                if np.array_equal(x, r.x):
                    f.c = r.scale * f.c
                    f.c[i] += r.coefficients
                    return True
        return f.take_step(r)


@dataclasses.dataclass(repr=False)
class Stoptron(Budget):
    """When full, f never changes again (the baseline of Orabona, Keshet and Caputo 2008)."""

    name = "stoptron"
    B: int = number(100, at_least=1, integer=True)

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        return False if self.full(f) else f.take_step(r)


@dataclasses.dataclass(repr=False)
class Oldest(Budget):
    """When full, the oldest vector is removed: Remove-Oldest; with the Perceptron, LBP (Cavallanti et al. 2007)."""

    name = "oldest"
    B: int = number(100, at_least=1, integer=True)

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.add != 0 and r.scale != 0 and self.full(f):
            return _replace(f, r, f.oldest)
        return f.take_step(r)


@dataclasses.dataclass(repr=False)
class Random(Budget):
    """When full, a random vector is removed: RBP with the Perceptron (Cavallanti et al. 2007), PA+Rnd with PA-I.

    The step is computed before the removal. The generator is saved with the model.
    """

    name = "random"
    B: int = number(100, at_least=1, integer=True)
    seed: int = number(0, at_least=0, integer=True)

    def start(self) -> Memory:
        return {"random": int(self.seed)}

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.add != 0 and r.scale != 0 and self.full(f):
            return _replace(f, r, min(len(f) - 1, int(_uniform(memory) * len(f))))
        return f.take_step(r)

    def seed_number(self) -> int:
        return int(self.seed)


@dataclasses.dataclass(repr=False)
class Reservoir(Budget):
    """A uniform sample of B of all updates so far (Vitter 1985): when full, the M-th enters with probability B/M.

    With Parzen's classifier it represents the whole stream. The generator is saved with the model.
    """

    name = "reservoir"
    B: int = number(100, at_least=1, integer=True)
    seed: int = number(0, at_least=0, integer=True)

    def start(self) -> Memory:
        return {"random": int(self.seed), "M": 0}

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        if r.scale == 0:
            memory["M"] = 0
        if r.add == 0:
            return f.take_step(r)
        memory["M"] += 1
        if r.scale == 0 or not self.full(f):
            return f.take_step(r)
        drawn = int(_uniform(memory) * memory["M"])
        if drawn < len(f):
            return _replace(f, r, drawn)
        f.c = r.scale * f.c
        return r.scale != 1

    def seed_number(self) -> int:
        return int(self.seed)


def _replace(f: Expansion, r: Round, removed: int) -> bool:
    """Remove a vector and put the new one into its slot."""
    f.c = r.scale * f.c
    f.replace(removed, r)
    return True


def _uniform(memory: Memory) -> float:
    """A number in [0, 1) from splitmix64 (Steele, Lea and Flood 2014)."""
    word = (1 << 64) - 1
    state = memory["random"] = (int(memory["random"]) + 0x9E3779B97F4A7C15) & word
    z = int(state)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & word
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & word
    return float((z ^ (z >> 31)) >> 11) * 2.0**-53


@dataclasses.dataclass(repr=False)
class Shrinking(Budget):
    """The shrinking Perceptron: on a mistake f ← φ f + y K(x, ·). Old vectors fade, none is removed."""

    name = "shrinking"
    formulas = ("perceptron",)
    phi: float = number(0.99, above=0, below=1)

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        return f.take_step(dataclasses.replace(r, scale=r.scale * (self.phi if r.add != 0 else 1.0)))

    def numbers(self, rule: Rule) -> dict[str, float]:
        return {"phi": float(self.phi)}

    def reason(self) -> str:
        return "it shrinks on a mistake"
