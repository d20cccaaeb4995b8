"""Covariances of a Gaussian mixture: full, tied, diagonal, spherical. Each says what it keeps and how it is used.

s2 is ⟨r x xᵀ⟩ or the part of it that the covariance needs; from it Σ = s2/s0 − μμᵀ. No eigenvalue stays below `floor`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core import Array

__all__ = ["COVARIANCES", "Covariance"]


class Covariance:
    """Σ_k of K components in d dimensions, in the shape of `initial`."""

    def initial(self, K: int, variance: Array) -> Array:
        """All components alike, with these variances."""
        raise NotImplementedError

    def statistics(self, X: Array, R: Array) -> Array:
        """s2 of rows with responsibilities R."""
        raise NotImplementedError

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        """The s2 that parameters stand for."""
        raise NotImplementedError

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        """The covariances after an M-step; those not alive stay."""
        raise NotImplementedError

    def log_densities(self, X: Array, means: Array, cov: Array) -> Array:
        raise NotImplementedError

    def put(self, cov: Array, k: int, weights: Array) -> None:
        """Give component k the average of the others."""
        others = np.delete(np.arange(len(weights)), k)
        cov[k] = np.average(cov[others], axis=0, weights=weights[others])

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        """Standard normal rows as rows of component k, around 0."""
        raise NotImplementedError

    def free(self, K: int, d: int) -> int:
        """How many numbers can be chosen."""
        raise NotImplementedError

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        """Room for more columns, of this variance."""
        raise NotImplementedError

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        """As K matrices."""
        raise NotImplementedError

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return self.initial(K, np.ones(d)).shape


def log_determinant_term(d: int) -> float:
    return float(d * np.log(2 * np.pi))


class Full(Covariance):
    def initial(self, K: int, variance: Array) -> Array:
        return np.tile(np.diag(variance), (K, 1, 1))

    def statistics(self, X: Array, R: Array) -> Array:
        return np.stack([(X * r[:, np.newaxis]).T @ X for r in R.T])

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return weights[:, np.newaxis, np.newaxis] * (cov + means[:, :, np.newaxis] * means[:, np.newaxis, :])

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        out = cov.copy()
        for k in np.flatnonzero(alive):
            out[k] = floored(s2[k] / s0[k] - np.outer(means[k], means[k]), floor)
        return out

    def log_densities(self, X: Array, means: Array, cov: Array) -> Array:
        out = np.empty((len(X), len(means)))
        for k, lower in enumerate(np.linalg.cholesky(cov)):
            # For few dimensions an inverse costs less than a triangular solve for every row.
            white = (X - means[k]) @ np.linalg.inv(lower).T
            out[:, k] = np.einsum("ij,ij->i", white, white) + 2 * np.log(np.diag(lower)).sum()
        return np.asarray(-0.5 * (out + log_determinant_term(X.shape[1])))

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        return np.asarray(noise @ np.linalg.cholesky(cov[k]).T)

    def free(self, K: int, d: int) -> int:
        return K * d * (d + 1) // 2

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        return np.stack([_wider(each, columns, variance) for each in cov])

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        return cov


class Tied(Covariance):
    """One matrix for all components."""

    def initial(self, K: int, variance: Array) -> Array:
        return np.diag(variance)

    def statistics(self, X: Array, R: Array) -> Array:
        return np.asarray((X * R.sum(axis=1)[:, np.newaxis]).T @ X)

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return np.asarray(weights.sum() * cov + (means * weights[:, np.newaxis]).T @ means)

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        return floored((s2 - (means * s0[:, np.newaxis]).T @ means) / s0.sum(), floor)

    def log_densities(self, X: Array, means: Array, cov: Array) -> Array:
        lower = np.linalg.cholesky(cov)
        inverse = np.linalg.inv(lower).T
        out = squared(X @ inverse, means @ inverse)
        return np.asarray(-0.5 * (out + 2 * np.log(np.diag(lower)).sum() + log_determinant_term(X.shape[1])))

    def put(self, cov: Array, k: int, weights: Array) -> None:
        """There is one for all."""

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        return np.asarray(noise @ np.linalg.cholesky(cov).T)

    def free(self, K: int, d: int) -> int:
        return d * (d + 1) // 2

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        return _wider(cov, columns, variance)

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        return np.tile(cov, (K, 1, 1))


class Diagonal(Covariance):
    def initial(self, K: int, variance: Array) -> Array:
        return np.tile(variance, (K, 1))

    def statistics(self, X: Array, R: Array) -> Array:
        return np.asarray(R.T @ (X * X))

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return weights[:, np.newaxis] * (cov + means**2)

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        mass = np.where(alive, s0, 1.0)[:, np.newaxis]
        return np.where(alive[:, np.newaxis], np.maximum(s2 / mass - means**2, floor), cov)

    def log_densities(self, X: Array, means: Array, cov: Array) -> Array:
        precision = 1.0 / cov
        # Products instead of differences, which is faster by far; x and μ are near 0, so that few digits cancel.
        out = (X * X) @ precision.T - 2 * X @ (means * precision).T + (means**2 * precision).sum(axis=1)
        return np.asarray(-0.5 * (out + np.log(cov).sum(axis=1) + log_determinant_term(X.shape[1])))

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        return np.asarray(noise * np.sqrt(cov[k]))

    def free(self, K: int, d: int) -> int:
        return K * d

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        return np.pad(cov, ((0, 0), (0, columns - cov.shape[1])), constant_values=variance)

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        return np.stack([np.diag(each) for each in cov])


class Spherical(Covariance):
    """One variance for each component."""

    def initial(self, K: int, variance: Array) -> Array:
        return np.full(K, variance.mean())

    def statistics(self, X: Array, R: Array) -> Array:
        return np.asarray(R.T @ np.einsum("ij,ij->i", X, X))

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return np.asarray(weights * (means.shape[1] * cov + np.einsum("ij,ij->i", means, means)))

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        mass = np.where(alive, s0, 1.0)
        variance = (s2 / mass - np.einsum("ij,ij->i", means, means)) / means.shape[1]
        return np.where(alive, np.maximum(variance, floor), cov)

    def log_densities(self, X: Array, means: Array, cov: Array) -> Array:
        d = X.shape[1]
        out = squared(X, means) / cov
        return np.asarray(-0.5 * (out + d * np.log(cov) + log_determinant_term(d)))

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        return np.asarray(noise * np.sqrt(cov[k]))

    def free(self, K: int, d: int) -> int:
        return K

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        return cov

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        return cov[:, np.newaxis, np.newaxis] * np.eye(d)


def squared(X: Array, points: Array) -> Array:
    """‖x − p‖² of every row and point, by products: both are near 0, so that few digits cancel."""
    rows = np.einsum("ij,ij->i", X, X)[:, np.newaxis]
    return np.asarray(np.maximum(rows - 2 * X @ points.T + np.einsum("ij,ij->i", points, points), 0.0))


def floored(matrix: Array, floor: float) -> Array:
    """Symmetric, with no eigenvalue below `floor`."""
    matrix = (matrix + matrix.T) / 2
    try:
        np.linalg.cholesky(matrix - floor * np.eye(len(matrix)))  # far cheaper than eigenvalues
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.maximum(values, floor)) @ vectors.T
        matrix = (matrix + matrix.T) / 2
        # Rounding may leave an eigenvalue just below.
        matrix[np.diag_indices_from(matrix)] += floor * 1e-9
    return matrix


def _wider(matrix: Array, columns: int, variance: float) -> Array:
    out = np.zeros((columns, columns))
    out[: len(matrix), : len(matrix)] = matrix
    out[np.arange(len(matrix), columns), np.arange(len(matrix), columns)] = variance
    return out


COVARIANCES: dict[str, Covariance] = {"full": Full(), "tied": Tied(), "diag": Diagonal(), "spherical": Spherical()}
