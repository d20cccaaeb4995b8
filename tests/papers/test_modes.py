"""Batch and incremental learning. Specification 00 §11, 01 §1.2, §1.3 and §3.3."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from onepass import LinearClassifier, LinearRegressor, rules
from onepass.errors import ParameterError
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .streams import A, Example, R, random_stream, separable

AX, AY = np.array([e.x for e in A], dtype=float), np.array([e.y for e in A])
RX, RY = np.array([e.x for e in R], dtype=float), np.array([e.y for e in R], dtype=float)


def batch(kind, rule, passes, **options):
    return kind(rule, mode="batch", passes=passes, **{"fit_intercept": False, "tol": None, "tol_w": None, **options})


# ---- batch Perceptron ----


@pytest.mark.parametrize("sparse", [False, True])
def test_worked_batch_perceptron(sparse):
    X = scipy.sparse.csr_matrix(AX) if sparse else AX
    before = np.zeros(2)
    for epoch, (violations, delta, w) in enumerate(
        [(5, (1, 5), (1, 5)), (1, (1, -1), (2, 4)), (2, (-1, 0), (1, 4)), (1, (1, -1), (2, 3))], start=1
    ):
        assert np.sum(AY * (AX @ before) <= 0) == violations
        model = batch(LinearClassifier, "perceptron", epoch).fit(X, AY)
        np.testing.assert_allclose(model.coef_[0] - before, delta, atol=1e-6)
        np.testing.assert_allclose(model.coef_[0], w, atol=1e-6)
        assert (model.n_passes_, model.stopped_by_) == (epoch, "passes")
        before = model.coef_[0]


def test_mean_is_the_sum_with_a_step_over_n():
    for epochs in (1, 2, 7):
        mean = batch(LinearClassifier, rules.Perceptron(1.0, 0.3), epochs, reduction="mean").fit(AX, AY)
        less = batch(LinearClassifier, rules.Perceptron(0.2, 0.3), epochs).fit(AX, AY)
        np.testing.assert_allclose(mean.coef_, less.coef_, rtol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("schedule", [None, "inv_sqrt(eta=0.5)"])
def test_batch_perceptron_equals_transcription(schedule, intercept):
    """With margin β, importances, and the epoch for the schedule's clock."""
    stream = random_stream(np.random.default_rng(0), "binary", weighted=True)
    X, y, c = (np.array([getattr(e, name) for e in stream], dtype=float) for name in ("x", "y", "c"))
    Z, w = np.hstack([X, np.full((len(X), 1), float(intercept))]), np.zeros(5)
    for epoch in range(1, 8):
        bad = y * (Z @ w) <= 0.3
        w = w + (0.5 / epoch**0.5 if schedule else 0.7) * (c * y * bad) @ Z
        rule = rules.Perceptron(0.7, 0.3, schedule=schedule)
        model = batch(LinearClassifier, rule, epoch, fit_intercept=intercept).fit(X, y, sample_weight=c)
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_batch_perceptron_bound(seed):
    """01 §1.2: violations summed over epochs ≤ N(R/γ)²; then it stops, because none is left."""
    stream, u = separable(np.random.default_rng(seed), 30, 3, margin=0.2)
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    model = batch(LinearClassifier, "perceptron", 100_000).fit(X, y)
    assert model.stopped_by_ == "no update"
    assert np.all(y * (X @ model.coef_[0]) > 0)
    w, violations, epochs = np.zeros(3), 0, 0
    while np.any(y * (X @ w) <= 0):
        bad = y * (X @ w) <= 0
        violations, epochs, w = violations + int(bad.sum()), epochs + 1, w + (y * bad) @ X
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9)
    assert model.n_passes_ == epochs + 1  # the last pass finds none
    gamma = np.min(y * (X @ u))
    assert_within(violations, len(X) * np.max(np.sum(X * X, axis=1)) / gamma**2, "batch Perceptron")


# ---- batch Adaline ----


def test_worked_batch_adaline():
    for epoch, w in enumerate([(0.6, 0.8), (0.6, 0.94), (0.558, 0.996)], start=1):
        model = batch(LinearRegressor, rules.Adaline(0.1), epoch).fit(RX, RY)
        np.testing.assert_allclose(model.coef_, w, atol=1e-6)
    model = batch(LinearRegressor, rules.Adaline(0.1), 2000).fit(RX, RY)
    np.testing.assert_allclose(model.coef_, (4 / 9, 10 / 9), atol=1e-6)
    assert np.max(np.linalg.eigvalsh(RX.T @ RX)) == pytest.approx(9)


