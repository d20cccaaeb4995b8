"""Cost-sensitive classification: an answer is a cost for each label, or a label: it costs 0, all others 1."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, LabelError, RowError
from ..scheme.rounds import Array
from .examples import LARGE, Indices, Rows, count, read_labels, take
from .multiclass import pair, tournament
from .scheme import Reduction

__all__ = ["AllPairs", "CostReduction", "CostRegression", "Expansion", "Tree", "all_pairs_values"]


def read_cost(label: Any, cost: Any) -> float:
    try:
        if isinstance(cost, (str, bytes)):
            raise TypeError
        value = float(cost)
    except (TypeError, ValueError, OverflowError):
        raise LabelError(f"the cost of label {label!r} must be a number, got {cost!r:.80}") from None
    if not math.isfinite(value):
        raise LabelError(f"the cost of label {label!r} must be finite, got {value}")
    return value


class CostReduction(Reduction):
    """Answers are rows of costs, one for each label known by then; NaN where a label has no cost."""

    name = "CostSensitive"

    def _read(self, y: Any) -> tuple[list[Any], Any]:
        return self._costs_of(y)

    def _costs_of(self, y: Any) -> tuple[list[Any], Array]:
        if not isinstance(y, Mapping):
            new, k = self.labels.one(y)
            costs = np.ones(len(self.labels) + len(new))
            costs[k] = 0.0
            return new, costs
        if not y:
            raise LabelError("costs must name at least one label, got none")
        table = self.labels.copy() if any(label not in self.labels.index for label in y) else self.labels
        known = len(table)
        places = []
        for label, cost in y.items():
            new, k = table.one(label)
            table.add(new)
            places.append((k, read_cost(label, cost)))
        costs = np.full(len(table), math.nan)
        for k, cost in places:
            costs[k] = cost
        return table.values[known:], costs

    def read_answers(self, y: Any, rows: int) -> Any:
        """Labels; or costs as a list of mappings, or as a table with a column per label."""
        if isinstance(y, (list, tuple)) and any(isinstance(answer, Mapping) for answer in y):
            if len(y) != rows:
                raise InputError(f"X has {rows} rows, y has {len(y)}")
            return list(y)
        if not isinstance(y, np.ndarray) or y.ndim != 2:
            return read_labels(y, rows)
        if y.shape != (rows, len(self.labels)) or y.dtype.kind not in "biuf":
            raise LabelError(
                f"costs must be a table of numbers, {rows} rows × {len(self.labels)} classes, got {y.dtype} {y.shape}"
            )
        costs = y.astype(np.float64)
        bad = np.argwhere(~np.isfinite(costs))
        if len(bad):
            raise LabelError(f"costs must be finite, but y[{bad[0][0]}, {bad[0][1]}] is {costs[tuple(bad[0])]}")
        return costs

    def _read_many(self, y: Any) -> tuple[list[Any], Any]:
        if isinstance(y, list):
            return self._read_mappings(y)
        if y.ndim == 2:
            return [], y
        new, numbers = self.labels.many(y)
        known = len(self.labels)
        costs = np.ones((len(y), known + len(new)))
        for k in range(known, known + len(new)):  # a label has no cost before it first appears
            costs[: int(np.argmax(numbers == k)), k] = math.nan
        costs[np.arange(len(y)), numbers] = 0.0
        return new, costs

    def _read_mappings(self, y: list[Any]) -> tuple[list[Any], Array]:
        mine, table = self.labels, self.labels.copy()
        found = []
        try:
            self.labels = table
            for row, costs in enumerate(y):
                try:
                    new, values = self._costs_of(costs)
                except LabelError as error:
                    raise LabelError(f"y[{row}]: {error}. Nothing of this call was learned") from None
                table.add(new)
                found.append(values)
        finally:
            self.labels = mine
        out = np.full((len(y), len(table)), math.nan)
        for row, values in enumerate(found):
            out[row, : len(values)] = values
        return table.values[len(mine) :], out

    def _check_importance(self, answers: Any, c: Array | float) -> None:
        costs = np.atleast_2d(answers)
        if costs.shape[1] == 0:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            spread = (np.fmax.reduce(costs, axis=1) - np.fmin.reduce(costs, axis=1)) * c
        bad = np.flatnonzero(~np.isfinite(spread))
        if len(bad):
            raise InputError(
                f"y[{bad[0]}]: the difference of its costs, times its importance, is too large for a number"
            )
        self._takes_costs(costs, np.broadcast_to(c, len(costs)))

    def _takes_costs(self, costs: Array, c: Array) -> None:
        raise NotImplementedError

    def _is_extreme(self, answers: Any) -> bool:
        return (
            isinstance(answers, np.ndarray)
            and answers.size > 0
            and float(np.fmax.reduce(np.abs(answers), axis=None)) > LARGE
        )

    @staticmethod
    def _weighted(weights: Array, at: Indices, c: Array | None) -> Array:
        return weights[at] if c is None else weights[at] * c[at]


class CostRegression(CostReduction):
    """One regressor per label; least predicted cost wins."""

    needs = "regression"

    def __init__(self, base: Any, classes: Any = None) -> None:
        super().__init__(base, classes)
        self._require_few()
        self._grow()

    def _grow(self) -> None:
        while len(self.learners) < len(self.labels):
            self.learners.append(self.make())

    def _takes_costs(self, costs: Array, c: Array) -> None:
        self._require_accepted(c)

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        for cost, learner in zip(answer.tolist(), self.learners, strict=True):
            if cost == cost:
                learner.learn(x, cost, c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        for k in range(answers.shape[1]):
            at = np.flatnonzero(~np.isnan(answers[:, k]))
            self._teach(self.learners[k], rows, at, answers[at, k], None if c is None else c[at])

    def _sizes(self) -> tuple[int, int]:
        return len(self.labels), 0

    def decode(self, scores: Array) -> Array:
        return -scores


def all_pairs_values(costs: Array) -> Array:
    """v_k = ∫₀^{c_k} dL / N(L), N(L) = the number of labels whose cost is at most L, costs counted from the least.

    In order of cost: v₍₁₎ = 0, v₍ₙ₊₁₎ = v₍ₙ₎ + (c₍ₙ₊₁₎ − c₍ₙ₎)/n. NaN (no cost given) stays NaN.
    """
    order = np.argsort(costs, axis=1, kind="stable")  # NaN comes last
    steps = np.diff(np.take_along_axis(costs, order, axis=1), axis=1) / np.arange(1, costs.shape[1])
    values = np.concatenate([np.zeros((len(costs), 1)), np.cumsum(steps, axis=1)], axis=1)
    out = np.empty_like(costs)
    np.put_along_axis(out, order, values, axis=1)
    return out


class AllPairs(CostReduction):
    """Weighted all pairs: the base of i < j learns whether j is the cheaper, with importance |v_i − v_j|."""

    def __init__(self, base: Any, classes: Any = None) -> None:
        super().__init__(base, classes)
        self._require_few()
        self._grow()

    def _grow(self) -> None:
        K = len(self.labels)
        while len(self.learners) < K * (K - 1) // 2:
            self.learners.append(self.make())

    def _takes_costs(self, costs: Array, c: Array) -> None:
        if self.unit_only or self.c_max < math.inf:
            v = all_pairs_values(costs)
            for j in range(costs.shape[1]):
                for i in range(j):
                    weight = np.abs(v[:, i] - v[:, j]) * c
                    self._require_accepted(weight[weight > 0])

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        v = all_pairs_values(answer[np.newaxis])[0].tolist()
        for j, v_j in enumerate(v):
            for i, v_i in enumerate(v[:j]):
                if v_i < v_j or v_j < v_i:  # neither where one is NaN
                    self.learners[pair(i, j)].learn(x, v_j < v_i, abs(v_i - v_j) * c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        v = all_pairs_values(answers)
        for j in range(answers.shape[1]):
            for i in range(j):
                v_i, v_j = v[:, i], v[:, j]
                at = np.flatnonzero((v_i < v_j) | (v_j < v_i))
                weights = self._weighted(np.abs(v_i - v_j), at, c)
                self._teach(self.learners[pair(i, j)], rows, at, v_j[at] < v_i[at], weights)

    def _sizes(self) -> tuple[int, int]:
        K = len(self.labels)
        return K * (K - 1) // 2, 0

    def decode(self, scores: Array) -> Array:
        return tournament(scores, len(self.labels))


class Expansion(CostReduction):
    """One multiclass base, given every label of an example with importance c_max − c_k (the largest cost of these)."""

    needs = "multiclass"

    def __init__(self, base: Any, classes: Any = None) -> None:
        super().__init__(base, classes)
        self.learners = [self.make()]

    def _base_classes(self) -> list[Any] | None:
        return list(self.labels.values) if self.labels.declared else None

    def _takes_costs(self, costs: Array, c: Array) -> None:
        weights = (np.fmax.reduce(costs, axis=1)[:, np.newaxis] - costs) * c[:, np.newaxis]
        self._require_accepted(weights[weights > 0])

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        dearest = float(np.fmax.reduce(answer))
        for label, cost in zip(self.labels.values, answer.tolist(), strict=True):
            if cost < dearest:
                self.learners[0].learn(x, label, (dearest - cost) * c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        dearest = np.fmax.reduce(answers, axis=1)
        at, labels = np.nonzero(answers < dearest[:, np.newaxis])  # row by row, labels in order
        y = np.empty(len(at), dtype=object)
        y[:] = [self.labels.values[k] for k in labels.tolist()]
        weights = dearest[at] - answers[at, labels]
        self._teach(self.learners[0], rows, at, y, weights if c is None else weights * c[at])

    def _sizes(self) -> tuple[int, int]:
        return 1, 0

    def _choose(self, x: Any) -> int:
        return self.labels.index.get(self.learners[0].predict(x), 0)

    def choose_rows(self, rows: Rows) -> Indices:
        labels = self.learners[0].predict_rows(rows)
        found = labels.tolist() if isinstance(labels, np.ndarray) else labels
        return np.array([self.labels.index.get(label, 0) for label in found], dtype=np.intp)


class Tree(CostReduction):
    """The filter tree. Node n has two children, nodes before it or leaves (~k for label k); the root comes last."""

    name = "FilterTree"
    least = 2

    def __init__(self, base: Any, classes: Any = None) -> None:
        super().__init__(base, classes)
        self._require_few()
        self.nodes: list[tuple[int, int]] = []
        self.paths: list[list[tuple[int, bool]]] = [[] for _ in self.labels.values]  # from the leaf up: node, side
        self._build_tree(0, len(self.labels))
        self.learners = [self.make() for _ in self.nodes]

    def _build_tree(self, low: int, high: int) -> int:
        if high - low == 1:
            return ~low
        middle = (low + high + 1) // 2
        self.nodes.append((self._build_tree(low, middle), self._build_tree(middle, high)))
        for k in range(low, high):
            self.paths[k].append((len(self.nodes) - 1, k >= middle))
        return len(self.nodes) - 1

    # Answers are label numbers, or costs of all labels. A label number changes only the nodes above its leaf.

    def _read(self, y: Any) -> tuple[list[Any], Any]:
        if not isinstance(y, Mapping):
            return self.labels.one(y)
        _, costs = self._costs_of(y)
        self._complete(costs)
        return [], costs

    def _read_many(self, y: Any) -> tuple[list[Any], Any]:
        if isinstance(y, np.ndarray) and y.ndim == 1:
            return self.labels.many(y)
        _, costs = super()._read_many(y)
        self._complete(costs)
        return [], costs

    def _complete(self, costs: Array) -> None:
        missing = np.argwhere(np.isnan(costs))
        if len(missing):
            label = self.labels.values[missing[0][-1]]
            raise LabelError(
                f"{self.name} needs the cost of every class in every example; that of {label!r} is missing"
            )

    def _check_importance(self, answers: Any, c: Array | float) -> None:
        if np.ndim(answers) == 2 or (isinstance(answers, np.ndarray) and answers.dtype == np.float64):
            super()._check_importance(answers, c)
        else:
            self._require_accepted(c)

    def _takes_costs(self, costs: Array, c: Array) -> None:
        # The winners decide which differences arise; so check all that could.
        weights = (costs - costs.min(axis=1)[:, np.newaxis]) * c[:, np.newaxis]
        self._require_accepted(weights[weights > 0])

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        if not isinstance(answer, np.ndarray):
            for node, right in self.paths[answer]:
                won = (self.learners[node].score(x) > 0) == right
                self.learners[node].learn(x, right, c)
                if not won:
                    return
            return
        costs: list[float] = answer.tolist()
        winners: list[float] = []  # for each node, the cost of its winner
        for learner, (a, b) in zip(self.learners, self.nodes, strict=True):
            left, right = (costs[~child] if child < 0 else winners[child] for child in (a, b))
            if left == right:  # a tie: either winner has the same cost above
                winners.append(left)
                continue
            winners.append(right if learner.score(x) > 0 else left)
            learner.learn(x, right < left, abs(left - right) * c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        if answers.ndim == 1:
            self._learn_labels(rows, answers, c)
            return
        winners: list[Array] = []
        for node, (a, b) in enumerate(self.nodes):
            left, right = (answers[:, ~child] if child < 0 else winners[child] for child in (a, b))
            at = np.flatnonzero(left != right)
            weights = self._weighted(np.abs(left - right), at, c)
            won = left.copy()
            won[at] = np.where(self._decide(node, rows, at, right[at] < left[at], weights), right[at], left[at])
            winners.append(won)

    def _learn_labels(self, rows: Rows, answers: Indices, c: Array | None) -> None:
        alive: list[Indices] = []  # for each node, the rows whose label has won so far
        for node, (a, b) in enumerate(self.nodes):
            left, right = (np.flatnonzero(answers == ~child) if child < 0 else alive[child] for child in (a, b))
            at = np.concatenate([left, right])
            order = np.argsort(at, kind="stable")
            at, from_right = at[order], (np.arange(len(at)) >= len(left))[order]
            won = self._decide(node, rows, at, from_right, None if c is None else c[at])
            alive.append(at[won == from_right])

    def _decide(self, node: int, rows: Rows, at: Indices, y: NDArray[np.bool_], c: Array | None) -> NDArray[np.bool_]:
        """A node's decisions for some rows, each made before the node learns that row."""
        if not len(at):
            return np.zeros(0, dtype=np.bool_)
        try:
            return self.learners[node].decide_then_learn(take(rows, at), y, c)
        except RowError as error:
            raise error.at(int(at[error.row])) from None

    def _sizes(self) -> tuple[int, int]:
        return len(self.labels) - 1, 0

    def _choose(self, x: Any) -> int:
        child = len(self.nodes) - 1
        while child >= 0:
            child = self.nodes[child][self.learners[child].score(x) > 0]
        return ~child

    def choose_rows(self, rows: Rows) -> Indices:
        out = np.zeros(count(rows), dtype=np.intp)
        arrived: dict[int, Indices] = {len(self.nodes) - 1: np.arange(len(out))}
        for node in reversed(range(len(self.nodes))):
            at = arrived.get(node, np.zeros(0, dtype=np.intp))
            if not len(at):
                continue
            right = self.learners[node].score_rows(take(rows, at)) > 0
            for child, those in zip(self.nodes[node], (at[~right], at[right]), strict=True):
                if child < 0:
                    out[those] = ~child
                else:
                    arrived[child] = those
        return out
