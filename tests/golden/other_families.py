"""Axes of learners with a state of their own, reductions, drift, transforms, decoders, and the documents' rules."""

from __future__ import annotations

from collections.abc import Sequence

from golden import documents
from golden.cover import Choice
from golden.scheme_families import ANSWERS, CLASSES, EVENTS, NEW, model_taught, taught
from golden.streams import FORMS

# -- learners with a state of their own ----------------------------------------------------------------------------

BAYES = (
    "GaussianNB",
    "GaussianNB fading",
    "BernoulliNB",
    "MultinomialNB",
    "MultinomialNB fading",
    "ComplementNB",
    "CategoricalNB",
)
LABELLED = (
    *BAYES,
    "LVQClassifier",
    "LVQClassifier olvq1",
    "LVQClassifier lvq21",
    "KNNClassifier",
    "KNNClassifier distance",
    "SoftmaxSGD",
    "SoftmaxSGD rbf",
    "Replay",
    "EWC",
    "AGEM",
    "AGEM laplacian",
)
UNLABELLED = (
    "KMeans",
    "KMeans sequential",
    "KMeans reassign",
    "GaussianMixture",
    "GaussianMixture full",
    "GaussianMixture tied",
    "GaussianMixture spherical",
    "BernoulliMixture",
    "IncrementalPCA",
    "OjaPCA",
    "CCIPCA",
    "DictionaryLearning",
)
# Not IncrementalPCA: of fewer rows than components, LAPACK chooses the directions of the rest, and the model behind it
# learns what they give. With another BLAS that is another stream.
STEPS = ("KMeans", "KMeans sequential", "OjaPCA", "CCIPCA", "DictionaryLearning")

STATEFUL: dict[str, Sequence[str]] = {
    "learner": (*LABELLED, *UNLABELLED),
    "wrapper": ("none", "scaled", "reset", "adapt", "ova", "ovo", "step"),
    "task": (*CLASSES, "none"),
    "form": tuple(form for form in FORMS if form != "hashed"),
    "way": ("one", "many", "partial", "fit"),
    "event": EVENTS,
    "weights": ("ones", "mixed"),
    "option": ("plain", "end of task"),
}


def stateful_possible(c: Choice) -> bool:
    learner, task, wrapper = c.get("learner"), c.get("task"), c.get("wrapper")
    if learner in UNLABELLED and wrapper not in (None, "none", "scaled", "step"):
        return False
    if learner is not None and wrapper == "step" and learner not in STEPS:
        return False
    if learner is not None and task is not None:
        if (learner in LABELLED or wrapper == "step") == (task == "none"):
            return False
    if task == "none" and wrapper in ("reset", "adapt", "ova", "ovo", "step"):
        return False
    if c.get("option") == "end of task" and (
        wrapper not in (None, "none") or learner not in (None, "EWC", "Replay", "AGEM", "SoftmaxSGD")
    ):
        return False
    return taught(c)


# A row that is refused in the midst of a call that brings new classes: those before it stay, the others must not.
REFUSED_ROW: dict[str, Sequence[str]] = {
    "learner": LABELLED,
    "task": ("multiclass",),
    "form": ("dense", "csr", "named"),
    "way": ("many",),
    "event": ("new classes and overflow", "overflow"),
    "weights": ("ones", "mixed"),
}

# -- reductions, drift, transforms ---------------------------------------------------------------------------------

BASES = ("pa1", "logistic", "model", "pipeline", "kernel", "lasvm", "GaussianNB", "KNNClassifier", "sampled")
REDUCTIONS = {
    "ova": CLASSES,
    "ovo": CLASSES,
    "code": ("multiclass",),
    "dense code": ("multiclass",),
    "cost oaa": ("multiclass", "costs"),
    "cost all pairs": ("multiclass", "costs"),
    "cost expansion": ("multiclass", "costs"),
    "tree": ("multiclass", "costs"),
    "sampled": ANSWERS,
}

REDUCTION: dict[str, Sequence[str]] = {
    "learner": tuple(REDUCTIONS),
    "base": BASES,
    "task": (*ANSWERS, "costs"),
    "form": FORMS,
    "wrapper": ("none", "scaled", "reset"),
    "way": ("one", "many", "partial", "fit"),
    "event": EVENTS,
    "weights": ("ones", "mixed"),
}


def reduction_possible(c: Choice) -> bool:
    learner, base, task = c.get("learner"), c.get("base"), c.get("task")
    if learner is not None and task is not None and task not in REDUCTIONS[learner]:
        return False
    if base in ("lasvm", "GaussianNB", "KNNClassifier", "logistic") and (task == "regression" or learner == "cost oaa"):
        return False
    if base == "sampled" and learner == "sampled":
        return False
    if c.get("form") == "hashed" and base in ("lasvm", "GaussianNB", "KNNClassifier", "pipeline"):
        return False
    if task == "costs" and (c.get("wrapper") == "reset" or c.get("event") in ("label", *NEW)):
        return False
    return taught(c)


