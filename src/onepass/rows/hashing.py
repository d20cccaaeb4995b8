"""Which hash of feature names a file was learned under.

A learner that hashes names stores hashed columns only. Under another hash function it would read the weights of other
names. So its file records the version of the hash (numbered in native/parse/hash.hpp), and other versions are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _native
from ..errors import DamagedFileError, ModelFileError, NewerFileError, OlderFileError

__all__ = ["other_hash", "record"]


def record(hash_bits: int | None) -> dict[str, int]:
    """The entry on the hash in the configuration of a learner; empty where it does not hash names."""
    return {} if hash_bits is None else {"hash": _native.HASH_VERSION}


def other_hash(config: Mapping[str, Any], what: str) -> ModelFileError | None:
    """The error for `what`, which has hashed names under another hash than ours; None where the hash is ours."""
    found, ours = config.get("hash", 1), _native.HASH_VERSION
    if type(found) is not int or found < 1:
        return DamagedFileError(f"{what} names a hash {found!r}; expected a whole number; restore it from a backup")
    if found == ours:
        return None
    places = f"{what} knows feature names by their places under hash {found}; this onepass has hash {ours}"
    if found > ours:
        return NewerFileError(f"{places}: upgrade onepass")
    return OlderFileError(f"{places}, under which names of digits, at least, have other places: learn it again")
