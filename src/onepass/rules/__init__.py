"""Rules by their papers' names. One file per family; the docstring's maths is the code."""

from __future__ import annotations

from ..core import Rule, Scalars, Step
from ..parameters import from_text
from .adaline import Adaline, NormalizedLMS
from .gradient import SGD, Pegasos
from .passive_aggressive import PA, PA1, PA2
from .perceptron import Perceptron

__all__ = [
    "PA",
    "PA1",
    "PA2",
    "RULES",
    "SGD",
    "Adaline",
    "NormalizedLMS",
    "Pegasos",
    "Perceptron",
    "Rule",
    "Scalars",
    "Step",
    "make",
]

RULES: dict[str, type[Rule]] = {
    kind.name: kind for kind in (Perceptron, Adaline, NormalizedLMS, PA, PA1, PA2, SGD, Pegasos)
}


def make(rule: str | Rule) -> Rule:
    """A rule from its name (``"pa1"``, ``"pa1:C=0.1"``, ``"sgd:loss=huber(delta=2)"``) or the rule itself."""
    return rule if isinstance(rule, Rule) else from_text(rule, RULES, "rule")
