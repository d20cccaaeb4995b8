"""The cells: families of learners, each with its axes, the combinations that are impossible, and a pairwise cover.

What is impossible is said here; what a learner refuses though it could be tried is a cell whose record is the error.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

from golden import documents
from golden.cover import Choice, cover
from golden.rule_table import RULES
from golden.streams import FORMS, TABLES

CLASSES = ("binary", "multiclass")
ANSWERS = (*CLASSES, "regression")
NEW = ("new class", "new classes and overflow")
EVENTS = ("none", "nan", "overflow", "label", "weight", "width", "new class", "new classes and overflow")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One value for each axis; "-" where its family has no such axis."""

    learner: str = "-"
    rule: str = "-"
    task: str = "-"
    form: str = "-"
    readout: str = "-"
    budget: str = "-"
    kernel: str = "-"
    detector: str = "-"
    base: str = "-"
    wrapper: str = "-"
    way: str = "-"
    event: str = "-"
    weights: str = "-"
    option: str = "-"

    @property
    def name(self) -> str:
        return " | ".join(value for value in dataclasses.astuple(self) if value != "-")


# -- what holds for every family -----------------------------------------------------------------------------------


def taught(c: Choice) -> bool:
    """scikit-learn's methods take tables only; what has no labels cannot be given a bad one."""
    if c.get("form") in ("named", "hashed") and c.get("way") in ("fit", "partial"):
        return False
    if c.get("event") in ("label", *NEW) and c.get("task") in ("oneclass", "none"):
        return False
    return not (c.get("event") in NEW and c.get("task") in ("regression", "ranking"))


def model_taught(c: Choice) -> bool:
    """A model has none of scikit-learn's methods, and no pipeline can predict, then learn with it (see REFUSED)."""
    if c.get("way") in ("partial", "fit"):
        return False
    return not (c.get("way") == "then" and c.get("wrapper") == "scaled")


# -- linear rules --------------------------------------------------------------------------------------------------

READS_NORM = ("rls", "kalman", "arow", "cw", "scw", "nherd", "ons", "romma", "aromma", "alma", "pegasos")
SHARING = ("perceptron", "pa", "pa1:C=0.1", "pa2:lam=0.3,epsilon=0", "arow:covariance=full,sigma0=2")

LINEAR: dict[str, Sequence[str]] = {
    "learner": ("linear", "linear model"),
    "rule": tuple(RULES),
    "wrapper": ("none", "scaled", "reset", "ova", "sampled"),
    "task": (*ANSWERS, "multilabel", "oneclass", "ranking", "structured"),
    "readout": ("last", "average", "post", "pocket", "voted"),
    "form": FORMS,
    "way": ("one", "many", "then", "partial", "fit"),
    "event": ("none", "nan", "overflow", "label", "new class"),
    "weights": ("ones", "mixed"),
    "option": ("plain", "no intercept", "intercept scaling", "bias free", "uniform", "proportional"),
}


def linear_possible(c: Choice) -> bool:
    task, wrapper, way, option = (c.get(axis) for axis in ("task", "wrapper", "way", "option"))
    if "rule" in c:
        entry = RULES[c["rule"]]
        if task is not None and task not in entry.tasks:
            return False
        if "readout" in c and c["readout"] not in entry.readouts:
            return False
        if option == "bias free" and c["rule"].startswith(READS_NORM):
            return False
        if option in ("uniform", "proportional") and c["rule"] not in SHARING:
            return False
    if task not in (None, *ANSWERS) and (
        wrapper not in (None, "none", "scaled") or option not in (None, "plain") or way == "then"
    ):
        return False
    if task in ("oneclass", "ranking", "structured") and c.get("learner") == "linear model":
        return False
    if task == "oneclass" and c.get("readout") not in (None, "last"):
        return False
    if wrapper == "ova" and task not in (None, *CLASSES):
        return False
    if way == "then" and wrapper not in (None, "none", "scaled"):
        return False
    if option in ("uniform", "proportional") and (task not in (None, "multiclass") or wrapper == "ova"):
        return False
    if c.get("learner") == "linear model" and not model_taught(c):
        return False
    return taught(c)


# What is malformed is found before a rule sees it: a few rules are enough.
MALFORMED: dict[str, Sequence[str]] = {
    **LINEAR,
    "rule": ("perceptron", "pa1:C=0.1", "arow:covariance=full,sigma0=2", "ftrl:loss=squared,beta=0,lam1=0.2"),
    "wrapper": ("none", "scaled", "reset", "adapt", "ova", "sampled"),
    "readout": ("last", "average"),
    "event": ("weight", "width", "new classes and overflow"),
    "option": ("plain",),
}

# -- kernels -------------------------------------------------------------------------------------------------------

