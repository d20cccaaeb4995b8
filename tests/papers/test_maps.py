"""Explicit feature maps: kernels without support vectors (spec 10 §12, §13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from support.estimator_checks import assert_checks_pass

from onepass import KernelClassifier, LinearClassifier, LinearRegressor, kernels
from onepass.errors import InputError, ParameterError
from onepass.kernels.maps import GaussianBasis, HistogramMap, Nystrom, RandomFourier

from .kernel_streams import checkerboard

X = np.random.default_rng(0).normal(size=(60, 4))


@pytest.mark.parametrize("kernel", [kernels.RBF(0.3), kernels.Laplacian(0.2)], ids=repr)
@pytest.mark.parametrize("form", ["paired", "phase"])
def test_random_fourier_error_falls_as_the_root_of_d(kernel: kernels.Kernel, form: str) -> None:
    wanted = kernel.block(X, X)

    def error(D: int) -> float:
        maps = (RandomFourier(kernel, D, form=form, seed=seed).fit_transform(X) for seed in range(6))
        return float(np.mean([np.mean(np.abs(z @ z.T - wanted)) for z in maps]))

    assert 1.6 <= error(500) / error(2000) <= 2.5
    assert error(2000) < 0.03
    if form == "paired":
        z = RandomFourier(kernel, 100).fit_transform(X)
        np.testing.assert_allclose(np.sum(z * z, axis=1), 1.0)


def test_nystrom_is_exact_on_the_landmarks_and_carries_a_function_over() -> None:
    kernel = kernels.RBF(0.3)
    nystrom = Nystrom(kernel, landmarks=X[:20]).fit(X)
    z = nystrom.transform(X)
    np.testing.assert_allclose(z[:20] @ z[:20].T, kernel.block(X[:20], X[:20]), atol=1e-8)
    c = np.random.default_rng(1).normal(size=20)
    np.testing.assert_allclose(z @ nystrom.weights_of(c), kernel.block(X, X[:20]) @ c, atol=1e-7)


@pytest.mark.parametrize(
    ("kernel", "order", "step", "error"),
    [("chi2", 2, 0.5, 0.012), ("chi2", 10, 0.25, 3e-4), ("intersection", 10, 0.25, 0.06)],
)
def test_histogram_maps_are_their_kernels(kernel: str, order: int, step: float, error: float) -> None:
    """Spec 10 §13: mean relative errors 0.8 %, 1.4e-4 and 4 %."""
    rng = np.random.default_rng(0)
    rows = rng.random((40, 12)) * (rng.random((40, 12)) < 0.8)
    z = HistogramMap(kernel, order, step=step).fit_transform(rows)
    wanted = kernels.make(kernel).block(rows, rows)
    relative = np.abs(z @ z.T - wanted) / wanted
    assert error / 10 < np.mean(relative) < error
    assert z.shape == (40, 12 * (2 * order + 1))


def test_histogram_maps_refuse() -> None:
    for wrong, word in (({"kernel": "rbf"}, "chi2"), ({"order": -1}, "order"), ({"step": 0.0}, "step")):
        with pytest.raises(ParameterError, match=word):
            HistogramMap(**wrong).fit(np.abs(X))
    with pytest.raises(InputError, match=">= 0"):
        HistogramMap().fit(np.abs(X)).transform(X)


def test_linear_learner_on_random_features_is_nearly_the_kernel_learner() -> None:
    (A, a), (B, b) = checkerboard(4000, 0), checkerboard(2000, 1)
    exact = KernelClassifier("pa1", kernel=kernels.RBF(8.0)).fit(A, a).score(B, b)
    for kind in (RandomFourier(kernels.RBF(8.0), 2000), Nystrom(kernels.RBF(8.0), 300)):
        model = make_pipeline(kind, LinearClassifier("pa1", fit_intercept=False)).fit(A, a)
        assert model.score(B, b) > exact - 0.03, kind


def test_gaussian_basis_of_the_lecture() -> None:
    """Spec 10 §12, Fig. 31.5: one pass of PA-II (λ = 1) from θ = 0; RMSE 0.056 ± 0.012 over 20 seeds."""
    grid = np.linspace(-3, 3, 1000)[:, None]
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = np.linspace(-3, 3, 50)[:, None]
        order = rng.permutation(50)
        y = np.sinc(x[:, 0]) + 0.1 * x[:, 0] + 0.05 * rng.normal(size=50)
        basis = GaussianBasis(h=0.3).fit(x)
        model = LinearRegressor("pa2:lam=1,epsilon=0", fit_intercept=False).fit(basis.transform(x[order]), y[order])
        true = np.sinc(grid[:, 0]) + 0.1 * grid[:, 0]
        errors.append(float(np.sqrt(np.mean((model.predict(basis.transform(grid)) - true) ** 2))))
    assert np.mean(errors) == pytest.approx(0.056, abs=0.012)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "kind", [GaussianBasis(), RandomFourier(D=20), HistogramMap(), Nystrom(n_landmarks=10)], ids=repr
)
def test_scikit_learn_checks(kind: Any) -> None:
    assert_checks_pass(kind, failing=(), least=30)


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (GaussianBasis(h=0), "h=0"),
        (GaussianBasis(centres=[[1.0]]), "rows of 4"),
        (RandomFourier(D=3), "even"),
        (RandomFourier(form="x"), "'paired' or 'phase'"),
        (RandomFourier("linear"), "rbf and laplacian"),
        (Nystrom(n_landmarks=0), "n_landmarks=0"),
        (Nystrom("sigmoid"), "not definite"),
        (Nystrom(landmarks=[[1.0]]), "rows of 4"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_refusals(made: Any, word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        made.fit(X)


def test_malformed_rows_are_refused() -> None:
    with pytest.raises(InputError):
        GaussianBasis().fit(np.array([[np.nan]]))
