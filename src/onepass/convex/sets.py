"""Convex decision sets: each projects exactly, in the Euclidean metric and in a diagonal one.

`project(v)` is the nearest point, `linear_argmin(θ)` the best answer to a linear loss, `diameter(d)` = sup ‖u − w‖₂ in
d dimensions (d matters only for a box with equal sides), `width()` = sup ‖u − w‖_∞ (each inf where there is none).
Duchi, Shalev-Shwartz, Singer and Chandra 2008 for the simplex.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, ParameterError

__all__ = ["Box", "DecisionSet", "Halfspace", "L1Ball", "L2Ball", "Reals", "Simplex", "point"]

Array = NDArray[np.float64]


def point(v: ArrayLike, what: str = "v") -> Array:
    """A finite vector, or an `InputError`."""
    try:
        out = np.asarray(v, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what}={v!r:.80}: expected a vector of numbers") from None
    if out.ndim != 1 or not len(out):
        raise InputError(f"{what}: expected a vector of at least one number, got shape {out.shape}")
    if not np.all(np.isfinite(out)):
        raise InputError(f"{what}={v!r:.80}: expected finite numbers")
    return out


def norm(v: Array) -> float:
    """‖v‖₂, scaled so that squares neither overflow nor vanish."""
    top = float(np.max(np.abs(v)))
    return 0.0 if top == 0.0 else top * float(np.linalg.norm(v / top))


def weighted(H: ArrayLike, d: int) -> Array:
    out = point(H, "H")
    if len(out) != d or not np.all(out > 0):
        raise InputError(f"H: expected {d} numbers above 0, one for each coordinate")
    return out


class DecisionSet:
    """Base of the sets. `polyhedron(d)` gives (A, b) of {w : A w ≤ b}, or None where the set is not one."""

    def project(self, v: ArrayLike) -> Array:
        raise NotImplementedError

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        """argmin_{w ∈ S} Σ_j H_j (w_j − v_j)²."""
        raise NotImplementedError

    def linear_argmin(self, theta: ArrayLike) -> Array:
        """argmin_{w ∈ S} ⟨θ, w⟩."""
        raise NotImplementedError

    def diameter(self, d: int = 1) -> float:
        return math.inf

    def width(self) -> float:
        return math.inf

    def start(self, d: int) -> Array:
        """w₁: the projection of 0."""
        return self.project(np.zeros(d))

    def contains(self, v: ArrayLike, tol: float = 1e-9) -> bool:
        v = point(v)
        return norm(self.project(v) - v) <= tol * max(1.0, norm(v))

    def project_metric(self, v: ArrayLike, A: Array) -> Array:
        """argmin_{w ∈ S} (w − v)ᵀA(w − v) for A positive definite: accelerated projected gradient with restarts.

        Converges linearly; stops when a step moves less than 1e-13 of the scale. Sets with a closed form override it.
        """
        v = point(v)
        w = self.project(v)
        if self.contains(v):
            return v.copy()
        top = float(np.linalg.eigvalsh(A)[-1])
        ahead, momentum = w, 1.0
        for _ in range(100_000):
            new = self.project(ahead - A @ (ahead - v) / top)
            moved = new - w
            if norm(moved) <= 1e-13 * max(1.0, norm(new)) and norm(new - ahead) <= 1e-13 * max(1.0, norm(new)):
                return new
            following = (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
            if float((ahead - new) @ moved) > 0:  # O'Donoghue and Candès 2015: the momentum points uphill
                following, ahead = 1.0, new
            else:
                ahead = new + (momentum - 1.0) / following * moved
            w, momentum = new, following
        return w

    def polyhedron(self, d: int) -> tuple[Array, Array] | None:
        return None


@dataclasses.dataclass(frozen=True)
class Reals(DecisionSet):
    """All of ℝᵈ."""

    def project(self, v: ArrayLike) -> Array:
        return point(v).copy()

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        return point(v).copy()

    def linear_argmin(self, theta: ArrayLike) -> Array:
        theta = point(theta, "theta")
        if np.any(theta):
            raise ParameterError("a linear loss has no least value on all of R^d; give a bounded set")
        return np.zeros_like(theta)

    def polyhedron(self, d: int) -> tuple[Array, Array] | None:
        return np.zeros((0, d)), np.zeros(0)


def _radius(owner: str, r: float) -> None:
    if isinstance(r, bool) or not isinstance(r, int | float | np.number) or not 0 < r < math.inf:
        raise ParameterError(f"{owner}(r={r!r}): expected a finite number > 0")


@dataclasses.dataclass(frozen=True)
class L2Ball(DecisionSet):
    """{w : ‖w‖₂ ≤ r}."""

    r: float = 1.0

    def __post_init__(self) -> None:
        _radius("L2Ball", self.r)

    def project(self, v: ArrayLike) -> Array:
        v = point(v)
        size = norm(v)
        return v * (self.r / size) if size > self.r else v.copy()

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        """w_j = H_j v_j/(H_j + ν) with ν > 0 such that ‖w‖ = r."""
        v = point(v)
        H = weighted(H, len(v))
        if norm(v) <= self.r:
            return v.copy()
        return H * v / (H + secular(H * v, H, self.r))

    def project_metric(self, v: ArrayLike, A: Array) -> Array:
        """(A + νI) w = A v with ‖w‖ = r, in A's eigenvectors."""
        v = point(v)
        if norm(v) <= self.r:
            return v.copy()
        values, vectors = np.linalg.eigh(A)
        q = values * (vectors.T @ v)
        w = vectors @ (q / (values + secular(q, values, self.r)))
        return np.asarray(w)

    def linear_argmin(self, theta: ArrayLike) -> Array:
        theta = point(theta, "theta")
        size = norm(theta)
        return np.zeros_like(theta) if size == 0 else -self.r * theta / size

    def diameter(self, d: int = 1) -> float:
        return 2.0 * self.r

    def width(self) -> float:
        return 2.0 * self.r


