"""Gaussian weights, w ~ N(μ, Σ): the covariance says how sure a second-order rule is of every weight.

A rule that declares a `Spread` sees xx = φᵀΣφ and moves along Σφ: w ← scale·w + add·Σφ; then
Σ⁻¹ ← forget·Σ⁻¹ + gain·φφᵀ, which by Sherman and Morrison is Σ ← (Σ − κ zzᵀ)/forget with z = Σφ and
κ = gain/(forget + gain·φᵀΣφ). A diagonal Σ keeps only the diagonal of that; with a Σ for each class row, each row keeps
its block. `Covariance` is the reference that the native loops are tested against.

A full Σ comes in three forms, the same but for rounding. "gain" is the formula above. "joseph" (Bucy and Joseph 1968)
multiplies by I − kφᵀ from both sides, with the gain k = κz: Σ ← ((I − kφᵀ)Σ(I − kφᵀ)ᵀ + (forget/gain) kkᵀ)/forget:
rounding errors along φ are removed again. "chol" stores a triangular factor U with UUᵀ = Σ⁻¹ instead of Σ; Givens
rotations update it to that of forget·UUᵀ + gain·φφᵀ; Σφ is the solution of two triangular systems. Σ stays positive
definite whatever the rounding, and the condition number of U is the root of that of Σ.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from ..errors import NumericalError, ParameterError

__all__ = ["FORMS", "Covariance", "Spread"]

Array = NDArray[np.float64]
FORMS = ("gain", "joseph", "chol")


@dataclasses.dataclass(frozen=True)
class Spread:
    """The kind of Σ that a rule declares."""

    full: bool = False  # the matrix, or only its diagonal
    start: float = 1.0  # the variance of a weight that was not updated yet
    precisions: bool = False  # diagonal: add gain·φ_j² to 1/σ_j, instead of keeping the diagonal of the full formula
    forgets: bool = False  # full: a round changes Σ even if φ = 0
    drift: float = 0.0  # full: the variance that every weight gains before a round
    largest: float = math.inf  # full: a round does not forget if that would make a variance larger than this
    vaw: bool = False  # full: predict s/(1 + xᵀΣx)
    max_dim: int = 4096  # full: the most features, intercept included
    form: str = "gain"  # full: how Σ is stored and updated, one of FORMS

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ParameterError(f"Spread(form={self.form!r}): expected one of {', '.join(map(repr, FORMS))}")
        if self.form != "gain" and (not self.full or self.drift):
            raise ParameterError(f"Spread(form={self.form!r}) is for a full Σ without drift; use form='gain'")


class Covariance:
    """Σ of one or more rows of weights, the intercept's last; `shared`, one for all rows."""

    def __init__(self, spread: Spread, rows: int, width: int, *, shared: bool, intercept: bool) -> None:
        self.spread = spread
        # The variance of a constant feature that is always 0 would grow without bound.
        self.forgotten = width if intercept else width - 1
        start = spread.start * np.eye(width) if spread.full else np.full(width, spread.start)
        self.table: Array = np.stack([start] * (1 if shared else rows))

    def through(self, phi: Array) -> Array:
        """Σφ, in the shape of φ."""
        if not self.spread.full:
            return self.table * phi
        return np.asarray(np.einsum("rij,rj->ri", self.table, phi) + self.spread.drift * phi)

    def variance(self, phi: Array) -> float:
        """φᵀΣφ."""
        return float(np.sum(phi * self.through(phi)))

    def updated(self, phi: Array, gain: float, forget: float) -> Array:
        """The table after Σ⁻¹ ← forget·Σ⁻¹ + gain·φφᵀ. A diagonal Σ forgets only at features of the example."""
        if not (gain >= 0 and 0 < forget <= 1):
            raise NumericalError(f"Σ needs a gain >= 0 and a forget in (0, 1], got {gain!r} and {forget!r}")
        z = self.through(phi)
        v = float(np.sum(phi * z))
        if not math.isfinite(gain * v):
            raise NumericalError(f"the gain {gain!r} times φᵀΣφ = {v!r} overflows; scale importances or features down")
        if self.spread.full:
            kappa = gain / (forget + gain * v)
            made = self.table + self.spread.drift * np.eye(self.table.shape[1])
            made -= kappa * z[:, :, np.newaxis] * z[:, np.newaxis, :]
            diagonal = np.einsum("rii->ri", made)
            if float(np.max(diagonal[:, : self.forgotten])) / forget <= self.spread.largest:
                made /= forget
        else:
            if self.spread.precisions:
                kept = 1.0 / (forget / self.table + gain * phi * phi)
            else:  # (σ − κz²)/forget, written so that no rounding makes it 0
                others = np.maximum(0.0, v - phi * z)
                kept = self.table * ((forget + gain * others) / (forget + gain * v)) / forget
            made = diagonal = np.where(phi == 0, self.table, np.maximum(kept, np.finfo(np.float64).tiny))
        if not np.all(diagonal > 0) or not np.all(np.isfinite(made)):
            raise NumericalError("Σ has lost its positive diagonal; scale the features to similar sizes")
        return np.asarray(made)
