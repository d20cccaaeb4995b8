"""Tables of weights in files: only the features that have occurred are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError
from ..scheme.readouts import Average
from ..scheme.rounds import Rule

if TYPE_CHECKING:
    from .rule_model import RuleModel

__all__ = ["compress", "expand"]

TABLES = ("v", "z", "planes")  # features × …; without planes the pocket, too
LARGE = 1 << 16  # the number of weights from which on a hash table is stored without its empty part


def compress(model: RuleModel) -> dict[str, NDArray[Any]]:
    """The engine's state without unchanged features, and without weights that can be computed from the planes.

    Without planes it is stored whole, unless it is a large hash table that is less than half full.
    """
    engine, traits = model._engine, model.rule_traits
    large = model.hash_bits is not None and engine.features * engine.rows >= LARGE
    state = dict(engine.state(met_only=bool(traits.planes) or large))
    if "kept" not in state:
        return state
    if "planes" not in state and 2 * len(state["kept"]) >= engine.features:
        return dict(engine.state())
    kept, whole = (
        state.pop("kept"),
        () if isinstance(model.readout, Average) else ("z",),
    )  # the intercept of a model without one is 0
    tables = {name: state.pop(name) for name in TABLES if name in state and name not in whole and engine.features}
    if traits.weights_from_planes:
        tables.pop("v", None)
    return {**state, **tables, "kept": kept}


def expand(
    arrays: Mapping[str, NDArray[Any]], rule: Rule, features: int, rows: int, averaged: bool
) -> dict[str, NDArray[Any]]:
    """The state for the engine: whole, or of the features in "kept", which are indices of the table."""
    traits = rule.traits
    if not traits.planes and "kept" not in arrays:
        return dict(arrays)
    kept = _require_places(arrays["kept"], features)
    shapes: dict[str, tuple[int, ...]] = {"v": (kept, rows)}
    if traits.planes:
        shapes["planes"] = (kept, sum(not plane.of_row for plane in traits.planes), rows)
    if averaged and features:
        shapes["z"] = (kept, rows)
    out = dict(arrays)
    if traits.weights_from_planes:
        out["v"] = np.zeros(shapes["v"])
    for name, shape in shapes.items():
        if out[name].shape != shape:
            detail = f"array {name!r} has shape {out[name].shape}, expected {shape}"
            raise DamagedFileError(f"{detail}; restore it from a backup")
    return out


def _require_places(where: NDArray[Any], features: int) -> int:
    """The number of stored features, after checking that they are ascending indices of the table."""
    places = np.where(np.abs(where) < 2.0**53, where, -1.0).astype(np.int64)
    inside = where.ndim == 1 and np.array_equal(places, where) and np.all(np.diff(places) > 0)
    if not inside or (len(places) and not (places[0] >= 0 and places[-1] < features)):
        raise DamagedFileError("the features kept are not places of the table, in order; restore it from a backup")
    return len(places)
