"""Second-order rules: RLS, Kalman, AROW, CW, SCW, NHERD, ONS. Specification 02 §1–§7."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.extras import require_extra

from onepass import rules
from onepass.estimators.linear import LinearRegressor
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner
from onepass.scheme.spread import FORMS

from . import gaussian_transcriptions as papers
from .bounds import assert_within
from .streams import A, Example, R, comparators, opposite, play, random_stream, with_constant
from .ways import WAYS, learn, model_of, same, weights_of

# ---- worked numbers of the specification ----

WORKED: dict[str, tuple[str, list[Example], list[tuple[float, float]], Any]] = {
    **{
        f"rls:form={form}": (
            "regression",
            R,
            [(0.5, 0), (1, 1), (1, 1), (0.45, 0.95)],
            [[0.175, -0.075], [-0.075, 0.175]],
        )
        for form in FORMS
    },
    **{
        f"rls:forgetting=0.9,form={form}": (
            "regression",
            R,
            [(0.526316, 0), (1.03941, 1.083199), (1.062594, 1.02037), (0.388786, 0.978802)],
            None,
        )
        for form in FORMS
    },
    "kalman": ("regression", R, [(0.5, 0), (1, 1), (1, 1), (0.45, 0.95)], [[0.175, -0.075], [-0.075, 0.175]]),
    "arow:covariance=full": (
        "binary",
        A,
        [(0.166667, 0.333333), (-0.166667, 0.5), (0.041667, 0.291667), (0.125, 0.375), (0.125, 0.416667)],
        [[0.125, 0], [0, 0.083333]],
    ),
    "arow": (
        "binary",
        A,
        [(0.166667, 0.333333), (-0.190476, 0.404762), (0.054945, 0.085714), (0.174419, 0.232558), (0.174419, 0.353153)],
        [0.173456, 0.11273],
    ),
    "arow:diag=exact": (
        "binary",
        A,
        [(0.166667, 0.333333), (-0.145833, 0.395833), (0.046875, 0.203125), (0.130208, 0.286458), (0.130208, 0.357639)],
        [0.125, 0.083333],
    ),
    "cw:eta=0.9,covariance=full": (
        "binary",
        A,
        [(0.352577, 0.705154), (-0.352577, 1.057731), (0.540417, 0.164737), (0.657439, 0.281758), (0.750877, 0.410792)],
        [[0.127959, 0.074403], [0.074403, 0.102748]],
    ),
    "scw1:C=0.5,eta=0.9,covariance=full": (
        "binary",
        A,
        [
            (0.352577, 0.705154),
            (-0.352577, 1.057731),
            (-0.163353, 0.868507),
            (-0.046332, 0.985529),
            (-0.046332, 0.985529),
        ],
        [[0.243389, 0.025152], [0.025152, 0.243389]],
    ),
    "scw2:C=0.5,covariance=full": (
        "binary",
        A,
        [(0.310327, 0.620654), (-0.310327, 0.930982), (0.125428, 0.495226), (0.219772, 0.589571), (0.223202, 0.597792)],
        [[0.228283, 0.093511], [0.093511, 0.224163]],
    ),
    "ons:loss=squared": (
        "regression",
        R,
        [(1, 0), (1.285714, 0.571429), (0.852166, 1.221751), (0.44488, 1.290332)],
        None,
    ),
}


def sigma_of(model: LinearModel) -> np.ndarray:
    """Σ of a one-row model without an intercept; with one, its coordinate is the last."""
    state = model._engine.state()
    if "planes" in state:
        kept = state["planes"][:, 0, 0]
        return np.append(kept, state["bias_planes"][0, 0, 0]) if model.fit_intercept else kept
    d = model.n_features + model.fit_intercept
    full = np.zeros((d, d))
    full[np.tril_indices(d)] = state["sigma"][0]
    if getattr(model.rule, "form", "gain") == "chol":  # UUᵀ = Σ⁻¹, column after column
        half = np.linalg.inv(full)
        full = half @ half.T
    else:
        full = full + np.tril(full, -1).T
    order = [*range(1, d), 0] if model.fit_intercept else list(range(d))
    return full[np.ix_(order, order)]


@pytest.mark.parametrize("text", WORKED)
def test_worked_numbers(text: str) -> None:
    task, stream, expected, sigma = WORKED[text]
    for way in WAYS.values():
        found = way(text, task, stream, fit_intercept=False)
        np.testing.assert_allclose(found[:, :2], expected, atol=1e-6)
    model = model_of(text, task, fit_intercept=False)
    for example in stream:
        learn(model, *example)
    if sigma is not None:
        np.testing.assert_allclose(sigma_of(model), sigma, atol=1e-6)


def test_vaw_predictions() -> None:
    """The forecaster shrinks what it predicts, not what it learns."""
    model = LinearModel("rls:forecast=vaw", "regression", fit_intercept=False)
    reference = ReferenceLearner("rls:forecast=vaw", "regression", fit_intercept=False)
    predicted = []
    for x, y, _ in R:
        predicted.append(model.predict_one(np.asarray(x, float)))
        assert reference.score(x) == pytest.approx(predicted[-1], abs=1e-15)
        learn(model, x, y)
        reference.learn(x, y)
    np.testing.assert_allclose(predicted, [0, 0.2, 0.588235, 1.275], atol=1e-6)
    np.testing.assert_allclose(model.weights()[0][0], [0.45, 0.95], atol=1e-12)


# ---- the papers ----

SLOPES = {"squared": lambda s, y: s - y, "logistic": lambda s, y: -y / (1 + math.exp(y * s))}
TRANSCRIBED: dict[str, tuple[str, Any]] = {
    **{
        f"rls:lam=0.3,forgetting={phi},form={form}": (
            "regression",
            lambda s, d, phi=phi: papers.ridge_afresh(s, d, 0.3, phi),
        )
        for form in FORMS
        for phi in (1, 0.97)
    },
    "arow:lam=0.3,covariance=full": (
        "regression",
        lambda s, d: ((w, 0.3 * gamma) for w, gamma in papers.ridge_afresh(s, d, 0.3)),
    ),
    "kalman:q=0.02,r=0.5,p0=2": ("regression", lambda s, d: papers.kalman(s, d, 0.02, 0.5, 2.0)),
    "arow:lam=0.7,covariance=full": ("binary", lambda s, d: papers.arow(s, d, 0.7)),
    "arow:lam=0.7": ("binary", lambda s, d: papers.arow_diagonal(s, d, 0.7, "drop")),
    "arow:lam=0.7,diag=exact": ("binary", lambda s, d: papers.arow_diagonal(s, d, 0.7, "exact")),
    "cw:eta=0.8,covariance=full": ("binary", lambda s, d: papers.confidence_weighted(s, d, 0.8)),
    "cw:eta=0.8,form=variance,covariance=full": ("binary", lambda s, d: papers.cw_variance(s, d, 0.8)),
    "scw1:C=0.2,eta=0.8,covariance=full": ("binary", lambda s, d: papers.confidence_weighted(s, d, 0.8, 0.2)),
    "scw2:C=0.2,eta=0.8,covariance=full": ("binary", lambda s, d: papers.confidence_weighted(s, d, 0.8, 0.2, True)),
    "nherd:C=0.3,covariance=full": ("binary", lambda s, d: papers.nherd(s, d, 0.3)),
    "ons:gamma=0.4,eps=2": ("binary", lambda s, d: papers.ons(s, d, 0.4, 2.0, SLOPES["logistic"])),
    "ons:loss=squared,gamma=0.8,eps=2": ("regression", lambda s, d: papers.ons(s, d, 0.8, 2.0, SLOPES["squared"])),
}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", TRANSCRIBED)
def test_transcriptions(text: str, seed: int) -> None:
    """μ and Σ after every round, with an intercept, importances and zero vectors, in both implementations."""
    task, transcribe = TRANSCRIBED[text]
    rng = np.random.default_rng(seed)
    stream = random_stream(rng, task, rounds=50, d=4, weighted="kalman" not in text or seed > 0)
    if "forgetting=0" in text:  # a round without weight is no round at all to the weights, but ages the closed form
        stream = [e for e in stream if e.c > 0]
    expected = list(transcribe(with_constant(stream), 5))
    tolerance = 1e-6 if text.startswith(("cw", "scw")) else 1e-8
    for way in WAYS.values():
        same(way(text, task, stream), [mu for mu, _ in expected], rtol=tolerance)
    model = model_of(text, task)
    for example, (_, sigma) in zip(stream, expected, strict=True):
        learn(model, *example)
        found = sigma_of(model)
        same(found, np.diag(sigma) if found.ndim == 1 else sigma, rtol=tolerance)


def test_rls_arow_and_ridge_are_one() -> None:
    """RLS ≡ AROW regression ≡ scikit-learn's Ridge ≡ River's Bayesian regression, at every step."""
    linear_model = require_extra("river.linear_model")
    ridge = require_extra("sklearn.linear_model").Ridge
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=40)
    for delta in (0.1, 1.0, 7.0):
        ours = {
            "rls": LinearModel(rules.RLS(lam=delta), "regression", fit_intercept=False),
            "arow": LinearModel(rules.AROW(lam=delta, covariance="full"), "regression", fit_intercept=False),
            "scaled": LinearModel(rules.AROW(sigma0=1 / delta, covariance="full"), "regression", fit_intercept=False),
        }
        bayes = linear_model.BayesianLinearRegression(alpha=1, beta=1 / delta)
        for t in range(len(X)):
            for model in ours.values():
                model.learn_one(X[t], y[t])
            bayes.learn_one(dict(enumerate(X[t])), y[t])
            afresh = ridge(alpha=delta, fit_intercept=False, solver="cholesky").fit(X[: t + 1], y[: t + 1]).coef_
            for name, model in ours.items():
                np.testing.assert_allclose(model.weights()[0][0], afresh, atol=1e-8, rtol=1e-8, err_msg=name)
            x = rng.normal(size=5)
            assert bayes.predict_one(dict(enumerate(x))) == pytest.approx(ours["rls"].predict_one(x), abs=1e-8)


@pytest.mark.parametrize("diagonal", [False, True])
def test_arow_minimises_its_criterion(diagonal: bool) -> None:
    """½max(0, 1 − y μ·x)² + ½xᵀΣx + λ KL has no better point, among all Σ or among diagonal ones."""
    rng = np.random.default_rng(5)
    rule = rules.AROW(lam=0.6, diag="exact") if diagonal else rules.AROW(lam=0.6, covariance="full")
    learner = ReferenceLearner(rule, fit_intercept=False)
    for x, y, _ in random_stream(rng, "binary", rounds=8, d=3):
        before = np.zeros(3) if learner._covariance is None else np.array(learner.w)
        shape = None if learner._covariance is None else learner._covariance.table[0]
        sigma = np.eye(3) if shape is None else (np.diag(shape[:3]) if diagonal else shape[:3, :3])
        record = learner.learn(x, y)
        if record.step.passive:
            continue

        def criterion(
            mu: np.ndarray, S: np.ndarray, x: Any = x, y: Any = y, before: Any = before, sigma: Any = sigma
        ) -> float:
            return 0.5 * max(0.0, 1 - y * (mu @ x)) ** 2 + 0.5 * (x @ S @ x) + 0.6 * papers.kl(mu, S, before, sigma)

        mu, S = papers.least(criterion, before, sigma, diagonal)
        assert learner._covariance is not None
        made = learner._covariance.table[0]
        np.testing.assert_allclose(learner.w, mu, atol=1e-4)
        np.testing.assert_allclose(np.diag(made[:3]) if diagonal else made[:3, :3], S, atol=1e-4)
        reached = criterion(np.array(learner.w), np.diag(made[:3]) if diagonal else made[:3, :3])
        assert reached <= criterion(mu, S) + 1e-9


def test_cw_reaches_its_constraint() -> None:
    """After an update y μ·x = φ√(xᵀΣx), and C → ∞ makes CW of both SCW."""
    stream = [e for e in random_stream(np.random.default_rng(8), "binary", rounds=40, d=3)]
    rule = rules.CW(eta=0.8, covariance="full")
    learner = ReferenceLearner(rule, fit_intercept=False)
    met = 0
    for x, y, _ in stream:
        if learner.learn(x, y).updated:
            met += 1
            assert y * learner.score(x) == pytest.approx(rule.quantile() * math.sqrt(learner.variance(x)), abs=1e-10)
    assert met > 10
    for soft in (rules.SCW1(C=1e12, eta=0.8, covariance="full"), rules.SCW2(C=1e12, eta=0.8, covariance="full")):
        same(WAYS["core"](soft, "binary", stream), WAYS["core"](rule, "binary", stream), rtol=1e-6)


# ---- guarantees ----


def arow_bound(learner: ReferenceLearner, stream: list[Example], u: np.ndarray, r: float) -> tuple[float, float]:
    """Mistakes and their bound (specification 02 §4); the learner's own rounds say where it updated."""
    margins = [e.y * record.score for e, record in zip(stream, learner.records, strict=True)]
    mistakes = sum(m <= 0 and np.any(e.x) for m, e in zip(margins, stream, strict=True))
    narrow = sum(0 < m < 1 for m in margins)
    updates = [e for e, m in zip(stream, margins, strict=True) if m < 1 and np.any(e.x)]
    XA = sum((np.outer(e.x, e.x) for e in updates), np.zeros((len(u), len(u))))
    losses = sum(max(0.0, 1 - e.y * float(u @ e.x)) for e in updates)
    logs = float(np.linalg.slogdet(np.eye(len(u)) + XA / r)[1])
    return mistakes, math.sqrt(r * float(u @ u) + float(u @ XA @ u)) * math.sqrt(logs + narrow) + losses - narrow


