"""Trees: `DependencyTree`, a head for each token (maximum spanning arborescence), and `CKY`, labelled brackets."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, LabelError, ParameterError
from ...scheme.parameters import Parameters, flag
from ...scheme.rounds import Array
from .base import (
    QUIETLY,
    Labelled,
    Transform,
    Weights,
    add_features,
    escape,
    identity,
    part_scores,
    read_indices,
    read_row,
    read_rows,
    require_identity,
    weights_of,
    wrong_parts,
)

Span = tuple[int, int]


def bin_of(length: int) -> int:
    """1, 2, 3, 4, 5 (to 9), 10 (and more)."""
    return length if length < 5 else 5 if length < 10 else 10


# -- a head for each token -----------------------------------------------------------------------------------------


@dataclasses.dataclass(repr=False)
class DependencyTree(Parameters):
    """A head for each token: the spanning tree with the highest sum of edge scores, crossing edges included.

    x is a sequence of n tokens, each a word, a list of words, a mapping of features, or a row of numbers. y is the
    list of their heads, counted from 1; 0 is the root, which is no token: ``[2, 0, 2]`` hangs tokens 1 and 3 on
    token 2. With `single_root`, one token alone may hang on the root. The cost is the number of wrong heads.

    Features of an edge, in the order of the sentence, the arrow pointing to the dependent: for features a of the
    head and b of the dependent "a→b" (or "b←a"), "a→" ("←a") and "→b" ("b←"); "distance|+1", positive where the
    dependent comes later, up to 4 exactly, then 5 (to 9) and 10; from the root "root|" and "root|b". Features of
    your own come with x as a mapping {"tokens": tokens, "edges": {(head, dependent): features}} and are called
    "edge|feature".

    `decode` is the algorithm of Chu and Liu and of Edmonds, exact, O(n³) (with `single_root`, O(n⁴) where the best
    tree has several roots). `loss_augmented` is exact for cost_transform="identity", where every wrong edge gains 1.
    It refuses every other transform: a root of the cost does not split over edges, and the best tree with
    exactly k wrong heads, over which one would have to search, is not found by any known fast exact method.
    Of heads that are equally good, the first one wins, the root before all.
    """

    transforms = ("identity",)  # of the cost, for which loss_augmented is exact

    family = "decoder"
    name = "dependency_tree"
    single_root: bool = flag(False)

    def decode(self, w: Weights, x: Any) -> list[int]:
        return self._best(self._scores(w, *_read_sentence(x)))

    def loss_augmented(self, w: Weights, x: Any, y: Any, transform: Transform = math.sqrt) -> list[int]:
        require_identity(self, transform)
        rows, edges = _read_sentence(x)
        truth = self._truth(y, len(rows))
        scores = self._scores(w, rows, edges) + 1.0
        scores[truth, np.arange(1, len(rows) + 1)] -= 1.0
        return self._best(scores)

    def features(self, x: Any, y: Any) -> dict[str, float]:
        rows, edges = _read_sentence(x)
        texts = _texts(rows)
        out: dict[str, float] = {}
        for dependent, head in enumerate(self._truth(y, len(rows)), start=1):
            add_features(out, _edge(texts, edges, head, dependent))
        return out

    def cost(self, y: Any, y_hat: Any) -> float:
        return wrong_parts(y, y_hat)

    def equal(self, y: Any, y_hat: Any) -> bool:
        return list(y) == list(y_hat)

    def _scores(self, w: Weights, rows: list[dict[str, float]], edges: dict[Span, dict[str, float]]) -> Array:
        """From head (down) to dependent (across)."""
        n = len(rows)
        texts = _texts(rows)
        at = [(head, dependent) for head in range(n + 1) for dependent in range(1, n + 1) if head != dependent]
        scores = np.full((n + 1, n + 1), -np.inf)
        if at:
            scores[tuple(np.array(at).T)] = part_scores(w, [_edge(texts, edges, *edge) for edge in at])
        return scores

    def _best(self, scores: Array) -> list[int]:
        heads = maximum_arborescence(scores)
        if not self.single_root or heads.count(0) <= 1:
            return heads
        best = -np.inf
        for only in range(1, len(scores)):
            restricted = scores.copy()
            restricted[0] = -np.inf
            restricted[0, only] = scores[0, only]
            tree = maximum_arborescence(restricted)
            total = math.fsum(scores[head, dependent] for dependent, head in enumerate(tree, start=1))
            if total > best:
                best, heads = total, tree
        return heads

    def _truth(self, y: Any, tokens: int) -> list[int]:
        heads = read_indices(y, tokens, "heads, one for each token")
        for dependent, head in enumerate(heads, start=1):
            if not 0 <= head <= tokens or head == dependent:
                raise LabelError(f"token {dependent} has head {head}; expected 0 (the root) to {tokens}, not itself")
        cycle = find_cycle([0, *heads])
        if cycle:
            raise LabelError(f"y is no tree: tokens {cycle} hang on each other in a cycle")
        if self.single_root and heads.count(0) > 1:
            raise LabelError(f"y hangs {heads.count(0)} tokens on the root; single_root allows one")
        return heads


def _read_sentence(x: Any) -> tuple[list[dict[str, float]], dict[Span, dict[str, float]]]:
    if not isinstance(x, Mapping):
        return read_rows(x, "token"), {}
    if "tokens" not in x or not set(x) <= {"tokens", "edges"} or not isinstance(x.get("edges", {}), Mapping):
        raise InputError(f'x must be a sequence of tokens or {{"tokens": …, "edges": {{…}}}}, got {x!r:.80}')
    rows = read_rows(x["tokens"], "token")
    possible = set(itertools.product(range(len(rows) + 1), range(1, len(rows) + 1)))
    edges: dict[Span, dict[str, float]] = {}
    for edge, row in x.get("edges", {}).items():
        if edge not in possible or edge[0] == edge[1]:
            raise InputError(f"edge {edge!r} is not a pair (head, dependent) of the {len(rows)} tokens")
        try:
            edges[edge] = {f"edge|{name}": value for name, value in read_row(row).items()}
        except InputError as error:
            raise type(error)(f"edge {edge}: {error}") from None
    return rows, edges


def _texts(rows: list[dict[str, float]]) -> list[list[tuple[str, float]]]:
    return [[(escape(name, "|→←"), value) for name, value in row.items()] for row in rows]


def _edge(
    texts: list[list[tuple[str, float]]], edges: dict[Span, dict[str, float]], head: int, dependent: int
) -> dict[str, float]:
    """The features of one edge."""
    of_dependent = texts[dependent - 1]
    out: dict[str, float] = {}
    if head == 0:
        out["root|"] = 1.0
        out.update((f"root|{b}", value) for b, value in of_dependent)
    else:
        of_head = texts[head - 1]
        length = bin_of(abs(dependent - head))
        if head < dependent:
            out[f"distance|+{length}"] = 1.0
            out.update((f"{a}→", value) for a, value in of_head)
            out.update((f"→{b}", value) for b, value in of_dependent)
            out.update((f"{a}→{b}", of_a * of_b) for a, of_a in of_head for b, of_b in of_dependent)
        else:
            out[f"distance|-{length}"] = 1.0
            out.update((f"←{a}", value) for a, value in of_head)
            out.update((f"{b}←", value) for b, value in of_dependent)
            out.update((f"{b}←{a}", of_a * of_b) for a, of_a in of_head for b, of_b in of_dependent)
    out.update(edges.get((head, dependent), {}))
    return out


def find_cycle(heads: list[int]) -> list[int]:
    """Nodes of a cycle of heads, ascending, or []; node 0 is the root, whose own head is not read."""
    seen = [0] * len(heads)  # by which walk
    for start in range(1, len(heads)):
        node = start
        while node != 0 and not seen[node]:
            seen[node] = start
            node = heads[node]
        if node != 0 and seen[node] == start:
            cycle = [node]
            while heads[cycle[-1]] != node:
                cycle.append(heads[cycle[-1]])
            return sorted(cycle)
    return []


def maximum_arborescence(scores: Array) -> list[int]:
    """The heads of nodes 1, 2, … in the tree rooted at 0 with the highest Σ scores[head, node] (Chu-Liu/Edmonds).

    Every node takes its best head; a cycle among these becomes one node, whose best entering edge, less the edge
    it replaces, is found in the smaller graph. −∞ stands for an edge that is not there; there must be a tree.
    """
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    levels: list[tuple[list[int], list[int], list[int], NDArray[np.intp], NDArray[np.intp]]] = []
    while True:
        heads = [0, *np.argmax(scores[:, 1:], axis=0).tolist()] if len(scores) > 1 else [0]
        cycle = find_cycle(heads)
        if not cycle:
            break
        rest = [node for node in range(len(scores)) if node not in set(cycle)]  # the root stays 0
        entering = scores[np.ix_(rest, cycle)] - scores[[heads[node] for node in cycle], cycle]
        leaving = scores[np.ix_(cycle, rest)]
        enter, leave = np.argmax(entering, axis=1), np.argmax(leaving, axis=0)
        levels.append((heads, cycle, rest, enter, leave))
        smaller = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
        smaller[:-1, :-1] = scores[np.ix_(rest, rest)]
        smaller[:-1, -1] = np.max(entering, axis=1)
        smaller[-1, :-1] = np.max(leaving, axis=0)
        scores = smaller
    for before, cycle, rest, enter, leave in reversed(levels):
        above = before.copy()  # within the cycle heads stay, but for the node through which it is entered
        for at, node in enumerate(rest):
            if node:
                above[node] = rest[heads[at]] if heads[at] < len(rest) else cycle[leave[at]]
        above[cycle[enter[heads[-1]]]] = rest[heads[-1]]
        heads = above
    return heads[1:]


# -- labelled brackets ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(repr=False)
class CKY(Labelled):
    """A binary tree of labelled brackets over the tokens: the best one under a weighted grammar.

    x is a sequence of n tokens, read as in `Sequence`. y is a list of n − 1 brackets (start, end, label), a bracket
    holding the tokens start, …, end − 1 and each of two or more tokens being made of two parts: "(the dog) barks" is
    ``[(0, 3, "S"), (0, 2, "NP")]``, outer ones first, from left to right. The cost is the number of brackets that
    y does not have.

    Features of a bracket, each as "label|feature": "first=a" and "last=a" for the features a of its first and last
    token, "before=a" and "after=a" for those around it, "length=2" (from 5 to 9 "5", then "10"); with `rules`, the
    labels of its two parts, "label→left→right", where a single token has an empty label.

    `decode` is the Cocke-Kasami-Younger algorithm, exact, O(n³L³) for L labels. `loss_augmented` carries the number
    of wrong brackets in its state and is exact for any transform of the cost, √ included: O(n⁵L²) more; for the
    identity as fast as `decode`. Of equals, the label listed first and the
    earliest split win.
    """

    name = "cky"
    labels: tuple[Any, ...] = ()
    rules: bool = flag(True)

    def validate(self) -> None:
        if not self.labels or "" in self._texts:
            raise ParameterError(f"labels={self.labels!r}: expected at least one label, none of them empty")
        children = [*self._texts, ""]
        self._rules = [f"{a}→{b}→{c}" for a, b, c in itertools.product(self._texts, children, children)]

    def decode(self, w: Weights, x: Any) -> list[tuple[int, int, Any]]:
        rows = read_rows(x, "token")
        return self._tree(cky(*self._scores(w, rows))) if len(rows) > 1 else []

    def loss_augmented(
        self, w: Weights, x: Any, y: Any, transform: Transform = math.sqrt
    ) -> list[tuple[int, int, Any]]:
        rows = read_rows(x, "token")
        truth = self._truth(y, len(rows))
        if len(rows) < 2:
            return []
        spans, rules = self._scores(w, rows)
        wrong = np.ones(spans.shape, dtype=np.intp)
        for (start, end), label in truth.items():
            wrong[start, end, label] = 0
        if transform is identity:
            return self._tree(cky(spans + wrong, rules))
        gains = np.array([transform(float(errors)) for errors in range(len(rows))])
        return self._tree(cky(spans, rules, wrong, gains))

    def features(self, x: Any, y: Any) -> dict[str, float]:
        rows = read_rows(x, "token")
        truth = self._truth(y, len(rows))
        out: dict[str, float] = {}
        for (start, end), label in truth.items():
            for feature, value in _span(rows, start, end).items():
                name = self.names_of(feature)[label]
                out[name] = out.get(name, 0.0) + value
            if self.rules:
                split = _split(truth, start, end)
                parts = [self._texts[truth[part]] if part in truth else "" for part in ((start, split), (split, end))]
                name = f"{self._texts[label]}→{parts[0]}→{parts[1]}"
                out[name] = out.get(name, 0.0) + 1.0
        return out

    def cost(self, y: Any, y_hat: Any) -> float:
        right = {tuple(bracket) for bracket in y}
        return float(sum(tuple(bracket) not in right for bracket in y_hat))

    def equal(self, y: Any, y_hat: Any) -> bool:
        return {tuple(bracket) for bracket in y} == {tuple(bracket) for bracket in y_hat}

    def _scores(self, w: Weights, rows: list[dict[str, float]]) -> tuple[Array, Array]:
        """Of brackets (start, end, label), and of rules (label, left, right), the last one of these being a token."""
        n, labels = len(rows), len(self.labels)
        at = [(start, end) for start in range(n) for end in range(start + 2, n + 1)]
        spans = np.zeros((n + 1, n + 1, labels))
        spans[tuple(np.array(at).T)] = self.emissions(w, [_span(rows, *span) for span in at])
        if not self.rules:
            return spans, np.zeros((labels, labels + 1, labels + 1))
        return spans, weights_of(w, self._rules).reshape(labels, labels + 1, labels + 1)

    def _tree(self, brackets: list[tuple[int, int, int]]) -> list[tuple[int, int, Any]]:
        return [(start, end, self.labels[label]) for start, end, label in brackets]

    def _truth(self, y: Any, tokens: int) -> dict[Span, int]:
        """Label by bracket, found to be a binary tree."""
        if isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__"):
            raise LabelError(f"y must be a list of brackets (start, end, label), got {y!r:.80}")
        found: dict[Span, int] = {}
        for bracket in y:
            if not isinstance(bracket, (tuple, list)) or len(bracket) != 3:
                raise LabelError(f"{bracket!r:.80} is no bracket (start, end, label)")
            start, end = read_indices(bracket[:2], 2, "ends of a bracket")
            found[start, end] = self.index_of(bracket[2])
        if len(y) != max(tokens - 1, 0) or len(found) != len(y):
            raise LabelError(
                f"a binary tree over {tokens} tokens has {max(tokens - 1, 0)} different brackets: {y!r:.80}"
            )
        out: dict[Span, int] = {}
        ahead = [(0, tokens)] if tokens > 1 else []
        while ahead:
            start, end = ahead.pop()
            if (start, end) not in found or not (split := _split(found, start, end)):
                raise LabelError(f"the brackets are no binary tree: tokens {start} to {end - 1} have no two parts in y")
            out[start, end] = found[start, end]
            ahead += [part for part in ((split, end), (start, split)) if part[1] - part[0] > 1]
        return out


def _split(brackets: dict[Span, int], start: int, end: int) -> int:
    """Where a bracket's second part starts; 0 if it has no two parts."""
    for split in range(start + 1, end):
        if all(b - a == 1 or (a, b) in brackets for a, b in ((start, split), (split, end))):
            return split
    return 0


