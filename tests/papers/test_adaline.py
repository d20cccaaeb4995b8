"""Adaline/LMS: Widrow and Hoff 1960; normalised LMS: Nagumo and Noda 1967. Specification 01 §3.

Bounds: Cesa-Bianchi, Long and Warmuth 1996; Hassibi, Sayed and Kailath 1996 (H∞ optimality of LMS).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .streams import Example, R, comparators, play, random_stream, run, with_constant

WORKED = [
    (
        rules.Adaline(rho=0.1),
        [1, 2.9, 1.42, -0.354],
        [(0.1, 0), (0.39, 0.29), (0.39, 0.574), (0.3192, 0.5386)],
    ),
    (
        rules.NormalizedLMS(mu=1, eps=1),
        [1, 2.5, 0.333333, -2.633333],
        [(0.5, 0), (1.333333, 0.833333), (1.333333, 0.966667), (0.455556, 0.527778)],
    ),
]


@pytest.mark.parametrize(("rule", "errors", "w"), WORKED)
def test_worked_numbers(rule, errors, w):
    learner = ReferenceLearner(rule, "regression", fit_intercept=False)
    np.testing.assert_allclose(run(learner, R)[:, :2], w, atol=1e-6)
    np.testing.assert_allclose(
        [y - r.score for (_, y, _), r in zip(R, learner.records, strict=True)], errors, atol=1e-6
    )
    np.testing.assert_allclose([r.loss for r in learner.records], 0.5 * np.square(errors), atol=1e-5)


RULES = {
    "lms": (rules.Adaline(0.05), lambda s, d: transcriptions.lms(s, d, lambda t: 0.05)),
    "lms, decreasing": (
        rules.Adaline(schedule="inv_t(eta=0.3)"),
        lambda s, d: transcriptions.lms(s, d, lambda t: 0.3 / t),
    ),
    "nlms": (rules.NormalizedLMS(), lambda s, d: transcriptions.nlms(s, d, 1.0, 1e-8)),
    "nlms, μ ε": (rules.NormalizedLMS(0.4, 0.7), lambda s, d: transcriptions.nlms(s, d, 0.4, 0.7)),
    "nlms, ε = 0": (rules.NormalizedLMS(1.5, 0.0), lambda s, d: transcriptions.nlms(s, d, 1.5, 0.0)),
}


@pytest.mark.full
@pytest.mark.parametrize("intercept", [0.0, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["regression", "binary"])
@pytest.mark.parametrize("name", RULES)
def test_equals_transcription(name, task, weighted, intercept):
    """In the binary task the targets are the labels ±1."""
    rule, transcription = RULES[name]
    for seed in range(5):
        stream = random_stream(np.random.default_rng(seed), task, weighted=weighted)
        expected = list(transcription(with_constant(stream, intercept), 5))
        learner = ReferenceLearner(rule, task, fit_intercept=intercept > 0)
        np.testing.assert_allclose(run(learner, stream), expected, rtol=1e-11, atol=1e-12)


def test_multiclass_has_targets_one_and_minus_one_in_every_row():
    stream = random_stream(np.random.default_rng(0), "multiclass", weighted=True)
    for rule, rate in (
        (rules.Adaline(0.05), lambda t, xx, c: 0.05 * c),
        (rules.NormalizedLMS(0.4, 0.7), lambda t, xx, c: 0.4 * c / (0.7 + c * xx)),
    ):
        learner = ReferenceLearner(rule, "multiclass", classes=3, fit_intercept=False)
        expected = list(transcriptions.one_against_all_lms(stream, 3, 4, rate))
        np.testing.assert_allclose(run(learner, stream)[:, :, :-1], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("c", [0.3, 1.0, 4.0])
def test_nlms_is_the_minimiser(c):
    """01 §17: μ = 1 minimises c·½(y − w·x)² + (ε/2)‖w − w_t‖²."""
    rng = np.random.default_rng(0)
    w, x, y, eps = rng.normal(size=3), rng.normal(size=3), 1.7, 0.6
    learner = ReferenceLearner(rules.NormalizedLMS(1.0, eps), "regression", fit_intercept=False, w=w)
    learner.learn(x, y, c)
    best = minimize(lambda v: c * 0.5 * (y - v @ x) ** 2 + eps / 2 * np.sum((v - w) ** 2), w, tol=1e-12)
    np.testing.assert_allclose(learner.w, best.x, atol=1e-6)


def test_nlms_is_pa2_without_tube():
    """01 §3.2: NLMS(μ = 1, ε = λ) ≡ PA-II regression without tube, λ = 1/(2C); importance included."""
    stream = random_stream(np.random.default_rng(3), "regression", weighted=True)
    one, two = (
        run(ReferenceLearner(rule, "regression"), stream)
        for rule in (rules.NormalizedLMS(1.0, 0.8), rules.PA2(lam=0.8, epsilon=0.0))
    )
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


def test_posterior_error():
    """01 §3.1: e' = (1 − ρ‖x‖²) e, a contraction exactly while 0 < ρ‖x‖² < 2."""
    for rho in (0.1, 0.39, 0.41):
        learner = ReferenceLearner(rules.Adaline(rho), "regression", fit_intercept=False, w=[0.5, -1.0])
        before = 3.0 - learner.score((2.0, 1.0))
        learner.learn((2.0, 1.0), 3.0)
        after = 3.0 - learner.score((2.0, 1.0))
        assert after == pytest.approx((1 - 5 * rho) * before, rel=1e-12)
        assert (abs(after) < abs(before)) == (rho * 5 < 2)


