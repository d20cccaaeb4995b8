"""What is saved opens again: kernel learners of any importance, parameters that are arrays, reductions over kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kernel_grid import BUDGETS, KERNEL_RULES, make_rule
from support.positions import position
from support.reopening import reopened, saved

import onepass as op
from onepass import budgets, kernels, reductions
from onepass.compose import continual
from onepass.errors import NumericalError

# -- kernel learners ---------------------------------------------------------------------------------------------------

EVERY_RULE = [("unlimited", rule) for rule in KERNEL_RULES]
GIVEN = [(budget, rule) for budget, (_, rules, _) in BUDGETS.items() for rule in rules]


@pytest.mark.full
@pytest.mark.parametrize(("budget", "rule"), [*EVERY_RULE, *GIVEN])
def test_kernel_learners_of_any_importance_open_again(budget: str, rule: str, tmp_path: Path) -> None:
    tasks = [task for task in BUDGETS[budget][2] if task in KERNEL_RULES[rule]]
    for seed in range(4):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(60, 3))
        w = generator.choice([0.0, 0.1, 1.0, 7.0], 60)
        for task in tasks:
            options: dict[str, Any] = {"kernel": "rbf:gamma=0.5", "budget": BUDGETS[budget][0]}
            kind = op.KernelRegressor if task == "regression" else op.KernelClassifier
            model = kind(make_rule(rule), **options)
            classes = 2 if task == "binary" else 3
            y = X[:, 0] if task == "regression" else generator.integers(0, classes, 60)
            model.learn_many(X, y, w)
            assert np.array_equal(reopened(model, tmp_path).predict_many(X), model.predict_many(X))


def test_the_damage_of_the_forgetron_may_be_negative(tmp_path: Path) -> None:
    """Dropping a vector that others classify with a wide margin does good: Ψ = σ² + 2σ − 2σμ < 0 for μ > 1 + σ/2."""
    model = op.KernelClassifier("perceptron", kernel="rbf:gamma=0.5", budget=budgets.Forgetron(2), task="binary")
    model.learn_many(np.array([[1.0], [2.0], [2.0]]), [1, 0, 0], [7.0, 1.0, 3.0])
    assert model._model.state()[1]["scalars"][position("kernel", "Q")] < 0.0
    reopened(model, tmp_path)


@pytest.mark.parametrize("rule", ["romma", "aromma"])
def test_a_norm_that_overflows_is_refused_for_its_row(rule: str, tmp_path: Path) -> None:
    model, clean = (op.KernelClassifier(rule, kernel="linear") for _ in range(2))
    X, y = np.array([[0.0, 0.0], [1e-100, 0.0], [0.0, 1.0]]), [0, 1, 0]
    with pytest.raises(NumericalError, match=r"row 1: .* overflows"):
        model.learn_many(X, y)
    clean.learn_many(X[:1], y[:1])
    assert saved(model, tmp_path) == saved(clean, tmp_path)
    for x, label in zip(X, y, strict=True):
        if x[0] > 0:
            with pytest.raises(NumericalError):
                clean.learn_one(x, label)
        else:
            clean.learn_one(x, label)
    reopened(clean, tmp_path)


def test_least_squares_refuse_importances_whose_squares_overflow(tmp_path: Path) -> None:
    model = op.KernelRegressor("adaline", budget=budgets.ALD(nu=0.3))
    X = np.random.default_rng(0).normal(size=(8, 2))
    model.learn_many(X[:4], X[:4, 0])
    before = saved(model, tmp_path)
    with pytest.raises(NumericalError):
        model.learn_one(X[4], 1.0, importance=1e-300)
    assert saved(model, tmp_path) == before
    model.learn_many(X[4:], X[4:, 0], np.full(4, 1e-90))
    reopened(model, tmp_path)


# -- parameters in files -----------------------------------------------------------------------------------------------

EYE = np.eye(2, dtype=np.float32)
ARRAYS: list[Any] = [
    lambda given: op.GaussianMixture(2, means_init=given(EYE), weights_init=given(np.array([0.25, 0.75]))),
    lambda given: op.GaussianMixture(1, covariance="tied", covariances_init=given(EYE)),
    lambda given: op.BernoulliMixture(2, means_init=given(EYE * 0.5 + 0.25)),
    lambda given: op.DictionaryLearning(2, dict_init=given(EYE)),
    lambda given: op.GaussianNB(class_prior=given(np.array([0.25, 0.75]))),
    lambda given: op.MultinomialNB(class_prior=given(np.array([0.25, 0.75]))),
    lambda given: op.CategoricalNB(class_prior=given(np.array([0.25, 0.75]))),
    lambda given: op.LinearClassifier("pa1", costs=given(1.0 - np.eye(3))),
    lambda given: op.KernelClassifier("pa1", costs=given(1.0 - np.eye(3))),
]
SHAPES: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda a: a,
    "lists": lambda a: a.tolist(),
    "tuples": lambda a: tuple(tuple(row) if np.ndim(row) else float(row) for row in a.tolist()),
    "numpy numbers": lambda a: [list(row) if np.ndim(row) else row for row in a],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", ARRAYS)
def test_parameters_that_are_arrays_are_saved(make: Any, shape: str, tmp_path: Path) -> None:
    model = make(SHAPES[shape])
    X = np.array([[0.0, 1.0], [1.0, 0.0]] * 12)
    if hasattr(model, "costs"):
        model.fit(X, [0, 1, 2] * 8)
    else:
        model.learn_many(X, [0, 1] * 12)
    again = reopened(model, tmp_path)
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (np.ndarray, list, tuple)):
            assert np.array_equal(getattr(again, name), np.asarray(value))


@pytest.mark.parametrize("kind", [continual.SoftmaxSGD, continual.Replay, continual.AGEM, continual.EWC])
@pytest.mark.parametrize("kernel", ["rbf:gamma=0.5", kernels.RBF(gamma=0.5), kernels.Laplacian()], ids=str)
def test_continual_learners_with_a_kernel_open_again(kind: Any, kernel: Any, tmp_path: Path) -> None:
    model = kind(kernel=kernel, D=6)
    X, y = np.random.default_rng(0).normal(size=(20, 3)), list("ab" * 10)
    model.learn_many(X[:10], y[:10])
    again = reopened(model, tmp_path)
    for each in (model, again):
        each.learn_many(X[10:], y[10:])
    assert saved(again, tmp_path) == saved(model, tmp_path)


# -- reductions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", [reductions.OneVsAll, reductions.OneVsOne])
def test_reductions_over_kernel_learners_learn_and_open_again(reduction: Any, tmp_path: Path) -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 3)), list("abcd" * 5)
    whole, single = (reduction(op.KernelClassifier(budget="oldest:B=5")) for _ in range(2))
    whole.learn_many(X, y)
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    assert saved(whole, tmp_path) == saved(single, tmp_path)
    assert list(reopened(whole, tmp_path).predict_many(X)) == list(whole.predict_many(X))
    called = reduction(op.KernelClassifier(kernel=lambda a, b: float(a @ b)))  # a function is in no file
    called.learn_many(X, y)
    assert called.predict_one(X[0]) in "abcd"


@pytest.mark.parametrize("base", [op.GaussianNB(), op.KNNClassifier(2), op.KernelClassifier("romma", kernel="linear")])
@pytest.mark.parametrize("reduction", [reductions.OneVsAll, reductions.OneVsOne])
def test_reductions_name_the_row_that_a_base_refuses(reduction: Any, base: Any, tmp_path: Path) -> None:
    X, y = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 1e160], [3.0, 4.0]]), list("abca")
    model, clean = reduction(base), reduction(base)
    with pytest.raises(NumericalError, match="row 2:") as caught:
        model.learn_many(X, y)
    assert caught.value.row == 2
    clean.learn_many(X[:2], y[:2])
    assert saved(reopened(model, tmp_path), tmp_path) == saved(clean, tmp_path)
