"""Model files of transforms and pipelines: each step's parameters, and what it has learned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import files, hashing, store
from ..errors import DamagedFileError, InputError, ModelFileError, ParameterError
from ..estimator import LinearEstimator
from ..model import LinearModel
from ..stateful import StatefulEstimator
from .base import Transform
from .encoding import FeatureHasher, OneHotEncoder
from .pipeline import Pipeline
from .products import Interactions, PolynomialFeatures
from .scaling import MinMaxScaler, StandardScaler
from .tasks import TaskFeatures
from .text import NGrams

__all__ = ["from_state", "save"]

KIND = "pipeline"
TRANSFORMS: dict[str, type[Transform]] = {
    kind.__name__: kind
    for kind in (
        FeatureHasher,
        Interactions,
        MinMaxScaler,
        NGrams,
        OneHotEncoder,
        PolynomialFeatures,
        StandardScaler,
        TaskFeatures,
    )
}


def save(what: Pipeline | Transform, path: str | os.PathLike[str]) -> None:
    alone = isinstance(what, Transform)
    steps = [("", what)] if isinstance(what, Transform) else what.steps
    config: dict[str, Any] = {"alone": alone, "steps": []}
    arrays: dict[str, NDArray[Any]] = {}
    for number, (name, step) in enumerate(steps):
        if isinstance(step, StatefulEstimator):
            learned, own = step._state_with_parameters()
            part: dict[str, Any] = {"stateful": learned}
        else:
            part, own = _transform(step) if isinstance(step, Transform) else _model(step)
        config["steps"].append({"name": name, **part})
        arrays.update({f"{number}.{key}": array for key, array in own.items()})
    store.write(path, KIND, config, arrays)


def _transform(step: Transform) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if type(step).__name__ not in TRANSFORMS or type(step) is not TRANSFORMS[type(step).__name__]:
        raise ParameterError(f"a model file cannot hold {type(step).__qualname__}; pickle it")
    params = {key: list(v) if isinstance(v, set | tuple) else v for key, v in step.get_params(deep=False).items()}
    config: dict[str, Any] = {"transform": type(step).__name__, "params": params, "learned": None}
    config["fitted"] = LinearEstimator._attributes(step)
    config |= hashing.record(getattr(step, "hash_bits", None))
    if step._state is None:
        return config, {}
    config["learned"], arrays = step._to_config(step._state)
    return config, arrays


def _model(step: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if isinstance(step, LinearModel):
        config, arrays = step.state()
        return {"model": config, "estimator": False}, arrays
    if isinstance(step, LinearEstimator):
        config, arrays = step._state_with_parameters()
        return {"model": config, "estimator": True}, arrays
    from ..reductions.facade import ReductionEstimator

    if isinstance(step, ReductionEstimator):
        config, arrays = step._state_with_parameters()
        return {"reduction": config}, arrays
    raise ParameterError(f"a model file cannot hold {type(step).__qualname__}; use a onepass learner, or pickle")


def from_state(config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The pipeline, or the transform alone, that `save` wrote."""
    try:
        steps = []
        for number, part in enumerate(config["steps"]):
            mark = f"{number}."
            own = {key[len(mark) :]: array for key, array in arrays.items() if key.startswith(mark)}
            steps.append((part["name"], _restored(part, own)))
        if config["alone"]:
            return steps[0][1]
        pipeline = Pipeline(steps)
        pipeline._check()
        return pipeline
    except (KeyError, IndexError, TypeError, AttributeError, InputError, ParameterError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise DamagedFileError(
            f"the pipeline's parts do not fit together ({error}); restore it from a backup"
        ) from None


def _restored(part: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    if "model" in part:
        model = LinearModel.from_state(part["model"], arrays)
        return files.estimator_of(model) if part["estimator"] else model
    if "stateful" in part:
        return files.stateful_of(part["stateful"], arrays)
    if "reduction" in part:
        from ..reductions import saving

        return saving.from_state(part["reduction"], arrays)
    params = {key: tuple(v) if key in ("feature_range", "ngram") and isinstance(v, list) else v
              for key, v in part["params"].items()}  # fmt: skip
    step = TRANSFORMS[part["transform"]](**params)
    step._new_state()  # checks the parameters
    if "hash_bits" in params and (error := hashing.other_hash(part, f"its {part['transform']}")) is not None:
        raise error
    if part["learned"] is not None:
        step._state = step._from_config(part["learned"], arrays)
    fitted = part["fitted"]
    if "n_features_in_" in fitted:
        step.n_features_in_ = fitted["n_features_in_"]
    if "feature_names_in_" in fitted:
        step.feature_names_in_ = np.array(fitted["feature_names_in_"], dtype=object)
    return step
