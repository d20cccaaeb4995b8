"""Axes of the learners of the scheme: linear rules, kernels, the SVM, ensembles; and what holds for every family."""

from __future__ import annotations

from collections.abc import Sequence

from golden.cover import Choice
from golden.rule_table import RULES
from golden.streams import FORMS, TABLES

CLASSES = ("binary", "multiclass")
ANSWERS = (*CLASSES, "regression")
NEW = ("new class", "new classes and overflow")
EVENTS = ("none", "nan", "overflow", "label", "weight", "width", "new class", "new classes and overflow")


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
