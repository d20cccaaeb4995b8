"""Kernel learners: the native rounds against `expansion.KernelLearner`, the spec's numbers, and the linear learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import grid, kernel_grid
from support.kernel_grid import KernelCell

from onepass import budgets, kernels, rules, scheme
from onepass.errors import ParameterError
from onepass.estimators.kernel import KernelClassifier, KernelRegressor
from onepass.kernels.expansion import KernelLearner
from onepass.models.kernel import KernelModel

from .kernel_streams import X4, Y4, comparators, noisy_xor


def learned(rule: Any, **options: Any) -> KernelClassifier:
    return KernelClassifier(rule, **{"kernel": kernels.RBF(1.0), **options}).fit(X4, Y4)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("perceptron", [-1, 1, 1]),
        ("pa", [-1, -0.864665, 1.685972, 1.457800]),
        ("pa1:C=0.8", [-0.8, -0.8, 0.8, 0.8]),
        ("pa2", [-0.666667, -0.606518, 0.978919, 0.890597]),
        ("sgd:loss=squared,schedule=constant,eta=0.5", [-0.5, -0.466166, 0.677716, 0.631857]),  # §7
        ("sgd:loss=hinge,schedule=constant,eta=0.5,l2=0.1", [-0.428687, -0.45125, 0.475, 0.5]),  # NORMA, §8
    ],
)
def test_worked_numbers(rule: str, wanted: list[float]) -> None:
    np.testing.assert_allclose(learned(rule).dual_coef_[0], wanted, atol=5e-7)


def test_scores_before_each_update() -> None:
    model = KernelModel("perceptron", "binary", kernel=kernels.RBF(1.0), classes=[-1, 1])
    scores = []
    for x, y in zip(X4, Y4, strict=True):
        scores.append(model.score_one(x))
        model.learn_one(x, int(y))
    np.testing.assert_allclose(scores, [0, -0.135335, -0.367879, -0.232544], atol=5e-7)
    assert model.births.tolist() == [1, 3, 4]


def test_multiclass_mira_by_hand() -> None:
    """Spec 10 §5: B = (0.2, 0.9, 0.5), y the first class: τ = (0.35, −0.35, 0)."""
    coefficients, step = rules.MIRA().solve(
        np.array([0.2, 0.9, 0.5]), 0, scheme.Scalars(-0.7, 1.0, 1.0, 0.0, 1.0, 1, 0)
    )
    np.testing.assert_allclose(step.add * coefficients, [0.35, -0.35, 0])


@pytest.mark.full
@pytest.mark.parametrize("cell", kernel_grid.CELLS, ids=str)
def test_native_equals_python(cell: KernelCell) -> None:
    s = grid.stream(cell.task)
    model = cell.model(s.classes)
    oracle = KernelLearner(
        grid.make_rule(cell.rule),
        kernels.RBF(0.1),
        cell.task,
        classes=4,
        multiclass=grid.AMONG.get(cell.rule, {}).get("multiclass", "rival"),
        costs=grid.AMONG.get(cell.rule, {}).get("costs"),
        budget=kernel_grid.BUDGETS[cell.budget][0],
    )
    limit = model.budget.limit()
    scores = []
    for x, label, y, c in zip(s.X, s.y.tolist(), cell.numbers(s), s.importance, strict=True):
        scores.append(np.atleast_1d(model.score_one(x)))
        model.learn_one(x, label, c)
        oracle.learn(x, y, c)
        assert limit is None or model.n_support <= limit
    tolerance = 1e-6 if "romma" in cell.rule else 1e-8
    assert model.births.tolist() == oracle.f.birth
    assert (model.t, model.k) == (oracle.t, oracle.k)
    np.testing.assert_allclose(
        model.coefficients, oracle.f.c, rtol=0, atol=tolerance * kernel_grid.scale_of(oracle.f.c)
    )
    np.testing.assert_allclose(np.array(scores), np.array(oracle.scores), rtol=0, atol=tolerance * 10)
    if model.rule.traits.uses_ww:
        assert model._engine.ww == pytest.approx(oracle.f.norm2, rel=1e-6, abs=1e-9)


def penalised(name: str) -> bool:
    """A penalty spares the linear learner's intercept; to a kernel learner it is a part of the kernel."""
    return bool(grid.make_rule(name).get_params().get("l2")) or name.startswith(("user", "norma"))


