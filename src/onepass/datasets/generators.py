"""Generated streams: the same examples for the same seed, whatever the size of chunks.

Rows are drawn in fixed blocks, each from its own generator, so a row depends on the parameters and
on its position alone. Nothing is stored: a stream of any length takes the memory of one block and one chunk.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..rows.rows import CSR, dicts, join
from ..scheme.parameters import Parameters, number
from ..scheme.sizes import require_room

__all__ = ["SEA", "Checkerboard", "RotatingHyperplane", "SparseText", "Synthetic"]

BLOCK = 4096  # the rows of a block of draws; another value makes another stream

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclasses.dataclass(repr=False)
class Synthetic(Parameters):
    """`n` examples from a seed. A subclass draws block b: BLOCK rows, row i of them example b·BLOCK + i."""

    n: int = number(100_000, at_least=0, integer=True)
    seed: int = number(0, at_least=0, integer=True, kw_only=True)

    def block(self, b: int) -> tuple[Any, Labels]:
        raise NotImplementedError(f"{type(self).__name__} must define block(b) -> (X, y)")

    def __len__(self) -> int:
        return int(self.n)

    def __iter__(self) -> Iterator[tuple[dict[str, float], int]]:
        for X, y in self.chunks(BLOCK):
            yield from zip(dicts(X), y.tolist(), strict=True)

    def chunks(self, size: int = 1000) -> Iterator[tuple[Any, Labels]]:
        """The stream as (X, y), `size` rows at a time; the last chunk holds what is left."""
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ParameterError(f"chunks(size={size!r}): expected a whole number >= 1")
        return self._chunks(int(size))

    def _chunks(self, size: int) -> Iterator[tuple[Any, Labels]]:
        n, current, block = len(self), -1, None
        for start in range(0, n, size):
            stop = min(start + size, n)
            parts: list[tuple[Any, Labels]] = []
            for b in range(start // BLOCK, (stop - 1) // BLOCK + 1):
                if block is None or b != current:
                    current, block = b, self.block(b)
                cut = slice(max(start - b * BLOCK, 0), stop - b * BLOCK)
                parts.append((block[0][cut], block[1][cut]))
            yield join([X for X, _ in parts]), np.concatenate([y for _, y in parts])

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([int(self.seed), *key]))

    def _flip(self, y: NDArray[np.bool_], noise: float, rng: np.random.Generator) -> Labels:
        return (y ^ (rng.random(len(y)) < noise)).astype(np.int64)


@dataclasses.dataclass(repr=False)
class RotatingHyperplane(Synthetic):
    """y = 1 where ⟨w_t, x⟩ > 0, x standard normal in `d` dimensions; w_t turns in a random plane.

    It makes `turns` full turns over the `n` examples (a fraction is legal; 0 means no drift): after half a turn
    every label is the opposite of what it was. A part `noise` of the labels is flipped. (After Hulten, Spencer and
    Domingos 2001.)
    """

    d: int = number(10, at_least=2, integer=True)
    noise: float = number(0.05, at_least=0, at_most=1)
    turns: float = number(1.0, at_least=0)

    def validate(self) -> None:
        require_room((BLOCK + 6) * int(self.d), f"RotatingHyperplane(d={self.d!r})")

    def block(self, b: int) -> tuple[Array, Labels]:
        rng = self._rng(1, b)
        X = rng.standard_normal((BLOCK, int(self.d)))
        plane = X @ self._plane()
        angle = 2.0 * np.pi * self.turns * np.arange(b * BLOCK, (b + 1) * BLOCK) / self.n
        above = np.cos(angle) * plane[:, 0] + np.sin(angle) * plane[:, 1] > 0
        return X, self._flip(above, self.noise, rng)

    def _plane(self) -> Array:
        """Two orthonormal columns: w at the start, and w a quarter of a turn later."""
        start, later = self._rng(0).standard_normal((2, int(self.d)))
        start /= np.sqrt(start @ start)
        later -= (later @ start) * start
        later /= np.sqrt(later @ later)
        return np.column_stack([start, later])


@dataclasses.dataclass(repr=False)
class SEA(Synthetic):
    """Three features uniform in [0, 10), y = 1 where x0 + x1 > θ; x2 is irrelevant. (Street and Kim 2001.)

    The stream is divided evenly among the `thresholds`; θ jumps from each to the next. A share `noise` of the
    labels is flipped.
    """

    thresholds: tuple[float, ...] = (8.0, 9.0, 7.0, 9.5)
    noise: float = number(0.1, at_least=0, at_most=1)

    def validate(self) -> None:
        thresholds = np.asarray(self.thresholds)
        if thresholds.ndim != 1 or not len(thresholds) or thresholds.dtype.kind not in "iuf":
            raise ParameterError(f"SEA(thresholds={self.thresholds!r}): expected one or more numbers")
        if not np.all(np.isfinite(thresholds)):
            raise ParameterError(f"SEA(thresholds={self.thresholds!r}): expected finite numbers")

    def block(self, b: int) -> tuple[Array, Labels]:
        rng = self._rng(1, b)
        X = 10.0 * rng.random((BLOCK, 3))
        concept = np.arange(b * BLOCK, (b + 1) * BLOCK) * len(self.thresholds) // int(self.n)
        # Rows beyond n are drawn and not used; they have the last concept.
        theta = np.asarray(self.thresholds, dtype=np.float64)[np.minimum(concept, len(self.thresholds) - 1)]
        return X, self._flip(X[:, 0] + X[:, 1] > theta, self.noise, rng)


@dataclasses.dataclass(repr=False)
class Checkerboard(Synthetic):
    """Points uniform in [−1, 1)², y = 1 on every other square of a board of `squares` × `squares`.

    The board makes `turns` full turns around its centre over the `n` examples (0: no drift), and continues beyond the
    edge, so that it covers all points at every angle. A share `noise` of the labels is flipped. (Static: Wang and
    Vucetic 2010. Rotating: Elwell and Polikar 2011.)
    """

    squares: int = number(4, at_least=1, integer=True)
    noise: float = number(0.0, at_least=0, at_most=1)
    turns: float = number(0.0, at_least=0)

    def block(self, b: int) -> tuple[Array, Labels]:
        rng = self._rng(1, b)
        X = 2.0 * rng.random((BLOCK, 2)) - 1.0
        angle = 2.0 * np.pi * self.turns * np.arange(b * BLOCK, (b + 1) * BLOCK) / max(int(self.n), 1)
        across = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
        along = np.cos(angle) * X[:, 1] - np.sin(angle) * X[:, 0]
        column, row = (np.floor((side + 1.0) * (0.5 * self.squares)).astype(np.int64) for side in (across, along))
        return X, self._flip((column + row) % 2 == 1, self.noise, rng)


@dataclasses.dataclass(repr=False)
class SparseText(Synthetic):
    """Rows like bags of words: `nnz` distinct words of `features`, word j (from 0) drawn with p ∝ 1/(j + 1).

    Word j is more frequent in class j mod `classes`: in a text of class c, a share `tilt` of the draws goes to the
    neighbouring word of that class. Values are ln(2 + j), so that rarer words weigh more, then scaled to unit
    length. A row has fewer than `nnz` words if too many of its draws are equal (`nnz` near `features`). Chunks
    hold their rows as `CSR`.
    """

    features: int = number(47_000, at_least=1, integer=True)
    nnz: int = number(68, at_least=1, integer=True)
    classes: int = number(2, at_least=2, integer=True)
    tilt: float = number(0.2, at_least=0, at_most=1)

    def validate(self) -> None:
        if self.nnz > self.features:
            raise ParameterError(f"SparseText(nnz={self.nnz!r}): expected at most features={self.features!r}")
        numbers = 5 * int(self.features) + 10 * BLOCK * (2 * int(self.nnz) + 32)
        require_room(numbers, f"SparseText(features={self.features!r}, nnz={self.nnz!r})")

    def block(self, b: int) -> tuple[CSR, Labels]:
        rng = self._rng(1, b)
        features, nnz, classes = int(self.features), int(self.nnz), int(self.classes)
        y = rng.integers(classes, size=BLOCK)
        shape = (BLOCK, 2 * nnz + 32)  # enough draws that a row seldom has too few distinct words
        rank = np.arange(1.0, features + 1)
        cumulative = np.cumsum(1.0 / rank)
        # Without its last entry, the index stays below `features` whatever the rounding.
        drawn = np.searchsorted(cumulative[:-1], rng.random(shape) * cumulative[-1], side="right")
        leaning = drawn - drawn % classes + y[:, np.newaxis]
        drawn = np.where((rng.random(shape) < self.tilt) & (leaning < features), leaning, drawn)

        # The first nnz distinct words in the order drawn. Sorted by (word, draw), a word's first draw leads.
        order = np.sort(drawn * shape[1] + np.arange(shape[1]), axis=1)
        word, draw = order // shape[1], order % shape[1]
        leads = np.ones(shape, dtype=bool)
        leads[:, 1:] = word[:, 1:] != word[:, :-1]
        by_draw = np.zeros(shape, dtype=bool)
        np.put_along_axis(by_draw, draw, leads, axis=1)
        early = np.take_along_axis(np.cumsum(by_draw, axis=1) <= nnz, draw, axis=1)
        kept = leads & early

        indices = word[kept].astype(np.int32)
        counts = kept.sum(axis=1)
        indptr = np.zeros(BLOCK + 1, dtype=np.int32)
        np.cumsum(counts, out=indptr[1:])
        data = np.log(1.0 + rank)[indices]
        data /= np.repeat(np.sqrt(np.add.reduceat(data * data, indptr[:-1])), counts)
        return CSR(indptr, indices, data, (BLOCK, features)), y
