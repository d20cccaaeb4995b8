"""Model files: one safetensors file, free of code, versioned, checksummed, replaced atomically.

Layout (any safetensors reader opens it)::

    8 bytes   header length, little endian
    header    {"__metadata__": {"format": "onepass", "version": "1", "kind": ..., "config": "<JSON>",
               "sha256": "<64 hex digits>"}, "<array>": {"dtype", "shape", "data_offsets"}, ...}
    data      the arrays, little endian, C order, widest type first

`sha256` covers the whole file, with its own 64 digits read as zeros. It detects damage, not forgery:
whoever can write the file can also write its checksum. Loading runs no code whoever wrote it.
"""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import re
import reprlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, ForeignFileError, NewerFileError, ParameterError
from . import files

__all__ = [
    "FORMAT_VERSION",
    "decode_names",
    "decode_values",
    "encode_names",
    "encode_values",
    "from_bytes",
    "read",
    "to_bytes",
    "write",
]

FORMAT_VERSION = 1

_FIRST = b'{"__metadata__":{"format":"onepass"'  # how the header of every file of ours begins
_MAX_HEADER = 100_000_000  # bytes; safetensors refuses longer ones
_MAX_DEPTH = 100  # nesting of the config, well below the interpreter's recursion limit
_MAX_TUPLE_DEPTH = 32  # a tuple costs two levels of JSON
_ZEROS = b"0" * 64
# Quotes inside JSON strings are escaped, so this matches the key itself and never a value.
_CHECKSUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_VERSION = re.compile(r"[1-9][0-9]{0,8}")

_CODES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}
_DTYPES = {code: np.dtype(name) for name, code in _CODES.items()}


# Files


