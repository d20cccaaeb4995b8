"""Rules by their papers' names. One file per family; the docstring's maths is the code."""

from __future__ import annotations

from ..core import Rule, Scalars, Step
from ..parameters import from_text
from .adaline import Adaline, NormalizedLMS
from .adaptive import AdaDelta, AdaGrad, AdaGradFull, Adam, RMSProp
from .alma import ALMA
from .ftrl import FTRL
from .gaussian import AROW, CW, NHERD, ONS, RLS, SCW1, SCW2, Kalman
from .gradient import FOBOS, SGD, Pegasos, TruncatedGradient
from .mira import MIRA
from .norma import NORMA
from .parzen import Parzen
from .passive_aggressive import PA, PA1, PA2
from .perceptron import Perceptron, Pocket
from .ranking import MROC, PAMIR
from .romma import ROMMA, AggressiveROMMA
from .shifting import Shifting
from .vowpal import VW

__all__ = [
    "ALMA",
    "AROW",
    "CW",
    "FOBOS",
    "FTRL",
    "MIRA",
    "MROC",
    "NHERD",
    "NORMA",
    "ONS",
    "PA",
    "PA1",
    "PA2",
    "PAMIR",
    "RLS",
    "ROMMA",
    "RULES",
    "SCW1",
    "SCW2",
    "SGD",
    "VW",
    "AdaDelta",
    "AdaGrad",
    "AdaGradFull",
    "Adaline",
    "Adam",
    "AggressiveROMMA",
    "Kalman",
    "NormalizedLMS",
    "Parzen",
    "Pegasos",
    "Perceptron",
    "Pocket",
    "RMSProp",
    "Rule",
    "Scalars",
    "Shifting",
    "Step",
    "TruncatedGradient",
    "make",
]

RULES: dict[str, type[Rule]] = {
    kind.name: kind
    for kind in (
        Perceptron,
        Pocket,
        Adaline,
        NormalizedLMS,
        PA,
        PA1,
        PA2,
        MIRA,
        ROMMA,
        AggressiveROMMA,
        ALMA,
        Shifting,
        SGD,
        FOBOS,
        TruncatedGradient,
        Pegasos,
        AdaGrad,
        AdaDelta,
        RMSProp,
        Adam,
        FTRL,
        VW,
        NORMA,
        Parzen,
        PAMIR,
        MROC,
        RLS,
        Kalman,
        AROW,
        CW,
        SCW1,
        SCW2,
        NHERD,
        ONS,
    )
}


def make(rule: str | Rule) -> Rule:
    """A rule from its name (``"pa1"``, ``"pa1:C=0.1"``, ``"sgd:loss=huber(delta=2)"``) or the rule itself."""
    return rule if isinstance(rule, Rule) else from_text(rule, RULES, "rule")
