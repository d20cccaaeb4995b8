"""Intersections of sets, by Dykstra's alternating projections (Boyle and Dykstra 1986)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, ParameterError
from .sets import Array, DecisionSet, norm, point, spread, weighted

__all__ = ["Intersection"]


@dataclasses.dataclass(frozen=True)
class Intersection(DecisionSet):
    """S₁ ∩ … ∩ S_n. Projects onto one set after the other; before each projection the correction of that set is added.

    Plain alternating projections converge to some point of the intersection, Dykstra's to the nearest. The iteration
    stops when a round over all sets moves the point by less than `tol` times the scale and every set contains it. After
    `rounds` rounds an `InputError` is raised; for sets that intersect this happens only if the intersection is tiny.
    """

    sets: Sequence[DecisionSet]
    tol: float = 1e-12
    rounds: int = 100_000

    def __post_init__(self) -> None:
        if len(self.sets) < 2 or not all(isinstance(each, DecisionSet) for each in self.sets):
            raise ParameterError(f"Intersection(sets={self.sets!r:.80}): expected at least two sets")

    def _dykstra(self, v: Array, onto: Callable[[DecisionSet, Array], Array]) -> Array:
        w, corrections = v, [np.zeros_like(v)] * len(self.sets)
        for _ in range(self.rounds):
            before = w
            changed = 0.0
            for i, each in enumerate(self.sets):
                pulled = w + corrections[i]
                w = onto(each, pulled)
                changed = max(changed, norm(pulled - w - corrections[i]))
                corrections[i] = pulled - w
            scale = self.tol * max(1.0, norm(w))
            if changed <= scale and norm(w - before) <= scale:
                return w
        raise InputError(
            f"Dykstra's projections did not converge in {self.rounds:,} rounds: do the sets intersect? "
            f"{self.sets!r:.200}"
        )

    def project(self, v: ArrayLike) -> Array:
        return self._dykstra(point(v).copy(), lambda each, p: each.project(p))

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        v = point(v)
        H = weighted(H, len(v))
        return self._dykstra(v.copy(), lambda each, p: each.project_diagonal(p, H))

    def project_metric(self, v: ArrayLike, A: Array) -> Array:
        return self._dykstra(point(v).copy(), lambda each, p: each.project_metric(p, A))

    def contains(self, v: ArrayLike, tol: float = 1e-9) -> bool:
        return all(each.contains(v, tol) for each in self.sets)

    def linear_argmin(self, theta: ArrayLike) -> Array:
        """A linear program, where all sets are polyhedra."""
        theta = point(theta, "theta")
        parts = [each.polyhedron(len(theta)) for each in self.sets]
        if any(part is None for part in parts):
            raise ParameterError("the best point for a linear loss is found on intersections of polyhedra only")
        from scipy.optimize import linprog

        A = np.concatenate([part[0] for part in parts if part is not None])
        b = np.concatenate([part[1] for part in parts if part is not None])
        found = linprog(theta, A_ub=A, b_ub=b, bounds=(None, None), method="highs")
        if not found.success:
            raise ParameterError(f"this linear loss has no least value on the intersection: {found.message}")
        return np.asarray(found.x, dtype=np.float64)

    def polyhedron(self, d: int) -> tuple[Array, Array] | None:
        parts = [each.polyhedron(d) for each in self.sets]
        if any(part is None for part in parts):
            return None
        return (
            np.concatenate([part[0] for part in parts if part is not None]),
            np.concatenate([part[1] for part in parts if part is not None]),
        )

    def diameter(self, d: int = 1) -> float:
        """An upper bound: the diameter of the smallest part."""
        return spread([each.diameter(d) for each in self.sets])

    def width(self) -> float:
        return spread([each.width() for each in self.sets])