def write(
    path: str | os.PathLike[str], kind: str, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a model file; at every moment `path` is the whole old file or the whole new one."""
    where = os.fspath(path)
    data = _pack(kind, config, arrays)
    try:
        with files.replaced(where, special=False) as file:
            file.write(data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"saving the model failed: {reason}{_advice(error)}", where) from error


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a model file: its kind, its config and its arrays (writable, owned by the caller)."""
    where = os.fspath(path)
    try:
        with open(where, "rb") as file:
            # A foreign file, which may be a dataset of any size, is refused before it is read whole.
            start = file.peek(64)[:64]
            if len(start) > 8:
                _header_length(start, where)
            data = file.read()
    except IsADirectoryError:
        raise ForeignFileError(
            f"{where}: expected a onepass model file, found a directory; give the file's path"
        ) from None
    return from_bytes(data, where)


def _advice(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "; free some space or save elsewhere"
    if isinstance(error, FileNotFoundError):
        return "; create its directory first"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return "; its directory must be readable and writable, for a temporary file that is then renamed"
    return ""


# Bytes


def to_bytes(kind: str, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of a model file; the same input gives the same bytes.

    `config` is JSON: tuples come back as lists, numpy scalars as Python's, keys sorted. Python values
    used as labels go through `encode_values`, feature names through `encode_names`.
    """
    return bytes(_pack(kind, config, arrays))


def from_bytes(data: bytes, where: str) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """Inverse of `to_bytes`; `where` names the source in error messages."""
    from safetensors import SafetensorError, deserialize  # here: what reads no file starts faster without

    data = bytes(data)
    metadata, end = _parse_header(data, where)
    _check_version(metadata.get("version"), where)
    _check_sum(data, end, metadata, where)
    # From here on the bytes are as some onepass, or a forger, wrote them.
    kind, text = metadata.get("kind"), metadata.get("config")
    if not isinstance(kind, str) or not kind or not isinstance(text, str):
        _damaged(where, "expected a kind and a config in its header")
    try:
        config = _loads(text)
    except (ValueError, RecursionError) as error:
        _damaged(where, f"its config is not JSON ({error})")
    if not isinstance(config, dict):
        _damaged(where, f"expected its config to be a JSON object, got {type(config).__name__}")
    try:
        arrays = {name: _unpack(name, view) for name, view in deserialize(data)}  # type: ignore[no-untyped-call]
    except (SafetensorError, ValueError) as error:
        _damaged(where, str(error))
    return kind, config, arrays


def _pack(kind: str, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytearray:
    # Written here, not by safetensors.serialize: that one orders the metadata at random (a Rust
    # HashMap), so that the same model would give different bytes.
    if not isinstance(kind, str) or not kind or _has_surrogates(kind):
        raise ParameterError(f"kind={kind!r}: expected a non-empty str of valid Unicode")
    text = _dumps(_plain(dict(config), "config", 0))
    header: dict[str, Any] = {
        "__metadata__": {
            "format": "onepass",
            "version": str(FORMAT_VERSION),
            "kind": kind,
            "config": text,
            "sha256": _ZEROS.decode(),
        }
    }
    ready = {_array_name(name): _little_endian(name, array) for name, array in arrays.items()}
    position = 0
    parts: list[Any] = []
    # Widest first, so that every array starts at a multiple of its item size.
    for name, array in sorted(ready.items(), key=lambda item: (-item[1].itemsize, item[0])):
        header[name] = {
            "dtype": _CODES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
        parts.append(array.reshape(-1).view(np.uint8))
    head = _dumps(header, sort_keys=False).encode()
    head += b" " * (-len(head) % 8)
    if len(head) > _MAX_HEADER:
        raise ParameterError(
            f"kind={kind!r}: config and array names take {len(head)} bytes, a safetensors header holds "
            f"{_MAX_HEADER}; move long lists from the config into arrays"
        )
    data = bytearray().join([len(head).to_bytes(8, "little"), head, *parts])
    match = _CHECKSUM.search(head)
    assert match is not None  # the header above holds it
    start = 8 + match.start(1)
    import hashlib

    # Digest of the copy, not of the arrays: a thread that still learns cannot make the two differ.
    data[start : start + 64] = hashlib.sha256(data).hexdigest().encode()
    return data


def _array_name(name: object) -> str:
    if not isinstance(name, str) or name == "__metadata__" or _has_surrogates(name):
        raise ParameterError(f"array name {name!r}: expected valid Unicode other than '__metadata__'")
    return name


def _little_endian(name: str, array: object) -> NDArray[Any]:
    if not isinstance(array, np.ndarray):
        found = type(array).__name__
        raise ParameterError(f"array {name!r}: expected a numpy array, got {found}; use np.asarray")
    if array.dtype.name not in _CODES:
        raise ParameterError(
            f"array {name!r}: dtype {array.dtype} cannot be stored, expected one of {', '.join(_CODES)}; "
            "convert it, or pass labels through encode_values and names through encode_names"
        )
    # asarray, not ascontiguousarray: the latter turns 0-d into 1-d.
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _unpack(name: str, view: Mapping[str, Any]) -> NDArray[Any]:
    dtype = _DTYPES.get(view["dtype"])
    if dtype is None:
        raise ValueError(f"array {name!r} has type {view['dtype']}, which onepass does not write")
    array = np.frombuffer(view["data"], dtype=dtype.newbyteorder("<")).reshape(view["shape"])
    # deserialize hands out a fresh bytearray each; copy only should that ever be read-only.
    return np.require(array.astype(dtype, copy=False), requirements="W")


def _header_length(data: bytes, where: str) -> int:
    """Length of the header, from the first 9 bytes; refuses what no safetensors file starts with."""
    length = int.from_bytes(data[:8], "little")
    if length > _MAX_HEADER or data[8:9] not in (b"{", b""):
        if _starts_like_ours(data):
            _damaged(where, f"a header of {length} bytes is announced")
        raise ForeignFileError(
            f"{where}: expected a onepass model file, found something else (starts with {data[:8]!r}); "
            "give a file that `save` wrote"
        )
    return length


def _parse_header(data: bytes, where: str) -> tuple[dict[str, Any], int]:
    """The metadata, and where the header ends."""
    if len(data) < 9:
        found = f"{len(data)} bytes" if data else "an empty file"
        raise ForeignFileError(f"{where}: expected a onepass model file, found {found}; give a file that `save` wrote")
    end = 8 + _header_length(data, where)
    try:
        if end > len(data):
            raise ValueError(f"its header ends at byte {end}, the file at {len(data)}")
        header = _loads(data[8:end].decode())
    except (ValueError, RecursionError) as error:
        if _starts_like_ours(data):
            _damaged(where, str(error))
        raise ForeignFileError(
            f"{where}: expected a onepass model file, found no safetensors header ({error}); "
            "give a file that `save` wrote"
        ) from None
    metadata = header.get("__metadata__")  # what begins with { is an object
    if not isinstance(metadata, dict) or metadata.get("format") != "onepass":
        raise ForeignFileError(
            f"{where}: expected a onepass model file, found a safetensors file of another program "
            "(no format='onepass' in its metadata); give a file that `save` wrote"
        )
    return metadata, end


def _starts_like_ours(data: bytes) -> bool:
    start = data[8 : 8 + len(_FIRST)]
    return len(start) > 0 and _FIRST.startswith(start)


def _check_version(version: object, where: str) -> None:
    # Before the checksum: a later format may compute it in another way.
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        _damaged(where, f"expected a format version, got {version!r}")
    if int(version) > FORMAT_VERSION:
        raise NewerFileError(
            f"{where}: written by a newer onepass (format {version}; this one reads up to {FORMAT_VERSION}): "
            "upgrade onepass"
        )


def _check_sum(data: bytes, end: int, metadata: Mapping[str, Any], where: str) -> None:
    matches = list(_CHECKSUM.finditer(data, 8, end))
    if len(matches) != 1 or matches[0][1].decode() != metadata.get("sha256"):
        _damaged(where, "expected one sha256 of 64 hex digits in its header")
    import hashlib

    start, stop = matches[0].span(1)
    view = memoryview(data)
    digest = hashlib.sha256(view[:start])
    digest.update(_ZEROS)
    digest.update(view[stop:])
    expected, found = metadata["sha256"], digest.hexdigest()
    if found != expected:
        _damaged(where, f"expected sha256 {expected[:12]}…, its bytes give {found[:12]}…")


def _damaged(where: str, detail: str) -> NoReturn:
    raise DamagedFileError(
        f"{where}: the model file is truncated or altered: {detail}; restore a copy, or train and save again"
    ) from None


# JSON, strictly: what is written comes back equal, and nothing else is read.


def _dumps(value: object, sort_keys: bool = True) -> str:
    return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _loads(text: str) -> Any:
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


def _has_surrogates(text: str) -> bool:
    # UTF-8 has no lone surrogates, and JSON would join two of them into one character.
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _from_numpy(value: object) -> object:
    """A numpy scalar as the Python value; what has none (dates, records, long doubles) stays."""
    if isinstance(value, np.str_):
        return str.__str__(value)  # numpy's own str() and .item() drop trailing NULs
    if isinstance(value, np.bytes_):
        return bytes(value)
    # A date's .item() may be a bare int, so only numbers; a long double's is a long double.
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biuf" else value


def _plain(value: object, at: str, depth: int) -> Any:
    """The value as exact JSON types, or an error that says where in the config it sits."""
    if depth > _MAX_DEPTH:
        raise ParameterError(f"{at[:80]}…: nested more than {_MAX_DEPTH} deep; expected a flatter config")
    value = _from_numpy(value)
    kind = type(value)  # not isinstance: an IntEnum or a namedtuple would not come back as one
    if value is None or kind is bool:
        return value
    if isinstance(value, Mapping):
        for key in value:
            if type(key) is not str or _has_surrogates(key):
                raise ParameterError(
                    f"{at}: key {key!r} is not a str of valid Unicode; JSON has no other keys, store a list of pairs"
                )
        return {key: _plain(item, f"{at}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple) and kind in (list, tuple):
        return [_plain(item, f"{at}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, float) and kind is float:
        if math.isfinite(value):
            return value
        raise ParameterError(f"{at} is {value}; JSON holds finite numbers only: store None or a str")
    if isinstance(value, int) and kind is int:
        if value.bit_length() <= 1024:
            return value
        raise ParameterError(f"{at} is an int of more than 1024 bits; pass it through encode_values")
    if isinstance(value, str) and kind is str:
        if not _has_surrogates(value):
            return value
        raise ParameterError(f"{at} is {value!r}, not valid Unicode; pass it through encode_values")
    raise ParameterError(
        f"{at} is of type {kind.__name__}; expected None, bool, int, float, str, a list or a dict; "
        "store arrays as arrays and labels through encode_values"
    )


# Labels


def encode_values(values: Sequence[Hashable]) -> list[Any]:
    """Labels as JSON; `decode_values` gives back equal values of the same types.

    str, int, bool, None, finite float, bytes and tuples of these; numpy scalars become Python's. What
    JSON tells apart stays as it is; the rest is an object of one key that names its type.
    """
    return [_encode(value, 0) for value in values]


def decode_values(encoded: list[Any]) -> list[Any]:
    """Inverse of `encode_values`."""
    if not isinstance(encoded, list):
        found = type(encoded).__name__
        raise DamagedFileError(f"expected a list of labels, got {found}; train and save again")
    return [_decode(item, 0) for item in encoded]


def _encode(value: object, depth: int) -> Any:
    value = _from_numpy(value)
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str) and kind is str:
        return {"str": value.encode("utf-8", "surrogatepass").hex()} if _has_surrogates(value) else value
    if isinstance(value, int) and kind is int:
        # Python limits decimal text to some thousand digits; hexadecimal has no limit.
        return value if value.bit_length() <= 64 else {"int": hex(value)}
    if isinstance(value, float) and kind is float:
        if math.isfinite(value):
            return value
        raise ParameterError(f"label {value} is not finite; expected a number (None for a missing label)")
    if isinstance(value, bytes) and kind is bytes:
        return {"bytes": value.hex()}
    if isinstance(value, tuple) and kind is tuple:
        if depth >= _MAX_TUPLE_DEPTH:
            raise ParameterError(f"a label nests tuples more than {_MAX_TUPLE_DEPTH} deep; use its repr()")
        return {"tuple": [_encode(item, depth + 1) for item in value]}
    raise ParameterError(
        f"label {_shown(value)} is of type {kind.__module__}.{kind.__qualname__}, which a model file "
        "cannot hold; expected str, int, bool, None, float, bytes or tuples of these: convert it first, "
        "for instance with str()"
    )


def _decode(item: object, depth: int) -> Any:
    if item is None or type(item) in (bool, int, float, str):
        return item
    if isinstance(item, dict) and len(item) == 1:
        [(tag, content)] = item.items()
        if tag == "tuple" and isinstance(content, list) and depth < _MAX_TUPLE_DEPTH:
            return tuple(_decode(part, depth + 1) for part in content)
        try:
            if tag == "int" and isinstance(content, str):
                return int(content, 16)
            if tag == "bytes" and isinstance(content, str):
                return bytes.fromhex(content)
            if tag == "str" and isinstance(content, str):
                return bytes.fromhex(content).decode("utf-8", "surrogatepass")
        except ValueError:
            pass
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
