"""The best fixed weight matrix in hindsight: `hindsight` for more than two classes, with a row of weights for each
class.

Margin losses are functions of s_y − max_{r≠y} s_r. The logistic loss is softmax cross-entropy. The squared loss has
targets ±1 in every row, so it is K problems of least squares (`rules.gradient.LossRule`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, ParameterError
from ...scheme import losses as losses_module
from ...scheme.losses import Loss
from ..sets import Array, DecisionSet, L2Ball, Reals
from . import duality
from .hindsight import EXACT_NUMBERS, EXACT_ROWS, Comparator, Problem, best, program, solved, weighted_gram

__all__ = ["ClassProblem", "best_rows", "class_values"]

Codes = NDArray[np.int64]
PIECEWISE = ("hinge", "perceptron")
RIVALS = (*PIECEWISE, "squared_hinge")  # they have kinks where two rivals have equal scores


def class_values(loss: Loss, S: Array, y: Codes) -> Array:
    """The loss of every row of scores. A class with the score −∞ is left out."""
    return _class_curves(loss, S, y, 0.0)[0]


def _class_curves(loss: Loss, S: Array, y: Codes, h: float) -> tuple[Array, Array]:
    """Values, and derivatives with respect to each score. h > 0 smooths the kinks of the hinge from below."""
    at = np.arange(len(y))
    if loss.name == "logistic":
        top = S.max(axis=1, keepdims=True)
        e = np.exp(S - top)
        whole = e.sum(axis=1)
        slopes = e / whole[:, np.newaxis]
        slopes[at, y] -= 1.0
        return np.log(whole) + top[:, 0] - S[at, y], slopes
    if loss.name == "squared":
        over = S + 1.0
        over[at, y] -= 2.0
        return 0.5 * np.sum(over**2, axis=1), over
    if loss.name not in RIVALS:
        raise ParameterError(
            f"the best weights for the loss {loss.name} cannot be found reliably for more than two classes"
        )
    squared = loss.name == "squared_hinge"
    short = _reach(loss) + S - S[at, y][:, np.newaxis]
    short[at, y] = -np.inf
    if h == 0.0:  # only the derivative of the best rival is not 0
        rival = short.argmax(axis=1)
        over = np.maximum(0.0, short[at, rival])
        alpha = np.zeros_like(S)
        alpha[at, rival] = over if squared else over > 0
        value = 0.5 * over**2 if squared else over
    else:  # max over α ≥ 0 of ⟨α, short⟩ − (h/2)‖α‖², and Σα ≤ 1, or − ½(Σα)² where the hinge is squared
        alpha = _shared(short, h) if squared else _into_corner(short / h)
        short[at, y] = 0.0  # the class itself has no α
        value = np.sum(alpha * short, axis=1) - 0.5 * h * np.sum(alpha**2, axis=1)
        if squared:
            value -= 0.5 * alpha.sum(axis=1) ** 2
    alpha[at, y] = -alpha.sum(axis=1)
    return value, alpha


def _reach(loss: Loss) -> float:
    """The margin from which on the loss is 0."""
    return float(loss.beta) if loss.name == "perceptron" else 1.0  # type: ignore[attr-defined]


def _sorted_sums(Z: Array) -> tuple[Array, Array]:
    """Every row in descending order, and the sums of its first j entries."""
    ordered = -np.sort(-Z, axis=1)
    return ordered, np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1)


def _into_corner(Z: Array) -> Array:
    """The projection of every row onto {α ≥ 0, Σα ≤ 1}."""
    out = np.maximum(Z, 0.0)
    outside = out.sum(axis=1) > 1.0
    rows = Z[outside]
    ordered, sums = _sorted_sums(rows)
    used = np.count_nonzero(ordered * np.arange(1, Z.shape[1] + 1) > sums - 1.0, axis=1)
    theta = (sums[np.arange(len(rows)), used - 1] - 1.0) / used
    out[outside] = np.maximum(rows - theta[:, np.newaxis], 0.0)
    return np.asarray(out)


def _shared(Z: Array, h: float) -> Array:
    """argmax over α ≥ 0 of ⟨α, z⟩ − ½(Σα)² − (h/2)‖α‖² for every row: α = max(0, z − Σα)/h."""
    ordered, sums = _sorted_sums(Z)
    totals = sums / (h + np.arange(1, Z.shape[1] + 1))
    used = np.count_nonzero(ordered > totals, axis=1)
    total = np.where(used > 0, totals[np.arange(len(Z)), np.maximum(used, 1) - 1], 0.0)
    return np.asarray(np.where(used[:, np.newaxis] > 0, np.maximum(Z - total[:, np.newaxis], 0.0) / h, 0.0))


class ClassProblem(Problem):
    """min_U Σ c_i ℓ(U x_i, y_i), U flattened row after row.

    The slopes of a row sum to 0: β_r ≥ 0 for every rival r, and −Σβ for the class itself. For softmax and the hinge, Σβ
    ≤ 1, and β together with 1 − Σβ is a distribution. The slopes of the squared loss are not restricted.
    """

    def __init__(self, X: Any, y: Codes, classes: int, loss: Loss, c: Array) -> None:
        self.X, self.y, self.loss, self.c, self.classes = X, y, loss, c, classes
        self.kinks = loss.name in RIVALS
        # A bound on the curvature in the scores. With rivals: the largest eigenvalue of Σ (e_r − e_y)(e_r − e_y)ᵀ.
        self.curvature = {"logistic": 0.5, "squared": 1.0}.get(loss.name, float(classes))
        self.size = classes * int(X.shape[1])

    def scores(self, u: Array) -> Array:
        return np.asarray(self.X @ u.reshape(self.classes, -1).T)

    def losses(self, u: Array) -> Array:
        return class_values(self.loss, self.scores(u), self.y)

    def slopes(self, u: Array, h: float) -> Array:
        return _class_curves(self.loss, self.scores(u), self.y, h)[1]

    def pull(self, alpha: Array) -> Array:
        return np.asarray((self.X.T @ (self.c[:, np.newaxis] * alpha)).T).ravel()

    def curves(self, u: Array, h: float) -> tuple[float, Array]:
        value, slopes = _class_curves(self.loss, self.scores(u), self.y, h)
        return float(self.c @ value), self.pull(slopes)

    def bends(self, u: Array, h: float) -> Array | None:
        return None if self.kinks else self.room(self.slopes(u, h))

    def inside(self, alpha: Array) -> Array:
        if self.loss.name == "squared":
            return alpha
        out = np.maximum(self._rivals(alpha), 0.0)
        whole = out.sum(axis=1)
        if self.loss.name != "squared_hinge":
            out /= np.maximum(whole, 1.0)[:, np.newaxis]
        out[np.arange(len(out)), self.y] = -out.sum(axis=1)
        return np.asarray(out)

    def _rivals(self, alpha: Array) -> Array:
        """β, 0 for the class itself."""
        out = alpha.copy()
        out[np.arange(len(out)), self.y] = 0.0
        return out

    def tangents(self, alpha: Array) -> Array:
        """Softmax: the entropy of β and 1 − Σβ. The hinge is at least Σβ_r (1 + s_r − s_y); squared, less ½(Σβ)²."""
        whole = -alpha[np.arange(len(alpha)), self.y]
        if self.loss.name == "squared":
            target = np.where(np.arange(self.classes) == self.y[:, np.newaxis], 1.0, -1.0)
            return np.asarray(-np.sum(alpha * target + 0.5 * alpha**2, axis=1))
        if self.loss.name == "logistic":
            rest = np.maximum(1.0 - whole, 0.0)
            return np.asarray(duality.entropy(self._rivals(alpha)).sum(axis=1) + duality.entropy(rest))
        return np.asarray(_reach(self.loss) * whole - (0.5 * whole**2 if self.loss.name == "squared_hinge" else 0.0))

    def room(self, alpha: Array) -> Array:
        """β; for distributions, 1 − Σβ stands at the class's own place."""
        out = self._rivals(alpha)
        if self.loss.name not in ("squared", "squared_hinge"):
            out[np.arange(len(out)), self.y] = np.maximum(1.0 - out.sum(axis=1), 0.0)
        return out

    def bend(self, bends: Array, s: Array) -> Array:
        """p_r (s_r − Σps) for distributions; β_r (s_r − s_y) if β ≥ 0 is the only bound."""
        if self.loss.name == "squared":
            return s
        if self.loss.name != "squared_hinge":
            return np.asarray(bends * (s - np.sum(bends * s, axis=1, keepdims=True)))
        at = np.arange(len(s))
        out = bends * (s - s[at, self.y][:, np.newaxis])
        out[at, self.y] = -out.sum(axis=1)
        return np.asarray(out)

    def gram(self, bends: Array) -> Array:
        columns = [self.c[:, np.newaxis] * self.bend(bends, np.tile(e, (len(bends), 1))) for e in np.eye(self.classes)]
        return np.block([[weighted_gram(self.X, column[:, r]) for column in columns] for r in range(self.classes)])

    def sums(self, alpha: Array) -> Array:
        return np.asarray((abs(self.X).T @ (self.c[:, np.newaxis] * np.abs(alpha))).T).ravel()

    def steepness(self, alpha: Array) -> float:
        return float(self.c @ np.abs(alpha).sum(axis=1))

    def separated(self, u: Array) -> bool:
        S, at = self.scores(u), np.arange(len(self.y))
        right = S[at, self.y].copy()
        S[at, self.y] = -np.inf
        reach = np.asarray(abs(self.X) @ np.abs(u).reshape(self.classes, -1).T)
        noise = 2.0 * duality.EPS * (self.X.shape[1] + 1) * reach.max(axis=1)
        return bool(self.loss.margin and np.all((right - S.max(axis=1) > noise) | (self.c == 0)))


