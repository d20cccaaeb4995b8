"""Streams made by whole-number arithmetic, so that no processor and no library changes them; and their forms."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy import sparse

ROWS, PROBES, FEATURES = 36, 2, 19  # one full group of 16 lanes and a rest
LABELS: dict[str, list[Any]] = {"binary": ["no", "yes"], "multiclass": [10, 20, 30, 40]}
LABELS["structured"] = LABELS["multilabel"] = LABELS["multiclass"]
TABLES = ("dense", "csr", "unsorted", "f32")
FORMS = (*TABLES, "named", "hashed")


class Numbers:
    """Knuth's 64-bit linear congruential generator; its upper half."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, n: int) -> int:
        self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
        return (self.state >> 32) % n


@dataclasses.dataclass(frozen=True)
class Stream:
    X: np.ndarray
    y: list[Any]
    importance: list[float]
    qid: list[int]
    probes: np.ndarray


@functools.cache
def stream(task: str, kind: str = "real") -> Stream:
    """Rows, half empty: multiples of 1/64 ("real") or small counts ("counts"); answers of a noisy linear teacher."""
    random = Numbers({"real": 1, "counts": 2}[kind])

    def value() -> int:
        if random.below(2):
            return 0
        return random.below(5) * 64 if kind == "counts" else random.below(257) - 128

    table = [[value() for _ in range(FEATURES)] for _ in range(ROWS + PROBES)]
    table[0] = [64] * FEATURES
    table[ROWS // 3] = [0] * FEATURES
    teachers = [[random.below(17) - 8 for _ in range(FEATURES)] for _ in range(4)]
    scores = [
        [sum(w * x for w, x in zip(teacher, row, strict=True)) + random.below(513) - 256 for teacher in teachers]
        for row in table[:ROWS]
    ]
    y = [_answer(task, i, each) for i, each in enumerate(scores)]
    importance = [(0.0, 0.5, 1.0, 1.0, 2.5)[random.below(5)] for _ in range(ROWS)]
    qid = [i // 7 for i in range(ROWS)]
    X = np.array(table, dtype=np.float64) / 64.0
    return Stream(X[:ROWS], y, importance, qid, X[ROWS:])


def _answer(task: str, i: int, scores: list[int]) -> Any:
    if task == "binary":
        return LABELS["binary"][int(scores[0] > 0)] if i > 1 else LABELS["binary"][1 - i]
    if task in ("multiclass", "structured"):  # the first rows bring every class, in disorder
        return LABELS[task][scores.index(max(scores))] if i > 3 else LABELS[task][(2 * i + 2 + i // 2) % 4]
    if task == "multilabel":
        return [LABELS[task][j] for j in range(4) if scores[j] > 0] or [LABELS[task][i % 4]]
    if task == "ranking":
        return float(min(3, max(0, scores[0] // 512 + 1)))
    return scores[0] / 64.0 if task == "regression" else None


@functools.cache
def sentences(decoder: str) -> Stream:
    """Inputs and answers for a decoder of `StructuredLearner`."""
    random = Numbers(3)

    def tokens(n: int) -> list[dict[str, Any]]:
        return [{"word": "abcdef"[random.below(6)], "size": (random.below(129) - 64) / 64} for _ in range(n)]

    def example() -> tuple[Any, Any]:
        n = 1 + random.below(4)
        x = tokens(n)
        if decoder == "sequence":
            return x, ["ABC"["abcdef".index(each["word"]) // 2 if random.below(8) else 0] for each in x]
        if decoder == "dependency tree":
            root = random.below(n)
            return x, [0 if i == root else i + 2 if i < root else i for i in range(n)]
        if decoder == "cky":
            return x, [(i, n, "SN"[random.below(2)]) for i in range(n - 1)]
        if decoder == "matching":
            turn = random.below(n)
            return (x, [x[(i + turn) % n] for i in range(n)]), [(i - turn) % n for i in range(n)]
        return x[0], LABELS["multiclass"]["abcdef".index(x[0]["word"]) // 2]

    examples = [example() for _ in range(ROWS + PROBES)]
    importance = [(0.0, 0.5, 1.0, 1.0, 2.5)[random.below(5)] for _ in range(ROWS)]
    X = np.empty(ROWS + PROBES, dtype=object)
    X[:] = [x for x, _ in examples]
    return Stream(X[:ROWS], [y for _, y in examples[:ROWS]], importance, [], X[ROWS:])


def formed(X: np.ndarray, form: str) -> Any:
    """A table as its user holds it."""
    if form == "dense":
        return X
    if form in ("named", "hashed"):
        colours = ("red", "green", "blue")
        return [
            {"colour": colours[np.count_nonzero(row) % 3], **{f"f{j}": float(v) for j, v in enumerate(row) if v}}
            for row in X
        ]
    matrix = sparse.csr_matrix(X)
    if form == "f32":
        return matrix.astype(np.float32)
    return unsorted(matrix) if form == "unsorted" else matrix


def unsorted(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """The same matrix, the entries of each row from the last to the first."""
    order = np.concatenate(
        [np.arange(start, stop)[::-1] for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    ).astype(np.intp)
    made = sparse.csr_matrix((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)
    made.has_sorted_indices = False
    return made