def secular(q: Array, kappa: Array, r: float) -> float:
    """ν ≥ 0 with ‖q/(κ + ν)‖ = r, to full precision: the left side decreases with ν."""
    q, kappa = q[q != 0], kappa[q != 0]
    if not len(q):
        return 0.0
    low, high = 0.0, norm(q) / r
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if norm(q / (kappa + middle)) > r:
            low = middle
        else:
            high = middle
    return high


@dataclasses.dataclass(frozen=True, eq=False)
class Box(DecisionSet):
    """{w : lo ≤ w ≤ hi}, lo and hi numbers or vectors; infinite ends are allowed."""

    lo: ArrayLike = -1.0
    hi: ArrayLike = 1.0

    def __post_init__(self) -> None:
        lo, hi = (np.asarray(end, dtype=np.float64) for end in (self.lo, self.hi))
        if np.any(np.isnan(lo)) or np.any(np.isnan(hi)) or lo.ndim > 1 or hi.ndim > 1 or not np.all(lo <= hi):
            raise ParameterError(f"Box(lo={self.lo!r:.40}, hi={self.hi!r:.40}): expected numbers or vectors, lo <= hi")
        if np.any(lo == math.inf) or np.any(hi == -math.inf):
            raise ParameterError(f"Box(lo={self.lo!r:.40}, hi={self.hi!r:.40}): the box is empty")

    def ends(self, d: int) -> tuple[Array, Array]:
        try:
            return np.broadcast_to(np.asarray(self.lo, float), d), np.broadcast_to(np.asarray(self.hi, float), d)
        except ValueError:
            raise InputError(f"the box has {np.size(self.lo)} or {np.size(self.hi)} sides, the point {d}") from None

    def project(self, v: ArrayLike) -> Array:
        v = point(v)
        return np.clip(v, *self.ends(len(v)))

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        return self.project(v)  # coordinates are independent: the metric does not matter

    def linear_argmin(self, theta: ArrayLike) -> Array:
        theta = point(theta, "theta")
        lo, hi = self.ends(len(theta))
        at = np.where(theta > 0, lo, np.where(theta < 0, hi, np.clip(0.0, lo, hi)))
        if not np.all(np.isfinite(at)):
            raise ParameterError("a linear loss has no least value on this box: a side is infinite")
        return at

    def diameter(self, d: int = 1) -> float:
        sides = np.atleast_1d(np.asarray(self.hi, float) - np.asarray(self.lo, float))
        return float(np.linalg.norm(np.broadcast_to(sides, max(d, len(sides)))))

    def width(self) -> float:
        return float(np.max(np.asarray(self.hi, float) - np.asarray(self.lo, float)))

    def polyhedron(self, d: int) -> tuple[Array, Array] | None:
        lo, hi = self.ends(d)
        A, b = np.concatenate([np.eye(d), -np.eye(d)]), np.concatenate([hi, -lo])
        return A[np.isfinite(b)], b[np.isfinite(b)]


