"""The learner of a cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import onepass as op
from golden.cells import Cell
from golden.documents import rule
from golden.other_families import DETECTORS
from golden.streams import LABELS
from onepass import drift, kernels, reductions, transforms
from onepass.compose import continual
from onepass.estimators import decoders

HASH_BITS = 5
CODE = [[1, 1, 0], [1, -1, 1], [-1, 0, 1], [0, -1, -1]]


def made(cell: Cell) -> Any:
    """A new learner, in its wrapper."""
    return wrapped(cell, bare(cell))


def bare(cell: Cell) -> Any:
    for table in (FAMILY, STATEFUL, TRANSFORMS, REDUCTIONS, DRIFTS):
        if cell.learner in table:
            return table[cell.learner](cell)
    raise KeyError(cell.learner)


def hashing(cell: Cell) -> dict[str, Any]:
    return {"hash_bits": HASH_BITS} if cell.form == "hashed" else {}


# -- linear and kernel learners ------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "no intercept": {"fit_intercept": False},
    "intercept": {"fit_intercept": True},
    "intercept scaling": {"intercept_scaling": 2.0},
    "bias free": {"bias_in_norm": False},
    "uniform": {"multiclass": "uniform"},
    "proportional": {"multiclass": "proportional"},
}


def readout(cell: Cell) -> Any:
    return op.Average(kind="post", start=5) if cell.readout == "post" else cell.readout


def linear(cell: Cell) -> Any:
    options = {**OPTIONS.get(cell.option, {}), **hashing(cell), "readout": readout(cell)}
    if cell.task == "multilabel":
        return op.MultilabelClassifier(rule(cell.rule), **options)
    if cell.task == "oneclass":
        return op.OneClass(rule(cell.rule), radius=0.5, **hashing(cell))
    if cell.task == "ranking":
        return op.Ranker(rule(cell.rule), max_query=5, **options)
    if cell.task == "structured":
        return op.StructuredLearner(rule(cell.rule), **options)
    return (op.LinearRegressor if cell.task == "regression" else op.LinearClassifier)(rule(cell.rule), **options)


def linear_model(cell: Cell) -> Any:
    options = {**OPTIONS.get(cell.option, {}), **hashing(cell), "readout": readout(cell)}
    return op.LinearModel(rule(cell.rule), cell.task, **options)


def own_kernel(x: Any, z: Any) -> float:
    """A kernel as a user writes it; without BLAS."""
    return float((1.0 + np.sum(x * z)) ** 2)


def kernel(name: str) -> Any:
    return {
        "sum": kernels.Sum(kernels.RBF(0.1), kernels.Linear()),
        "product": kernels.Product(kernels.RBF(0.1), kernels.Polynomial(degree=2)),
        "normalized": kernels.Normalized(kernels.Polynomial(degree=2)),
        "own function": kernels.Call(own_kernel),
    }.get(name, name)


def kernel_options(cell: Cell) -> dict[str, Any]:
    return {
        "kernel": kernel(cell.kernel),
        "budget": cell.budget,
        **OPTIONS.get(cell.option, {}),
        **hashing(cell),
    }


def kernel_learner(cell: Cell) -> Any:
    kind = op.KernelRegressor if cell.task == "regression" else op.KernelClassifier
    return kind(rule(cell.rule), **kernel_options(cell))


def kernel_model(cell: Cell) -> Any:
    return op.KernelModel(rule(cell.rule), cell.task, **kernel_options(cell))


LASVM: dict[str, dict[str, Any]] = {
    "one against one": {"multiclass": "ovo"},
    "more steps": {"reprocess_steps": 3, "tau": 0.01, "cache_mb": 0.01},
    "balanced": {"class_weight": "balanced"},
    "gradient": {"selection": "gradient", "candidates": 5, "passes": 2},
    "active": {"selection": "active", "candidates": 5, "finish": False},
}


def lasvm(cell: Cell) -> Any:
    return op.LaSVMClassifier(2.0, kernel(cell.kernel), random_state=0, **LASVM.get(cell.option, {}))


def ensemble(cell: Cell) -> Any:
    regression = cell.task == "regression"
    task = "regression" if regression else "auto"
    estimator = op.LinearRegressor if regression else op.LinearClassifier
    members = {
        "portfolio": None,
        "estimators": [estimator("pa1:C=0.1", **hashing(cell)), estimator("pa2", readout="average", **hashing(cell))],
    }.get(cell.option, ["pa1:C=0.1", "pa2@average", "arow"])
    forgetful = {"alpha": 0.05, "eta": 0.5} if cell.option == "forgetful" else {}
    kind = op.EnsembleModel if cell.learner == "ensemble model" else op.ExpertEnsemble
    return kind(members, task=task, **forgetful, **hashing(cell))


DECODERS: dict[str, Callable[[], Any]] = {
    "sequence": lambda: decoders.Sequence(("A", "B", "C")),
    "dependency tree": decoders.DependencyTree,
    "cky": lambda: decoders.CKY(("S", "N")),
    "matching": decoders.Matching,
    "multiclass": lambda: decoders.Multiclass(tuple(LABELS["multiclass"])),
}


def structured(cell: Cell) -> Any:
    exact = cell.option in ("dependency tree", "matching")  # they add up over parts under the identity alone
    options = {"cost_transform": "identity" if exact else "sqrt", "readout": cell.readout, **hashing(cell)}
    return op.StructuredLearner(rule(cell.rule), DECODERS[cell.option](), selection=cell.base, **options)


FAMILY: dict[str, Callable[[Cell], Any]] = {
    "linear": linear,
    "linear model": linear_model,
    "kernel": kernel_learner,
    "kernel model": kernel_model,
    "lasvm": lasvm,
    "ensemble": ensemble,
    "ensemble model": ensemble,
    "structured": structured,
}

# -- learners with a state of their own ----------------------------------------------------------------------------

SMALL = {"batch_size": 7, "init_size": 15}
STATEFUL: dict[str, Callable[[Cell], Any]] = {
    "GaussianNB": lambda cell: op.GaussianNB(),
    "GaussianNB fading": lambda cell: op.GaussianNB(forgetting=0.97),
    "BernoulliNB": lambda cell: op.BernoulliNB(binarize=0.5),
    "MultinomialNB": lambda cell: op.MultinomialNB(),
    "MultinomialNB fading": lambda cell: op.MultinomialNB(alpha=0.5, forgetting=0.9),
    "ComplementNB": lambda cell: op.ComplementNB(norm=True),
    "CategoricalNB": lambda cell: op.CategoricalNB(),
    "LVQClassifier": lambda cell: op.LVQClassifier(2),
    "LVQClassifier olvq1": lambda cell: op.LVQClassifier(2, variant="olvq1"),
    "LVQClassifier lvq21": lambda cell: op.LVQClassifier(2, variant="lvq21"),
    "KNNClassifier": lambda cell: op.KNNClassifier(3, window=20),
    "KNNClassifier distance": lambda cell: op.KNNClassifier(3, window=50, weights="distance"),
    "SoftmaxSGD": lambda cell: continual.SoftmaxSGD(),
    "SoftmaxSGD rbf": lambda cell: continual.SoftmaxSGD(kernel="rbf:gamma=0.1", D=10),
    "Replay": lambda cell: continual.Replay(memory=8, replayed=3),
    "EWC": lambda cell: continual.EWC(samples=10),
    "AGEM": lambda cell: continual.AGEM(memory=8, replayed=3),
    "AGEM laplacian": lambda cell: continual.AGEM(memory=8, replayed=3, kernel="laplacian:gamma=0.1", D=10),
    "KMeans": lambda cell: op.KMeans(3, **SMALL),
    "KMeans sequential": lambda cell: op.KMeans(3, batch_size=1, decay=0.99),
    "KMeans reassign": lambda cell: op.KMeans(6, batch_size=5, init_size=8, reassign=True),
    "GaussianMixture": lambda cell: op.GaussianMixture(3, **SMALL),
    "GaussianMixture full": lambda cell: op.GaussianMixture(2, covariance="full", schedule="1/n", batch_size=3),
    "GaussianMixture tied": lambda cell: op.GaussianMixture(
        2, covariance="tied", schedule="constant", batch_size=9, cov_floor=0.1
    ),
    "GaussianMixture spherical": lambda cell: op.GaussianMixture(
        3, covariance="spherical", init_size=15, batch_size=5, revive=0.05
    ),
    "BernoulliMixture": lambda cell: op.BernoulliMixture(2, binarize=0.5, **SMALL),
    "IncrementalPCA": lambda cell: op.IncrementalPCA(3, batch_size=9, forgetting=0.9),
    "OjaPCA": lambda cell: op.OjaPCA(2, batch_size=8),
    "CCIPCA": lambda cell: op.CCIPCA(3),
    "DictionaryLearning": lambda cell: op.DictionaryLearning(4, alpha=0.1, batch_size=6),
}

TRANSFORMS: dict[str, Callable[[Cell], Any]] = {
    "StandardScaler": lambda cell: transforms.StandardScaler(),
    "StandardScaler without mean": lambda cell: transforms.StandardScaler(with_mean=False),
    "MinMaxScaler": lambda cell: transforms.MinMaxScaler((-1.0, 1.0), clip=True),
    "OneHotEncoder": lambda cell: transforms.OneHotEncoder(),
    "FeatureHasher": lambda cell: transforms.FeatureHasher(HASH_BITS, keep_names=True),
    "FeatureHasher signed": lambda cell: transforms.FeatureHasher(HASH_BITS, signed=True),
    "Interactions": lambda cell: transforms.Interactions(["::"]),
    "PolynomialFeatures": lambda cell: transforms.PolynomialFeatures(2, interaction_only=True, include_bias=True),
    "TaskFeatures": lambda cell: transforms.TaskFeatures("colour", share=0.25),
    "NGrams": lambda cell: transforms.NGrams((1, 2), of="characters", hash_bits=HASH_BITS),
    "scaler, products and hasher": lambda cell: (
        transforms.StandardScaler(with_mean=False)
        | transforms.PolynomialFeatures(2, interaction_only=True)
        | transforms.FeatureHasher(HASH_BITS)
    ),
}

# -- reductions, drift, wrappers -----------------------------------------------------------------------------------


def base(cell: Cell) -> Any:
    """What a reduction or a drift wrapper teaches."""
    numbers = cell.task == "regression" or cell.learner == "cost oaa"
    estimator = op.LinearRegressor if numbers else op.LinearClassifier
    return {
        "pa1": lambda: estimator("pa1:C=0.1", readout="average", **hashing(cell)),
        "logistic": lambda: estimator("sgd:loss=logistic,schedule=inv_sqrt", **hashing(cell)),
        "model": lambda: op.LinearModel("pa2", "regression" if numbers else "auto", **hashing(cell)),
        "pipeline": lambda: transforms.StandardScaler(with_mean=False) | estimator("pa1:C=0.1"),
        "kernel": lambda: (op.KernelRegressor if numbers else op.KernelClassifier)(
            "pa1:C=0.1", kernel="rbf:gamma=0.1", budget="oldest:B=6", **hashing(cell)
        ),
        "lasvm": lambda: op.LaSVMClassifier(2.0, "rbf:gamma=0.1"),
        "GaussianNB": op.GaussianNB,
        "KNNClassifier": lambda: op.KNNClassifier(3, window=20),
        "sampled": lambda: reductions.ImportanceSampling(estimator("pa1:C=0.1", **hashing(cell)), c_max=9.0),
        "ova": lambda: reductions.OneVsAll(estimator("pa1:C=0.1", **hashing(cell))),
    }[cell.base]()


CLASSES = LABELS["multiclass"]
REDUCTIONS: dict[str, Callable[[Cell], Any]] = {
    "ova": lambda cell: reductions.OneVsAll(base(cell)),
    "ovo": lambda cell: reductions.OneVsOne(base(cell)),
    "code": lambda cell: reductions.ErrorCorrectingOutputCodes(base(cell), code=CODE, classes=CLASSES),
    "dense code": lambda cell: reductions.ErrorCorrectingOutputCodes(base(cell), decoding="linear", classes=CLASSES),
    "cost oaa": lambda cell: reductions.CostSensitive(base(cell)),
    "cost all pairs": lambda cell: reductions.CostSensitive(base(cell), method="all_pairs"),
    "cost expansion": lambda cell: reductions.CostSensitive(base(cell), method="expansion"),
    "tree": lambda cell: reductions.FilterTree(base(cell), classes=CLASSES),
    "sampled": lambda cell: reductions.ImportanceSampling(base(cell), c_max=3.0, samples=2, seed=5),
}

DRIFTS: dict[str, Callable[[Cell], Any]] = {
    "DriftReset": lambda cell: drift.DriftReset(base(cell), detector=DETECTORS[cell.detector]),
    "DriftAdapt": lambda cell: drift.DriftAdapt(
        base(cell), detector=DETECTORS[cell.detector], warning="page_hinkley:warm=3,lam=0.2", grace=4, patience=9
    ),
    "DriftWindow": lambda cell: drift.DriftWindow(base(cell), window=9, learners=3),
    "DriftFade": lambda cell: drift.DriftFade(base(cell), horizon=12, learners=3),
}
ALARM = "page_hinkley:warm=5,lam=0.5"
WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "-": lambda made: made,
    "none": lambda made: made,
    "scaled": lambda made: transforms.StandardScaler(with_mean=False) | made,
    "reset": lambda made: drift.DriftReset(made, detector=ALARM),
    "adapt": lambda made: drift.DriftAdapt(made, detector=ALARM, warning="page_hinkley:warm=3,lam=0.2", grace=4),
    "ova": reductions.OneVsAll,
    "ovo": reductions.OneVsOne,
    "sampled": lambda made: reductions.ImportanceSampling(made, c_max=3.0, seed=1),
    "step": lambda made: made | op.LinearClassifier("pa1:C=0.1"),
    "before a model": lambda made: made | op.LinearClassifier("pa1:C=0.1"),
}


def wrapped(cell: Cell, made: Any) -> Any:
    return WRAPPERS[cell.wrapper](made)
