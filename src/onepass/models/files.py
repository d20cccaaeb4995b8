"""Models in files: what `state` writes, what `from_state` checks and restores, and which classes a file may name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import rules, scheme
from ..errors import DamagedFileError, checked_parts
from ..models import saved
from ..persistence import store
from ..rows import hashing
from ..scheme.losses import LOSSES
from ..scheme.parameters import Parameters, config_name, from_config
from ..scheme.rounds import Rule
from ..scheme.schedules import SCHEDULES
from ..scheme.traits import RuleTraits
from .option_values import options_config, options_from
from .sparse_state import compress, expand

if TYPE_CHECKING:
    from .rule_model import RuleModel

__all__ = ["from_state", "known_parameters", "parted", "resume", "state"]

Model = TypeVar("Model", bound="RuleModel")


def state(model: RuleModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything, as JSON-able configuration and arrays; `from_state` resumes bit for bit."""
    config = {
        **options_config(model),
        "declared": model.declared,
        "classes": store.encode_values(model.classes),
        **hashing.record(model.hash_bits),
        "features": model.n_features,
        "extra": model.extra,
    }
    arrays = compress(model)
    arrays.update({f"names.{key}": value for key, value in store.encode_names(model.names).items()})
    arrays.update({f"extra.{key}": value for key, value in model.extra_arrays.items()})
    return config, arrays


def from_state(kind: type[Model], config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Model:
    """The model that `state` wrote; raises `DamagedFileError` if its parts do not fit together."""
    with checked_parts("the model"):
        parts = parted(arrays)
        classes, names = store.decode_values(config["classes"]), store.decode_names(parts["names"])
        rule = from_config(config["rule"], known_parameters())
        rows, averaged = _rows(config, classes), config["readout"]["type"] == "readout:Average"
        parts[""] = expand(parts[""], rule, config["features"], rows, averaged)
        _check_parts(config, classes, names, parts[""], rule)
        options = options_from(kind, config, known_parameters())
        model = kind(**options, classes=None if config["costs"] is None else classes)
        resume(model, config, classes, names, parts)
    return model


def parted(arrays: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[Any]]]:
    """The arrays of a file by prefix: the engine's under "", those of the names, and the extra ones."""
    parts: dict[str, dict[str, NDArray[Any]]] = {"": {}, "names": {}, "extra": {}}
    for key, value in arrays.items():
        part, dot, name = key.partition(".")
        parts[part if dot else ""][name or key] = value
    return parts


def resume(
    model: RuleModel,
    config: Mapping[str, Any],
    classes: list[Any],
    names: list[Any],
    parts: Mapping[str, dict[str, Any]],
) -> None:
    """Restore what was learned into a new model with the same options."""
    model.declared = config["declared"]
    model.extra = dict(config["extra"])
    model.extra_arrays = parts["extra"]
    if model.task != "multilabel":
        model.room_for(len(classes))
    if model.costs is not None and not model.declared:
        raise DamagedFileError("costs are of declared classes; restore it from a backup")
    model._engine.set_classes(classes)
    model._engine.set_names(names)
    model._engine.set_state({**parts[""], "features": config["features"]})
    _require_hash(model, config)


def _require_hash(model: RuleModel, config: Mapping[str, Any]) -> None:
    """Refuse weights of names that were hashed by another function. Rows of numbers are not hashed."""
    if model.hash_bits is None or not model.t or (error := hashing.other_hash(config, "the model")) is None:
        return
    columns = int(model._engine.columns)
    if not model.positional or columns == model.n_features or np.any(model._learned_places() >= columns):
        raise error


COUNTERS = ("averaged", "since_recomputed", "t", "k", "skipped_zero")


def _rows(config: Mapping[str, Any], classes: list[Any]) -> int:
    """The number of class rows of the weights."""
    if config["task"] == "multilabel":
        return max(1, len(classes))
    return len(classes) if config["task"] in ("auto", "binary", "multiclass") and len(classes) > 2 else 1


def _check_parts(
    config: Mapping[str, Any], classes: list[Any], names: list[Any], s: dict[str, NDArray[Any]], rule: Rule
) -> None:
    """Raise `DamagedFileError` if sizes do not agree, or if numbers that must be finite are not.

    A checksum detects damage, not a forger; the loops index by these sizes.
    """
    traits, rows = rule.traits, _rows(config, classes)
    for key, shape in _shapes(config, s, traits, rows).items():
        if s[key].shape != shape and not (key == "z" and config["features"] == 0):
            detail = f"array {key!r} has shape {s[key].shape}, expected {shape}"
            raise DamagedFileError(f"{detail}; restore it from a backup")
    for true, what in (
        *_conditions_on_numbers(config, s, traits),
        *_conditions_on_names(config, names, bool(saved.numbers("linear", s["scalars"])["positional"])),
        (len(set(classes)) == len(classes), "a class appears twice"),
        (config["task"] != "binary" or rows == 1, "task='binary' has more than two classes"),
        (isinstance(config["declared"], bool), "declared is neither true nor false"),
    ):
        if not true:
            raise DamagedFileError(f"the model's parts do not fit together: {what}; restore it from a backup")


