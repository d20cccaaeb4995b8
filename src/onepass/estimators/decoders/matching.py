"""`Matching`: each item on the left with one of its own on the right."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import InputError, LabelError
from ...scheme.parameters import Parameters, choice
from ...scheme.rounds import Array
from .base import (
    Transform,
    Weights,
    add_features,
    escape,
    part_scores,
    read_indices,
    read_rows,
    require_identity,
    wrong_parts,
)

Table = list[list[dict[str, float]]]


@dataclasses.dataclass(repr=False)
class Matching(Parameters):
    """Bipartite matching: each of n items on the left with an item of its own among m ≥ n on the right.

    x is a pair (left, right) of sequences of items, each a word, a list of words, a mapping of features, or a row of
    numbers. y is the list of the right items' indices, from 0: ``[1, 0]`` is left 0 with right 1 and left 1 with
    right 0. The cost is the number of left items matched wrongly.

    Features of a pair, by `pairs`: "products", "a×b" for features a of the left and b of the right item;
    "differences", "≠a", how far the two are apart in a feature, |left − right|; or "both". Features of your own come
    as a table instead: x = {"pairs": table}, table[i][j] being the features of left i with right j.

    `decode` is `scipy.optimize.linear_sum_assignment`, exact, O(n²m). `loss_augmented` is exact for
    cost_transform="identity", where every wrong pair gains 1. It refuses every other transform: a root of the cost
    does not split over pairs, and the best matching with exactly k wrong pairs, over which one would have to search,
    is not found by any known fast exact method. Of equals, scipy's choice, the same every time.
    """

    transforms = ("identity",)  # of the cost, for which loss_augmented is exact

    family = "decoder"
    name = "matching"
    pairs: str = choice("both", "both", "products", "differences")

    def decode(self, w: Weights, x: Any) -> list[int]:
        return assign(_scores(w, self._table(x)))

    def loss_augmented(self, w: Weights, x: Any, y: Any, transform: Transform = math.sqrt) -> list[int]:
        require_identity(self, transform)
        table = self._table(x)
        truth = _truth(y, table)
        scores = _scores(w, table) + 1.0
        scores[np.arange(len(truth)), truth] -= 1.0
        return assign(scores)

    def features(self, x: Any, y: Any) -> dict[str, float]:
        table = self._table(x)
        out: dict[str, float] = {}
        for row, at in zip(table, _truth(y, table), strict=True):
            add_features(out, row[at])
        return out

    def cost(self, y: Any, y_hat: Any) -> float:
        return wrong_parts(y, y_hat)

    def equal(self, y: Any, y_hat: Any) -> bool:
        return list(y) == list(y_hat)

    def _table(self, x: Any) -> Table:
        """The features of every pair."""
        table = self._given_table(x) if isinstance(x, Mapping) else self._paired(x)
        sizes = [len(row) for row in table]
        if len(set(sizes)) > 1 or (table and sizes[0] < len(table)):
            raise InputError(f"the table's rows have {sizes} pairs; expected equally many, at least {len(table)}")
        return table

    def _given_table(self, x: Mapping[str, Any]) -> Table:
        if set(x) != {"pairs"} or not hasattr(x["pairs"], "__len__"):
            raise InputError(f'x must be a pair (left, right) or {{"pairs": table}}, got {x!r:.80}')
        return [read_rows(row, "pair") for row in x["pairs"]]

    def _paired(self, x: Any) -> Table:
        """The features of every item on the left with every one on the right."""
        if isinstance(x, str) or not hasattr(x, "__len__") or len(x) != 2:
            raise InputError(f"x must be a pair (left, right) of sequences of items, got {x!r:.80}")
        left, right = read_rows(x[0], "item"), read_rows(x[1], "item")
        if len(left) > len(right):
            raise InputError(f"x has {len(left)} items on the left, {len(right)} on the right; expected no fewer")
        return [[self._pair(a, b) for b in right] for a in left]

    def _pair(self, left: dict[str, float], right: dict[str, float]) -> dict[str, float]:
        out: dict[str, float] = {}
        if self.pairs != "products":
            for name in {**left, **right}:
                apart = abs(left.get(name, 0.0) - right.get(name, 0.0))
                if apart:
                    out[f"≠{escape(name, '×')}"] = apart
        if self.pairs != "differences":
            for a, of_a in left.items():
                for b, of_b in right.items():
                    out[f"{escape(a, '×')}×{escape(b, '×')}"] = of_a * of_b
        return out


def _truth(y: Any, table: Table) -> list[int]:
    truth = read_indices(y, len(table), "indices, one for each item on the left")
    if len(set(truth)) != len(truth) or not all(0 <= each < len(table[0]) for each in truth):
        raise LabelError(f"y={truth!r:.80}: expected different indices from 0 to {len(table[0]) - 1}")
    return truth


def _scores(w: Weights, table: Table) -> Array:
    width = len(table[0]) if table else 0
    return part_scores(w, [pair for row in table for pair in row]).reshape(len(table), width)


def assign(scores: Array) -> list[int]:
    """The column of each row, all different, with the highest sum of scores."""
    from scipy.optimize import linear_sum_assignment  # only who matches waits for scipy

    columns: list[int] = linear_sum_assignment(scores, maximize=True)[1].tolist()
    return columns
