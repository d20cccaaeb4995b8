"""Limits of options: what would not fit into ONEPASS_MAX_MEMORY is refused before memory is allocated."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native
from ..errors import FeatureError, ParameterError

__all__ = ["FEW", "MOST_LEARNERS", "read_max_features", "require_few", "require_room"]

MOST_LEARNERS = 50_000  # the most base learners of one learner; one against one then has at most 316 classes
FEW = 2**16  # names: so few are within the limit of the environment, which nobody looks up then


def require_room(numbers: int, of: str, advice: str = "choose a smaller one") -> None:
    """Refuse an option, as in "Hedge(M=10)", if its numbers of eight bytes each would not fit into memory."""
    _native.require_memory(8.0 * min(numbers, 2**1000), of, advice, "ParameterError")


def read_max_features(value: Any) -> int | None:
    """The option max_features, validated."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= 2**53:
        raise ParameterError(f"max_features={value!r}: expected None or a whole number >= 1")
    return int(value)


def require_few(count: int, most: int | None, advice: str = "hash them (FeatureHasher)") -> None:
    """Refuse so many features; `most`: the option max_features, or None for the limit of the environment."""
    if count <= FEW and most is None:
        return
    limit = _native.most_features() if most is None else most
    if count > limit:
        raise FeatureError(
            f"{count} features, but max_features is {limit}; {advice}, or raise the limit (max_features= where it "
            "is an option, in the environment ONEPASS_MAX_FEATURES)"
        )