# Budget → the rules that it is defined for (None: any), and its tasks.
BUDGETS: dict[str, tuple[tuple[str, ...] | None, tuple[str, ...]]] = {
    "unlimited": (None, ANSWERS),
    "unlimited:merge_duplicates=true": (None, ANSWERS),
    "stoptron:B=6": (None, ANSWERS),
    "oldest:B=6": (None, ANSWERS),
    "random:B=6,seed=3": (None, ANSWERS),
    "reservoir:B=6,seed=5": (None, ANSWERS),
    "shrinking:phi=0.9": (("perceptron",), ANSWERS),
    "budget_perceptron": (("perceptron",), ("binary",)),
    "budget_svm:B=6": (("perceptron",), ("binary",)),
    "forgetron:B=6": (("perceptron",), ("binary",)),
    "forgetron:B=6,tuning=basic": (("perceptron",), ("binary",)),
    "projectron:eta=0.3": (("perceptron",), CLASSES),
    "projectron:B=6": (("perceptron",), CLASSES),
    "projectron_pp:B=6,eta=0.5": (("perceptron",), ("binary",)),
    "bpas:B=6": (("pa1:C=0.1",), ANSWERS),
    "bpann:B=6": (("pa1:C=0.1",), ANSWERS),
    "bpap:B=6": (("pa1:C=0.1",), ANSWERS),
    "merge:B=6": (("pa2:lam=0.3,epsilon=0", "sgd:loss=squared,schedule=inv_sqrt,eta=0.02,l2=0.3"), ANSWERS),
    "ald:nu=0.3": (("adaline:rho=0.01",), ("binary", "regression")),
}
KERNELS = (
    "rbf:gamma=0.1",
    "linear",
    "polynomial:degree=2",
    "laplacian:gamma=0.1",
    "sigmoid:gamma=0.05",
    "chi2_exp:gamma=0.1",
    "sum",
    "epanechnikov:h=4",
    "own function",
)
SVM_KERNELS = (
    "rbf:gamma=0.1",
    "linear",
    "polynomial:degree=2",
    "laplacian:gamma=0.1",
    "intersection",
    "chi2",
    "product",
    "normalized",
    "cosine",
    "own function",
)
COUNTS = ("intersection", "chi2", "chi2_exp:gamma=0.1")  # kernels of histograms
NOT_POSITIVE = ("sigmoid:gamma=0.05", "epanechnikov:h=4")
SOLVING = ("projectron", "bpap", "ald", "bpann")  # budgets that need a positive definite Gram matrix

KERNEL: dict[str, Sequence[str]] = {
    "learner": ("kernel", "kernel model"),
    "rule": tuple(text for text, entry in RULES.items() if entry.kernel),
    "kernel": KERNELS,
    "budget": tuple(BUDGETS),
    "task": ANSWERS,
    "wrapper": ("none", "scaled"),
    "form": FORMS,
    "way": ("one", "many", "then", "partial", "fit"),
    "event": ("none", "nan", "overflow", "label", "new class"),
    "weights": ("ones", "mixed"),
    "option": ("plain", "intercept"),
}


def kernel_possible(c: Choice) -> bool:
    task, wrapper, budget, kernel = (c.get(axis) for axis in ("task", "wrapper", "budget", "kernel"))
    if "rule" in c and task is not None and task not in RULES[c["rule"]].tasks:
        return False
    if budget is not None:
        rules, tasks = BUDGETS[budget]
        if (task is not None and task not in tasks) or (rules and "rule" in c and c["rule"] not in rules):
            return False
        if kernel in NOT_POSITIVE and budget.startswith(SOLVING):
            return False
        if budget.startswith("merge") and kernel not in (None, "rbf:gamma=0.1"):
            return False
    if kernel == "epanechnikov:h=4" and c.get("rule") not in (None, "parzen", "perceptron"):
        return False
    if kernel == "own function" and (c.get("form") not in (None, *TABLES) or wrapper not in (None, "none")):
        return False
    if c.get("learner") == "kernel model" and not model_taught(c):
        return False
    return taught(c)


# -- the SVM, ensembles --------------------------------------------------------------------------------------------

LASVM: dict[str, Sequence[str]] = {
    "learner": ("lasvm",),
    "kernel": SVM_KERNELS,
    "task": CLASSES,
    "form": tuple(form for form in FORMS if form != "hashed"),
    "wrapper": ("none",),
    "way": ("one", "many", "partial", "fit"),
    "event": EVENTS,
    "weights": ("ones", "mixed"),
    "option": ("plain", "one against one", "more steps", "balanced", "gradient", "active"),
}


def lasvm_possible(c: Choice) -> bool:
    if c.get("option") in ("balanced", "gradient", "active") and c.get("way") not in (None, "fit"):
        return False
    if c.get("kernel") == "own function" and c.get("form") == "named":
        return False
    return taught(c)


