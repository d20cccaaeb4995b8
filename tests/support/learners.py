"""Every learner of the registry, made small; and wrappers within wrappers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onepass as op
from onepass import drift, reductions, transforms
from onepass.compose import continual
from onepass.persistence import registry

THREE = ["a", "b", "c"]
SMALL = ["pa1:C=0.1", "arow", "perceptron@average"]

# Kinds whose constructor needs arguments, or would make a large learner, and variants of the others.
MADE: dict[str, list[Callable[[], Any]]] = {
    "EnsembleModel": [lambda: op.EnsembleModel(SMALL), lambda: op.EnsembleModel(["pa1", "nlms"], "regression")],
    "ExpertEnsemble": [lambda: op.ExpertEnsemble(SMALL), lambda: op.ExpertEnsemble(["pa1"], task="regression")],
    "LinearModel": [op.LinearModel, lambda: op.LinearModel("ftrl:lam1=0.1", hash_bits=5)],
    "LinearClassifier": [
        op.LinearClassifier,
        lambda: op.LinearClassifier("sgd:loss=logistic", readout="average"),
        lambda: op.LinearClassifier("arow", hash_bits=6),
        lambda: op.LinearClassifier("perceptron", readout="pocket"),
    ],
    "LinearRegressor": [op.LinearRegressor, lambda: op.LinearRegressor("rls")],
    "KernelClassifier": [
        op.KernelClassifier,
        lambda: op.KernelClassifier("perceptron", budget="forgetron:B=5"),
        lambda: op.KernelClassifier("pa1", kernel="polynomial:degree=2", budget="bpann:B=6"),
    ],
    "LaSVMClassifier": [op.LaSVMClassifier, lambda: op.LaSVMClassifier(cache_mb=0, kernel="linear")],
    "Replay": [continual.Replay, lambda: continual.Replay(kernel="rbf:gamma=0.5", D=10)],
    "Pipeline": [
        lambda: transforms.StandardScaler(with_mean=False) | op.LinearClassifier(),
        lambda: op.KMeans(2, batch_size=5) | op.LinearRegressor(),
    ],
    "ErrorCorrectingOutputCodes": [lambda: reductions.ErrorCorrectingOutputCodes(classes=THREE)],
    "CostSensitive": [lambda: reductions.CostSensitive(classes=THREE)],
    "FilterTree": [lambda: reductions.FilterTree(classes=THREE)],
    "DriftReset": [drift.DriftReset, lambda: drift.DriftReset(op.LinearRegressor())],
    "DriftFade": [lambda: drift.DriftFade(learners=3)],
}

# name → maker: each kind alone, its variants with a number
LEARNERS: dict[str, Callable[[], Any]] = {
    kind if number == 0 else f"{kind}-{number}": make
    for kind in registry.KINDS
    for number, make in enumerate(MADE.get(kind, [lambda kind=kind: registry.class_of(kind)()]))  # type: ignore[misc]
}

# Wrappers in wrappers, and around learners whose rounds are refused for their own reasons.
NESTED: dict[str, Callable[[], Any]] = {
    "one-vs-all of logistic": lambda: reductions.OneVsAll(op.LinearClassifier("sgd:loss=logistic")),
    "one-vs-all of naive Bayes": lambda: reductions.OneVsAll(op.GaussianNB()),
    "one-vs-all of LASVM": lambda: reductions.OneVsAll(op.LaSVMClassifier(kernel="linear")),
    "one-vs-one of a scaled one": lambda: reductions.OneVsOne(transforms.StandardScaler() | op.LinearClassifier()),
    "costs of regressors": lambda: reductions.CostSensitive("nlms", method="oaa", classes=THREE),
    "expansion": lambda: reductions.CostSensitive("pa1", method="expansion", classes=THREE),
    "tree of samples": lambda: reductions.FilterTree(reductions.ImportanceSampling(samples=2), classes=THREE),
    "reset ensemble": lambda: drift.DriftReset(op.ExpertEnsemble(SMALL)),
    "reset naive Bayes": lambda: drift.DriftReset(op.GaussianNB()),
    "reset one-vs-all": lambda: drift.DriftReset(reductions.OneVsAll("pa1")),
    "reset continual": lambda: drift.DriftReset(continual.SoftmaxSGD()),
    "adapting sgd": lambda: drift.DriftAdapt(op.LinearRegressor("sgd:loss=squared,eta=0.5")),
    "fading one-vs-one": lambda: drift.DriftFade(reductions.OneVsOne(op.KernelClassifier()), learners=2),
    "window of regressors": lambda: drift.DriftWindow(op.LinearRegressor("nlms"), window=5),
    "scaled reset": lambda: transforms.StandardScaler() | drift.DriftReset(op.LinearClassifier("arow")),
    "scaled one-vs-all": lambda: transforms.MinMaxScaler() | reductions.OneVsAll("perceptron"),
    "products of a regression": lambda: transforms.PolynomialFeatures(2) | op.LinearRegressor("sgd:loss=squared"),
    "sampled pipeline": lambda: reductions.ImportanceSampling(transforms.StandardScaler() | op.LaSVMClassifier()),
}
