"""Published results run again: `onepass reproduce`. An experiment is a file here that ends with ``experiment = …``."""

from __future__ import annotations

import importlib
import pkgutil

from ..errors import ParameterError
from .framework import Cell, Check, Experiment, NotRun, Numbers, Report, Result, Results, Spread
from .runner import load_file, run

__all__ = [
    "Cell",
    "Check",
    "Experiment",
    "NotRun",
    "Numbers",
    "Report",
    "Result",
    "Results",
    "Spread",
    "experiments",
    "find",
    "run",
]


def experiments() -> dict[str, Experiment]:
    """All experiments of onepass, by name."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = (getattr(module, "experiment", None) for module in modules)
    return {each.name: each for each in found if isinstance(each, Experiment)}


def find(name: str) -> Experiment:
    """An experiment by its name, or that of a Python file."""
    if name.endswith(".py"):
        return load_file(name)
    known = experiments()
    if name not in known:
        raise ParameterError(
            f"there is no experiment {name!r}; expected one of {', '.join(known)}, or a Python file of your own"
        )
    return known[name]
