"""The parameters of learners in files: numbers, words, rules, arrays, label tables, learners as templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import DamagedFileError, ParameterError
from ..learner import traits_of
from ..persistence import registry, store
from ..scheme.parameters import Parameters, config_name, from_config, to_config
from .files import known_parameters

__all__ = ["decode", "decode_all", "encode", "encode_all"]

_PLAIN = (bool, int, str, type(None))


def encode_all(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a learner as JSON; an error names the one that no file can hold."""
    return {name: encode(value, name) for name, value in parameters.items()}


def decode_all(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: decode(value) for name, value in config.items()}


def encode(value: Any, name: str = "value") -> Any:
    """One parameter as JSON. A learner is stored as a template: its kind and parameters, nothing that it learned."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return to_config(value)
    if isinstance(value, Parameters):
        return {"type": config_name(type(value)), "params": encode_all(value.get_params())}
    if isinstance(value, np.ndarray):
        return {"array": encode(value.tolist(), name), "dtype": value.dtype.str}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [encode(item, name) for item in value]
        if isinstance(value, list):
            return items
        return {"tuple": items} if isinstance(value, tuple) else {"set": items}
    if isinstance(value, Mapping):
        return {"keys": store.encode_values(list(value)), "values": [encode(item, name) for item in value.values()]}
    if traits_of(value) is not None:
        return {"learner": registry.kind_of(value), "params": encode_all(template(value))}
    kind = type(value)
    raise ParameterError(
        f"a model file cannot hold {name}={value!r:.60}, a {kind.__module__}.{kind.__qualname__}; "
        "use a onepass learner or a plain value, or pickle"
    )


def decode(config: Any) -> Any:
    """The inverse of `encode`; it creates only known parameters and registered learners."""
    if isinstance(config, list):
        return [decode(item) for item in config]
    if not isinstance(config, dict):
        return config
    if "array" in config:
        return np.array(decode(config["array"]), dtype=np.dtype(config["dtype"]))
    if "tuple" in config:
        return tuple(decode(item) for item in config["tuple"])
    if "set" in config:
        return set(decode(item) for item in config["set"])
    if "keys" in config:
        values = [decode(item) for item in config["values"]]
        return dict(zip(store.decode_values(config["keys"]), values, strict=True))
    if "learner" in config:
        return registry.class_of(config["learner"])(**decode_all(config["params"]))
    if "type" in config:
        made: Any = from_config({**config, "params": decode_all(config.get("params", {}))}, known_parameters())
        return made
    raise DamagedFileError(f"a parameter is stored as {sorted(map(str, config))[:3]}, which this onepass does not know")


def template(learner: Any) -> dict[str, Any]:
    """The parameters from which a learner like this one can be made."""
    if hasattr(learner, "options"):
        return dict(learner.options())
    params = dict(learner.get_params(deep=False))
    if "random_state" in params and not isinstance(params["random_state"], (int, type(None), np.integer)):
        params["random_state"] = None  # the state of a generator is not stored; what was drawn from it is stored
    return params
