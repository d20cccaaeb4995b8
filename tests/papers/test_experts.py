"""Prediction with expert advice: the spec's worked numbers, transcriptions, and the adversary of the lecture."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onepass import errors, experts

ADVICE = [(1, 1, 0, 0), (1, 0, 1, 0), (0, 1, 1, 0), (1, 1, 1, 0)]


def test_consistent_and_halving_numbers():
    """Expert 2 is always right: one mistake each (spec 04 §2)."""
    said = {}
    for kind in (experts.Consistent, experts.Halving):
        algorithm = kind(4)
        said[kind] = []
        for advice, answer in zip(ADVICE, (0, 1, 1, 1), strict=True):
            said[kind].append(algorithm.predict(advice))
            algorithm.learn(advice, answer)
        assert algorithm.mistakes == 1
        assert np.flatnonzero(algorithm.consistent).tolist() == [2]
    assert said[experts.Consistent] == [1, 1, 1, 1] and said[experts.Halving] == [0, 0, 1, 1]


def test_weighted_majority_numbers():
    algorithm, said, weights = experts.WeightedMajority(4, beta=0.5), [], []
    for advice, answer in zip(ADVICE, (0, 1, 0, 1), strict=True):
        said.append(algorithm.predict(advice))
        algorithm.learn(advice, answer)
        weights.append(0.5**algorithm.errors)
    assert said == [0, 0, 1, 1] and algorithm.mistakes == 2
    expected = [(0.5, 0.5, 1, 1), (0.5, 0.25, 1, 0.5), (0.5, 0.125, 0.5, 0.5), (0.5, 0.125, 0.5, 0.25)]
    np.testing.assert_allclose(weights, expected)


def test_hedge_numbers():
    hedge, p, weights = experts.Hedge(4, eta=0.5), [], []
    for advice, answer in zip(ADVICE, (0, 1, 0, 1), strict=True):
        p.append(hedge.predict(advice))
        hedge.learn(advice, answer)
        weights.append(hedge.weights)
    np.testing.assert_allclose(p, (0.5, 0.5, 0.529993, 0.703077), atol=1e-6)
    expected = [(0.18877, 0.18877, 0.31123, 0.31123), (0.235004, 0.142537, 0.387456, 0.235004),
                (0.296923, 0.109232, 0.296923, 0.296923), (0.336201, 0.123681, 0.336201, 0.203916)]  # fmt: skip
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert hedge.loss == pytest.approx(1.826915, abs=1e-6)
    assert hedge.losses.tolist() == [1, 3, 1, 2]
    first = (0.5 * 1 + math.log(4)) / (1 - math.exp(-0.5))
    assert first == pytest.approx(4.794006, abs=1e-6) and 2 * 1 + 4 * math.log(4) == pytest.approx(7.545177, abs=1e-6)
    assert 1 + hedge.bound(4, 1) == pytest.approx(min(first, 1 + math.log(4) / 0.5 + 0.5 * 4 / 8))


@pytest.mark.parametrize(
    ("N", "wrong", "claimed", "right"), [(100, 24.988, 16.651, 1.040), (1000, 250.0, 52.655, 3.291)]
)
def test_the_printed_eta_fails_and_the_corrected_one_holds(N, wrong, claimed, right):
    """Peña 1c prints η = √(N ln M) with the bound 2√(N ln M): spec 04 §5."""
    printed = experts.play(experts.Hedge(2, eta=math.sqrt(N * math.log(2))), experts.Heaviest(), N).regret()
    assert 2 * math.sqrt(N * math.log(2)) == pytest.approx(claimed, abs=1e-3)
    assert printed.final == pytest.approx(wrong, abs=1e-3) and printed.final > claimed
    meant = experts.play(experts.Hedge(2, eta=math.sqrt(math.log(2) / N)), experts.Heaviest(), N).regret()
    assert (
        0 < meant.final == pytest.approx(right, abs=1e-3) and meant.final < 9 / 8 * math.sqrt(N * math.log(2)) < claimed
    )


def test_doubling_is_a_new_hedge_for_1_2_4_rounds():
    """Each with the η of its own horizon, and nothing of what came before."""
    generator = np.random.default_rng(2)
    doubling, fresh = experts.Hedge(3, eta="doubling"), experts.Hedge(3, eta="horizon", horizon=1)
    for t in range(1, 40):
        if t & (t - 1) == 0:
            fresh = experts.Hedge(3, eta="horizon", horizon=t)
        np.testing.assert_allclose(doubling.weights, fresh.weights, rtol=1e-12)
        losses = generator.random(3)
        for hedge in (doubling, fresh):
            hedge.learn(losses)


def test_the_opposite_label():
    """Spec 04 §8: a deterministic learner errs every time, a randomised one about half."""
    majority = experts.WeightedMajority(2)
    experts.OppositeLabel().against(majority, 100)
    assert majority.mistakes == 100 and majority.losses.tolist() == [50, 50] and majority.regret == 50
    hedge = experts.Hedge(2, eta=math.sqrt(8 * math.log(2) / 100))
    experts.OppositeLabel().against(hedge, 100)
    assert hedge.loss == pytest.approx(52.929998, abs=1e-6) and hedge.regret == pytest.approx(2.929998, abs=1e-6)
    assert hedge.regret <= hedge.bound(100, 50) == pytest.approx(5.887050, abs=1e-6)


def test_regression_numbers():
    advice = [(0.1, 0.5, 0.9), (0.2, 0.6, 0.8), (0.3, 0.5, 0.7), (0.4, 0.5, 1)]
    algorithm, p, own = experts.ExponentialWeights(3), [], []
    for row, answer in zip(advice, (0.8, 0.7, 0.6, 0.9), strict=True):
        p.append(algorithm.predict(row))
        before = algorithm.loss
        algorithm.learn(row, answer)
        own.append(algorithm.loss - before)
    np.testing.assert_allclose(p, (0.5, 0.558269, 0.522744, 0.664557), atol=1e-6)
    np.testing.assert_allclose(own, (0.09, 0.020088, 0.005968, 0.055433), atol=1e-6)
    np.testing.assert_allclose(algorithm.weights, (0.239158, 0.358571, 0.402271), atol=1e-6)
    assert algorithm.regret == pytest.approx(0.131489, abs=1e-6) and algorithm.bound(4, 0) == pytest.approx(
        2.197225, abs=1e-6
    )


def test_fixed_share_numbers():
    algorithm, weights, own = experts.FixedShare(2, eta=1.0, alpha=0.1), [], []
    for c in ((0, 1), (0, 1), (1, 0), (1, 0)):
        weights.append(algorithm.weights)
        before = algorithm.loss
        algorithm.learn(c)
        own.append(algorithm.loss - before)
    expected = [(0.5, 0.5), (0.707953, 0.292047), (0.831413, 0.168587), (0.6302, 0.3698)]
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(algorithm.weights, (0.39681, 0.60319), atol=1e-6)
    np.testing.assert_allclose(own, (0.5, 0.292047, 0.831413, 0.6302), atol=1e-6)


def test_fixed_share_without_a_share_is_hedge():
    generator = np.random.default_rng(0)
    a, b = experts.FixedShare(5, eta=0.3, alpha=0.0), experts.Hedge(5, eta=0.3)
    for c in generator.random((50, 5)):
        a.learn(c), b.learn(c)
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-12)


def test_adahedge_is_its_transcription():
    """De Rooij, van Erven, Grünwald, Koolen 2014, figure 1, with exponentials as they stand there."""
    generator, algorithm = np.random.default_rng(1), experts.AdaHedge(4)
    L, Delta, total = np.zeros(4), 0.0, 0.0
    for c in generator.random((60, 4)):
        if Delta == 0:
            w = (min(L) == L) / np.sum(min(L) == L)
            mix = min(L + c) - min(L)
        else:
            eta = math.log(4) / Delta
            w = np.exp(-eta * (L - min(L)))
            w /= w.sum()
            mix = -math.log(w @ np.exp(-eta * c)) / eta
        np.testing.assert_allclose(algorithm.weights, w, atol=1e-12)
        algorithm.learn(c)
        total += w @ c
        Delta += max(0.0, w @ c - mix)
        L += c
    assert algorithm.loss == pytest.approx(total) and algorithm.gap == pytest.approx(Delta)


def test_the_probabilities_of_the_perturbed_leader_are_its_frequencies():
    algorithm = experts.FollowPerturbedLeader(5, epsilon=0.4)
    algorithm.losses = np.array([3.0, 0.5, 2.0, 0.5, 9.0])
    algorithm.t = 20
    noise = np.random.default_rng(2).exponential(1 / 0.4, size=(400_000, 5))
    counts = np.bincount(np.argmin(algorithm.losses - noise, axis=1), minlength=5) / 400_000
    np.testing.assert_allclose(algorithm.weights, counts, atol=4e-3)
    assert algorithm.weights.sum() == pytest.approx(1)
    leaders = []
    for t in range(2000):
        algorithm.t = t
        leaders.append(algorithm.leader)
    np.testing.assert_allclose(np.bincount(leaders, minlength=5) / 2000, algorithm.weights, atol=0.04)


def test_log_mixture_is_bayes():
    generator, algorithm, joint = np.random.default_rng(3), experts.LogMixture(3), np.ones(3) / 3
    for _ in range(30):
        p, answer = generator.uniform(0.05, 0.95, 3), int(generator.integers(2))
        assert algorithm.predict(p) == pytest.approx(joint @ p / joint.sum())
        algorithm.learn(p, answer)
        joint *= p if answer else 1 - p
    assert algorithm.loss == pytest.approx(-math.log(joint.sum())) and algorithm.regret <= math.log(3)


# -- bounds, on streams that bite -------------------------------------------------------------------------------------

MAKES = {
    "hedge, eta": lambda M, N: experts.Hedge(M, eta=0.2),
    "hedge, half": lambda M, N: experts.Hedge(M, eta=0.5),
    "hedge, horizon": lambda M, N: experts.Hedge(M, horizon=N),
    "hedge, anytime": lambda M, N: experts.Hedge(M, eta="anytime"),
    "hedge, doubling": lambda M, N: experts.Hedge(M, eta="doubling"),
    "hedge, corrected": lambda M, N: experts.Hedge(M, eta=math.sqrt(math.log(M) / N)),
    "adahedge": lambda M, N: experts.AdaHedge(M),
    "fixed share": lambda M, N: experts.FixedShare(M, switches=3, horizon=N),
    "perturbed": lambda M, N: experts.FollowPerturbedLeader(M, horizon=N),
}
ADVERSARIES = {
    "random": lambda M: experts.RandomLosses(M, 0.5, seed=5),
    "one good": lambda M: experts.RandomLosses(M, [0.1] + [0.5] * (M - 1), seed=6),
    "half": lambda M: experts.HeaviestHalf(),
    "heaviest": lambda M: experts.Heaviest(),
}


@pytest.mark.parametrize("against", ADVERSARIES)
@pytest.mark.parametrize("name", MAKES)
def test_regret_stays_within_the_bound(name, against):
    for M, N in ((2, 300), (9, 300)):
        game = experts.play(MAKES[name](M, N), ADVERSARIES[against](M), N)
        regret = game.regret()
        t = np.arange(1, N + 1)
        lowest = np.min(np.cumsum(game.losses, axis=0), axis=1)
        bound = game.algorithm.bound(t, lowest)
        own = np.cumsum(game.own) - lowest
        if name == "hedge, horizon":
            assert own[-1] <= math.sqrt(N * math.log(M) / 2)
        assert np.all(own <= bound * (1 + 1e-9))
        assert regret.bound is None or regret.holds()
        if against in ("half", "heaviest"):
            assert own[-1] > 0.05 * bound[-1] > 0


def test_a_halved_constant_fails():
    """That the bounds bite: the weights are kept even until near the end, then one expert alone is right."""
    N, M, bound = 400, 16, math.sqrt(400 * math.log(16) / 2)

    def patient(n, weights):
        return experts.HeaviestHalf()(n, weights) if n <= N - 60 else np.arange(M) > 0

    game = experts.play(experts.Hedge(M, horizon=N), patient, N)
    assert 0.75 * bound < game.algorithm.regret <= bound


@pytest.mark.parametrize("aggregating", [False, True])
def test_regression_regret(aggregating):
    generator = np.random.default_rng(8)
    bound = (0.5 if aggregating else 2.0) * 4 * math.log(6)
    for adversary in ("random", "far end"):
        algorithm = experts.ExponentialWeights(6, -1, 1, aggregating=aggregating)
        for _ in range(400):
            f = generator.uniform(-1, 1, 6)
            answer = f[2] if adversary == "random" else (-1.0 if algorithm.predict(f) > 0 else 1.0)
            algorithm.learn(f, float(np.clip(answer + generator.normal() * 0.1, -1, 1)))
        assert algorithm.bound(400, 0) == pytest.approx(bound)
        assert algorithm.regret <= bound


def test_tracking_with_fixed_share():
    """Four spells of 100 rounds, a new best expert each: Fixed Share follows the sequence, Hedge the best single
    one.
    """
    N, k, M = 400, 3, 5
    sequence = np.repeat([0, 3, 1, 4], 100)
    generator = np.random.default_rng(9)
    losses = (generator.random((N, M)) < 0.6).astype(float)
    losses[np.arange(N), sequence] = 0.0
    share = experts.play(experts.FixedShare(M, switches=k, horizon=N), losses).regret(sequence)
    hedge = experts.play(experts.Hedge(M, horizon=N), losses)
    assert share.holds() and share.final > 0
    assert share.loss[-1] < 0.5 * hedge.own.sum()


@pytest.mark.parametrize("seed", range(5))
def test_realisable_bounds_are_kept_and_tight(seed):
    generator, M = np.random.default_rng(seed), 16
    table = generator.integers(2, size=(60, M))
    for kind, most in ((experts.Consistent, M - 1), (experts.Halving, 4)):
        algorithm = kind(M)
        for row in table:
            algorithm.learn(row, row[7])
        assert algorithm.mistakes <= most == algorithm.bound(60, 0)
    halving = experts.Halving(M, tie=0)
    for bit in range(4):  # half say 1 and are right: the tie errs each time
        halving.learn((np.arange(M) >> bit) & 1, 1)
    assert halving.mistakes == 4


def test_weighted_majority_bound():
    generator = np.random.default_rng(11)
    for beta in (0.0, 0.3, 0.5, 0.8):
        for always in (True, False):
            algorithm = experts.WeightedMajority(8, beta, update_always=always)
            for _ in range(200):
                advice = generator.integers(2, size=8)
                answer = 1 - algorithm.predict(advice) if beta else advice[3]
                algorithm.learn(advice, int(answer))
            assert algorithm.regret <= algorithm.bound(200, algorithm.losses.min()) + 1e-9


# -- bandits ----------------------------------------------------------------------------------------------------------


def pull(bandit, means, N, seed):
    generator, earned = np.random.default_rng(seed), 0.0
    table = (generator.random((N, len(means))) < means).astype(float)
    for row in table:
        arm = bandit.choose()
        assert bandit.choose() == arm
        bandit.learn(arm, row[arm])
        earned += row[arm]
    return earned, table.sum(axis=0).max()


@pytest.mark.parametrize("kind", [experts.UCB, experts.Thompson])
def test_bandits_find_the_best_arm(kind):
    means, N = [0.2, 0.5, 0.8], 1000
    regrets = []
    for seed in range(3):
        bandit = kind(3) if kind is experts.UCB else kind(3, seed=seed)
        pull(bandit, means, N, seed)
        regrets.append(float(bandit.pulls @ (0.8 - np.array(means))))
        assert np.argmax(bandit.pulls) == 2
    assert np.mean(regrets) <= experts.UCB.bound(means, N)
    assert np.mean(regrets) < 0.15 * N * (0.8 - 0.5)


def test_ucb_is_its_formula():
    bandit = experts.UCB(2)
    for arm, reward in ((0, 1.0), (1, 0.0), (0, 0.0), (0, 1.0)):
        bandit.learn(arm, reward)
    scores = [2 / 3 + math.sqrt(2 * math.log(4) / 3), 0 + math.sqrt(2 * math.log(4) / 1)]
    assert bandit.choose() == int(np.argmax(scores)) == 1


def test_exp3_against_its_transcription_and_bound():
    """Auer et al. 2002, fig. 1: p = (1 − γ)w/Σw + γ/K, w ← w·exp(γx̂/K)."""
    bandit, w, gamma = experts.EXP3(3, gamma=0.2, seed=1), np.ones(3), 0.2
    generator = np.random.default_rng(4)
    for _ in range(40):
        p = (1 - gamma) * w / w.sum() + gamma / 3
        np.testing.assert_allclose(bandit.probabilities, p, atol=1e-12)
        arm, reward = bandit.choose(), float(generator.random())
        bandit.learn(arm, reward)
        w[arm] *= math.exp(gamma * reward / p[arm] / 3)
    lost = []
    for seed in range(4):
        bandit = experts.EXP3(4, horizon=800, seed=seed)
        earned, most = pull(bandit, [0.3, 0.4, 0.5, 0.7], 800, seed)
        lost.append(most - earned)
    assert 0 < np.mean(lost) <= bandit.bound(most)


def test_replay_is_unbiased():
    generator, means = np.random.default_rng(5), np.array([0.2, 0.7, 0.4])

    class Always(experts.Bandit):
        def choose(self):
            return 1

    arms = generator.integers(3, size=6000)
    log = [(int(arm), float(generator.random() < means[arm])) for arm in arms]
    result = experts.replay(Always(3), log)
    assert abs(result.matched / 6000 - 1 / 3) < 0.03
    assert result.value == pytest.approx(0.7, abs=4 * result.error) and 0 < result.error < 0.02
    learned = experts.replay(experts.Thompson(3), log)
    assert learned.value > 0.6


# -- experts of every kind, and broken advice -------------------------------------------------------------------------


def test_a_panel_of_functions_models_and_columns():
    import onepass as op

    panel = experts.Panel([lambda x: 0, lambda x: int(x[0] > 0), op.LinearModel("pa1", classes=[0, 1])])
    generator = np.random.default_rng(6)
    X = generator.normal(size=(300, 2))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    hedge = experts.Hedge(3)
    said = panel.follow(hedge, zip(X, y.tolist(), strict=True))
    assert np.argmax(hedge.weights) == 2 and np.mean((np.array(said[100:]) > 0.5) != y[100:]) < 0.1
    columns = experts.Panel(np.column_stack([np.zeros(300), y]))
    halving = experts.Halving(2)
    assert columns.follow(halving, zip(range(300), y.tolist(), strict=True))[-1] == y[-1]


@pytest.mark.parametrize("bad", [[0.1, 0.2], [0.1, 0.2, float("nan")], [0.1, 0.2, 1.5], "abc", [[0.1, 0.2, 0.3]]])
@pytest.mark.parametrize("kind", [experts.Hedge, experts.AdaHedge, experts.FixedShare, experts.FollowPerturbedLeader])
def test_malformed_losses_change_nothing(kind, bad):
    algorithm = kind(3)
    algorithm.learn([0.1, 0.5, 0.9])
    before = (algorithm.weights.tobytes(), algorithm.loss, algorithm.t, algorithm.losses.tobytes())
    with pytest.raises(errors.InputError):
        algorithm.learn(bad)
    with pytest.raises(errors.InputError):
        algorithm.learn(bad, 1)
    with pytest.raises(errors.InputError):
        algorithm.learn([0.1, 0.2, 0.3], float("inf"))
    assert before == (algorithm.weights.tobytes(), algorithm.loss, algorithm.t, algorithm.losses.tobytes())


def test_an_unrealisable_round_is_refused_before_it_counts():
    halving = experts.Halving(2)
    halving.learn([0, 1], 0)
    with pytest.raises(errors.NotRealizableError, match="round 2"):
        halving.learn([0, 1], 1)
    assert halving.t == 1 and halving.predict([0, 1]) == 0
    again = experts.Halving(2, on_empty="reset")
    again.learn([0, 1], 0), again.learn([0, 1], 1)
    assert again.consistent.all()
    assert experts.Halving(3).predict(["b", "a", "a"]) == "a"


@pytest.mark.parametrize(("make", "word"), [
    (lambda: experts.Hedge(0), "M=0"),
    (lambda: experts.Hedge(2, eta=-1), "eta=-1"),
    (lambda: experts.Hedge(2, eta="magic"), "magic"),
    (lambda: experts.Hedge(2, eta="horizon"), "horizon"),
    (lambda: experts.Hedge(2, prior=[1, 2]), "prior"),
    (lambda: experts.WeightedMajority(2, beta=1.0), "beta"),
    (lambda: experts.FixedShare(2, alpha=1.0), "alpha"),
    (lambda: experts.ExponentialWeights(2, 1, 0), "low"),
    (lambda: experts.EXP3(2, gamma=0), "gamma"),
    (lambda: experts.Halving(2, on_empty="x"), "on_empty"),
    (lambda: experts.Consistent(2, choice="last"), "choice"),
    (lambda: experts.FollowPerturbedLeader(2, epsilon=0), "epsilon"),
])  # fmt: skip
def test_wrong_parameters_are_named(make, word):
    with pytest.raises(errors.ParameterError, match=word):
        make()
