"""Numbers and names as text for readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..scheme.rounds import Array


def show(value: Any, digits: int = 6) -> str:
    """A number as text; what is 0 up to rounding errors is 0."""
    if isinstance(value, Sequence | np.ndarray):
        return "(" + ", ".join(show(float(item), digits) for item in value) + ")"
    number = float(value)
    if 10**digits <= abs(number) < 1e6:
        return f"{number:.0f}"
    return f"{0.0 if abs(number) < 1e-12 else number:.{digits}g}"


def vector(values: Sequence[float] | Array) -> str:
    return show(values) if len(values) > 1 else show(values[0])


def written(row: Array, digits: int = 6) -> str:
    """The weights as text, (w₁, …), and the intercept separately if there is one."""
    w = show(row[:-1], digits) if len(row) > 2 else show(row[0], digits)
    b = show(row[-1], digits)
    return w if b == "0" else f"{w}, b = {b}"


def factor(value: float) -> str:
    """A number within a formula."""
    return f"({show(value)})" if value < 0 else show(value)


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def symbol_of(task: str, y: Any) -> str:
    if task == "multiclass":
        return str(y)
    return "+" if task == "binary" and y > 0 else "o"


def plain(text: str) -> str:
    for letter, spelled in (("·", "*"), ("→", "->"), ("←", "<-"), ("…", "..."), ("−", "-"), ("±", "+-")):
        text = text.replace(letter, spelled)
    return text
