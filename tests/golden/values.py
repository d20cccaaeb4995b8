"""Values as text, hashes of arrays, and the comparison of a record with what was recorded."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

# Cells that go through BLAS or libm: their last bits depend on the processor. One operation of these libraries errs by
# a few ulps, about 1e-15, and some tens of rounds, each of which starts from the one before, let that grow.
RTOL, ATOL = 1e-9, 1e-11
DIGITS = 16  # of the 64 of a SHA-256: enough to tell by, and a line stays readable
SHOWN = 4  # entries of a longer array that are recorded beside its sums
LONG = 12  # entries beyond which a table of answers is recorded as an array of the state is


def exact(value: Any) -> Any:
    """A value as JSON, no bit lost: numbers as `float.hex`, labels by their repr, long tables as hashes."""
    return _encoded(value, float.hex, digest)


def near(value: Any) -> Any:
    """A value as JSON, numbers to eleven digits."""
    return _encoded(value, "{:.11g}".format, summary)


def _encoded(value: Any, number: Any, table: Any) -> Any:
    if hasattr(value, "dense") and hasattr(value, "csr"):  # a batch of rows
        value = value.dense if value.csr is None else sparse.csr_matrix(value.csr, shape=(value.rows, value.columns))
    if sparse.issparse(value):
        parts = {name: getattr(value.tocsr(), name) for name in ("data", "indices", "indptr")}
        return {"shape": list(value.shape), **{name: table(part) for name, part in parts.items()}}
    if isinstance(value, np.ndarray):
        if value.size > LONG and value.dtype != object:
            return table(value)
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        if len(value) > LONG:
            return {"keys": hashlib.sha256(repr(list(value)).encode()).hexdigest()[:DIGITS], "of": len(value)} | {
                "values": _encoded(np.array(list(value.values())), number, table)
            }
        return {str(key): _encoded(each, number, table) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple):
        return [_encoded(each, number, table) for each in value]
    return repr(value)


def digest(array: np.ndarray) -> str:
    """The first digits of the SHA-256 of an array's type, shape and bytes."""
    made = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()[:DIGITS]


def summary(array: np.ndarray) -> Any:
    """An array whose numbers depend on the processor: its shape, its sums, and some of its entries."""
    if array.dtype.kind != "f":
        return digest(array)
    flat = array.ravel()
    shape = "×".join(map(str, array.shape))
    if len(flat) <= SHOWN + 2:
        return [shape, *near(flat)]
    return [shape, *near([flat.sum(), np.abs(flat).sum(), *flat[:: math.ceil(len(flat) / SHOWN)]])]


# -- comparison ----------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf)|nan")


def differences(recorded: Any, found: Any, path: str = "") -> Iterator[str]:
    """What differs, as lines "path: recorded → found". Numbers that were recorded in decimals may differ a little."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in dict.fromkeys([*recorded, *found]):
            where = f"{path}.{key}" if path else str(key)
            if key not in found or key not in recorded:
                yield f"{where}: {'no longer there' if key not in found else f'new, {_short(found[key])}'}"
            else:
                yield from differences(recorded[key], found[key], where)
    elif isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        for i, (a, b) in enumerate(zip(recorded, found, strict=True)):
            yield from differences(a, b, f"{path}[{i}]")
    elif recorded != found and not _close(recorded, found):
        yield f"{path}: {_short(recorded)} → {_short(found)}"


def _close(a: Any, b: Any) -> bool:
    if not (isinstance(a, str) and isinstance(b, str) and NUMBER.fullmatch(a) and NUMBER.fullmatch(b)):
        return False
    return math.isclose(float(a), float(b), rel_tol=RTOL, abs_tol=ATOL)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
