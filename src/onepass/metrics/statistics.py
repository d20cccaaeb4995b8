"""The states of metrics: small statistics of examples that add up, fade, and give values.

A statistic has `of(outcomes)`, the state of some examples; `join(a, b)`, the state of both; `fade(state, factor)`, the
state with every example counting `factor` as much. Cumulative, since-last, sliding and fading values are all computed
by these three, so each metric is written once; metrics that share a statistic (the confusion matrix) share its cost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .outcomes import Array, Outcomes

__all__ = ["Bins", "Confusion", "MeanLoss", "Moments", "Ranks", "Statistic"]

_sum = np.add.reduce  # np.sum without its checks of arguments: called thousands of times a second


class Statistic(Protocol):
    """Base of the statistics. They are frozen dataclasses; equal ones share their state."""

    def of(self, outcomes: Outcomes) -> Any: ...
    def join(self, a: Any, b: Any) -> Any: ...
    def fade(self, state: Any, factor: float) -> Any: ...


@dataclasses.dataclass(frozen=True)
class MeanLoss:
    """(Σ c ℓ, Σ c) of a loss that is computed row by row. Exact, O(1)."""

    loss: Callable[..., Array]
    option: float | None = None  # a parameter of the loss: a quantile, a k

    def of(self, outcomes: Outcomes) -> Array:
        losses, counted = outcomes.once(self, self._losses)
        if counted is None:
            return np.array([_sum(outcomes.weight * losses), _sum(outcomes.weight)])
        return np.array([_sum((outcomes.weight * losses)[counted]), _sum(outcomes.weight[counted])])

    def _losses(self, outcomes: Outcomes) -> tuple[Array, NDArray[np.bool_] | None]:
        """The loss of each row, and which rows count: all (None), or those with a defined loss."""
        losses = self.loss(outcomes) if self.option is None else self.loss(outcomes, self.option)
        missing = np.isnan(losses)
        return losses, ~missing if missing.any() else None

    def join(self, a: Array, b: Array) -> Array:
        return a + b

    def fade(self, state: Array, factor: float) -> Array:
        return state * factor


@dataclasses.dataclass(frozen=True)
class Moments:
    """Σ c, the mean of y, Σ c (y − mean)², Σ c (y − ŷ)². Joined by the formula of Chan, Golub and LeVeque, which does
    not cancel where Σ c y² would."""

    def of(self, outcomes: Outcomes) -> Array:
        c, y = outcomes.weight, outcomes.truth
        total = float(np.sum(c))
        if total == 0:
            return np.zeros(4)
        mean = float(np.sum(c * y) / total)
        return np.array([total, mean, np.sum(c * np.square(y - mean)), np.sum(c * np.square(y - outcomes.predicted))])

    def join(self, a: Array, b: Array) -> Array:
        if a[0] == 0 or b[0] == 0:
            return b if a[0] == 0 else a
        total, apart = a[0] + b[0], b[1] - a[1]
        mean = a[1] + apart * b[0] / total
        return np.array([total, mean, a[2] + b[2] + apart * apart * a[0] * b[0] / total, a[3] + b[3]])

    def fade(self, state: Array, factor: float) -> Array:
        return np.asarray(state * np.array([factor, 1.0, factor, factor]))


@dataclasses.dataclass(frozen=True)
class Confusion:
    """Weight of every (truth, prediction), by code; column 0 is "no prediction". Exact, O(classes²)."""

    limit: int = 1000  # classes: eight megabytes

    def of(self, outcomes: Outcomes) -> Array:
        size = len(outcomes.labels) + 1
        if size > self.limit + 1:
            raise InputError(
                f"a confusion matrix is supported for at most {self.limit:,} classes, and there are {size - 1:,}; "
                "use accuracy, error or top_k, which need none"
            )
        cells = outcomes.truth * size + outcomes.predicted
        counts: Array = np.bincount(cells, weights=outcomes.weight, minlength=size * size).astype(np.float64)
        return counts.reshape(size, size)

    def join(self, a: Array, b: Array) -> Array:
        size = max(len(a), len(b))
        return _squared(a, size) + _squared(b, size)

    def fade(self, state: Array, factor: float) -> Array:
        return state * factor


def _squared(table: Array, size: int) -> Array:
    return table if len(table) == size else np.pad(table, (0, size - len(table)))


@dataclasses.dataclass(frozen=True)
class Bins:
    """Calibration: [0, 1] in equal bins, and for each Σ c, Σ c·p, Σ c·[it is true].

    With two classes p is the probability of the positive one; with more, that of the most probable.
    """

    bins: int = 10

    def of(self, outcomes: Outcomes) -> dict[str, Array]:
        table = outcomes.probabilities
        assert table is not None
        defined = ~np.isnan(table).any(axis=1)
        if not defined.all():
            table, truth, weight = table[defined], outcomes.truth[defined], outcomes.weight[defined]
        else:
            truth, weight = outcomes.truth, outcomes.weight
        states: dict[str, Array] = {}
        if table.shape[1]:
            top = np.argmax(table, axis=1)
            states["top"] = self._table(table[np.arange(len(table)), top], top + 1 == truth, weight)
        for code in range(1, min(table.shape[1], 2) + 1):  # at most two classes: which one is positive is decided later
            states[str(code)] = self._table(table[:, code - 1], truth == code, weight)
        return states

    def _table(self, p: Array, so: NDArray[np.bool_], weight: Array) -> Array:
        # As scikit-learn's calibration_curve: bin i is [i/n, (i+1)/n), the last one closed.
        edges = np.linspace(0.0, 1.0, self.bins + 1)
        place = np.searchsorted(edges[1:-1], p)
        sums = [np.bincount(place, weights=w, minlength=self.bins) for w in (weight, weight * p, weight * so)]
        return np.stack(sums)

    def join(self, a: dict[str, Array], b: dict[str, Array]) -> dict[str, Array]:
        return {key: a[key] + b[key] if key in a and key in b else a.get(key, b.get(key)) for key in {**a, **b}}  # type: ignore[misc]

    def fade(self, state: dict[str, Array], factor: float) -> dict[str, Array]:
        return {key: table * factor for key, table in state.items()}


class Table:
    """Scores in rising order with the weight of positives and negatives at each.

    An entry is an interval: a single score, or several merged to stay within the bound. Intervals do not overlap.
    """

    __slots__ = ("high", "low", "negative", "positive")

    def __init__(self, low: Array, high: Array, positive: Array, negative: Array) -> None:
        self.low, self.high, self.positive, self.negative = low, high, positive, negative

    def __len__(self) -> int:
        return len(self.low)

    @classmethod
    def merged(cls, tables: list[Table], limit: int) -> Table:
        low, high, positive, negative = (
            np.concatenate([getattr(table, column) for table in tables])
            for column in ("low", "high", "positive", "negative")
        )
        order = np.argsort(low, kind="stable")
        low, high = low[order], np.maximum.accumulate(high[order])
        # A new entry begins where a score exceeds all before it: equal scores and overlaps share an entry.
        begins = np.flatnonzero(np.concatenate([[True], low[1:] > high[:-1]]))
        return cls(
            low[begins],
            high[np.append(begins[1:], len(low)) - 1],
            np.add.reduceat(positive[order], begins),
            np.add.reduceat(negative[order], begins),
        ).within(limit)

    def within(self, limit: int) -> Table:
        """The table with at most `limit` entries: if there are more, neighbours are merged into half as many, each with
        an equal part of the weight.

        A merged entry holds at most 4/limit of P and N together, so that the pairs within one entry, whose order is
        lost, are at most about 2/limit of all pairs.
        """
        if len(self) <= limit:
            return self
        share = self.positive / max(np.sum(self.positive), 1e-300) + self.negative / max(np.sum(self.negative), 1e-300)
        end = np.cumsum(share)
        group = np.floor((end - 0.5 * share) / end[-1] * (limit // 2))
        begins = np.flatnonzero(np.concatenate([[True], np.diff(group) > 0]))
        return Table(
            self.low[begins],
            self.high[np.append(begins[1:], len(self)) - 1],
            np.add.reduceat(self.positive, begins),
            np.add.reduceat(self.negative, begins),
        )

    def auc(self) -> float:
        """P(score of a positive > score of a negative) + ½ P(equal); NaN without both."""
        pairs = np.sum(self.positive) * np.sum(self.negative)
        below = np.cumsum(self.negative) - self.negative
        return float(np.sum(self.positive * (below + 0.5 * self.negative)) / pairs) if pairs > 0 else np.nan

    def auc_doubt(self) -> float:
        """The largest possible error of `auc` from merged scores; 0 while it is exact."""
        merged = self.high > self.low
        pairs = np.sum(self.positive) * np.sum(self.negative)
        return float(0.5 * np.sum((self.positive * self.negative)[merged]) / pairs) if pairs > 0 else 0.0

    def average_precision(self) -> float:
        """Σ (R_n − R_{n−1}) P_n over thresholds from the highest down; NaN without positives."""
        positive, negative = self.positive[::-1], self.negative[::-1]
        true, all_above = np.cumsum(positive), np.cumsum(positive + negative)
        if not len(true) or true[-1] == 0:
            return np.nan
        precision = np.divide(true, all_above, out=np.zeros_like(true), where=all_above > 0)
        return float(np.sum(positive * precision) / true[-1])


@dataclasses.dataclass(frozen=True)
class Ranks:
    """For every class, the scores so far with the weights of examples of the class and of the others.

    Exact for at most `limit` different scores; beyond, neighbours are merged (`Table.within`), so that memory stays
    O(classes · limit). A sliding window is always exact.
    """

    limit: int = 1 << 14

    def of(self, outcomes: Outcomes) -> Seen:
        scores = outcomes.probabilities if outcomes.scores is None else outcomes.scores
        assert scores is not None
        seen = Seen(float(np.sum(outcomes.weight)), {})
        for code in range(1, len(outcomes.labels) + 1):
            column = scores[:, code - 1] if code <= scores.shape[1] else np.full(len(scores), -np.inf)
            column = np.where(np.isnan(column), -np.inf, column)  # a class that was not known yet ranks last
            so = outcomes.truth == code
            points = Table(column, column, outcomes.weight * so, outcomes.weight * ~so)
            # Not merged to the limit yet: at most one of the tables in `join` may have intervals, since overlapping
            # intervals would become one.
            seen.tables[code] = [Table.merged([points], len(column))] if len(column) else []
        return seen

    def join(self, a: Seen, b: Seen) -> Seen:
        out = Seen(a.total + b.total, {})
        for code in sorted({*a.tables, *b.tables}):
            tables = [*a.tables.get(code, []), *b.tables.get(code, [])]
            # Parts are sorted rarely, so that an example costs O(log limit) even if parts are small.
            if len(tables) > 64 or sum(map(len, tables)) > 2 * self.limit:
                tables = [Table.merged(tables, self.limit)]
            out.tables[code] = tables
        return out

    def fade(self, state: Seen, factor: float) -> Seen:
        return Seen(
            state.total * factor,
            {
                code: [Table(t.low, t.high, t.positive * factor, t.negative * factor) for t in tables]
                for code, tables in state.tables.items()
            },
        )

    def table(self, state: Seen, code: int) -> Table | None:
        tables = state.tables.get(code, [])
        if not tables:
            return None
        table = Table.merged(tables, sum(map(len, tables)))
        # Examples before the first one of the class: they are not of the class, and have no score for it.
        before = state.total - float(np.sum(table.positive) + np.sum(table.negative))
        if before > 1e-9 * state.total:
            lowest = np.array([-np.inf])
            table = Table.merged([table, Table(lowest, lowest, np.zeros(1), np.array([before]))], len(table) + 1)
        return table


@dataclasses.dataclass
class Seen:
    """The state of `Ranks`: the weight of all examples, and each class's scores in unsorted parts."""

    total: float
    tables: dict[int, list[Table]]
