"""PAMIR (Grangier and Bengio 2008) and MROC, ascent on the smoothed AUC. Specification 01 §16."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import onepass
from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .streams import PAIRS, Example, random_stream, run
from .ways import WAYS, same

SLOPES = [0.25, 0.246134, 0.226825]
WORKED = {
    "pamir": (rules.PAMIR(C=0.1), [(-0.1, 0.3), (0.1, 0.3), (0, 0.5)]),
    "mroc": (rules.MROC(beta=1, mu=0.5), [(-0.125, 0.375), (0.121134, 0.375), (0.007721, 0.601825)]),
}


def by_ranker(rule, task, stream, **options):
    """`Ranker.learn_pair`; a third way."""
    ranker = onepass.Ranker(rule)
    rows = []
    for (p, n), _, c in stream:
        ranker.learn_pair(np.asarray(p, dtype=float), np.asarray(n, dtype=float), c)
        rows.append(np.append(ranker.coef_, 0.0))
    return np.array(rows)


PAIR_WAYS = {**WAYS, "ranker": by_ranker}


@pytest.mark.parametrize("way", PAIR_WAYS)
@pytest.mark.parametrize("name", WORKED)
def test_worked_numbers(name, way):
    rule, w = WORKED[name]
    np.testing.assert_allclose(PAIR_WAYS[way](rule, "ranking", PAIRS)[:, :2], w, atol=1e-6)


def test_worked_slopes():
    learner = ReferenceLearner(rules.MROC(beta=1, mu=0.5), "ranking")
    run(learner, PAIRS)
    np.testing.assert_allclose([r.step.add / 0.5 for r in learner.records], SLOPES, atol=1e-6)


RULES = {
    "pamir": (rules.PAMIR(0.2), lambda s: transcriptions.pa_ranking(s, 4, "PA-I", 0.2)),
    "mroc": (rules.MROC(), lambda s: transcriptions.mroc(s, 4, 10.0, 0.1)),
    "mroc, β μ": (rules.MROC(2.0, 0.7), lambda s: transcriptions.mroc(s, 4, 2.0, 0.7)),
    "mroc, skipping": (rules.MROC(2.0, 0.7, 0.2), lambda s: transcriptions.mroc(s, 4, 2.0, 0.7, 0.2)),
}


@pytest.mark.parametrize("way", PAIR_WAYS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_equals_transcription(name, weighted, way):
    rule, transcription = RULES[name]
    for seed in range(4):
        stream = random_stream(np.random.default_rng(seed), "ranking", 80, weighted=weighted)
        same(PAIR_WAYS[way](rule, "ranking", stream)[:, :-1], list(transcription(stream)))


def test_pamir_is_pa1_on_pairs():
    stream = random_stream(np.random.default_rng(9), "ranking", weighted=True)
    one, two = (run(ReferenceLearner(rule, "ranking"), stream) for rule in (rules.PAMIR(0.3), rules.PA1(0.3)))
    np.testing.assert_array_equal(one, two)


def test_mroc_is_the_gradient_of_the_smoothed_auc():
    """A step is μ ∇σ(β w·z)."""
    rng = np.random.default_rng(0)
    for w, p, n in rng.normal(size=(10, 3, 3)):
        learner = ReferenceLearner(rules.MROC(beta=2.0, mu=0.5), "ranking", w=w)
        learner.learn((p, n), 1)
        slope = approx_fprime(w, lambda v, z=p - n: 1 / (1 + math.exp(-2.0 * v @ z)), 1e-7)
        np.testing.assert_allclose(learner.w - w, 0.5 * slope, atol=1e-6)


@pytest.mark.parametrize("way", PAIR_WAYS)
def test_small_slopes_are_skipped(way):
    """g ≤ β/4, reached at w·z = 0; the further from 0, the smaller. At min_slope itself it still learns."""
    stream = [Example(((1.0, 0.0), (0.0, 0.0)), 1)] * 40
    beta, least = 4.0, 0.5
    w = PAIR_WAYS[way](rules.MROC(beta, 0.1, least), "ranking", stream)[:, 0]
    stop = int(np.argmax(np.diff(w) == 0)) + 1  # the first round after which nothing moves
    slope = beta / (2 + 2 * np.cosh(beta * w))
    assert 3 < stop < 39
    assert np.all(w[stop:] == w[stop])
    assert slope[stop] < least <= slope[stop - 2]
    assert PAIR_WAYS[way](rules.MROC(beta, 0.1, beta / 4), "ranking", stream[:2])[0, 0] == pytest.approx(0.1)
    never = PAIR_WAYS[way](rules.MROC(beta, 0.1, 1.001 * beta / 4), "ranking", stream[:2])
    assert not never.any()


@pytest.mark.parametrize("way", PAIR_WAYS)
@pytest.mark.parametrize("score", [800.0, -800.0])
def test_mroc_far_from_zero_does_not_overflow(score, way):
    """exp(−|βq|): no slope left, no NaN."""
    first = Example(((1.0, 0.0), (0.0, 0.0)), 1, 4 * score / 1.0) if score > 0 else None
    stream = [first or Example(((0.0, 0.0), (1.0, 0.0)), 1, -4 * score), Example(((1.0, 0.0), (0.0, 0.0)), 1)]
    rows = PAIR_WAYS[way](rules.MROC(1.0, 1.0), "ranking", stream)
    assert rows[0, 0] == pytest.approx(score)
    np.testing.assert_array_equal(rows[0], rows[1])


def test_mroc_raises_the_auc():
    rng = np.random.default_rng(0)
    u = rng.normal(size=5)
    X = rng.normal(size=(400, 5))
    y = X @ u + rng.normal(size=400) > 0
    P, N = X[y], X[~y]
    learner = ReferenceLearner(rules.MROC(2.0, 0.1), "ranking")
    for i, j in zip(rng.integers(len(P), size=400), rng.integers(len(N), size=400), strict=True):
        learner.learn((P[i], N[j]), 1)
    auc = np.mean((P @ learner.w)[:, np.newaxis] > N @ learner.w)
    assert auc > np.mean((P @ u)[:, np.newaxis] > N @ u) - 0.02
