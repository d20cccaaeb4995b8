"""The Shifting Perceptron: Cavallanti, Cesa-Bianchi and Gentile 2007. Specification 01 §9."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onepass import rules
from onepass.errors import ParameterError
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .streams import A, opposite, orthogonal, play, random_stream, run, with_constant
from .ways import WAYS, same

WORKED = {
    "harmonic": (rules.Shifting(1.0), [(1, 2), (-1.5, 2), *[(0, 0.333333)] * 3]),
    "constant": (rules.Shifting(0.1, "constant"), [(1, 2), (-1.1, 2.8), *[(0.01, 1.52)] * 3]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WORKED)
def test_worked_numbers(name, way):
    rule, w = WORKED[name]
    np.testing.assert_allclose(WAYS[way](rule, "binary", A, fit_intercept=False)[:, :2], w, atol=1e-6)


def test_worked_decays():
    learner = ReferenceLearner(rules.Shifting(1.0), fit_intercept=False)
    run(learner, A)
    np.testing.assert_allclose([1 - r.step.scale for r in learner.records], [1, 0.5, 1 / 3, 0, 0], atol=1e-6)


CASES = [(0.1, "harmonic"), (1.0, "harmonic"), (0.0, "harmonic"), (0.01, "constant"), (0.5, "constant")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("lam", "decay"), CASES)
def test_equals_transcription(lam, decay, intercept, way):
    """Importance above 0 has no effect (01 §17)."""
    for seed in range(5):
        stream = random_stream(np.random.default_rng(seed), "binary", 100, weighted=True)
        expected = list(transcriptions.shifting(with_constant(stream, float(intercept)), 5, lam, decay))
        same(WAYS[way](rules.Shifting(lam, decay), "binary", stream, fit_intercept=intercept), expected)


def test_defaults():
    stream = random_stream(np.random.default_rng(0), "binary")
    for decay, lam in (("harmonic", 0.1), ("constant", 0.01)):
        one, two = (
            run(ReferenceLearner(rule), stream) for rule in (rules.Shifting(None, decay), rules.Shifting(lam, decay))
        )
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("decay", ["harmonic", "constant"])
def test_without_decay_it_is_the_perceptron(decay, way):
    stream = random_stream(np.random.default_rng(1), "binary")
    one, two = (WAYS[way](rule, "binary", stream) for rule in (rules.Shifting(0.0, decay), rules.Perceptron()))
    np.testing.assert_array_equal(one, two)


def coefficient(lam, decay, i, k):
    """Of mistake i = 0, 1, … in w after k of them."""
    if decay == "constant":
        return (1 - lam) ** (k - 1 - i)
    return math.exp(math.lgamma(k) + math.lgamma(lam + i + 1) - math.lgamma(i + 1) - math.lgamma(lam + k))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("lam", "decay"), [(0.1, "harmonic"), (1.0, "harmonic"), (2.5, "harmonic"), (0.3, "constant")])
def test_coefficients(lam, decay, way):
    """Orthogonal inputs: every round a mistake, and w shows its coefficient."""
    k = 40
    stream, _ = orthogonal(k)
    w = WAYS[way](rules.Shifting(lam, decay), "binary", stream, fit_intercept=False)[-1, :-1]
    expected = np.array([coefficient(lam, decay, i, k) for i in range(k)])
    np.testing.assert_allclose(w, expected, rtol=1e-11)
    if decay == "harmonic":  # polynomial decay, ((i + 1)/k)^λ up to a constant
        power = ((np.arange(k) + 1) / k) ** lam
        assert np.all(np.abs(np.log(expected / power)) < 1.2 * lam)
        product = [math.prod(j / (lam + j) for j in range(i + 1, k)) for i in range(k)]
        np.testing.assert_allclose(expected, product, rtol=1e-10)


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5])
def test_the_norm_stays_bounded(lam):
    """Constant decay: ‖w‖ ≤ R/√(λ(2 − λ)), whatever the stream; w ← (1 − λ)w + φ with m ≤ 0."""
    rng = np.random.default_rng(0)
    for X in (rng.normal(size=(400, 3)), np.eye(400)):
        learner = ReferenceLearner(rules.Shifting(lam, "constant"), fit_intercept=False)
        play(learner, X, opposite)
        R = np.max(np.linalg.norm(X, axis=1))
        norms = [np.linalg.norm(r.w) for r in learner.records]
        assert learner.k == 400
        assert_within(max(norms), R / math.sqrt(lam * (2 - lam)), "Shifting ‖w‖")
    assert norms[-1] > 0.99 * R / math.sqrt(lam * (2 - lam)) or lam < 0.02  # orthogonal inputs attain it


def test_constant_decay_must_leave_something():
    with pytest.raises(ParameterError, match="lam < 1"):
        rules.Shifting(1.0, "constant")
