"""Averaged iterates: Polyak and Juditsky 1992; the averaged Perceptron: Freund and Schapire 1999.

Specification 00 §8, 01 §1.5.
"""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner
from onepass.scheme.readouts import Average

from . import transcriptions
from .streams import A, random_stream, run


@pytest.mark.parametrize(("kind", "w"), [("predictor", (0, 1.8)), ("post", (0, 2.2))])
def test_worked_numbers(kind, w):
    learner = ReferenceLearner(rules.Perceptron(), fit_intercept=False, readout=Average(kind))
    np.testing.assert_allclose(run(learner, A)[-1, :2], w, atol=1e-6)


RULES = [rules.Perceptron(), rules.PA1(0.1), rules.SGD("logistic", l2=0.1), rules.Pegasos(0.1)]


@pytest.mark.parametrize("start", [1, 2, 7, 100])
@pytest.mark.parametrize("kind", ["predictor", "post"])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_is_the_mean_of_the_iterates(rule, kind, start):
    """Every round counts, passive or of importance 0 too; before `start`, the last w predicts."""
    stream = random_stream(np.random.default_rng(4), "binary", weighted=True)
    last = run(ReferenceLearner(rule), stream)
    averaged = run(ReferenceLearner(rule, readout=Average(kind, start)), stream)
    expected = list(transcriptions.average(last, kind, start))
    np.testing.assert_allclose(averaged, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["predictor", "post"])
def test_lazy_form(kind):
    """00 §8: w̄_T = w_{T+1} − u/T with u ← u + t δ_t (predictor) or (t − 1) δ_t (post)."""
    stream = random_stream(np.random.default_rng(5), "binary")
    last = run(ReferenceLearner(rules.PA1(0.3)), stream)
    averaged = run(ReferenceLearner(rules.PA1(0.3), readout=Average(kind)), stream)
    u, before = np.zeros(5), np.zeros(5)
    for t, w in enumerate(last, 1):
        u = u + (t if kind == "predictor" else t - 1) * (w - before)
        before = w
        np.testing.assert_allclose(averaged[t - 1], w - u / t, rtol=1e-12, atol=1e-12)


def test_multiclass_rows_are_averaged():
    stream = random_stream(np.random.default_rng(6), "multiclass")
    last, averaged = (
        run(ReferenceLearner(rules.PA1(0.3), "multiclass", classes=3, readout=readout), stream)
        for readout in ("last", "average")
    )
    np.testing.assert_allclose(averaged, list(transcriptions.average(last, "predictor")), rtol=1e-12, atol=1e-12)


def test_the_average_predicts_and_the_last_learns():
    learner = ReferenceLearner(rules.Perceptron(), fit_intercept=False, readout="average")
    run(learner, A)
    assert learner.score((1.0, 1.0)) == pytest.approx(1.8)
    np.testing.assert_array_equal(learner.records[-1].w, (0, 2))
