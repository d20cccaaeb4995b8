"""The synthetic concepts of the drift literature: STAGGER, LED, Agrawal's groups, drifting radial bases."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..scheme.parameters import flag, number
from ..scheme.sizes import require_room
from .generators import BLOCK, Array, Labels, Synthetic

__all__ = ["LED", "RBF", "STAGGER", "Agrawal"]


@dataclasses.dataclass(repr=False)
class STAGGER(Synthetic):
    """Blocks of a size, a colour and a shape, three values each, as nine columns of 0 and 1; the label is a logical
    concept of them.

    Concept 0: small and red; 1: green or round; 2: medium or large. The columns: small, medium, large; red, green,
    blue; square, round, triangular. The stream is divided evenly among `concepts`. (Schlimmer and Granger 1986.)
    """

    concepts: tuple[int, ...] = (0, 1, 2)
    noise: float = number(0.0, at_least=0, at_most=1)

    def validate(self) -> None:
        concepts = tuple(self.concepts) if isinstance(self.concepts, list | tuple) else ()
        if not concepts or any(type(concept) is not int or concept not in (0, 1, 2) for concept in concepts):
            raise ParameterError(f"STAGGER(concepts={self.concepts!r}): expected one or more of 0, 1, 2")

    def block(self, b: int) -> tuple[Array, Labels]:
        rng = self._rng(1, b)
        size, colour, shape = values = rng.integers(3, size=(3, BLOCK))
        X = (values.T[:, :, np.newaxis] == np.arange(3)).reshape(BLOCK, 9).astype(np.float64)
        liked = np.stack([(size == 0) & (colour == 0), (colour == 1) | (shape == 1), size > 0])
        turn = np.arange(b * BLOCK, (b + 1) * BLOCK) * len(self.concepts) // max(int(self.n), 1)
        concept = np.asarray(self.concepts)[np.minimum(turn, len(self.concepts) - 1)]
        return X, self._flip(liked[concept, np.arange(BLOCK)], self.noise, rng)


# Which of the seven lamps are on: top, upper left, upper right, middle, lower left, lower right, bottom.
_LAMPS = np.array(
    [[int(lamp) for lamp in row] for row in (
        "1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011"
    )],
    dtype=bool,
)  # fmt: skip


@dataclasses.dataclass(repr=False)
class LED(Synthetic):
    """The digit on a display of seven lamps, each of which is wrong with probability `noise`; ten classes.

    With `irrelevant`, 17 random lamps are added. At the start of each of the `parts` of the stream but the
    first, `drifting` of the seven change places with some of those 17. (Breiman, Friedman, Olshen and Stone 1984;
    with drift Bifet et al. 2009.) With 10% noise no predictor errs in less than 26% of the examples.
    """

    noise: float = number(0.1, at_least=0, at_most=1)
    irrelevant: bool = flag(True)
    drifting: int = number(0, at_least=0, at_most=7, integer=True)
    parts: int = number(2, at_least=1, integer=True)

    def validate(self) -> None:
        if self.drifting and not self.irrelevant:
            raise ParameterError(f"LED(drifting={self.drifting!r}): expected 0 without irrelevant lamps to swap with")
        if self.parts > max(self.n, 2):
            raise ParameterError(f"LED(parts={self.parts!r}): expected at most n={self.n!r}")

    def block(self, b: int) -> tuple[Array, Labels]:
        rng = self._rng(1, b)
        y = rng.integers(10, size=BLOCK)
        lamps = _LAMPS[y] ^ (rng.random((BLOCK, 7)) < self.noise)
        if not self.irrelevant:
            return lamps.astype(np.float64), y
        X = np.hstack([lamps, rng.random((BLOCK, 17)) < 0.5])
        turn = np.arange(b * BLOCK, (b + 1) * BLOCK) * int(self.parts) // max(int(self.n), 1)
        for part in np.unique(np.minimum(turn, int(self.parts) - 1)).tolist():
            rows = np.minimum(turn, int(self.parts) - 1) == part
            X[rows] = X[rows][:, self._places(part)]
        return X.astype(np.float64), y

    def _places(self, part: int) -> NDArray[np.int64]:
        """Which lamp each column shows in a part of the stream."""
        places = np.arange(24)
        for p in range(1, part + 1):
            rng = self._rng(2, p)
            ours, theirs = rng.permutation(7)[: int(self.drifting)], 7 + rng.permutation(17)[: int(self.drifting)]
            places[ours], places[theirs] = places[theirs], places[ours]
        return places


@dataclasses.dataclass(repr=False)
class RBF(Synthetic):
    """Points around `centres` in the unit cube of `d` dimensions; each centre has a class, a weight and a width.

    With `speed`, centres move straight on and rebound from the walls: `speed` is the distance per 1,000 examples. A
    point lies in a random direction from its centre, at a distance drawn from a normal distribution of that width.
    (Bifet et al. 2010, "RandomRBF".)
    """

    d: int = number(10, at_least=1, integer=True)
    classes: int = number(2, at_least=2, integer=True)
    centres: int = number(50, at_least=1, integer=True)
    speed: float = number(0.0, at_least=0)

    def validate(self) -> None:
        numbers = (3 * int(self.centres) + 4 * BLOCK) * int(self.d)
        require_room(numbers, f"RBF(d={self.d!r}, centres={self.centres!r})")

    def block(self, b: int) -> tuple[Array, Labels]:
        make = self._rng(0)
        shape = (int(self.centres), int(self.d))
        start, way = make.random(shape), make.standard_normal(shape)
        way /= np.sqrt((way * way).sum(axis=1, keepdims=True))
        label = make.integers(int(self.classes), size=shape[0])
        weight, width = make.random(shape[0]), make.random(shape[0])
        rng = self._rng(1, b)
        cumulative = np.cumsum(weight)
        centre = np.searchsorted(cumulative[:-1], rng.random(BLOCK) * cumulative[-1], side="right")
        t = np.arange(b * BLOCK, (b + 1) * BLOCK)[:, np.newaxis]
        travelled = start[centre] + way[centre] * (self.speed * t / 1000.0)
        at = 1.0 - np.abs(travelled % 2.0 - 1.0)  # a triangle wave: back and forth between the walls
        direction = rng.standard_normal((BLOCK, shape[1]))
        direction /= np.sqrt((direction * direction).sum(axis=1, keepdims=True))
        distance = rng.standard_normal(BLOCK) * width[centre]
        return at + direction * distance[:, np.newaxis], label[centre]


@dataclasses.dataclass(repr=False)
class Agrawal(Synthetic):
    """Decisions about loans by ten functions, `function` 1 to 10, of nine columns about an invented person.

    y = 1 in group A. Columns: salary, commission, age, education level (0–4), car (1–20), zip code (0–8), house value,
    years in the house, loan. After the decision, each number except the levels and codes is changed by up to
    `perturbation` of its range. (Agrawal, Imielinski and Swami 1993.)
    """

    function: int = number(1, at_least=1, at_most=10, integer=True)
    perturbation: float = number(0.0, at_least=0, at_most=1)

    def block(self, b: int) -> tuple[Array, Labels]:
        rng = self._rng(1, b)
        salary = rng.uniform(20_000, 150_000, BLOCK)
        commission = np.where(salary >= 75_000, 0.0, rng.uniform(10_000, 75_000, BLOCK))
        age = rng.integers(20, 81, BLOCK).astype(np.float64)
        level, car, area = rng.integers(5, size=BLOCK), rng.integers(1, 21, BLOCK), rng.integers(9, size=BLOCK)
        house = (9.0 - area) * 100_000 * rng.uniform(0.5, 1.5, BLOCK)
        years = rng.integers(1, 31, BLOCK).astype(np.float64)
        loan = rng.uniform(0, 500_000, BLOCK)
        y = _decide(int(self.function), salary, commission, age, level, house, years, loan).astype(np.int64)
        if self.perturbation:
            ranges = ((salary, 20_000, 150_000), (commission, 0, 75_000), (age, 20, 80), (house, 0, 1_350_000),
                      (years, 1, 30), (loan, 0, 500_000))  # fmt: skip
            for column, low, high in ranges:
                moved = column + self.perturbation * (high - low) * rng.uniform(-1, 1, BLOCK)
                column[:] = np.where((column == 0) & (low == 0), 0.0, np.clip(moved, low, high))
        return np.column_stack([salary, commission, age, level, car, area, house, years, loan]), y


def _within(low: float, x: Array, high: float) -> NDArray[np.bool_]:
    return (low <= x) & (x <= high)


def _decide(
    function: int,
    salary: Array,
    commission: Array,
    age: Array,
    level: NDArray[np.int64],
    house: Array,
    years: Array,
    loan: Array,
) -> NDArray[np.bool_]:
    """Group A. Most functions have different conditions for the young (under 40), the middle-aged and the old (from 60
    on).
    """
    ages = [age < 40, age < 60]
    income = salary + commission

    def by_age(young: NDArray[np.bool_], middle: NDArray[np.bool_], old: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.select(ages, [young, middle], old)

    def thousands(x: Array, *bands: tuple[int, int]) -> list[NDArray[np.bool_]]:
        return [_within(1000 * low, x, 1000 * high) for low, high in bands]

    young, middle, old = thousands(salary, (50, 100), (75, 125), (25, 75))
    if function == 1:
        return (age < 40) | (age >= 60)
    if function == 2:
        return by_age(young, middle, old)
    if function == 3:
        return by_age(level <= 1, (level >= 1) & (level <= 3), level >= 2)
    if function == 4:
        return by_age(
            np.where(level <= 1, old, young),
            np.where((level >= 1) & (level <= 3), young, middle),
            np.where(level >= 2, young, old),
        )
    if function == 5:
        small, large, larger = thousands(loan, (100, 300), (200, 400), (300, 500))
        return by_age(np.where(young, small, large), np.where(middle, large, larger), np.where(old, larger, small))
    if function == 6:
        return by_age(*thousands(income, (50, 100), (75, 125), (25, 75)))
    if function == 7:
        return np.asarray(2.0 / 3.0 * income - loan / 5.0 - 20_000 > 0)
    if function == 8:
        return np.asarray(2.0 / 3.0 * income - 5_000 * level - 20_000 > 0)
    if function == 9:
        return np.asarray(2.0 / 3.0 * income - 5_000 * level - loan / 5.0 - 10_000 > 0)
    equity = np.where(years >= 20, house * (years - 20) / 10.0, 0.0)
    return np.asarray(2.0 / 3.0 * income - 5_000 * level + equity / 5.0 - 10_000 > 0)
