"""Rules under the names of their papers. Each family has a file, imported when one of its rules is first used; the
formula in a docstring is the code.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..scheme.parameters import from_text
from ..scheme.rounds import Rule, Scalars, Step

if TYPE_CHECKING:
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

_HOME = {
    "perceptron": ("perceptron", "Perceptron"),
    "pocket": ("perceptron", "Pocket"),
    "adaline": ("adaline", "Adaline"),
    "nlms": ("adaline", "NormalizedLMS"),
    "pa": ("passive_aggressive", "PA"),
    "pa1": ("passive_aggressive", "PA1"),
    "pa2": ("passive_aggressive", "PA2"),
    "mira": ("mira", "MIRA"),
    "romma": ("romma", "ROMMA"),
    "aromma": ("romma", "AggressiveROMMA"),
    "alma": ("alma", "ALMA"),
    "shifting": ("shifting", "Shifting"),
    "sgd": ("gradient", "SGD"),
    "fobos": ("gradient", "FOBOS"),
    "truncated": ("gradient", "TruncatedGradient"),
    "pegasos": ("gradient", "Pegasos"),
    "adagrad": ("adaptive", "AdaGrad"),
    "adadelta": ("adaptive", "AdaDelta"),
    "rmsprop": ("adaptive", "RMSProp"),
    "adam": ("adaptive", "Adam"),
    "ftrl": ("ftrl", "FTRL"),
    "vw": ("vowpal", "VW"),
    "norma": ("norma", "NORMA"),
    "parzen": ("parzen", "Parzen"),
    "pamir": ("ranking", "PAMIR"),
    "mroc": ("ranking", "MROC"),
    "rls": ("gaussian", "RLS"),
    "kalman": ("gaussian", "Kalman"),
    "arow": ("gaussian", "AROW"),
    "cw": ("gaussian", "CW"),
    "scw1": ("gaussian", "SCW1"),
    "scw2": ("gaussian", "SCW2"),
    "nherd": ("gaussian", "NHERD"),
    "ons": ("gaussian", "ONS"),
}
_FAMILY = {kind: family for family, kind in _HOME.values()} | {"AdaGradFull": "adaptive"}


class _Rules(Mapping[str, type[Rule]]):
    def __getitem__(self, name: str) -> type[Rule]:
        kind: type[Rule] = __getattr__(_HOME[name][1])
        return kind

    def __contains__(self, name: object) -> bool:
        return name in _HOME  # loads nothing

    def __iter__(self) -> Iterator[str]:
        return iter(_HOME)

    def __len__(self) -> int:
        return len(_HOME)


RULES: Mapping[str, type[Rule]] = _Rules()


def make(rule: str | Rule) -> Rule:
    """A rule from its name (``"pa1"``, ``"pa1:C=0.1"``, ``"sgd:loss=huber(delta=2)"``) or the rule itself."""
    return rule if isinstance(rule, Rule) else from_text(rule, RULES, "rule")


def __getattr__(name: str) -> Any:
    family = _FAMILY.get(name, name)
    if family not in _FAMILY.values():
        raise AttributeError(f"module 'onepass.rules' has no attribute {name!r}")
    module = importlib.import_module(f".{family}", __name__)
    return module if name == family else getattr(module, name)


def __dir__() -> list[str]:
    return list(__all__)
