"""Stepwise and batch EM against a transcription of spec 13 and scikit-learn; recovery of known parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn import mixture as theirs

import onepass as op

KINDS = ("full", "tied", "diag", "spherical")


def gaussians(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    weights, means = np.array([0.2, 0.5, 0.3]), np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    z = generator.choice(3, n, p=weights)
    return means[z] + generator.normal(size=(n, 2)) * np.array([1.0, 0.7]), weights, means


def matched(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Which found component stands for each true one: the pairing of least total distance."""
    cost = np.linalg.norm(truth[:, None] - found[None], axis=2)
    return linear_sum_assignment(cost)[1]


def em_step(X: np.ndarray, pi: Any, mu: Any, cov: Any, kind: str) -> tuple[Any, Any, Any, float]:
    """Section 1's table of M-steps, as it stands."""
    n, d = X.shape
    K = len(pi)
    density = np.array([pi[k] * multivariate_normal(mu[k], cov[k]).pdf(X) for k in range(K)]).T
    r = density / density.sum(axis=1, keepdims=True)
    N = r.sum(axis=0)
    mu = (r.T @ X) / N[:, None]
    S = np.array([(r[:, k, None] * (X - mu[k])).T @ (X - mu[k]) / N[k] for k in range(K)])
    if kind == "tied":
        S = np.tile(np.einsum("k,kij->ij", N / n, S), (K, 1, 1))
    if kind == "diag":
        S = np.array([np.diag(np.diag(s)) for s in S])
    if kind == "spherical":
        S = np.array([np.eye(d) * np.trace(s) / d for s in S])
    return N / n, mu, S, float(np.log(density.sum(axis=1)).mean())


@pytest.mark.parametrize("kind", KINDS)
def test_batch_em_is_the_table_and_scikit_learns(kind: str) -> None:
    X = gaussians(400)[0] + 100.0  # far from 0, where s2/s0 − μμᵀ loses digits unless shifted
    pi, mu = np.array([0.3, 0.3, 0.4]), X[[5, 50, 200]]
    initial = {
        "full": np.tile(np.eye(2), (3, 1, 1)),
        "tied": np.eye(2),
        "diag": np.ones((3, 2)),
        "spherical": np.ones(3),
    }
    model = op.GaussianMixture(
        3, covariance=kind, mode="batch", max_iter=5, tol=0, cov_floor=1e-9,
        weights_init=pi, means_init=mu, covariances_init=initial[kind],
    ).fit(X)  # fmt: skip
    cov, likelihoods = np.tile(np.eye(2), (3, 1, 1)), []
    sklearn = theirs.GaussianMixture(
        3, covariance_type=kind, max_iter=5, tol=0, reg_covar=0.0, weights_init=pi, means_init=mu,
        precisions_init=initial[kind],
    )  # fmt: skip
    with pytest.warns(Warning, match="did not converge"):
        sklearn.fit(X)
    for _ in range(5):
        pi, mu, cov, likelihood = em_step(X, pi, mu, cov, kind)
        likelihoods.append(likelihood)
    np.testing.assert_allclose(model.weights_, pi, atol=1e-10)
    np.testing.assert_allclose(model.means_, mu, atol=1e-9)
    full = model._kind.as_full(model.covariances_, 3, 2)
    np.testing.assert_allclose(full, cov, atol=1e-9)
    np.testing.assert_allclose(model.log_likelihoods_, likelihoods, atol=1e-9)
    np.testing.assert_allclose(model.means_, sklearn.means_, atol=1e-8)
    np.testing.assert_allclose(model.covariances_, sklearn.covariances_, atol=1e-8)
    np.testing.assert_allclose(model.score_samples(X), sklearn.score_samples(X), atol=1e-7)
    np.testing.assert_allclose(model.predict_proba(X), sklearn.predict_proba(X), atol=1e-8)
    assert model.bic(X) == pytest.approx(sklearn.bic(X)) and model.aic(X) == pytest.approx(sklearn.aic(X))


