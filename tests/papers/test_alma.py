"""ALMA, the approximate large margin algorithm: Gentile 2001. Specification 01 §8. Peer: River, for p = 2."""

from __future__ import annotations

import math

import numpy as np
import pytest
from river import linear_model as river

from onepass import rules
from onepass.errors import ParameterError
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .solvers import quadratic
from .streams import A, Example, opposite, play, random_stream, run, separable, with_constant
from .ways import WAYS, by_core, by_model, same


@pytest.mark.parametrize("way", WAYS)
def test_worked_numbers(way):
    w = [(0.447214, 0.894427), (-0.316228, 0.948683), *[(0.261123, 0.371333)] * 3]
    np.testing.assert_allclose(WAYS[way](rules.ALMA(), "binary", A, fit_intercept=False)[:, :2], w, atol=1e-6)


def test_worked_thresholds():
    """(1 − α)B/√k with k from the corrections so far; three of them on A."""
    learner = ReferenceLearner(rules.ALMA(), fit_intercept=False)
    thresholds = []
    for x, y, _ in A:
        thresholds.append(0.1 * math.sqrt(8) / 0.9 / math.sqrt(learner.k + 1))
        margin = y * learner.score(x) / np.linalg.norm(x)
        assert learner.learn(x, y).updated == (margin <= thresholds[-1])
    np.testing.assert_allclose(thresholds, [0.31427, 0.222222, 0.181444, 0.157135, 0.157135], atol=1e-6)
    assert learner.k == 3


