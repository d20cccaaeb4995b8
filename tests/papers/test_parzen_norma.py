"""Parzen's classifier and NORMA against short transcriptions, and the worked numbers of the specification."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onepass as op
from onepass import budgets, kernels, rules
from onepass.errors import ParameterError
from onepass.models.kernel import KernelModel

X4 = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
Y4 = np.array([-1, -1, 1, 1])


def table(n: int = 200, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, 2)) + 1.5 * np.stack([np.cos(2 * y), np.sin(2 * y)], axis=1), y


# -- Parzen ------------------------------------------------------------------------------------------------------------


def test_parzen_worked_numbers() -> None:
    query = np.array([[0.2, 0.9]])
    two = KernelModel("parzen", kernel=kernels.RBF(0.5))
    two.learn_many(X4, Y4)
    assert two.score_many(query)[0, 0] == pytest.approx(1.459634 - 1.376297, abs=2e-6)
    rows = KernelModel("parzen", "multiclass", kernel=kernels.RBF(0.5), classes=[-1, 1, 2])
    rows.learn_many(X4, Y4)
    np.testing.assert_allclose(rows.score_many(query)[0], [1.376297, 1.459634, 0.0], atol=1e-6)


WINDOWS: dict[str, tuple[kernels.Kernel, Any]] = {
    "gauss": (kernels.RBF(0.5), lambda u2: np.exp(-u2 / 2)),
    "epanechnikov": (kernels.Epanechnikov(0.7), lambda u2: np.maximum(0.0, 1 - u2 / 0.49)),
    "box": (kernels.Box(0.6), lambda u2: (u2 <= 0.36) * 1.0),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("form", ["dense", "sparse", "wide"])
def test_parzen_is_the_sum_of_each_class(window: str, form: str) -> None:
    import scipy.sparse

    kernel, k = WINDOWS[window]
    X, y = table()
    if form == "wide":  # more features than are squared one by one
        X = np.hstack([X, np.zeros((len(X), 40))])
    model = KernelModel("parzen", kernel=kernel)
    model.learn_many(scipy.sparse.csr_matrix(X) if form == "sparse" else X, y)
    query = np.vstack([X[:20] + 0.1, X[:20]])
    got = model.score_many(scipy.sparse.csr_matrix(query) if form == "sparse" else query)
    distances = np.sum((query[:, None] - X[None]) ** 2, axis=2)
    wanted = np.stack([np.sum(k(distances) * (y == c), axis=1) for c in model.classes], axis=1)
    np.testing.assert_allclose(got, wanted, atol=1e-9)


def test_parzen_lets_classes_in_as_they_come() -> None:
    """The third class finds the sums of the first two whole, not halved differences."""
    X, y = table()
    order = np.argsort(y == 2, kind="stable")  # class 2 last
    grown = KernelModel("parzen", kernel=kernels.RBF(0.5))
    for x, label in zip(X[order], y[order].tolist(), strict=True):
        grown.learn_one(x, label)
    declared = KernelModel("parzen", "multiclass", kernel=kernels.RBF(0.5), classes=[0, 1, 2])
    declared.learn_many(X[order], y[order])
    columns = [grown.classes.index(c) for c in (0, 1, 2)]
    np.testing.assert_allclose(grown.score_many(X)[:, columns], declared.score_many(X), atol=1e-12)


def test_parzen_prior_window_and_majority() -> None:
    X, y = table(90)
    far = np.array([[50.0, 50.0]])
    y[:50] = 1
    nothing = op.KernelClassifier("parzen", kernel="box:h=0.5", fit_intercept=True, intercept_scaling=1e-75)
    assert nothing.fit(X, y).predict(far)[0] == 1  # no example near: the majority
    assert op.KernelClassifier("parzen", kernel="box:h=0.5").fit(X, y).predict(far)[0] == 0  # or the lowest class
    means = op.KernelClassifier("parzen", kernel="rbf:gamma=0.5", class_weight="balanced").fit(X, y)
    K = kernels.RBF(0.5).block(X, X)
    wanted = np.stack([K[:, y == c].mean(axis=1) for c in (0, 1, 2)], axis=1)
    got = means.decision_function(X)
    np.testing.assert_allclose(got / got.sum(axis=1, keepdims=True), wanted / wanted.sum(axis=1, keepdims=True))
    newest = op.KernelClassifier("parzen", kernel="rbf:gamma=0.5", budget=budgets.Oldest(30)).fit(X, y)
    assert sorted(newest.births_.tolist()) == list(range(61, 91))


def test_a_reservoir_is_a_uniform_sample() -> None:
    """Every example is kept with probability B/n: of 400 seeds each about B/n, no matter when it came."""
    n, B, seeds = 60, 12, 400
    kept = np.zeros(n)
    for seed in range(seeds):
        model = KernelModel("parzen", kernel="rbf:gamma=1", budget=budgets.Reservoir(B, seed=1000 * seed + 7))
        model.learn_many(np.arange(n, dtype=float)[:, None], np.arange(n) % 2)
        assert model.n_support == B
        kept[model.births - 1] += 1
    share = kept / seeds
    deviation = np.sqrt(B / n * (1 - B / n) / seeds)
    assert np.max(np.abs(share - B / n)) < 4.5 * deviation
    assert abs(np.mean(share[: n // 2]) - np.mean(share[n // 2 :])) < 0.03


# -- NORMA -------------------------------------------------------------------------------------------------------------


def norma(
    X: Any, y: Any, eta: Any, lam: float, rho: float, nu: float | None, gamma: float
) -> tuple[Any, Any, list[Any]]:
    """Kivinen, Smola and Williamson's update, term by term; the margins on the way."""
    c = np.zeros(0)
    margins = []
    for t in range(len(X)):
        k = np.exp(-gamma * np.sum((X[:t] - X[t]) ** 2, axis=1))
        margins.append(rho)
        wrong = y[t] * float(k @ c) <= rho
        c = np.append((1 - eta(t + 1) * lam) * c, eta(t + 1) * y[t] if wrong else 0.0)
        if nu is not None:
            rho = max(0.0, rho - eta(t + 1) * (wrong - nu))
    return c, rho, margins