SHARED = [
    pytest.param(name, task, fit_intercept, id=f"{'intercept' if fit_intercept else 'plain'}-{name}-{task}")
    for name, tasks in kernel_grid.KERNEL_RULES.items()
    for task in tasks
    for fit_intercept in (False, True)
    if not fit_intercept or not penalised(name)
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "task", "fit_intercept"), SHARED)
def test_linear_kernel_is_the_linear_learner(name: str, task: str, fit_intercept: bool) -> None:
    rule = grid.make_rule(name)
    s = grid.stream(task)
    among = grid.AMONG.get(name, {})
    kernel = KernelModel(
        rule, task, kernel="linear", classes=s.classes, fit_intercept=fit_intercept, intercept_scaling=2.0, **among
    )
    linear = grid.LinearModel(
        rule, task, classes=s.classes, fit_intercept=fit_intercept, intercept_scaling=2.0, **among
    )
    for model in (kernel, linear):
        model.learn_many(s.X, s.y, s.importance)
    wanted = linear.score_many(s.X)
    scale = max(1.0, float(np.max(np.abs(wanted))))
    tolerance = 1e-6 if "romma" in name else 1e-9
    np.testing.assert_allclose(kernel.score_many(s.X), wanted, rtol=0, atol=tolerance * scale)
    assert (kernel.t, kernel.k) == (linear.t, linear.k)
    if not fit_intercept:
        w = kernel.coefficients.T @ kernel.support
        np.testing.assert_allclose(w, linear.weights()[0], rtol=0, atol=tolerance * scale)


