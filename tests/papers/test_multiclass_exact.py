"""MIRA and PA over all classes at once: the O(K log K) answers are those of a numeric solver.

Crammer and Singer 2003; Crammer et al. 2006. Specification 01 §12.4 and §13.2.
"""

from __future__ import annotations

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner

from . import transcriptions
from .bounds import assert_within
from .solvers import quadratic
from .streams import M, random_stream, run, with_constant
from .ways import WAYS, learn, model_of, same, weights_of

# ---- worked numbers of 13.2 ----

HARD = [
    [(0.666667, 0), (-0.333333, 0), (-0.333333, 0)],
    [(0.666667, -0.333333), (-0.333333, 0.666667), (-0.333333, -0.333333)],
    [(0.666667, -0.333333), (-0.333333, 0.666667), (-0.333333, -0.333333)],
    [(0.416667, -0.583333), (-0.083333, 0.916667), (-0.333333, -0.333333)],
    [(0.416667, -0.583333), (-0.083333, 0.916667), (-0.333333, -0.333333)],
]
FINAL = {
    "PA": (rules.PA(), HARD[-1]),
    "PA-I": (rules.PA1(0.1), [(0.236667, -0.193333), (-0.013333, 0.306667), (-0.223333, -0.113333)]),
    "PA-II": (rules.PA2(0.5), [(0.25, -0.35), (0.05, 0.65), (-0.3, -0.3)]),
}
ALL = {"classes": 3, "multiclass": "all"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FINAL)
def test_worked_numbers(name, way):
    rule, W = FINAL[name]
    rows = WAYS[way](rule, "multiclass", M, fit_intercept=False, **ALL)[:, :, :2]
    np.testing.assert_allclose(rows[-1], W, atol=1e-6)
    if name == "PA":
        np.testing.assert_allclose(rows, HARD, atol=1e-6)


# ---- equal to the transcription ----

TRANSCRIBED = [
    (rules.PA(), "PA", 1.0),
    (rules.PA1(0.05), "PA-I", 0.05),  # the cap binds
    (rules.PA1(1.0), "PA-I", 1.0),
    (rules.PA2(0.2), "PA-II", 0.2),
]


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rule", "variant", "C"), TRANSCRIBED)
def test_equals_transcription(rule, variant, C, weighted, intercept, way):
    for seed in range(4):
        stream = random_stream(np.random.default_rng(seed), "multiclass", weighted=weighted)
        expected = list(transcriptions.pa_all_constraints(with_constant(stream, float(intercept)), 3, 5, variant, C))
        same(WAYS[way](rule, "multiclass", stream, fit_intercept=intercept, **ALL), expected)


# ---- equal to a solver ----


def solve_pa(W, x, y, variant, C):
    """min ½‖V − W‖² (+ Cξ or Cξ²), (V_y − V_r)·x ≥ 1 − ξ for every r ≠ y, ξ ≥ 0. The last variable is ξ."""
    K, d = W.shape
    rows = []
    for r in range(K):
        if r != y:
            V = np.zeros((K, d))
            V[y], V[r] = x, -x
            rows.append(np.append(V.ravel(), variant != "PA"))
    point, weight = np.append(W.ravel(), 0.0), np.ones(K * d + 1)
    linear = np.zeros(K * d + 1)
    linear[-1] = C if variant == "PA-I" else 0.0
    weight[-1] = 2 * C if variant == "PA-II" else (1.0 if variant == "PA" else 0.0)
    rows.append(np.eye(K * d + 1)[-1])
    return quadratic(point, weight, linear, rows, [1.0] * (K - 1) + [0.0])[:-1].reshape(K, d)


def solve_mira(W, x, y, C):
    """min ½ Σ‖W_i + τ_i x‖², τ_i ≤ C[i = y], Σ τ = 0."""
    K, xx = len(W), x @ x
    ones = np.ones(K)
    tau = quadratic(-(W @ x) / xx, xx * ones, 0 * ones, [*(-np.eye(K)), ones, -ones], [*(-C * np.eye(K)[y]), 0, 0])
    return W + np.outer(tau, x)


