"""Multiclass classification by binary classifiers: one against all, one against one, output codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, ParameterError
from ..models.votes import with_sums
from ..scheme.rounds import Array
from .codes import DECODERS, check_code, decode, make_code
from .examples import Indices, Rows, count
from .learners import BaseLearner
from .scheme import Reduction

__all__ = ["AgainstAll", "AgainstOne", "OutputCode", "tournament"]


def pair(i: int, j: int) -> int:
    """The number of the base that decides between classes i < j: those of a new class come last."""
    return j * (j - 1) // 2 + i


def tournament(scores: Array, K: int) -> Array:
    """Votes of K(K−1)/2 pairs, each score above 0 for the later class; ties go to the larger sum of scores.

    The sum is scaled into ±1/3, so that it never outweighs a vote.
    """
    votes, sums = np.zeros((len(scores), K)), np.zeros((len(scores), K))
    for j in range(1, K):
        s = scores[:, pair(0, j) : pair(0, j) + j]
        votes[:, j] += np.count_nonzero(s > 0, axis=1)
        votes[:, :j] += s <= 0
        with np.errstate(over="ignore", invalid="ignore"):
            sums[:, j] += np.cumsum(s, axis=1)[:, -1]  # in one order, whatever the number of rows
            sums[:, :j] -= s
    return with_sums(votes, sums)


class AgainstAll(Reduction):
    """One base per class: is it this class? Highest score wins."""

    name = "OneVsAll"

    def __init__(self, base: Any, classes: Any = None) -> None:
        super().__init__(base, classes)
        self._require_few()
        self.learners = [self.make() for _ in self.labels.values]
        if not self.labels.declared:
            self.spares = [self.make()]  # has learned every example as "no": the start of a new class

    def _grow(self) -> None:
        while len(self.learners) < len(self.labels):
            self.learners.append(self.spares[0].copy())

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        for k, learner in enumerate(self.learners):
            learner.learn(x, k == answer, c)
        for learner in self.spares:
            learner.learn(x, False, c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        for k, learner in enumerate(self.learners):
            learner.learn_rows(rows, answers == k, c)
        for learner in self.spares:
            learner.learn_rows(rows, np.zeros(count(rows), dtype=np.bool_), c)

    def _sizes(self) -> tuple[int, int]:
        return len(self.labels), 0 if self.labels.declared else 1

    def decode(self, scores: Array) -> Array:
        return scores


class AgainstOne(Reduction):
    """One base per pair of classes, which learns only the examples of these two. Most votes win."""

    name = "OneVsOne"

    def __init__(self, base: Any, classes: Any = None) -> None:
        super().__init__(base, classes)
        self._require_few()
        K = len(self.labels)
        self.learners = [self.make() for _ in range(K * (K - 1) // 2)]

    def _grow(self) -> None:
        # Spare i has learned the examples of class i as "not the later one": the start of its pair with a new class.
        while len(self.spares) < len(self.labels):
            self.learners += [spare.copy() for spare in self.spares]
            self.spares.append(self.make())

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        for i in range(answer):
            self.learners[pair(i, answer)].learn(x, True, c)
        for j in range(answer + 1, len(self.labels)):
            self.learners[pair(answer, j)].learn(x, False, c)
        if self.spares:
            self.spares[answer].learn(x, False, c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        members: dict[int, Indices] = {k: np.flatnonzero(answers == k) for k in np.unique(answers).tolist()}
        for j in range(len(self.labels)):
            for i in range(j) if j in members else [i for i in members if i < j]:
                at = np.sort(np.concatenate([members[k] for k in (i, j) if k in members]))
                self._teach(self.learners[pair(i, j)], rows, at, answers[at] == j, None if c is None else c[at])
        for k, at in members.items() if self.spares else ():
            self._teach(self.spares[k], rows, at, np.zeros(len(at), dtype=np.bool_), None if c is None else c[at])

    def _taught(self, answers: Any) -> list[BaseLearner]:
        K = len(self.labels)
        known = {k for k in np.unique(answers).tolist() if k < K}  # the bases of other classes do not exist yet
        pairs = {pair(min(i, k), max(i, k)) for k in known for i in range(K) if i != k}
        return [self.learners[p] for p in sorted(pairs)] + [self.spares[k] for k in sorted(known) if self.spares]

    def _sizes(self) -> tuple[int, int]:
        K = len(self.labels)
        return K * (K - 1) // 2, 0 if self.labels.declared else K

    def decode(self, scores: Array) -> Array:
        return tournament(scores, len(self.labels))


class OutputCode(Reduction):
    """One base per column of a code matrix; the nearest codeword wins."""

    name = "ErrorCorrectingOutputCodes"
    least = 2

    def __init__(self, base: Any, classes: Any, code: Any, bits: Any, decoding: str, seed: Any) -> None:
        super().__init__(base, classes)
        if decoding not in DECODERS:
            raise ParameterError(f"decoding={decoding!r}: expected one of {', '.join(DECODERS)}")
        self.decoding = decoding
        self.code = make_code(code, len(self.labels), bits, seed)
        self._require_few()
        self.learners = [self.make() for _ in range(self.code.shape[1])]

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        for sign, learner in zip(self.code[answer].tolist(), self.learners, strict=True):
            if sign:
                learner.learn(x, sign > 0, c)

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        for b, learner in enumerate(self.learners):
            sign = self.code[answers, b]
            at = np.flatnonzero(sign)
            self._teach(learner, rows, at, sign[at] > 0, None if c is None else c[at])

    def _sizes(self) -> tuple[int, int]:
        return self.code.shape[1], 0

    def decode(self, scores: Array) -> Array:
        return decode(self.code, scores, self.decoding)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        config, arrays = super().state()
        return config, {**arrays, "code": self.code}

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        try:
            self.code = check_code(arrays["code"], len(self.labels))
        except ParameterError as error:
            raise DamagedFileError(f"the reduction's parts do not fit together: {error}") from None
        super().restore(config, arrays)
