"""The values of options: how they are checked, how files store them, and what the native engine gets."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import scheme
from ..errors import ParameterError
from ..scheme.parameters import Parameters, from_config, to_config
from ..scheme.readouts import Average
from ..scheme.rounds import Array
from . import callback

if TYPE_CHECKING:
    from .rule_model import RuleModel

__all__ = [
    "check_options",
    "classes_and_costs",
    "engine_parts",
    "options_config",
    "options_from",
    "read_bits",
    "read_costs",
    "read_intercept",
    "read_max_classes",
]


def read_flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name}={value!r}: expected True or False")
    return bool(value)


def read_positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < float(value) < math.inf:
        raise ParameterError(f"{name}={value!r}: expected a finite number > 0")
    return float(value)


def read_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ParameterError(f"{name}={value!r}: expected a whole number >= 1")
    return int(value)


def read_eta(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ParameterError(f"{name}={value!r}: expected a finite number > 0")
    return float(value)


def read_share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ParameterError(f"{name}={value!r}: expected a number >= 0 and < 1")
    return float(value)


# The checks that a field of `options` names.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "flag": read_flag,
    "positive": read_positive,
    "count": read_count,
    "positive or None": read_eta,
    "share": read_share,
}


def check_options(model: Any) -> None:
    """Validate each option that has a check, and store the value that the check returns."""
    for name, check in _checks(type(model)):  # type: ignore[arg-type]  # a class is hashable
        setattr(model, name, check(name, getattr(model, name)))


@functools.cache
def _checks(kind: type[Any]) -> list[tuple[str, Callable[[str, Any], Any]]]:
    return [(f.name, CHECKS[f.metadata["check"]]) for f in dataclasses.fields(kind) if f.metadata.get("check")]


def _in_files(kind: type[Any]) -> list[dataclasses.Field[Any]]:
    """The options that files store without conversion."""
    return [field for field in dataclasses.fields(kind) if not field.metadata.get("apart")]


def options_config(model: Any) -> dict[str, Any]:
    """The options, for a file."""
    values = [(field, getattr(model, field.name)) for field in _in_files(type(model))]
    return {
        field.name: to_config(value) for field, value in values if value is not None or not field.metadata.get("late")
    }


def options_from(kind: type[Any], config: Mapping[str, Any], known: dict[str, type[Parameters]]) -> dict[str, Any]:
    """The options that `options_config` wrote, as arguments for the constructor of this kind of model."""
    return {
        field.name: from_config(config[field.name], known)
        for field in _in_files(kind)
        if field.name in config or not field.metadata.get("late")
    }


def read_costs(costs: Any, classes: list[Any] | None) -> Array:
    """Validate the table of costs: entry (i, j) is the cost of predicting class j for class i."""
    if classes is None:
        raise ParameterError("costs need classes: declare them, so that rows and columns have names")
    table = np.array(costs, dtype=np.float64)
    if table.shape != (len(classes), len(classes)) or not np.all(np.isfinite(table)) or np.any(table < 0):
        raise ParameterError(
            f"costs must be {len(classes)} × {len(classes)} finite numbers >= 0, got shape {table.shape}"
        )
    if np.any(np.diag(table) != 0) or np.any(table + np.eye(len(classes)) == 0):
        raise ParameterError("costs must be 0 on the diagonal and above 0 elsewhere")
    return table


def read_intercept(value: Any, task: str) -> bool:
    """ "auto" is True if an intercept makes a difference for the task."""
    without = {
        "oneclass": "a centre has no intercept",
        "ranking": "the intercept cancels in a pair's difference",
        "structured": "the intercept cancels in a difference of structures",
    }.get(task)
    if isinstance(value, str) and value == "auto":
        return without is None
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"fit_intercept={value!r}: expected True or False, or 'auto'")
    if value and without:
        raise ParameterError(f"fit_intercept=True is not supported for task={task!r}: {without}; use False or 'auto'")
    return bool(value)


def read_bits(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= 30:
        raise ParameterError(f"hash_bits={value!r}: expected None or a whole number from 1 to 30")
    return int(value)


def read_max_classes(value: Any, classes: list[Any] | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ParameterError(f"max_classes={value!r}: expected None or a whole number >= 1")
    if classes is not None and len(classes) > value:
        raise ParameterError(f"max_classes={value:,}, but {len(classes):,} classes are declared")
    return int(value)


def classes_and_costs(model: RuleModel, classes: Iterable[Hashable] | None) -> dict[str, Any]:
    """The classes and costs for a new model with these options: costs are valid for the same classes only."""
    if model.task in ("regression", "oneclass"):
        return {}
    given = None if classes is None else list(classes)
    if model.costs is None:
        return {"classes": given}
    known = model.classes
    given = known if given is None else given
    if len(given) != len(known) or set(given) != set(known):
        raise ParameterError(f"costs= are of the classes {known!r}: a model of {given!r} needs costs of its own")
    order = [known.index(label) for label in given]
    return {"classes": given, "costs": model.costs[np.ix_(order, order)]}


# The names of the tasks in the loops; all others classify.
LOOPS = {
    "multilabel": "multilabel",
    "oneclass": "oneclass",
    "regression": "regress",
    "ranking": "direction",
    "structured": "direction",
}


def engine_parts(model: RuleModel) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The task, the rule and the options, for the native engine."""
    kind = LOOPS.get(model.task, "classify")
    return kind, _rule_part(model, kind), _options_part(model)


