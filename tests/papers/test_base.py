"""Initial predictions: the score of an example is base + ⟨w, x⟩, in the margin, the loss and the update alike.

Offsets of generalised linear models (McCullagh and Nelder 1989, §2.3.3); VW's "label importance base".
"""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner

from .streams import A, random_stream
from .vowpal import progressive
from .ways import model_of, same

BASES = (0.5, -1.0, 0.25, 0.0, 2.0)


def by_core(rule, task, stream, bases, **options):
    learner = ReferenceLearner(rule, task, **options)
    rows = []
    for (x, y, c), b in zip(stream, bases, strict=True):
        learner.learn(x, y, c, b)
        rows.append(np.append(learner.w, learner.intercept))
    return np.array(rows)


def by_model(rule, task, stream, bases, **options):
    model = model_of(rule, task, **options)
    rows = []
    for (x, y, c), b in zip(stream, bases, strict=True):
        model.learn_one(np.asarray(x, dtype=float), y, c, b)
        w, intercept = model.weights()
        rows.append(np.append(w[0], intercept[0]))
    return np.array(rows)


@pytest.fixture(params=[by_core, by_model], ids=["core", "model"])
def way(request):
    return request.param


# ---- by hand: what each paper says, with base + ⟨w, x⟩ for the score ----


def pa1(w, x, y, b):
    return w + min(1.0, max(0.0, 1.0 - y * (b + w @ x)) / (x @ x)) * y * x


def logistic(w, x, y, b):
    return w + 0.5 * y / (1.0 + np.exp(y * (b + w @ x))) * x


def perceptron(w, x, y, b):
    return w + (y * x if y * (b + w @ x) <= 0 else 0.0)


HAND = {"pa1": pa1, "perceptron": perceptron, "sgd:loss=logistic,schedule=constant,eta=0.5": logistic}


@pytest.mark.parametrize("rule", HAND)
def test_the_update_sees_the_base(way, rule):
    w, expected = np.zeros(2), []
    for (x, y, _), b in zip(A, BASES, strict=True):
        w = HAND[rule](w, np.array(x, dtype=float), y, b)
        expected.append(w)
    plain = way(rule, "binary", A, [0.0] * len(A), fit_intercept=False)[:, :-1]
    same(way(rule, "binary", A, BASES, fit_intercept=False)[:, :-1], expected)
    assert np.abs(plain - expected).max() > 0.01


def test_pa_by_numbers(way):
    """Round 1: m = 0.5, loss 0.5, τ = 0.5/5. Round 2: −(−1 + 0) = 1: no loss. Round 3: −(0.25 + 0.1) = −0.35."""
    got = way("pa", "binary", A[:3], BASES[:3], fit_intercept=False)[:, :-1]
    same(got, [(0.1, 0.2), (0.1, 0.2), (0.1 + 0.675, 0.2 - 0.675)])


def test_arow_measures_its_margin_from_the_base(way):
    w, S, expected = np.zeros(2), np.eye(2), []
    for (x, y, _), b in zip(A, BASES, strict=True):
        x, m = np.array(x, dtype=float), y * (b + w @ np.array(x))
        if m < 1:
            beta = 1.0 / (x @ S @ x + 0.5)
            w = w + (1.0 - m) * beta * y * (S @ x)
            S = S - beta * np.outer(S @ x, S @ x)
        expected.append(w)
    got = way("arow:lam=0.5,covariance=full", "binary", A, BASES, fit_intercept=False)[:, :-1]
    same(got, expected)


def test_adagrad_takes_its_gradient_at_the_base(way):
    w, G, expected = np.zeros(2), np.zeros(2), []
    for (x, y, _), b in zip(A, BASES, strict=True):
        x = np.array(x, dtype=float)
        g = -y / (1.0 + np.exp(y * (b + w @ x))) * x
        G = G + g * g
        w = w - 0.1 * np.divide(g, 1e-8 + np.sqrt(G), out=np.zeros(2), where=x != 0)
        expected.append(w)
    got = way("adagrad:loss=logistic,eta=0.1,delta=1e-8", "binary", A, BASES, fit_intercept=False)[:, :-1]
    same(got, expected, 1e-9)