PROBLEMS = {
    "mira": (rules.MIRA(tie_update="none"), "mira", lambda W, x, y: solve_mira(W, x, y, 1.0)),
    "mira, cap": (rules.MIRA(cap=0.2, tie_update="none"), "mira", lambda W, x, y: solve_mira(W, x, y, 0.2)),
    "pa": (rules.PA(), "all", lambda W, x, y: solve_pa(W, x, y, "PA", 1.0)),
    "pa1, free": (rules.PA1(10.0), "all", lambda W, x, y: solve_pa(W, x, y, "PA-I", 10.0)),
    "pa1, capped": (rules.PA1(0.1), "all", lambda W, x, y: solve_pa(W, x, y, "PA-I", 0.1)),
    "pa2": (rules.PA2(0.3), "all", lambda W, x, y: solve_pa(W, x, y, "PA-II", 0.3)),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("K", [2, 3, 5])
def test_equals_a_solver(K, name):
    rule, multiclass, solve = PROBLEMS[name]
    rng, updates = np.random.default_rng(K), 0
    for _ in range(12):
        W, x, y = rng.normal(size=(K, 3)), rng.normal(size=3) * rng.uniform(0.3, 2), int(rng.integers(K))
        learner = ReferenceLearner(rule, "multiclass", classes=K, multiclass=multiclass, fit_intercept=False, w=W)
        learner.learn(x, y)
        updates += learner.k
        np.testing.assert_allclose(learner.w, solve(W, x, y), atol=2e-6)
    assert updates > 3


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name.startswith("pa")])
def test_the_native_loop_equals_a_solver(name):
    """From where the stream has brought the model: there is no other start."""
    rule, multiclass, solve = PROBLEMS[name]
    model = model_of(rule, "multiclass", classes=4, multiclass=multiclass, fit_intercept=False)
    W, rng = np.zeros((4, 3)), np.random.default_rng(0)
    for _ in range(15):
        x, y = rng.normal(size=3), int(rng.integers(4))
        learn(model, x, y)
        after = weights_of(model)[:, :-1]
        np.testing.assert_allclose(after, solve(W, x, y), atol=2e-6)
        W = after


def test_the_native_mira_equals_a_solver():
    """Ties, where the rule leaves the literal problem, come only at W = 0: the first round is left out."""
    model = model_of(rules.MIRA(), "multiclass", classes=4, multiclass="mira", fit_intercept=False)
    rng, moved = np.random.default_rng(0), 0
    learn(model, rng.normal(size=3), 0)
    for _ in range(25):
        W, x, y = weights_of(model)[:, :-1], rng.normal(size=3), int(rng.integers(4))
        if np.max(W @ x) == (W @ x)[y] and np.sum(W @ x == (W @ x)[y]) > 1:
            continue
        learn(model, x, y)
        after = weights_of(model)[:, :-1]
        np.testing.assert_allclose(after, solve_mira(W, x, y, 1.0), atol=2e-6)
        moved += np.any(after != W)
    assert moved > 10


# ---- reductions and post-conditions ----


@pytest.mark.parametrize("rule", [rules.PA(), rules.PA1(0.1), rules.PA2(0.5)], ids=repr)
def test_two_classes_have_one_constraint(rule):
    """01 §13.2: for K = 2 "all" is the single constraint."""
    stream = [e._replace(y=(e.y + 1) // 2) for e in random_stream(np.random.default_rng(1), "binary", weighted=True)]
    one, two = (
        run(ReferenceLearner(rule, "multiclass", classes=2, multiclass=word), stream) for word in ("rival", "all")
    )
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_the_hard_update_repairs_every_rival(way):
    """After a PA update s_y − s_r ≥ 1 for all r; with one rival only the best is repaired."""
    stream = [e for e in random_stream(np.random.default_rng(2), "multiclass") if np.any(e.x)]
    for W, (x, y, _) in zip(WAYS[way](rules.PA(), "multiclass", stream, **ALL), with_constant(stream), strict=True):
        s = W @ x
        assert np.all(np.delete(s[y] - s, y) >= 1 - 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_realizable_bound(seed):
    """Each step solves min ½‖W − W_t‖² under a set that U is in: Σ‖W_{t+1} − W_t‖² ≤ ‖U‖², hence Σℓ² ≤ 2R²‖U‖²."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(3, 4))
    X = rng.normal(size=(200, 4))
    S = np.sort(X @ U.T, axis=1)
    X = X[S[:, -1] - S[:, -2] > 0.2]
    stream = [(x, int(np.argmax(U @ x)), 1.0) for x in X]
    learner = ReferenceLearner(rules.PA(), "multiclass", fit_intercept=False, **ALL)
    run(learner, stream)
    losses = np.array([r.loss for r in learner.records])
    assert np.sum(losses**2) > 3
    assert_within(np.sum(losses**2), 2 * np.max(np.sum(X**2, axis=1)) * np.sum(U**2) / 0.04, "PA, all constraints")
