"""Online convex optimisation: the spec's worked numbers, transcriptions of the papers, projections against a QP."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from onepass import convex as cx
from onepass.convex.regret.hindsight import best

SETS = {
    "L2": cx.L2Ball(1.3),
    "box": cx.Box([-1.0, -0.5, 0.0, -np.inf], [1.0, 0.25, 2.0, 0.7]),
    "simplex": cx.Simplex(1.5),
    "L1": cx.L1Ball(1.2),
    "halfspace": cx.Halfspace([1.0, -2.0, 0.5, 1.0], 0.3),
    "intersection": cx.Intersection([cx.L2Ball(1.3), cx.Halfspace([1.0, 1.0, 1.0, 1.0], -0.4), cx.Box(-0.8, 0.9)]),
    "simplex in box": cx.Intersection([cx.Simplex(1.0), cx.Box(0.0, 0.4)]),
}


def constraints(set: cx.DecisionSet) -> list[dict]:
    if isinstance(set, cx.Intersection):
        return [each for part in set.sets for each in constraints(part)]
    if isinstance(set, cx.L2Ball):
        return [{"type": "ineq", "fun": lambda w: set.r**2 - w @ w}]
    if isinstance(set, cx.L1Ball):
        signs = np.array([[1 if i >> j & 1 else -1 for j in range(4)] for i in range(16)], dtype=float)
        return [{"type": "ineq", "fun": lambda w: set.r - signs @ w}]
    A, b = set.polyhedron(4)
    return [{"type": "ineq", "fun": lambda w: b - A @ w}]


def quadratic_program(set: cx.DecisionSet, v: np.ndarray, A: np.ndarray) -> np.ndarray:
    found = minimize(
        lambda w: (w - v) @ A @ (w - v),
        set.project(np.zeros(4)),
        jac=lambda w: 2 * A @ (w - v),
        constraints=constraints(set),
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(3))
def test_projections_equal_a_quadratic_program(name, seed):
    set, generator = SETS[name], np.random.default_rng(seed)
    v = generator.normal(size=4) * 2
    H = generator.uniform(0.2, 3.0, size=4)
    root = generator.normal(size=(4, 4))
    A = root @ root.T + 0.3 * np.eye(4)
    for projected, metric in (
        (set.project(v), np.eye(4)),
        (set.project_diagonal(v, H), np.diag(H)),
        (set.project_metric(v, A), A),
    ):
        np.testing.assert_allclose(projected, quadratic_program(set, v, metric), atol=2e-6)
        assert set.contains(projected, 1e-8)
    inside = set.project(v) * (1.0 if "simplex" in name or name == "intersection" else 0.999)
    if set.contains(inside, 1e-12):
        np.testing.assert_allclose(set.project(inside), inside, atol=1e-10)


def test_projection_numbers():
    s = cx.Simplex()
    for v, w in [
        ((0.5, 0.5, 0.5), (1 / 3,) * 3),
        ((2, 1, -1), (1, 0, 0)),
        ((0.1, 0.2, 0.9, -0.3), (0.033333, 0.133333, 0.833333, 0)),
        ((3, 3, 0), (0.5, 0.5, 0)),
    ]:
        np.testing.assert_allclose(s.project(v), w, atol=1e-6)
    np.testing.assert_allclose(cx.L1Ball(2).project((3, -1, 0.5)), (2, 0, 0), atol=1e-12)
    np.testing.assert_allclose(cx.L1Ball(1).project((3, 4, 0)), (0, 1, 0), atol=1e-12)
    huge = s.project((1e15, 1e15 - 4, -5.0))
    assert huge.sum() == pytest.approx(1, abs=1e-15) and huge[0] == 1.0
    assert cx.L2Ball(2).project((1e200, 0.0))[0] == pytest.approx(2)
    assert [cx.L2Ball(2).diameter(), cx.Box(-1, 1).diameter(4), cx.Simplex(3).diameter(), cx.L1Ball(2).diameter()] == [
        4.0, 4.0, pytest.approx(3 * math.sqrt(2)), 4.0,
    ]  # fmt: skip


def replay(Z):
    return lambda t, w: cx.Linear(Z[t - 1])


def test_eager_and_lazy_projection_differ_as_in_the_spec():
    Z = [(1, 0), (1, 1), (-1, 0), (0, -1)]
    eager = cx.play(cx.OGD(2, cx.L2Ball(), eta=1.0), replay(Z), 4)
    lazy = cx.play(cx.FTRL(2, cx.L2Ball(), eta=1.0), replay(Z), 4)
    third = (-0.894427, -0.447214)
    np.testing.assert_allclose(eager.points, [(0, 0), (-1, 0), third, (0.105573, -0.447214)], atol=1e-6)
    np.testing.assert_allclose(lazy.points, [(0, 0), (-1, 0), third, (-0.707107, -0.707107)], atol=1e-6)
    np.testing.assert_allclose(eager.player.w, (0.105573, 0.552786), atol=1e-6)
    np.testing.assert_allclose(lazy.player.w, (-1, 0), atol=1e-6)
    assert eager.losses.sum() == pytest.approx(0.341641, abs=1e-6)
    assert lazy.losses.sum() == pytest.approx(0.601534, abs=1e-6)
    for game in (eager, lazy):
        assert game.best().value == pytest.approx(-1) and game.regret().bound[-1] == pytest.approx(3)


def test_ftl_fails_where_ftrl_does_not():
    """Spec 03 §4: FTL loses 1 a round from the second on; FTRL with η = 1/√T stays below √T."""
    for T, leader, steady in ((10, 9.5, 1.923025), (100, 99.5, 5.45), (1000, 999.5, 16.295577)):
        failed = cx.play(cx.FTL(1, cx.Box()), cx.Alternating(), T)
        assert failed.regret().final == leader and failed.losses.sum() == T - 1
        kept = cx.play(cx.FTRL(1, cx.Box(), eta=1 / math.sqrt(T)), cx.Alternating(), T).regret()
        assert kept.final == pytest.approx(steady, abs=1e-6) and kept.final <= math.sqrt(T) and kept.holds()
    with pytest.raises(ValueError, match="no bound to check"):
        failed.regret().holds()


def test_ftl_on_quadratics():
    game = cx.play(cx.FTL(1), lambda t, w: cx.Quadratic([(1.0, 3.0, 2.0, 2.0)[t - 1]]), 4)
    np.testing.assert_allclose(game.losses, (0.5, 2, 0, 0))
    np.testing.assert_allclose([*game.points[1:, 0], game.player.w[0]], (1, 2, 2, 2))
    assert game.losses.sum() == 2.5 and game.best().value == 1.0


def test_ftl_on_squares_is_least_squares():
    X, y = np.array([(1, 0), (1, 1), (0, 2), (2, 1)], float), (1.0, 3.0, 2.0, 1.0)
    player = cx.FTL(2)
    cx.play(player, cx.Examples(zip(X, y, strict=True), "squared"), 4)
    np.testing.assert_allclose(player.w, (4 / 9, 10 / 9), atol=1e-12)


def test_pegasos_row_of_the_table():
    """The hinge with (λ/2)‖w‖² and η = 1/(λt), spec 03 §3: stream A, λ = 0.5."""
    A = [((1, 2), 1), ((2, -1), -1), ((-1, 1), -1), ((1, 1), 1), ((0, -2), -1)]
    player, seen = cx.OGD(2, eta=cx.StronglyConvex(0.5)), []
    for x, y in A:
        player.learn_loss(cx.Regularized(cx.Prediction("hinge", x, y), 0.5))
        seen.append(player.w)
    np.testing.assert_allclose(seen, [(2, 4), (-1, 3), (0, 1.333333), (0, 1), (0, 0.8)], atol=1e-6)


def test_rda_numbers():
    A = [((1, 2), 1), ((2, -1), -1), ((-1, 1), -1), ((1, 1), 1), ((0, -2), -1)]
    player, seen = cx.RDA(2, gamma=1.0, lam=0.2), []
    for x, y in A:
        player.learn_loss(cx.Prediction("hinge", x, y))
        seen.append(player.w)
    expected = [(0.8, 1.8), (-0.424264, 1.838478), (0, 0.80829), (0.1, 1.1), (0, 0.894427)]
    np.testing.assert_allclose(seen, expected, atol=1e-6)


def test_exponentiated_gradient_numbers():
    Z = [(1, 0, 0), (0, 1, 0.5), (0, 1, 0), (0.5, 0, 1)]
    game = cx.play(cx.EG(3, eta=0.5), replay(Z), 4)
    expected = [(0.232697, 0.383652, 0.383652), (0.304504, 0.304504, 0.390991), (0.345954, 0.209832, 0.444214)]
    np.testing.assert_allclose(game.points[1:], expected, atol=1e-6)
    np.testing.assert_allclose(game.player.w, (0.359867, 0.280265, 0.359867), atol=1e-6)
    np.testing.assert_allclose(game.losses, (0.333333, 0.575478, 0.304504, 0.617191), atol=1e-6)
    regret = game.regret()
    assert regret.loss[-1] == pytest.approx(1.830506, abs=1e-6) and regret.best[-1] == 1.5
    assert regret.bound[-1] == pytest.approx(3.197225, abs=1e-6)


def test_coin_betting_numbers():
    player, w, wealth = cx.CoinBetting(1), [], []
    for z in (-1, -0.5, 1, -1):
        w.append(player.w[0])
        player.learn([z])
        wealth.append(player.wealth)
    np.testing.assert_allclose(w, (0, 0.5, 0.625, 0.078125))
    np.testing.assert_allclose(wealth, (1, 1.25, 0.625, 0.703125))
    with pytest.raises(ValueError, match="at most scale"):
        player.learn([1.5])


def test_newton_step_numbers():
    """Spec 02 §7: stream R, ½r², γ = 0.5, ε = 1, unconstrained."""
    R = [((1, 0), 1), ((1, 1), 3), ((0, 2), 2), ((2, 1), 1)]
    game = cx.play(cx.ONS(2, gamma=0.5, eps=1.0), cx.Examples(R, "squared"), 4)
    np.testing.assert_allclose(
        game.gradients, [(-1, 0), (-2, -2), (0, -1.714286), (3.852166, 1.926083)], atol=1e-6
    )  # fmt: skip
    expected = [(1, 0), (1.285714, 0.571429), (0.852166, 1.221751)]
    np.testing.assert_allclose(game.points[1:], expected, atol=1e-6)
    np.testing.assert_allclose(game.player.w, (0.44488, 1.290332), atol=1e-6)


def test_adagrad_numbers():
    """Spec 02 §8.1: stream A, logistic, η = 0.5."""
    A = [((1, 2), 1), ((2, -1), -1), ((-1, 1), -1), ((1, 1), 1), ((0, -2), -1)]
    player = cx.AdaGrad(2, eta=0.5, delta=1e-8)
    game = cx.play(player, cx.Examples(A, "logistic"), 5)
    expected = [(0.5, 0.5), (0.036023, 0.764223), (0.260595, 0.515787), (0.363283, 0.628855)]
    np.testing.assert_allclose(game.points[1:], expected, atol=1e-6)
    np.testing.assert_allclose(player.w, (0.363283, 0.780265), atol=1e-6)
    np.testing.assert_allclose(player.squares, (2.35394, 2.137588), atol=1e-6)


# -- the updates again, as minimisation problems -----------------------------------------------------------------------


def test_mirror_descent_minimises_its_problem():
    """w_{t+1} = argmin η⟨z, w⟩ + B_ψ(w, w_t), for ψ the entropy (by its optimality condition) and ½‖·‖_p²."""
    generator = np.random.default_rng(3)
    eg, w = cx.EG(4, eta=0.3), np.full(4, 0.25)
    for _ in range(5):
        z = generator.normal(size=4)
        eg.learn(z)
        condition = 0.3 * z + np.log(eg.w / w)  # ∇(η⟨z,w⟩ + KL(w‖w_t)) is constant on the simplex
        np.testing.assert_allclose(condition, condition[0], atol=1e-10)
        w = eg.w
    p, eta = 1.4, 0.3
    player = cx.PNorm(4, p=p, eta=eta)

    def link(w):  # ∇½‖w‖_p²
        size = np.linalg.norm(w, ord=p)
        return np.sign(w) * np.abs(w) ** (p - 1) * size ** (2 - p) if size else w

    for _ in range(5):
        before, z = player.w, generator.normal(size=4)
        player.learn(z)
        np.testing.assert_allclose(link(player.w), link(before) - eta * z, atol=1e-10)
    twin, plain = cx.PNorm(4, p=2.0, eta=eta), cx.OGD(4, eta=eta)
    for _ in range(5):
        z = generator.normal(size=4)
        twin.learn(z), plain.learn(z)
    np.testing.assert_allclose(twin.w, plain.w, atol=1e-12)


def test_entropic_ftrl_minimises_its_problem():
    generator, player, theta = np.random.default_rng(4), cx.EntropicFTRL(3, eta=0.4), np.zeros(3)
    for _ in range(4):
        z = generator.normal(size=3)
        player.learn(z)
        theta += z
        condition = theta + np.log(player.w) / 0.4
        np.testing.assert_allclose(condition, condition[0], atol=1e-10)
        assert player.w.sum() == pytest.approx(1)


def test_lazy_projection_on_all_of_space_is_gradient_descent():
    generator, a, b = np.random.default_rng(5), cx.FTRL(3, eta=0.2), cx.OGD(3, eta=0.2)
    for _ in range(20):
        z = generator.normal(size=3)
        a.learn(z), b.learn(z)
    np.testing.assert_allclose(a.w, b.w, atol=1e-12)


# -- hindsight ---------------------------------------------------------------------------------------------------------


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "squared", "absolute", "eps_insensitive",
                                  "quantile(tau=0.3)", "huber(delta=0.5)"])  # fmt: skip
@pytest.mark.parametrize("set", [cx.Reals(), cx.L2Ball(0.6), cx.Box(-0.4, 0.4), cx.L1Ball(0.7), cx.Simplex()], ids=repr)
def test_the_best_comparator_is_the_best(loss, set):
    """No point found by a derivative-free search around it loses less than its value minus its gap."""
    generator = np.random.default_rng(6)
    X = generator.normal(size=(80, 3))
    y = X @ (1.0, -0.5, 0.2) + generator.normal(size=80)
    if cx.Prediction(loss, X[0], 1.0).loss.margin:
        y = np.where(y > 0, 1.0, -1.0)
    found = best(X, y, loss, set)
    total = lambda u: sum(cx.Prediction(loss, x, t).value(u) for x, t in zip(X, y, strict=True))  # noqa: E731
    assert set.contains(found.u, 1e-7)
    assert found.value == pytest.approx(total(found.u), rel=1e-9)
    assert 0 <= found.gap <= 2e-3 * found.value
    for scale in (1e-3, 1e-2, 0.1, 0.5):
        for _ in range(15):
            other = set.project(found.u + scale * generator.normal(size=3))
            assert total(other) >= found.value - found.gap - 1e-9 * found.value


def test_separable_logistic_data_have_an_infimum_that_is_not_attained():
    X = np.array([(1.0, 2.0), (-1.0, -1.0), (2.0, 1.0)])
    found = best(X, np.array([1.0, -1.0, 1.0]), "logistic")
    assert found.value == 0.0 and not found.attained
