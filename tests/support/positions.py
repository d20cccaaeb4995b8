"""Where a number stands in a saved array."""

from __future__ import annotations

from onepass import _native

__all__ = ["position"]


def position(kind: str, name: str) -> int:
    return _native.saved[kind].index(name)