@pytest.mark.parametrize("rule", ["romma", "aromma"])
def test_romma_is_the_smallest_that_meets_both_constraints(way, rule):
    """y·(b + ⟨w′, x⟩) ≥ 1 and ⟨w′, w⟩ ≥ ‖w‖², of least length: no shorter point of the plane of w and x does."""
    stream = random_stream(np.random.default_rng(5), "binary", rounds=30, noise=0.0)
    bases = np.random.default_rng(6).normal(size=30) * 0.5
    rows = way(rule, "binary", stream, bases.tolist(), fit_intercept=False)[:, :-1]
    before, met = np.zeros(4), 0
    for (x, y, _), b, after in zip(stream, bases, rows, strict=True):
        x = np.asarray(x)
        if not np.array_equal(before, after):
            met += 1
            assert y * (b + after @ x) == pytest.approx(1.0) and after @ before >= before @ before - 1e-9
            for way_out in (x * y, before):  # Lagrange: what it gained is along the constraints that bind
                shorter = after - 1e-4 * way_out
                inside = y * (b + shorter @ x) >= 1 - 1e-12 and shorter @ before >= before @ before - 1e-12
                assert not inside or shorter @ shorter >= after @ after
        before = after
    assert met > 5


@pytest.mark.parametrize("rule", ["pegasos:lam=0.02,project=true", "alma"])
def test_the_ball_knows_the_length_of_w_whatever_the_base(way, rule):
    stream = random_stream(np.random.default_rng(7), "binary", rounds=40)
    rows = way(rule, "binary", stream, np.random.default_rng(8).normal(size=40).tolist(), fit_intercept=False)
    lengths = np.linalg.norm(rows, axis=1)
    radius = 50.0**0.5 if rule.startswith("pegasos") else 1.0
    assert lengths.max() == pytest.approx(radius) and np.sum(np.isclose(lengths, radius)) >= 3


# ---- VW itself ----


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("loss", "task"), [("squared", "regression"), ("squared", "binary"), ("logistic", "binary")])
def test_predicts_what_vw_predicts_from_a_base(loss, task, weighted):
    """Squared and logistic loss, adaptive and not, with and without a constant; VW computes in single precision."""
    stream = random_stream(np.random.default_rng(13), task, rounds=80, weighted=weighted)
    stream = [e for e in stream if e.c > 0 and np.any(e.x)]
    bases = np.round(np.random.default_rng(14).normal(size=len(stream)), 3) * (np.arange(len(stream)) % 4 > 0)
    for flags, switches in (
        ("", {}),
        ("--sgd --noconstant", {"adaptive": False, "normalized": False, "invariant": False}),
        ("--adaptive", {"normalized": False, "invariant": False}),
    ):
        model = model_of(
            rules.VW(loss, eta=0.4, **switches, vw_compat=True), task, fit_intercept="--noconstant" not in flags
        )
        ours, seen = [], [0.0]
        for (x, y, c), b in zip(stream, bases.tolist(), strict=True):
            score = model.score_one(np.asarray(x, dtype=float), b)  # in regression within the labels so far already
            ours.append(score if loss == "logistic" else np.clip(score, min(seen), max(seen)))
            model.learn_one(np.asarray(x, dtype=float), y, c, b)
            seen.append(y)
        theirs = progressive(f"{flags} --loss_function {loss} -l 0.4", stream, bases.tolist())
        # VW takes Lambert's function from an approximation.
        same(theirs, ours, 1e-2 if loss == "logistic" and not switches else 1e-4)
        assert np.abs(np.array(ours) - bases).max() > 0.1
