"""Multiclass rules with one rival: specification 01 §11, §12.2, §13.1, §13.3.

Passive-Aggressive: Crammer et al. 2006, §8; the Perceptron: Crammer and Singer 2003.
"""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import Played, assert_within, pa_bounds
from .streams import Example, M, play, random_stream, run, with_constant, worst_of


def learner_of(rule, **options):
    return ReferenceLearner(rule, "multiclass", classes=3, **{"fit_intercept": False, **options})


# ---- worked numbers of 13.1: (ℓ or None, τ) per round, and W after some of them ----

WORKED = {
    "PA": (
        rules.PA(),
        [(1, 0.5), (1, 0.5), (1, 0.25), (1.5, 0.375), (0, 0)],
        {
            1: [(0.5, 0), (-0.5, 0), (0, 0)],
            2: [(0.5, -0.5), (-0.5, 0.5), (0, 0)],
            3: [(0.75, -0.25), (-0.5, 0.5), (-0.25, -0.25)],
            5: [(0.375, -0.625), (-0.125, 0.875), (-0.25, -0.25)],
        },
    ),
    "PA-I": (
        rules.PA1(0.1),
        [(None, 0.1), (None, 0.1), (None, 0.1), (None, 0.1), (0.6, 0.06)],
        {5: [(0.22, -0.16), (0, 0.2), (-0.22, -0.04)]},
    ),
    "PA-II": (
        rules.PA2(0.5),
        [(None, 0.333333), (None, 0.333333), (None, 0.2), (None, 0.28), (0, 0)],
        {5: [(0.253333, -0.413333), (-0.053333, 0.613333), (-0.2, -0.2)]},
    ),
    # 12.2, rule "max" with ρ = 1
    "Perceptron": (
        rules.Perceptron(),
        [(0, 1), (0, 1), (0, 1), (2, 1), (0, 0)],
        {
            1: [(1, 0), (-1, 0), (0, 0)],
            2: [(1, -1), (-1, 1), (0, 0)],
            3: [(2, 0), (-1, 1), (-1, -1)],
            5: [(1, -1), (0, 2), (-1, -1)],
        },
    ),
}


@pytest.mark.parametrize("name", WORKED)
def test_worked_numbers(name):
    rule, rounds, after = WORKED[name]
    learner = learner_of(rule)
    run(learner, M)
    for record, (loss, tau) in zip(learner.records, rounds, strict=True):
        assert loss is None or record.loss == pytest.approx(loss, abs=1e-6)
        assert record.step.add == pytest.approx(tau, abs=1e-6)
    for t, W in after.items():
        np.testing.assert_allclose(learner.records[t - 1].w, W, atol=1e-6)


# ---- equal to the transcription ----

