"""The ultraconservative family: Crammer and Singer 2003. Specification 01 §11 and §12.1–12.3."""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .streams import Example, M, play, random_stream, run, with_constant, worst_of
from .ways import WAYS, same

KINDS = {"max": "rival", "uniform": "uniform", "proportional": "proportional"}
SHARED = [
    [(1, 0), (-0.5, 0), (-0.5, 0)],
    [(1, -0.5), (-0.5, 1), (-0.5, -0.5)],
    [(1, -0.5), (-0.5, 1), (-0.5, -0.5)],
    [(0, -1.5), (0.5, 2), (-0.5, -0.5)],
    [(0, -1.5), (0.5, 2), (-0.5, -0.5)],
]
WORKED = {
    "uniform": SHARED,
    "proportional": SHARED,
    "max": [
        [(1, 0), (-1, 0), (0, 0)],
        [(1, -1), (-1, 1), (0, 0)],
        [(2, 0), (-1, 1), (-1, -1)],
        [(1, -1), (0, 2), (-1, -1)],
        [(1, -1), (0, 2), (-1, -1)],
    ],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", WORKED)
def test_worked_numbers(kind, way):
    options = {"classes": 3, "multiclass": KINDS[kind], "fit_intercept": False}
    rows = WAYS[way](rules.Perceptron(), "multiclass", M, **options)
    np.testing.assert_allclose(rows[:, :, :2], WORKED[kind], atol=1e-6)


def test_worked_scores():
    for kind, scores in (("uniform", [0, -0.5, 0.5, 1.5]), ("max", [0, 0, 2, 3])):
        learner = ReferenceLearner("perceptron", "multiclass", classes=3, multiclass=KINDS[kind], fit_intercept=False)
        run(learner, M)
        np.testing.assert_allclose([r.score[0] for r in learner.records[1:]], scores, atol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_transcription(kind, weighted, intercept, way):
    for seed in range(4):
        stream = random_stream(np.random.default_rng(seed), "multiclass", 100, weighted=weighted, noise=1.0)
        expected = list(transcriptions.ultraconservative(with_constant(stream, float(intercept)), 3, 5, kind, rho=0.7))
        options = {"classes": 3, "multiclass": KINDS[kind], "fit_intercept": intercept}
        same(WAYS[way](rules.Perceptron(0.7), "multiclass", stream, **options), expected)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("K", [3, 4, 5, 7, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tie_is_an_error(kind, K, way):
    """E holds every r with s_r ≥ s_y. Classes not seen yet have equal rows, hence exactly equal scores: the margin
    s_y − Σ share·s_r is then 0 and must not be rounded to something above it. One feature: a score is one product."""
    options = {"classes": K, "multiclass": KINDS[kind], "fit_intercept": False}
    for x in np.random.default_rng(K).normal(size=(60, K)):
        stream = [Example((value,), y) for y, value in enumerate(x)]
        expected = list(transcriptions.ultraconservative(with_constant(stream, 0.0), K, 2, kind, rho=0.7))
        same(WAYS[way](rules.Perceptron(0.7), "multiclass", stream, **options), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_two_classes_are_the_binary_perceptron(kind):
    """01 §12: K = 2 and a zero start: W₀ = −W₁, and W₁ is the Perceptron of §1.1."""
    binary = ReferenceLearner("perceptron")
    rows = ReferenceLearner("perceptron", "multiclass", classes=2, multiclass=KINDS[kind])
    for x, y, c in random_stream(np.random.default_rng(3), "binary", weighted=True):
        binary.learn(x, y, c)
        rows.learn(x, (y + 1) // 2, c)
        np.testing.assert_array_equal(rows.w, [-binary.w, binary.w])


# ---- Kesler's construction ----


def kesler(x, y, K):
    """01 §11: K − 1 vectors of K·d numbers, the r-th with x in block y and −x in block r; every label is +1."""
    vectors = []
    for r in range(K):
        if r != y:
            blocks = np.zeros((K, len(x)))
            blocks[y], blocks[r] = x, np.negative(x)
            vectors.append(blocks.ravel())
    return np.array(vectors)


def test_kesler_vectors():
    x = np.array([3.0, -1.0])
    np.testing.assert_array_equal(kesler(x, 1, 3), [np.ravel([-x, x, 0 * x]), np.ravel([0 * x, x, -x])])
    W = np.random.default_rng(0).normal(size=(3, 2))
    s = W @ x
    np.testing.assert_allclose(kesler(x, 1, 3) @ W.ravel(), [s[1] - s[0], s[1] - s[2]])


def wrong(vectors, w):
    return [z for z in vectors if w @ z <= 0]


COMBINED = {  # which of the violated vectors, and with what weight
    "max": lambda bad, w: [(min(bad, key=lambda z: w @ z), 1.0)],
    "uniform": lambda bad, w: [(z, 1 / len(bad)) for z in bad],
    "proportional": lambda bad, w: [
        (z, w @ z / sum(w @ v for v in bad) if any(w @ v < 0 for v in bad) else 1 / len(bad)) for z in bad
    ],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_perceptron_on_kesler_vectors(kind, way):
    """The binary Perceptron steps on the violated vectors, combined as `kind` says, are the multiclass update."""
    stream = random_stream(np.random.default_rng(2), "multiclass", 80, noise=1.0)
    options = {"classes": 4, "multiclass": KINDS[kind], "fit_intercept": False}
    rows = WAYS[way](rules.Perceptron(), "multiclass", stream, **options)[:, :, :-1]
    flat = np.zeros(16)
    for (x, y, _), W in zip(stream, rows, strict=True):
        bad = wrong(kesler(x, y, 4), flat) if np.any(x) else []
        step = np.zeros(16)
        for z, share in COMBINED[kind](bad, flat) if bad else []:
            binary = ReferenceLearner("perceptron", fit_intercept=False, w=flat)
            binary.learn(z, 1)
            step += share * (binary.w - flat)
        flat = flat + step
        np.testing.assert_allclose(W.ravel(), flat, rtol=1e-10, atol=1e-10)


PAIRWISE = [
    rules.Perceptron(0.5, 0.2),
    rules.PA(),
    rules.PA1(0.1),
    rules.PA2(0.5),
    rules.MIRA(),
    rules.AggressiveROMMA(),
    rules.ALMA(),
    rules.Shifting(0.5),
    rules.SGD("hinge"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", PAIRWISE, ids=repr)
def test_every_binary_rule_on_its_worst_kesler_vector(rule, way):
    """01 §11: the pair update against the best rival is the binary rule on the vector of smallest margin."""
    rng = np.random.default_rng(4)
    U = rng.normal(size=(3, 3))
    X = rng.normal(size=(150, 3))
    S = np.sort(X @ U.T, axis=1)
    X = X[S[:, -1] - S[:, -2] > 0.6]  # separable: ROMMA is ill-conditioned otherwise
    stream = [Example(x, int(np.argmax(U @ x))) for x in X]
    flat = ReferenceLearner(rule, fit_intercept=False, w=np.zeros(9))
    rows = WAYS[way](rule, "multiclass", stream, classes=3, fit_intercept=False)[:, :, :-1]
    for (x, y, _), W in zip(stream, rows, strict=True):
        flat.learn(min(kesler(x, y, 3), key=lambda z: flat.w @ z), 1)
        np.testing.assert_allclose(W.ravel(), flat.w, rtol=1e-8, atol=1e-8)
    assert flat.k > 3


# ---- guarantee ----


def margin(V, x, y):
    s = V @ x
    return s[y] - np.max(np.delete(s, y))


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_bound(kind, seed):
    """Updates ≤ 2(R + D)²/γ² for any V of norm 1 and γ > 0, D² = Σ max(0, γ − margin)²."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(3, 4))
    U /= np.linalg.norm(U)
    pool = [Example(x, int(np.argmax(U @ x))) for x in rng.normal(size=(200, 4))]
    pool = [e for e in pool if margin(U, e.x, e.y) > 0.1]

    def learner():
        return ReferenceLearner("perceptron", "multiclass", classes=3, multiclass=KINDS[kind], fit_intercept=False)

    hardest, contrary, random = learner(), learner(), learner()
    chosen = worst_of(hardest, pool, lambda s, y: -1.0 if np.ndim(s) == 0 else np.max(np.delete(s, y)) - s[y], 150)
    shown = play(contrary, rng.normal(size=(100, 4)) + 0.5, lambda s, x: int(np.argmin(s)) if np.ndim(s) else 0)
    noisy = random_stream(rng, "multiclass", 150, noise=2.0)
    run(random, noisy)
    assert hardest.k > 5
    assert contrary.k > 90
    for who, stream in ((hardest, chosen), (contrary, shown), (random, noisy)):
        R = max(np.linalg.norm(e.x) for e in stream)
        for V in (U, *rng.normal(size=(3, 3, 4))):
            V = V / np.linalg.norm(V)
            for gamma in (0.1, 0.5, 2.0):
                D = np.sqrt(sum(max(0.0, gamma - margin(V, e.x, e.y)) ** 2 for e in stream))
                assert_within(who.k, 2 * (R + D) ** 2 / gamma**2, f"ultraconservative {kind}")