def _shapes(
    config: Mapping[str, Any], s: dict[str, NDArray[Any]], traits: RuleTraits, rows: int
) -> dict[str, tuple[int, ...]]:
    """Array → its shape, as the options, the rule and the number of features imply it."""
    d = config["features"]
    kept = len(s["kept"]) if "kept" in s else d
    averaged = config["readout"]["type"] == "readout:Average"
    table, row = (kept, rows), (rows,)
    shapes: dict[str, tuple[int, ...]] = {"v": table, "z": table if averaged else (0, rows)}
    shapes |= {"bias": row, "bias_sum": row, "scalars": (saved.count("linear"),)}
    if planes := traits.planes:
        shapes["planes"] = (kept, sum(not plane.of_row for plane in planes), rows)
        shapes["bias_planes"] = (1, len(planes), rows)
    if traits.spread and traits.spread.full:
        size = _covariance_size(config)
        own = 1 if traits.sees_all_scores("multiclass", config["multiclass"]) else rows
        shapes |= {"sigma": (own, size * (size + 1) // 2), "sigma_waited": (1,)}
        if traits.spread.form == "chol":
            shapes["sigma_reach"] = (1,)
    return shapes


def _covariance_size(config: Mapping[str, Any]) -> int:
    return int(config["features"]) + int(config["fit_intercept"])


def _conditions_on_numbers(
    config: Mapping[str, Any], s: dict[str, NDArray[Any]], traits: RuleTraits
) -> list[tuple[bool, str]]:
    """Conditions on the numbers of a model, each with the message if it is false."""
    variances = np.ones(1)
    if traits.spread and traits.spread.full:
        size = _covariance_size(config)
        variances = s["sigma"][:, np.cumsum(np.arange(1, size + 1)) - 1]  # the diagonals of packed triangles
    elif traits.spread:
        variances = np.append(s["planes"], s["bias_planes"])
    scalars = saved.numbers("linear", s["scalars"])
    scale, counters = scalars["scale"], np.array([scalars[name] for name in COUNTERS])
    del scalars["ww"]  # it may overflow
    numbers = [np.array(list(scalars.values())), *(value for key, value in s.items() if key != "scalars")]
    return [
        (all(each.dtype == np.float64 and np.isfinite(each).all() for each in numbers), "a number is not finite"),
        (
            scale != 0 and bool((counters >= 0).all() and (counters == np.floor(counters)).all()),
            "a counter is not a count",
        ),
        (bool(np.all(variances > 0)), "a variance is not above 0"),
        (bool(np.all(s.get("sigma_reach", np.ones(1)) >= 0)), "a bound on variances is below 0"),
    ]


def _conditions_on_names(config: Mapping[str, Any], names: list[Any], positional: bool) -> list[tuple[bool, str]]:
    """Conditions on the feature names of a model, each with the message if it is false."""
    d, bits = config["features"], config["hash_bits"]
    unnamed = not names and (bits is not None or positional)
    return [
        (len(set(names)) == len(names) or positional, "a feature name appears twice"),
        (len(names) == d or unnamed, "not every feature has a name"),
        (bits is None or (bits <= 30 and d == 1 << bits), f"hash_bits={bits} does not fit {d} features"),
    ]


def known_parameters() -> dict[str, type[Parameters]]:
    """The classes a model file may name: ours, and the user's rules that this program has defined."""
    ours = _own_parameters()
    users = {config_name(kind): kind for kind in _subclasses(Rule)}
    return {**users, **ours}


@functools.cache
def _own_parameters() -> dict[str, type[Parameters]]:
    from ..drift.registry import DETECTORS
    from ..kernels.budgets import BUDGETS
    from ..kernels.functions import KERNELS

    families: tuple[Mapping[str, type[Any]], ...] = (
        LOSSES,
        SCHEDULES,
        scheme.READOUTS,
        rules.RULES,
        KERNELS,
        BUDGETS,
        DETECTORS,
    )
    return {config_name(kind): kind for family in families for kind in family.values()}


def _subclasses(kind: type[Rule]) -> list[type[Rule]]:
    return [kind, *(each for sub in kind.__subclasses__() for each in _subclasses(sub))]