def test_two_classes_among_several_are_one_learner_of_twice_the_aggressiveness() -> None:
    """Spec 10 §6: with M = 2 the difference f₁ − f₀ is binary PA-I with 2C."""
    s = grid.stream("binary")
    y = (s.y == "yes").astype(int)
    several = KernelLearner("pa1:C=0.3", kernels.RBF(0.1), "multiclass", classes=2)
    two = KernelLearner("pa1:C=0.6", kernels.RBF(0.1))
    for x, label in zip(s.X, y, strict=True):
        several.learn(x, int(label))
        two.learn(x, 2 * int(label) - 1)
    differences = np.array(several.scores)[:, 1] - np.array(several.scores)[:, 0]
    np.testing.assert_allclose(differences, np.array(two.scores)[:, 0], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_bounds(seed: int) -> None:
    X, y = noisy_xor(300, seed)
    gram = kernels.RBF(2.0).block(X, X)
    for rule, beta in (("perceptron", 0.0), ("perceptron:beta=1", 1.0)):
        k = KernelClassifier(rule, kernel=kernels.RBF(2.0)).fit(X, y).k_
        for D, u in comparators(gram, y):
            L, R = float(np.sum(np.maximum(0, 1 - y * u))), np.sqrt(1 + 2 * beta)
            assert k <= L + (D * R) ** 2 + D * R * np.sqrt(L)
    for C in (0.1, 1.0, 5.0):
        one, two = (
            KernelModel(f"{name}:C={C}", "binary", kernel=kernels.RBF(2.0), classes=[-1, 1]) for name in ("pa1", "pa2")
        )
        scores = []
        for model in (one, two):
            rows = []
            for x, label in zip(X, y, strict=True):
                rows.append(model.score_one(x))
                model.learn_one(x, int(label))
            scores.append(np.array(rows))
        mistakes = int(np.sum(y * scores[0] <= 0))
        squares = float(np.sum(np.maximum(0, 1 - y * scores[1]) ** 2))
        for D, u in comparators(gram, y):
            losses = np.maximum(0, 1 - y * u)
            assert mistakes <= max(1.0, 1 / C) * (D**2 + 2 * C * float(np.sum(losses)))
            assert squares <= (1 + 1 / (2 * C)) * (D**2 + 2 * C * float(np.sum(losses**2)))


def test_kernel_sgd_bound() -> None:
    """Spec 10 §7: γ ≤ 1/max K(x, x): Σ(u − f)² ≤ ‖u‖²/γ + Σ(y − u)²."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=200)
    gram = kernels.RBF(1.0).block(X, X)
    for gamma in (0.1, 0.5, 1.0):
        model = KernelModel(f"sgd:loss=squared,schedule=constant,eta={gamma}", "regression", kernel=kernels.RBF(1.0))
        before = model.predict_then_learn(X, y)
        for D, u in comparators(gram, y):
            assert np.sum((u - before) ** 2) <= D**2 / gamma + np.sum((y - u) ** 2)


def test_after_a_step_the_example_is_right() -> None:
    X, y = noisy_xor(60, 1)
    model = KernelModel("pa", "binary", kernel=kernels.RBF(2.0), classes=[-1, 1])
    for x, label in zip(X, y, strict=True):
        model.learn_one(x, int(label))
        assert label * model.score_one(x) >= 1 - 1e-9


def test_incremental_perceptron_counts_its_mistakes() -> None:
    """Spec 10 §3: passes over a stored set until none changes; α_n counts. Against a transcription."""
    X, y = noisy_xor(60, 2, noise=0.0)
    gram = kernels.RBF(4.0).block(X, X)
    alpha, F, changed = np.zeros(60), np.zeros(60), True
    while changed:
        changed = False
        for n in range(60):
            if y[n] * F[n] <= 0:
                alpha[n] += 1
                F += y[n] * gram[:, n]
                changed = True
    model = KernelClassifier(
        "perceptron",
        kernel=kernels.RBF(4.0),
        budget=budgets.Unlimited(merge_duplicates=True),
        mode="incremental",
        passes=100,
    ).fit(X, y)
    assert model.stopped_by_ == "no update"
    assert model.n_support_ == np.sum(alpha > 0)
    np.testing.assert_array_equal(np.sort(np.abs(model.dual_coef_[0])), np.sort(alpha[alpha > 0]))
    assert np.all(model.predict(X) == y)


def test_a_row_of_zero_length_is_skipped() -> None:
    model = KernelModel("pa1", "binary", kernel="linear", classes=[0, 1])
    model.learn_one([0.0, 0.0], 1)
    assert (model.t, model.k, model.n_support) == (1, 0, 0)
    assert model._engine.skipped_zero == 1


def test_parzen_classifier() -> None:
    """Spec 10 §10, two classes: every example is kept, f is the difference of the classes' sums."""
    model = learned("perceptron:beta=1e300", kernel=kernels.RBF(0.5))  # h = 1
    assert model.n_support_ == 4
    query = np.array([[0.2, 0.9]])
    values = kernels.RBF(0.5).block(query, X4)[0]
    assert values[Y4 == -1].sum() == pytest.approx(1.376297, abs=5e-7)
    assert values[Y4 == 1].sum() == pytest.approx(1.459634, abs=5e-7)
    assert model.decision_function(query)[0] == pytest.approx(1.459634 - 1.376297, abs=1e-6)
    assert model.predict(query)[0] == 1
    window = learned("perceptron:beta=1e300", kernel=kernels.RBF(0.5), budget="oldest:B=2")
    assert sorted(window.births_.tolist()) == [3, 4]


def test_regression_follows_a_curve() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (400, 1))
    y = np.sinc(X[:, 0])
    for budget in (None, budgets.BPAP(30), budgets.BPANN(30)):
        model = KernelRegressor("pa1:epsilon=0.02", kernel=kernels.RBF(4.0), budget=budget).fit(X, y)
        assert model.score(X, y) > 0.9, budget


@pytest.mark.parametrize(
    ("rule", "options", "word"),
    [
        ("fobos:lam1=0.1", {}, "single weights"),
        ("sgd:batch_size=2", {}, "one step a round"),
        ("alma:p=4", {}, "inner product"),
        ("pocket", {}, "last expansion"),
        ("pa1", {"mode": "batch"}, "expected 'online' or 'incremental'"),
        ("pa1", {"task": "ranking"}, "expected one of"),
    ],
)
def test_what_has_no_kernel_form_is_refused(rule: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        KernelClassifier(rule, **options).fit(X4, Y4)
