"""RLS in its three forms (`form=`), each against all three written as in the textbooks: the plain one over the whole Γ,
Joseph's, and a Cholesky factor of Γ⁻¹ by Givens rotations. Specification 02 §1. Which of ours keeps how many digits.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from onepass.errors import NumericalError
from onepass.models.linear import LinearModel
from onepass.scheme.spread import FORMS

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


def thin(rounds: int, across: float, seed: int = 0, noise: float = 0.01) -> tuple[Array, Array]:
    """Rows along one direction, with this much of all others; answers of fixed weights, and noise."""
    rng = np.random.default_rng(seed)
    along, truth = rng.normal(size=3), rng.normal(size=3)
    X = np.outer(rng.normal(size=rounds), along) + across * rng.normal(size=(rounds, 3))
    return X, X @ truth + noise * rng.normal(size=rounds)


def resting(rounds: int, rest: int) -> tuple[Array, Array]:
    """Six features that for so many rounds come in three combinations, then in three others."""
    rng = np.random.default_rng(0)
    truth, X = rng.normal(size=6), np.zeros((rounds, 6))
    for t in range(0, rounds, rest):
        X[t : t + rest] = rng.normal(size=(min(rest, rounds - t), 3)) @ rng.normal(size=(3, 6))
    return X, X @ truth + 0.01 * rng.normal(size=rounds)


def by_orthogonal_triangles(X: Array, y: Array, lam: float, phi: float) -> tuple[Array, Array]:
    """w and Γ of all rows at once, by QR, which never squares a condition number; nothing recursive."""
    n, d = X.shape
    age = np.arange(n - 1, -1, -1)
    X, y, age = X[age < 4000], y[age < 4000], age[age < 4000]
    root = phi ** (age / 2)
    Q, upper = np.linalg.qr(np.vstack([root[:, np.newaxis] * X, lam**0.5 * phi ** (n / 2) * np.eye(d)]))
    half = solve_triangular(upper, np.eye(d))
    return half @ (Q.T @ np.append(root * y, np.zeros(d))), half @ half.T


def ours(phi: float, lam: float = 1.0, form: str = "gain", max_gamma: float = 1e12) -> LinearModel:
    rule = f"rls:lam={lam},forgetting={phi},form={form},max_gamma={max_gamma}"
    return LinearModel(rule, "regression", fit_intercept=False)


def digits_lost(model: LinearModel, X: Array, y: Array, lam: float, phi: float) -> tuple[float, float]:
    """How far w and Γ are off after learning all rows, relative to the largest entry."""
    model.learn_many(X, y)
    w, gamma = by_orthogonal_triangles(X, y, lam, phi)
    found = sigma_of(model)
    assert np.linalg.eigvalsh(found).min() > 0
    off = np.abs(model.weights()[0][0] - w).max() / np.abs(w).max(), np.abs(found - gamma).max() / np.abs(gamma).max()
    return float(off[0]), float(off[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reference", [Plain, Joseph, Cholesky])
@pytest.mark.parametrize("phi", [1.0, 0.97])
def test_every_form_is_rls(reference: type, phi: float, form: str) -> None:
    """Weights and Γ at every step, on a well-conditioned stream."""
    model, paper = ours(phi, 0.5, form), reference(3, 0.5, phi)
    for x, y in zip(*thin(60, 1.0), strict=True):
        model.learn_one(x, y)
        paper.learn(x, y)
        np.testing.assert_allclose(model.weights()[0][0], paper.w, rtol=0, atol=1e-10)
        np.testing.assert_allclose(sigma_of(model), paper.gamma, rtol=1e-10, atol=1e-10)


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
    for t, (x, y) in enumerate(zip(*thin(3000, across), strict=True)):
        for each in (plain, cholesky):
            each.learn(x, y)
        model.learn_one(x, y)
        if lost is None and t % 50 == 0 and not plain.positive_definite():
            lost = t
    assert lost is not None and lost < 1500
    assert np.linalg.eigvalsh(sigma_of(model)).min() > 0 and np.all(np.diag(cholesky.L) > 0)
    np.testing.assert_allclose(model.weights()[0][0], cholesky.w, rtol=0, atol=within)


@pytest.mark.parametrize("form", FORMS)
def test_all_are_exact_after_a_hundred_thousand_rounds(form: str) -> None:
    w, gamma = digits_lost(ours(0.95, form=form), *thin(100_000, 1e-2), 1.0, 0.95)
    assert w < 1e-12 and gamma < 1e-12


NEARLY_DEPENDENT = (*thin(3000, 1e-6, noise=1e-8), 1.0, 0.95)
RESTING = (*resting(5000, 450), 1.0, 0.95)


@pytest.mark.parametrize(("stream", "within"), [(NEARLY_DEPENDENT, 1e-10), (RESTING, 1e-12)], ids=["thin", "resting"])
def test_a_factor_keeps_digits_that_the_matrix_loses(stream: tuple[Array, Array, float, float], within: float) -> None:
    """Features that depend on each other but for a millionth; combinations that rest for 450 rounds with φ = 0.95."""
    *_, lam, phi = stream
    assert digits_lost(ours(phi, lam, "chol"), *stream)[1] < within
    for form in ("gain", "joseph"):
        assert 1e-8 < digits_lost(ours(phi, lam, form), *stream)[1] < 1e-3


def test_a_factor_is_ridge_whatever_the_strength() -> None:
    """Without forgetting: lam = 1e-12 leaves the others six digits of w, lam = 1e-16 not even Γ > 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = X @ rng.normal(size=10) + 0.1 * rng.normal(size=200)
    for lam in (1e-12, 1e-16, 1e-30):
        assert max(digits_lost(ours(1.0, lam, "chol"), X, y, lam, 1.0)) < 1e-13
    for form in ("gain", "joseph"):
        assert 1e-8 < digits_lost(ours(1.0, 1e-12, form), X, y, 1e-12, 1.0)[0] < 1e-4
        with pytest.raises(NumericalError, match=r"no longer positive definite; .* form='chol'"):
            ours(1.0, 1e-16, form).learn_many(X, y)


