"""MIRA: Crammer and Singer 2003. Specification 01 §6 (two classes) and §12.4 (exact, over all classes)."""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.errors import ParameterError
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .streams import A, M, opposite, play, random_stream, run, with_constant
from .ways import WAYS, same


def test_worked_numbers():
    learner = ReferenceLearner(rules.MIRA(tie_update="none"), fit_intercept=False, w=[1.0, 0.0])
    w = [(1, 0), (0.2, 0.4), (0.3, 0.3), (0.3, 0.3), (0.3, 0.3)]
    np.testing.assert_allclose(run(learner, A)[:, :2], w, atol=1e-6)
    np.testing.assert_allclose([r.step.add for r in learner.records], [0, 0.4, 0.1, 0, 0], atol=1e-6)


START = [(0, 1), (1, 0), (-1, -1)]
AFTER = [
    [(0.5, 1), (0.5, 0), (-1, -1)],
    [(0.5, 0.5), (0.5, 0.5), (-1, -1)],
    [(0.5, 0.5), (0.5, 0.5), (-1, -1)],
    [(-0.5, -0.5), (1.5, 1.5), (-1, -1)],
    [(-0.1, -0.7), (1.1, 1.7), (-1, -1)],
]


@pytest.mark.parametrize("tie_update", ["perceptron", "none"])
def test_worked_numbers_over_all_classes(tie_update):
    rule = rules.MIRA(tie_update=tie_update)
    learner = ReferenceLearner(rule, "multiclass", classes=3, multiclass="mira", fit_intercept=False, w=START)
    expected = AFTER if tie_update == "perceptron" else [*AFTER[:3], AFTER[2], AFTER[2]]
    np.testing.assert_allclose(run(learner, M)[:, :, :2], expected, atol=1e-6)


BINARY = {
    "paper": (rules.MIRA(), {}),
    "cap": (rules.MIRA(cap=0.3), {"cap": 0.3}),
    "margin": (rules.MIRA(beta=0.7, cap=0.5), {"beta": 0.7, "cap": 0.5}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BINARY)
def test_equals_transcription(name, weighted, intercept, way):
    """With β = 0 an uncapped update ends at m = 0 up to rounding, where a tie is decided: so no input repeats."""
    rule, options = BINARY[name]
    for seed in range(5):
        stream = random_stream(np.random.default_rng(seed), "binary", weighted=weighted)
        expected = list(transcriptions.mira(with_constant(stream, float(intercept)), 5, **options))
        same(WAYS[way](rule, "binary", stream, fit_intercept=intercept), expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cap", [1.0, 0.2])
def test_equals_transcription_over_all_classes(cap, weighted, intercept, way):
    for seed in range(5):
        stream = random_stream(np.random.default_rng(seed), "multiclass", weighted=weighted)
        expected = list(transcriptions.mira_multiclass(with_constant(stream, float(intercept)), 3, 5, cap))
        options = {"classes": 3, "multiclass": "mira", "fit_intercept": intercept}
        same(WAYS[way](rules.MIRA(cap=cap), "multiclass", stream, **options), expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cap", [0.1, 1.0])
def test_margin_one_is_pa1(cap, way):
    """01 §6: β = 1 and cap = C is PA-I; importance included."""
    stream = random_stream(np.random.default_rng(1), "binary", weighted=True)
    one, two = (WAYS[way](rule, "binary", stream) for rule in (rules.MIRA(1.0, cap), rules.PA1(cap)))
    same(one, two)


@pytest.mark.parametrize("tie_update", ["perceptron", "none"])
def test_two_classes_over_all_are_the_binary_rule(tie_update):
    """01 §6: for K = 2 and W = (−w, w) the exact problem is the binary rule."""
    rule, w = rules.MIRA(tie_update=tie_update, cap=0.4), np.array([1.0, -2.0, 0.5, 0.3])
    binary = ReferenceLearner(rule, w=w)
    rows = ReferenceLearner(rule, "multiclass", classes=2, multiclass="mira", w=[-w, w])
    for x, y, c in random_stream(np.random.default_rng(2), "binary", weighted=True):
        binary.learn(x, y, c)
        rows.learn(x, (y + 1) // 2, c)
        np.testing.assert_allclose(rows.w, [-binary.w, binary.w], rtol=1e-12, atol=1e-12)
    assert binary.k > 10


@pytest.mark.parametrize("multiclass", ["rival", "mira"])
@pytest.mark.parametrize("seed", range(3))
def test_the_norm_never_grows(seed, multiclass):
    """01 §6 and §12.4: β = 0, the literal rule."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(3, 4))
    options = {"classes": 3, "multiclass": multiclass, "fit_intercept": False}
    learner = ReferenceLearner(rules.MIRA(tie_update="none"), "multiclass", w=W, **options)
    play(learner, rng.normal(size=(80, 4)), lambda scores, x: int(np.argmin(scores)))
    norms = [np.linalg.norm(W)] + [np.linalg.norm(r.w) for r in learner.records]
    assert learner.k > 60  # the adversary bites
    assert norms[-1] < 0.9 * norms[0]
    assert np.all(np.diff(norms) <= 1e-12 * norms[0])


def test_it_takes_the_shortest_w_within_reach():
    """01 §6: among w + αyx, α ∈ [0, cap], the one of smallest norm; an uncapped update ends at m = 0."""
    rng = np.random.default_rng(0)
    for w, x in rng.normal(size=(30, 2, 3)):
        learner = ReferenceLearner(rules.MIRA(cap=0.6), fit_intercept=False, w=w)
        y = opposite(learner.score(x), x)
        learner.learn(x, y)
        reach = w + np.linspace(0, 0.6, 2001)[:, np.newaxis] * y * x
        assert np.linalg.norm(learner.w) <= np.min(np.linalg.norm(reach, axis=1)) + 1e-12
        if learner.records[0].step.add < 0.6:
            assert abs(learner.w @ x) < 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_over_all_classes_it_is_ultraconservative(seed):
    """01 §12.4: without a tie only classes that beat y move, and a right answer moves nothing."""
    rng = np.random.default_rng(seed)
    for W, (x, *_) in zip(rng.normal(size=(40, 4, 3)), rng.normal(size=(40, 1, 3)), strict=True):
        y, s = int(rng.integers(4)), W @ x
        learner = ReferenceLearner(rules.MIRA(), "multiclass", classes=4, multiclass="mira", fit_intercept=False, w=W)
        learner.learn(x, y)
        moved = np.any(learner.w != W, axis=1)
        beats = (s > s[y]) | (np.arange(4) == y)
        assert not np.any(moved & ~beats)
        assert moved.any() == (np.argmax(s) != y)
        np.testing.assert_allclose(learner.w.sum(axis=0), W.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_the_literal_rule_is_refused_at_zero(way):
    with pytest.raises(ParameterError, match="never starts"):
        WAYS[way](rules.MIRA(tie_update="none"), "binary", A)
