"""`onepass.load`: a saved model as the estimator it was."""

from __future__ import annotations

import importlib
import os
from typing import Any

from . import decoders, store
from .errors import DamagedFileError, ForeignFileError, ModelFileError
from .kernel_model import KernelModel
from .model import KIND, LinearModel
from .model_files import known_parameters
from .parameters import from_config

__all__ = ["load"]

# Estimator → its module, imported when a file asks for it.
_HOMES = {
    "KernelClassifier": "kernel",
    "KernelRegressor": "kernel",
    "LinearClassifier": "linear",
    "LinearRegressor": "linear",
    "MultilabelClassifier": "multilabel",
    "OneClass": "oneclass",
    "Ranker": "ranking",
    "StructuredLearner": "structured",
}

# Learners with a state of their own (see stateful.py) → their module.
_STATEFUL = {
    "AGEM": "continual",
    "BernoulliMixture": "mixture",
    "BernoulliNB": "naive_bayes",
    "CCIPCA": "decomposition",
    "CategoricalNB": "naive_bayes",
    "ComplementNB": "naive_bayes",
    "DictionaryLearning": "dictionary",
    "EWC": "continual",
    "GaussianMixture": "mixture",
    "GaussianNB": "naive_bayes",
    "IncrementalPCA": "decomposition",
    "KMeans": "cluster",
    "KNNClassifier": "neighbors",
    "LVQClassifier": "lvq",
    "MultinomialNB": "naive_bayes",
    "OjaPCA": "decomposition",
    "Replay": "continual",
    "SoftmaxSGD": "continual",
}


def load(path: str | os.PathLike[str]) -> Any:
    """Open a file written by `save`. A damaged or foreign file raises; nothing in it is executed."""
    kind, config, arrays = store.read(path)
    try:
        return _made(kind, config, arrays)
    except ModelFileError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def _made(kind: str, config: dict[str, Any], arrays: dict[str, Any]) -> Any:
    if kind == "reduction":
        return importlib.import_module(".reductions.saving", __package__).from_state(config, arrays)
    if kind == "pipeline":
        return importlib.import_module(".transforms.saving", __package__).from_state(config, arrays)
    if kind == "ensemble":
        return importlib.import_module(".ensemble", __package__).from_state(config, arrays)
    if kind == "lasvm":
        return importlib.import_module(".lasvm", __package__).LaSVMClassifier.from_state(config, arrays)
    if kind == "stateful":
        return stateful_of(config, arrays)
    models: dict[str, type[LinearModel]] = {KIND: LinearModel, KernelModel.kind: KernelModel}
    if kind not in models:
        raise ForeignFileError(f"holds a model of kind {kind!r}, which this onepass does not know")
    model = models[kind].from_state(config, arrays)
    try:
        return estimator_of(model)
    except (AttributeError, KeyError, TypeError) as error:
        raise DamagedFileError(f"its estimator cannot be made again ({error})") from None


def stateful_of(config: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """A learner with a state of its own, as `save` wrote it."""
    return stateful_class(config.get("estimator"))._restore(config, arrays)


def stateful_class(name: Any) -> Any:
    if not isinstance(name, str) or name not in _STATEFUL:
        raise DamagedFileError(f"the model names an estimator {name!r}; expected one of {', '.join(_STATEFUL)}")
    return getattr(importlib.import_module(f".{_STATEFUL[name]}", __package__), name)


def estimator_of(model: LinearModel, **given: Any) -> Any:
    """A `LinearModel` as the estimator that saved it, or as the one that fits its task.

    `given` replaces parameters that no file can hold.
    """
    by_task = {
        "multilabel": "MultilabelClassifier",
        "oneclass": "OneClass",
        "ranking": "Ranker",
        "regression": "LinearRegressor",
        "structured": "StructuredLearner",
    }
    name = model.extra.get("estimator") or by_task.get(model.task, "LinearClassifier")
    if isinstance(model, KernelModel):
        name = "KernelRegressor" if model.task == "regression" else "KernelClassifier"
    if name not in _HOMES:
        raise DamagedFileError(f"the model names an estimator {name!r}; expected one of {', '.join(_HOMES)}")
    kind = getattr(importlib.import_module(f".{_HOMES[name]}", __package__), name)
    if "params" in model.extra:
        saved = {key: value for key, value in model.extra["params"].items() if key not in given}
        params = _params(saved)
    else:
        shared = ["rule", "task", "fit_intercept", "intercept_scaling", "bias_in_norm", "readout", "hash_bits"]
        shared += ["multiclass", "costs", "radius", "kernel", "budget"]
        params = {key: getattr(model, key) for key in shared if key in kind._get_param_names()}
    return kind(**params, **given)._adopt(model, model.extra.get("fitted", {}))


def _params(config: dict[str, Any]) -> dict[str, Any]:
    known = known_parameters()
    out: dict[str, Any] = {}
    for name, value in config.items():
        if name == "class_weight" and isinstance(value, dict):
            out[name] = dict(zip(store.decode_values(value["labels"]), value["weights"], strict=True))
        elif name == "decoder":
            out[name] = decoders.from_config(value)
        else:
            out[name] = from_config(value, known)
    return out
