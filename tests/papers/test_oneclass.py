"""Uniclass Passive-Aggressive: Crammer et al. 2006, §6. Specification 01 §10."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array, random_array

import onepass
from onepass import rules
from onepass.errors import InputError
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .streams import Example, importances, inputs, run
from .ways import WAYS, same

POINTS = [Example((3, 4), None), Example((1, 1), None), Example((0, 3), None), Example((1, 2), None)]
WORKED = {
    "PA": (rules.PA(), [(2.4, 3.2), (1.536875, 1.843661), (0.79908, 2.398776), (0.79908, 2.398776)]),
    "PA-I": (rules.PA1(1.0), [(0.6, 0.8), (0.6, 0.8), (0.336883, 1.764764), (0.336883, 1.764764)]),
    "PA-II": (rules.PA2(0.5), [(1.2, 1.6), (1.2, 1.6), (0.925396, 1.920372), (0.925396, 1.920372)]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("variant", WORKED)
def test_worked_numbers(variant, way):
    rule, w = WORKED[variant]
    rows = WAYS[way](rule, "oneclass", POINTS, radius=1.0, fit_intercept=False)[:, :2]
    np.testing.assert_allclose(rows, w, atol=1e-6)
    estimator = onepass.OneClass(rule, radius=1.0).fit([e.x for e in POINTS])
    np.testing.assert_allclose(estimator.center_, w[-1], atol=1e-6)
    distances = np.linalg.norm(np.array([e.x for e in POINTS]) - w[-1], axis=1)
    np.testing.assert_allclose(estimator.decision_function([e.x for e in POINTS]), 1 - distances, atol=1e-5)
    off = np.abs(distances - 1) > 1e-6  # a point just learned by PA lies on the boundary, up to rounding
    np.testing.assert_array_equal(estimator.predict([e.x for e in POINTS])[off], np.where(distances <= 1, 1, -1)[off])


RULES = {"PA": rules.PA(), "PA-I": rules.PA1(0.2), "PA-II": rules.PA2(0.2)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("radius", [0.3, 1.0])
@pytest.mark.parametrize("variant", RULES)
def test_equals_transcription(variant, radius, weighted, way):
    """A zero vector is a point like any other."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = inputs(rng, 80, 4) + (rng.random((80, 1)) > 0.3) * [1.0, 0.0, -2.0, 0.5]
        stream = [Example(x, None, float(c)) for x, c in zip(X, importances(rng, 80, weighted), strict=True)]
        expected = list(transcriptions.pa_uniclass(stream, 4, variant, 0.2, epsilon=radius))
        rows = WAYS[way](RULES[variant], "oneclass", stream, radius=radius, fit_intercept=False)
        # ‖x − w‖ comes from ‖x‖² − 2w·x + ‖w‖² in the native loop: digits are lost as the distance shrinks.
        same(rows[:, :-1], expected, 1e-12 if way == "core" else 1e-10)


