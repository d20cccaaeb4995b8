"""The gap of a comparator is a duality gap: nothing in the set loses less than its value minus its gap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from onepass import convex
from onepass.convex.regret import class_hindsight, duality, hindsight
from onepass.convex.sets import Box, Halfspace, L1Ball, L2Ball, Reals, Simplex
from onepass.scheme import losses

MARGIN = ["hinge", "perceptron(beta=0.5)", "logistic", "squared_hinge"]
RESIDUAL = ["squared", "absolute", "eps_insensitive(epsilon=0.3)", "quantile(tau=0.3)", "huber(delta=0.5)",
            "squared_eps_insensitive(epsilon=0.3)"]  # fmt: skip
KINDS = ["plain", "scales", "nearly equal columns", "equal columns", "separable", "weighted"]
SETS = [Reals(), L2Ball(0.5), Box(-0.3, 0.3), L1Ball(0.5), Simplex(), Halfspace([1.0, -1.0, 1.0], 0.1),
        Box([0.0, -0.2, -math.inf], math.inf),
        convex.Intersection([Box(-0.3, 0.3), Halfspace([1.0, 1.0, 1.0], 0.1)])]  # fmt: skip
CELLS = [(set, kind) for set in SETS for kind in (KINDS if isinstance(set, Reals | L2Ball) else KINDS[:2])]
CLASSES = 3


def table(kind, seed=0, n=40, d=3):
    """Rows, scores that the labels are made of, importances."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    if kind == "scales":
        X = X * 10.0 ** np.linspace(-3, 3, d)
    if "equal" in kind:
        X[:, 1] = X[:, 0] + (1e-5 * X[:, 1] if "nearly" in kind else 0.0)
    s = X / np.abs(X).max(axis=0) @ generator.normal(size=(d, CLASSES))
    s = s + (0.0 if kind == "separable" else 0.5) * generator.normal(size=(n, CLASSES))
    c = generator.integers(0, 4, size=n).astype(float) if kind == "weighted" else np.ones(n)
    return X, s, c


def answers(name, s):
    return np.where(s[:, 0] > 0, 1.0, -1.0) if name in MARGIN else 3.0 * s[:, 0]


def lowest(total, set, start):
    """What scipy finds, among points that are in the set to the last bits, from several places by several methods."""
    at = lambda w: total(set.project(w))  # noqa: E731
    found = total(start)
    for w in (start, np.zeros_like(start)):
        for method in ("Nelder-Mead", "BFGS"):
            found = min(found, at(minimize(at, w, method=method).x))
    return found


@pytest.mark.full(most=45)
@pytest.mark.filterwarnings("ignore")  # scipy's, of line searches that end at rounding
@pytest.mark.parametrize(("set", "kind"), CELLS, ids=str)
@pytest.mark.parametrize("name", MARGIN + RESIDUAL)
def test_nothing_that_scipy_finds_loses_less_than_the_value_minus_the_gap(set, kind, name):
    X, s, c = table(kind)
    y, loss = answers(name, s), losses.make(name)
    total = lambda u: math.fsum(c * hindsight.values(loss, X @ u, y))  # noqa: E731
    found = hindsight.best(csr_matrix(X) if kind == "weighted" else X, y, name, set, c)
    assert set.contains(found.u)
    if found.attained:
        assert found.value == pytest.approx(total(found.u), rel=1e-9, abs=1e-12)
    assert found.value - found.gap <= lowest(total, set, found.u)
    assert 1e-15 * found.value <= found.gap <= found.value  # nobody knows a sum to the last bit
    if kind in ("plain", "weighted") or isinstance(set, Reals):
        assert found.gap <= 1e-5 * found.value + 1e-12


def class_total(name, X, y, c):
    def total(u):
        S = X @ u.reshape(CLASSES, -1).T
        own = S[np.arange(len(y)), y]
        if name == "squared":
            each = 0.5 * np.sum((S - np.where(np.arange(CLASSES) == y[:, None], 1.0, -1.0)) ** 2, axis=1)
        elif name == "logistic":
            top = S.max(axis=1)
            each = np.log(np.exp(S - top[:, None]).sum(axis=1)) + top - own
        else:
            rivals = np.where(np.arange(CLASSES) == y[:, None], -np.inf, S).max(axis=1)
            over = np.maximum(0.0, (0.5 if "perceptron" in name else 1.0) + rivals - own)
            each = 0.5 * over**2 if name == "squared_hinge" else over
        return math.fsum(c * each)

    return total


@pytest.mark.full(most=10)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("set", "kind"), [*((Reals(), kind) for kind in KINDS), (L2Ball(0.5), "plain")], ids=str)
@pytest.mark.parametrize("name", [*MARGIN, "squared"])
def test_neither_does_any_matrix(set, kind, name):
    X, s, c = table(kind)
    y = s.argmax(axis=1)
    total = class_total(name, X, y, c)
    found = class_hindsight.best_rows(csr_matrix(X) if kind == "weighted" else X, y, CLASSES, name, set, c)
    if found.attained:
        assert found.value == pytest.approx(total(found.u.ravel()), rel=1e-9, abs=1e-12)
    assert found.value - found.gap <= lowest(total, set, found.u.ravel())
    assert 1e-15 * found.value <= found.gap <= found.value
    if kind in ("plain", "weighted") or isinstance(set, Reals):
        assert found.gap <= 2e-5 * found.value + 1e-12 or (name, kind) == ("squared_hinge", "nearly equal columns")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("set", [each for each in SETS if not isinstance(each, Reals)], ids=repr)
