"""Model files of reductions: the parameters, base included, and the state of every base learner."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import files, store
from ..core import Rule
from ..drift.estimators import CHANGING
from ..errors import DamagedFileError, ForeignFileError, InputError, ParameterError
from ..estimator import LinearEstimator
from ..model import LinearModel
from ..model_files import known_parameters
from ..parameters import from_config, to_config
from ..stateful import StatefulEstimator
from .estimators import REDUCTIONS as OWN
from .facade import KIND, ReductionEstimator, listed

__all__ = ["decode", "encode", "from_state", "load"]

REDUCTIONS = {**OWN, **CHANGING}

# The parameters of a `LinearModel` that a base may have.
_MODEL = (
    "rule",
    "task",
    "fit_intercept",
    "intercept_scaling",
    "bias_in_norm",
    "readout",
    "hash_bits",
    "multiclass",
)


def load(path: str | os.PathLike[str]) -> Any:
    kind, config, arrays = store.read(path)
    if kind != KIND:
        raise ForeignFileError(f"{os.fspath(path)} holds a onepass model of kind {kind!r}; use onepass.load")
    return from_state(config, arrays)


def from_state(config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The reduction that `save` wrote."""
    try:
        estimator = decode(config["estimator"])
        if not isinstance(estimator, ReductionEstimator):
            raise DamagedFileError(f"the file names a {type(estimator).__name__}, which is not a reduction")
        return estimator._adopt(config["core"], arrays, config["fitted"])
    except (KeyError, IndexError, TypeError, AttributeError, InputError) as error:
        raise DamagedFileError(
            f"the reduction's parts do not fit together ({error}); restore it from a backup"
        ) from None


def encode(value: Any) -> Any:
    """A base, or a reduction with its parameters, as JSON."""
    if isinstance(value, (str, Rule)):
        return to_config(value)
    if isinstance(value, ReductionEstimator):
        params = value.get_params(deep=False)
        params["base"] = encode(params["base"])
        params["classes"] = None if params["classes"] is None else store.encode_values(listed(params["classes"]))
        if not isinstance(params.get("code", ""), str):
            params["code"] = np.asarray(params["code"]).tolist()
        return {"estimator": type(value).__name__, "params": {name: to_config(param) for name, param in params.items()}}
    if isinstance(value, StatefulEstimator):
        return {"stateful": type(value).__name__, "params": value._config()}
    if isinstance(value, LinearEstimator):
        return {"estimator": type(value).__name__, "params": value._config()}
    if isinstance(value, LinearModel):
        return {"model": {name: to_config(getattr(value, name)) for name in _MODEL}}
    kind = type(value)
    raise ParameterError(
        f"a model file cannot hold {kind.__module__}.{kind.__qualname__}; use a onepass learner as base, or pickle"
    )


def decode(config: Any) -> Any:
    known = known_parameters()
    if not isinstance(config, dict) or "type" in config:
        return from_config(config, known)
    if "model" in config:
        return LinearModel(**{name: from_config(config["model"][name], known) for name in _MODEL})
    if "stateful" in config:
        return files.stateful_class(config["stateful"])(**config["params"])
    name, params = config["estimator"], dict(config["params"])
    if name in REDUCTIONS:
        params["base"] = decode(params["base"])
        params["classes"] = None if params["classes"] is None else store.decode_values(params["classes"])
        made = {
            key: value if key in ("base", "classes") else from_config(value, known) for key, value in params.items()
        }
        return REDUCTIONS[name](**made)
    if name not in files._HOMES:
        raise DamagedFileError(
            f"the file names an estimator {name!r}; expected one of {', '.join((*REDUCTIONS, *files._HOMES))}"
        )
    kind = getattr(importlib.import_module(f"onepass.{files._HOMES[name]}"), name)
    return kind(**files._params(params))