def _rule_part(model: RuleModel, kind: str) -> dict[str, Any]:
    rule, traits = model.rule, model.rule_traits
    if traits.by_coordinate and not rule.compiled:
        raise ParameterError(
            f"{rule!r} changes its weights in `moved`, which the native loop cannot call; use ReferenceLearner, or "
            "write `step` alone"
        )
    return {
        "compiled": rule.compiled,
        "cfunc": rule.cfunc,
        "params": list(rule.native().values()) if rule.cfunc else dict(rule.native()) if rule.compiled else {},
        "slots": [float(v) for v in rule.slots.values()],
        "sees_all_scores": kind == "classify" and traits.sees_all_scores("multiclass", model.multiclass),
        "uses_ww": traits.uses_ww,
        "uses_soft": traits.soft_thresholds,
        "theta": traits.soft_limit,
        "geometry": traits.geometry,
        "ball": traits.ball,
        "batch_size": traits.batch_size,
        "mean": traits.reduction == "mean",
        "coordinates": traits.coordinates,
        "clips": traits.clips,
        "planes": [(float(p.start), p.odd, float(p.dead)) for p in traits.planes],
        "row_planes": sum(p.of_row for p in traits.planes),
        "spread": None if traits.spread is None else dataclasses.asdict(traits.spread),
        "tube": model.radius if model.task == "oneclass" else traits.epsilon,
        "text": repr(rule),
        "step": callback.step(rule),
        "solve": callback.solve(rule),
    }


def _options_part(model: RuleModel) -> dict[str, Any]:
    readout = model.readout
    return {
        "hash_bits": -1 if model.hash_bits is None else model.hash_bits,
        "constant": model.intercept_scaling if model.fit_intercept else 0.0,
        "bias_in_norm": model.bias_in_norm,
        "averaging": readout.kind if isinstance(readout, Average) else "none",
        "average_from": float(readout.start) if isinstance(readout, Average) else 1.0,
        "against": model.multiclass if model.multiclass in scheme.DIRECTIONS else "rival",
        "roots": [] if model.costs is None else np.sqrt(model.costs).ravel().tolist(),
        "pocket": isinstance(readout, scheme.Pocket),
        "ratchet": model.ratchet,
        "calibrated": model.calibrated,
        "votes": float(readout.max_vectors) if isinstance(readout, scheme.Voted) else 0.0,
        "max_features": model.max_features or 0,
        "to_row": model._row,
    }