def lms_bounds(rho, stream, learner, u):
    """Σe² ≤ ‖u‖²/ρ + Σv²/(1 − ρR²), and Σ(u·x − w·x)² ≤ ‖u‖²/ρ + Σv², v = y − u·x (w₁ = 0)."""
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    s = np.array([r.score for r in learner.records])
    v, R2 = y - X @ u, np.max(np.sum(X * X, axis=1))
    yield "LMS, error", np.sum((y - s) ** 2), u @ u / rho + np.sum(v**2) / (1 - rho * R2)
    yield "LMS, a priori", np.sum((X @ u - s) ** 2), u @ u / rho + np.sum(v**2)


def nlms_bounds(mu, stream, learner, u):
    """Σe²/‖x‖² ≤ ‖u‖²/μ + Σ(v²/‖x‖²)/(1 − μ)."""
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    s, xx = np.array([r.score for r in learner.records]), np.sum(X * X, axis=1)
    yield "NLMS", np.sum((y - s) ** 2 / xx), u @ u / mu + np.sum((y - X @ u) ** 2 / xx) / (1 - mu)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])  # of the largest step allowed: ρR², or μ
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_bounds(normalised, share, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4)) * rng.uniform(0.3, 2.0, size=(120, 1))
    rho = share / np.max(np.sum(X * X, axis=1))
    rule = rules.NormalizedLMS(share, 0.0) if normalised else rules.Adaline(rho)
    truth = rng.normal(size=4)
    random, adversary = (ReferenceLearner(rule, "regression", fit_intercept=False) for _ in range(2))
    noisy = [Example(x, float(x @ truth + rng.normal())) for x in X]
    run(random, noisy)
    # Always one unit on the wrong side of 0.
    shown = play(adversary, X, lambda score, x: -1.0 if score > 0 else 1.0)
    errors = np.array([y - r.score for (_, y, _), r in zip(shown, adversary.records, strict=True)])
    assert np.sum(errors**2) > (1 + 0.1 * share) * len(X)  # it bites: the learner does worse than w = 0
    for stream, learner in ((noisy, random), (shown, adversary)):
        for u in comparators(rng, X, np.array([e.y for e in stream]), truth):
            bounds = nlms_bounds(share, stream, learner, u) if normalised else lms_bounds(rho, stream, learner, u)
            for what, measured, bound in bounds:
                assert_within(measured, bound, what)


@pytest.mark.parametrize("gamma", [-0.5, 0.0, 0.1, 1.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("normalised", [False, True])
def test_bounds_in_resonance(normalised, share, gamma):
    """One input for ever, noise that follows the a-priori error (u − w)·x: bad for a long step."""
    x, u = np.array([2.0, -1.0]), np.array([4.0, -2.0])
    rho = share / (x @ x)
    learner = ReferenceLearner(
        rules.NormalizedLMS(share, 0.0) if normalised else rules.Adaline(rho),
        "regression",
        fit_intercept=False,
    )
    stream = play(learner, [x] * 60, lambda score, x: float(u @ x + gamma * (u @ x - score)))
    bounds = nlms_bounds(share, stream, learner, u) if normalised else lms_bounds(rho, stream, learner, u)
    for what, measured, bound in bounds:
        assert_within(measured, bound, what)
        assert measured > 0.05 * bound  # it bites


def test_a_priori_bound_holds_up_to_the_largest_step():
    """The second LMS bound also holds at ρR² = 1; on orthonormal inputs with exact targets it is attained."""
    u = np.array([2.0, -1.0, 0.5])
    stream = [Example(e, float(e @ u)) for e in np.eye(3)]
    learner = ReferenceLearner(rules.Adaline(1.0), "regression", fit_intercept=False)
    run(learner, stream)
    assert sum((y - r.score) ** 2 for (_, y, _), r in zip(stream, learner.records, strict=True)) == pytest.approx(u @ u)