TRANSCRIBED = {
    "PA": (rules.PA(), lambda s: transcriptions.pa_multiclass(s, 3, 5, "PA")),
    "PA-I": (rules.PA1(0.2), lambda s: transcriptions.pa_multiclass(s, 3, 5, "PA-I", 0.2)),
    "PA-II": (rules.PA2(0.2), lambda s: transcriptions.pa_multiclass(s, 3, 5, "PA-II", 0.2)),
    "Perceptron": (rules.Perceptron(), lambda s: transcriptions.multiclass_perceptron(s, 3, 5)),
    "Perceptron β": (
        rules.Perceptron(beta=0.7),
        lambda s: transcriptions.multiclass_perceptron(s, 3, 5, 0.7),
    ),
    "softmax": (
        rules.SGD("logistic", "constant", eta=0.3),
        lambda s: transcriptions.softmax_regression(s, 3, 5, lambda t: 0.3),
    ),
    "squared": (
        rules.SGD("squared", "inv_t", eta=0.3),
        lambda s: transcriptions.one_against_all_lms(s, 3, 5, lambda t, xx, c: 0.3 * c / t),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TRANSCRIBED)
def test_equals_transcription(name, weighted, intercept):
    rule, transcription = TRANSCRIBED[name]
    for seed in range(4):
        stream = random_stream(np.random.default_rng(seed), "multiclass", weighted=weighted)
        expected = list(transcription(with_constant(stream, float(intercept))))
        learner = learner_of(rule, fit_intercept=intercept)
        np.testing.assert_allclose(run(learner, stream), expected, rtol=1e-12, atol=1e-12)


def test_softmax_with_l2():
    stream = random_stream(np.random.default_rng(5), "multiclass")
    learner = learner_of(rules.SGD("logistic", "inv_sqrt", eta=0.5, l2=0.1))
    expected = list(transcriptions.softmax_regression(stream, 3, 4, lambda t: 0.5 / t**0.5, 0.1))
    np.testing.assert_allclose(run(learner, stream)[:, :, :-1], expected, rtol=1e-12, atol=1e-12)


# ---- reductions ----


def kesler(W, x, y):
    """01 §11: x in block y, −x in the block of the best rival, 0 elsewhere; its label is +1."""
    phi = np.zeros_like(W)
    phi[y] += x
    phi[transcriptions.runner_up(W @ x, y)] -= x
    return phi.ravel()


BINARY_TOO = [
    rules.Perceptron(beta=0.3),
    rules.PA(),
    rules.PA1(0.1),
    rules.PA2(0.5),
    rules.SGD(),
    rules.Pegasos(0.1),
]


@pytest.mark.parametrize("rule", BINARY_TOO, ids=repr)
def test_is_the_binary_rule_on_kesler_vectors(rule):
    stream = random_stream(np.random.default_rng(2), "multiclass", weighted=True)
    rows, flat = learner_of(rule), ReferenceLearner(rule, fit_intercept=False, w=np.zeros(12))
    for x, y, c in stream:
        flat.learn(kesler(flat.w.reshape(3, 4), x, y), 1, c)
        rows.learn(x, y, c)
        np.testing.assert_allclose(rows.w.ravel(), flat.w, rtol=1e-12, atol=1e-12)


def test_two_classes_are_the_binary_perceptron():
    """01 §12: with K = 2 and a zero start W₀ = −W₁, and W₁ is the Perceptron of §1.1."""
    stream = random_stream(np.random.default_rng(3), "binary")
    binary, rows = ReferenceLearner("perceptron"), ReferenceLearner("perceptron", "multiclass", classes=2)
    for x, y, _ in stream:
        binary.learn(x, y)
        rows.learn(x, (y + 1) // 2)
        np.testing.assert_array_equal(rows.w, [-binary.w, binary.w])


# ---- guarantees: those of the binary rule, with ‖φ‖² = 2‖x‖² ----


def hinge(scores, y):
    return max(0.0, 1 - (scores[y] - scores[transcriptions.runner_up(scores, y)]))


def losses_of(U, stream):
    return np.array([hinge(U @ x, y) for x, y, _ in stream])


BOUNDED = [("pa", 1.0), ("pa1", 0.05), ("pa1", 1.0), ("pa2", 0.05), ("pa2", 1.0)]


@pytest.mark.full(strength=1)
@pytest.mark.parametrize(("name", "C"), BOUNDED)
@pytest.mark.parametrize("seed", range(4))
def test_bounds(name, C, seed):
    rng = np.random.default_rng(seed)
    rule = rules.RULES[name]() if name == "pa" else rules.RULES[name](C)
    U = rng.normal(size=(3, 4))
    pool = [
        Example(x, int(np.argmax(U @ x))) for x in rng.normal(size=(150, 4)) if 0.9 > hinge(U @ x, np.argmax(U @ x))
    ]
    fits = U / (1 - max(hinge(U @ x, y) for x, y, _ in pool)) * (1 + 1e-12)  # no loss on the pool
    random, hardest, unit, contrary = (learner_of(rule) for _ in range(4))
    noisy = [e for e in random_stream(rng, "multiclass", 120, noise=2.0) if np.any(e.x)]
    run(random, noisy)
    chosen = worst_of(hardest, pool, hinge, 80)
    X = rng.normal(size=(120, 4)) + 0.5
    X /= 2**0.5 * np.linalg.norm(X, axis=1)[:, np.newaxis]  # ‖φ‖ = 1
    # The adversary names the class that the learner finds least likely.
    shown = play(contrary, X, lambda scores, x: int(np.argmin(scores)) if np.ndim(scores) else 0)
    sphere = play(unit, X, lambda scores, x: int((np.argmax(scores) + 1) % 3))
    assert unit.mistakes == len(X)  # they bite
    assert contrary.mistakes >= len(X) - 1
    assert sum(r.loss for r in hardest.records) > 3
    theorem = {"pa": set(), "pa1": {"PA-I"}, "pa2": {"PA-II"}}[name]
    for learner, stream in ((random, noisy), (hardest, chosen), (contrary, shown), (unit, sphere)):
        played = Played.of(learner, np.array([2 * np.dot(x, x) for x, _, _ in stream]))
        seen = set()
        for V in (0 * U, 0.3 * U, U, fits, rng.normal(size=U.shape)):
            for what, measured, bound in pa_bounds(name, C, played, losses_of(V, stream), float(np.sum(V * V))):
                assert_within(measured, bound, what)
                seen.add(what)
        expected = {"basic"} | theorem
        if name == "pa":
            expected |= {"realizable"} if learner is hardest else set()
            expected |= {"unit norm"} if learner in (contrary, unit) else set()
        assert seen == expected
