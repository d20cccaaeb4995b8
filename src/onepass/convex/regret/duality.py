"""A lower bound on the loss of the best fixed comparator, by Fenchel duality, including rounding errors.

For a slope α_i in the domain of the conjugate, ℓ_i(s) ≥ α_i s + e_i(α_i) for every s. So with g = Σ c_i α_i x_i

    Σ c_i ℓ_i(⟨v, x_i⟩) ≥ ⟨g, v⟩ + Σ c_i e_i(α_i)        for every v,

and on a bounded set the right side has a minimum. On all of ℝᵈ it has one only if g = 0: `balanced` changes the slopes
until that holds up to rounding errors, which are bounded for every v with |v_j| ≤ `REACH` max(|u_j|, 1/max_i |x_ij|).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...scheme.losses import Loss
from ..sets import Array, DecisionSet, norm

if TYPE_CHECKING:
    from .hindsight import Problem

__all__ = ["balanced", "certified", "descent", "domain", "entropy", "room", "small", "tangents"]

EPS = float(np.finfo(np.float64).eps)
REACH = 100.0
SMALL, OPERATIONS = 1_000, 2e9  # up to this size linear equations are solved directly, above it by MINRES
ROUNDS = 20  # of `balanced`


# -- conjugates of the losses of one score ---------------------------------------------------------------------------


def domain(loss: Loss, y: Array) -> tuple[Array, Array]:
    """The least and largest slope of every row's loss."""
    end = np.full(len(y), math.inf)
    if loss.margin:
        top = end if loss.name == "squared_hinge" else np.ones(len(y))
        return np.where(y > 0, -top, 0.0), np.where(y > 0, 0.0, top)
    if loss.name == "quantile":
        tau = float(loss.tau)  # type: ignore[attr-defined]
        return np.full(len(y), -tau), np.full(len(y), 1.0 - tau)
    if loss.name in ("absolute", "eps_insensitive", "huber"):
        end = np.full(len(y), getattr(loss, "delta", 1.0))
    return -end, end


def tangents(loss: Loss, alpha: Array, y: Array) -> Array:
    """The largest e with ℓ(s) ≥ αs + e for all s; α must be in the domain."""
    if loss.name == "logistic":
        p = np.abs(alpha)
        return entropy(p) + entropy(1.0 - p)
    curved = 0.5 * alpha**2 if loss.name in ("squared", "huber", "squared_hinge", "squared_eps_insensitive") else 0.0
    if loss.margin:
        return np.asarray(getattr(loss, "beta", 1.0) * np.abs(alpha) - curved)
    return np.asarray(-alpha * y - getattr(loss, "epsilon", 0.0) * np.abs(alpha) - curved)


def entropy(p: Array) -> Array:
    """−p ln p, 0 at 0."""
    return np.asarray(-p * np.log(np.where(p > 0, p, 1.0)))


def room(loss: Loss, alpha: Array, y: Array) -> Array:
    """How far each slope can change: 0 at the ends of its domain and at kinks of e."""
    low, high = domain(loss, y)
    below, above = np.minimum(alpha - low, 1.0), np.minimum(high - alpha, 1.0)
    tube = np.minimum(np.abs(alpha), 1.0) if getattr(loss, "epsilon", 0.0) > 0 else 1.0
    return np.asarray(below * above * tube)


# -- bounds ----------------------------------------------------------------------------------------------------------


