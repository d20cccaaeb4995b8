"""The best fixed comparator in hindsight, with its duality gap.

`best(X, y, loss)` minimises Σ c_i ℓ(⟨u, x_i⟩, y_i) over a set. X may be dense or CSR.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, ParameterError
from ...scheme import losses as losses_module
from ...scheme.losses import Loss
from ..sets import Array, DecisionSet, L2Ball, Reals, norm, secular
from . import duality

__all__ = ["Comparator", "best", "best_linear", "best_penalised", "best_quadratic", "values"]

# Up to this size a linear program is solved; above it, a smoothed problem, with its duality gap.
EXACT_ROWS, EXACT_NUMBERS = 5_000, 300_000
DENSE_NUMBERS = 20_000_000  # up to this size least squares are solved by SVD
PROJECTED = 1e-11  # accuracy of a projection, relative to the scale


@dataclasses.dataclass
class Comparator:
    """u, its total loss, and the accuracy of that: no point of the set has a loss below `value` − `gap`.

    The gap includes rounding errors; in ℝᵈ it holds for points up to `duality.REACH` times as far from 0 as u.
    """

    u: Array
    value: float
    gap: float = 0.0
    method: str = ""
    attained: bool = True  # False: the infimum is not attained, ‖u‖ would grow without bound
    set: str = "Reals()"


# -- losses on many scores -------------------------------------------------------------------------------------------


def values(loss: Loss, s: Array, y: Array) -> Array:
    """ℓ of every score; y is ±1 for margin losses."""
    return _curves(loss, s, y, 0.0)[0]


def _curves(loss: Loss, s: Array, y: Array, h: float) -> tuple[Array, Array]:
    """Values and derivatives in s. h > 0 smooths the kinks of piecewise linear losses from below."""
    name = loss.name
    if name == "logistic":
        m = y * s
        e = np.exp(-np.abs(m))
        return np.maximum(0.0, -m) + np.log1p(e), -y * np.where(m >= 0, e / (1 + e), 1 / (1 + e))
    if name == "squared_hinge":
        short = np.maximum(0.0, 1.0 - y * s)
        return 0.5 * short**2, -y * short
    if loss.margin and name in ("hinge", "perceptron"):
        value, slope = _ramp((1.0 if name == "hinge" else loss.beta) - y * s, h)  # type: ignore[attr-defined]
        return value, -y * slope
    r = y - s
    if name == "squared":
        return 0.5 * r * r, -r
    if name == "huber":
        delta = loss.delta  # type: ignore[attr-defined]
        inside = np.abs(r) <= delta
        return np.where(inside, 0.5 * r * r, delta * (np.abs(r) - 0.5 * delta)), -np.clip(r, -delta, delta)
    if name == "squared_eps_insensitive":
        over = np.maximum(0.0, np.abs(r) - loss.epsilon)  # type: ignore[attr-defined]
        return 0.5 * over**2, -np.sign(r) * over
    if name in ("absolute", "eps_insensitive", "quantile"):
        epsilon = loss.epsilon if name == "eps_insensitive" else 0.0  # type: ignore[attr-defined]
        tau = loss.tau if name == "quantile" else None  # type: ignore[attr-defined]
        up, du = _ramp(r - epsilon, h)
        down, dd = _ramp(-r - epsilon, h)
        a, b = (1.0, 1.0) if tau is None else (tau, 1.0 - tau)
        return a * up + b * down, -a * du + b * dd
    raise ParameterError(f"the loss {name} is not convex: its best comparator cannot be found reliably")


def _ramp(z: Array, h: float) -> tuple[Array, Array]:
    """max(0, z), with a parabola of width h in place of the kink."""
    if h == 0.0:
        return np.maximum(0.0, z), (z > 0).astype(np.float64)
    return np.where(z <= 0, 0.0, np.where(z < h, z * z / (2 * h), z - h / 2)), np.clip(z / h, 0.0, 1.0)


def _pieces(loss: Loss, y: Array) -> list[tuple[Array, Array]] | None:
    """Piecewise linear losses as ℓ(s) = max(0, a₁ + b₁s, a₂ + b₂s, …): the pairs (a, b) for each row; None for other
    losses.
    """
    one = np.ones_like(y)
    match loss.name:
        case "hinge":
            return [(one, -y)]
        case "perceptron":
            return [(loss.beta * one, -y)]  # type: ignore[attr-defined]
        case "absolute":
            return [(y, -one), (-y, one)]
        case "eps_insensitive":
            return [(y - loss.epsilon, -one), (-y - loss.epsilon, one)]  # type: ignore[attr-defined]
        case "quantile":
            tau = loss.tau  # type: ignore[attr-defined]
            return [(tau * y, -tau * one), ((tau - 1) * y, (1 - tau) * one)]
    return None


# -- the best point --------------------------------------------------------------------------------------------------


def best_linear(Z: Array, set: DecisionSet) -> Comparator:
    """Of Σ⟨z_t, ·⟩ = ⟨θ, ·⟩. Coordinates that are 0 up to rounding count as 0, because their sign is arbitrary."""
    noise = duality.EPS * len(Z) * np.sum(np.abs(Z), axis=0)
    theta = np.sum(Z, axis=0)
    theta = np.where(np.abs(theta) > noise, theta, 0.0)
    u, diameter = set.linear_argmin(theta), set.diameter(Z.shape[1])
    far = norm(u) + diameter if math.isfinite(diameter) else duality.REACH * max(1.0, norm(u))
    return Comparator(u, float(theta @ u), 2.0 * norm(noise) * far, "closed form", set=repr(set))


def best_quadratic(Z: Array, set: DecisionSet) -> Comparator:
    """Of Σ ½‖· − z_t‖²: the mean, projected."""
    mean = np.mean(Z, axis=0)
    u = set.project(mean)
    value = 0.5 * float(np.sum((Z - u) ** 2))
    terms = (Z.size + 64) * value + float(np.sum(np.abs(Z - u) * (np.abs(Z) + np.abs(u))))
    missed = max(PROJECTED, duality.EPS * len(Z)) * max(1.0, norm(u), norm(mean)) * len(Z)
    gap = 2.0 * duality.EPS * terms + missed * (norm(u - mean) + missed)
    return Comparator(u, value, gap, "projected mean", set=repr(set))


def best(
    X: Any, y: Array, loss: str | Loss, set: DecisionSet | None = None, weight: Array | None = None, ridge: float = 0.0
) -> Comparator:
    """argmin_{u ∈ S} Σ c_i ℓ(⟨u, x_i⟩, y_i). A ridge > 0 selects a length: u minimises Σ c ℓ + (ridge/2)‖·‖², and so Σ
    c ℓ over all v with ‖v‖ ≤ ‖u‖. Value and gap do not include the ridge.
    """
    problem, set = _problem(X, y, loss, weight), Reals() if set is None else set
    X, y, loss = problem.X, problem.y, problem.loss
    dense = X.shape[0] * X.shape[1] <= DENSE_NUMBERS
    if loss.name == "squared" and ridge == 0 and isinstance(set, Reals | L2Ball) and dense:
        return _least_squares(problem, set)
    pieces = _pieces(loss, y)
    numbers = X.nnz if hasattr(X, "nnz") else X.size
    if pieces is not None and ridge == 0 and len(y) <= EXACT_ROWS and numbers <= EXACT_NUMBERS:
        A = set.polyhedron(X.shape[1]) if type(set).__name__ != "L1Ball" else (None, None)
        if A is not None:
            return _linear_program(problem, pieces, set)
    return solved(problem, set, ridge)


def best_penalised(X: Any, y: Array, loss: str | Loss, weight: Array | None, ridge: float) -> Comparator:
    """argmin_u Σ c_i ℓ(⟨u, x_i⟩, y_i) + (ridge/2)‖u‖²; value and gap are those of the whole sum."""
    problem = _problem(X, y, loss, weight)
    u, h = _minimised(problem, ridge)
    value, gap = duality.certified(problem, u, problem.slopes(u, h), Reals(), ridge)
    return Comparator(u, value, gap, "L-BFGS")


def _problem(X: Any, y: Array, loss: str | Loss, weight: Array | None) -> Problem:
    y = np.asarray(y, dtype=np.float64)
    if X.shape[0] != len(y) or not len(y):
        raise InputError(f"expected as many rows as answers, at least one; got {X.shape[0]} and {len(y)}")
    c = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    return Problem(X, y, losses_module.make(loss), c)


def solved(problem: Problem, set: DecisionSet, ridge: float) -> Comparator:
    if isinstance(set, Reals):
        return _smooth(problem, ridge)
    if ridge:
        raise ParameterError("a comparator has a ridge, or a bounded set, not both")
    return _projected(problem, set)


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _least_squares(problem: Problem, set: DecisionSet) -> Comparator:
    root = np.sqrt(problem.c)
    D, target = _dense(problem.X) * root[:, np.newaxis], problem.y * root
    u: Array = np.asarray(np.linalg.lstsq(D, target, rcond=None)[0], dtype=np.float64)
    method = "least squares by SVD"
    if isinstance(set, L2Ball) and norm(u) > set.r:
        U, singular, V = np.linalg.svd(D, full_matrices=False)
        q, kappa = singular * (U.T @ target), singular**2
        u = np.asarray(V.T @ (q / (kappa + secular(q, kappa, set.r))), dtype=np.float64)
        method = "least squares, secular equation"
    alpha = problem.slopes(u, 0.0)
    if isinstance(set, Reals):
        alpha = duality.balanced(problem, alpha)
    value, gap = duality.certified(problem, u, alpha, set)
    return Comparator(u, value, gap, method, set=repr(set))


def _linear_program(problem: Problem, pieces: list[tuple[Array, Array]], set: DecisionSet) -> Comparator:
    """min Σ c ξ subject to ξ ≥ each linear piece, ξ ≥ 0, u ∈ S (the L1 ball as u = u⁺ − u⁻).

    The multipliers of the program are the slopes from which the gap is computed.
    """
    from scipy.sparse import block_array, csr_array, diags_array

    rows, d = problem.X.shape
    X, eye = csr_array(problem.X), diags_array(np.ones(rows))
    doubled = type(set).__name__ == "L1Ball"
    D = block_array([[X, -X]]) if doubled else X
    blocks: list[list[Any]] = [[diags_array(b) @ D, -eye] for _, b in pieces]
    right = [-a for a, _ in pieces]
    A, b = (np.ones((1, 2 * d)), np.array([float(set.r)])) if doubled else set.polyhedron(d)  # type: ignore[attr-defined,misc]
    if len(b):
        blocks.append([csr_array(A), None])
        right.append(b)
    free = np.array([[0.0 if doubled else -np.inf, np.inf]] * D.shape[1])
    x, multipliers = program(block_array(blocks, format="csr"), np.concatenate(right), free, problem.c)
    u = x[:d] - x[d : 2 * d] if doubled else x[:d]
    shares = multipliers[: rows * len(pieces)].reshape(len(pieces), rows)
    pulls = sum(share * slope for share, (_, slope) in zip(shares, pieces, strict=True))
    alpha = np.divide(pulls, problem.c, out=np.zeros(rows), where=problem.c > 0)
    if isinstance(set, Reals):
        alpha = duality.balanced(problem, alpha)
    value, gap = duality.certified(problem, u, alpha, set)
    return Comparator(u, value, gap, "linear program", set=repr(set))


def program(A: Any, b: Array, free: Array, c: Array) -> tuple[Array, Array]:
    """min Σ c ξ subject to A (w, ξ) ≤ b, w within `free`, ξ ≥ 0: (w, ξ), and a multiplier ≥ 0 for each row of A."""
    from scipy.optimize import linprog

    found: Any = linprog(  # type: ignore[call-overload]
        np.concatenate([np.zeros(len(free)), c]),
        A_ub=A,
        b_ub=b,
        bounds=np.concatenate([free, np.array([[0.0, np.inf]] * len(c))]),
        method="highs",
    )
    if not found.success:
        raise InputError(f"the linear program of the comparator failed: {found.message}")
    multipliers = np.maximum(0.0, -np.asarray(found.ineqlin.marginals, dtype=np.float64))
    return np.asarray(found.x, dtype=np.float64), multipliers


class Problem:
    """min_u Σ c_i ℓ(⟨u, x_i⟩, y_i) as the solvers use it; with several classes, u is a flattened matrix
    (`class_hindsight`).

    h > 0 smooths the kinks of piecewise linear losses. The slopes of the smoothed loss are slopes of the loss, too.
    """

    X: Any
    y: Any

    def __init__(self, X: Any, y: Array, loss: Loss, c: Array) -> None:
        self.X, self.y, self.loss, self.c = X, y, loss, c
        self.kinks = _pieces(loss, y) is not None
        self.curvature = {"logistic": 0.25}.get(loss.name, 1.0)
        self.size = int(X.shape[1])

    @functools.cached_property
    def largest(self) -> Array:
        """The largest |x_j| of every column, in the shape of u; 1 if all are 0."""
        top = abs(self.X).max(axis=0)
        top = np.ravel(top.toarray() if hasattr(top, "toarray") else top)
        return np.tile(np.where(top > 0, top, 1.0), self.size // self.X.shape[1])

    def scores(self, u: Array) -> Array:
        return np.asarray(self.X @ u)

    def losses(self, u: Array) -> Array:
        return values(self.loss, self.scores(u), self.y)

    def slopes(self, u: Array, h: float) -> Array:
        return _curves(self.loss, self.scores(u), self.y, h)[1]

    def pull(self, alpha: Array) -> Array:
        """Σ cαx."""
        return np.asarray(self.X.T @ (self.c * alpha))

    def curves(self, u: Array, h: float) -> tuple[float, Array]:
        """Value and gradient, with smoothed kinks."""
        value, slope = _curves(self.loss, self.scores(u), self.y, h)
        return float(self.c @ value), self.pull(slope)

    def bends(self, u: Array, h: float) -> Array | None:
        """Second derivatives in the score, with smoothed kinks; None if they do not exist."""
        return _bends(self.loss, self.scores(u), self.y, h)

    def bend(self, bends: Array, s: Array) -> Array:
        """The change of the slopes when the scores change by s."""
        return bends * s

    def gram(self, bends: Array) -> Array:
        """Σ c bends xxᵀ."""
        return weighted_gram(self.X, self.c * bends)

    def inside(self, alpha: Array) -> Array:
        """The projection of slopes onto their domain."""
        return np.clip(alpha, *duality.domain(self.loss, self.y))

    def tangents(self, alpha: Array) -> Array:
        return duality.tangents(self.loss, alpha, self.y)

    def room(self, alpha: Array) -> Array:
        return duality.room(self.loss, alpha, self.y)

    def sums(self, alpha: Array) -> Array:
        """Σ c|α||x|: rounding errors are proportional to it."""
        return np.asarray(abs(self.X).T @ (self.c * np.abs(alpha)))

    def steepness(self, alpha: Array) -> float:
        """Σ c|α|."""
        return float(self.c @ np.abs(alpha))

    def separated(self, u: Array) -> bool:
        """Does u separate the classes, by more than rounding?"""
        noise = duality.EPS * (self.size + 1) * (abs(self.X) @ np.abs(u))
        return bool(self.loss.margin and np.all((self.y * self.scores(u) > noise) | (self.c == 0)))

    def widths(self) -> tuple[float, ...]:
        """Decreasing widths of the smoothed kinks; 0 if there are no kinks."""
        return (0.1, 0.01, 1e-3, 1e-4) if self.kinks else (0.0,)

    def spectrum(self) -> float:
        return _largest_square(self.X, self.c)


def weighted_gram(X: Any, w: Array) -> Array:
    """Xᵀ diag(w) X."""
    if hasattr(X, "multiply"):
        return np.asarray((X.T @ X.multiply(w[:, np.newaxis])).toarray())
    return np.asarray(X.T @ (X * w[:, np.newaxis]))


def _bends(loss: Loss, s: Array, y: Array, h: float) -> Array:
    """Second derivatives in s, kinks rounded by h."""
    slope = _curves(loss, s, y, h)[1]
    if loss.name == "logistic":
        return np.asarray(np.abs(slope) * (1.0 - np.abs(slope)))
    low, high = duality.domain(loss, y)
    if loss.name == "squared":
        return np.ones_like(s)
    inside = (low < slope) & (slope < high) & ((slope != 0) | (loss.name == "huber"))
    return np.where(inside, 1.0 / h if h else 1.0, 0.0)


# -- solvers ---------------------------------------------------------------------------------------------------------


def _minimised(problem: Problem, ridge: float) -> tuple[Array, float]:
    """argmin Σ c ℓ + (ridge/2)‖·‖² on ℝᵈ, and the width of the smoothed kinks: L-BFGS, then Newton's steps.

    For L-BFGS, columns are scaled to a largest entry of 1.
    """
    from scipy.optimize import minimize

    v, unit, h = np.zeros(problem.size), 1.0 / problem.largest, 0.0
    for h in problem.widths():
        found = minimize(
            _penalised(problem, ridge, h, unit),
            v,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 2_000, "maxfun": 5_000, "ftol": 1e-14, "gtol": 1e-10},
        )
        v = np.asarray(found.x, dtype=np.float64)
    return _newton(problem, ridge, h, v * unit), h


def _penalised(
    problem: Problem, ridge: float, h: float, unit: Array | float = 1.0
) -> Callable[[Array], tuple[float, Array]]:
    """Value and gradient as functions of u/unit."""

    def objective(v: Array) -> tuple[float, Array]:
        u = v * unit
        value, gradient = problem.curves(u, h)
        return value + 0.5 * ridge * float(u @ u), (gradient + ridge * u) * unit

    return objective


def _newton(problem: Problem, ridge: float, h: float, u: Array) -> Array:
    """Newton's steps, halved until the value decreases, if the equations are small enough to be solved directly."""
    objective = _penalised(problem, ridge, h)
    for _ in range(50 if duality.small(problem) else 0):
        bends = problem.bends(u, h)
        value, g = objective(u)
        if bends is None:
            return u
        step = duality.descent(problem, bends, g, ridge)
        promised = -float(g @ step)
        if not promised > duality.EPS * value:
            return u
        while objective(u + step)[0] > value - 1e-4 * promised:
            step, promised = 0.5 * step, 0.5 * promised
            if promised <= duality.EPS * value:
                return u
        u = u + step
    return u


