"""Model files: one safetensors file, free of code, versioned, checksummed, replaced atomically.

Layout (any safetensors reader opens it)::

    8 bytes   header length, little endian
    header    {"__metadata__": {"format": "onepass", "version": "1", "kind": ..., "config": "<JSON>",
               "sha256": "<64 hex digits>"}, "<array>": {"dtype", "shape", "data_offsets"}, ...}
    data      the arrays, little endian, C order, widest type first

`sha256` covers the whole file, with its own 64 digits read as zeros. It detects damage, not forgery:
an attacker who can write the file can also write its checksum. Loading never runs code from a file.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, ForeignFileError, NewerFileError, ParameterError
from . import files, strict_json
from .values import decode_names, decode_values, encode_names, encode_values

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

_FIRST = b'{"__metadata__":{"format":"onepass"'  # the start of the header of every onepass file
_MAX_HEADER = 100_000_000  # bytes; safetensors refuses longer ones
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
    """Write a model file atomically: at every moment `path` is the whole old file or the whole new one."""
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
            # A foreign file, maybe a huge dataset, is refused before all of it is read.
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

    `config` is JSON: tuples come back as lists, numpy scalars as Python's, keys sorted. Pass labels
    through `encode_values` and feature names through `encode_names`.
    """
    return bytes(_pack(kind, config, arrays))


def from_bytes(data: bytes, where: str) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """Inverse of `to_bytes`; `where` names the source in error messages."""
    from safetensors import SafetensorError, deserialize  # imported here: starting without reading a file is faster

    data = bytes(data)
    metadata, end = _parse_header(data, where)
    _check_version(metadata.get("version"), where)
    _check_sum(data, end, metadata, where)
    # From here on the bytes are as onepass, or an attacker, wrote them.
    kind, text = metadata.get("kind"), metadata.get("config")
    if not isinstance(kind, str) or not kind or not isinstance(text, str):
        _damaged(where, "expected a kind and a config in its header")
    try:
        config = strict_json.loads(text)
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
    if not isinstance(kind, str) or not kind or strict_json.has_surrogates(kind):
        raise ParameterError(f"kind={kind!r}: expected a non-empty str of valid Unicode")
    text = strict_json.dumps(strict_json.exact(dict(config), "config"))
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
    head = strict_json.dumps(header, sort_keys=False).encode()
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

    # The digest of the copy, not of the arrays: another thread may still be learning.
    data[start : start + 64] = hashlib.sha256(data).hexdigest().encode()
    return data


def _array_name(name: object) -> str:
    if not isinstance(name, str) or name == "__metadata__" or strict_json.has_surrogates(name):
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
    # deserialize returns a new bytearray for each; copy only if that should ever be read-only.
    return np.require(array.astype(dtype, copy=False), requirements="W")


def _header_length(data: bytes, where: str) -> int:
    """Length of the header, from the first 9 bytes; refuses files that are not safetensors."""
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
        header = strict_json.loads(data[8:end].decode())
    except (ValueError, RecursionError) as error:
        if _starts_like_ours(data):
            _damaged(where, str(error))
        raise ForeignFileError(
            f"{where}: expected a onepass model file, found no safetensors header ({error}); "
            "give a file that `save` wrote"
        ) from None
    metadata = header.get("__metadata__")  # text that begins with { is an object
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
