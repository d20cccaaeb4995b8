"""The base of all kernels, and their algebra: kernels add, multiply and normalize.

RBF(0.5) + 2 * Linear()        Polynomial(3) * RBF(0.1)        Normalized(HistogramIntersection())
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from .. import _native
from ..errors import ParameterError
from ..scheme.compiled import compiled_name
from ..scheme.parameters import Parameters, number
from ..scheme.rounds import Array

__all__ = ["Constant", "Cosine", "Kernel", "Linear", "Normalized", "Product", "Sum", "over"]


@dataclasses.dataclass(repr=False)
class Kernel(Parameters):
    """Base of all kernels: `block(X, Z)` gives the matrix K(x_i, z_j), `diagonal(X)` the vector K(x_i, x_i).

    `compiled` is found, not written: the `KernelOp` of `native/kernels/kernels.hpp` with the name of the class. A
    subclass has it too, unless it overrides a method (other than `validate`); then give the function to `Call`.
    """

    family = "kernel"
    name: ClassVar[str] = ""
    compiled: ClassVar[str] = ""
    psd: ClassVar[bool] = True  # every Gram matrix is positive semi-definite

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.compiled = compiled_name(cls, _native.enums["KernelOp"])

    def block(self, X: Array, Z: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define block(X, Z)")

    def diagonal(self, X: Array) -> Array:
        return np.array([float(self.block(x[np.newaxis], x[np.newaxis])[0, 0]) for x in X])

    def __call__(self, x: Any, z: Any) -> float:
        """K of two rows."""
        X, Z = (np.atleast_2d(np.asarray(row, dtype=np.float64)) for row in (x, z))
        return float(self.block(X, Z)[0, 0])

    def resolved(self, d: int) -> Kernel:
        """The kernel for d features: γ = 1/d where γ was not given."""
        return self

    def definite(self) -> bool:
        """Whether every Gram matrix is positive semi-definite, as budgets with an inverse need."""
        return self.psd

    def parts(self) -> list[Kernel]:
        return []

    def numbers(self) -> dict[str, float]:
        """The parameters of the compiled formula by name."""
        return {name: float(value) for name, value in self.get_params().items()}

    def native(self) -> dict[str, Any]:
        """The kernel in the form of the native core."""
        if not self.compiled:
            raise ParameterError(f"{self!r} has no compiled formula; give its function to kernels.Call")
        return {"op": self.compiled, "p": self.numbers(), "parts": [part.native() for part in self.parts()]}

    def __add__(self, other: Kernel | float) -> Kernel:
        return Sum(self, _kernel(other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, _kernel(other))

    __radd__ = __add__
    __rmul__ = __mul__


def _kernel(value: Kernel | float) -> Kernel:
    return value if isinstance(value, Kernel) else Constant(value)


@dataclasses.dataclass(repr=False)
class Constant(Kernel):
    """K = c ≥ 0; added to another kernel it is an intercept whose feature has the value √c."""

    name = "constant"
    c: float = number(1.0, at_least=0)

    def block(self, X: Array, Z: Array) -> Array:
        return np.full((len(X), len(Z)), float(self.c))


@dataclasses.dataclass(repr=False)
class Linear(Kernel):
    """K = ⟨x, z⟩."""

    name = "linear"

    def block(self, X: Array, Z: Array) -> Array:
        return np.asarray(X @ Z.T)


@dataclasses.dataclass(repr=False)
class _Combined(Kernel):
    """A combination of two kernels."""

    first: Kernel = dataclasses.field(default_factory=Linear)
    second: Kernel = dataclasses.field(default_factory=Linear)

    def validate(self) -> None:
        for part in self.parts():
            if not isinstance(part, Kernel):
                raise ParameterError(f"{type(self).__name__}: expected kernels, got {part!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.first!r}, {self.second!r})"

    def parts(self) -> list[Kernel]:
        return [self.first, self.second]

    def definite(self) -> bool:
        return all(part.definite() for part in self.parts())

    def resolved(self, d: int) -> Kernel:
        return type(self)(self.first.resolved(d), self.second.resolved(d))

    def numbers(self) -> dict[str, float]:
        return {}


@dataclasses.dataclass(repr=False)
class Sum(_Combined):
    """K = K₁ + K₂: Φ(x) has the features of both."""

    name = "sum"

    def block(self, X: Array, Z: Array) -> Array:
        return self.first.block(X, Z) + self.second.block(X, Z)


@dataclasses.dataclass(repr=False)
class Product(_Combined):
    """K = K₁ K₂: Φ(x) has the products of each feature of K₁ with each feature of K₂."""

    name = "product"

    def block(self, X: Array, Z: Array) -> Array:
        return self.first.block(X, Z) * self.second.block(X, Z)


def over(numerator: Array, denominator: Array) -> Array:
    """The quotient, with 0/0 = 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


@dataclasses.dataclass(repr=False)
class Normalized(Kernel):
    """K(x, z)/√(K(x, x) K(z, z)), 0 where K(x, x) or K(z, z) is 0: ‖Φ(x)‖ = 1."""

    name = "normalized"
    kernel: Kernel = dataclasses.field(default_factory=Linear)

    def validate(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ParameterError(f"{type(self).__name__}: expected a kernel, got {self.kernel!r}")

    def __repr__(self) -> str:
        return f"Normalized({self.kernel!r})"

    def parts(self) -> list[Kernel]:
        return [self.kernel]

    def definite(self) -> bool:
        return self.kernel.definite()

    def resolved(self, d: int) -> Kernel:
        return Normalized(self.kernel.resolved(d))

    def block(self, X: Array, Z: Array) -> Array:
        lengths = np.sqrt(np.outer(self.kernel.diagonal(X), self.kernel.diagonal(Z)))
        return over(self.kernel.block(X, Z), lengths)

    def numbers(self) -> dict[str, float]:
        return {}


@dataclasses.dataclass(repr=False)
class Cosine(Kernel):
    """K = ⟨x, z⟩/(‖x‖‖z‖), 0 where a norm is 0: `Normalized(Linear())`."""

    name = "cosine"

    def parts(self) -> list[Kernel]:
        return [Linear()]

    def block(self, X: Array, Z: Array) -> Array:
        return Normalized(Linear()).block(X, Z)

    def native(self) -> dict[str, Any]:
        return Normalized(Linear()).native()
