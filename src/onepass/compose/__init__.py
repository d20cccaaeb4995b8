"""Learners over other learners: drift wrappers and continual learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import lazily_loaded

if TYPE_CHECKING:
    from . import continual
    from .drift import DriftAdapt, DriftFade, DriftReset, DriftWindow

__all__ = ["DriftAdapt", "DriftFade", "DriftReset", "DriftWindow", "continual"]

__getattr__ = lazily_loaded(
    __name__,
    {"continual": "continual"} | dict.fromkeys(("DriftAdapt", "DriftFade", "DriftReset", "DriftWindow"), "drift"),
)