@pytest.mark.parametrize("r", [0.1, 1.0, 5.0])
def test_arow_mistake_bound(r: float) -> None:
    rng = np.random.default_rng(int(10 * r))
    tight = math.inf
    for noise in (0.1, 1.0):
        learner = ReferenceLearner(rules.AROW(lam=r, covariance="full"), fit_intercept=False)
        stream = random_stream(rng, "binary", rounds=80, d=4, noise=noise)
        for example in stream:
            learner.learn(*example)
        adversary = ReferenceLearner(rules.AROW(lam=r, covariance="full"), fit_intercept=False)
        played = play(adversary, rng.normal(size=(60, 4)), opposite)
        assert adversary.mistakes == 60
        for who, seen in ((learner, stream), (adversary, played)):
            X, y = np.array([e.x for e in seen]), np.array([e.y for e in seen])
            for u in comparators(rng, X, y):
                mistakes, bound = arow_bound(who, seen, u, r)
                assert_within(mistakes, bound, "AROW")
                tight = min(tight, bound / max(mistakes, 1))
    assert tight < 4, "a bound that nothing comes near would hold of anything"


def test_rls_identity_and_regret_bounds() -> None:
    """Σ e²/(1 + v) = min_u Σ (y − u·x)² + δ‖u‖² at every T; Vovk's and the clipped forecaster keep their bounds."""
    rng = np.random.default_rng(2)
    for adversarial in (False, True):
        delta, Y, T, d = 0.7, 1.0, 60, 3
        X, truth = rng.normal(size=(T, d)), rng.normal(size=d)
        learner = ReferenceLearner(rules.RLS(lam=delta), "regression", fit_intercept=False)
        vaw = ReferenceLearner(rules.RLS(lam=delta, forecast="vaw"), "regression", fit_intercept=False)
        ys, plain, hedged, scaled = [], 0.0, 0.0, 0.0
        for t in range(T):
            s = learner.score(X[t])
            y = (-Y if s > 0 else Y) if adversarial else float(np.clip(X[t] @ truth, -Y, Y))
            scaled += (y - s) ** 2 / (1 + learner.variance(X[t]))
            plain += (y - float(np.clip(s, -Y, Y))) ** 2
            hedged += (y - vaw.score(X[t])) ** 2
            learner.learn(X[t], y)
            vaw.learn(X[t], y)
            ys.append(y)
            A = delta * np.eye(d) + X[: t + 1].T @ X[: t + 1]
            u = np.linalg.solve(A, X[: t + 1].T @ np.array(ys))
            least = float(np.sum((X[: t + 1] @ u - ys) ** 2) + delta * u @ u)
            assert scaled == pytest.approx(least, rel=1e-10)
            D = float(np.linalg.slogdet(A / delta)[1])
            assert_within(plain, least + 4 * Y * Y * D, "clipped RLS")
            assert_within(hedged, least + Y * Y * D, "VAW")
        if adversarial:
            assert hedged > least + 0.05 * D, "an adversary that costs nothing shows nothing"


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_ons_regret_bound(task: str) -> None:
    """Regret ≤ (1/2γ) ln(det A/ε^d) + γεD²/2 wherever γ ≤ ½min(1/(4GD), α), G and D as they turned out."""
    rng = np.random.default_rng(11)
    d, T = 3, 120
    X = rng.normal(size=(T, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, np.newaxis]
    truth = rng.normal(size=d) / 2
    if task == "regression":
        y, loss, alpha = np.clip(X @ truth + 0.1 * rng.normal(size=T), -1, 1), "squared", 1 / 9.0
    else:
        y, loss, alpha = np.where(X @ truth + 0.3 * rng.normal(size=T) > 0, 1.0, -1.0), "logistic", math.exp(-2.0)
    rule = rules.ONS.from_constants(G=3.0, D=2.5, alpha=alpha, loss=loss)
    learner = ReferenceLearner(rule, task, fit_intercept=False)
    distances, suffered, slopes = [], 0.0, []
    for x, answer in zip(X, y, strict=True):
        distances.append(float(np.linalg.norm((np.zeros(d) if learner.t == 0 else learner.w) - truth)))
        s = learner.score(x)
        assert abs(s) <= 2, "where the losses are alpha-exp-concave"
        suffered += learner.learn(x, float(answer) if task == "regression" else int(answer)).loss
        slopes.append(abs(SLOPES[loss](s, answer)) * float(np.linalg.norm(x)))
    assert rule.gamma <= 0.5 * min(1 / (4 * max(slopes) * max(distances)), alpha)
    values = {"squared": lambda s, y: 0.5 * (y - s) ** 2, "logistic": lambda s, y: math.log1p(math.exp(-y * s))}
    best = sum(values[loss](float(x @ truth), a) for x, a in zip(X, y, strict=True))
    assert learner._covariance is not None
    A = np.linalg.inv(learner._covariance.table[0][:d, :d])
    logs = float(np.linalg.slogdet(A / rule.eps)[1])
    bound = logs / (2 * rule.gamma) + rule.gamma * rule.eps * max(distances) ** 2 / 2
    assert_within(suffered - best, bound, "ONS")
    assert bound < T / 2


# ---- how sure ----


def test_variances_are_those_of_bayesian_regression() -> None:
    """The deviation of y: √(noise·(1 + xᵀΓx)), noise given or estimated; as River has it for noise 1."""
    linear_model = require_extra("river.linear_model")
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 4))
    y = X @ rng.normal(size=4) + 0.5 * rng.normal(size=300)
    estimator = LinearRegressor(rules.RLS(noise_variance=1.0), fit_intercept=False).fit(X, y)
    bayes = linear_model.BayesianLinearRegression(alpha=1, beta=1)
    for row, answer in zip(X, y, strict=True):
        bayes.learn_one(dict(enumerate(row)), answer)
    mean, std = estimator.predict(X[:5], return_std=True)
    for i in range(5):
        theirs = bayes.predict_one(dict(enumerate(X[i])), with_dist=True)
        assert (mean[i], std[i]) == pytest.approx((theirs.mu, theirs.sigma), rel=1e-8)
        assert estimator.predict_one(X[i], std=True) == pytest.approx((mean[i], std[i]), rel=1e-15)
    estimated = LinearRegressor("rls", fit_intercept=False).fit(X, y)
    assert estimated.predict(np.zeros((1, 4)), return_std=True)[1][0] == pytest.approx(0.5, rel=0.1)
    low, high = estimated.predict_interval(X, coverage=0.9)
    assert 0.85 < np.mean((low <= y) & (y <= high)) < 0.95


