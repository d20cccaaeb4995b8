"""ROMMA, the relaxed online maximum margin algorithm: Li and Long 2002. Specification 01 §7.

The rule is ill-conditioned off separable streams: ‖w‖ grows there and w and φ become parallel. Equality with the
transcription is therefore asked on separable streams.
"""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .solvers import quadratic
from .streams import A, Example, orthogonal, run, separable, with_constant, worst_of
from .ways import WAYS, same

STREAM = [Example((1, 2), 1), Example((2, -1), -1), Example((0.2, 1), 1), Example((2, 0.5), 1)]
WORKED = {
    "romma": (rules.ROMMA(), A, [(0.2, 0.4), (-0.2, 0.6), (2.5, 1.5), (2.5, 1.5), (2.5, 1.5)]),
    "aggressive": (
        rules.AggressiveROMMA(),
        STREAM,
        [(0.2, 0.4), (-0.2, 0.6), (0.192308, 0.961538), (0.263158, 0.947368)],
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WORKED)
def test_worked_numbers(name, way):
    rule, stream, w = WORKED[name]
    np.testing.assert_allclose(WAYS[way](rule, "binary", stream, fit_intercept=False)[:, :2], w, atol=1e-6)


def test_worked_coefficients():
    """c and d of w ← c w + d x; ours are of φ = y x."""
    learner = ReferenceLearner(rules.ROMMA(), fit_intercept=False)
    run(learner, A)
    steps = [(r.step.scale, r.step.add * r.y) for r in learner.records[1:3]]
    np.testing.assert_allclose(steps, [(1, -0.2), (10, -4.5)], atol=1e-6)
    np.testing.assert_allclose([r.score for r in learner.records[3:]], [4, -3], atol=1e-6)
    aggressive = ReferenceLearner(rules.AggressiveROMMA(), fit_intercept=False)
    run(aggressive, STREAM)
    steps = [(r.step.scale, r.step.add) for r in aggressive.records[2:]]
    np.testing.assert_allclose(steps, [(0, 1 / 1.04), (0.965097, 0.038781)], atol=1e-6)


RULES = {False: rules.ROMMA(), True: rules.AggressiveROMMA()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("aggressive", RULES)
def test_equals_transcription(aggressive, intercept, way):
    """1e-9: the native ‖w‖² is kept by increments, and c, d divide by ‖x‖²‖w‖² − s²."""
    for seed in range(5):
        stream, _ = separable(np.random.default_rng(seed), 60, 4, margin=0.3)
        expected = list(transcriptions.romma(with_constant(stream, float(intercept)), 5, aggressive=aggressive))
        same(WAYS[way](RULES[aggressive], "binary", stream, fit_intercept=intercept), expected, 1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_long_streams_stay_exact(way):
    """Many passes: the increments of ‖w‖² do not drift."""
    stream, _ = separable(np.random.default_rng(7), 80, 3, margin=0.2)
    expected = list(transcriptions.romma(stream * 20, 3, aggressive=True))
    same(WAYS[way](RULES[True], "binary", stream * 20, fit_intercept=False)[:, :-1], expected, 1e-8)


def problem(w, x, y):
    """min ‖v‖² subject to y v·x ≥ 1 and v·w ≥ ‖w‖²."""
    return quadratic(0 * w, np.full(3, 2.0), 0 * w, [y * x, w], [1.0, w @ w])


@pytest.mark.parametrize("aggressive", RULES)
def test_is_the_minimiser(aggressive):
    rng, solved = np.random.default_rng(0), 0
    for w, x in rng.normal(size=(60, 2, 3)):
        learner = ReferenceLearner(RULES[aggressive], fit_intercept=False, w=w)
        y = 1 if rng.random() < 0.5 else -1
        learner.learn(x, y)
        if learner.k:
            solved += 1
            np.testing.assert_allclose(learner.w, problem(w, x, y), atol=1e-5 * max(1, np.linalg.norm(learner.w)))
        else:
            assert y * (w @ x) > (0 if not aggressive else 1)
    assert solved > 20


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("aggressive", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_kkt_norm_and_mistakes(seed, aggressive, way):
    """‖w_t‖ grows up to ‖u‖; y w·x = 1 after an update; old constraint kept; mistakes ≤ R²‖u‖²."""
    stream, u = separable(np.random.default_rng(seed), 100, 4, margin=0.15)
    u = u / 0.15 * (1 + 1e-12)
    stream = stream * 4
    rows = WAYS[way](RULES[aggressive], "binary", stream, fit_intercept=False)[:, :-1]
    before = np.vstack([np.zeros(4), rows[:-1]])
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    margins = y * np.sum(before * X, axis=1)
    updated = margins < 1 if aggressive else margins <= 0
    np.testing.assert_array_equal(updated, np.any(rows != before, axis=1))
    np.testing.assert_allclose((y * np.sum(rows * X, axis=1))[updated], 1, atol=1e-7)
    kept, old = np.sum(rows * before, axis=1), np.sum(before**2, axis=1)
    assert np.all(kept >= old - 1e-8 * np.maximum(1, old))
    norms = np.linalg.norm(rows, axis=1)
    assert np.all(np.diff(norms) >= -1e-9 * norms[1:])
    assert_within(norms[-1], float(np.linalg.norm(u)), "‖w‖ ≤ ‖u‖")
    mistakes = int(np.sum(margins <= 0))
    assert mistakes > 3
    assert_within(mistakes, float(np.max(np.sum(X**2, axis=1)) * (u @ u)), "ROMMA mistakes")


@pytest.mark.parametrize("aggressive", RULES)
def test_the_bound_holds_under_an_adversary(aggressive):
    pool, u = separable(np.random.default_rng(1), 60, 4, margin=0.2)
    learner = ReferenceLearner(RULES[aggressive], fit_intercept=False)
    worst_of(learner, pool, lambda score, y: -y * score, 200)
    R2 = max(e.x @ e.x for e in pool)
    assert learner.mistakes > 4
    assert_within(learner.mistakes, R2 * (u @ u) / 0.04, "ROMMA mistakes, adversary")


@pytest.mark.parametrize("way", WAYS)
def test_the_bound_is_attained(way):
    """e₁ … e_d: every round a mistake, u = (1, …, 1), R²‖u‖² = d."""
    stream, _ = orthogonal(6)
    rows = WAYS[way](rules.ROMMA(), "binary", stream, fit_intercept=False)[:, :-1]
    np.testing.assert_allclose(rows[-1], np.ones(6), atol=1e-12)
    assert np.linalg.norm(rows[-1]) ** 2 == pytest.approx(6)


@pytest.mark.parametrize("way", WAYS)
def test_contradiction_is_left_alone(way):
    """x against w: no w fulfils both constraints; no update."""
    rows = WAYS[way](rules.ROMMA(), "binary", [Example((1.0, 2.0), 1), Example((2.0, 4.0), -1)], fit_intercept=False)
    np.testing.assert_array_equal(rows[0], rows[1])
