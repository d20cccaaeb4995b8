"""The registry: every kind of learner and its module. Files, the command and the wrappers find learners only here.

A kind is the name of a class. A file names the kind of its learner; only kinds in this table can be loaded.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, ForeignFileError, ModelFileError, ParameterError, checked_parts
from ..learner import State
from . import store

__all__ = ["KINDS", "class_of", "kind_of", "load", "load_model", "made", "nested", "restored", "save"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """The module of a kind. An estimator over one model names that model's kind; a wrapper is marked as one."""

    module: str
    model: str | None = None
    wrapper: bool = False


KINDS: dict[str, Entry] = {
    # models: no scikit-learn
    "LinearModel": Entry("models.linear"),
    "KernelModel": Entry("models.kernel"),
    "LasvmModel": Entry("models.lasvm"),
    "EnsembleModel": Entry("models.ensemble"),
    # estimators over one model
    "LinearClassifier": Entry("estimators.linear", "LinearModel"),
    "LinearRegressor": Entry("estimators.linear", "LinearModel"),
    "MultilabelClassifier": Entry("estimators.multilabel", "LinearModel"),
    "OneClass": Entry("estimators.oneclass", "LinearModel"),
    "Ranker": Entry("estimators.ranking", "LinearModel"),
    "StructuredLearner": Entry("estimators.structured", "LinearModel"),
    "KernelClassifier": Entry("estimators.kernel", "KernelModel"),
    "KernelRegressor": Entry("estimators.kernel", "KernelModel"),
    "LaSVMClassifier": Entry("estimators.lasvm", "LasvmModel"),
    "ExpertEnsemble": Entry("estimators.ensemble", "EnsembleModel"),
    # learners with a state of their own
    "BernoulliNB": Entry("generative.naive_bayes"),
    "CategoricalNB": Entry("generative.naive_bayes"),
    "ComplementNB": Entry("generative.naive_bayes"),
    "GaussianNB": Entry("generative.naive_bayes"),
    "MultinomialNB": Entry("generative.naive_bayes"),
    "BernoulliMixture": Entry("generative.mixture"),
    "GaussianMixture": Entry("generative.mixture"),
    "KMeans": Entry("prototypes.kmeans"),
    "KNNClassifier": Entry("prototypes.neighbors"),
    "LVQClassifier": Entry("prototypes.lvq"),
    "CCIPCA": Entry("transforms.decomposition"),
    "IncrementalPCA": Entry("transforms.decomposition"),
    "OjaPCA": Entry("transforms.decomposition"),
    "DictionaryLearning": Entry("transforms.dictionary"),
    "AGEM": Entry("compose.continual"),
    "EWC": Entry("compose.continual"),
    "Replay": Entry("compose.continual"),
    "SoftmaxSGD": Entry("compose.continual"),
    # transforms
    "FeatureHasher": Entry("transforms"),
    "Interactions": Entry("transforms"),
    "MinMaxScaler": Entry("transforms"),
    "NGrams": Entry("transforms"),
    "OneHotEncoder": Entry("transforms"),
    "PolynomialFeatures": Entry("transforms"),
    "StandardScaler": Entry("transforms"),
    "TaskFeatures": Entry("transforms"),
    # wrappers: learners over other learners
    "Pipeline": Entry("transforms", wrapper=True),
    "OneVsAll": Entry("reductions", wrapper=True),
    "OneVsOne": Entry("reductions", wrapper=True),
    "ErrorCorrectingOutputCodes": Entry("reductions", wrapper=True),
    "CostSensitive": Entry("reductions", wrapper=True),
    "FilterTree": Entry("reductions", wrapper=True),
    "ImportanceSampling": Entry("reductions", wrapper=True),
    "DriftAdapt": Entry("compose.drift", wrapper=True),
    "DriftFade": Entry("compose.drift", wrapper=True),
    "DriftReset": Entry("compose.drift", wrapper=True),
    "DriftWindow": Entry("compose.drift", wrapper=True),
}

