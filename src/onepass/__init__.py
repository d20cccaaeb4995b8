"""onepass: online machine learning. Each example is seen once, predicted, revealed, learned, forgotten.

Importing this is cheap: a name is loaded when it is first touched, and scikit-learn only with an estimator.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        budgets,
        continual,
        convex,
        core,
        datasets,
        decoders,
        drift,
        errors,
        evaluate,
        expansion,
        experts,
        kernels,
        losses,
        maps,
        metrics,
        play,
        reductions,
        report,
        rules,
        schedules,
        transforms,
    )
    from .checks import check_rule
    from .cluster import KMeans
    from .core import Average, Last, Pocket, Rule, Scalars, Step, Voted
    from .decomposition import CCIPCA, IncrementalPCA, OjaPCA
    from .dictionary import DictionaryLearning
    from .ensemble import ExpertEnsemble
    from .ensemble_model import EnsembleModel
    from .evaluate import DelayedStream, Distributed, Hindsight, PendingLabels, Run, distributed, prequential
    from .kernel import KernelClassifier, KernelRegressor
    from .kernel_model import KernelModel
    from .lasvm import LaSVMClassifier
    from .learner import Learner, LearnerTraits
    from .learner_checks import check_learner
    from .linear import LinearClassifier, LinearRegressor
    from .lvq import LVQClassifier
    from .mixture import BernoulliMixture, GaussianMixture
    from .model import LinearModel
    from .multilabel import MultilabelClassifier
    from .naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
    from .neighbors import KNNClassifier
    from .oneclass import OneClass
    from .ranking import Ranker
    from .registry import load
    from .regrets import Regret, regret
    from .streams import stream
    from .structured import StructuredLearner

__version__ = "0.1.0"

# Public name → the module that holds it; None where the name is the module itself.
_HOME = {
    "Average": "core",
    "BernoulliMixture": "mixture",
    "BernoulliNB": "naive_bayes",
    "CCIPCA": "decomposition",
    "CategoricalNB": "naive_bayes",
    "ComplementNB": "naive_bayes",
    "DelayedStream": "evaluate",
    "DictionaryLearning": "dictionary",
    "Distributed": "evaluate",
    "EnsembleModel": "ensemble_model",
    "ExpertEnsemble": "ensemble",
    "Hindsight": "evaluate",
    "GaussianMixture": "mixture",
    "GaussianNB": "naive_bayes",
    "IncrementalPCA": "decomposition",
    "KMeans": "cluster",
    "KNNClassifier": "neighbors",
    "KernelClassifier": "kernel",
    "KernelModel": "kernel_model",
    "KernelRegressor": "kernel",
    "LVQClassifier": "lvq",
    "LaSVMClassifier": "lasvm",
    "Last": "core",
    "Learner": "learner",
    "LearnerTraits": "learner",
    "LinearClassifier": "linear",
    "LinearModel": "model",
    "LinearRegressor": "linear",
    "MultilabelClassifier": "multilabel",
    "MultinomialNB": "naive_bayes",
    "OjaPCA": "decomposition",
    "OneClass": "oneclass",
    "PendingLabels": "evaluate",
    "Pocket": "core",
    "Ranker": "ranking",
    "Regret": "regrets",
    "Rule": "core",
    "Run": "evaluate",
    "Scalars": "core",
    "Step": "core",
    "StructuredLearner": "structured",
    "Voted": "core",
    "budgets": None,
    "check_learner": "learner_checks",
    "check_rule": "checks",
    "drift": None,
    "continual": None,
    "convex": None,
    "core": None,
    "datasets": None,
    "decoders": None,
    "distributed": "evaluate",
    "errors": None,
    "evaluate": None,
    "expansion": None,
    "experts": None,
    "kernels": None,
    "load": "registry",
    "losses": None,
    "maps": None,
    "metrics": None,
    "play": None,
    "prequential": "evaluate",
    "reductions": None,
    "regret": "regrets",
    "report": None,
    "rules": None,
    "schedules": None,
    "stream": "streams",
    "transforms": None,
}

__all__ = [
    "CCIPCA",
    "Average",
    "BernoulliMixture",
    "BernoulliNB",
    "CategoricalNB",
    "ComplementNB",
    "DelayedStream",
    "DictionaryLearning",
    "Distributed",
    "EnsembleModel",
    "ExpertEnsemble",
    "GaussianMixture",
    "GaussianNB",
    "Hindsight",
    "IncrementalPCA",
    "KMeans",
    "KNNClassifier",
    "KernelClassifier",
    "KernelModel",
    "KernelRegressor",
    "LVQClassifier",
    "LaSVMClassifier",
    "Last",
    "Learner",
    "LearnerTraits",
    "LinearClassifier",
    "LinearModel",
    "LinearRegressor",
    "MultilabelClassifier",
    "MultinomialNB",
    "OjaPCA",
    "OneClass",
    "PendingLabels",
    "Pocket",
    "Ranker",
    "Regret",
    "Rule",
    "Run",
    "Scalars",
    "Step",
    "StructuredLearner",
    "Voted",
    "budgets",
    "check_learner",
    "check_rule",
    "continual",
    "convex",
    "core",
    "datasets",
    "decoders",
    "distributed",
    "drift",
    "errors",
    "evaluate",
    "expansion",
    "experts",
    "kernels",
    "load",
    "losses",
    "maps",
    "metrics",
    "play",
    "prequential",
    "reductions",
    "regret",
    "report",
    "rules",
    "schedules",
    "stream",
    "transforms",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'onepass' has no attribute {name!r}")
    home = _HOME[name]
    module = importlib.import_module(f".{home or name}", __name__)
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
