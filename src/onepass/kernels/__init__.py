"""Kernels K(x, z), feature maps that approximate them, and budgets for learners that store examples."""

from __future__ import annotations

from .functions import *  # noqa: F403
from .functions import __all__ as __all__
