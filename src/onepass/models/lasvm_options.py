"""The options of LASVM, which `LasvmModel` and `LaSVMClassifier` share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .. import kernels
from ..scheme.parameters import choice, number

__all__ = ["LasvmOptions"]


@dataclasses.dataclass(repr=False, eq=False)
class LasvmOptions:
    C: float = number(1.0, above=0)
    kernel: str | kernels.Kernel | Callable[..., Any] = dataclasses.field(default="rbf", metadata={"apart": True})
    _: dataclasses.KW_ONLY
    tau: float = number(1e-3, above=0, kw_only=True)
    cache_mb: float = number(256, at_least=0, kw_only=True)
    reprocess_steps: int = number(1, at_least=1, integer=True, kw_only=True)
    reprocess_until: float | None = number(None, at_least=0, kw_only=True)
    multiclass: str = choice("ovr", "ovr", "ovo", kw_only=True)
