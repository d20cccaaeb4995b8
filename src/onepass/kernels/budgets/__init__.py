"""Budgets: kernel learning in bounded memory. A budget has one method, `admit`, which applies the rule's step or
replaces it by a step after which at most B vectors are stored.

A full budget is kept in one of three ways: a vector is removed (`base.py`, `perceptron.py`), projected on the others
(`projection.py`, `least_squares.py`, `passive_aggressive.py`) or merged with another (`merging.py`). The Python here is
the reference; the files of the same names in `native/kernels/` update inverses, margins and neighbours instead of
computing them again. f = Σ cᵢ K(xᵢ, ·) as in `expansion.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...scheme.parameters import from_text
from .base import Budget, Oldest, Random, Reservoir, Shrinking, Stoptron, Unlimited
from .least_squares import ALD
from .merging import Merge
from .passive_aggressive import BPANN, BPAP, BPAS
from .perceptron import BudgetPerceptron, BudgetSVM, Forgetron
from .projection import Projectron, ProjectronPP

__all__ = [
    "ALD",
    "BPANN",
    "BPAP",
    "BPAS",
    "BUDGETS",
    "Budget",
    "BudgetPerceptron",
    "BudgetSVM",
    "Forgetron",
    "Merge",
    "Oldest",
    "Projectron",
    "ProjectronPP",
    "Random",
    "Reservoir",
    "Shrinking",
    "Stoptron",
    "Unlimited",
    "make",
]

BUDGETS: Mapping[str, type[Budget]] = {
    kind.name: kind
    for kind in (
        Unlimited,
        Stoptron,
        Oldest,
        Random,
        Reservoir,
        Shrinking,
        BudgetPerceptron,
        BudgetSVM,
        Forgetron,
        Projectron,
        ProjectronPP,
        BPAS,
        BPANN,
        BPAP,
        Merge,
        ALD,
    )
}


def make(budget: str | Budget | None) -> Budget:
    """A budget from an object, a name (``"bpann"``, ``"bpann:B=500"``), or None for no limit."""
    if budget is None:
        return Unlimited()
    return budget if isinstance(budget, Budget) else from_text(budget, dict(BUDGETS), "budget")
