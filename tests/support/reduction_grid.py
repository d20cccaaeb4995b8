"""The reductions that are tested, each with its kind of base, and what their tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onepass import LinearClassifier, LinearModel, LinearRegressor
from onepass.persistence import store
from onepass.reductions import (
    CostSensitive,
    ErrorCorrectingOutputCodes,
    FilterTree,
    ImportanceSampling,
    OneVsAll,
    OneVsOne,
)
from support import grid
from support.grid import stream

NAN, INF = float("nan"), float("inf")
LABELS = grid.LABELS["multiclass"]
K = len(LABELS)
STREAM = stream("multiclass")
# Importances that two reductions limit; the stream's others are up to 2.5.
C = STREAM.importance
RULE = "sgd:loss=logistic,schedule=inv_sqrt"  # every row updates, and the step depends on how many came before
CODE = [[1, 1, 0], [1, -1, 1], [-1, 0, 1], [0, -1, -1]]

# name → (maker given a base and classes, the kind of its base)
REDUCTIONS: dict[str, tuple[Callable[..., Any], type]] = {
    "ova": (OneVsAll, LinearClassifier),
    "ovo": (OneVsOne, LinearClassifier),
    "code": (lambda base, classes=None: ErrorCorrectingOutputCodes(base, code=CODE, classes=classes), LinearClassifier),
    "dense": (lambda base, classes=None: ErrorCorrectingOutputCodes(base, classes=classes), LinearClassifier),
    "oaa": (CostSensitive, LinearRegressor),
    "all_pairs": (
        lambda base, classes=None: CostSensitive(base, method="all_pairs", classes=classes),
        LinearClassifier,
    ),
    "expansion": (
        lambda base, classes=None: CostSensitive(base, method="expansion", classes=classes),
        LinearClassifier,
    ),
    "expansion-ova": (
        lambda base, classes=None: CostSensitive(OneVsAll(base), method="expansion", classes=classes),
        LinearClassifier,
    ),
    "tree": (FilterTree, LinearClassifier),
    "tree-sampled": (
        lambda base, classes=None: FilterTree(ImportanceSampling(base, c_max=9, samples=2), classes=classes),
        LinearClassifier,
    ),
    "ova-sampled": (
        lambda base, classes=None: OneVsAll(ImportanceSampling(base, c_max=3), classes=classes),
        LinearClassifier,
    ),
    "sampled": (
        lambda base, classes=None: ImportanceSampling(base, c_max=3, samples=3, classes=classes, seed=5),
        LinearClassifier,
    ),
}
NEED_CLASSES = ("code", "dense", "tree", "tree-sampled")
WITH_COSTS = ("oaa", "all_pairs", "expansion", "expansion-ova", "tree", "tree-sampled")


def make(name: str, classes: Any = None, rule: Any = None, **options: Any) -> Any:
    maker, kind = REDUCTIONS[name]
    default = "sgd:loss=squared,eta=0.02" if kind is LinearRegressor else RULE
    return maker(kind(rule or default, **options), classes=classes)


def saved(reduction: Any) -> bytes:
    return bytes(store.to_bytes("reduction", *reduction._core.state()))


def model_bytes(model: LinearModel) -> bytes:
    return bytes(store.to_bytes("linear", *model.state()))


def binary(**options: Any) -> LinearModel:
    return LinearModel(RULE, classes=[False, True], **options)


def costs_for(y: np.ndarray, seed: int = 0) -> list[dict[int, float]]:
    """Random costs of the four labels, some of them equal."""
    table = np.random.default_rng(seed).choice([0.0, 0.25, 1.0, 2.0, 3.0], size=(len(y), K))
    return [dict(zip(LABELS, row.tolist(), strict=True)) for row in table]


def refuses(model: Any, error: type[Exception], message: str, call: Callable[[], Any]) -> None:
    before = saved(model)
    attributes = {key: repr(value) for key, value in vars(model).items() if key != "_core"}
    with pytest.raises(error, match=message):
        call()
    assert saved(model) == before
    assert {key: repr(value) for key, value in vars(model).items() if key != "_core"} == attributes


class Counts:
    """The best that can be learned without features: the answer of the larger weight."""

    def __init__(self) -> None:
        self.weight = {False: 0.0, True: 0.0}

    def learn_one(self, x: Any, y: bool, importance: float = 1.0) -> None:
        self.weight[y] += importance

    def predict_one(self, x: Any) -> bool:
        return self.weight[True] > self.weight[False]


def integrated(costs: list[float]) -> list[float]:
    """v_k = ∫₀^{c_k} dL / #{j: c_j ≤ L}, costs counted from the least: a sum over the steps of the integrand."""
    least = min(costs)
    steps = sorted({cost - least for cost in costs})
    out = []
    for cost in costs:
        area = 0.0
        for low, high in itertools.pairwise(steps):
            if high <= cost - least:
                area += (high - low) / sum(other - least <= low for other in costs)
        out.append(area)
    return out
