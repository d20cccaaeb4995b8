"""Which compiled formula computes what a class of ours, or a subclass of the user, computes."""

from __future__ import annotations

import inspect
from collections.abc import Container

__all__ = ["compiled_class", "compiled_name"]


def compiled_class(kind: type, table: Container[str]) -> str:
    """The row of a native table that stands for a class; "" where only its Python can compute it.

    A row has the name of a class of ours. A subclass has it too if it changes nothing: a method (other than `validate`)
    or slots of its own would be ignored by the compiled formula.
    """
    home = next((each for each in kind.__mro__ if _ours(each) and each.__name__ in table), None)
    return home.__name__ if home is not None and _unchanged(kind, home) else ""


def compiled_name(kind: type, values: Container[str]) -> str:
    """The same where the formulas are the values of a native enum, named as the `name` of a class."""
    home = next((each for each in kind.__mro__ if _ours(each) and vars(each).get("name") in values), None)
    return str(vars(home)["name"]) if home is not None and _unchanged(kind, home) else ""


def _ours(kind: type) -> bool:
    return kind.__module__.startswith("onepass.")


def _unchanged(kind: type, home: type) -> bool:
    plain = [name for name in dir(home) if not name.startswith("__") or name == "__call__"]
    methods = [name for name in plain if inspect.isfunction(getattr(home, name))]
    names = [name for name in methods if name != "validate"] + (["slots"] if hasattr(home, "slots") else [])
    return all(getattr(kind, name) is getattr(home, name) for name in names)
