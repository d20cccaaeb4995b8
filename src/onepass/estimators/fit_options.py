"""The parameters that say how `fit` goes through its data: dataclasses that estimators inherit."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["FitOptions", "LinearFitOptions", "PassOptions", "RepeatOptions"]


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class RepeatOptions:
    """How often."""

    passes: int = 1


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class PassOptions(RepeatOptions):
    """How often, and in which order."""

    shuffle: bool | str = False
    random_state: Any = None


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class FitOptions(PassOptions):
    """When it stops."""

    mode: str = "online"
    tol: float | None = 1e-3


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class LinearFitOptions(FitOptions):
    """What only weights of features have: a test of how far they moved, and steps of the whole set."""

    tol_w: float | None = 1e-6
    reduction: str = "sum"
