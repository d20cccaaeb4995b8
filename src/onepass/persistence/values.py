"""Labels as JSON and feature names as arrays: what is read back is equal in value and in type."""

from __future__ import annotations

import contextlib
import itertools
import math
import reprlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, ParameterError
from .strict_json import from_numpy, has_surrogates

__all__ = ["decode_names", "decode_values", "encode_names", "encode_values"]

_MAX_TUPLE_DEPTH = 32  # a tuple costs two levels of JSON


# Labels


def encode_values(values: Sequence[Hashable]) -> list[Any]:
    """Labels as JSON; `decode_values` gives back equal values of the same types.

    str, int, bool, None, finite float, bytes and tuples of these; numpy scalars become Python's. A value whose type
    JSON has is stored as it is; any other is an object with one key, which names its type.
    """
    return [_encode(value, 0) for value in values]


def decode_values(encoded: list[Any]) -> list[Any]:
    """Inverse of `encode_values`."""
    if not isinstance(encoded, list):
        found = type(encoded).__name__
        raise DamagedFileError(f"expected a list of labels, got {found}; train and save again")
    return [_decode(item, 0) for item in encoded]


def _encode(value: Any, depth: int) -> Any:
    value = from_numpy(value)
    kind = type(value)  # not isinstance: an IntEnum or a namedtuple would lose its type
    if value is None or kind is bool:
        return value
    if kind is tuple:
        if depth >= _MAX_TUPLE_DEPTH:
            raise ParameterError(f"a label nests tuples more than {_MAX_TUPLE_DEPTH} deep; use its repr()")
        return {"tuple": [_encode(item, depth + 1) for item in value]}
    encode = _ENCODERS.get(kind)
    if encode is None:
        raise ParameterError(
            f"label {_shown(value)} is of type {kind.__module__}.{kind.__qualname__}, which a model file "
            "cannot hold; expected str, int, bool, None, float, bytes or tuples of these: convert it first, "
            "for instance with str()"
        )
    return encode(value)


def _encode_float(value: float) -> float:
    if not math.isfinite(value):
        raise ParameterError(f"label {value} is not finite; expected a number (None for a missing label)")
    return value


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    str: lambda text: {"str": text.encode("utf-8", "surrogatepass").hex()} if has_surrogates(text) else text,
    # Python limits decimal text to some thousand digits; hexadecimal has no limit.
    int: lambda number: number if number.bit_length() <= 64 else {"int": hex(number)},
    float: _encode_float,
    bytes: lambda data: {"bytes": data.hex()},
}
_DECODERS: dict[str, Callable[[str], Any]] = {
    "str": lambda digits: bytes.fromhex(digits).decode("utf-8", "surrogatepass"),
    "int": lambda digits: int(digits, 16),
    "bytes": bytes.fromhex,
}


def _decode(item: object, depth: int) -> Any:
    if item is None or type(item) in (bool, int, float, str):
        return item
    if isinstance(item, dict) and len(item) == 1:
        [(tag, content)] = item.items()
        if tag == "tuple" and isinstance(content, list) and depth < _MAX_TUPLE_DEPTH:
            return tuple(_decode(part, depth + 1) for part in content)
        if tag in _DECODERS and isinstance(content, str):
            with contextlib.suppress(ValueError):
                return _DECODERS[tag](content)
    raise DamagedFileError(f"expected a label as encode_values writes it, got {_shown(item)}; train and save again")


def _shown(value: object) -> str:
    # The value may be huge, nested without end, or an object whose repr fails.
    try:
        return reprlib.repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


# Feature names


def encode_names(names: Sequence[str | int]) -> dict[str, NDArray[Any]]:
    """Feature names as arrays, since a header of 10⁶ names would be slow and has a limit.

    Name i is `utf8[offsets[i]:offsets[i+1]]`; where `is_int[i]`, it is an int in hexadecimal.
    """
    names = list(names)
    texts = [_name_bytes(name) for name in names]
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), out=offsets[1:])
    return {
        "utf8": np.frombuffer(bytearray().join(texts), dtype=np.uint8),
        "offsets": offsets,
        "is_int": np.array([not isinstance(name, str) for name in names], dtype=np.bool_),
    }


def decode_names(arrays: Mapping[str, NDArray[Any]]) -> list[str | int]:
    """Inverse of `encode_names`."""
    try:
        utf8, offsets, is_int = (arrays[key] for key in ("utf8", "offsets", "is_int"))
    except KeyError as error:
        _damaged_names(f"no array {error}")
    if utf8.dtype != np.uint8 or offsets.dtype != np.int64 or is_int.dtype != np.bool_:
        _damaged_names(f"dtypes {utf8.dtype}, {offsets.dtype}, {is_int.dtype}")
    if utf8.ndim != 1 or is_int.ndim != 1 or offsets.shape != (len(is_int) + 1,):
        _damaged_names(f"shapes {utf8.shape}, {offsets.shape}, {is_int.shape}")
    if offsets[0] != 0 or offsets[-1] != len(utf8) or np.any(offsets[1:] < offsets[:-1]):
        _damaged_names("offsets that do not divide the text")
    data = utf8.tobytes()
    ends: list[int] = offsets.tolist()
    try:
        names: list[str | int] = [
            data[start:stop].decode("utf-8", "surrogatepass") for start, stop in itertools.pairwise(ends)
        ]
        for index in np.flatnonzero(is_int).tolist():
            names[index] = int(str(names[index]), 16)
    except ValueError as error:
        _damaged_names(str(error))
    return names


def _name_bytes(name: object) -> bytes:
    if isinstance(name, str):
        return name.encode("utf-8", "surrogatepass")
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return hex(name).encode()
    raise ParameterError(
        f"feature name {_shown(name)} is of type {type(name).__name__}; expected str or int: convert it with str()"
    )


def _damaged_names(detail: str) -> NoReturn:
    raise DamagedFileError(
        f"expected feature names as encode_names writes them, got {detail}; train and save again"
    ) from None
