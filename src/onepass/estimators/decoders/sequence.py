"""`Sequence`: a label for each position, found by the Viterbi algorithm."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, LabelError, ParameterError
from ...scheme.parameters import flag
from ...scheme.rounds import Array
from .base import QUIETLY, Labelled, Transform, Weights, identity, read_rows, weights_of


@dataclasses.dataclass(repr=False)
class Sequence(Labelled):
    """A label of `labels` for each position: exact first-order (hidden Markov like) sequence labelling.

    x is a sequence of positions, each a word, a list of words, a mapping of features, or a row of numbers; y is a
    list of labels. Features: "label|feature" at each position and, with `transitions`, "label→label" between
    neighbours, "→label" at the start and "label→" at the end. The cost is the number of wrong labels.

    `decode` is the Viterbi algorithm. `loss_augmented` carries the number of errors so far in its state, so that it
    is exact for any transform of the cost, √ included, which does not split over positions: O(n²L²) for n positions
    and L labels, O(nL²) for the identity. Of equals, the label listed first wins.
    """

    name = "sequence"
    labels: tuple[Any, ...] = ()
    transitions: bool = flag(True)

    def validate(self) -> None:
        if not self.labels or "" in self._texts:
            raise ParameterError(f"labels={self.labels!r}: expected at least one label, none of them empty")
        links = [f"{before}→{after}" for before, after in itertools.product(self._texts, repeat=2)]
        self._arcs = links + [f"→{text}" for text in self._texts] + [f"{text}→" for text in self._texts]

    def decode(self, w: Weights, x: Any) -> list[Any]:
        rows = read_rows(x)
        return self._labels(viterbi(self.emissions(w, rows), *self._arc_weights(w))) if rows else []

    def loss_augmented(self, w: Weights, x: Any, y: Any, transform: Transform = math.sqrt) -> list[Any]:
        rows = read_rows(x)
        truth = self._truth(y, len(rows))
        if not rows:
            return []
        emissions, arcs = self.emissions(w, rows), self._arc_weights(w)
        if transform is identity:
            wrong = np.ones_like(emissions)
            wrong[np.arange(len(truth)), truth] = 0.0
            return self._labels(viterbi(emissions + wrong, *arcs))
        gains = np.array([transform(float(errors)) for errors in range(len(rows) + 1)])
        return self._labels(viterbi_counting_errors(emissions, *arcs, truth, gains))

    def features(self, x: Any, y: Any) -> dict[str, float]:
        rows = read_rows(x)
        indices = self._truth(y, len(rows))
        out: dict[str, float] = {}
        before = ""
        for row, index in zip(rows, indices, strict=True):
            for feature, value in row.items():
                name = self.names_of(feature)[index]
                out[name] = out.get(name, 0.0) + value
            before = self._pass(out, before, self._texts[index])
        if rows:
            self._pass(out, before, "")
        return out

    def cost(self, y: Any, y_hat: Any) -> float:
        if len(y) != len(y_hat):
            raise InputError(f"the sequences have {len(y)} and {len(y_hat)} labels; expected equally many")
        return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))

    def equal(self, y: Any, y_hat: Any) -> bool:
        return list(y) == list(y_hat)

    def _pass(self, out: dict[str, float], before: str, after: str) -> str:
        if self.transitions:
            name = f"{before}→{after}"
            out[name] = out.get(name, 0.0) + 1.0
        return after

    def _truth(self, y: Any, positions: int) -> list[int]:
        if isinstance(y, str) or not hasattr(y, "__len__"):
            raise LabelError(f"y must be a list of labels, one for each position, got {y!r:.80}")
        if len(y) != positions:
            raise LabelError(f"x has {positions} positions, y has {len(y)} labels")
        return [self.index_of(label) for label in y]

    def _labels(self, path: list[int]) -> list[Any]:
        return [self.labels[index] for index in path]

    def _arc_weights(self, w: Weights) -> tuple[Array, Array, Array]:
        """Weights between labels (from down, to across), at the start, at the end."""
        n = len(self.labels)
        if not self.transitions:
            return np.zeros((n, n)), np.zeros(n), np.zeros(n)
        weights = weights_of(w, self._arcs)
        return weights[: n * n].reshape(n, n), weights[n * n : -n], weights[-n:]


@QUIETLY
def viterbi(emissions: Array, links: Array, start: Array, end: Array) -> list[int]:
    """The best path: argmax over labels of Σ emissions + links + start + end."""
    best = start + emissions[0]
    back: list[NDArray[np.intp]] = []
    for scores in emissions[1:]:
        through = best[:, np.newaxis] + links
        back.append(np.argmax(through, axis=0))
        best = np.max(through, axis=0) + scores
    path = [int(np.argmax(best + end))]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1]


@QUIETLY
def viterbi_counting_errors(
    emissions: Array, links: Array, start: Array, end: Array, truth: list[int], gains: Array
) -> list[int]:
    """The same with gains[number of labels that differ from truth] added: the state is (errors so far, label)."""
    positions, labels = emissions.shape
    wrong = np.arange(labels) != np.array(truth)[:, np.newaxis]
    best = np.full((positions + 1, labels), -np.inf)
    best[wrong[0].astype(np.intp), np.arange(labels)] = start + emissions[0]
    back: list[NDArray[np.intp]] = []
    for t in range(1, positions):
        through = best[: t + 1, :, np.newaxis] + links  # errors × from × to
        back.append(np.argmax(through, axis=1))
        arrived = np.max(through, axis=1) + emissions[t]
        best[: t + 1] = np.where(wrong[t], -np.inf, arrived)
        best[1 : t + 2, wrong[t]] = arrived[:, wrong[t]]
    errors, label = divmod(int(np.argmax(best + end + gains[:, np.newaxis])), labels)
    path = [label]
    for t in range(positions - 1, 0, -1):
        errors -= int(wrong[t, path[-1]])
        path.append(int(back[t - 1][errors, path[-1]]))
    return path[::-1]
