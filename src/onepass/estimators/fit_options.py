"""The parameters of the passes that `fit` makes over its data: dataclasses that estimators inherit."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["FitOptions", "LinearFitOptions", "PassOptions", "RepeatOptions"]


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class RepeatOptions:
    """The number of passes."""

    passes: int = 1


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class PassOptions(RepeatOptions):
    """The number of passes, and the order of the rows."""

    shuffle: bool | str = False
    random_state: Any = None


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class FitOptions(PassOptions):
    """The conditions under which `fit` stops."""

    mode: str = "online"
    tol: float | None = 1e-3


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class LinearFitOptions(FitOptions):
    """Options of linear learners only: a stopping test on the change of the weights, and batch steps."""

    tol_w: float | None = 1e-6
    reduction: str = "sum"