# Kinds in the files of unreleased versions before this table.
_EARLIER = ("linear", "kernel", "lasvm", "ensemble", "stateful", "pipeline", "reduction")


def class_of(kind: Any) -> Any:
    """The class of a kind, imported at its first use."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ForeignFileError(f"holds a learner of kind {kind!r}, which this onepass does not know")
    return getattr(importlib.import_module(f"onepass.{KINDS[kind].module}"), kind)


def kind_of(learner: Any) -> str:
    """The kind of a learner; a class outside the registry is refused, since no file can name it."""
    own: type[Any] = type(learner)
    if own.__name__ not in KINDS or class_of(own.__name__) is not own:
        raise ParameterError(
            f"a model file cannot hold {own.__module__}.{own.__qualname__}; use a onepass learner, or pickle"
        )
    return str(own.__name__)


# -- learners inside learners ------------------------------------------------------------------------------------------


def nested(learner: Any) -> State:
    """The state of a learner inside another: its kind, its config and its arrays."""
    kind = kind_of(learner)
    config, arrays = learner.state()
    return {"kind": kind, "state": config}, arrays


def restored(config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The inverse of `nested`."""
    return made(config["kind"], config["state"], arrays)


def made(kind: str, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Make a learner from the parts of a file; malformed parts raise `ModelFileError`."""
    with checked_parts(f"the {kind}"):
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all() and not _may_overflow(name, array):
                raise DamagedFileError(f"array {name!r} holds a number that is not finite; restore it from a backup")
        return class_of(kind).from_state(config, arrays)


def _may_overflow(name: str, array: NDArray[Any]) -> bool:
    """May the array hold infinity? A linear norm, an ensemble's range, LASVM's violations and `extra` may."""
    return "extra" in name.split(".") or (name.endswith(("scalars", "range", "machines")) and not np.isnan(array).any())


# -- files -------------------------------------------------------------------------------------------------------------


def save(learner: Any, path: str | os.PathLike[str]) -> None:
    """Write a learner to a file, atomically."""
    store.write(path, kind_of(learner), *learner.state())


def load(path: str | os.PathLike[str]) -> Any:
    """Open a file written by `save`. A damaged or foreign file raises; nothing in it is executed.

    A model saved without an estimator, as by the command, is returned inside the estimator for its task.
    """
    kind, config, arrays = store.read(path)
    try:
        _require_known(kind)
        learner = made(kind, config, arrays)
        estimator = getattr(learner, "estimator_kind", None)
        return learner if estimator is None else class_of(estimator).of_model(learner)
    except ModelFileError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def load_model(path: str | os.PathLike[str], *kinds: str) -> tuple[Any, str]:
    """The model in a file, without its estimator, and the kind that was saved; `kinds` are the models wanted."""
    kind, config, arrays = store.read(path)
    try:
        _require_known(kind)
        model = KINDS[kind].model or kind
        if model not in kinds:
            raise ParameterError(f"{os.fspath(path)} holds a {kind}; expected {' or '.join(kinds)}")
        if KINDS[kind].model is not None:
            config = config["learned"]
            if config is None and not arrays:
                raise ParameterError(f"{os.fspath(path)} holds a {kind} that has learned nothing; let it learn first")
            if not isinstance(config, dict):
                raise DamagedFileError("the model is incomplete; restore it from a backup")
        return made(model, config, arrays), kind
    except ModelFileError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None
    except KeyError:
        raise DamagedFileError(f"{os.fspath(path)}: the model is missing; restore it from a backup") from None


def _require_known(kind: str) -> None:
    if kind in _EARLIER:
        raise ForeignFileError(
            f"was written by an unreleased version of onepass, as kind {kind!r}; learn and save the model again"
        )
    if kind not in KINDS:
        raise ForeignFileError(f"holds a learner of kind {kind!r}, which this onepass does not know")