def test_a_name_never_learned_has_its_variance() -> None:
    model = LinearModel("arow:sigma0=3,covariance=full", "regression", fit_intercept=False)
    assert model.variances([{"a": 2.0}])[0, 0] == pytest.approx(12.0)
    model.learn_one({"a": 1.0}, 1.0)
    known = model.variances([{"a": 2.0}])[0, 0]
    assert known < 12.0
    assert model.variances([{"a": 2.0, "b": 1.0}])[0, 0] == pytest.approx(known + 3.0)
    assert model.n_features == 1


# ---- the matrix over a long time ----


def test_a_million_updates_stay_positive_definite() -> None:
    """Badly scaled, nearly dependent features; forgetting and not. Checked natively on the way, and here at the end."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(20_000, 6)) * [1e-3, 1e-1, 1.0, 10.0, 100.0, 1.0]
    base[:, 5] = base[:, 2] + 1e-4 * rng.normal(size=20_000)
    y = base @ rng.normal(size=6) + rng.normal(size=20_000)
    labels = np.where(y > 0, 1, -1)
    for model, answers in (
        (LinearModel("rls", "regression"), y),
        (LinearModel("rls:forgetting=0.999", "regression"), y),
        (LinearModel("rls:forgetting=0.999,form=chol", "regression"), y),
        (LinearModel("arow:covariance=full,always_update_cov=true", classes=[-1, 1]), labels),
        (LinearModel("nherd:C=0.1,covariance=full", classes=[-1, 1]), labels),
    ):
        for _ in range(50):
            model.learn_many(base, answers)
        assert model.t == 1_000_000
        sigma = sigma_of(model)
        assert np.array_equal(sigma, sigma.T)
        assert np.all(np.linalg.eigvalsh(sigma / np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))) > 0)


def test_ridge_is_still_exact_after_many_rounds() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50_000, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=50_000)
    model = LinearModel("rls", "regression", fit_intercept=False)
    model.learn_many(X, y)
    np.testing.assert_allclose(model.weights()[0][0], np.linalg.solve(np.eye(5) + X.T @ X, X.T @ y), atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_forgetting_waits_rather_than_winding_up(form: str) -> None:
    """A feature that never comes again keeps its variance within max_gamma; the rounds are counted, in files too."""
    model = LinearModel(f"rls:forgetting=0.5,max_gamma=100,form={form}", "regression", fit_intercept=False)
    reference = ReferenceLearner("rls:forgetting=0.5,max_gamma=100", "regression", fit_intercept=False)
    for t in range(40):
        x = np.array([1.0, 1.0 if t == 0 else 0.0])
        model.learn_one(x, 1.0)
        reference.learn(x, 1.0)
        assert np.max(np.diag(sigma_of(model))) <= 100
    assert reference._covariance is not None
    same(sigma_of(model), reference._covariance.table[0][:2, :2])
    waited = model._engine.state()["sigma_waited"][0]
    assert waited > 20
    assert LinearModel.from_state(*model.state())._engine.state()["sigma_waited"][0] == waited


@pytest.mark.parametrize("form", FORMS)
def test_a_zero_vector_ages_what_forgets(form: str) -> None:
    model = LinearModel(f"rls:forgetting=0.5,form={form}", "regression", fit_intercept=False)
    model.learn_one(np.array([1.0, 0.0]), 1.0)
    before, w = sigma_of(model), weights_of(model)
    model.learn_one(np.zeros(2), 5.0)
    same(sigma_of(model), 2 * before, rtol=0.0 if form != "chol" else 1e-15)
    np.testing.assert_array_equal(weights_of(model), w)