@pytest.mark.parametrize("variant", RULES)
def test_is_the_minimiser(variant):
    """min ½‖v − w‖² + C max(0, ‖v − x‖ − ε) (squared for PA-II; as a constraint for PA)."""
    rng, C, eps = np.random.default_rng(0), 0.2, 0.4
    for w, x in rng.normal(size=(15, 2, 3)):
        learner = ReferenceLearner(RULES[variant], "oneclass", radius=eps, fit_intercept=False, w=w)
        learner.learn(x, None)
        weight = {"PA": (0, 0), "PA-I": (C, 0), "PA-II": (0, C)}[variant]
        found = minimize(
            lambda v, w=w, weight=weight: 0.5 * np.sum((v[:-1] - w) ** 2) + weight[0] * v[-1] + weight[1] * v[-1] ** 2,
            np.append(w, np.linalg.norm(x - w)),
            constraints=[
                {"type": "ineq", "fun": lambda v, x=x: eps + (variant != "PA") * v[-1] - np.linalg.norm(v[:-1] - x)},
                {"type": "ineq", "fun": lambda v: v[-1]},
            ],
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        np.testing.assert_allclose(learner.w, found.x[:-1], atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_realizable_bound(seed):
    """Points within ε of some u: each PA step brings w nearer to u, Σ ℓ² ≤ ‖u‖² (w₁ = 0)."""
    rng = np.random.default_rng(seed)
    u = 3 * rng.normal(size=4)
    Z = rng.normal(size=(100, 4))
    X = u + Z / np.linalg.norm(Z, axis=1)[:, np.newaxis] * rng.uniform(0, 1, size=(100, 1))
    learner = ReferenceLearner(rules.PA(), "oneclass", radius=1.0, fit_intercept=False)
    run(learner, [Example(x, None) for x in X])
    losses = np.array([r.loss for r in learner.records])
    distances = [np.linalg.norm(u)] + [np.linalg.norm(r.w - u) for r in learner.records]
    assert np.sum(losses > 0) > 2
    assert np.all(np.diff(distances) <= 1e-12)
    assert_within(np.sum(losses**2), u @ u, "uniclass PA")


@pytest.mark.parametrize("way", WAYS)
def test_at_the_centre_nothing_moves(way):
    stream = [Example((3.0, 4.0), None)] * 40 + [Example((0.0, 0.0), None, 0.0)]
    rows = WAYS[way](rules.PA(), "oneclass", stream, radius=1e-6, fit_intercept=False)[:, :-1]
    assert np.all(np.isfinite(rows))
    np.testing.assert_allclose(rows[-1], (3, 4), atol=2e-6)


def test_the_estimators_chunks_are_its_loop():
    """`learn_many` wants no labels, as `learn_one` does; what is said before each row is its distance."""
    X = np.random.default_rng(4).normal(size=(40, 3)) + 2.0
    one, many = onepass.OneClass(radius=0.5), onepass.OneClass(radius=0.5)
    for x in X:
        one.learn_one(x)
    many.learn_many(X)
    np.testing.assert_array_equal(one.center_, many.center_)
    model, before = onepass.LinearModel("pa1", "oneclass", radius=0.5), []
    for x in X:
        w = model.weights()[0][0] if model.t else np.zeros(3)
        before.append(np.linalg.norm(x - w) - 0.5)
        model.learn_one(x, None)
    said = onepass.LinearModel("pa1", "oneclass", radius=0.5).predict_then_learn(X, None)
    np.testing.assert_allclose(said, before, rtol=1e-12)
    np.testing.assert_allclose(model.predict_many(X), np.linalg.norm(X - one.center_, axis=1) - 0.5, rtol=1e-12)
    # Names that were never learned are far away too.
    named = onepass.OneClass(radius=0.5)
    named.learn_one({"a": 1.0})
    assert named.score_one({"a": 1.0, "b": 9.0, "c": "word"}) > 8 > 0.5 > named.score_one({"a": 1.0})


def test_a_sparse_row_is_scored_by_itself():
    """Whatever stands before it, and where it names a column twice."""
    model = onepass.LinearModel("pa1", "oneclass", radius=0.5)
    model.learn_many(np.array([[1.0, 2.0], [0.5, 1.5]]), None)
    far, near = [1e9, -1e9], [1.0, 2.0]
    alone = model.score_many(np.array([near]))
    np.testing.assert_allclose(model.score_many(csr_array(np.array([far, near])))[1:], alone, rtol=1e-12)
    twice = csr_array(([1.0, 0.5, 1.5], [0, 1, 1], [0, 3]), shape=(1, 2))
    np.testing.assert_allclose(model.score_many(twice), alone, rtol=1e-12)
    assert twice.nnz == 3  # and is left as it was


def test_damaged_starts_are_refused():
    model = onepass.LinearModel("pa1", "oneclass", radius=0.5)
    model.learn_many(np.ones((2, 50)), None)
    for wrong in (4000, 300_000, -5):
        rows = random_array((200, 50), density=0.3, format="csr", rng=np.random.default_rng(0))
        rows.indptr = rows.indptr.copy()
        rows.indptr[100] = wrong
        with pytest.raises(InputError):
            model.score_many(rows)


def test_one_row_is_scored_as_many():
    model = onepass.LinearModel("pa1", "oneclass", radius=0.5)
    X = np.array([[1.0, 2.0], [0.5, 1.5], [4.0, 0.0]])
    assert model.score_one(X[0]) == model.score_many(X)[0, 0]  # before anything was learned
    model.learn_many(X[:2], None)
    for rows in (X, csr_array(X)):
        scores = model.score_many(rows)[:, 0]
        assert [model.score_one(rows[[i]]) for i in range(3)] == scores.tolist()
    assert [model.predict_one(x) for x in X] == model.predict_many(X).tolist()
    named = onepass.LinearModel("pa1", "oneclass", radius=0.5)
    named.learn_one({"a": 1.0, "b": 2.0}, None)
    mappings = [{"a": 0.5, "b": 1.5}, {"a": 4.0, "new": 3.0}]
    assert [named.score_one(x) for x in mappings] == named.score_many(mappings)[:, 0].tolist()