ENSEMBLE: dict[str, Sequence[str]] = {
    "learner": ("ensemble", "ensemble model"),
    "option": ("portfolio", "three rules", "estimators", "forgetful"),
    "task": ANSWERS,
    "form": FORMS,
    "wrapper": ("none", "scaled"),
    "way": ("one", "many", "then", "partial", "fit"),
    "event": EVENTS,
    "weights": ("ones", "mixed"),
}


def ensemble_possible(c: Choice) -> bool:
    if c.get("learner") == "ensemble model" and (
        c.get("way") in ("partial", "fit") or c.get("option") == "estimators" or c.get("wrapper") not in (None, "none")
    ):
        return False
    return taught(c)


# Learners that are not linear, inside what was made for linear ones.
WRAPPED: dict[str, Sequence[str]] = {
    "learner": ("kernel", "kernel model", "ensemble", "lasvm"),
    "wrapper": ("scaled", "reset", "adapt", "ova", "sampled"),
    "rule": ("pa1:C=0.1",),
    "kernel": ("rbf:gamma=0.1",),
    "budget": ("unlimited", "oldest:B=6", "bpas:B=6"),
    "task": ANSWERS,
    "form": FORMS,
    "way": ("one", "many", "partial", "fit"),
    "event": ("none", "nan", "overflow", "label"),
    "weights": ("ones", "mixed"),
}


def wrapped_possible(c: Choice) -> bool:
    if c.get("learner") in ("ensemble", "lasvm") and c.get("budget") not in (None, "unlimited"):
        return False
    if c.get("learner") == "lasvm" and (c.get("task") == "regression" or c.get("form") == "hashed"):
        return False
    if c.get("wrapper") == "ova" and c.get("task") == "regression":
        return False
    return taught(c)


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


FAMILIES: dict[str, tuple[Mapping[str, Sequence[str]], Callable[[Choice], bool]]] = {
    "linear": (LINEAR, linear_possible),
    "malformed": (MALFORMED, linear_possible),
    "kernel": (KERNEL, kernel_possible),
    "lasvm": (LASVM, lasvm_possible),
    "ensemble": (ENSEMBLE, ensemble_possible),
    "wrapped": (WRAPPED, wrapped_possible),
    "stateful": (STATEFUL, stateful_possible),
    "reduction": (REDUCTION, reduction_possible),
    "drift": (DRIFT, drift_possible),
    "transform": (TRANSFORM, transform_possible),
    "structured": (STRUCTURED, taught),
    "documents": (DOCUMENTS, documents_possible),
}


PLAIN = {"form": "csr", "way": "many", "event": "none", "weights": "ones"}
# Combinations that the covers leave out, tried once each: what they raise is recorded.
REFUSED = (
    Cell(
        learner="linear model",
        rule="pa1:C=0.1",
        task="binary",
        wrapper="scaled",
        readout="last",
        **{**PLAIN, "way": "then"},
    ),
    Cell(learner="linear", rule="kalman:q=0.05,r=2", task="binary", readout="last", **PLAIN),
    Cell(learner="linear", rule="arow:lam=0.5", task="binary", readout="voted", **PLAIN),
    Cell(learner="linear", rule="fobos:lam1=0.05", task="binary", readout="average", **PLAIN),
    Cell(learner="linear", rule="alma", task="binary", readout="last", option="bias free", **PLAIN),
    Cell(learner="kernel", rule="arow:lam=0.5", task="binary", kernel="rbf", budget="unlimited", **PLAIN),
    Cell(learner="kernel", rule="pa", task="multiclass", kernel="rbf", budget="forgetron:B=6", **PLAIN),
    Cell(learner="kernel", rule="pa", task="binary", kernel="linear", budget="merge:B=6", **PLAIN),
    Cell(
        learner="kernel",
        rule="pa",
        task="binary",
        kernel="own function",
        budget="unlimited",
        **{**PLAIN, "form": "named"},
    ),
    Cell(learner="lasvm", task="binary", kernel="own function", **{**PLAIN, "form": "named"}),
    Cell(learner="DriftReset", task="regression", detector="ddm", base="pa1", **PLAIN),
    Cell(learner="StandardScaler", task="none", **PLAIN),
    Cell(learner="MinMaxScaler", task="none", **PLAIN),
    Cell(learner="PolynomialFeatures", task="none", **PLAIN),
    Cell(learner="OneHotEncoder", task="none", **PLAIN),
)


@functools.cache
def cells() -> dict[str, tuple[Cell, ...]]:
    """Family → its cells."""
    covered = {
        family: tuple(Cell(**choice) for choice in cover(axes, possible))
        for family, (axes, possible) in FAMILIES.items()
    }
    return {**covered, "refused": REFUSED}
