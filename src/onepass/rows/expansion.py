"""Interactions and n-grams as the native parsers take them.

An interaction is "ab", a letter for each namespace as in VW (":" is any namespace, " " the one without a name), or
"user*item", whole names of namespaces or of a table's columns. A feature named space^name is of namespace `space`; the
product of p and q is the feature named p*q.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .. import _native
from ..errors import FeatureError, InputError, ParameterError
from .reals import is_real
from .rows import CSR

__all__ = [
    "as_number",
    "expand_one",
    "expand_rows",
    "make_expansion",
    "numbers_of",
    "read_interactions",
]

Term = tuple[str, str]  # the name of a `TermKind` (native/parse/feature_expansion.hpp), and the letter or name
MOST_TERMS = 8


def read_interactions(given: Any) -> list[tuple[Term, ...]]:
    """Each interaction as its terms; one that repeats another in a different order is left out."""
    specs = [given] if isinstance(given, str) else given
    if specs is None or not isinstance(specs, Iterable):
        raise ParameterError(f"interactions={given!r}: expected a list such as ['ab', 'user*item']")
    read: dict[tuple[Term, ...], tuple[Term, ...]] = {}
    for spec in specs:
        terms = _terms(spec)
        read.setdefault(tuple(sorted(terms)), terms)
    return list(read.values())


def _terms(spec: Any) -> tuple[Term, ...]:
    if isinstance(spec, str) and "*" in spec:
        spec = tuple(part.strip() for part in spec.split("*"))
    names = not isinstance(spec, str)
    if not isinstance(spec, str | tuple | list) or not all(isinstance(part, str) and part for part in spec):
        raise ParameterError(f"interaction {spec!r}: expected letters of namespaces ('ab') or names ('user*item')")
    if not 2 <= len(spec) <= MOST_TERMS:
        raise ParameterError(f"interaction {spec!r}: expected from 2 to {MOST_TERMS} namespaces, got {len(spec)}")
    if any("\0" in part or "^" in part for part in spec):
        raise ParameterError(f"interaction {spec!r}: '^' ends the name of a namespace, it cannot be in it")
    return tuple(_term(part, names) for part in spec)


def _term(part: str, named: bool) -> Term:
    if part == ":":
        return "any", ""
    if named:
        return "named", part
    return "initial", "" if part == " " else part


def make_expansion(interactions: Any = None, ngram: int = 1) -> Any:
    """The native expansion for the parsers; None where there is nothing to expand."""
    terms = [] if interactions is None else read_interactions(interactions)
    if not terms and ngram == 1:
        return None
    return _native.FeatureExpansion([list(each) for each in terms], ngram)


def expand_one(expansion: Any, x: Mapping[Any, float]) -> dict[str, float]:
    """A row of names and numbers, with its interactions and n-grams added."""
    names, values = expansion.expand([str(name) for name in x], list(x.values()))
    row: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        row[name] = row[name] + value if name in row else value
        if not math.isfinite(row[name]):
            raise InputError(f"the interaction {name!r:.80} is too large for a double; scale its features down")
    return row


def numbers_of(x: Any) -> dict[Any, float]:
    """A mapping's features as a model reads them: a string value is the feature name=value, zeros are dropped."""
    if not isinstance(x, Mapping):
        raise InputError(f"x must be a mapping of names to numbers, got {x!r:.80} ({type(x).__name__})")
    row: dict[Any, float] = {}
    for name, value in x.items():
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            raise FeatureError(f"feature names must be strings or whole numbers, got {name!r:.80}")
        if isinstance(value, str):
            name, value = f"{name}={value}", 1.0
        number = as_number(name, value)
        if number != 0.0:
            row[name] = row[name] + number if name in row else number
    return row


def as_number(name: Any, value: Any) -> float:
    """A feature's value; raises unless it is a finite number."""
    try:
        if isinstance(value, bytes | bytearray) or not hasattr(value, "__float__") or not is_real(value):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        message = f"feature {name!r:.80} must be a number, a string or a boolean, got {value!r:.80}"
        raise InputError(f"{message} ({type(value).__name__})") from None
    if not math.isfinite(number):
        shown = "NaN" if math.isnan(number) else f"{number:+}inity"
        message = f"feature {name!r:.80} must be a finite number, got {shown}"
        raise InputError(f"{message}; leave the feature out where its value is missing")
    return number


def expand_rows(expansion: Any, X: CSR, hash_bits: int | None = None) -> CSR:
    """Rows of named features with their interactions added: in a table of their own, or hashed."""
    if X.table is None:
        raise FeatureError("interactions need names; hashes and numbers have none: give op.stream the interactions")
    bits = -1 if hash_bits is None else hash_bits
    # The products get a table of their own: other rows may use the stream's table without interactions.
    table = _native.Names() if hash_bits is None else None
    values = np.ascontiguousarray(X.data, dtype=np.float64)
    rows = expansion.rows(np.ascontiguousarray(X.indptr), np.ascontiguousarray(X.indices), values, X.table, bits, table)
    if table is not None:
        rows.assign_columns(table)
    index = rows.index
    width = int(index.max()) + 1 if len(index) else 0
    shape = (X.shape[0], width if hash_bits is None else 1 << hash_bits)
    return CSR(rows.starts, index, rows.value, shape, True, table, hash_bits)
