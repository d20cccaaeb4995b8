"""The Perceptron: Rosenblatt 1958; margin β: Krauth and Mézard 1987. Specification 01 §1.1."""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.errors import ParameterError
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .streams import (
    A,
    comparators,
    opposite,
    orthogonal,
    play,
    random_stream,
    run,
    separable,
    with_constant,
    worst_of,
)

WORKED = [
    (rules.Perceptron(), [(1, 2), (-1, 3), (0, 2), (0, 2), (0, 2)], [0, 0, 4, 2, -4], 3),
    (rules.Perceptron(rho=0.5, beta=1), [(0.5, 1), (-0.5, 1.5), (0, 1), (0.5, 1.5), (0.5, 1.5)], None, 4),
]


@pytest.mark.parametrize(("rule", "w", "scores", "updates"), WORKED)
def test_worked_numbers(rule, w, scores, updates):
    learner = ReferenceLearner(rule, fit_intercept=False)
    np.testing.assert_allclose(run(learner, A)[:, :2], w, atol=1e-6)
    assert learner.k == updates
    if scores:
        assert [r.score for r in learner.records] == scores


def test_strict_from_zero_is_refused():
    """00 §3: from w = 0 the strict rule with β = 0 never starts."""
    with pytest.raises(ParameterError, match="never starts"):
        ReferenceLearner(rules.Perceptron(strict=True))
    with pytest.raises(ParameterError, match="never starts"):
        LinearModel(rules.Perceptron(strict=True))
    assert ReferenceLearner(rules.Perceptron(strict=True), fit_intercept=False, w=[0.0, -1.0]).learn((0, 1), 1).updated
    learner = ReferenceLearner(rules.Perceptron(beta=1, strict=True), fit_intercept=False)
    assert learner.learn((0, 1), 1).updated
    assert not learner.learn((0, 1), 1).updated  # m = β exactly


RULES = [
    (rules.Perceptron(), lambda t: 1.0, 0.0),
    (rules.Perceptron(rho=0.3, beta=0.7), lambda t: 0.3, 0.7),
    (rules.Perceptron(rho=0.3, beta=0.7, strict=True), lambda t: 0.3, 0.7),
    (rules.Perceptron(schedule="inv_sqrt(eta=2)", beta=0.1), lambda t: 2 / t**0.5, 0.1),
]


@pytest.mark.parametrize("intercept", [0.0, 1.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rule", "rho", "beta"), RULES)
def test_equals_transcription(rule, rho, beta, weighted, intercept):
    for seed in range(5):
        stream = random_stream(np.random.default_rng(seed), "binary", weighted=weighted)
        learner = ReferenceLearner(rule, fit_intercept=intercept > 0, intercept_scaling=intercept or 1.0)
        expected = np.array(
            list(transcriptions.perceptron(with_constant(stream, intercept), 5, rho, beta, rule.strict))
        )
        expected[:, -1] *= intercept
        np.testing.assert_allclose(run(learner, stream), expected, rtol=1e-12, atol=1e-12)


def test_ranking_is_the_rule_on_the_difference():
    stream = random_stream(np.random.default_rng(0), "ranking", weighted=True)
    differences = [(p - n, 1, c) for (p, n), _, c in stream]
    expected = list(transcriptions.perceptron(differences, 4, lambda t: 1.0, 0.5))
    learner = ReferenceLearner(rules.Perceptron(beta=0.5), "ranking")
    np.testing.assert_allclose(run(learner, stream)[:, :-1], expected, rtol=1e-12, atol=1e-12)


def test_only_beta_over_rho_matters():
    stream = random_stream(np.random.default_rng(1), "binary")
    one, half = (run(ReferenceLearner(rules.Perceptron(rho, rho * 0.6)), stream) for rho in (1.0, 0.5))
    np.testing.assert_array_equal(0.5 * one, half)


# Novikoff 1962, with margin: y u·x ≥ γ, ‖u‖ = 1 gives k ≤ (R² + 2β/ρ)/γ², over any number of passes.


def novikoff(stream, u, rho, beta):
    R2 = max(np.dot(x, x) for x, _, _ in stream)
    gamma = min(y * np.dot(u, x) for x, y, _ in stream)
    return (R2 + 2 * beta / rho) / gamma**2


@pytest.mark.full(strength=1)
@pytest.mark.parametrize(("rho", "beta"), [(1.0, 0.0), (1.0, 0.5), (0.2, 0.5), (2.0, 0.1)])
@pytest.mark.parametrize("seed", range(8))
def test_separable_bound(rho, beta, seed):
    stream, u = separable(np.random.default_rng(seed), 100, 3, margin=0.2)
    passes = ReferenceLearner(rules.Perceptron(rho, beta), fit_intercept=False)
    for _ in range(3):
        run(passes, stream)
    adversary = ReferenceLearner(rules.Perceptron(rho, beta), fit_intercept=False)
    shown = worst_of(adversary, stream, lambda score, y: -y * score, 60)
    for learner in (passes, adversary):
        assert_within(learner.k, novikoff(stream, u, rho, beta), "Novikoff")
    first_quiet = next((i for i, r in enumerate(adversary.records) if not r.updated), len(shown))
    assert adversary.k == first_quiet  # it finds a violated example as long as there is one
    assert adversary.k >= 3


@pytest.mark.parametrize("d", [1, 4, 25])
def test_separable_bound_is_attained(d):
    stream, u = orthogonal(d)
    learner = ReferenceLearner(rules.Perceptron(), fit_intercept=False)
    for _ in range(2):
        run(learner, stream)
    assert learner.k == d == round(novikoff(stream, u, 1.0, 0.0))


def nonseparable_bound(stream, learner, u):
    """Freund and Schapire 1999 as k ≤ L + R‖u‖√L + R²‖u‖², L the hinge loss of u on update rounds."""
    L = sum(max(0.0, 1 - y * np.dot(u, x)) for (x, y, _), r in zip(stream, learner.records, strict=True) if r.updated)
    R = max(np.linalg.norm(x) for x, _, _ in stream)
    norm = np.linalg.norm(u)
    return L + R * norm * L**0.5 + (R * norm) ** 2


@pytest.mark.parametrize("seed", range(8))
def test_nonseparable_bound(seed):
    rng = np.random.default_rng(seed)
    random = random_stream(rng, "binary", 150, noise=2.0)
    learner = ReferenceLearner(rules.Perceptron(), fit_intercept=False)
    run(learner, random)
    adversary = ReferenceLearner(rules.Perceptron(), fit_intercept=False)
    X = rng.normal(size=(150, 4)) + 1.0
    shown = play(adversary, X, opposite)
    assert adversary.mistakes == adversary.k == len(shown)  # it bites: every round is a mistake
    for stream, played in ((random, learner), (shown, adversary)):
        X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
        for u in comparators(rng, X, y):
            assert_within(played.k, nonseparable_bound(stream, played, u), "non-separable")
