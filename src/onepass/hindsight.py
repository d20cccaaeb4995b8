"""The best fixed comparator in hindsight, exact where there is an exact method, else with a duality gap (spec 00 §7.1).

`best(X, y, loss)` minimises Σ c_i ℓ(⟨u, x_i⟩, y_i) over a set. Rows may be dense or CSR.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import losses as losses_module
from .convex.sets import Array, DecisionSet, L2Ball, Reals, norm, secular
from .errors import InputError, ParameterError
from .losses import Loss

__all__ = ["Comparator", "best", "best_linear", "best_quadratic", "values"]

EXACT_ROWS, EXACT_NUMBERS = 5_000, 300_000  # up to here a linear program; beyond, a smoothed problem with its gap
DENSE_NUMBERS = 20_000_000  # up to here least squares by SVD
EPS = float(np.finfo(np.float64).eps)


@dataclasses.dataclass
class Comparator:
    """u, what it would have lost in all, and how sure that is: no point of the set loses less than `value` − `gap`."""

    u: Array
    value: float
    gap: float = 0.0
    method: str = ""
    attained: bool = True  # False: the infimum is approached only by ever longer u
    set: str = "Reals()"


# -- losses on many scores -------------------------------------------------------------------------------------------


def values(loss: Loss, s: Array, y: Array) -> Array:
    """ℓ of every score; y is ±1 for margin losses."""
    return _curves(loss, s, y, 0.0)[0]


def _curves(loss: Loss, s: Array, y: Array, h: float) -> tuple[Array, Array]:
    """Values and derivatives in s. h > 0 rounds the kinks of piecewise linear losses: never above the loss itself."""
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
    raise ParameterError(f"the loss {name} is not convex: it has no best comparator that can be found for sure")


def _ramp(z: Array, h: float) -> tuple[Array, Array]:
    """max(0, z), its kink a parabola of width h."""
    if h == 0.0:
        return np.maximum(0.0, z), (z > 0).astype(np.float64)
    return np.where(z <= 0, 0.0, np.where(z < h, z * z / (2 * h), z - h / 2)), np.clip(z / h, 0.0, 1.0)


def _pieces(loss: Loss, y: Array) -> list[tuple[Array, Array]] | None:
    """Piecewise linear losses as ℓ(s) = max(0, a₁ + b₁s, a₂ + b₂s, …): the (a, b) of each row; None for smooth ones."""
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
    """Of Σ⟨z_t, ·⟩ = ⟨θ, ·⟩. What rounding leaves of coordinates that cancel out is 0: it has no direction."""
    theta = np.sum(Z, axis=0)
    theta = np.where(np.abs(theta) > EPS * len(Z) * np.sum(np.abs(Z), axis=0), theta, 0.0)
    u = set.linear_argmin(theta)
    return Comparator(u, float(theta @ u), method="closed form", set=repr(set))


def best_quadratic(Z: Array, set: DecisionSet) -> Comparator:
    """Of Σ ½‖· − z_t‖²: the mean, projected."""
    u = set.project(np.mean(Z, axis=0))
    return Comparator(u, 0.5 * float(np.sum((Z - u) ** 2)), method="projected mean", set=repr(set))


def best(
    X: Any, y: Array, loss: str | Loss, set: DecisionSet | None = None, weight: Array | None = None, ridge: float = 0.0
) -> Comparator:
    """argmin_{u ∈ S} Σ c_i ℓ(⟨u, x_i⟩, y_i) + (ridge/2)‖u‖² (the value without the ridge where it is 0)."""
    loss, set = losses_module.make(loss), Reals() if set is None else set
    y = np.asarray(y, dtype=np.float64)
    if X.shape[0] != len(y) or not len(y):
        raise InputError(f"expected as many rows as answers, at least one; got {X.shape[0]} and {len(y)}")
    c = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    if (
        loss.name == "squared"
        and ridge == 0
        and isinstance(set, Reals | L2Ball)
        and X.shape[0] * X.shape[1] <= DENSE_NUMBERS
    ):
        return _least_squares(X, y, c, set)
    pieces = _pieces(loss, y)
    numbers = X.nnz if hasattr(X, "nnz") else X.size
    if pieces is not None and ridge == 0 and len(y) <= EXACT_ROWS and numbers <= EXACT_NUMBERS:
        A = set.polyhedron(X.shape[1]) if type(set).__name__ != "L1Ball" else (None, None)
        if A is not None:
            return _linear_program(X, y, loss, pieces, c, set)
    return solved(Problem(X, y, loss, c), set, ridge)


def solved(problem: Problem, set: DecisionSet, ridge: float) -> Comparator:
    if isinstance(set, Reals):
        return _smooth(problem, ridge)
    if ridge:
        raise ParameterError("a comparator has a ridge, or a bounded set, not both")
    return _projected(problem, set)


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _total(X: Any, y: Array, loss: Loss, c: Array, u: Array) -> float:
    return float(np.sum(c * values(loss, X @ u, y)))


def _least_squares(X: Any, y: Array, c: Array, set: DecisionSet) -> Comparator:
    root = np.sqrt(c)
    D, target = _dense(X) * root[:, np.newaxis], y * root
    u: Array = np.asarray(np.linalg.lstsq(D, target, rcond=None)[0], dtype=np.float64)
    method = "least squares by SVD"
    if isinstance(set, L2Ball) and norm(u) > set.r:
        U, singular, V = np.linalg.svd(D, full_matrices=False)
        q, kappa = singular * (U.T @ target), singular**2
        u = np.asarray(V.T @ (q / (kappa + secular(q, kappa, set.r))), dtype=np.float64)
        method = "least squares, secular equation"
    return Comparator(u, _total(X, y, losses_module.Squared(), c, u), method=method, set=repr(set))


def _linear_program(
    X: Any, y: Array, loss: Loss, pieces: list[tuple[Array, Array]], c: Array, set: DecisionSet
) -> Comparator:
    """min Σ c ξ subject to ξ ≥ each linear piece, ξ ≥ 0, u ∈ S (the L1 ball as u = u⁺ − u⁻)."""
    from scipy.optimize import linprog
    from scipy.sparse import block_array, csr_array, diags_array

    rows, d = X.shape
    X, eye = csr_array(X), diags_array(np.ones(rows))
    doubled = type(set).__name__ == "L1Ball"
    D = block_array([[X, -X]]) if doubled else X
    wide = D.shape[1]
    blocks: list[list[Any]] = [[diags_array(b) @ D, -eye] for _, b in pieces]
    right = [-a for a, _ in pieces]
    if doubled:
        blocks.append([csr_array(np.ones((1, wide))), None])
        right.append(np.array([float(set.r)]))  # type: ignore[attr-defined]
    else:
        inside = set.polyhedron(d)
        assert inside is not None
        if len(inside[1]):
            blocks.append([csr_array(inside[0]), None])
            right.append(inside[1])
    low = 0.0 if doubled else -np.inf
    bounds = np.array([[low, np.inf]] * wide + [[0.0, np.inf]] * rows)
    cost = np.concatenate([np.zeros(wide), c])
    found: Any = linprog(  # type: ignore[call-overload]
        cost, A_ub=block_array(blocks, format="csr"), b_ub=np.concatenate(right), bounds=bounds, method="highs"
    )
    if not found.success:
        raise InputError(f"the linear program of the comparator failed: {found.message}")
    x = np.asarray(found.x, dtype=np.float64)
    u = x[:d] - x[d : 2 * d] if doubled else x[:d]
    value = _total(X, y, loss, c, u)
    return Comparator(u, value, max(0.0, value - float(found.fun)), "linear program", set=repr(set))


class Problem:
    """min_u Σ c_i ℓ(⟨u, x_i⟩, y_i) as the solvers see it; with class rows, u is a matrix made flat (`class_hindsight`).

    Piecewise linear losses have kinks, which h > 0 rounds, and slopes with ℓ(s) ≥ slope·s + e for all s.
    """

    X: Any
    y: Any

    def __init__(self, X: Any, y: Array, loss: Loss, c: Array) -> None:
        self.X, self.y, self.loss, self.c = X, y, loss, c
        self.kinks = _pieces(loss, y) is not None
        self.curvature = {"logistic": 0.25}.get(loss.name, 1.0)
        self.size = int(X.shape[1])

    def total(self, u: Array) -> float:
        return _total(self.X, self.y, self.loss, self.c, u)

    def curves(self, u: Array, h: float) -> tuple[float, Array]:
        """Value and gradient, the kinks rounded."""
        value, slope = _curves(self.loss, self.X @ u, self.y, h)
        return float(self.c @ value), np.asarray(self.X.T @ (self.c * slope))

    def floor(self, u: Array, h: float) -> float:
        """Σ c e of the slopes there: no v loses less than it plus ⟨gradient, v⟩."""
        return float(self.c @ _conjugate(self.loss, _curves(self.loss, self.X @ u, self.y, h)[1], self.y))

    def separated(self, u: Array) -> bool:
        return bool(self.loss.margin and np.all((self.y * (self.X @ u) > 0) | (self.c == 0)))

    def widths(self) -> tuple[float, ...]:
        """Roundings of the kinks, ever finer; 0 where there are none."""
        return (0.1, 0.01, 1e-3, 1e-4) if self.kinks else (0.0,)

    def spectrum(self) -> float:
        return _largest_square(self.X, self.c)


def _minimised(problem: Problem, ridge: float, h: float, start: Array) -> Array:
    from scipy.optimize import minimize

    def objective(u: Array) -> tuple[float, Array]:
        value, gradient = problem.curves(u, h)
        return value + 0.5 * ridge * float(u @ u), gradient + ridge * u

    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 2_000, "maxfun": 5_000, "ftol": 1e-14, "gtol": 1e-10},
    )
    return np.asarray(found.x, dtype=np.float64)


def _smooth(problem: Problem, ridge: float) -> Comparator:
    """On all of ℝᵈ. The gap is that to every point of length at most twice ‖u‖: no gradient can tell of the others."""
    u, h = np.zeros(problem.size), 0.0
    for h in problem.widths():
        u = _minimised(problem, ridge, h, u)
    if ridge == 0 and problem.separated(u):
        zero = problem.loss.name == "logistic"  # the infimum, which ever longer u approach
        value = 0.0 if zero else problem.total(u)
        return Comparator(u, value, 0.0 if zero else value, "separable", attained=not zero)
    value, gap = _certified(problem, u, h, L2Ball(max(norm(u), 1e-12) * (2.0 if ridge == 0 else 1.0)))
    note = "L-BFGS" if ridge == 0 else f"L-BFGS, best of its length ({norm(u):.4g})"
    return Comparator(u, value, gap, note, set="Reals()" if ridge == 0 else f"L2Ball({norm(u):.6g})")


def _certified(problem: Problem, u: Array, h: float, set: DecisionSet) -> tuple[float, float]:
    """Σℓ(u), and how much less a point of the set can lose, by duality.

    Smooth losses: f(v) ≥ f(u) + ⟨∇f(u), v − u⟩. Piecewise linear ones: with α the slopes of the rounded loss, which lie
    between those of its pieces, ℓ(s) ≥ αs + e(α) for the e of its conjugate, and a linear function is minimised
    exactly.
    """
    value, g = problem.total(u), problem.curves(u, h)[1]
    least = float(g @ set.linear_argmin(g))
    if not problem.kinks:
        return value, max(0.0, float(g @ u) - least)
    return value, max(0.0, value - (problem.floor(u, h) + least))


def _conjugate(loss: Loss, slope: Array, y: Array) -> Array:
    """e with ℓ(s) ≥ slope·s + e for all s, tight for the loss."""
    match loss.name:
        case "hinge":
            return -slope * y
        case "perceptron":
            return np.asarray(-slope * y * loss.beta)  # type: ignore[attr-defined]
        case "eps_insensitive":
            return np.asarray(-slope * y - loss.epsilon * np.abs(slope))  # type: ignore[attr-defined]
    return -slope * y


def _projected(problem: Problem, set: DecisionSet) -> Comparator:
    """On a bounded set: accelerated projected gradient with restarts, on ever sharper kinks, until the gap is small."""
    spectrum = problem.spectrum()
    u, value, gap = set.start(problem.size), math.inf, math.inf
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
                value, gap = _certified(problem, u, h, set)
                if gap <= 1e-9 * value or moved <= 1e-13 * max(1.0, norm(u)):
                    break
    return Comparator(u, value, gap, "projected gradient", set=repr(set))


def _largest_square(X: Any, c: Array) -> float:
    """An upper bound on the largest eigenvalue of Xᵀ diag(c) X, by power steps, with room."""
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
    """Two labels as ±1, the larger +1 (spec 00 §3)."""
    return np.where(np.asarray(y) == classes[-1], 1.0, -1.0)
