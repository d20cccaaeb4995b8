"""Strict JSON: what is written is read back equal, and nothing else is accepted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from ..errors import ParameterError

__all__ = ["dumps", "exact", "from_numpy", "has_surrogates", "loads"]

_MAX_DEPTH = 100  # nesting of a value, well below the interpreter's recursion limit


def dumps(value: object, sort_keys: bool = True) -> str:
    return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def loads(text: str) -> Any:
    """Parse JSON; raise ValueError for NaN, infinity, numbers out of range and keys that appear twice."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_duplicates)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # 1e999
        raise ValueError(f"{text} is out of range")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} appears twice")
        found[key] = value
    return found


def has_surrogates(text: str) -> bool:
    """Does the text hold lone surrogates? UTF-8 has none, and JSON would join two of them into one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def from_numpy(value: object) -> object:
    """A numpy scalar as a Python value; scalars without a Python equivalent (dates, long doubles) stay as they are."""
    if isinstance(value, np.str_):
        return str.__str__(value)  # numpy's own str() and .item() drop trailing NULs
    if isinstance(value, np.bytes_):
        return bytes(value)
    # A date's .item() may be a bare int, so only numbers; a long double's is a long double.
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else value


def exact(value: Any, at: str, depth: int = 0) -> Any:
    """The value as exact JSON types, or an error that says where in the config it is (`at`)."""
    if depth > _MAX_DEPTH:
        raise ParameterError(f"{at[:80]}…: nested more than {_MAX_DEPTH} deep; expected a flatter config")
    value = from_numpy(value)
    if isinstance(value, Mapping):
        for key in value:
            if type(key) is not str or has_surrogates(key):
                raise ParameterError(
                    f"{at}: key {key!r} is not a str of valid Unicode; JSON has no other keys, store a list of pairs"
                )
        return {key: exact(item, f"{at}.{key}", depth + 1) for key, item in value.items()}
    if type(value) in (list, tuple):  # not isinstance: a namedtuple would be read back as a list
        return [exact(item, f"{at}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _exact_scalar(value, at)


def _exact_scalar(value: Any, at: str) -> Any:
    kind = type(value)  # not isinstance: an IntEnum would be read back as an int
    if kind not in (type(None), bool, int, float, str):
        raise ParameterError(
            f"{at} is of type {kind.__name__}; expected None, bool, int, float, str, a list or a dict; "
            "store arrays as arrays and labels through encode_values"
        )
    if kind is float and not math.isfinite(value):
        raise ParameterError(f"{at} is {value}; JSON holds finite numbers only: store None or a str")
    if kind is int and value.bit_length() > 1024:
        raise ParameterError(f"{at} is an int of more than 1024 bits; pass it through encode_values")
    if kind is str and has_surrogates(value):
        raise ParameterError(f"{at} is {value!r}, not valid Unicode; pass it through encode_values")
    return value