def _span(rows: list[dict[str, float]], start: int, end: int) -> dict[str, float]:
    """The features of one bracket, without its label."""
    out = {f"length={bin_of(end - start)}": 1.0}
    for place, at in (("first", start), ("last", end - 1), ("before", start - 1), ("after", end)):
        if 0 <= at < len(rows):
            out.update((f"{place}={name}", value) for name, value in rows[at].items())
    return out


@QUIETLY
def cky(
    spans: Array, rules: Array, wrong: NDArray[np.intp] | None = None, gains: Array | None = None
) -> list[tuple[int, int, int]]:
    """The best binary tree: argmax of Σ spans[start, end, label] + rules[label, left label, right label].

    With `wrong` (0 or 1 for each bracket) and `gains`, gains[number of wrong brackets] is added: the state is
    (errors so far, label).
    """
    n, labels = len(spans) - 1, spans.shape[2]
    token = np.full((1, labels + 1), -np.inf)
    token[0, labels] = 0.0
    best: dict[Span, Array] = {(start, start + 1): token for start in range(n)}  # errors × label
    back: dict[tuple[int, int, int, int], tuple[int, int, int, int, int]] = {}
    for length in range(2, n + 1):
        for start in range(n - length + 1):
            end = start + length
            cell = best[start, end] = np.full((1 if wrong is None else length, labels + 1), -np.inf)
            for split in range(start + 1, end):
                left, right = best[start, split], best[split, end]
                by_left = left[:, np.newaxis, :, np.newaxis] + rules  # errors × label × left × right
                joined = np.max(by_left, axis=2)[:, np.newaxis] + right[:, np.newaxis, :]  # errors × errors × label ×
                score = np.max(joined, axis=3) + spans[start, end]
                for i, j, label in np.ndindex(score.shape):
                    errors = 0 if wrong is None else i + j + int(wrong[start, end, label])
                    if score[i, j, label] > cell[errors, label]:
                        cell[errors, label] = score[i, j, label]
                        c = int(np.argmax(joined[i, j, label]))
                        back[start, end, errors, label] = split, i, j, int(np.argmax(by_left[i, label, :, c])), c
    top = best[0, n] if gains is None else best[0, n] + gains[:, np.newaxis]
    errors, label = divmod(int(np.argmax(top)), labels + 1)
    out = []
    ahead = [(0, n, errors, label)]
    while ahead:
        start, end, errors, label = ahead.pop()
        if end - start > 1:
            out.append((start, end, label))
            split, i, j, b, c = back[start, end, errors, label]
            ahead += [(split, end, j, c), (start, split, i, b)]
    return out
