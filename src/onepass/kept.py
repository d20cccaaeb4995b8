"""Weights with planes, as files hold them: only the features that were met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .core import Rule
from .errors import DamagedFileError

__all__ = ["packed", "unpacked"]

TABLES = ("v", "z", "planes")  # features × …


def packed(state: Mapping[str, NDArray[Any]], rule: Rule) -> dict[str, NDArray[Any]]:
    """The state without features that are as they started; without weights where these follow from the planes."""
    if "planes" not in state:
        return dict(state)
    tables = {name: state[name] for name in TABLES if len(state[name])}
    starts = np.array([kind.start for kind in rule.planes() if not kind.of_row])[:, np.newaxis]
    met = np.zeros(len(state["planes"]), dtype=bool)
    for name, table in tables.items():
        # Bits, not values: -0.0 is not nothing.
        start = np.broadcast_to(starts if name == "planes" else 0.0, table.shape[1:])
        met |= np.any(table.view(np.int64) != start.astype(np.float64).view(np.int64), axis=tuple(range(1, table.ndim)))
    kept = np.flatnonzero(met)
    small = {name: table[kept] for name, table in tables.items() if not (name == "v" and rule.derived())}
    return {**{name: each for name, each in state.items() if name not in tables}, **small, "kept": kept.astype(float)}


def unpacked(
    arrays: Mapping[str, NDArray[Any]], rule: Rule, features: int, rows: int, averaged: bool
) -> dict[str, NDArray[Any]]:
    """The whole state again."""
    if not rule.planes():
        return dict(arrays)
    where, count = arrays["kept"], sum(not kind.of_row for kind in rule.planes())
    kept = np.where(np.isfinite(where), where, -1.0).astype(np.int64)
    inside = where.ndim == 1 and np.array_equal(kept, where) and np.all(np.diff(kept) > 0)
    if not inside or (len(kept) and not (kept[0] >= 0 and kept[-1] < features)):
        raise DamagedFileError("the features kept are not places of the table, in order; restore it from a backup")
    starts = [kind.start for kind in rule.planes() if not kind.of_row]
    whole = {"v": np.zeros((features, rows)), "planes": np.empty((features, count, rows))}
    whole["planes"][:] = np.array(starts)[:, np.newaxis]
    if averaged and features:
        whole["z"] = np.zeros((features, rows))
    for name, table in whole.items():
        if name == "v" and rule.derived():
            continue
        if arrays[name].shape != (len(kept), *table.shape[1:]):
            expected = f"expected {(len(kept), *table.shape[1:])}"
            raise DamagedFileError(
                f"array {name!r} has shape {arrays[name].shape}, {expected}; restore it from a backup"
            )
        table[kept] = arrays[name]
    return {**{name: each for name, each in arrays.items() if name != "kept"}, **whole}
