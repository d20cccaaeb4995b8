"""Merging two support vectors into one (Wang, Crammer and Vucetic 2012)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ParameterError
from ...scheme.parameters import number
from ...scheme.rounds import Array, Rule
from .base import Budget, Memory

if TYPE_CHECKING:
    from ..algebra import Kernel
    from ..expansion import Expansion, Round

__all__ = ["Merge", "golden_section"]


@dataclasses.dataclass(repr=False)
class Merge(Budget):
    """When full, the vector with the smallest coefficient is merged with the one it fits best (Wang et al. 2012).

    For the Gaussian kernel: z = h xᵢ + (1 − h) xⱼ with the h ∈ [0, 1] that retains most, |cᵢκ^((1−h)²) + cⱼκ^(h²)|²,
    κ = K(xᵢ, xⱼ), by golden-section search. j is the vector that loses least, among those whose coefficients have the
    same sign. O(B). The merged vector is as old as the older of the two.
    """

    name = "merge"
    B: int = number(100, at_least=1, integer=True)

    def require(self, rule: Rule, task: str, kernel: Kernel) -> None:
        super().require(rule, task, kernel)
        if kernel.name != "rbf":
            raise ParameterError(
                f"{self!r} merges two vectors into one between them, which is supported for rbf, not {kernel!r}"
            )
        if rule.traits.uses_ww:
            raise ParameterError(f"{self!r} changes ‖f‖² by more than {rule!r} can follow; use another budget")

    def admit(self, f: Expansion, r: Round, memory: Memory) -> bool:
        changed = f.take_step(r)
        if len(f) <= self.B:
            return changed
        smallest = f.argmin(np.sum(f.c**2, axis=1))
        best = _best_merge(f, smallest)
        if best is None:
            f.remove(smallest)
        else:
            _replace_by_merged(f, r, smallest, *best)
        return True


def _best_merge(f: Expansion, i: int) -> tuple[int, float] | None:
    """j and h of the merge with vector i that loses least; the oldest j of equals. None where there is none."""
    sizes = np.sum(f.c**2, axis=1)
    best: tuple[float, int, int, float] | None = None
    for j in range(len(f)):
        mixed, kappa = float(f.c[i] @ f.c[j]), float(f.gram[i, j])
        if j == i or mixed <= 0 or kappa <= 0:
            continue
        retained = functools.partial(_retained, f, i, j, kappa)
        h = golden_section(retained)
        lost = sizes[i] + sizes[j] + 2 * mixed * kappa - retained(h)
        if best is None or (lost, f.birth[j]) < best[:2]:
            best = (lost, f.birth[j], j, h)
    return None if best is None else best[2:]


def _replace_by_merged(f: Expansion, r: Round, i: int, j: int, h: float) -> None:
    coefficients, z = _merged(f, i, j, float(f.gram[i, j]), h), h * f.x[i] + (1 - h) * f.x[j]
    born = min(f.birth[i], f.birth[j])
    for removed in sorted((i, j), reverse=True):
        f.remove(removed)
    f.append(dataclasses.replace(r, x=z, ktt=1.0, t=born), coefficients)


def _merged(f: Expansion, i: int, j: int, kappa: float, h: float) -> Array:
    """The coefficients of z = h xᵢ + (1 − h) xⱼ."""
    return np.asarray(f.c[i] * kappa ** ((1 - h) ** 2) + f.c[j] * kappa ** (h**2))


def _retained(f: Expansion, i: int, j: int, kappa: float, h: float) -> float:
    """The squared norm of these coefficients."""
    return float(np.sum(_merged(f, i, j, kappa, h) ** 2))


def golden_section(function: Callable[[float], float], steps: int = 30) -> float:
    """The maximum of a unimodal function on [0, 1]."""
    golden = 0.6180339887498949
    low, high = 0.0, 1.0
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = function(a), function(b)
    for _ in range(steps):
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = function(b)
    return 0.5 * (low + high)
