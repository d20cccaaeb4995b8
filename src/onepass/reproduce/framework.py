"""The definition of an experiment: a protocol in words, cells, a function that runs a cell, and a report of the
results.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from .. import datasets
from ..errors import DatasetError

__all__ = ["Cell", "Check", "Experiment", "NotRun", "Numbers", "Report", "Result", "Results", "Spread"]

Cell = Mapping[str, str | int | float]  # what is run: names to JSON values
Numbers = dict[str, Any]  # what came out: names to JSON values


class Experiment:
    """Subclass it in a file of its own that ends with ``experiment = Mine()``; docs/reproduce.md has an example.

    `run` is called in another process for each cell and seed, in any order; it must depend on its arguments alone.
    """

    name: ClassVar[str]
    title: ClassVar[str]  # one line, for the list
    protocol: ClassVar[str]  # Markdown: data, splits, tuning, what is measured
    seeds: ClassVar[int] = 5
    quick_seeds: ClassVar[int] = 1
    version: ClassVar[int] = 1  # raise it when the results of `run` change: stored results are then not used
    timed: ClassVar[bool] = False  # times are measured: one cell at a time unless --jobs says otherwise

    def cells(self, quick: bool) -> list[Cell]:
        raise NotImplementedError

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        raise NotImplementedError

    def report(self, results: Results) -> Report:
        """Tables, pictures and checks. There may be results of some cells only, and sets may be missing."""
        raise NotImplementedError

    def data(self, cell: Cell) -> Sequence[tuple[str, str | None]]:
        """The real sets that a cell reads, as `datasets.load` names them: (name, part)."""
        return ()

    def published(self, cell: Cell) -> Mapping[str, Spread]:
        """The published numbers of a cell, under the names of the results of `run`."""
        return {}

    def missing(self, cell: Cell) -> str | None:
        """The reason why a cell cannot be run; None if all its data is there. Data sets are downloaded if possible."""
        for name, part in self.data(cell):
            try:
                datasets.load(name, part)
            except DatasetError as error:
                return str(error)
        return None


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and sample deviation over the seeds; one seed, or a paper that gives none, has no deviation."""

    mean: float
    sd: float | None = None
    n: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), sd, len(values))

    def show(self, digits: int = 1) -> str:
        sd = "" if self.sd is None else f" ± {self.sd:.{digits}f}"
        return f"{self.mean:.{digits}f}{sd}"


@dataclasses.dataclass
class Result:
    """A cell and the results of its runs, by seed."""

    cell: Cell
    runs: dict[int, Numbers]
    missing: str | None = None

    def values(self, key: str) -> list[Any]:
        return [self.runs[seed][key] for seed in sorted(self.runs)]

    def spread(self, key: str) -> Spread:
        return Spread.of([float(value) for value in self.values(key)])

    def mean(self, key: str) -> float:
        return self.spread(key).mean


class Results(list[Result]):
    """The results of all cells, in the order of the cells."""

    def __init__(self, results: Iterable[Result] = (), quick: bool = False) -> None:
        super().__init__(results)
        self.quick = quick

    def where(self, **wanted: str | int | float) -> Results:
        """The results of the cells with these values."""
        chosen = (r for r in self if all(r.cell.get(key) == value for key, value in wanted.items()))
        return Results(chosen, self.quick)

    def one(self, **wanted: str | int | float) -> Result | None:
        """The result of the only cell with these values that was run; None if there is none."""
        return next((r for r in self.where(**wanted) if r.runs), None)

    def the(self, **wanted: str | int | float) -> Result:
        """The same as `one`, but NotRun is raised if there is none."""
        found = self.one(**wanted)
        if found is None:
            raise NotRun(f"{', '.join(map(str, wanted.values()))} was not run")
        return found

    def names(self, key: str) -> list[Any]:
        """The values of a field, in the order of the cells."""
        return list(dict.fromkeys(r.cell[key] for r in self if key in r.cell))


class NotRun(Exception):
    """A cell that a claim needs has no result."""


@dataclasses.dataclass
class Check:
    """A claim, and whether the numbers support it; None if they do not decide it, because cells were not run."""

    claim: str
    holds: bool | None
    detail: str = ""

    @classmethod
    def of(cls, claim: str, test: Callable[..., tuple[bool, str]], *given: Any) -> Check:
        """`test` gives the verdict and the figures, or raises NotRun."""
        try:
            return cls(claim, *test(*given))
        except NotRun as error:
            return cls(claim, None, str(error))


@dataclasses.dataclass
class Report:
    """Markdown for the table, SVG pictures by name, claims checked."""

    text: str
    pictures: dict[str, str] = dataclasses.field(default_factory=dict)
    checks: list[Check] = dataclasses.field(default_factory=list)
