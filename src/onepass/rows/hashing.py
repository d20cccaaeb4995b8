"""Which hash of feature names a file was learned under.

What hashes names knows them by their places alone: under another hash it would look elsewhere, and find what it has
learned of other names. So its file says which hash it was (native/parse/hash.hpp counts them), and no other loads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _native
from ..errors import DamagedFileError, ModelFileError, NewerFileError, OlderFileError

__all__ = ["other_hash", "record"]


def record(hash_bits: int | None) -> dict[str, int]:
    """What the configuration of something that hashes names, or does not, says of the hash."""
    return {} if hash_bits is None else {"hash": _native.HASH_VERSION}


def other_hash(config: Mapping[str, Any], what: str) -> ModelFileError | None:
    """Why `what`, which has met names, cannot be used as its configuration says; None where its hash is ours."""
    found, ours = config.get("hash", 1), _native.HASH_VERSION
    if type(found) is not int or found < 1:
        return DamagedFileError(f"{what} names a hash {found!r}; expected a whole number; restore it from a backup")
    if found == ours:
        return None
    places = f"{what} knows feature names by their places under hash {found}; this onepass has hash {ours}"
    if found > ours:
        return NewerFileError(f"{places}: upgrade onepass")
    return OlderFileError(f"{places}, under which names of digits, at least, have other places: learn it anew")
