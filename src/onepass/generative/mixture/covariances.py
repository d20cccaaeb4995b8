"""Covariances of a Gaussian mixture: full, tied, diagonal, spherical.

The statistic s2 is ⟨r x xᵀ⟩, or the part of it that the covariance needs. Σ = s2/s0 − μμᵀ, with no eigenvalue below
`floor`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...scheme.rounds import Array

__all__ = ["COVARIANCES", "Covariance"]

ROUNDING = 8 * np.finfo(np.float64).eps  # smaller eigenvalues, relative to a matrix's entries, are rounding errors


class Covariance:
    """Σ_k of K components in d dimensions, stored in an array of the form `shape`."""

    def initial(self, K: int, variance: Array) -> Array:
        """Covariances with these variances, the same for all components."""
        raise NotImplementedError

    second: ClassVar[str]  # the second moments that the native loop sums: "diag" or "full"

    def statistics(self, X: Array, shift: Array, R: Array) -> tuple[Array, Array]:
        """s1 and s2 of rows x − shift with responsibilities R."""
        return _native.mixture_statistics(X, shift, R, self.second)

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        """The s2 that these parameters follow from."""
        raise NotImplementedError

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        """The covariances after an M-step. Those of components that are not alive stay the same."""
        raise NotImplementedError

    def scales(self, cov: Array, K: int, d: int) -> tuple[Array, Array]:
        """For each component 1/variances, or the inverse of the Cholesky factor of Σ; and ln |Σ|."""
        raise NotImplementedError

    def restart(self, cov: Array, k: int, weights: Array) -> None:
        """Set component k to the average of the others."""
        others = np.delete(np.arange(len(weights)), k)
        cov[k] = np.average(cov[others], axis=0, weights=weights[others])

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        """Transform standard normal rows to rows of component k with mean 0."""
        raise NotImplementedError

    def free(self, K: int, d: int) -> int:
        """The number of free parameters."""
        raise NotImplementedError

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        """Add columns of this variance."""
        raise NotImplementedError

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        """The covariances as K matrices."""
        raise NotImplementedError

    def size(self, K: int, d: int) -> int:
        """How many numbers the array has."""
        raise NotImplementedError

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        """The shape of the array."""
        raise NotImplementedError


class Full(Covariance):
    second = "full"

    def size(self, K: int, d: int) -> int:
        return K * d * d

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return K, d, d

    def initial(self, K: int, variance: Array) -> Array:
        return np.tile(np.diag(variance), (K, 1, 1))

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return weights[:, np.newaxis, np.newaxis] * (cov + means[:, :, np.newaxis] * means[:, np.newaxis, :])

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        out = cov.copy()
        for k in np.flatnonzero(alive):
            out[k] = floored(s2[k] / s0[k] - np.outer(means[k], means[k]), floor)
        return out

    def scales(self, cov: Array, K: int, d: int) -> tuple[Array, Array]:
        lower = np.linalg.cholesky(cov)
        return np.linalg.inv(lower), 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)

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

    second = "full"

    def size(self, K: int, d: int) -> int:
        return d * d

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return d, d

    def initial(self, K: int, variance: Array) -> Array:
        return np.diag(variance)

    def statistics(self, X: Array, shift: Array, R: Array) -> tuple[Array, Array]:
        s1, _ = _native.mixture_statistics(X, shift, R, "none")
        return s1, _native.mixture_statistics(X, shift, R.sum(axis=1, keepdims=True), self.second)[1][0]

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return np.asarray(weights.sum() * cov + (means * weights[:, np.newaxis]).T @ means)

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        return floored((s2 - (means * s0[:, np.newaxis]).T @ means) / s0.sum(), floor)

    def scales(self, cov: Array, K: int, d: int) -> tuple[Array, Array]:
        lower = np.linalg.cholesky(cov)
        return np.tile(np.linalg.inv(lower), (K, 1, 1)), np.full(K, 2 * np.log(np.diag(lower)).sum())

    def restart(self, cov: Array, k: int, weights: Array) -> None:
        """Nothing to do: all components share the matrix."""

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        return np.asarray(noise @ np.linalg.cholesky(cov).T)

    def free(self, K: int, d: int) -> int:
        return d * (d + 1) // 2

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        return _wider(cov, columns, variance)

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        return np.tile(cov, (K, 1, 1))


class Diagonal(Covariance):
    second = "diag"

    def size(self, K: int, d: int) -> int:
        return K * d

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return K, d

    def initial(self, K: int, variance: Array) -> Array:
        return np.tile(variance, (K, 1))

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return weights[:, np.newaxis] * (cov + means**2)

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        mass = np.where(alive, s0, 1.0)[:, np.newaxis]
        return np.where(alive[:, np.newaxis], np.maximum(s2 / mass - means**2, floor), cov)

    def scales(self, cov: Array, K: int, d: int) -> tuple[Array, Array]:
        return 1.0 / cov, np.log(cov).sum(axis=1)

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

    second = "diag"

    def size(self, K: int, d: int) -> int:
        return K

    def shape(self, K: int, d: int) -> tuple[int, ...]:
        return (K,)

    def initial(self, K: int, variance: Array) -> Array:
        return np.full(K, variance.mean() if len(variance) else 1.0)

    def statistics(self, X: Array, shift: Array, R: Array) -> tuple[Array, Array]:
        s1, squares = super().statistics(X, shift, R)
        return s1, squares.sum(axis=1)

    def s2(self, weights: Array, means: Array, cov: Array) -> Array:
        return np.asarray(weights * (means.shape[1] * cov + np.einsum("ij,ij->i", means, means)))

    def updated(self, cov: Array, s0: Array, means: Array, s2: Array, alive: NDArray[np.bool_], floor: float) -> Array:
        mass = np.where(alive, s0, 1.0)
        variance = (s2 / mass - np.einsum("ij,ij->i", means, means)) / max(1, means.shape[1])
        return np.where(alive, np.maximum(variance, floor), cov)

    def scales(self, cov: Array, K: int, d: int) -> tuple[Array, Array]:
        return np.repeat(1.0 / cov[:, np.newaxis], d, axis=1), d * np.log(cov)

    def draw(self, cov: Array, k: int, noise: Array) -> Array:
        return np.asarray(noise * np.sqrt(cov[k]))

    def free(self, K: int, d: int) -> int:
        return K

    def widen(self, cov: Array, columns: int, variance: float) -> Array:
        return cov

    def as_full(self, cov: Array, K: int, d: int) -> Array:
        return cov[:, np.newaxis, np.newaxis] * np.eye(d)


def floored(matrix: Array, floor: float) -> Array:
    """The matrix made symmetric, with no eigenvalue below `floor`."""
    matrix = (matrix + matrix.T) / 2
    floor = max(floor, ROUNDING * float(np.abs(matrix).sum()))
    try:
        np.linalg.cholesky(matrix - floor * np.eye(len(matrix)))  # much faster than eigenvalues
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        matrix = (vectors * np.maximum(values, floor)) @ vectors.T
        matrix = (matrix + matrix.T) / 2
        # Rounding errors may have left an eigenvalue slightly below the floor.
        matrix[np.diag_indices_from(matrix)] += floor * 1e-9
    return matrix


def _wider(matrix: Array, columns: int, variance: float) -> Array:
    out = np.zeros((columns, columns))
    out[: len(matrix), : len(matrix)] = matrix
    out[np.arange(len(matrix), columns), np.arange(len(matrix), columns)] = variance
    return out


COVARIANCES: dict[str, Covariance] = {"full": Full(), "tied": Tied(), "diag": Diagonal(), "spherical": Spherical()}