OPTIONS = {
    "defaults": {},
    "α": {"alpha": 0.4},
    "B C": {"alpha": 0.7, "B": 0.8, "C": 0.5},
    "as it comes": {"normalize": False, "B": 1 / 0.9},
    "strict": {"strict": True, "alpha": 0.6},
    "α = 1": {"alpha": 1.0},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_equals_transcription(name, intercept, way):
    """Importance above 0 has no effect (01 §17)."""
    for seed in range(5):
        stream = random_stream(np.random.default_rng(seed), "binary", weighted=True)
        expected = list(transcriptions.alma(with_constant(stream, float(intercept)), 5, **OPTIONS[name]))
        same(WAYS[way](rules.ALMA(**OPTIONS[name]), "binary", stream, fit_intercept=intercept), expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("alpha", [0.5, 0.9])
def test_river(alpha, way):
    """B=1/alpha, normalize=False, strict=True is River's; on dense data, where it clips the whole vector."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * 0.4
    noise = 0.3 * rng.normal(size=80)
    stream = [Example(x, 1 if x @ [1, -2, 0.5, 1] + e > 0 else -1) for x, e in zip(X, noise, strict=True)]
    model = river.ALMAClassifier(alpha=alpha, B=1 / alpha)
    theirs = []
    for x, y, _ in stream:
        model.learn_one(dict(enumerate(x.tolist())), y > 0)
        theirs.append([model.w[j] for j in range(4)])
    rule = rules.ALMA(alpha, B=1 / alpha, normalize=False, strict=True)
    same(WAYS[way](rule, "binary", stream, fit_intercept=False)[:, :-1], theirs)
    assert len(np.unique(theirs, axis=0)) > 10


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_inside_the_unit_ball(seed, way):
    stream = random_stream(np.random.default_rng(seed), "binary", 150, noise=2.0)
    norms = np.linalg.norm(WAYS[way](rules.ALMA(), "binary", stream), axis=1)
    assert np.max(norms) <= 1 + 1e-12
    assert np.max(norms) > 0.99  # it touches


def best_margin(X, y):
    """γ* of unit vectors: 1/‖u‖ of the shortest u with y u·x ≥ 1."""
    d = X.shape[1]
    return 1 / np.linalg.norm(quadratic(np.zeros(d), np.ones(d), np.zeros(d), y[:, np.newaxis] * X, np.ones(len(X))))


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("run_by", [by_core, by_model])
@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_corrections_and_margin(seed, alpha, run_by):
    """Corrections ≤ (2/γ*²)(2/α − 1)² + 8/α − 4; after a pass without any, every margin ≥ (1 − α)γ*."""
    stream, _ = separable(np.random.default_rng(seed), 30, 3, margin=0.25)
    stream = [Example(e.x / np.linalg.norm(e.x), e.y) for e in stream]
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    gamma = best_margin(X, y)
    bound = 2 / gamma**2 * (2 / alpha - 1) ** 2 + 8 / alpha - 4
    passes = int(bound) + 2
    rows = run_by(rules.ALMA(alpha), "binary", stream * passes, fit_intercept=False)[:, :-1]
    corrections = int(np.sum(np.any(np.diff(rows, axis=0, prepend=0.0) != 0, axis=1)))
    assert corrections >= 3
    assert_within(corrections, bound, "ALMA corrections")
    np.testing.assert_array_equal(rows[-len(stream) :], np.tile(rows[-1], (len(stream), 1)))  # a pass without any
    assert_within(float((1 - alpha) * gamma), float(np.min(y * (X @ rows[-1]))), "ALMA margin")


def test_an_adversary_cannot_leave_the_ball():
    learner = ReferenceLearner(rules.ALMA(), fit_intercept=False)
    play(learner, np.random.default_rng(0).normal(size=(200, 3)) + 0.5, opposite)
    assert learner.k == 200
    assert max(np.linalg.norm(r.w) for r in learner.records) <= 1 + 1e-12


def test_alpha_one_is_a_perceptron_with_decreasing_step():
    """01 §8: the threshold is 0."""
    stream = random_stream(np.random.default_rng(3), "binary")
    learner = ReferenceLearner(rules.ALMA(1.0), fit_intercept=False)
    run(learner, stream)
    for r in learner.records:
        assert r.updated == (r.y * r.score <= 0 and bool(np.any(r.x)))


# ---- p other than 2 ----


@pytest.mark.parametrize("way", WAYS)
def test_worked_numbers_for_p_3(way):
    """By hand from the figure: q = 3/2, x̂ = (1, 2)/9^(1/3), η₁ = 1.

    θ₁ = (1, 2)/9^(1/3), of length 1, so that w₁ = sign(θ)θ²/‖θ‖ = (1, 4)/9^(2/3). On (2, −1), −1: m = 2/9 ≤
    0.1·(√8/0.9)·√2/√2; θ₂ = θ₁ + (−2, 1)/(9^(1/3)√2), of length 1.3030…, divided by it, squared.
    """
    first = np.array([1.0, 4.0]) / 9 ** (2 / 3)
    theta = np.array([1.0, 2.0]) / 9 ** (1 / 3) + np.array([-2.0, 1.0]) / 9 ** (1 / 3) / math.sqrt(2)
    assert np.sum(np.abs(theta) ** 3) > 1
    second = np.sign(theta) * theta**2 / np.sum(np.abs(theta) ** 3) ** (2 / 3)
    rows = WAYS[way](rules.ALMA(p=3), "binary", A, fit_intercept=False)[:, :2]
    np.testing.assert_allclose(rows[:2], [first, second], atol=1e-12)
    np.testing.assert_allclose(rows[:2], [(0.231120, 0.924482), (-0.023356, 0.997619)], atol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("p", [2.5, 4.0, 10.0])
def test_p_equals_transcription(p, name, intercept, way):
    for seed in range(3):
        stream = random_stream(np.random.default_rng(seed), "binary", 120, weighted=True, noise=0.3)
        expected = list(transcriptions.alma_p(with_constant(stream, float(intercept)), 5, p, **OPTIONS[name]))
        assert len(np.unique(expected, axis=0)) > 10
        same(WAYS[way](rules.ALMA(**OPTIONS[name], p=p), "binary", stream, fit_intercept=intercept), expected, 1e-11)


def test_the_transcription_for_p_2_is_the_other():
    stream = random_stream(np.random.default_rng(0), "binary")
    same(list(transcriptions.alma_p(stream, 4, 2.0)), list(transcriptions.alma(stream, 4)))


@pytest.mark.parametrize("way", WAYS)
def test_p_over_classes_is_kesler(way):
    """The rows laid end to end are ALMA_p's w on x in the true block, −x in the rival's."""
    p, stream = 4.0, random_stream(np.random.default_rng(1), "multiclass", 80)
    rows = WAYS[way](rules.ALMA(p=p), "multiclass", stream, classes=3, fit_intercept=False)[:, :, :-1]
    before, pairs = np.zeros((3, 4)), []
    for (x, y, c), after in zip(stream, rows, strict=True):
        scores = before @ x
        rival = max((r for r in range(3) if r != y), key=lambda r: (scores[r], -r))
        phi = np.zeros((3, 4))
        phi[y], phi[rival] = x, -np.asarray(x)
        pairs.append(Example(phi.ravel(), 1, c))
        before = after
    same(rows.reshape(len(rows), -1), list(transcriptions.alma_p(pairs, 12, p)), 1e-11)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("run_by", [by_core, by_model])
@pytest.mark.parametrize("p", [3.0, 6.0])
@pytest.mark.parametrize("seed", range(3))
def test_p_corrections_and_margin(seed, p, run_by):
    """Corrections ≤ (2(p−1)/γ²)(2/α − 1)² + 8/α − 4 for the γ of any u with ‖u‖_q = 1; then margins ≥ (1 − α)γ."""
    alpha, q = 0.9, p / (p - 1)
    stream, u = separable(np.random.default_rng(seed), 30, 3, margin=0.25)
    stream = [Example(e.x / np.sum(np.abs(e.x) ** p) ** (1 / p), e.y) for e in stream]
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    gamma = float(np.min(y * (X @ u)) / np.sum(np.abs(u) ** q) ** (1 / q))
    bound = 2 * (p - 1) / gamma**2 * (2 / alpha - 1) ** 2 + 8 / alpha - 4
    rows = run_by(rules.ALMA(alpha, p=p), "binary", stream * 60, fit_intercept=False)[:, :-1]
    corrections = int(np.sum(np.any(np.diff(rows, axis=0, prepend=0.0) != 0, axis=1)))
    assert corrections >= 3
    assert_within(corrections, bound, "ALMA_p corrections")
    np.testing.assert_array_equal(rows[-len(stream) :], np.tile(rows[-1], (len(stream), 1)))  # a pass without any
    assert_within((1 - alpha) * gamma, float(np.min(y * (X @ rows[-1]))), "ALMA_p margin")
    assert np.max(np.sum(np.abs(rows) ** q, axis=1)) <= 1 + 1e-12


def test_the_norm_is_followed_through_cancellation():
    """Powers of coordinates that come and go lose digits: the native norm must not."""
    rng = np.random.default_rng(0)
    X = np.eye(40)[rng.integers(40, size=3000)] * 10.0 ** rng.integers(-3, 3, size=3000)[:, np.newaxis]
    X += np.where(rng.random(X.shape) < 0.02, rng.normal(size=X.shape), 0.0)
    stream = [Example(x, int(y)) for x, y in zip(X, rng.choice([-1, 1], size=3000), strict=True)]
    rule = rules.ALMA(p=12, normalize=False, C=0.5, B=0.1)
    same(by_model(rule, "binary", stream, fit_intercept=False), by_core(rule, "binary", stream, fit_intercept=False))


def test_p_average_is_refused():
    for make in (ReferenceLearner, LinearModel):
        with pytest.raises(ParameterError, match=r"average.*p-norm geometry of ALMA\(p=4\)"):
            make("alma:p=4", readout="average")