def test_a_column_for_each_word_beside_an_intercept() -> None:
    """The columns add up to the intercept: of their difference nothing is ever learned, and Γ winds up along it."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(3000, 2)), np.tile(np.eye(50), (60, 1))])
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=3000)
    wide = np.hstack([X, np.ones((3000, 1))])
    expected = wide @ by_orthogonal_triangles(wide, y, 1.0, 0.99)[0]
    off = {}
    for form in FORMS:
        model = LinearModel(f"rls:forgetting=0.99,form={form}", "regression")
        model.learn_many(X, y)
        off[form] = float(np.abs(model.predict_many(X) - expected).max())
    assert off["chol"] < 1e-12 and 1e-6 < off["gain"] < 1e-2 and 1e-6 < off["joseph"] < 1e-2


def test_a_factor_outlives_a_long_rest() -> None:
    """0.95^−700 = 4e15: beside it nothing is left of Γ along what did not rest."""
    stream = resting(5000, 700)
    with pytest.raises(NumericalError):
        ours(0.95, max_gamma=1e20).learn_many(*stream)
    assert max(digits_lost(ours(0.95, form="chol", max_gamma=1e20), *stream, 1.0, 0.95)) < 1e-12


def test_a_factor_holds_where_columns_are_the_same() -> None:
    """Three times the same column, half of all forgotten in every round: Γ winds up to max_gamma, forgetting stops,
    Γ > 0, the file is read again, and what can be known is known."""
    x = np.random.default_rng(0).normal(size=2000)
    X = np.stack([x, x, x], axis=1)
    model = ours(0.5, form="chol", max_gamma=1e20)
    model.learn_many(X, x)
    again = LinearModel.from_state(*model.state())
    assert 1e19 < again.variances(np.eye(3)).max() <= 1e20 and again._engine.state()["sigma_waited"][0] > 1000
    np.testing.assert_allclose(again.predict_many(X), x, rtol=0, atol=1e-9)


def test_josephs_form_knows_what_one_look_leaves() -> None:
    """Γ₀ = 1e17 and one row leave 1/(1 + 1e-17): in the plain form the difference of two numbers that are the same."""
    with pytest.raises(NumericalError):
        ours(1.0, 1e-17).learn_one(np.ones(1), 3.0)
    for form in ("joseph", "chol"):
        model = ours(1.0, 1e-17, form)
        model.learn_one(np.ones(1), 3.0)
        assert (model.weights()[0][0, 0], sigma_of(model)[0, 0]) == (3.0, 1.0)


@pytest.mark.parametrize("form", FORMS)
def test_forms_wait_in_the_same_rounds(form: str) -> None:
    """Cholesky's form has no variances at hand; it must know all the same when one would pass max_gamma, also that of
    a feature that has just come, and after it was read from a file."""
    rng = np.random.default_rng(2)
    model, plain = ours(0.9, 0.05, form, 100.0), ours(0.9, 0.05, "gain", 100.0)
    for t in range(400):
        x, answer = {"f0": 1.0, "f1": 0.01} if t == 20 else {"f0": 1.0}, float(rng.normal())
        if t > 80:  # until then f1 came once, and is as unsure as it began, where nothing else is
            x = {f"f{j}": float(rng.normal()) for j in range(8) if rng.random() < (0.5 if j < 2 else 0.1)}
        model.learn_one(x, answer)
        plain.learn_one(x, answer)
        if t % 7 == 0:
            model = LinearModel.from_state(*model.state())
        waited = [float(each._engine.state()["sigma_waited"][0]) for each in (model, plain)]
        assert waited[0] == waited[1]
        assert np.diag(sigma_of(model)).max() <= 100.0 * (1 + 1e-12)
    assert 50 < waited[0] < 350
    np.testing.assert_allclose(model.weights()[0], plain.weights()[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(sigma_of(model), sigma_of(plain), rtol=0, atol=1e-10)
