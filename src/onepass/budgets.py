"""Budgets: what a kernel learner does when its store of examples is full. They live in `onepass.kernels.budgets`."""

from __future__ import annotations

from .kernels.budgets import *  # noqa: F403
from .kernels.budgets import __all__ as __all__