@pytest.mark.parametrize(
    "make", [*(lambda k=k: op.GaussianMixture(3, covariance=k) for k in KINDS), lambda: op.BernoulliMixture(3)]
)
def test_one_step_over_everything_is_one_step_of_batch_em(make: Any) -> None:
    """η = 1: spec test 1, exactly."""
    model = make()
    X = gaussians(200)[0]
    X = (X > 1).astype(float) if isinstance(model, op.BernoulliMixture) else X
    w = np.random.default_rng(3).choice([0.5, 1.0, 2.0], len(X))
    batch, stepwise = (model._new_state() for _ in range(2))
    for state in (batch, stepwise):
        state._reader.native.settle(2)
        state.widen(2)
        model._seed(state, X, w)
    model._em_step(batch, X, w)
    model._rate = lambda step: 1.0
    model.burn_in = 0
    model._step(stepwise, X, w)
    for name in ("weights", "means", "s0", "s1", *(() if isinstance(model, op.BernoulliMixture) else ("cov", "s2"))):
        np.testing.assert_array_equal(getattr(batch, name), getattr(stepwise, name))


@pytest.mark.parametrize("kind", [*KINDS, "bernoulli"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_likelihood_of_batch_em_never_falls(kind: str, seed: int) -> None:
    X = gaussians(500, seed)[0]
    options: dict[str, Any] = {"mode": "batch", "tol": 0, "max_iter": 40, "random_state": seed}
    if kind == "bernoulli":
        X = (np.random.default_rng(seed).random((500, 12)) < 0.3).astype(float)
        model: Any = op.BernoulliMixture(4, p_floor=1e-9, **options).fit(X)
    else:
        model = op.GaussianMixture(4, covariance=kind, cov_floor=1e-9, **options).fit(X)
    assert np.all(np.diff(model.log_likelihoods_) >= -1e-8)
    assert model.log_likelihoods_[-1] > model.log_likelihoods_[0]


@pytest.mark.parametrize("kind", KINDS)
def test_recovery_in_three_passes(kind: str) -> None:
    """Spec test 4: within 0.02 nats of scikit-learn, weights within 0.03."""
    X, weights, means = gaussians(3000)
    best = theirs.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X).score(X)
    model = op.GaussianMixture(3, covariance=kind, passes=3).fit(X)
    assert model.score(X) > best - 0.02
    at = matched(model.means_, means)
    np.testing.assert_allclose(model.weights_[at], weights, atol=0.03)
    np.testing.assert_allclose(model.means_[at], means, atol=0.2)


def test_recovery_of_patterns() -> None:
    """Spec test 5: one pass, the best of five starts, near batch EM."""
    generator = np.random.default_rng(2)
    truth = generator.uniform(0.05, 0.95, size=(3, 20))
    z = generator.choice(3, 4000, p=[0.5, 0.3, 0.2])
    X = (generator.random((4000, 20)) < truth[z]).astype(float)
    batch = max(op.BernoulliMixture(3, mode="batch", tol=1e-6, random_state=seed).fit(X).score(X) for seed in range(5))
    for options, gap in (({"schedule": "1/n"}, 0.01), ({"kappa": 0.9}, 0.01), ({"kappa": 0.6, "batch_size": 50}, 0.03)):
        fits = [op.BernoulliMixture(3, **{"batch_size": 5, **options}, random_state=seed).fit(X) for seed in range(5)]
        best = max(fits, key=lambda model: model.score(X))
        assert best.score(X) > batch - gap
    at = matched(best.means_, truth)
    assert np.abs(best.means_[at] - truth).max() < 0.12


def test_worked_example() -> None:
    """Spec 13, the hand example: K = 2, η = ½."""
    model = op.BernoulliMixture(2, schedule="constant", eta=0.5, batch_size=40, burn_in=0, p_floor=1e-3,
                                means_init=[[0.8, 0.4], [0.3, 0.6]], weights_init=[0.5, 0.5])  # fmt: skip
    state = model._new_state()
    x = np.array([[1.0, 0.0]])
    model._seed(state, x, np.ones(1))
    likelihood, r = model._responsibilities(state, x)
    np.testing.assert_allclose(r, [[0.8, 0.2]], atol=1e-12)
    assert likelihood[0] == pytest.approx(-1.203973, abs=1e-6)
    model._step(state, x, np.ones(1))
    np.testing.assert_allclose(state.s0, [0.65, 0.35], atol=1e-12)
    np.testing.assert_allclose(state.s1, [[0.6, 0.1], [0.175, 0.15]], atol=1e-12)
    np.testing.assert_allclose(state.means, [[0.923077, 0.153846], [0.5, 0.428571]], atol=1e-6)


def test_schedules_and_change() -> None:
    """Means that jump at half time: schedules that forget beat 1/n by a nat and more."""
    generator = np.random.default_rng(0)
    centers = np.array([[-2.0, 0.0], [2.0, 0.0]])
    X = centers[generator.integers(0, 2, 6000)] + generator.normal(size=(6000, 2))
    X[3000:, 1] += 4.0

    def after(**options: Any) -> float:
        model = op.GaussianMixture(2, **options)
        model.partial_fit(X[:3500])
        before = model._state.likelihood, model._state.learned
        model.partial_fit(X[3500:])
        return (model._state.likelihood - before[0]) / (model._state.learned - before[1])

    slow = after(schedule="1/n", batch_size=1)
    assert after(schedule="power", batch_size=1) > slow + 1.0
    assert after(schedule="constant", eta=0.5, batch_size=50) > slow + 1.0
    with pytest.warns(UserWarning, match="batch_size of 20 n_components = 40 or more"):
        op.GaussianMixture(2, schedule="constant", eta=0.5, batch_size=1).fit(X[:200])


def test_revival_and_starvation() -> None:
    generator = np.random.default_rng(1)
    X = np.concatenate([generator.normal(size=(600, 2)), generator.normal(8.0, 1.0, size=(600, 2))])
    X = generator.permutation(X)
    start = {"means_init": [[0.0, 0.0], [500.0, 500.0]], "covariances_init": np.ones((2, 2)), "init_size": 50}
    dead = op.GaussianMixture(2, **start).partial_fit(np.tile(X, (4, 1)))
    assert dead.weights_.min() < 1e-3 and dead.n_starved_ > 0 and dead.n_revived_ == 0
    alive = op.GaussianMixture(2, revive=0.02, **start).partial_fit(X)
    assert alive.n_revived_ > 0 and alive.weights_.min() > 0.1
    assert alive.score(X) > dead.score(X) + 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_hard_inputs_stay_finite(kind: str) -> None:
    for X in (
        np.ones((50, 3)),
        np.random.default_rng(0).normal(size=(60, 3)) * 1e6,
        np.ones((2, 3)) * 1e6 + np.eye(3)[:2],
    ):
        for mode in ("online", "batch"):
            model = op.GaussianMixture(5, covariance=kind, mode=mode).fit(X)
            for value in (model.weights_, model.means_, model.covariances_, model.score_samples(X)):
                assert np.all(np.isfinite(value))
            np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
            np.testing.assert_allclose(model.weights_.sum(), 1)


def test_samples_and_anomalies() -> None:
    X, _, means = gaussians(2000)
    for kind in KINDS:
        model = op.GaussianMixture(3, covariance=kind, mode="batch").fit(X)
        drawn, labels = model.sample(5000, random_state=1)
        assert drawn.shape == (5000, 2) and set(labels) == {0, 1, 2}
        np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.15)
        np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T), atol=0.35)
        np.testing.assert_array_equal(model.sample(5, random_state=1)[0], model.sample(5, random_state=1)[0])
        far = model.anomaly_score(np.array([[30.0, 30.0]]))[0]
        assert far > np.max(model.anomaly_score(X)) and far == pytest.approx(model.anomaly_score_one([30.0, 30.0]))
        assert (model.predict(means) == [model.predict_one(m) for m in means]).all()
    patterns = op.BernoulliMixture(2, mode="batch").fit((X > 1).astype(float))
    assert set(np.unique(patterns.sample(100)[0])) <= {0.0, 1.0}
    scores = {
        K: op.GaussianMixture(K, covariance="diag", mode="batch", random_state=1).fit(X).bic(X) for K in (1, 2, 3, 6)
    }
    assert min(scores, key=scores.__getitem__) == 3