@pytest.mark.parametrize("seed", range(3))
def test_batch_adaline_goes_to_least_squares(seed):
    """01 §3.3: iff 0 < ρ < 2/λ_max, to the solution closest to w₁ = 0; here there are many."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 5))  # rank 3 of 5
    y = rng.normal(size=30)
    largest = np.max(np.linalg.eigvalsh(X.T @ X))
    nearest = np.linalg.lstsq(X, y, rcond=None)[0]
    good = batch(LinearRegressor, rules.Adaline(1.9 / largest), 3000).fit(X, y)
    np.testing.assert_allclose(good.coef_, nearest, atol=1e-6)
    bad = batch(LinearRegressor, rules.Adaline(2.1 / largest), 150).fit(X, y)
    assert np.linalg.norm(bad.coef_ - nearest) > 10 * np.linalg.norm(nearest)


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_batch_adaline_equals_transcription(task):
    """Importances weigh the residuals; with two classes the targets are the labels."""
    stream = random_stream(np.random.default_rng(1), task, weighted=True)
    X, y, c = (np.array([getattr(e, name) for e in stream], dtype=float) for name in ("x", "y", "c"))
    Z, w = np.hstack([X, np.ones((len(X), 1))]), np.zeros(5)
    kind = LinearRegressor if task == "regression" else LinearClassifier
    for epoch in range(1, 6):
        w = w + 0.005 * (c * (y - Z @ w)) @ Z
        model = batch(kind, rules.Adaline(0.005), epoch, fit_intercept=True).fit(X, y, sample_weight=c)
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, rtol=1e-12, atol=1e-12)


def test_batch_is_refused_for_closed_forms():
    for rule in ("pa1", "romma", "mira"):
        with pytest.raises(ParameterError, match="batch"):
            LinearClassifier(rule, mode="batch").fit(AX, AY)


# ---- incremental: order ----


def test_sequential_passes_are_the_online_rule_repeated():
    stream = random_stream(np.random.default_rng(2), "binary", weighted=True)
    X, y, c = (np.array([getattr(e, name) for e in stream]) for name in ("x", "y", "c"))
    for mode in ("online", "incremental"):
        model = LinearClassifier("pa1:C=0.1", mode=mode, passes=4, tol=None, tol_w=None).fit(X, y, sample_weight=c)
        learner = ReferenceLearner("pa1:C=0.1")
        for x, label, weight in stream * 4:
            learner.learn(x, label, weight)
        np.testing.assert_allclose(model.coef_[0], learner.w, rtol=1e-12, atol=1e-12)
        assert (model.t_, model.n_passes_, model.stopped_by_) == (240, 4, "passes")


ORDERS = {
    "shuffle": (True, lambda generator, n: generator.permutation(n)),
    "random": ("random", lambda generator, n: generator.randint(n, size=n)),
}


@pytest.mark.parametrize("name", ORDERS)
def test_other_orders(name):
    """A fresh permutation each pass, or n draws with replacement; seeded."""
    shuffle, draw = ORDERS[name]
    stream = [e for e in random_stream(np.random.default_rng(3), "binary") if np.any(e.x)]
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])

    def fitted(seed):
        return LinearClassifier(
            "pa1:C=0.1", mode="incremental", passes=3, shuffle=shuffle, random_state=seed, tol=None, tol_w=None
        ).fit(X, y)

    generator, learner = np.random.RandomState(7), ReferenceLearner("pa1:C=0.1")
    orders = []
    for _ in range(3):
        orders.append(draw(generator, len(X)))
        for i in orders[-1]:
            learner.learn(X[i], int(y[i]))
    np.testing.assert_allclose(fitted(7).coef_[0], learner.w, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(fitted(7).coef_, fitted(7).coef_)
    assert np.any(fitted(7).coef_ != fitted(8).coef_)
    assert np.any(orders[0] != orders[1])


# ---- incremental: when it stops ----


MISTAKE_DRIVEN = ["perceptron", "perceptron:beta=0.5", "romma", "alma", "mira", "shifting:lam=0"]


@pytest.mark.parametrize("rule", MISTAKE_DRIVEN)
@pytest.mark.parametrize("shuffle", [False, True])
def test_separable_data_stop_without_an_update(rule, shuffle):
    stream, _ = separable(np.random.default_rng(0), 40, 3, margin=0.3)
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    model = LinearClassifier(
        rule, mode="incremental", passes=1000, shuffle=shuffle, random_state=0, fit_intercept=False
    ).fit(X, y)
    assert model.stopped_by_ == "no update"
    assert 1 < model.n_passes_ < 1000
    assert len(model.losses_) == model.n_passes_
    if rule != "mira":  # it builds no margin: its last update ends at m = 0
        assert np.all(model.predict(X) == y)
    again = LinearClassifier(
        rule, mode="incremental", passes=model.n_passes_ - 1, shuffle=shuffle, random_state=0, fit_intercept=False
    ).fit(X, y)
    assert again.stopped_by_ == "passes"
    np.testing.assert_array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize("rule", ["perceptron", "shifting", "alma"])
def test_mistake_driven_rules_have_no_other_test(rule):
    """Not separable: they go on to the last pass."""
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = LinearClassifier(rule, mode="incremental", passes=40).fit(X, [1, -1, 1])
    assert (model.stopped_by_, model.n_passes_) == ("passes", 40)


def test_incremental_perceptron_bound():
    """01 §1.3: the bound of 1.1 counts updates over all passes."""
    for seed in range(4):
        stream, u = separable(np.random.default_rng(seed), 40, 3, margin=0.1)
        X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
        model = LinearClassifier("perceptron", mode="incremental", passes=10_000, fit_intercept=False).fit(X, y)
        assert model.stopped_by_ == "no update"
        gamma = np.min(y * (X @ u))
        assert_within(model.k_, np.max(np.sum(X * X, axis=1)) / gamma**2, "incremental Perceptron")


def passes_by_hand(X, y, rule, passes, tol, tol_w):
    """00 §11 in Python: (which test fired, after how many passes, the mean losses)."""
    learner, best, waited, losses = ReferenceLearner(rule, "regression"), np.inf, 0, []
    before = np.zeros(X.shape[1] + 1)
    for number in range(1, passes + 1):
        start = len(learner.records)
        for x, target in zip(X, y, strict=True):
            learner.learn(x, float(target))
        losses.append(float(np.mean([r.loss for r in learner.records[start:]])))
        w = np.append(learner.w, learner.intercept)
        if tol_w is not None and np.linalg.norm(w - before) <= tol_w * max(1.0, np.linalg.norm(before)):
            return "weights", number, losses
        before = w
        if tol is not None:
            waited = waited + 1 if losses[-1] > best - tol else 0
            best = min(best, losses[-1])
            if waited >= 5:
                return "objective", number, losses
    return "passes", passes, losses


@pytest.mark.parametrize(
    ("tol", "tol_w", "fired"),
    [(1e-3, None, "objective"), (None, 1e-4, "weights"), (None, None, "passes"), (1e-3, 0.5, "weights"),
     (1e-3, 1e-9, "objective")],
)  # fmt: skip
@pytest.mark.parametrize("rule", [rules.Adaline(0.02), rules.PA1(0.05)], ids=repr)
def test_which_test_fired(rule, tol, tol_w, fired):
    stream = random_stream(np.random.default_rng(4), "regression", 40, noise=0.1)
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    model = LinearRegressor(rule, mode="incremental", passes=150, tol=tol, tol_w=tol_w).fit(X, y)
    expected = passes_by_hand(X, y, rule, 150, tol, tol_w)
    assert (model.stopped_by_, model.n_passes_) == expected[:2]
    np.testing.assert_allclose(model.losses_, expected[2], rtol=1e-9)
    if isinstance(rule, rules.Adaline):
        assert model.stopped_by_ == fired


def test_incremental_adaline_converges_with_decreasing_steps():
    """01 §3.3: a constant ρ hovers, Robbins–Monro steps converge to least squares."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=30)
    best = np.linalg.lstsq(X, y, rcond=None)[0]

    def gap(rule):
        model = LinearRegressor(rule, mode="incremental", passes=300, tol=None, tol_w=None, fit_intercept=False)
        return float(np.linalg.norm(model.fit(X, y).coef_ - best))

    hovers = gap(rules.Adaline(0.1))
    decreasing = gap(rules.Adaline(schedule="inv_scaling(eta=0.5,p=0.9,t0=1)"))
    assert decreasing < 0.01
    assert hovers > 5 * decreasing


def test_online_has_no_test():
    model = LinearClassifier("perceptron", passes=3, fit_intercept=False).fit(AX, AY)
    assert (model.stopped_by_, model.n_passes_, model.losses_) == ("passes", 3, [])
    expected = list(transcriptions.perceptron([Example(e.x, e.y) for e in A] * 3, 2, lambda t: 1.0))[-1]
    np.testing.assert_allclose(model.coef_[0], expected)
