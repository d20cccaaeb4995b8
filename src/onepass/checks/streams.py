"""Small streams for `check_learner`, in every form of rows that a learner's traits declare."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..learner import LearnerTraits

__all__ = ["Example", "LearnerStream", "streams_for"]

ROWS, COLUMNS = 24, 5
WORDS = ("sun", "rain", "wind", "snow")

Example = tuple[Any, Any]


@dataclasses.dataclass
class LearnerStream:
    """Examples one by one, and the same examples as tables if the form has tables."""

    form: str
    examples: list[Example]
    table: Any = None  # an array, a CSR matrix, or None: a list of the examples' x

    def __len__(self) -> int:
        return len(self.examples)

    def part(self, start: int, stop: int) -> tuple[Any, Any]:
        """X and y of consecutive examples."""
        y = _answers([y for _, y in self.examples[start:stop]])
        X = [x for x, _ in self.examples[start:stop]] if self.table is None else self.table[start:stop]
        return X, y


def _answers(y: list[Any]) -> Any:
    if y and y[0] is None:
        return None
    return y if isinstance(y[0], tuple) else np.array(y)


def streams_for(traits: LearnerTraits, labels: tuple[str, ...] = ("a", "b"), seed: int = 0) -> list[LearnerStream]:
    """A stream in each form that the traits declare. Rows contain zeros; some names occur late in the stream."""
    random = np.random.default_rng(seed)
    if traits.values == "texts":
        texts = [" ".join(random.choice(WORDS, size=4)) for _ in range(ROWS)]
        return [LearnerStream("names", [({"text": text}, answer) for text, answer in _with(traits, texts, labels)])]
    X = _values(traits.values, random)
    y = _targets(traits, X, labels)
    rows = list(zip(X, y, strict=True))
    streams = []
    if "rows" in traits.forms:
        streams.append(LearnerStream("rows", rows, X))
    if "csr" in traits.forms:
        import scipy.sparse

        table = scipy.sparse.csr_matrix(X)
        streams.append(LearnerStream("csr", [(table[i], y[i]) for i in range(len(y))], table))
    if "names" in traits.forms:
        streams.append(LearnerStream("names", [(_named(x, i, traits.needs), y[i]) for i, x in enumerate(X)]))
    return streams


def _named(x: NDArray[np.float64], number: int, needs: tuple[str, ...]) -> dict[str, Any]:
    given: dict[str, Any] = {name: f"{number % 2}" for name in needs}
    return given | {f"f{j}": float(value) for j, value in enumerate(x) if value}


def _values(values: str, random: np.random.Generator) -> NDArray[np.float64]:
    if values == "bits":
        return random.integers(0, 2, size=(ROWS, COLUMNS)).astype(np.float64)
    if values == "counts":
        return random.integers(0, 4, size=(ROWS, COLUMNS)).astype(np.float64)
    X = random.integers(-16, 17, size=(ROWS, COLUMNS)) / 8.0  # exact in binary, so that no processor rounds them
    return np.asarray(X * (random.random((ROWS, COLUMNS)) < 0.8))


def _targets(traits: LearnerTraits, X: NDArray[np.float64], labels: tuple[str, ...]) -> list[Any]:
    score = X[:, 0] + 2.0 * X[:, 1] - X[:, 2]
    if traits.answers == "number":
        return list((score / 4.0).tolist())
    if traits.answers == "rank":
        return [float(value) for value in np.digitize(score, [-0.5, 0.5])]
    if traits.answers == "labels":
        return [tuple(label for label, column in zip(labels, row, strict=False) if column > 0) or ("a",) for row in X]
    if not traits.supervised:
        return [None] * len(X)
    bounds = np.quantile(score, np.linspace(0, 1, len(labels) + 1)[1:-1])
    return [labels[code] for code in np.digitize(score, bounds)]


def _with(traits: LearnerTraits, texts: list[str], labels: tuple[str, ...]) -> list[tuple[str, Any]]:
    if not traits.supervised:
        return [(text, None) for text in texts]
    return [(text, labels["sun" in text]) for text in texts]
