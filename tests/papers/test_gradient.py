"""Gradient learners: SGD over every loss and schedule, L2 by shrinking, Pegasos.

Specification 00 §5, §9, 01 §18.1.
Robbins and Monro 1951; regret: Zinkevich 2003; Pegasos: Shalev-Shwartz, Singer, Srebro and Cotter 2011.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from onepass import rules
from onepass.errors import ParameterError
from onepass.models.reference import ReferenceLearner
from onepass.scheme import losses

from . import transcriptions
from .bounds import assert_within
from .streams import comparators, opposite, play, random_stream, run, with_constant, worst_of
from .transcriptions import GRADIENTS, SCHEDULES

# ---- equal to the transcription ----


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", GRADIENTS)
def test_sgd_equals_transcription(loss, schedule):
    """Every loss × every schedule × clock × L2, with importance weights and an unpenalised intercept."""
    task = "binary" if losses.make(loss).margin else "regression"
    stream = random_stream(np.random.default_rng(len(loss + schedule)), task, rounds=40, weighted=True)
    for clock in ("rounds", "updates"):
        for lam in (0.0, 0.2):
            learner = ReferenceLearner(rules.SGD(loss, schedule, l2=lam, clock=clock), task)
            expected = transcriptions.sgd(
                with_constant(stream),
                5,
                GRADIENTS[loss],
                SCHEDULES[schedule],
                lam,
                clock=clock,
                spare_last=True,
            )
            np.testing.assert_allclose(run(learner, stream), list(expected), rtol=1e-11, atol=1e-12)


def test_squared_loss_on_labels():
    stream = random_stream(np.random.default_rng(0), "binary", weighted=True)
    learner = ReferenceLearner(rules.SGD("squared", "constant", eta=0.05), fit_intercept=False)
    expected = list(transcriptions.sgd(stream, 4, GRADIENTS["squared"], lambda t: 0.05))
    np.testing.assert_allclose(run(learner, stream)[:, :-1], expected, rtol=1e-12, atol=1e-12)


def test_a_step_beyond_one_over_lambda_shrinks_to_zero():
    """01 §18.1: the factor is max(0, 1 − ηλ), never negative."""
    learner = ReferenceLearner(rules.SGD("hinge", "constant", eta=1.0, l2=3.0), fit_intercept=False, w=[5.0, 0.0])
    learner.learn((0.0, 1.0), 1)
    np.testing.assert_array_equal(learner.w, [0.0, 1.0])


def test_sgd_on_other_losses_is_the_rule_of_that_name():
    """The Perceptron is SGD on max(0, −m); Adaline is SGD on ½r²."""
    for task, one, two in (
        ("binary", rules.SGD("perceptron(beta=0.2)", "constant", eta=0.5), rules.Perceptron(0.5, 0.2)),
        ("regression", rules.SGD("squared", "inv_t", eta=0.5), rules.Adaline(schedule="inv_t(eta=0.5)")),
    ):
        stream = random_stream(np.random.default_rng(1), task, weighted=True)
        np.testing.assert_array_equal(*(run(ReferenceLearner(rule, task), stream) for rule in (one, two)))


@pytest.mark.parametrize(
    ("loss", "task"),
    [("hinge", "regression"), ("huber", "binary"), ("squared", "ranking"), ("absolute", "multiclass")],
)
def test_cells_without_meaning_are_refused(loss, task):
    with pytest.raises(ParameterError, match="not defined for task"):
        ReferenceLearner(rules.SGD(loss), task)


# ---- regret of online gradient descent ----


def regret_bound(stream, learner, gradient, value, eta, u):
    """Zinkevich 2003, constant η, w₁ = 0: Σ ℓ(w_t) − Σ ℓ(u) ≤ ‖u‖²/(2η) + (η/2) Σ ‖g_t‖², convex ℓ."""
    regret = sum(r.loss - value(y, u @ x) for (x, y, _), r in zip(stream, learner.records, strict=True))
    squares = sum(gradient(y, r.score) ** 2 * (x @ x) for (x, y, _), r in zip(stream, learner.records, strict=True))
    return regret, u @ u / (2 * eta) + eta / 2 * squares


@pytest.mark.parametrize("eta", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("name", ["hinge", "logistic", "perceptron", "absolute", "huber(delta=0.7)"])
@pytest.mark.parametrize("seed", range(3))
def test_ogd_regret(name, eta, seed):
    rng = np.random.default_rng(seed)
    loss = losses.make(name)
    task = "binary" if loss.margin else "regression"

    def value(y, s):
        return loss.value(y * s if loss.margin else y - s)

    random, adversary = (
        ReferenceLearner(rules.SGD(name, "constant", eta=eta), task, fit_intercept=False) for _ in range(2)
    )
    noisy = random_stream(rng, task, 150, noise=1.0)
    run(random, noisy)
    X = rng.normal(size=(150, 4)) + 0.5
    shown = play(adversary, X, opposite)
    lost = sum(r.loss for r in adversary.records)
    assert lost > sum(value(y, 0.0) for _, y, _ in shown)  # it bites: regret against u = 0
    for stream, learner in ((noisy, random), (shown, adversary)):
        X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
        for u in comparators(rng, X, y):
            assert_within(*regret_bound(stream, learner, GRADIENTS[name], value, eta, u), "OGD regret")


# ---- Pegasos ----


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_pegasos_equals_transcription(lam, project, weighted, intercept):
    """The intercept is a coordinate like any other: it is shrunk and projected too."""
    for seed in range(4):
        stream = random_stream(np.random.default_rng(seed), "binary", weighted=weighted)
        expected = list(transcriptions.pegasos(with_constant(stream, float(intercept)), 5, lam, project))
        learner = ReferenceLearner(rules.Pegasos(lam, project), fit_intercept=intercept)
        np.testing.assert_allclose(run(learner, stream), expected, rtol=1e-11, atol=1e-11)
        if project:
            assert np.max(np.linalg.norm(expected, axis=1)) <= lam**-0.5 * (1 + 1e-12)


def test_pegasos_is_sgd_with_l2():
    """Without projection and intercept: hinge loss, η = 1/(λt), penalty λ."""
    stream = random_stream(np.random.default_rng(5), "binary", weighted=True)
    one, two = (
        run(ReferenceLearner(rule, fit_intercept=False), stream)
        for rule in (rules.Pegasos(0.2), rules.SGD("hinge", "inv_t", eta=5.0, l2=0.2))
    )
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


def objective(lam, u, x, y):
    return lam / 2 * (u @ u) + max(0.0, 1 - y * (u @ x))


def svm(lam, X, y):
    """The minimiser of (λ/2)‖w‖² + mean hinge loss, to solver precision; any u keeps the theorem true."""
    fitted = LinearSVC(loss="hinge", C=1 / (lam * len(y)), fit_intercept=False, tol=1e-8, max_iter=10**6)
    return fitted.fit(X, y).coef_[0]


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("lam", [0.02, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_pegasos_theorem_1(project, lam, seed):
    """Theorem 1: (1/T) Σ f_t(w_t) ≤ (1/T) Σ f_t(u) + c(1 + ln T)/(2λT), f_t = (λ/2)‖w‖² + hinge on round t,
    c = (√λ + R)² with projection and 4R² without; for u = argmin, T ≥ 3. Nothing is assumed of the stream.
    """
    rng = np.random.default_rng(seed)
    random, adversary = (ReferenceLearner(rules.Pegasos(lam, project), fit_intercept=False) for _ in range(2))
    noisy = [e for e in random_stream(rng, "binary", 200, noise=1.0) if np.any(e.x)]
    run(random, noisy)
    adversarial = worst_of(adversary, noisy[:40], lambda score, y: 1 - y * score, 200)
    assert adversary.cumulative_loss > 200 * 0.9  # it bites: w = 0 loses 1 a round
    for stream, learner in ((noisy, random), (adversarial, adversary)):
        X, y, T = np.array([e.x for e in stream]), np.array([e.y for e in stream]), len(stream)
        W = np.array([np.zeros(4), *(r.w for r in learner.records)])
        mean = np.mean([objective(lam, *row) for row in zip(W[:-1], X, y, strict=True)])
        R = np.max(np.linalg.norm(X, axis=1))
        c = (lam**0.5 + R) ** 2 if project else 4 * R**2
        best = svm(lam, X, y)
        for u in (best, 0 * best, 0.5 * best):
            bound = np.mean([objective(lam, u, *row) for row in zip(X, y, strict=True)])
            assert_within(mean, bound + c * (1 + np.log(T)) / (2 * lam * T), "Pegasos")


@pytest.mark.parametrize("seed", range(2))
def test_pegasos_comes_near_the_svm(seed):
    """Over 20 passes the objective comes within 1 % of its minimum: λ means what it should."""
    rng = np.random.default_rng(seed)
    stream, lam = [e for e in random_stream(rng, "binary", 100, noise=1.0) if np.any(e.x)], 0.1
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    learner = ReferenceLearner(rules.Pegasos(lam), fit_intercept=False, readout="average(start=500)")
    for _ in range(20):
        for i in rng.permutation(len(stream)):
            learner.learn(*stream[i])

    def total(u):
        return np.mean([objective(lam, u, *row) for row in zip(X, y, strict=True)])

    assert total(svm(lam, X, y)) <= total(learner.w) + 1e-9
    assert total(learner.w) <= 1.01 * total(svm(lam, X, y))
