"""Run a rule, round by round: `play` and what it returns."""

from __future__ import annotations

import dataclasses
import math
import os
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import rules, scheme
from ..errors import ParameterError
from ..models.reference import ReferenceLearner
from ..persistence import files
from ..scheme.rounds import Array, Rule
from . import characters, pictures, svg
from .frames import Frame, Weights
from .geometry import Box, Point
from .streams import TASKS, Example, read_examples, whole
from .words import count, show


def play(
    rule: str | Rule = "pa1",
    stream: Any = None,
    *,
    rounds: int = 12,
    task: str = "binary",
    readout: str | scheme.Readout = "last",
    seed: int = 0,
    fit_intercept: bool = True,
    multiclass: str = "rival",
    w: ArrayLike | None = None,
) -> Play:
    """Run `rule` for at most `rounds` rounds of `stream`, and keep each as a `Frame`.

    `stream` is a list (or iterable) of ((x1, x2), y); "A" or "M", the streams of the worked numbers; a generator of
    `onepass.datasets`, cut to its first two features; or None: a small stream generated from `seed`, two clouds with a
    few examples on the wrong side. Binary labels are −1 and +1, or 0 and 1. task="multiclass" takes labels 0, 1, 2, …;
    task="regression" takes (x, y) with one number x. `readout` and `multiclass` are those of `ReferenceLearner`, but a
    vote ("voted") has no single boundary to draw. `w` are the initial weights; by default 0, or unit vectors for a rule
    that could not leave 0.
    """
    if task not in TASKS:
        raise ParameterError(f"task={task!r}: play draws one of {', '.join(TASKS)}")
    made = rules.make(rule)
    made.require(task)
    examples, source = read_examples(stream, task, whole("rounds", rounds, 1), whole("seed", seed, 0))
    classes = max(2, *(int(y) + 1 for _, y in examples)) if task == "multiclass" else 2
    rows, width = (classes, 2) if task == "multiclass" else (1, 1 if task == "regression" else 2)
    start = _start(made, w, rows, width)

    def learner(readout: str | scheme.Readout) -> ReferenceLearner:
        options: dict[str, Any] = {"classes": classes, "multiclass": multiclass, "fit_intercept": fit_intercept}
        return ReferenceLearner(made, task, readout=readout, w=start, **options)

    mover, reader = learner(scheme.Last()), learner(readout)
    if isinstance(reader.readout, scheme.Voted):
        raise ParameterError("readout='voted' has no one boundary to draw; expected last, average or pocket")
    if isinstance(reader.readout, scheme.Last):
        reader = mover
    zero = np.zeros((rows, width) if rows > 1 else width)
    after = Weights(zero if start is None else mover.w, np.zeros(rows) if rows > 1 else 0.0)
    tube = made.traits.epsilon if task == "regression" else 0.0
    frames = list(_frames(mover, reader, examples, after, task, tube))
    return Play(made, task, reader.readout, source, fit_intercept, frames)


def _frames(
    mover: ReferenceLearner, reader: ReferenceLearner, examples: list[Example], after: Weights, task: str, tube: float
) -> Iterator[Frame]:
    """One frame for each example. `reader` has the weights that predict, `mover` the current weights; they may be the
    same learner.
    """
    for i, (x, y) in enumerate(examples):
        with np.errstate(over="ignore", invalid="ignore"):  # the learner refuses examples that overflow
            before, record = after, mover.learn(x, y)
            if reader is not mover:
                reader.learn(x, y)
        after = Weights(mover.w.copy(), mover.intercept)
        yield Frame(
            t=record.t,
            task=task,
            points=tuple(examples[: i + 1]),
            score=record.score,
            prediction=record.prediction,
            loss=record.loss,
            step=record.step,
            before=before,
            after=after,
            predicting=after if reader is mover else Weights(reader.w.copy(), reader.intercept),
            tube=tube,
        )