@pytest.mark.parametrize("nu", [None, 0.1, 0.6])
@pytest.mark.parametrize("schedule", ["constant", "inv_sqrt"])
def test_norma_is_the_paper(nu: float | None, schedule: str) -> None:
    X, y = table(150, classes=2)
    signs = 2 * y - 1
    eta = (lambda t: 0.5) if schedule == "constant" else (lambda t: 0.5 / np.sqrt(t))
    wanted, rho, _ = norma(X, signs, eta, 0.1, 1.0, nu, 1.0)
    model = KernelModel(rules.NORMA(0.1, 0.5, schedule, nu=nu), kernel=kernels.RBF(1.0))
    model.learn_many(X, signs)
    got = np.zeros(len(X))
    got[model.births - 1] = model.coefficients[:, 0]
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    assert 1.0 + model._engine.state()["slots"][0] == pytest.approx(rho, abs=1e-12)


def test_norma_worked_numbers() -> None:
    model = KernelModel("norma:lam=0.1,eta=0.5,schedule=constant", kernel=kernels.RBF(1.0))
    model.learn_many(X4, Y4)
    np.testing.assert_allclose(model.coefficients[:, 0], [-0.428687, -0.45125, 0.475, 0.5], atol=1e-6)


def test_nu_is_the_share_of_margin_errors() -> None:
    X, y = table(4000, classes=2, seed=1)
    for nu in (0.4, 0.6):
        _, _, margins = norma(X[:600], 2 * y[:600] - 1, lambda t: 0.2, 0.05, 1.0, nu, 1.0)
        model = KernelModel(rules.NORMA(0.05, 0.2, "constant", nu=nu), kernel="rbf:gamma=1", budget=budgets.Oldest(400))
        model.learn_many(X, 2 * y - 1)
        assert model.k / model.t == pytest.approx(nu, abs=0.05)
        assert margins[-1] > 0


def test_norma_without_shrinking_is_the_perceptron() -> None:
    X, y = table(150, classes=2)
    models = [KernelModel(r, kernel="rbf:gamma=1") for r in ("norma:lam=0,rho=0,eta=1,schedule=constant", "perceptron")]
    for model in models:
        model.learn_many(X, y)
    np.testing.assert_array_equal(models[0].coefficients, models[1].coefficients)
    np.testing.assert_array_equal(models[0].births, models[1].births)


@pytest.mark.parametrize("tolerance", [0.3, 0.01])
def test_truncation_stays_within_its_tolerance(tolerance: float) -> None:
    X, y = table(1500, classes=2, seed=2)
    rule = rules.NORMA(0.05, 0.5, "constant")
    window = rule.window(tolerance)
    assert (1 - 0.025) ** window / 0.05 <= tolerance < (1 - 0.025) ** (window - 1) / 0.05
    whole = KernelModel(rule, kernel="rbf:gamma=1")
    cut = KernelModel(rule, kernel="rbf:gamma=1", budget=budgets.Oldest(window))
    for model in (whole, cut):
        model.learn_many(X, y)
    assert cut.n_support <= window < whole.n_support
    at, c = whole.births - 1, whole.coefficients[:, 0]
    old = np.where(whole.births <= len(X) - window, c, 0.0)
    gap = np.sqrt(old @ kernels.RBF(1.0).block(X[at], X[at]) @ old)
    assert 0 < gap <= tolerance  # what is cut off weighs no more than the paper's bound


def test_refusals() -> None:
    with pytest.raises(ParameterError, match=r"eta\*lam < 1"):
        rules.NORMA(lam=2.0, eta=0.5)
    with pytest.raises(ParameterError, match="constant"):
        rules.NORMA().window(0.1)
    with pytest.raises(ParameterError, match="tolerance"):
        rules.NORMA(schedule="constant").window(0.0)