def best_rows(
    X: Any,
    y: Codes,
    classes: int,
    loss: str | Loss,
    set: DecisionSet | None = None,
    weight: Array | None = None,
    ridge: float = 0.0,
) -> Comparator:
    """argmin_{U ∈ S} Σ c_i ℓ(U x_i, y_i) + (ridge/2)‖U‖², ‖U‖ over all entries; `u` is classes × columns."""
    loss, set = losses_module.make(loss), Reals() if set is None else set
    y = _checked_classes(X, y, classes)
    if not isinstance(set, Reals | L2Ball):
        raise ParameterError(f"the best weights of several classes are sought in Reals() or an L2Ball, not in {set!r}")
    c = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    unconstrained = ridge == 0 and isinstance(set, Reals)
    if loss.name == "squared" and unconstrained:
        return _squared(X, y, classes, loss, c)
    problem = ClassProblem(X, y, classes, loss, c)
    if loss.name in PIECEWISE and unconstrained and exact(X, classes):
        found = _linear_program(problem)
    else:
        found = solved(problem, set, ridge)
    return dataclasses.replace(found, u=found.u.reshape(classes, -1))


def _checked_classes(X: Any, y: Codes, classes: int) -> Codes:
    y = np.asarray(y, dtype=np.int64)
    if X.shape[0] != len(y) or not len(y) or not (0 <= y.min() and y.max() < classes):
        raise InputError(f"expected a class from 0 to {classes - 1} for every row, at least one; got {y[:5]!r}…")
    return y


