"""Kernels: similarities K(x, z) = ⟨Φ(x), Φ(z)⟩, computed without Φ.

The docstring's formula is the code, here in NumPy and again in `native/loops/kernel_loops.cpp`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError
from ..scheme.parameters import flag, from_text, number
from ..scheme.rounds import Array
from .algebra import Constant, Cosine, Kernel, Linear, Normalized, Product, Sum, over

__all__ = [
    "KERNELS",
    "RBF",
    "Box",
    "Call",
    "Chi2",
    "Chi2Exp",
    "Constant",
    "Cosine",
    "Epanechnikov",
    "HistogramIntersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Normalized",
    "Polynomial",
    "Precomputed",
    "Product",
    "Sigmoid",
    "Sum",
    "chi2_gamma",
    "make",
]


@dataclasses.dataclass(repr=False)
class Polynomial(Kernel):
    """K = (γ⟨x, z⟩ + r)^p, p = `degree`."""

    name = "polynomial"
    degree: int = number(2, at_least=1, integer=True)
    gamma: float = number(1.0, above=0)
    r: float = number(1.0, at_least=0)

    def block(self, X: Array, Z: Array) -> Array:
        return np.asarray((self.gamma * (X @ Z.T) + self.r) ** int(self.degree))

    def numbers(self) -> dict[str, float]:
        return {"gamma": float(self.gamma), "r": float(self.r), "degree": float(self.degree)}


@dataclasses.dataclass(repr=False)
class _Decaying(Kernel):
    """exp(−γ·distance). γ = 1/d unless given, where d is the number of features of the first example."""

    gamma: float | None = number(None, above=0)

    def distance(self, X: Array, Z: Array) -> Array:
        raise NotImplementedError

    def block(self, X: Array, Z: Array) -> Array:
        return np.asarray(np.exp(-float(_resolved_gamma(self, self.gamma)) * self.distance(X, Z)))

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(X))

    def resolved(self, d: int) -> Kernel:
        return dataclasses.replace(self, gamma=1.0 / max(1, d)) if self.gamma is None else self

    def numbers(self) -> dict[str, float]:
        return {"gamma": float(_resolved_gamma(self, self.gamma))}


def _resolved_gamma(kernel: Kernel, gamma: float | None) -> float:
    if gamma is None:
        raise ParameterError(f"{kernel!r} has no gamma yet; give one, or use resolved(d) for 1/d")
    return gamma


@dataclasses.dataclass(repr=False)
class RBF(_Decaying):
    """K = exp(−γ‖x − z‖²), the Gaussian; γ = 1/(2σ²). γ = 1/d unless given."""

    name = "rbf"

    def distance(self, X: Array, Z: Array) -> Array:
        return np.asarray(np.sum((X[:, np.newaxis] - Z[np.newaxis]) ** 2, axis=2))


@dataclasses.dataclass(repr=False)
class Laplacian(_Decaying):
    """K = exp(−γ‖x − z‖₁). γ = 1/d unless given."""

    name = "laplacian"

    def distance(self, X: Array, Z: Array) -> Array:
        return np.asarray(np.sum(np.abs(X[:, np.newaxis] - Z[np.newaxis]), axis=2))


@dataclasses.dataclass(repr=False)
class Sigmoid(Kernel):
    """K = tanh(γ⟨x, z⟩ + r). Not positive semi-definite in general. γ = 1/d unless given."""

    name = "sigmoid"
    psd = False
    gamma: float | None = number(None, above=0)
    r: float = number(0.0)

    def block(self, X: Array, Z: Array) -> Array:
        return np.asarray(np.tanh(_resolved_gamma(self, self.gamma) * (X @ Z.T) + self.r))

    def resolved(self, d: int) -> Kernel:
        return dataclasses.replace(self, gamma=1.0 / max(1, d)) if self.gamma is None else self

    def numbers(self) -> dict[str, float]:
        return {"gamma": float(_resolved_gamma(self, self.gamma)), "r": float(self.r)}


def _histograms(X: Array, Z: Array) -> tuple[Array, Array]:
    if np.any(X < 0) or np.any(Z < 0):
        raise InputError("a histogram kernel needs numbers >= 0; shift the features, or use another kernel")
    return X[:, np.newaxis], Z[np.newaxis]


@dataclasses.dataclass(repr=False)
class HistogramIntersection(Kernel):
    """K = Σ_j min(x_j, z_j), x, z ≥ 0."""

    name = "intersection"

    def block(self, X: Array, Z: Array) -> Array:
        return np.asarray(np.sum(np.minimum(*_histograms(X, Z)), axis=2))


@dataclasses.dataclass(repr=False)
class Chi2(Kernel):
    """K = Σ_j 2x_j z_j/(x_j + z_j), x, z ≥ 0, 0/0 = 0: the additive χ² kernel."""

    name = "chi2"

    def block(self, X: Array, Z: Array) -> Array:
        x, z = _histograms(X, Z)
        return np.asarray(np.sum(over(2.0 * x * z, x + z), axis=2))


@dataclasses.dataclass(repr=False)
class Chi2Exp(_Decaying):
    """K = exp(−γ Σ_j (x_j − z_j)²/(x_j + z_j)), x, z ≥ 0, 0/0 = 0. `chi2_gamma` computes a γ from data."""

    name = "chi2_exp"
    gamma: float | None = number(1.0, above=0)

    def distance(self, X: Array, Z: Array) -> Array:
        x, z = _histograms(X, Z)
        return np.asarray(np.sum(over((x - z) ** 2, x + z), axis=2))


def chi2_gamma(X: Any) -> float:
    """1/(mean χ² distance) of some rows: the usual γ for `Chi2Exp`."""
    rows = np.asarray(X, dtype=np.float64)
    distances = Chi2Exp().distance(rows, rows)
    mean = float(np.sum(distances)) / max(1, len(rows) * (len(rows) - 1))
    if not mean > 0:
        raise InputError("chi2_gamma needs two rows that differ")
    return 1.0 / mean


@dataclasses.dataclass(repr=False)
class Precomputed(Kernel):
    """K = G[i, j]: an example has one feature, its index in the given matrix G."""

    name = "precomputed"
    gram: Any = None

    def validate(self) -> None:
        try:
            gram = np.ascontiguousarray(self.gram, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"Precomputed(gram=…): expected a square matrix, got {self.gram!r:.60}") from None
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not np.all(np.isfinite(gram)):
            raise ParameterError(f"Precomputed(gram=…): expected a square matrix of finite numbers, got {gram.shape}")
        if not np.allclose(gram, gram.T, rtol=1e-9, atol=1e-12):
            raise ParameterError("Precomputed(gram=…): expected a symmetric matrix")
        self.gram = gram

    def __repr__(self) -> str:
        return f"Precomputed({len(self.gram)} × {len(self.gram)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Precomputed) and np.array_equal(self.gram, other.gram)

    __hash__ = None  # type: ignore[assignment]

    def block(self, X: Array, Z: Array) -> Array:
        i, j = (rows[:, 0].astype(np.intp) for rows in (X, Z))
        return np.asarray(self.gram[np.ix_(i, j)])

    def numbers(self) -> dict[str, float]:
        return {}

    def native(self) -> dict[str, Any]:
        return {**super().native(), "gram": self.gram}


@dataclasses.dataclass(repr=False)
class Call(Kernel):
    """K = the user's function: k(x, z) → number of two vectors, or with `block` k(X, Z) → matrix of two tables.

    The user guarantees that it is symmetric and positive semi-definite (`positive`). A file cannot hold a function, so
    a model with this kernel cannot be saved.
    """

    name = "call"
    function: Callable[..., Any] | None = None
    blocks: bool = flag(False)
    positive: bool = flag(True)

    def validate(self) -> None:
        if not callable(self.function):
            raise ParameterError(f"Call(function={self.function!r}): expected a function of two vectors")

    def definite(self) -> bool:
        return self.positive

    def block(self, X: Array, Z: Array) -> Array:
        assert self.function is not None
        if self.blocks:
            out = np.asarray(self.function(X, Z), dtype=np.float64)
        else:
            out = np.array([[float(self.function(x, z)) for z in Z] for x in X]).reshape(len(X), len(Z))
        if out.shape != (len(X), len(Z)):
            raise InputError(f"{self!r} returned shape {out.shape}, expected {(len(X), len(Z))}")
        return out

    def numbers(self) -> dict[str, float]:
        return {}

    def native(self) -> dict[str, Any]:
        return {**super().native(), "block": self._one_row}

    def _one_row(self, x: NDArray[np.float64], Z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ascontiguousarray(self.block(x[np.newaxis], Z)[0])


@dataclasses.dataclass(repr=False)
class _Compact(Kernel):
    """Windows of width h for `rules.Parzen`: 0 beyond the distance h. Not positive semi-definite in general."""

    psd = False
    h: float = number(1.0, above=0)

    def squared(self, X: Array, Z: Array) -> Array:
        """‖x − z‖²/h²."""
        return np.asarray(np.sum((X[:, np.newaxis] - Z[np.newaxis]) ** 2, axis=2)) * (1.0 / self.h**2)

    def diagonal(self, X: Array) -> Array:
        return np.ones(len(X))

    def numbers(self) -> dict[str, float]:
        return {"gamma": 1.0 / self.h**2}


@dataclasses.dataclass(repr=False)
class Epanechnikov(_Compact):
    """K = max(0, 1 − ‖x − z‖²/h²)."""

    name = "epanechnikov"

    def block(self, X: Array, Z: Array) -> Array:
        return np.maximum(0.0, 1.0 - self.squared(X, Z))


@dataclasses.dataclass(repr=False)
class Box(_Compact):
    """K = 1 where ‖x − z‖ ≤ h, else 0."""

    name = "box"

    def block(self, X: Array, Z: Array) -> Array:
        return np.where(self.squared(X, Z) <= 1.0, 1.0, 0.0)


KERNELS: dict[str, type[Kernel]] = {
    kind.name: kind
    for kind in (
        Constant,
        Linear,
        Polynomial,
        RBF,
        Laplacian,
        Sigmoid,
        HistogramIntersection,
        Chi2,
        Chi2Exp,
        Precomputed,
        Call,
        Sum,
        Product,
        Normalized,
        Cosine,
        Epanechnikov,
        Box,
    )
}


def make(kernel: str | Kernel | Callable[..., Any]) -> Kernel:
    """A kernel from an object, a name (``"rbf"``, ``"rbf:gamma=0.5"``) or a function of two vectors."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type):
        raise ParameterError(f"kernel={kernel.__name__} is a class; expected an object: {kernel.__name__}()")
    if callable(kernel):
        return Call(kernel)
    return from_text(kernel, KERNELS, "kernel")
