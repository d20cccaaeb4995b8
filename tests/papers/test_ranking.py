"""Pairwise ranking: PAMIR (Grangier and Bengio 2008) and the other rules on pairs. Specification 01 §16."""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import Played, assert_within, pa_bounds
from .streams import PAIRS, Example, random_stream, run, worst_of


def test_worked_numbers():
    learner = ReferenceLearner(rules.PA1(C=0.1), task="ranking")
    np.testing.assert_allclose(run(learner, PAIRS)[:, :2], [(-0.1, 0.3), (0.1, 0.3), (0, 0.5)], atol=1e-6)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rule", "variant"), [(rules.PA(), "PA"), (rules.PA1(0.2), "PA-I"), (rules.PA2(0.2), "PA-II")])
def test_equals_transcription(rule, variant, weighted, intercept):
    """A constant feature cancels in the difference: with or without intercept, it stays 0."""
    for seed in range(4):
        stream = random_stream(np.random.default_rng(seed), "ranking", weighted=weighted)
        rows = run(ReferenceLearner(rule, "ranking", fit_intercept=intercept), stream)
        expected = list(transcriptions.pa_ranking(stream, 4, variant, 0.2))
        np.testing.assert_allclose(rows[:, :-1], expected, rtol=1e-12, atol=1e-12)
        assert not rows[:, -1].any()


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "perceptron"])
def test_sgd_is_sgd_on_the_difference(loss):
    stream = random_stream(np.random.default_rng(7), "ranking", weighted=True)
    differences = [(p - n, 1, c) for (p, n), _, c in stream]
    learner = ReferenceLearner(rules.SGD(loss, "inv_sqrt", eta=0.5, l2=0.1), "ranking")
    expected = transcriptions.sgd(differences, 4, transcriptions.GRADIENTS[loss], lambda t: 0.5 / t**0.5, 0.1)
    np.testing.assert_allclose(run(learner, stream)[:, :-1], list(expected), rtol=1e-12, atol=1e-12)


def test_equal_items_are_skipped():
    learner = ReferenceLearner(rules.PA2(), "ranking", w=[1.0, 2.0])
    record = learner.learn(((1.0, 1.0), (1.0, 1.0)), 1)
    assert (record.loss, record.updated, learner.skipped_zero) == (1.0, False, 1)


@pytest.mark.full(strength=1)
@pytest.mark.parametrize(("name", "C"), [("pa", 1.0), ("pa1", 0.1), ("pa2", 0.1)])
@pytest.mark.parametrize("seed", range(4))
def test_bounds(name, C, seed):
    """The guarantees of Crammer et al. 2006 with z = x_p − x_n for the example and +1 for its label."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=4)
    pool = []
    for a, b in rng.normal(size=(60, 2, 4)):
        gap = float(u @ (a - b))
        if abs(gap) > 0.2:
            pool.append(Example((a, b) if gap > 0 else (b, a), 1))
    learner = ReferenceLearner(rules.RULES[name]() if name == "pa" else rules.RULES[name](C), "ranking")
    shown = worst_of(learner, pool, lambda score, y: 1 - score, 100)
    assert sum(r.loss for r in learner.records) > 3  # it bites
    Z = np.array([a - b for (a, b), _, _ in shown])
    played = Played.of(learner, np.sum(Z * Z, axis=1))
    seen = set()
    for v in (0 * u, u, 5 * u * (1 + 1e-12), rng.normal(size=4)):
        for what, measured, bound in pa_bounds(name, C, played, np.maximum(0, 1 - Z @ v), float(v @ v)):
            assert_within(measured, bound, what)
            seen.add(what)
    assert seen == {"basic", {"pa": "realizable", "pa1": "PA-I", "pa2": "PA-II"}[name]}