def _smooth(problem: Problem, ridge: float) -> Comparator:
    """The minimum on ℝᵈ; with a ridge, on the ball ‖v‖ ≤ ‖u‖."""
    u, h = _minimised(problem, ridge)
    if ridge == 0 and problem.separated(u):
        zero = problem.loss.name == "logistic"  # the infimum, which is approached as ‖u‖ grows
        value = 0.0 if zero else float(problem.c @ problem.losses(u))
        return Comparator(u, value, value, "separable", attained=not zero)
    alpha = problem.slopes(u, h)
    if ridge == 0:
        value, gap = duality.certified(problem, u, duality.balanced(problem, alpha), Reals())
        return Comparator(u, value, gap, "L-BFGS")
    size = max(norm(u), 1e-300)
    value, gap = duality.certified(problem, u, alpha, L2Ball(size))
    return Comparator(u, value, gap, f"L-BFGS, best of its length ({size:.4g})", set=f"L2Ball({size:.6g})")


def _projected(problem: Problem, set: DecisionSet) -> Comparator:
    """The minimum on a set: accelerated projected gradient with restarts, with narrower and narrower smoothed kinks,
    until the gap is small.
    """
    spectrum, bounded = problem.spectrum(), math.isfinite(set.diameter(problem.size))
    u, best_u, value, bound = set.start(problem.size), set.start(problem.size), math.inf, 0.0
    for h in problem.widths():
        curvature = problem.curvature / h if h else problem.curvature
        step, ahead, momentum = 1.0 / max(spectrum * curvature, 1e-300), u, 1.0
        for k in range(1, 4_001):
            new = set.project(ahead - step * problem.curves(ahead, h)[1])
            following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            if float((ahead - new) @ (new - u)) > 0:
                following, ahead = 1.0, new
            else:
                ahead = new + (momentum - 1.0) / following * (new - u)
            moved, u, momentum = norm(new - u), new, following
            if k % 20 == 0 or moved == 0.0:
                now, gap = duality.certified(problem, u, problem.slopes(u, h), set)
                if now < value or not bounded:
                    best_u, value = u, now
                bound = max(bound if bounded else 0.0, now - gap)
                if value - bound <= 1e-9 * value or moved <= 1e-13 * max(1.0, norm(u)):
                    break
    return Comparator(best_u, value, value - bound, "projected gradient", set=repr(set))


def _largest_square(X: Any, c: Array) -> float:
    """An upper bound on the largest eigenvalue of Xᵀ diag(c) X, by the power method, with a safety margin."""
    v = np.ones(X.shape[1]) / math.sqrt(X.shape[1])
    size = 0.0
    for _ in range(50):
        v = np.asarray(X.T @ (c * (X @ v)))
        size = norm(v)
        if size == 0:
            return float(np.sum(c))
        v = v / size
    return 1.1 * size


def labels_as_signs(y: NDArray[Any], classes: list[Any]) -> Array:
    """Two labels as ±1, the larger +1."""
    return np.where(np.asarray(y) == classes[-1], 1.0, -1.0)
