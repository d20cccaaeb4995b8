"""Players against adversaries: regret within the bound at every round, and bounds that bite; malformed rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onepass import convex as cx
from onepass import datasets, errors, experts

D, T = 4, 200


def real(loss):
    """Rows of a real set, scaled to length 1."""
    rows = datasets.load("phoneme").shuffled(0)
    X, y = next(iter(rows.chunks(T)))
    X = np.asarray(X, dtype=float)[:, :D]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return cx.Examples(zip(X, np.where(np.asarray(y) == np.max(y), 1.0, -1.0), strict=True), loss)


STREAMS = {
    "random": lambda set: cx.RandomLinear(D, mean=[0.3, 0, 0, -0.1], seed=1),
    "alternating": lambda set: cx.Alternating(D),
    "adaptive": lambda set: cx.HeavyHalf() if isinstance(set, cx.Simplex) else cx.Outward(D, seed=2),
    "labels": lambda set: cx.OppositeLabel(D, seed=3),
    "rotating": lambda set: cx.RotatingHyperplane(D, 0.01, seed=4),
    "bursts": lambda set: cx.NoiseBursts(cx.RotatingHyperplane(D, 0.0, seed=5), 50, 10),
    "real": lambda set: real("hinge"),
}
G = 2.0  # on the simplex the adaptive losses have length √d
PLAYERS = {
    "ogd constant": lambda S: cx.OGD(D, S, eta=0.1),
    "ogd horizon": lambda S: cx.OGD(D, S, eta=cx.Horizon(S.diameter(D), G, T)),
    "ogd anytime": lambda S: cx.OGD(D, S, eta="theory", G=G),
    "ogd observed": lambda S: cx.OGD(D, S, eta="theory"),
    "ogd doubling": lambda S: cx.OGD(D, S, eta=cx.Doubling(S.diameter(D), G)),
    "ftrl": lambda S: cx.FTRL(D, S, eta=0.1),
    "dual averaging": lambda S: cx.DualAveraging(D, S, gamma=math.sqrt(2)),
    "adagrad": lambda S: cx.AdaGrad(D, S),
    "eg": lambda S: cx.EG(D, S, eta=0.1),
    "entropic ftrl": lambda S: cx.EntropicFTRL(D, S, eta=0.1),
    "eg pm": lambda S: cx.EGPlusMinus(D, S, eta=0.1),
    "p-norm": lambda S: cx.PNorm(D, p=1.5, eta=0.1, radius=1.0),
    "coin": lambda S: cx.CoinBetting(D),
    "rda": lambda S: cx.RDA(D, gamma=math.sqrt(2), lam=0.05),
}
BALL = cx.L2Ball(1.0)
SETS = {"ball": BALL, "box": cx.Box(-0.7, 0.7), "simplex": cx.Simplex(), "L1": cx.L1Ball(1.0)}
ONLY = {"eg": ["simplex"], "entropic ftrl": ["simplex"], "eg pm": ["L1"],
        "p-norm": ["ball"], "coin": ["ball"], "rda": ["ball"]}  # fmt: skip
CELLS = [(player, set) for player in PLAYERS for set in ONLY.get(player, SETS)]


@pytest.mark.full(most=3)
@pytest.mark.parametrize(
    "stream", [pytest.param(name, marks=[pytest.mark.data] if name == "real" else []) for name in STREAMS]
)
def test_regret_is_within_the_bound_at_every_round(stream):
    """Every player on every set it plays in; comparators: the best point of the set, and some others."""
    generator, grew = np.random.default_rng(0), 0
    for name, where in CELLS:
        set = SETS[where]
        if name == "dual averaging" and where == "simplex":
            continue  # which does not hold 0, around which it regularises
        player = PLAYERS[name](set)
        game = cx.play(player, STREAMS[stream](set), T)
        points = [set.project(generator.normal(size=D)), game.best(set).u]
        if name == "p-norm":
            points = [p / max(1.0, np.linalg.norm(p, ord=1.5)) for p in points]
        for u in points:
            regret = game.regret(u)
            assert regret.bound is not None and regret.holds(), (name, where, regret)
        grew += regret.final > 0.02 * T**0.5
    if stream in ("adaptive", "labels", "alternating"):
        assert grew > 0.6 * len(CELLS)  # these streams do make players regret


def test_strongly_convex_losses():
    """(G²/2μ)(1 + ln T), whose first form is attained on quadratics from w₁ = 0 (spec 03 §3)."""
    generator = np.random.default_rng(1)
    Z = generator.normal(size=(T, D))
    game = cx.play(cx.OGD(D, eta=cx.StronglyConvex(1.0)), lambda t, w: cx.Quadratic(Z[t - 1]), T)
    regret = game.regret()
    assert regret.holds() and regret.final == pytest.approx(regret.bound[-1], rel=1e-9)
    largest = np.linalg.norm(game.gradients, axis=1).max()
    assert regret.bound[-1] <= largest**2 / 2 * (1 + math.log(T))

    def penalised(t, w):
        x = Z[t - 1] / np.linalg.norm(Z[t - 1])
        return cx.Regularized(cx.Prediction("hinge", x, 1.0 if x[0] > 0 else -1.0), 0.1)

    hinge = cx.play(cx.OGD(D, eta=cx.StronglyConvex(0.1)), penalised, T)
    assert hinge.regret().holds() and hinge.regret().final > 0
    drifting = cx.play(cx.FTL(D), cx.DriftingTarget(D, T), T).regret()
    assert drifting.holds() and drifting.final > 0


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("where", ["ball", "box", "L1", "simplex"])
def test_the_newton_step_on_exp_concave_losses(loss, where):
    set, generator, rounds = SETS[where], np.random.default_rng(2), 150
    X = generator.normal(size=(rounds, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ (1, -1, 0.5, 0) + generator.normal(size=rounds) * 0.3 > 0, 1.0, -1.0)
    S = 1.4  # |⟨w, x⟩ |: the box's corner
    alpha = cx.Prediction(loss, X[0], 1.0).exp_concavity(S)
    assert alpha == pytest.approx(math.exp(-S) if loss == "logistic" else 1 / (1 + S) ** 2)
    player = cx.ONS(D, set, G=1.0 if loss == "logistic" else 1 + S, alpha=alpha)
    game = cx.play(player, cx.Examples(zip(X, y, strict=True), loss), rounds)
    assert all(set.contains(w, 1e-7) for w in game.points)
    regret = game.regret()
    assert regret.holds() and regret.final > 0
    for _ in range(3):
        assert game.regret(set.project(generator.normal(size=D))).holds()


def test_regret_grows_like_ln_t_for_newton_and_slower_than_t_for_descent():
    def final(make, rounds, loss):
        generator = np.random.default_rng(3)
        X = generator.normal(size=(rounds, D))
        y = X @ (0.3, -0.2, 0.1, 0.4) + generator.normal(size=rounds) * 0.2
        X, y = X / 4, np.clip(y / 4, -1, 1)
        return cx.play(make(), cx.Examples(zip(X, y, strict=True), loss), rounds).regret()

    short, long = (final(lambda: cx.OGD(D, BALL, eta="theory"), n, "absolute") for n in (200, 1600))
    assert short.average[-1] > 1.5 * long.average[-1] > 0


def test_standing_at_zero_but_for_rounding_is_standing_at_zero():
    away = cx.Outward(3, seed=1)
    w = np.array([0.3, -0.4, 0.0])
    np.testing.assert_allclose(away(1, w).z, w / 0.5)
    np.testing.assert_allclose(away(2, 1e-6 * w).z, w / 0.5)  # near, but a direction
    drawn = np.random.default_rng(1).normal(size=3)
    np.testing.assert_allclose(away(3, 1e-16 * w).z, drawn / np.linalg.norm(drawn))
    tiny = cx.Outward(3, seed=1)
    np.testing.assert_allclose(tiny(1, 1e-200 * w).z, w / 0.5)  # a player of tiny steps has never been farther


@pytest.mark.parametrize("eta", [cx.Doubling(2, 1), cx.Horizon(2, 1, 500)], ids=["doubling", "horizon"])
def test_regret_does_not_depend_on_how_points_are_rounded(eta):
    class Nudged(cx.L2Ball):
        def project(self, v):
            return super().project(v) * (1 + 2e-16 * generator.integers(-1, 2, size=len(v)))

    generator = np.random.default_rng(0)
    results = [cx.play(cx.OGD(2, ball, eta=eta), cx.Outward(2), 500).regret() for ball in (cx.L2Ball(), Nudged())]
    assert results[0].final == pytest.approx(results[1].final, rel=1e-9)
    np.testing.assert_allclose(results[0].bound, results[1].bound, rtol=1e-9)


# -- the tests bite ---------------------------------------------------------------------------------------------------


def test_a_halved_constant_fails():
    """Pushed outwards, lazy projection regrets more than ‖u‖²/(2η) + (η/4)Σ‖z‖², and descent more than half of
    (3/2)DG√T with D = r."""
    game = cx.play(cx.FTRL(D, BALL, eta=0.05), cx.Outward(D), 2000)
    assert not np.any(game.best().u)  # pushed there and back: every point of the ball loses 0 in all
    regret = game.regret(np.eye(D)[0])
    first, second = 1 / (2 * 0.05), 0.5 * 0.05 * 2000
    assert regret.bound[-1] == pytest.approx(first + second)
    assert first + 0.5 * second < regret.final <= first + second
    quadratic = cx.play(cx.OGD(1, eta=cx.StronglyConvex(1.0)), lambda t, w: cx.Quadratic([(-1.0) ** t]), 500).regret()
    assert 0.5 * quadratic.bound[-1] < quadratic.final


def test_a_player_with_the_wrong_sign_breaks_its_bound():
    """Wikipedia prints the lazy step without its minus sign (spec 00 §15)."""

    class Printed(cx.FTRL):
        def _move(self, z):
            self.theta = self.theta + z
            self.w = self.set.project(self.w1 + self.eta * self.theta)

    regret = cx.play(Printed(D, BALL, eta=0.1), cx.RandomLinear(D, mean=[0.5, 0, 0, 0]), T).regret()
    assert not regret.holds()


# -- rounds that are refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("bad", [[1.0, 2.0], [1.0, float("nan"), 0, 0], [0, 0, 0, float("inf")], "z", [[1, 2, 3, 4]]])
def test_a_malformed_gradient_changes_nothing(name, bad):
    player = PLAYERS[name](SETS[ONLY.get(name, ["ball"])[0]])
    player.learn([0.1, 0.2, -0.1, 0.0])
    before = {key: getattr(value, "tobytes", lambda value=value: value)() for key, value in vars(player).items()}
    with pytest.raises(errors.InputError):
        player.learn(bad)
    assert before == {
        key: getattr(value, "tobytes", lambda value=value: value)() for key, value in vars(player).items()
    }


def test_overflow_is_refused():
    player = cx.OGD(2, eta=1e10)
    player.learn([1.0, 1.0])
    before = player.w
    with pytest.raises(errors.NumericalError):
        player.learn([1e300, 0.0])
    assert player.w is before and player.t == 1


@pytest.mark.parametrize(("make", "word"), [
    (lambda: cx.L2Ball(0), "r=0"),
    (lambda: cx.L1Ball(-1), "r=-1"),
    (lambda: cx.Simplex(float("nan")), "nan"),
    (lambda: cx.Box(1, 0), "lo"),
    (lambda: cx.Halfspace([0.0, 0.0]), "not 0"),
    (lambda: cx.Intersection([cx.Reals()]), "two"),
    (lambda: cx.OGD(0), "d=0"),
    (lambda: cx.OGD(2, eta=-1), "expected"),
    (lambda: cx.OGD(2, eta="theory"), "bounded"),
    (lambda: cx.OGD(2, eta="best"), "best"),
    (lambda: cx.OGD(2, 3.0), "set"),
    (lambda: cx.EG(2, cx.Box()), "simplex"),
    (lambda: cx.EGPlusMinus(2, cx.Box()), "L1"),
    (lambda: cx.PNorm(2, p=3), "p=3"),
    (lambda: cx.ONS(2), "gamma"),
    (lambda: cx.FTRL(2, eta=0), "eta"),
    (lambda: cx.Regularized(cx.Linear([1.0]), 0), "lam"),
    (lambda: cx.play(cx.OGD(1), cx.Alternating(), 0), "T=0"),
    (lambda: cx.Reals().linear_argmin([1.0]), "least value"),
    (lambda: cx.NoiseBursts(cx.Alternating(), 2, 3), "length"),
])  # fmt: skip
def test_wrong_parameters_are_named(make, word):
    with pytest.raises(errors.ParameterError, match=word):
        make()


def test_a_loss_of_other_dimensions_is_named():
    with pytest.raises(errors.InputError, match="round 1: the loss has 1 dimensions, the player 2"):
        cx.play(cx.OGD(2), cx.Alternating(), 3)


def test_sets_that_do_not_intersect_raise_an_error():
    apart = cx.Intersection([cx.Halfspace([1.0, 0.0], -1.0), cx.Halfspace([-1.0, 0.0], -1.0)], rounds=200)
    with pytest.raises(errors.InputError, match="do the sets intersect"):
        apart.project([0.0, 0.0])


def test_linear_losses_on_intersections():
    set = cx.Intersection([cx.Simplex(), cx.Box(0.0, 0.4)])
    np.testing.assert_allclose(set.linear_argmin([3.0, 1.0, 2.0, 0.0]), (0, 0.4, 0.2, 0.4), atol=1e-9)


def test_exponentiated_gradient_is_hedge():
    generator, eg, hedge = np.random.default_rng(7), cx.EG(5, eta=0.3), experts.Hedge(5, eta=0.3)
    for c in generator.random((40, 5)):
        np.testing.assert_allclose(eg.w, hedge.weights, atol=1e-12)
        eg.learn(c), hedge.learn(c)