DETECTORS = {
    "adwin": "adwin:clock=4,min_part=2,grace=4,delta=0.5",
    "ddm": "ddm:warm=5,warning_level=0.5,drift_level=1",
    "eddm": "eddm:warm=3,alpha=0.99,beta=0.98",
    "hddma": "hddma:drift_confidence=0.4,warning_confidence=0.5",
    "hddmw": "hddmw:drift_confidence=0.4,warning_confidence=0.5",
    "kswin": "kswin:window=12,recent=4,alpha=0.2",
    "page_hinkley": "page_hinkley:warm=5,lam=0.5",
}
OF_NUMBERS = ("adwin", "kswin", "page_hinkley")

DRIFT: dict[str, Sequence[str]] = {
    "learner": ("DriftReset", "DriftAdapt", "DriftWindow", "DriftFade"),
    "detector": tuple(DETECTORS),
    "base": (*BASES, "ova"),
    "task": ANSWERS,
    "form": FORMS,
    "wrapper": ("none", "scaled"),
    "way": ("one", "many", "partial", "fit"),
    "event": EVENTS,
    "weights": ("ones", "mixed"),
}


def drift_possible(c: Choice) -> bool:
    base, task, detector = c.get("base"), c.get("task"), c.get("detector")
    if c.get("learner") in ("DriftWindow", "DriftFade") and detector not in (None, "adwin"):
        return False  # they have none
    if task == "regression" and detector not in (None, *OF_NUMBERS):
        return False
    if base in ("lasvm", "GaussianNB", "KNNClassifier", "ova", "logistic") and task == "regression":
        return False
    if c.get("form") == "hashed" and base in ("lasvm", "GaussianNB", "KNNClassifier", "pipeline"):
        return False
    return taught(c)


# What would fill an empty place, or multiply columns, takes no sparse tables.
DENSE_TRANSFORMS = (
    "StandardScaler",
    "MinMaxScaler",
    "OneHotEncoder",
    "PolynomialFeatures",
    "scaler, products and hasher",
)

TRANSFORM: dict[str, Sequence[str]] = {
    "learner": (
        "StandardScaler",
        "StandardScaler without mean",
        "MinMaxScaler",
        "OneHotEncoder",
        "FeatureHasher",
        "FeatureHasher signed",
        "Interactions",
        "PolynomialFeatures",
        "TaskFeatures",
        "NGrams",
        "scaler, products and hasher",
    ),
    "wrapper": ("none", "before a model"),
    "task": ("binary", "none"),
    "form": tuple(form for form in FORMS if form != "hashed"),
    "way": ("one", "many", "partial", "fit"),
    "event": ("none", "nan", "overflow", "width"),
}


def transform_possible(c: Choice) -> bool:
    if c.get("learner") in ("TaskFeatures", "NGrams") and c.get("form") not in (None, "named"):
        return False
    if c.get("learner") in DENSE_TRANSFORMS and c.get("form") not in (None, "dense", "named"):
        return False
    if {"wrapper", "task"} <= c.keys() and (c["wrapper"] == "none") != (c["task"] == "none"):
        return False
    return taught(c)


STRUCTURED: dict[str, Sequence[str]] = {
    "learner": ("structured",),
    "option": ("sequence", "dependency tree", "cky", "matching", "multiclass"),
    "rule": (
        "perceptron",
        "pa1:C=0.1",
        "arow:lam=0.5",
        "sgd:l2=0.5",
        "pegasos:lam=0.05,project=true",
        "nherd:C=0.1",
    ),
    "readout": ("last", "average"),
    "base": ("max_loss", "prediction"),  # the selection
    "form": ("named", "hashed"),
    "way": ("one", "many"),
    "event": ("none", "label", "weight"),
    "weights": ("ones", "mixed"),
}

DOCUMENTS: dict[str, Sequence[str]] = {
    "learner": ("linear", "linear model", "kernel"),
    "rule": tuple(documents.RULES),
    "task": (*ANSWERS, "ranking"),
    "readout": ("last", "average", "pocket"),
    "form": FORMS,
    "wrapper": ("none", "scaled", "reset", "ova"),
    "way": ("one", "many", "partial", "fit"),
    "event": ("none", "overflow"),
    "weights": ("ones", "mixed"),
    "kernel": ("rbf:gamma=0.1",),
    "budget": ("oldest:B=6",),
}


def documents_possible(c: Choice) -> bool:
    task, learner, wrapper = c.get("task"), c.get("learner"), c.get("wrapper")
    if "rule" in c and task is not None and task not in documents.RULES[c["rule"]][1]:
        return False
    if learner == "kernel" and (c.get("readout") not in (None, "last") or wrapper not in (None, "none")):
        return False
    if task == "ranking" and (learner not in (None, "linear") or wrapper not in (None, "none")):
        return False
    if wrapper == "ova" and task == "regression":
        return False
    return (learner != "linear model" or model_taught(c)) and taught(c)
