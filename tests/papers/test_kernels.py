"""Kernels: formulas against scikit-learn and NumPy, dense against sparse, one instruction set against another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from onepass import _native, kernels
from onepass.errors import InputError, ParameterError
from onepass.kernels import Kernel


def native(kernel: Kernel, X: Any, Z: Any) -> np.ndarray:
    out = np.full((X.shape[0], Z.shape[0]), np.nan)
    if sparse.issparse(X):
        x, z = X.tocsr(), Z.tocsr()
        arrays = [(m.data, m.indices.astype(np.int64), m.indptr.astype(np.int64)) for m in (x, z)]
        _native.kernel_block_csr(kernel.native(), *arrays[0], *arrays[1], X.shape[1], out)
    else:
        _native.kernel_block(kernel.native(), np.ascontiguousarray(X), np.ascontiguousarray(Z), out)
    return out


def product_plus(x: Any, z: Any) -> float:
    return float((np.sum(x * z) + 0.5) ** 2)  # symmetric to the last bit, which BLAS is not on every processor


def block_plus(X: Any, Z: Any) -> Any:
    return (X @ Z.T + 0.5) ** 2


# Every kernel with its reference, if scikit-learn has one.
CASES: dict[str, tuple[Kernel, Any]] = {
    "constant": (kernels.Constant(2.5), lambda X, Z: np.full((len(X), len(Z)), 2.5)),
    "linear": (kernels.Linear(), pairwise.linear_kernel),
    "polynomial": (
        kernels.Polynomial(3, gamma=0.3, r=0.5),
        lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=3, gamma=0.3, coef0=0.5),
    ),
    "rbf": (kernels.RBF(0.2), lambda X, Z: pairwise.rbf_kernel(X, Z, 0.2)),
    "laplacian": (kernels.Laplacian(0.1), lambda X, Z: pairwise.laplacian_kernel(X, Z, 0.1)),
    "sigmoid": (kernels.Sigmoid(0.1, r=0.2), lambda X, Z: pairwise.sigmoid_kernel(X, Z, 0.1, 0.2)),
    "intersection": (
        kernels.HistogramIntersection(),
        lambda X, Z: np.array([[np.minimum(x, z).sum() for z in Z] for x in X]),
    ),
    "chi2": (
        kernels.Chi2(),
        lambda X, Z: 0.5 * (X.sum(1)[:, None] + Z.sum(1)[None] + pairwise.additive_chi2_kernel(X, Z)),
    ),
    "chi2_exp": (kernels.Chi2Exp(0.4), lambda X, Z: pairwise.chi2_kernel(X, Z, 0.4)),
    "cosine": (kernels.Cosine(), pairwise.cosine_similarity),
    "normalized": (
        kernels.Normalized(kernels.Polynomial(2)),
        lambda X, Z: (X @ Z.T + 1) ** 2 / np.sqrt(np.outer((1 + (X * X).sum(1)) ** 2, (1 + (Z * Z).sum(1)) ** 2)),
    ),
    "sum": (
        kernels.RBF(0.2) + 2 * kernels.Linear(),
        lambda X, Z: pairwise.rbf_kernel(X, Z, 0.2) + 2 * X @ Z.T,
    ),
    "product": (
        kernels.RBF(0.2) * kernels.Chi2() * (kernels.Linear() + 1.0),
        lambda X, Z: (
            pairwise.rbf_kernel(X, Z, 0.2)
            * 0.5
            * (X.sum(1)[:, None] + Z.sum(1)[None] + pairwise.additive_chi2_kernel(X, Z))
            * (X @ Z.T + 1)
        ),
    ),
    "epanechnikov": (
        kernels.Epanechnikov(1.5),
        lambda X, Z: np.maximum(0.0, 1 - pairwise.euclidean_distances(X, Z) ** 2 / 1.5**2),
    ),
    "box": (kernels.Box(1.3), lambda X, Z: 1.0 * (pairwise.euclidean_distances(X, Z) <= 1.3)),
    "call": (kernels.Call(product_plus), block_plus),
    "call-blocks": (kernels.Call(block_plus, blocks=True), block_plus),
}
DENSE_ONLY = {"call", "call-blocks"}
INDEFINITE = {"sigmoid", "epanechnikov", "box"}


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    """Histograms with zeros, more points than a group holds, one row and one column empty."""
    rng = np.random.default_rng(0)
    X, Z = (rng.random((n, 19)) * (rng.random((n, 19)) < 0.6) for n in (7, 71))
    X[2] = 0.0
    Z[40] = 0.0
    Z[3] = X[1]
    return X, Z


def test_every_kernel_is_tried() -> None:
    tried = {kind for name in CASES for kind in _kinds(CASES[name][0])}
    assert tried == set(kernels.KERNELS) - {"precomputed"}


def _kinds(kernel: Kernel) -> set[str]:
    return {kernel.name}.union(*(_kinds(part) for part in kernel.parts()))


@pytest.mark.parametrize("name", CASES)
def test_formula(name: str, tables: tuple[np.ndarray, np.ndarray]) -> None:
    kernel, reference = CASES[name]
    X, Z = tables
    wanted = reference(X, Z)
    np.testing.assert_allclose(kernel.block(X, Z), wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(native(kernel, X, Z), wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(Z), np.diag(kernel.block(Z, Z)), rtol=1e-12, atol=1e-13)
    if name not in DENSE_ONLY:
        np.testing.assert_allclose(
            native(kernel, sparse.csr_matrix(X), sparse.csr_matrix(Z)), wanted, rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("name", CASES)
def test_gram_is_symmetric_and_definite(name: str, tables: tuple[np.ndarray, np.ndarray]) -> None:
    kernel, _ = CASES[name]
    Z = tables[1][:50]
    gram = native(kernel, Z, Z)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12 if name == "call-blocks" else 0)  # its bits are the user's
    if name not in INDEFINITE:
        assert kernel.definite()
        assert np.linalg.eigvalsh(gram)[0] >= -1e-9 * np.trace(gram)
    else:
        assert not kernel.definite()


@pytest.mark.parametrize("name", sorted(set(CASES) - DENSE_ONLY))
def test_instruction_sets_give_the_same_bits(name: str, tables: tuple[np.ndarray, np.ndarray]) -> None:
    kernel, _ = CASES[name]
    X, Z = tables
    used = _native.isa()
    try:
        results = []
        for isa in _native.isas():
            _native.use_isa(isa)
            both = native(kernel, X, Z), native(kernel, sparse.csr_matrix(X), sparse.csr_matrix(Z))
            results.append(b"".join(each.tobytes() for each in both))
        assert len(set(results)) == 1
    finally:
        _native.use_isa(used)


def test_a_value_does_not_depend_on_its_block(tables: tuple[np.ndarray, np.ndarray]) -> None:
    X, Z = tables
    for name in sorted(set(CASES) - DENSE_ONLY):
        whole = native(CASES[name][0], X, Z)
        for j in (0, 5, 33, 70):
            np.testing.assert_array_equal(native(CASES[name][0], X, Z[j : j + 1])[:, 0], whole[:, j])


def test_a_point_is_at_no_distance_from_itself(tables: tuple[np.ndarray, np.ndarray]) -> None:
    Z = tables[1]
    for kernel in (kernels.RBF(3.0), kernels.Laplacian(2.0), kernels.Chi2Exp(5.0)):
        assert np.all(np.diag(native(kernel, Z, Z)) == 1.0)
    assert np.all(np.diag(native(kernels.RBF(3.0), sparse.csr_matrix(Z), sparse.csr_matrix(Z))) == 1.0)


def test_exponential_is_within_an_ulp() -> None:
    """K = exp(−γ·1) for a thousand γ; the last ones underflow to 0 as they should."""
    rng = np.random.default_rng(1)
    exponents = np.concatenate([rng.uniform(0, 2, 400), rng.uniform(0, 745, 400), 10.0 ** rng.uniform(-12, 0, 200)])
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    for exponent in [*exponents, 708.5, 744.9, 745.2, 800.0, 1e300]:
        got = native(kernels.RBF(exponent), one, zero)[0, 0]
        wanted = math.exp(-exponent)
        assert abs(got - wanted) <= math.ulp(wanted), exponent


def test_precomputed() -> None:
    gram = kernels.RBF(1.0).block(np.arange(5.0)[:, None], np.arange(5.0)[:, None])
    kernel = kernels.Precomputed(gram)
    at = np.array([[0.0], [3.0], [4.0]])
    np.testing.assert_array_equal(native(kernel, at, at), gram[np.ix_([0, 3, 4], [0, 3, 4])])
    np.testing.assert_array_equal(kernel.block(at, at), gram[np.ix_([0, 3, 4], [0, 3, 4])])
    both = kernels.Normalized(kernel) * 2.0
    np.testing.assert_allclose(native(both, at, at), 2 * gram[np.ix_([0, 3, 4], [0, 3, 4])])


def test_shared_example_of_the_spec() -> None:
    x = np.array([[0, 0], [1, 1], [0, 1], [1, 0]], dtype=float)
    wanted = np.full((4, 4), 0.367879)
    np.fill_diagonal(wanted, 1.0)
    wanted[0, 1] = wanted[1, 0] = wanted[2, 3] = wanted[3, 2] = 0.135335
    np.testing.assert_allclose(native(kernels.RBF(1.0), x, x), wanted, atol=5e-7)


def test_histogram_identities() -> None:
    """For rows that add up to 1: hi = 1 − ½‖x − z‖₁ and χ² = 1 − ½ Σ(x − z)²/(x + z)."""
    rng = np.random.default_rng(2)
    X = rng.dirichlet(np.ones(8), size=20)
    distance = np.abs(X[:, None] - X[None]).sum(2)
    np.testing.assert_allclose(native(kernels.HistogramIntersection(), X, X), 1 - 0.5 * distance, atol=1e-14)
    np.testing.assert_allclose(native(kernels.Chi2(), X, X), 1 - 0.5 * kernels.Chi2Exp().distance(X, X), atol=1e-14)
    off = kernels.Chi2Exp().distance(X, X)[~np.eye(20, dtype=bool)]
    assert kernels.chi2_gamma(X) == pytest.approx(1 / off.mean())


def test_gamma_defaults_to_one_over_d() -> None:
    assert kernels.RBF().resolved(4) == kernels.RBF(0.25)
    assert kernels.Laplacian(3.0).resolved(4) == kernels.Laplacian(3.0)
    assert (kernels.RBF() + kernels.Sigmoid()).resolved(2) == kernels.RBF(0.5) + kernels.Sigmoid(0.5)
    assert kernels.Normalized(kernels.RBF()).resolved(2) == kernels.Normalized(kernels.RBF(0.5))
    with pytest.raises(ParameterError, match="no gamma yet"):
        kernels.RBF()([0.0], [1.0])


def test_made_from_text_and_functions() -> None:
    assert kernels.make("rbf:gamma=0.5") == kernels.RBF(0.5)
    assert kernels.make("polynomial(3, r=0)") == kernels.Polynomial(3, r=0)
    assert kernels.make(product_plus)([1.0, 2.0], [3.0, 4.0]) == (11 + 0.5) ** 2
    for wrong, word in (("rbff", "expected one of"), (kernels.RBF, "is a class"), (3, "is not a kernel")):
        with pytest.raises(ParameterError, match=word):
            kernels.make(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda: kernels.RBF(0), "gamma=0"),
        (lambda: kernels.Polynomial(1.5), "whole number"),  # type: ignore[arg-type]
        (lambda: kernels.Polynomial(2, r=-1), "r=-1"),
        (lambda: kernels.Constant(-1), "c=-1"),
        (lambda: kernels.Precomputed(np.ones((2, 3))), "square"),
        (lambda: kernels.Precomputed(np.array([[1.0, 2.0], [0.0, 1.0]])), "symmetric"),
        (lambda: kernels.Precomputed(), "square"),
        (lambda: kernels.Call(), "expected a function"),
        (lambda: kernels.Sum(kernels.RBF(1.0), 3), "expected kernels"),  # type: ignore[arg-type]
        (lambda: kernels.Normalized(3), "expected a kernel"),  # type: ignore[arg-type]
    ],
)
def test_refusals(wrong: Any, word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        wrong()


def test_histograms_must_not_be_negative() -> None:
    with pytest.raises(InputError, match=">= 0"):
        kernels.HistogramIntersection()([-1.0], [1.0])
    with pytest.raises(InputError, match="two rows that differ"):
        kernels.chi2_gamma(np.ones((3, 2)))
