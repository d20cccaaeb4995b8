"""RLS in its other forms, as references: a Cholesky factor of Γ⁻¹ by Givens rotations, Joseph's form, and the plain one
as it is usually written. Specification 02 §1. Ours is the plain form on one triangle, which cannot lose its symmetry.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from onepass.model import LinearModel

from .streams import R
from .test_gaussian import sigma_of

Array = np.ndarray


class Plain:
    """k = Γx/(φ + v); w ← w + ke; Γ ← (Γ − k(Γx)ᵀ)/φ, both triangles of it."""

    def __init__(self, d: int, lam: float, phi: float) -> None:
        self.gamma, self.w, self.phi = np.eye(d) / lam, np.zeros(d), phi

    def learn(self, x: Array, y: float) -> None:
        g = self.gamma @ x
        k = g / (self.phi + x @ g)
        self.w = self.w + k * (y - self.w @ x)
        self.gamma = self.changed(g, k, x) / self.phi

    def changed(self, g: Array, k: Array, x: Array) -> Array:
        return self.gamma - np.outer(k, g)

    def positive_definite(self) -> bool:
        return bool(np.linalg.eigvalsh((self.gamma + self.gamma.T) / 2).min() > 0)


class Joseph(Plain):
    """Γ ← ((I − kxᵀ)Γ(I − kxᵀ)ᵀ + φkkᵀ)/φ: the noise of an observation is φ in the units of Γ before it ages."""

    def changed(self, g: Array, k: Array, x: Array) -> Array:
        kept = np.eye(len(x)) - np.outer(k, x)
        made = kept @ self.gamma @ kept.T + self.phi * np.outer(k, k)
        return np.asarray((made + made.T) / 2)


class Cholesky:
    """LLᵀ = Γ⁻¹ ← φΓ⁻¹ + xxᵀ, one rotation a column; b = Γ⁻¹w ← φb + yx; w by two triangular systems."""

    def __init__(self, d: int, lam: float, phi: float) -> None:
        self.L, self.b, self.phi = np.eye(d) * np.sqrt(lam), np.zeros(d), phi

    def learn(self, x: Array, y: float) -> None:
        self.b = self.phi * self.b + y * x
        self.L *= np.sqrt(self.phi)
        x = x.copy()
        for j in range(len(x)):
            r = np.hypot(self.L[j, j], x[j])
            c, s = self.L[j, j] / r, x[j] / r
            column = self.L[j:, j].copy()
            self.L[j:, j], x[j:] = c * column + s * x[j:], c * x[j:] - s * column

    @property
    def w(self) -> Array:
        return np.asarray(solve_triangular(self.L.T, solve_triangular(self.L, self.b, lower=True)))

    @property
    def gamma(self) -> Array:
        half = solve_triangular(self.L, np.eye(len(self.b)), lower=True)
        return np.asarray(half.T @ half)


def thin(rounds: int, across: float, seed: int = 0) -> Iterator[tuple[Array, float]]:
    """Rows along one direction, with this much of all others; answers of fixed weights, and noise."""
    rng = np.random.default_rng(seed)
    along, truth = rng.normal(size=3), rng.normal(size=3)
    X = np.outer(rng.normal(size=rounds), along) + across * rng.normal(size=(rounds, 3))
    return zip(X, (X @ truth + 0.01 * rng.normal(size=rounds)).tolist(), strict=True)


def ours(phi: float, lam: float = 1.0) -> LinearModel:
    return LinearModel(f"rls:lam={lam},forgetting={phi}", "regression", fit_intercept=False)


@pytest.mark.parametrize("form", [Plain, Joseph, Cholesky])
@pytest.mark.parametrize("phi", [1.0, 0.97])
def test_every_form_is_rls(form: type, phi: float) -> None:
    """Weights and Γ at every step, within 1e-8, on a well-conditioned stream."""
    model, reference = ours(phi, 0.5), form(3, 0.5, phi)
    for x, y in thin(120, 1.0):
        model.learn_one(x, y)
        reference.learn(x, y)
        np.testing.assert_allclose(model.weights()[0][0], reference.w, rtol=0, atol=1e-8)
        np.testing.assert_allclose(sigma_of(model), reference.gamma, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", [Plain, Joseph, Cholesky])
def test_every_form_has_the_worked_numbers(form: type) -> None:
    for phi, last in ((1.0, (0.45, 0.95)), (0.9, (0.388786, 0.978802))):
        reference = form(2, 1.0, phi)
        for x, y, *_ in R:
            reference.learn(np.array(x, dtype=float), float(y))
        np.testing.assert_allclose(reference.w, last, atol=1e-6)


@pytest.mark.parametrize(("across", "within"), [(1.0, 1e-12), (1e-3, 1e-8)])
def test_one_triangle_stays_where_two_come_apart(across: float, within: float) -> None:
    """With forgetting, the rounding in which two triangles differ grows like φ^−t: the plain form loses Γ > 0 within a
    thousand rounds, even where nothing is badly conditioned; ours is the Cholesky form's to the end."""
    model, plain, cholesky = ours(0.95), Plain(3, 1.0, 0.95), Cholesky(3, 1.0, 0.95)
    lost = None
    for t, (x, y) in enumerate(thin(3000, across)):
        for each in (plain, cholesky):
            each.learn(x, y)
        model.learn_one(x, y)
        if lost is None and t % 50 == 0 and not plain.positive_definite():
            lost = t
    assert lost is not None and lost < 1500
    assert np.linalg.eigvalsh(sigma_of(model)).min() > 0 and np.all(np.diag(cholesky.L) > 0)
    np.testing.assert_allclose(model.weights()[0][0], cholesky.w, rtol=0, atol=within)


def test_it_is_the_cholesky_form_after_a_hundred_thousand_rounds() -> None:
    """What came more than 1,500 rounds before the end weighs 0.95^1500 < 1e-33: the reference need not see it."""
    rows = list(thin(100_000, 1e-2))
    model, cholesky = ours(0.95), Cholesky(3, 1e-9, 0.95)
    model.learn_many(np.array([x for x, _ in rows]), np.array([y for _, y in rows]))
    for x, y in rows[-1500:]:
        cholesky.learn(x, y)
    assert np.linalg.eigvalsh(sigma_of(model)).min() > 0
    np.testing.assert_allclose(model.weights()[0][0], cholesky.w, rtol=0, atol=1e-9)
    np.testing.assert_allclose(sigma_of(model), cholesky.gamma, rtol=1e-6)