@dataclasses.dataclass(frozen=True, repr=False)
class Play:
    """The rounds of one run, and their pictures."""

    rule: Rule
    task: str
    readout: scheme.Readout
    source: str
    fit_intercept: bool
    frames: list[Frame]

    def __repr__(self) -> str:
        return f"Play({self.heading})"

    def __str__(self) -> str:
        return self.text()

    @property
    def heading(self) -> str:
        readout = "" if isinstance(self.readout, scheme.Last) else f", readout {self.readout!r}"
        intercept = "" if self.fit_intercept else ", no intercept"
        first = self.frames[0].before.w
        start = f", from w = {' '.join(show(row) for row in np.atleast_2d(first))}" if np.any(first) else ""
        return f"{self.rule!r} on {self.source}{readout}{intercept}{start}"

    @property
    def summary(self) -> str:
        """The result of the run in one line."""
        updates = sum(frame.step.add != 0 for frame in self.frames)
        loss = f"loss {show(sum(frame.loss for frame in self.frames))}"
        counts = [count(len(self.frames), "round"), count(updates, "update"), loss]
        if self.task != "regression":
            counts.insert(1, count(sum(frame.verdict == "mistake" for frame in self.frames), "mistake"))
        return ", ".join(counts)

    def box(self, aspect: float = 1.0) -> Box:
        """The part of the plane that every picture shows; `aspect` is its width over its height.

        One unit has the same length on both axes, so that w is perpendicular to its boundary (not in regression).
        """
        places = self._places()
        if self.task != "regression":
            places = np.vstack([places, *(self.arrow_scale() * np.atleast_2d(frame.after.w) for frame in self.frames)])
        low, high = places.min(axis=0), places.max(axis=0)
        size = high - low
        if self.task != "regression":
            height = max(size[1], size[0] / aspect)
            size = np.array([height * aspect, height])
        least = 1e-6 * np.abs(places).max(axis=0)  # wide enough that rounding does not make it 0
        size = 1.24 * np.where(size > least, size, np.maximum(least, 2.0))
        left, bottom = (low + high - size) / 2
        return float(left), float(bottom), float(left + size[0]), float(bottom + size[1])

    def arrow_scale(self) -> float:
        """The factor with which w is drawn: 1 if the arrow is then visible and fits, otherwise 1, 2 or 5 times 10ⁿ."""
        longest = max(float(np.max(np.linalg.norm(np.atleast_2d(frame.after.w), axis=1))) for frame in self.frames)
        reach = 0.5 * float(np.max(np.ptp(self._places(), axis=0)))
        if longest == 0 or reach == 0 or 0.3 * reach <= longest <= reach:
            return 1.0
        wanted = reach / longest
        power = 10.0 ** math.floor(math.log10(wanted))
        return max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= wanted)

    def _places(self) -> Array:
        """Where the examples are drawn, and where the origin is; in regression, where the line of w = 0 starts."""
        places = np.array([self.place(example) for example in self.frames[-1].points])
        return np.vstack([places, [places[0, 0] if self.task == "regression" else 0.0, 0.0]])

    def place(self, example: Example) -> Point:
        x, y = example
        return (x[0], float(y)) if self.task == "regression" else (x[0], x[1])

    # -- pictures ------------------------------------------------------------------------------------------------------

    def text(self, t: int | None = None, *, ascii: bool = False, color: bool = False) -> str:
        """Round `t`, or all of them, drawn with characters in at most 80 columns."""
        if t is not None:
            if not 1 <= t <= len(self.frames):
                raise ParameterError(f"t={t!r}: expected a round from 1 to {len(self.frames)}")
            return characters.draw(self, self.frames[t - 1], ascii, color)
        drawn = [characters.draw(self, frame, ascii, color) for frame in self.frames]
        return "\n\n".join([textwrap.fill(self.heading, characters.COLUMNS), *drawn, self.summary])

    def svg_strip(self, path: str | os.PathLike[str] | None = None, *, columns: int = 4) -> str:
        """All rounds in one SVG, at most `columns` to a row, for light and dark pages; also written to `path`."""
        picture = svg.strip(self, whole("columns", columns, 1))
        if path is not None:
            files.write(path, picture)
        return picture

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg_strip()}</div>'

    def png(self, path: str | os.PathLike[str], *, columns: int = 4, dpi: int = 100) -> None:
        """All rounds in one PNG, at most `columns` to a row (with matplotlib)."""
        pictures.png(self, os.fspath(path), whole("columns", columns, 1), dpi)

    def gif(self, path: str | os.PathLike[str], *, seconds: float = 1.2, dpi: int = 100) -> None:
        """One picture per round, `seconds` each, over and over (with matplotlib and pillow)."""
        pictures.gif(self, os.fspath(path), seconds, dpi)


def _start(rule: Rule, w: ArrayLike | None, rows: int, width: int) -> Array | None:
    if w is not None:
        given = np.array(w, dtype=np.float64)
        if given.shape != ((rows, width) if rows > 1 else (width,)) or not np.all(np.isfinite(given)):
            shape = f"{rows} rows of {width}" if rows > 1 else str(width)
            raise ParameterError(f"w={w!r:.80}: expected {shape} finite number(s)")
        return given
    if not rule.traits.stays_at_zero:
        return None
    angle = 2 * np.pi * np.arange(rows) / rows
    units = np.column_stack([np.cos(angle), np.sin(angle)])[:, :width]
    return units if rows > 1 else units[0]