def _squared(X: Any, y: Codes, classes: int, loss: Loss, c: Array) -> Comparator:
    """Least squares of each class against the others: one separate problem for each row of U."""
    each = [best(X, np.where(y == r, 1.0, -1.0), loss, Reals(), c) for r in range(classes)]
    value, gap = sum(e.value for e in each), sum(e.gap for e in each)
    return Comparator(np.array([e.u for e in each]), value, gap, each[0].method + ", a row each", set=repr(Reals()))


def exact(X: Any, classes: int) -> bool:
    """Is the linear program small enough? For every number of X and every rival it has two entries."""
    numbers = X.nnz if hasattr(X, "nnz") else X.size
    return bool(X.shape[0] * (classes - 1) <= EXACT_ROWS and 2 * numbers * (classes - 1) <= EXACT_NUMBERS)


def _linear_program(problem: ClassProblem) -> Comparator:
    """min Σ c ξ subject to ξ_i ≥ β + ⟨U_r − U_y, x_i⟩ for every r ≠ y_i, ξ ≥ 0."""
    from scipy.sparse import block_array, csr_array, eye_array, vstack

    y, classes, c = problem.y, problem.classes, problem.c
    rows, d = problem.X.shape
    X = csr_array(problem.X)
    parts, slacks, at = [], [], []
    for r in range(classes):
        rivals = np.flatnonzero(y != r)
        pairs = np.zeros((len(rivals), classes))
        pairs[:, r] = 1.0
        pairs[np.arange(len(rivals)), y[rivals]] = -1.0
        parts.append(_blocks(pairs, X[rivals]))
        slacks.append(eye_array(rows, format="csr")[rivals])
        at.append((rivals, np.full(len(rivals), r)))
    A = block_array([[vstack(parts), -vstack(slacks)]], format="csr")
    free = np.array([[-np.inf, np.inf]] * (classes * d))
    x, multipliers = program(A, np.full(rows * (classes - 1), -_reach(problem.loss)), free, c)
    row, rival = (np.concatenate(part) for part in zip(*at, strict=True))
    alpha = np.zeros((rows, classes))
    alpha[row, rival] = np.divide(multipliers, c[row], out=np.zeros(len(row)), where=c[row] > 0)
    value, gap = duality.certified(problem, x[: classes * d], duality.balanced(problem, alpha), Reals())
    return Comparator(x[: classes * d], value, gap, "linear program")


def _blocks(pairs: Array, X: Any) -> Any:
    """Rows with x times each entry of `pairs` in the block of its class."""
    from scipy.sparse import diags_array, hstack

    return hstack([diags_array(pairs[:, r]) @ X for r in range(pairs.shape[1])], format="csr")
