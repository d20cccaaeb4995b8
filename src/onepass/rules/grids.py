"""Values worth trying for the parameters of each rule: what ``onepass compare --tune`` chooses among.

A rule that is not listed has nothing to choose. A parameter that is given keeps its value.
"""

from __future__ import annotations

import itertools

from .. import rules
from ..scheme.parameters import _split

__all__ = ["GRIDS", "variants"]

_C = (0.001, 0.01, 0.1, 1.0, 10.0)
_MARGIN = ("logistic", "hinge", "squared_hinge")
_NUMBER = ("squared", "absolute")
_LOSSES = (*_MARGIN, *_NUMBER)

GRIDS: dict[str, dict[str, tuple[float | str, ...]]] = {
    "nlms": {"mu": (0.001, 0.01, 0.1, 1.0)},
    "adaline": {"rho": (0.0001, 0.001, 0.01, 0.1)},
    "pa1": {"C": _C},
    "pa2": {"C": _C},
    "alma": {"alpha": (0.5, 0.9, 0.99)},
    "sgd": {"loss": ("logistic", "hinge", "absolute"), "schedule": ("inv_sqrt", "constant"), "eta": (0.01, 0.1, 1.0)},
    "pegasos": {"lam": (1e-5, 1e-4, 1e-3, 1e-2)},
    "adagrad": {"loss": _LOSSES, "eta": (0.01, 0.03, 0.1, 0.3, 1.0)},
    "rmsprop": {"loss": ("logistic", "absolute"), "eta": (0.001, 0.01, 0.1)},
    "adam": {"loss": ("logistic", "absolute"), "eta": (0.001, 0.01, 0.1), "absent": ("lazy",)},
    "ftrl": {"loss": ("logistic", "hinge", "absolute"), "alpha": (0.01, 0.1, 1.0)},
    "vw": {"loss": ("logistic", "hinge", *_NUMBER), "eta": (0.02, 0.1, 0.5, 1.0, 2.0, 5.0)},
    "rls": {"lam": (0.01, 1.0, 100.0), "forgetting": (1.0, 0.9999, 0.999)},
    "kalman": {"q": (0.0, 1e-6, 1e-4)},
    "arow": {"lam": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)},
    "cw": {"eta": (0.55, 0.7, 0.9)},
    "scw1": {"C": (0.01, 0.03, 0.1, 0.3, 1.0), "eta": (0.6, 0.75, 0.9)},
    "scw2": {"C": (0.01, 0.1, 1.0), "eta": (0.6, 0.75, 0.9)},
    "nherd": {"C": (0.01, 0.1, 1.0, 10.0)},
    "ons": {"loss": ("logistic",), "gamma": (0.05, 0.5, 5.0), "eps": (0.01, 1.0, 100.0)},
}


def variants(text: str, task: str = "classification") -> list[str]:
    """``"arow"`` under every choice of its grid, as text: ``"arow:lam=0.01"``, …; a readout after @ is kept."""
    rule, at, readout = text.partition("@")
    made = rules.make(rule)
    own = made.get_params()
    grid = GRIDS.get(made.name, {})
    options = rule.partition(":")[2] or rule.partition("(")[2].rstrip(")")
    given = {item.partition("=")[0].strip() for item in _split(options)} | set(list(own)[: _places(options)])
    free = {name: values for name, values in grid.items() if name not in given}
    found = []
    for values in itertools.product(*free.values()):
        chosen = ",".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
                          for name, value in zip(free, values, strict=True))  # fmt: skip
        spelled = f"{made.name}:{','.join(part for part in (options, chosen) if part)}".rstrip(":")
        wanted = "regression" if task == "regression" else "binary"
        if wanted in rules.make(spelled).traits.tasks:
            found.append(spelled + at + readout)
    return found or [text]


def _places(options: str) -> int:
    """The number of parameters that are given by position, without a name."""
    return sum("=" not in item.partition("(")[0] for item in _split(options))
