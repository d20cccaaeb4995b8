"""onepass: online machine learning. Each example is seen once, predicted, revealed, learned, forgotten.

Importing this is cheap: a name is loaded when it is first touched, and scikit-learn only with an estimator.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__version__ = "0.1.0"


def lazily_loaded(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: a name is imported from its module when it is first used.

    A name that stands at the end of its home is the module itself: ``{"losses": "scheme.losses"}``.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = importlib.import_module(f".{home}", package)
        value = module if home.rpartition(".")[2] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute


# Public name → the module that holds it. Their types stand in `__init__.pyi`.
_HOMES = {
    "CCIPCA": "transforms.decomposition",
    "Average": "scheme.readouts",
    "BernoulliMixture": "generative.mixture",
    "BernoulliNB": "generative.naive_bayes",
    "CategoricalNB": "generative.naive_bayes",
    "ComplementNB": "generative.naive_bayes",
    "DelayedStream": "evaluation",
    "DictionaryLearning": "transforms.dictionary",
    "Distributed": "evaluation",
    "EnsembleModel": "models.ensemble",
    "ExpertEnsemble": "estimators.ensemble",
    "GaussianMixture": "generative.mixture",
    "GaussianNB": "generative.naive_bayes",
    "Hindsight": "evaluation",
    "IncrementalPCA": "transforms.decomposition",
    "KMeans": "prototypes.kmeans",
    "KNNClassifier": "prototypes.neighbors",
    "KernelClassifier": "estimators.kernel",
    "KernelModel": "models.kernel",
    "KernelRegressor": "estimators.kernel",
    "LVQClassifier": "prototypes.lvq",
    "LaSVMClassifier": "estimators.lasvm",
    "Last": "scheme.readouts",
    "Learner": "learner",
    "LearnerTraits": "learner",
    "LinearClassifier": "estimators.linear",
    "LinearModel": "models.linear",
    "LinearRegressor": "estimators.linear",
    "MultilabelClassifier": "estimators.multilabel",
    "MultinomialNB": "generative.naive_bayes",
    "OjaPCA": "transforms.decomposition",
    "OneClass": "estimators.oneclass",
    "PendingLabels": "evaluation",
    "Pocket": "scheme.readouts",
    "Ranker": "estimators.ranking",
    "ReferenceLearner": "models.reference",
    "Regret": "convex.regret.curves",
    "Rule": "scheme.rounds",
    "Run": "evaluation",
    "RunState": "evaluation",
    "Scalars": "scheme.rounds",
    "Step": "scheme.rounds",
    "StructuredLearner": "estimators.structured",
    "Voted": "scheme.readouts",
    "budgets": "budgets",
    "check_learner": "checks.learners",
    "check_rule": "checks.rules",
    "compose": "compose",
    "continual": "compose.continual",
    "convex": "convex",
    "datasets": "datasets",
    "decoders": "estimators.decoders",
    "distributed": "evaluation",
    "drift": "drift",
    "errors": "errors",
    "evaluation": "evaluation",
    "experts": "experts",
    "kernels": "kernels",
    "load": "persistence.registry",
    "losses": "scheme.losses",
    "maps": "kernels.maps",
    "metrics": "metrics",
    "play": "play",
    "prequential": "evaluation",
    "reductions": "reductions",
    "regret": "convex.regret.curves",
    "report": "evaluation.report",
    "rules": "rules",
    "schedules": "scheme.schedules",
    "scheme": "scheme",
    "stream": "streams",
    "transforms": "transforms",
}

__all__ = list(_HOMES)

__getattr__ = lazily_loaded(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