@dataclasses.dataclass(frozen=True)
class Simplex(DecisionSet):
    """{w ≥ 0 : Σ w = r}. `renormalize` makes the sum r to the last bit."""

    r: float = 1.0
    renormalize: bool = False

    def __post_init__(self) -> None:
        _radius("Simplex", self.r)

    def project(self, v: ArrayLike) -> Array:
        """w = max(0, v − θ), the threshold found by sorting."""
        v = point(v)
        v = v - np.max(v)  # the result is the same, and r is not lost in rounding when v is large
        u = np.sort(v)[::-1]
        above = np.cumsum(u) - self.r
        j = np.arange(1, len(v) + 1)
        rho = int(np.flatnonzero(u - above / j > 0)[-1])
        w: Array = np.maximum(0.0, v - above[rho] / (rho + 1))
        return np.asarray(w * (self.r / np.sum(w))) if self.renormalize else w

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        """w_j = max(0, v_j − ν/H_j)."""
        v = point(v)
        H = weighted(H, len(v))
        order = np.argsort(-H * v, kind="stable")
        nu = (np.cumsum(v[order]) - self.r) / np.cumsum(1.0 / H[order])
        k = int(np.flatnonzero((H * v)[order] > nu)[-1])
        return np.asarray(np.maximum(0.0, v - nu[k] / H))

    def linear_argmin(self, theta: ArrayLike) -> Array:
        theta = point(theta, "theta")
        w = np.zeros_like(theta)
        w[np.argmin(theta)] = self.r
        return w

    def start(self, d: int) -> Array:
        return np.full(d, self.r / d)

    def diameter(self, d: int = 1) -> float:
        return self.r * math.sqrt(2.0)

    def width(self) -> float:
        return self.r

    def polyhedron(self, d: int) -> tuple[Array, Array] | None:
        one = np.ones((1, d))
        return np.concatenate([-np.eye(d), one, -one]), np.concatenate([np.zeros(d), [self.r, -self.r]])


@dataclasses.dataclass(frozen=True)
class L1Ball(DecisionSet):
    """{w : ‖w‖₁ ≤ r}."""

    r: float = 1.0

    def __post_init__(self) -> None:
        _radius("L1Ball", self.r)

    def project(self, v: ArrayLike) -> Array:
        v = point(v)
        size = np.abs(v)
        return np.asarray(v.copy() if np.sum(size) <= self.r else np.sign(v) * Simplex(self.r).project(size))

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        v = point(v)
        size = np.abs(v)
        return v.copy() if np.sum(size) <= self.r else np.sign(v) * Simplex(self.r).project_diagonal(size, H)

    def linear_argmin(self, theta: ArrayLike) -> Array:
        theta = point(theta, "theta")
        w = np.zeros_like(theta)
        j = int(np.argmax(np.abs(theta)))
        w[j] = -self.r * np.sign(theta[j])
        return w

    def diameter(self, d: int = 1) -> float:
        return 2.0 * self.r

    def width(self) -> float:
        return 2.0 * self.r


@dataclasses.dataclass(frozen=True, eq=False)
class Halfspace(DecisionSet):
    """{w : ⟨a, w⟩ ≤ b}."""

    a: Any
    b: float = 0.0

    def __post_init__(self) -> None:
        a = point(self.a, "Halfspace's a")
        if not np.any(a) or not math.isfinite(self.b):
            raise ParameterError(
                f"Halfspace(a={self.a!r:.40}, b={self.b!r}): expected a vector that is not 0, finite b"
            )

    def _excess(self, v: Array, direction: Array) -> float:
        a = np.asarray(self.a, dtype=np.float64)
        if len(a) != len(v):
            raise InputError(f"the half-space has {len(a)} coordinates, the point {len(v)}")
        return max(0.0, (float(a @ v) - self.b) / float(a @ direction))

    def project(self, v: ArrayLike) -> Array:
        v, a = point(v), np.asarray(self.a, dtype=np.float64)
        return v - self._excess(v, a) * a

    def project_diagonal(self, v: ArrayLike, H: ArrayLike) -> Array:
        v = point(v)
        along = np.asarray(self.a, dtype=np.float64) / weighted(H, len(v))
        return v - self._excess(v, along) * along

    def project_metric(self, v: ArrayLike, A: Array) -> Array:
        v = point(v)
        along: Array = np.asarray(np.linalg.solve(A, np.asarray(self.a, dtype=np.float64)), dtype=np.float64)
        return v - self._excess(v, along) * along

    def linear_argmin(self, theta: ArrayLike) -> Array:
        theta, a = point(theta, "theta"), np.asarray(self.a, dtype=np.float64)
        if not np.any(theta):
            return self.project(np.zeros_like(a))
        slope = float(theta @ a) / float(a @ a)
        if slope >= 0 or not np.allclose(theta, slope * a, rtol=1e-12, atol=0):
            raise ParameterError(
                "this linear loss has no least value on the half-space; intersect it with a bounded set"
            )
        return a * (self.b / float(a @ a))

    def polyhedron(self, d: int) -> tuple[Array, Array] | None:
        return np.asarray(self.a, dtype=np.float64)[np.newaxis], np.array([float(self.b)])


def spread(values: Sequence[float]) -> float:
    """The smallest of several bounds on the same quantity."""
    return min(values, default=math.inf)