def test_closed_forms_have_the_gap_of_their_rounding(set):
    Z = 1e3 + table("plain", n=400)[0]
    quadratic = hindsight.best_quadratic(Z, set)
    total = lambda u: math.fsum(0.5 * (Z - u).ravel() ** 2)  # noqa: E731
    assert quadratic.value - quadratic.gap <= lowest(total, set, quadratic.u)
    assert 1e-15 * quadratic.value <= quadratic.gap <= 1e-8 * quadratic.value
    if math.isfinite(set.diameter(3)):
        linear = hindsight.best_linear(Z, set)
        assert linear.value - linear.gap <= lowest(lambda u: math.fsum((Z * u).ravel()), set, linear.u)
        assert 1e-15 * abs(linear.value) <= linear.gap <= 1e-8 * abs(linear.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["logistic", "hinge", "squared"])
def test_the_gap_of_losses_with_a_penalty_is_that_of_their_sum(name):
    X, s, _ = table("plain")
    y = answers(name, s)
    rounds = [convex.Regularized(convex.Prediction(name, x, label), 0.1) for x, label in zip(X, y, strict=True)]
    game = convex.play(convex.OGD(3, eta=convex.StronglyConvex(0.1)), lambda t, w: rounds[t - 1], len(rounds))
    total = lambda u: math.fsum(f.value(u) for f in rounds)  # noqa: E731
    found = game.best()
    assert found.value == pytest.approx(total(found.u), rel=1e-12)
    assert found.value - found.gap <= lowest(total, Reals(), found.u)
    assert 0 < found.gap <= 1e-5 * found.value


@pytest.mark.parametrize("name", MARGIN + RESIDUAL)
def test_tangents_touch_the_loss_from_below(name):
    loss, y = losses.make(name), np.array([1.0, -1.0])
    low, high = duality.domain(loss, y)
    scores = np.linspace(-40.0, 40.0, 80_001)
    for part in (0.0, 0.01, 0.3, 0.5, 0.9, 1.0):
        alpha = np.clip(low, -3.0, 3.0) * (1.0 - part) + np.clip(high, -3.0, 3.0) * part
        e = duality.tangents(loss, alpha, y)
        for i in range(2):
            above = hindsight.values(loss, scores, np.full_like(scores, y[i])) - alpha[i] * scores - e[i]
            assert above.min() >= -1e-12
            assert above.min() <= 1e-6  # the largest e there is


@pytest.mark.parametrize("name", [*MARGIN, "squared"])
def test_tangents_of_class_losses_touch_them_from_below(name):
    generator, loss = np.random.default_rng(0), losses.make(name)
    S, y = 3.0 * generator.normal(size=(200, 4)), generator.integers(0, 4, size=200)
    problem = class_hindsight.ClassProblem(np.ones((200, 1)), y, 4, loss, np.ones(200))
    h = 0.0 if name in ("logistic", "squared") else 1e-9
    slopes = class_hindsight._class_curves(loss, S, y, h)[1]
    alpha = problem.inside(slopes)
    np.testing.assert_allclose(alpha, slopes, atol=1e-12)
    e = problem.tangents(alpha)
    np.testing.assert_allclose(np.sum(alpha * S, axis=1) + e, class_hindsight.class_values(loss, S, y), atol=1e-6)
    for _ in range(20):
        T = 5.0 * generator.normal(size=S.shape)
        assert np.all(class_hindsight.class_values(loss, T, y) >= np.sum(alpha * T, axis=1) + e - 1e-9)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("name", MARGIN + RESIDUAL)
def test_balanced_slopes_pull_nowhere(name, direct, monkeypatch):
    X, s, c = table("weighted", n=200)
    y = answers(name, s)
    problem = hindsight.Problem(X, y, losses.make(name), c)
    u, h = hindsight._minimised(problem, 0.0)
    start = problem.slopes(u + (0.01 * h or 1e-3) * np.array([1.0, -2.0, 1.0]), h)
    monkeypatch.setattr(duality, "SMALL", 1000 if direct else 0)
    alpha, far = duality.balanced(problem, start), duality.balanced(problem, problem.slopes(u + 1.0, h))
    low, high = duality.domain(problem.loss, y)
    assert np.all((low <= alpha) & (alpha <= high)) and np.all((low <= far) & (far <= high))
    before, after, size = (np.linalg.norm(v) for v in (problem.pull(start), problem.pull(alpha), problem.sums(alpha)))
    assert after <= 1e-12 * size < 1e-4 * size < before


def test_a_gap_does_not_forget_points_that_are_far_from_u():
    """Of a logistic loss whose least value is far away: a short u has the gap that it deserves."""
    X, s, c = table("scales")
    y = answers("logistic", s)
    problem = hindsight.Problem(X, y, losses.Logistic(), c)
    u = np.array([1e-3, 0.0, 0.0])
    value, gap = duality.certified(problem, u, duality.balanced(problem, problem.slopes(u, 0.0)), Reals())
    assert value - gap <= hindsight.best(X, y, "logistic").value < value
