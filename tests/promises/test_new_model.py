"""`new_model`: a learner like another that has learned nothing. All that it was made with goes along."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from onepass import KernelModel, LinearModel
from onepass.errors import ParameterError
from onepass.models.ensemble import EnsembleModel

COSTS = np.array([[0.0, 1.0, 9.0], [2.0, 0.0, 1.0], [4.0, 3.0, 0.0]])
# Every option, away from its default, in some model.
MADE: list[dict[str, Any]] = [
    {"rule": "pa2:C=0.3", "task": "multiclass", "classes": [1, 2, 3], "costs": COSTS},
    {"rule": "pa1", "task": "multilabel", "classes": ["a", "b"], "threshold": "calibrated"},
    {"rule": "pa1:C=0.2", "task": "oneclass", "radius": 7.5},
    {"rule": "pa1", "task": "regression", "fit_intercept": False, "readout": "average", "hash_bits": 4},
    {"rule": "pa", "task": "binary", "intercept_scaling": 3.0, "bias_in_norm": False},
    {"rule": "perceptron", "task": "auto", "multiclass": "uniform", "max_classes": 7, "max_features": 99},
]
KERNEL: list[dict[str, Any]] = [
    {"rule": "pa1", "kernel": "rbf:gamma=0.5", "budget": "oldest:B=9", "fit_intercept": True, "intercept_scaling": 2.0},
    {"rule": "pa1", "task": "multiclass", "classes": [1, 2, 3], "costs": COSTS, "hash_bits": 5},
    {"rule": "perceptron", "multiclass": "uniform", "max_classes": 7, "max_features": 99},
]


def configuration(model: LinearModel) -> dict[str, Any]:
    config, _ = model.state()
    return config


@pytest.mark.parametrize(("kind", "options"), [(LinearModel, o) for o in MADE] + [(KernelModel, o) for o in KERNEL])
def test_nothing_is_lost(kind: type[LinearModel], options: dict[str, Any]) -> None:
    model = kind(**options)
    again = model.new_model(options.get("classes"))
    assert type(again) is kind and configuration(again) == configuration(model)


@pytest.mark.parametrize(("kind", "made"), [(LinearModel, MADE), (KernelModel, KERNEL)])
def test_every_option_is_tried(kind: type[LinearModel], made: list[dict[str, Any]]) -> None:
    only_last = {"readout"} if kind is KernelModel else set()
    assert set(inspect.signature(kind).parameters) - only_last == set().union(*made)


def test_costs_follow_their_classes() -> None:
    model = LinearModel("pa1", "multiclass", classes=[1, 2, 3], costs=COSTS)
    turned = model.new_model([3, 1, 2])
    assert turned.classes == [3, 1, 2] and turned.costs is not None
    for i, a in enumerate(turned.classes):
        for j, b in enumerate(turned.classes):
            assert turned.costs[i, j] == COSTS[a - 1, b - 1]
    assert model.new_model().classes == [1, 2, 3]
    for others in ([1, 2], [1, 2, 4], [1, 2, 3, 3]):
        with pytest.raises(ParameterError, match="needs costs of its own"):
            model.new_model(others)


def test_a_member_of_an_ensemble_keeps_its_costs() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(1, 4, size=60)
    model = LinearModel("pa1", "multiclass", classes=[1, 2, 3], costs=COSTS)
    ensemble = EnsembleModel([model, "perceptron"], task="multiclass", classes=[1, 2, 3])
    ensemble.learn_many(X, y)
    model.learn_many(X, y)
    assert np.array_equal(ensemble.members[0].weights()[0], model.weights()[0])
    with pytest.raises(ParameterError, match="declare them"):
        EnsembleModel([model, "perceptron"], task="multiclass")
