"""Kernel learners in readable Python: f = Σ cᵢ K(xᵢ, ·), driven by the same rules and tasks as `ReferenceLearner`.

The reference that `native/kernels/expansion.cpp` and `native/kernels/budgets.cpp` are tested against:

>>> from onepass import budgets, kernels
>>> learner = KernelLearner("perceptron", kernels.RBF(1.0))
>>> for x, y in [((0, 0), -1), ((1, 1), -1), ((0, 1), +1), ((1, 0), +1)]:
...     learner.learn(x, y)
>>> learner.f.c[:, 0].tolist()
[-1.0, 1.0, 1.0]
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import rules
from ..scheme.rounds import ZERO_NORM, Array, Rule, Scalars
from ..scheme.tasks import rival, shares
from ..scheme.traits import DIRECTIONS
from . import functions as kernels
from .budgets import Budget, make

__all__ = ["Expansion", "KernelLearner", "Round"]


@dataclasses.dataclass
class Round:
    """A round as a budget sees it: the rule's step is known, and f has not changed yet."""

    x: Array
    k: Array  # K(x, xᵢ)
    ktt: float  # K(x, x)
    scores: Array  # f(x), one number per output
    m: float
    target: float
    xx: float  # ‖φ‖² = ktt·‖parts‖²
    importance: float
    add: float  # f ← scale·f + add·parts·K(x, ·)
    scale: float
    parts: Array  # the direction φ, one number per output
    t: int
    rule: Rule

    @property
    def coefficients(self) -> Array:
        """The coefficients of x when it becomes a stored vector."""
        return self.add * self.parts

    @property
    def loss(self) -> float:
        return self.target - self.m


class Expansion:
    """f = Σ cᵢ K(xᵢ, ·): the stored vectors xᵢ, their coefficients cᵢ (a row each), and their Gram matrix.

    A new vector is appended, or takes the slot of the vector that it replaces. When a vector is removed, the last one
    moves to its slot. `birth` is the round that added each vector.
    """

    def __init__(self, kernel: kernels.Kernel, outputs: int) -> None:
        self.kernel = kernel
        self.x: list[Array] = []
        self.c = np.zeros((0, outputs))
        self.birth: list[int] = []
        self.gram = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.x)

    def kernel_values(self, x: Array) -> Array:
        """K(x, xᵢ) of all stored vectors."""
        return self.kernel.block(x[np.newaxis], np.array(self.x))[0] if self.x else np.zeros(0)

    @property
    def norm2(self) -> float:
        """‖f‖²."""
        return float(np.sum(self.c * (self.gram @ self.c)))

    def append(self, r: Round, coefficients: Array | None = None) -> None:
        """f ← f + coefficients·K(x, ·), with x as a new vector."""
        k = self.kernel_values(r.x)  # not r.k: a vector may have been removed since
        self.gram = np.block([[self.gram, k[:, np.newaxis]], [k[np.newaxis], np.array([[r.ktt]])]])
        self.x.append(r.x)
        self.c = np.vstack([self.c, r.coefficients if coefficients is None else coefficients])
        self.birth.append(r.t)

    def remove(self, i: int) -> None:
        order = [*range(len(self))]
        order[i] = order[-1]
        order.pop()
        self.x = [self.x[j] for j in order]
        self.c, self.gram = self.c[order], self.gram[np.ix_(order, order)]
        self.birth = [self.birth[j] for j in order]

    def replace(self, i: int, r: Round, coefficients: Array | None = None) -> None:
        """Remove vector i and put x into its slot."""
        self.append(r, coefficients)
        self.remove(i)

    def take_step(self, r: Round) -> bool:
        """f ← scale·f + add·parts·K(x, ·), without a limit."""
        if r.scale == 0:
            self.clear()
        self.c = r.scale * self.c
        if r.add != 0:
            self.append(r)
        return r.add != 0 or r.scale != 1

    def clear(self) -> None:
        self.__init__(self.kernel, self.c.shape[1])  # type: ignore[misc]

    def argmin(self, costs: ArrayLike) -> int:
        """The vector of the lowest cost; the oldest of equals."""
        return min(range(len(self)), key=lambda i: (np.asarray(costs)[i], self.birth[i]))

    @property
    def oldest(self) -> int:
        return int(np.argmin(self.birth))