def certified(problem: Problem, u: Array, alpha: Array, set: DecisionSet, ridge: float = 0.0) -> tuple[float, float]:
    """Σ c ℓ(u) + (ridge/2)‖u‖², and an upper bound on how much lower the loss of another point of the set can be, from
    the slopes alpha.
    """
    alpha = problem.inside(alpha)
    losses, e, g = problem.losses(u), problem.tangents(alpha), problem.pull(alpha)
    sums, penalty, diameter = problem.sums(alpha), 0.5 * ridge * float(u @ u), set.diameter(problem.size)
    value = float(problem.c @ losses) + penalty
    if ridge:  # min ⟨g, v⟩ + (ridge/2)‖v‖² over all v
        least, terms = -float(g @ g) / (2.0 * ridge), norm(sums) * (norm(u) + norm(g) / ridge) + penalty
    elif math.isfinite(diameter):
        least, terms = float(g @ set.linear_argmin(g)), norm(sums) * (norm(u) + diameter)
    else:
        far = REACH * np.maximum(np.abs(u), 1.0 / problem.largest)
        A, b, mu = _walls(set, u, g)  # ⟨g, v⟩ ≥ ⟨g + Aᵀμ, v⟩ − ⟨μ, b⟩ where A v ≤ b
        least = -float(np.abs(g + mu @ A) @ far) - float(mu @ b)
        terms = float(sums @ far) + float(mu @ (np.abs(A) @ far + np.abs(b)))
    terms += float(problem.c @ (np.abs(losses) + np.abs(e))) + problem.steepness(alpha)
    noise = EPS * (len(losses) + problem.size + 64) * terms
    return value, min(value, max(0.0, value - float(problem.c @ e) - least) + noise)


def _walls(set: DecisionSet, u: Array, g: Array) -> tuple[Array, Array, Array]:
    """(A, b) of an unbounded polyhedron, and the μ ≥ 0 that minimises ‖g + Aᵀμ‖; μ is 0 for constraints that are not
    active at u.
    """
    inside = set.polyhedron(len(u))
    if inside is None:
        raise ParameterError(f"the best point is found in all of R^d, bounded sets and polyhedra, not in {set!r}")
    A, b = inside
    near = A @ u >= b - 1e-6 * (np.abs(A) @ np.abs(u) + np.abs(b))
    A, b = A[near], b[near]
    if not len(b):
        return A, b, b
    from scipy.optimize import nnls

    return A, b, np.asarray(nnls(A.T, -g)[0])


def balanced(problem: Problem, alpha: Array) -> Array:
    """Slopes near alpha with Σ cαx ≈ 0. The changes are the scores of one vector, each multiplied by the room of its
    slope.
    """
    alpha = problem.inside(alpha)
    size = norm(problem.pull(alpha))
    for _ in range(ROUNDS):
        if size <= EPS * len(alpha) * norm(problem.sums(alpha)):  # only rounding errors
            break
        rooms = problem.room(alpha)
        step = descent(problem, rooms, problem.pull(alpha))
        new = problem.inside(alpha + problem.bend(rooms, problem.scores(step)))
        left = norm(problem.pull(new))
        if not left < size:
            break
        alpha, size = new, left
    return alpha


# -- linear equations ------------------------------------------------------------------------------------------------


def small(problem: Problem) -> bool:
    """Is the problem small enough to solve linear equations directly?"""
    return bool(problem.size <= SMALL and len(problem.c) * problem.size**2 <= OPERATIONS)


def descent(problem: Problem, bends: Array, g: Array, ridge: float = 0.0) -> Array:
    """v with Σ c bend(⟨v, x⟩) x + ridge v = −g, if it exists; otherwise the shortest least-squares solution."""
    if not small(problem):
        return _minimal_residuals(problem, bends, g, ridge)
    M = problem.gram(bends) + ridge * np.eye(problem.size)
    scale = np.sqrt(np.maximum(np.diag(M), 0.0))  # columns of any unit
    scale = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    values, Q = np.linalg.eigh(scale[:, np.newaxis] * M * scale)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > EPS * len(values) * max(values[-1], 0.0))
    return np.asarray(-scale * (Q @ (inverse * (Q.T @ (scale * g)))))


def _minimal_residuals(problem: Problem, bends: Array, g: Array, ridge: float) -> Array:
    from scipy.sparse.linalg import LinearOperator, minres

    def product(v: Array) -> Array:
        return problem.pull(problem.bend(bends, problem.scores(np.ravel(v)))) + ridge * np.ravel(v)

    operator: Any = LinearOperator((problem.size, problem.size), matvec=product, dtype=np.float64)
    return np.asarray(-minres(operator, g, rtol=1e-12, maxiter=200)[0])