class KernelLearner:
    """One kernel learner, round by round. Labels are −1 and +1, class numbers, or real."""

    def __init__(
        self,
        rule: str | Rule,
        kernel: str | kernels.Kernel,
        task: str = "binary",
        *,
        classes: int = 2,
        multiclass: str = "rival",
        costs: ArrayLike | None = None,
        budget: str | Budget | None = None,
    ) -> None:
        self.rule, self.kernel, self.task = rules.make(rule), kernels.make(kernel), task
        self.budget = make(budget)
        self.budget.require(self.rule, task, self.kernel)
        self.multiclass = multiclass
        self.roots = None if costs is None else np.sqrt(np.asarray(costs, dtype=np.float64))
        self.f = Expansion(self.kernel, classes if task == "multiclass" else 1)
        self.memory = self.budget.start()  # the numbers that the budget itself stores
        self.t = self.k = self.skipped_zero = 0
        self.state = dict(self.rule.slots)
        self.scores: list[Array] = []  # before each update

    def learn(self, x: ArrayLike, y: Any, importance: float = 1.0) -> None:
        row = np.asarray(x, dtype=np.float64)
        self.t += 1
        k, ktt = self.f.kernel_values(row), float(self.kernel.diagonal(row[np.newaxis])[0])
        scores = k @ self.f.c if len(k) else np.zeros(self.f.c.shape[1])
        self.scores.append(scores)
        parts, m, target, side = self._direction(scores, y)
        all_scores = self.task == "multiclass" and self.rule.traits.sees_all_scores("multiclass", self.multiclass)
        xx = ktt * (1.0 if all_scores else float(np.sum(parts**2)))
        self.skipped_zero += xx < ZERO_NORM
        if importance == 0 or xx < ZERO_NORM:
            return
        s = Scalars(m, target, xx, self.f.norm2, importance, self.t, self.k, side, self.state)
        if all_scores:
            parts, step = self.rule.solve(scores, int(y), s)
            step = dataclasses.replace(step, add=float(np.any(parts != 0)))
        else:
            step = self.rule.step(s)
        scale = step.scale * step.decay
        self._apply(Round(row, k, ktt, scores, m, target, xx, importance, step.add, scale, parts, self.t, self.rule))

    def _direction(self, scores: Array, y: Any) -> tuple[Array, float, float, float]:
        """The parts of φ, the margin, its target, and the side of the round, as in `tasks.py`."""
        if self.task == "multiclass":
            return self._direction_of_classes(scores, int(y))
        if self.task == "regression":
            side = -1.0 if y < scores[0] else 1.0
            return np.array([side]), side * float(scores[0]), side * float(y) - self.rule.traits.epsilon, side
        return np.array([float(y)]), float(y * scores[0]), 1.0, 1.0

    def _direction_of_classes(self, scores: Array, y: int) -> tuple[Array, float, float, float]:
        if self.roots is None:
            parts = shares(scores, y, self.multiclass if self.multiclass in DIRECTIONS else "rival")
            return parts, float(np.sum(parts * (scores - scores[y]))), 1.0, 1.0
        other = rival(scores + self.roots[y], y)
        parts = np.zeros(len(scores))
        parts[y], parts[other] = 1.0, -1.0
        return parts, float(scores[y] - scores[other]), float(self.roots[y, other]), 1.0

    def _apply(self, r: Round) -> None:
        """The budget applies the step, or replaces it by one that keeps the budget."""
        adds = r.add != 0 or self.budget.every_round
        if adds or r.scale != 1:
            changed = self.budget.admit(self.f, r, self.memory)
            self.k += changed and adds
