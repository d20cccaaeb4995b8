"""Step through a rule on a small stream and see its decision boundary move, as on a blackboard.

>>> from onepass.play import play
>>> rounds = play("pa", "A", fit_intercept=False)
>>> print(rounds.frames[2].title)
round 3: mistake, loss 1.8, add 0.9
>>> rounds.frames[2].after.w.round(6).tolist()
[0.7, -0.3]

`print(rounds)` draws every round in the terminal with the numbers one would compute by hand; `svg_strip`, `png`
and `gif` draw them to a file. The rounds are those of `core.Learner`. A picture shows the weights that the rule
moves: the boundary before the round dashed, after it solid, s = ±1 dotted, w as an arrow from the origin; and
shaded, what the readout's weights predict.
"""

from __future__ import annotations

import dataclasses
import html
import importlib
import itertools
import math
import numbers
import os
import textwrap
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import core, rules
from .core import Array, Rule, Step
from .errors import InputError, LabelError, MissingDependencyError, ParameterError

__all__ = ["STREAMS", "Frame", "Line", "Play", "Region", "Weights", "play"]

TASKS = ("binary", "multiclass", "regression")
MOST_CLASSES = 10  # a class is drawn as its digit

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top
Plane = tuple[float, float, float]  # (a, b, c): a·p₁ + b·p₂ + c, a line where it is 0, a half-plane where ≥ 0
Example = tuple[tuple[float, ...], Any]

# The example streams of the worked numbers: A is binary, M has three classes. Neither needs an intercept.
STREAMS: dict[str, list[Example]] = {
    "A": [((1, 2), 1), ((2, -1), -1), ((-1, 1), -1), ((1, 1), 1), ((0, -2), -1)],
    "M": [((1, 0), 0), ((0, 1), 1), ((-1, -1), 2), ((1, 1), 1), ((2, -1), 0)],
}


def play(
    rule: str | Rule = "pa1",
    stream: Any = None,
    *,
    rounds: int = 12,
    task: str = "binary",
    readout: str | core.Readout = "last",
    seed: int = 0,
    fit_intercept: bool = True,
    multiclass: str = "rival",
    w: ArrayLike | None = None,
) -> Play:
    """Run `rule` for at most `rounds` rounds of `stream`, and keep each as a `Frame`.

    `stream` is a list (or iterable) of ((x1, x2), y); "A" or "M", the streams of the worked numbers; a generator of
    `onepass.datasets`, cut to its first two features; or None: a small stream made from `seed`, two clouds with a
    few examples on the wrong side. Binary labels are −1 and +1, or 0 and 1.
    task="multiclass" takes labels 0, 1, 2, …; task="regression" takes (x, y) with one number x.
    `readout` and `multiclass` are those of `core.Learner`, but a vote ("voted") has no one boundary to draw.
    `w` is where to start; without it at 0, or at unit vectors for a rule that could not leave 0.
    """
    if task not in TASKS:
        raise ParameterError(f"task={task!r}: play draws one of {', '.join(TASKS)}")
    made = rules.make(rule)
    made.require(task)
    examples, source = _examples(stream, task, _whole("rounds", rounds, 1), _whole("seed", seed, 0))
    classes = max(2, *(int(y) + 1 for _, y in examples)) if task == "multiclass" else 2
    rows, width = (classes, 2) if task == "multiclass" else (1, 1 if task == "regression" else 2)
    start = _start(made, w, rows, width)

    def learner(readout: str | core.Readout) -> core.Learner:
        options: dict[str, Any] = {"classes": classes, "multiclass": multiclass, "fit_intercept": fit_intercept}
        return core.Learner(made, task, readout=readout, w=start, **options)

    mover, reader = learner(core.Last()), learner(readout)
    if isinstance(reader.readout, core.Voted):
        raise ParameterError("readout='voted' has no one boundary to draw; expected last, average or pocket")
    if isinstance(reader.readout, core.Last):
        reader = mover
    zero = np.zeros((rows, width) if rows > 1 else width)
    after = Weights(zero if start is None else mover.w, np.zeros(rows) if rows > 1 else 0.0)
    frames = []
    for i, (x, y) in enumerate(examples):
        with np.errstate(over="ignore", invalid="ignore"):  # the learner refuses what overflows
            before, record = after, mover.learn(x, y)
            if reader is not mover:
                reader.learn(x, y)
        after = Weights(mover.w.copy(), mover.intercept)
        frames.append(
            Frame(
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
                tube=made.epsilon_tube() if task == "regression" else 0.0,
            )
        )
    return Play(made, task, reader.readout, source, fit_intercept, frames)


# -- what a round was --------------------------------------------------------------------------------------------------


class Weights(NamedTuple):
    """s = w·x + b; with K classes w has K rows and b is K numbers."""

    w: Array
    b: Any

    def rows(self) -> Array:
        """(w₁, …, b), one row per class."""
        return np.column_stack([np.atleast_2d(self.w), np.atleast_1d(self.b)])


@dataclasses.dataclass(frozen=True)
class Line:
    """Where a·p₁ + b·p₂ + c = 0, as far as the half-planes `within` go. `kind`: before, after, margin, readout."""

    kind: str
    plane: Plane
    within: tuple[Plane, ...] = ()

    def segment(self, box: Box) -> tuple[Point, Point] | None:
        """The part inside `box`, or None."""
        a, b, c = self.plane
        norm = math.hypot(a, b)
        if norm == 0:
            return None
        a, b, c = a / norm, b / norm, c / norm
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        away = a * x + b * y + c
        x, y = x - away * a, y - away * b  # the line's point nearest to the middle; its direction is (−b, a)
        low, high = -math.inf, math.inf
        for p, q, r in (*_sides(box), *self.within):
            slope, value = q * a - p * b, p * x + q * y + r
            if abs(slope) <= 1e-12 * math.hypot(p, q):
                if not value >= -1e-12 * (math.hypot(p, q) + abs(r)):
                    return None
            elif slope > 0:
                low = max(low, -value / slope)
            else:
                high = min(high, -value / slope)
        if not (low < high and math.isfinite(low) and math.isfinite(high)):
            return None
        return (x - low * b, y + low * a), (x - high * b, y + high * a)


@dataclasses.dataclass(frozen=True)
class Region:
    """Where a class is predicted: the points on the right side of all half-planes."""

    label: int
    within: tuple[Plane, ...]

    def polygon(self, box: Box) -> list[Point]:
        corners = [(box[0], box[1]), (box[2], box[1]), (box[2], box[3]), (box[0], box[3])]
        for a, b, c in self.within:
            kept: list[Point] = []
            for p, q in zip(corners, corners[1:] + corners[:1], strict=True):
                at_p, at_q = (a * x + b * y + c for x, y in (p, q))
                if at_p >= 0:
                    kept.append(p)
                if (at_p >= 0) != (at_q >= 0):
                    u = at_p / (at_p - at_q)
                    kept.append((p[0] + u * (q[0] - p[0]), p[1] + u * (q[1] - p[1])))
            corners = kept
        return corners


@dataclasses.dataclass(frozen=True)
class Frame:
    """One round: score, prediction and loss are those of the weights `before`."""

    t: int
    task: str
    points: tuple[Example, ...]  # seen so far, the new one last
    score: Any
    prediction: Any
    loss: float
    step: Step
    before: Weights
    after: Weights
    predicting: Weights  # what the readout predicts with after the round; `after` for readout="last"
    tube: float = 0.0

    @property
    def x(self) -> tuple[float, ...]:
        return self.points[-1][0]

    @property
    def y(self) -> Any:
        return self.points[-1][1]

    @property
    def verdict(self) -> str:
        """mistake; passive (w stayed); narrow (right, but short of margin 1); shrink (w was only scaled); or right.

        In regression: passive, shrink, too low, too high.
        """
        if self.task != "regression" and self.prediction != self.y:
            return "mistake"
        if self.step.passive:
            return "passive"
        if self.step.add == 0 and self.step.gain == 0:
            return "shrink"
        if self.task == "regression":
            return "too low" if self.score < self.y else "too high"
        return "narrow" if self.margin < 1 else "right"

    @property
    def margin(self) -> float:
        """y·s, the lead over the best rival, or −|y − s|: the larger the better."""
        if self.task == "binary":
            return float(self.y * self.score)
        if self.task == "regression":
            return -abs(float(self.y - self.score))
        return float(self.score[self.y] - np.max(np.delete(self.score, self.y)))

    @property
    def title(self) -> str:
        return f"round {self.t}: {self.verdict}, loss {show(self.loss, 3)}, add {show(self.step.add, 3)}"

    @property
    def lines(self) -> list[Line]:
        """What to draw, from the bottom up: margins, boundary before, after, and the readout's where it is another."""
        lines = [*self._margins(), *self._boundary("before", self.before), *self._boundary("after", self.after)]
        return lines if self.predicting is self.after else [*lines, *self._boundary("readout", self.predicting)]

    @property
    def regions(self) -> list[Region]:
        """What would be predicted where after the round; nothing while all scores are equal."""
        rows = self.predicting.rows()
        if self.task == "regression" or not np.any(rows - rows[0] if len(rows) > 1 else rows):
            return []
        if self.task == "binary":
            return [Region(1, (_plane(rows[0]),)), Region(-1, (_plane(-rows[0]),))]
        regions = []
        for k, row in enumerate(rows):
            if not any(np.array_equal(row, lower) for lower in rows[:k]):  # a tie goes to the lowest class
                others = [_plane(row - other) for other in rows if not np.array_equal(row, other)]
                regions.append(Region(k, tuple(others)))
        return regions

    def _margins(self) -> list[Line]:
        if self.task == "multiclass" or (self.task == "regression" and not self.tube):
            return []
        a, b, c = self._planes(self.after)[0]
        away = self.tube if self.task == "regression" else 1.0
        return [Line("margin", (a, b, c - side * away)) for side in (1, -1)]

    def _boundary(self, kind: str, weights: Weights) -> list[Line]:
        if self.task != "multiclass":
            return [Line(kind, plane) for plane in self._planes(weights)]
        rows, lines = weights.rows(), []
        for k, j in itertools.combinations(range(len(rows)), 2):
            others = [_plane(rows[k] - row) for i, row in enumerate(rows) if i not in (k, j)]
            lines.append(Line(kind, _plane(rows[k] - rows[j]), tuple(others)))
        return lines

    def _planes(self, weights: Weights) -> list[Plane]:
        rows = weights.rows()
        if self.task == "regression":
            return [(float(w), -1.0, float(b)) for w, b in rows]  # the points (x, y) where w·x + b − y = 0
        return [_plane(row) for row in rows]

    def arithmetic(self, ascii: bool = False) -> list[str]:
        """The round as one would compute it by hand, in a few lines."""
        lines = [f"x = {_vector(self.x)}, y = {self._label(self.y)}"]
        if self.task != "regression":
            lines[0] += f"; predicted {self._label(self.prediction)}"
        rows = self.before.rows()
        if len(rows) > 1:
            scores = ", ".join(f"s{k} = {show(s)}" for k, s in enumerate(self.score))
            lines.append(f"{scores}; loss = {show(self.loss)}")
            for k, (old, new) in enumerate(zip(rows, self.after.rows(), strict=True)):
                moved = "" if np.array_equal(old, new) else f"{_written(old, 4)} → "
                lines.append(f"w{k} = {moved}{_written(new, 4)}")
        else:
            *w, b = rows[0].tolist()
            products = [f"{_factor(weight)}·{_factor(value)}" for weight, value in zip(w, self.x, strict=True)]
            b = 0.0 if show(b) == "0" else b
            terms = " + ".join([*products, _factor(b)] if b else products)
            lines.append(f"s = w·x{' + b' if b else ''} = {terms} = {show(self.score)}")
            lines.append(f"loss = {show(self.loss)}; {self._update()}")
        if self.predicting is not self.after:
            lines.append(f"the readout's w = {'; '.join(_written(row) for row in self.predicting.rows())}")
        return [_plain(line) for line in lines] if ascii else lines

    def _label(self, y: Any) -> str:
        return f"{y:+d}" if self.task == "binary" else show(y)

    def _update(self) -> str:
        """w ← scale·w + add·y·x, where that is what happened (second-order weights move otherwise).

        soft(w, u) takes u off every |w_j|, down to 0.
        """
        step, result = self.step, _written(self.after.rows()[0])
        if step.passive:
            return f"w stays {result}"
        kept, side = (
            step.scale * step.decay,
            float(self.y) if self.task == "binary" else -1.0 + 2 * (self.y >= self.score),
        )
        parts = ["w" if kept == 1 else f"{show(kept)}·w"] if kept else []
        if step.add:
            parts.append(f"{_factor(step.add)}·y·x" if self.task == "binary" else f"{_factor(step.add * side)}·x")
        formula, w = " + ".join(parts) or "0", kept * self.before.w + step.add * side * np.array(self.x)
        if step.soft:
            formula, w = f"soft({formula}, {show(step.soft)})", np.sign(w) * np.maximum(0.0, np.abs(w) - step.soft)
        if step.shrink != 1:
            formula, w = f"{show(step.shrink)}·{formula if step.soft else f'({formula})'}", step.shrink * w
        same = np.allclose(w, self.after.w, rtol=1e-9)
        return f"w ← {formula} = {result}" if same else f"add = {show(step.add)}, w ← {result}"


@dataclasses.dataclass(frozen=True, repr=False)
class Play:
    """The rounds of one run, and their pictures."""

    rule: Rule
    task: str
    readout: core.Readout
    source: str
    fit_intercept: bool
    frames: list[Frame]

    def __repr__(self) -> str:
        return f"Play({self.heading})"

    def __str__(self) -> str:
        return self.text()

    @property
    def heading(self) -> str:
        readout = "" if isinstance(self.readout, core.Last) else f", readout {self.readout!r}"
        intercept = "" if self.fit_intercept else ", no intercept"
        first = self.frames[0].before.w
        start = f", from w = {' '.join(show(row) for row in np.atleast_2d(first))}" if np.any(first) else ""
        return f"{self.rule!r} on {self.source}{readout}{intercept}{start}"

    @property
    def summary(self) -> str:
        """What the run came to."""
        updates = sum(frame.step.add != 0 for frame in self.frames)
        loss = f"loss {show(sum(frame.loss for frame in self.frames))}"
        counts = [_count(len(self.frames), "round"), _count(updates, "update"), loss]
        if self.task != "regression":
            counts.insert(1, _count(sum(frame.verdict == "mistake" for frame in self.frames), "mistake"))
        return ", ".join(counts)

    def box(self, aspect: float = 1.0) -> Box:
        """The part of the plane that every picture shows; `aspect` is its width over its height.

        One unit is as long on either axis, so that w stands upright on its boundary (not in regression).
        """
        places = self._places()
        if self.task != "regression":
            places = np.vstack([places, *(self.arrow_scale() * np.atleast_2d(frame.after.w) for frame in self.frames)])
        low, high = places.min(axis=0), places.max(axis=0)
        size = high - low
        if self.task != "regression":
            height = max(size[1], size[0] / aspect)
            size = np.array([height * aspect, height])
        least = 1e-6 * np.abs(places).max(axis=0)  # a width that floating-point numbers can tell from 0
        size = 1.24 * np.where(size > least, size, np.maximum(least, 2.0))
        left, bottom = (low + high - size) / 2
        return float(left), float(bottom), float(left + size[0]), float(bottom + size[1])

    def arrow_scale(self) -> float:
        """What w is multiplied with to be drawn: 1 where that can be seen and fits, otherwise 1, 2 or 5 times 10ⁿ."""
        longest = max(float(np.max(np.linalg.norm(np.atleast_2d(frame.after.w), axis=1))) for frame in self.frames)
        reach = 0.5 * float(np.max(np.ptp(self._places(), axis=0)))
        if longest == 0 or reach == 0 or 0.3 * reach <= longest <= reach:
            return 1.0
        wanted = reach / longest
        power = 10.0 ** math.floor(math.log10(wanted))
        return max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= wanted)

    def _places(self) -> Array:
        """Where the examples are drawn, and where the origin is; in regression, where the line of w = 0 starts."""
        places = np.array([self._place(example) for example in self.frames[-1].points])
        return np.vstack([places, [places[0, 0] if self.task == "regression" else 0.0, 0.0]])

    def _place(self, example: Example) -> Point:
        x, y = example
        return (x[0], float(y)) if self.task == "regression" else (x[0], x[1])

    # -- the terminal --------------------------------------------------------------------------------------------------

    def text(self, t: int | None = None, *, ascii: bool = False, color: bool = False) -> str:
        """Round `t`, or all of them, drawn with characters in at most 80 columns."""
        if t is not None:
            if not 1 <= t <= len(self.frames):
                raise ParameterError(f"t={t!r}: expected a round from 1 to {len(self.frames)}")
            return self._drawn(self.frames[t - 1], ascii, color)
        pictures = [self._drawn(frame, ascii, color) for frame in self.frames]
        return "\n\n".join([textwrap.fill(self.heading, COLUMNS), *pictures, self.summary])

    def _drawn(self, frame: Frame, ascii: bool, color: bool) -> str:
        canvas = _Characters(self.box(CANVAS[0] / (2 * CANVAS[1])), ascii)
        for line in frame.lines:
            canvas.line(line)
        canvas.origin()
        for example in frame.points:
            canvas.point(self._place(example), _symbol(self.task, example[1]), new=example is frame.points[-1])
        rows = canvas.framed(color)
        beside = self._legend(frame, canvas, ascii)
        lines = [frame.title]
        for i, row in enumerate(rows):
            lines.append(f"{row}  {beside[i][: COLUMNS - CANVAS[0] - 4]}".rstrip() if i < len(beside) else row)
        for words in frame.arithmetic(ascii):
            lines += textwrap.wrap(words, COLUMNS - 1, initial_indent=" ", subsequent_indent="    ")
        return "\n".join(lines)

    def _legend(self, frame: Frame, canvas: _Characters, ascii: bool) -> list[str]:
        left, bottom, right, top = (show(side, 2) for side in canvas.box)
        axes = ("x", "y") if self.task == "regression" else ("x1", "x2")
        marks = {
            "binary": ["+    positive", "o    negative"],
            "multiclass": ["0, 1 … the classes"],
            "regression": ["o    an example"],
        }[self.task]
        names = ["readout"] if frame.predicting is not frame.after else []
        if self.task != "multiclass":
            names.append("margin")
        legend = [*marks, f"({_symbol(self.task, frame.y)})  the new one"]
        for kind in ("after", "before", *names):
            legend.append(f"{canvas.sample(kind)} {self._meaning(kind, frame)}")
        past = self.frames[: frame.t]
        legend += [
            "",
            f"{axes[0]} from {left} to {right}",
            f"{axes[1]} from {bottom} to {top}",
            "",
            f"so far: loss {show(sum(each.loss for each in past), 4)}",
            f"  {_count(sum(each.step.add != 0 for each in past), 'update')}",
        ]
        if self.task != "regression":
            legend.append(f"  {_count(sum(each.verdict == 'mistake' for each in past), 'mistake')}")
        return [_plain(line) for line in legend] if ascii else legend

    def _meaning(self, kind: str, frame: Frame) -> str:
        what = "line" if self.task == "regression" else "boundary"
        margin = f"{show(frame.tube)} from the line" if self.task == "regression" else "s = +1 and s = -1"
        return {
            "after": f"{what} after the round",
            "before": f"{what} before",
            "readout": f"{what} of the {self.readout.name} w",
            "margin": margin,
        }[kind]

    # -- SVG -----------------------------------------------------------------------------------------------------------

    def svg_strip(self, path: str | os.PathLike[str] | None = None, *, columns: int = 4) -> str:
        """All rounds in one SVG, at most `columns` to a row, for light and dark pages; also written to `path`."""
        svg = _svg(self, _whole("columns", columns, 1))
        if path is not None:
            Path(path).write_text(svg, encoding="utf-8")
        return svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg_strip()}</div>'

    # -- matplotlib ----------------------------------------------------------------------------------------------------

    def png(self, path: str | os.PathLike[str], *, columns: int = 4, dpi: int = 100) -> None:
        """All rounds in one PNG, at most `columns` to a row (with matplotlib)."""
        columns = _balanced(_whole("columns", columns, 1), len(self.frames))
        figure = _figure("png", 3.2 * columns, 3.7 * math.ceil(len(self.frames) / columns) + 0.9)
        axes = figure.subplots(math.ceil(len(self.frames) / columns), columns, squeeze=False).ravel()
        for frame, ax in itertools.zip_longest(self.frames, axes):
            if frame is None:
                ax.set_axis_off()
            else:
                _plot(self, frame, ax)
        figure.suptitle(self.heading, fontsize=11)
        _plot_legend(self, figure, ncols=columns)
        figure.savefig(os.fspath(path), dpi=dpi, format="png")

    def gif(self, path: str | os.PathLike[str], *, seconds: float = 1.2, dpi: int = 100) -> None:
        """One picture per round, `seconds` each, over and over (with matplotlib and pillow)."""
        images = []
        for frame in self.frames:
            figure = _figure("gif", 5.0, 6.2, layout=None)
            _plot(self, frame, figure.add_axes((0.5 / 5.0, 1.25 / 6.2, 4.3 / 5.0, 4.3 / 6.2)), large=True)
            figure.text(0.5 / 5.0, 6.05 / 6.2, textwrap.fill(self.heading, 72), fontsize=8, va="top")
            _plot_legend(self, figure, ncols=2)
            images.append(_image(figure, dpi))
        milliseconds = [round(1000 * seconds)] * len(images)
        milliseconds[-1] *= 3  # time to look at where it ended
        images[0].save(
            os.fspath(path), format="GIF", save_all=True, append_images=images[1:], duration=milliseconds, loop=0
        )


# -- streams -----------------------------------------------------------------------------------------------------------


def _examples(stream: Any, task: str, rounds: int, seed: int) -> tuple[list[Example], str]:
    """The first `rounds` examples, checked, and a name for the stream."""
    width = 1 if task == "regression" else 2
    if stream is None:
        pairs: Iterable[Any] = _made(task, rounds, seed)
        source = f"a stream made from seed {seed}"
    elif isinstance(stream, str):
        if stream not in STREAMS:
            raise ParameterError(f"stream={stream!r}: expected one of {', '.join(STREAMS)}, or a list of ((x1, x2), y)")
        fits = {"A": "binary", "M": "multiclass"}[stream]
        if task != fits:
            raise ParameterError(f"stream={stream!r} is for task={fits!r}, not for task={task!r}")
        pairs, source = STREAMS[stream], f"stream {stream}"
    elif hasattr(stream, "chunks"):
        pairs, source = _rows(stream, width, rounds), repr(stream)
    else:
        pairs, source = stream, "the given stream"
    if not isinstance(pairs, Iterable):
        raise ParameterError(f"stream={stream!r:.80}: expected a list of ((x1, x2), y), or a generator with chunks")
    examples = [_example(i, pair, width) for i, pair in enumerate(itertools.islice(pairs, rounds), start=1)]
    if not examples:
        raise InputError("the stream is empty: there is nothing to play")
    return _labelled(examples, task), source


def _rows(stream: Any, width: int, rounds: int) -> Iterator[Any]:
    for X, y in stream.chunks(rounds):
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.shape[1] < width:
            raise ParameterError(f"stream={stream!r:.80}: its rows are not arrays of {width} or more numbers")
        yield from zip(X[:, :width].tolist(), y.tolist(), strict=True)


def _example(i: int, pair: Any, width: int) -> Example:
    expected = "(x, y)" if width == 1 else "((x1, x2), y)"
    try:
        x, y = pair
        row = np.atleast_1d(np.asarray(x))
    except (TypeError, ValueError):
        raise InputError(f"example {i}: expected {expected}, got {pair!r:.80}") from None
    if row.dtype.kind not in "iuf" or row.shape != (width,) or not np.all(np.isfinite(row)):
        raise InputError(f"example {i}: expected {expected} with finite numbers, got {pair!r:.80}")
    return tuple(row.astype(np.float64).tolist()), y


def _labelled(examples: list[Example], task: str) -> list[Example]:
    labels: list[Any] = []
    for i, (_, y) in enumerate(examples, start=1):
        number = float(y) if isinstance(y, numbers.Real | np.bool_) else math.nan
        if task == "regression":
            if not math.isfinite(number):
                raise LabelError(f"example {i}: y must be a finite number, got {y!r}")
            labels.append(number)
            continue
        legal = (-1, 0, 1) if task == "binary" else range(MOST_CLASSES)
        if number not in legal:
            expected = "-1 or +1, or 0 or 1" if task == "binary" else f"a whole number from 0 to {MOST_CLASSES - 1}"
            raise LabelError(f"example {i}: a {task} label must be {expected}, got {y!r}")
        labels.append(int(number))
    if task == "binary":
        if {-1, 0} <= set(labels):
            raise LabelError("binary labels must be -1 and +1, or 0 and 1; these are both -1 and 0")
        labels = [y or -1 for y in labels]
    return [(x, y) for (x, _), y in zip(examples, labels, strict=True)]


def _made(task: str, rounds: int, seed: int) -> list[Example]:
    """A stream whose numbers have one decimal, so that a round can be computed by hand."""
    rng = np.random.default_rng([seed, TASKS.index(task)])
    if task == "regression":
        X = rng.uniform(-1, 1, (rounds, 2))
        X = np.column_stack([2.5 * X[:, 0], 2 * X[:, 0] + 0.5 + 0.6 * X[:, 1]]).round(1)
        return [((x,), y) for x, y in X.tolist()]
    classes = 3 if task == "multiclass" else 2
    examples: list[Example] = []
    while len(examples) < rounds:
        # Six at a time: every class as often, and one of the six, never of the first two, in another's cloud.
        labels = np.concatenate([rng.permutation(classes) for _ in range(6 // classes)])
        clouds = labels.copy()
        clouds[rng.integers(2, 6)] += 1
        angle = 0.6 + 2 * np.pi * clouds / classes
        X = (1.5 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.6, (6, 2))).round(1)
        values = 1 - 2 * labels if task == "binary" else labels
        examples += [((a, b), y) for (a, b), y in zip(X.tolist(), values.tolist(), strict=True)]
    return examples[:rounds]


def _start(rule: Rule, w: ArrayLike | None, rows: int, width: int) -> Array | None:
    if w is not None:
        given = np.array(w, dtype=np.float64)
        if given.shape != ((rows, width) if rows > 1 else (width,)) or not np.all(np.isfinite(given)):
            shape = f"{rows} rows of {width}" if rows > 1 else str(width)
            raise ParameterError(f"w={w!r:.80}: expected {shape} finite number(s)")
        return given
    if not rule.never_starts():
        return None
    angle = 2 * np.pi * np.arange(rows) / rows
    units = np.column_stack([np.cos(angle), np.sin(angle)])[:, :width]
    return units if rows > 1 else units[0]


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name}={value!r}: expected a whole number >= {least}")
    return int(value)


# -- geometry and numbers ----------------------------------------------------------------------------------------------


def _plane(row: Array) -> Plane:
    a, b, c = row.tolist()
    return a, b, c


def _sides(box: Box) -> list[Plane]:
    """A box as four half-planes."""
    return [(1.0, 0.0, -box[0]), (-1.0, 0.0, box[2]), (0.0, 1.0, -box[1]), (0.0, -1.0, box[3])]


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, four to eight of them."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((factor * power for factor in (1, 2, 5, 10)), key=lambda size: abs(size - rough))
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def show(value: Any, digits: int = 6) -> str:
    """A number as people write it; what is 0 but for rounding is 0."""
    if isinstance(value, Sequence | np.ndarray):
        return "(" + ", ".join(show(float(item), digits) for item in value) + ")"
    number = float(value)
    if 10**digits <= abs(number) < 1e6:
        return f"{number:.0f}"
    return f"{0.0 if abs(number) < 1e-12 else number:.{digits}g}"


def _vector(values: Sequence[float] | Array) -> str:
    return show(values) if len(values) > 1 else show(values[0])


def _written(row: Array, digits: int = 6) -> str:
    """(w₁, …, b) as people write it: the intercept apart, where there is one."""
    w = show(row[:-1], digits) if len(row) > 2 else show(row[0], digits)
    b = show(row[-1], digits)
    return w if b == "0" else f"{w}, b = {b}"


def _factor(value: float) -> str:
    """A number within a formula."""
    return f"({show(value)})" if value < 0 else show(value)


def _balanced(columns: int, pictures: int) -> int:
    """At most so many columns, with as few gaps as possible in the last row."""
    return math.ceil(pictures / math.ceil(pictures / columns))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _symbol(task: str, y: Any) -> str:
    if task == "multiclass":
        return str(y)
    return "+" if task == "binary" and y > 0 else "o"


def _plain(text: str) -> str:
    for letter, spelled in (("·", "*"), ("→", "->"), ("←", "<-"), ("…", "..."), ("−", "-"), ("±", "+-")):
        text = text.replace(letter, spelled)
    return text


# -- characters --------------------------------------------------------------------------------------------------------

COLUMNS = 80
CANVAS = (44, 15)  # columns and rows within the border; a character is twice as high as wide

# Braille patterns hold two columns of four dots: bit of the dot at (column, row).
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
# Which dots along a line are set: (so many, of so many). And the letter where there is no Braille.
DASHES = {"margin": (1, 5, "."), "before": (3, 7, ":"), "after": (1, 1, "#"), "readout": (6, 8, "%")}
# ANSI colours; the empty one is the terminal's own.
COLORS = {"margin": "2", "before": "2", "after": "1", "readout": "35", "+": "34;1", "o": "33;1"}
CLASS_COLORS = ("34;1", "33;1", "32;1", "35;1", "36;1", "31;1")


class _Characters:
    """A picture made of characters: lines in Braille dots (or letters), points on top of them."""

    def __init__(self, box: Box, ascii: bool) -> None:
        self.box, self.ascii = box, ascii
        columns, rows = CANVAS
        self.dots = np.zeros((rows, columns), dtype=np.int64)
        self.letters = [[" "] * columns for _ in range(rows)]
        self.styles = [[""] * columns for _ in range(rows)]

    def line(self, line: Line) -> None:
        segment = line.segment(self.box)
        if segment is None:
            return
        (x0, y0), (x1, y1) = (self._dot(point) for point in segment)
        steps = math.ceil(max(abs(x1 - x0), abs(y1 - y0), 1))
        on, period, letter = DASHES[line.kind]
        for i in range(steps + 1):
            x, y = self._whole_dot((x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps))
            if i % period < on or self.ascii:
                column, row = x // 2, y // 4
                self.dots[row, column] |= DOTS[x % 2][y % 4]
                self.letters[row][column], self.styles[row][column] = letter, COLORS[line.kind]

    def origin(self) -> None:
        left, bottom, right, top = self.box
        column, row = self._cell((0.0, 0.0))
        if left < 0 < right and bottom < 0 < top and not self.dots[row, column]:
            self._put(column, row, "." if self.ascii else "·", "2")

    def point(self, point: Point, symbol: str, new: bool) -> None:
        column, row = self._cell(point)
        color = COLORS.get(symbol) or CLASS_COLORS[int(symbol) % len(CLASS_COLORS)]
        if new:
            self._put(column - 1, row, "(", "1")
            self._put(column + 1, row, ")", "1")
        self._put(column, row, symbol, color + (";7" if new else ""))

    def sample(self, kind: str) -> str:
        on, period, letter = DASHES[kind]
        if self.ascii:
            return letter * 3
        cells = [0, 0, 0, 0]
        for x in range(8):
            if x % period < on:
                cells[x // 2] |= DOTS[x % 2][1]
        return "".join(chr(0x2800 + cell) for cell in cells)

    def framed(self, color: bool) -> list[str]:
        corners = "++++-|" if self.ascii else "┌┐└┘─│"
        bar = corners[4] * CANVAS[0]
        rows = [f"{corners[0]}{bar}{corners[1]}"]
        for i in range(CANVAS[1]):
            cells = "".join(self._cell_text(i, j, color) for j in range(CANVAS[0]))
            rows.append(f"{corners[5]}{cells}{corners[5]}")
        return [*rows, f"{corners[2]}{bar}{corners[3]}"]

    def _cell_text(self, row: int, column: int, color: bool) -> str:
        letter, style = self.letters[row][column], self.styles[row][column]
        if self.dots[row, column] and not self.ascii:
            letter = chr(0x2800 + int(self.dots[row, column]))
        return f"\x1b[{style}m{letter}\x1b[0m" if color and style else letter

    def _put(self, column: int, row: int, letter: str, style: str) -> None:
        self.dots[row, column] = 0
        self.letters[row][column], self.styles[row][column] = letter, style

    def _dot(self, point: Point) -> Point:
        left, bottom, right, top = self.box
        across, down = (point[0] - left) / (right - left), (top - point[1]) / (top - bottom)
        return across * 2 * CANVAS[0], down * 4 * CANVAS[1]

    def _whole_dot(self, dot: Point) -> tuple[int, int]:
        x, y = (max(math.floor(value), 0) for value in dot)
        return min(x, 2 * CANVAS[0] - 1), min(y, 4 * CANVAS[1] - 1)

    def _cell(self, point: Point) -> tuple[int, int]:
        x, y = self._whole_dot(self._dot(point))
        return x // 2, y // 4


# -- SVG ---------------------------------------------------------------------------------------------------------------

PANEL = 260  # pixels on a side
LEFT, TOP, BELOW, GAP = 34, 26, 40, 14  # room for tick labels, title, numbers; between panels

# Okabe and Ito's colours, which the colour-blind tell apart; the second of each for dark pages.
PALETTE = (
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff9d5c"),
    ("#009e73", "#2fd0a0"),
    ("#a0508a", "#e29cc5"),
    ("#8a6d00", "#e6c84a"),
    ("#5b5bd6", "#a5a5ff"),
)
INK = {"page": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#f0f6fc"), "muted": ("#59636e", "#9198a1")}
INK |= {"grid": ("#e6e9ed", "#262c34"), "edge": ("#b8c0c8", "#4a525c"), "readout": ("#8250df", "#c297ff")}
SHADE = 0.13  # opacity of the regions


def _style(dark: int) -> str:
    """The colours of a light (0) or a dark (1) page."""
    ink = {name: pair[dark] for name, pair in INK.items()}
    lines = [
        f".onepass-play .page{{fill:{ink['page']}}}",
        f".onepass-play text{{fill:{ink['ink']}}}",
        f".onepass-play text.small{{fill:{ink['muted']}}}",
        f".onepass-play .grid{{stroke:{ink['grid']}}}",
        f".onepass-play .axis,.onepass-play .edge{{stroke:{ink['edge']}}}",
        f".onepass-play .after,.onepass-play .ring{{stroke:{ink['ink']}}}",
        f".onepass-play .before,.onepass-play .margin{{stroke:{ink['muted']}}}",
        f".onepass-play .readout{{stroke:{ink['readout']}}}",
        f".onepass-play .sign{{stroke:{ink['page']}}}",
        f".onepass-play text.sign{{fill:{ink['page']};stroke:none}}",
    ]
    for i, pair in enumerate(PALETTE):
        lines.append(f".onepass-play .fill{i}{{fill:{pair[dark]}}}.onepass-play .line{i}{{stroke:{pair[dark]}}}")
    return "\n".join(lines)


SHAPES = """.onepass-play .after{stroke-width:2.2}
.onepass-play .before{stroke-width:1.6;stroke-dasharray:7 4}
.onepass-play .margin{stroke-width:1.3;stroke-dasharray:1.5 3.5}
.onepass-play .readout{stroke-width:2.2;stroke-dasharray:10 3 2 3}
.onepass-play .ring{fill:none;stroke-width:2}
.onepass-play .edge{fill:none}
.onepass-play .sign{stroke-width:1.8}"""


def _hue(task: str, y: Any) -> int:
    if task == "multiclass":
        return int(y) % len(PALETTE)
    return 0 if task == "regression" or y > 0 else 1


def _svg(played: Play, columns: int) -> str:
    frames = played.frames
    columns = _balanced(columns, len(frames))
    box, wide = played.box(), LEFT + PANEL + GAP
    titles = textwrap.wrap(played.heading, columns * wide // 9)
    legend, legend_height = _svg_legend(played, columns * wide, 24 + 20 * len(titles))
    high, head = TOP + PANEL + BELOW, 14 + 20 * len(titles) + legend_height
    width, height = columns * wide + GAP, head + math.ceil(len(frames) / columns) * high + 4
    clip = f"panel{zlib.crc32(played.heading.encode()):08x}"
    body = []
    for i, frame in enumerate(frames):
        x, y = LEFT + GAP // 2 + i % columns * wide, head + TOP + i // columns * high
        body.append(_svg_round(played, frame, box, clip, x, y))
    view = " ".join(repr(side) for side in box)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="onepass-play" role="img" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" font-size="12"'
            f" font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\""
            f' data-box="{view}" data-panel="{PANEL}">',
            f"<title>{_escape(played.heading)}</title>",
            f"<style>\n{SHAPES}\n{_style(0)}\n@media (prefers-color-scheme: dark) {{\n{_style(1)}\n}}\n</style>",
            f'<defs><clipPath id="{clip}"><rect width="{PANEL}" height="{PANEL}"/></clipPath></defs>',
            f'<rect class="page" width="{width}" height="{height}"/>',
            *(
                f'<text x="{GAP}" y="{22 + 20 * i}" font-size="14" font-weight="600">{_escape(title)}</text>'
                for i, title in enumerate(titles)
            ),
            *legend,
            *body,
            "</svg>\n",
        ]
    )


def _svg_round(played: Play, frame: Frame, box: Box, clip: str, x: int, y: int) -> str:
    def at(point: Point) -> Point:
        across, up = (point[0] - box[0]) / (box[2] - box[0]), (point[1] - box[1]) / (box[3] - box[1])
        return across * PANEL, (1 - up) * PANEL

    grid, labels = [], []
    for tick in _ticks(box[0], box[2]):
        along = at((tick, box[1]))[0]
        kind = "grid" if tick else "axis"
        grid.append(f'<line class="{kind}" x1="{along:.2f}" y1="0" x2="{along:.2f}" y2="{PANEL}"/>')
        labels.append(f'<text class="small" x="{along:.2f}" y="{PANEL + 13}" text-anchor="middle">{show(tick)}</text>')
    for tick in _ticks(box[1], box[3]):
        along = at((box[0], tick))[1]
        kind = "grid" if tick else "axis"
        grid.append(f'<line class="{kind}" x1="0" y1="{along:.2f}" x2="{PANEL}" y2="{along:.2f}"/>')
        labels.append(f'<text class="small" x="-5" y="{along + 3.5:.2f}" text-anchor="end">{show(tick)}</text>')
    inside = []
    for region in frame.regions:
        corners = " ".join(f"{px:.2f},{py:.2f}" for px, py in map(at, region.polygon(box)))
        if corners:
            fill = f"fill{_hue(frame.task, region.label)}"
            inside.append(f'<polygon class="region {fill}" fill-opacity="{SHADE}" points="{corners}"/>')
    inside += grid
    for line in frame.lines:
        segment = line.segment(box)
        if segment:
            (x1, y1), (x2, y2) = map(at, segment)
            where = f'x1="{x1:.4f}" y1="{y1:.4f}" x2="{x2:.4f}" y2="{y2:.4f}"'
            inside.append(f'<line class="{line.kind}" {where}/>')
    inside += [_svg_arrow(at((0, 0)), at(tip), hue) for hue, tip in _arrows(played, frame)]
    inside += [_svg_point(frame.task, at(played._place(example)), example[1]) for example in frame.points]
    px, py = at(played._place(frame.points[-1]))
    inside.append(f'<circle class="ring" cx="{px:.2f}" cy="{py:.2f}" r="10"/>')
    start, _, rest = frame.title.partition(", ")
    caption = _caption(frame)
    return "\n".join(
        [
            f'<g class="round" transform="translate({x},{y})">',
            f"<title>{_escape(' | '.join([frame.title, *frame.arithmetic()]))}</title>",
            f'<text x="0" y="-8" font-size="{_fitting(12, frame.title)}">'
            f'<tspan font-weight="600">{_escape(start)}</tspan>, {_escape(rest)}</text>',
            f'<g clip-path="url(#{clip})">',
            *inside,
            "</g>",
            f'<rect class="edge" width="{PANEL}" height="{PANEL}"/>',
            f'<g font-size="10">{"".join(labels)}</g>',
            f'<text class="small" x="0" y="{PANEL + 29}" font-size="{_fitting(11, caption)}">{_escape(caption)}</text>',
            "</g>",
        ]
    )


def _fitting(size: float, text: str) -> str:
    """The font size, smaller where so many letters would run into the next picture."""
    return f"{min(size, (PANEL + GAP) / (0.55 * len(text))):.3g}"


def _caption(frame: Frame) -> str:
    """The score before and the weights after, short enough to stand under a picture."""
    if frame.task == "multiclass":
        return f"y = {frame.y}, scores {show(frame.score, 3)}"
    return f"s = {show(frame.score, 3)}, then w = {_written(frame.after.rows()[0], 3)}"


def _arrows(played: Play, frame: Frame) -> list[tuple[int, Point]]:
    """Colour and tip of each arrow from the origin."""
    if frame.task == "regression":
        return []
    scale = played.arrow_scale()
    rows = np.atleast_2d(frame.after.w)
    return [(i % len(PALETTE), (scale * float(w[0]), scale * float(w[1]))) for i, w in enumerate(rows) if np.any(w)]


def _svg_arrow(start: Point, tip: Point, hue: int) -> str:
    length = math.dist(start, tip)
    if length < 1:
        return ""
    ux, uy = (tip[0] - start[0]) / length, (tip[1] - start[1]) / length
    head = min(10.0, 0.8 * length)
    bx, by = tip[0] - head * ux, tip[1] - head * uy
    wx, wy = 0.42 * head * uy, 0.42 * head * ux
    wings = f"{bx - wx:.2f},{by + wy:.2f} {bx + wx:.2f},{by - wy:.2f}"
    return (
        f'<g class="arrow"><line class="line{hue}" stroke-width="2.4"'
        f' x1="{start[0]:.2f}" y1="{start[1]:.2f}" x2="{bx:.2f}" y2="{by:.2f}"/>'
        f'<polygon class="fill{hue}" points="{tip[0]:.2f},{tip[1]:.2f} {wings}"/></g>'
    )


def _svg_point(task: str, at: Point, y: Any) -> str:
    x, z = at
    disc = f'<circle class="fill{_hue(task, y)}" cx="{x:.2f}" cy="{z:.2f}" r="6"/>'
    if task == "multiclass":
        text = f'<text class="sign" x="{x:.2f}" y="{z + 3.3:.2f}" font-size="9" font-weight="700" text-anchor="middle">'
        return f"{disc}{text}{y}</text>"
    if task == "regression":
        return disc
    stroke = f"M{x - 3.5:.2f} {z:.2f}h7" + (f"M{x:.2f} {z - 3.5:.2f}v7" if y > 0 else "")
    return f'{disc}<path class="sign" d="{stroke}"/>'


def _entries(played: Play) -> list[tuple[str, str]]:
    """The legend: kind and words."""
    frame = played.frames[0]
    entries = [("ring", "the new example")]
    kinds = ["before", "after"] + (["readout"] if frame.predicting is not frame.after else [])
    entries += [(kind, played._meaning(kind, frame)) for kind in kinds]
    if played.task == "binary" or frame.tube:
        entries.append(("margin", played._meaning("margin", frame)))
    if played.task != "regression":
        scale = played.arrow_scale()
        scaled = "" if scale == 1 else f" × {show(scale)}" if scale > 1 else f" / {show(1 / scale)}"
        entries.append(("arrow", f"{'w' if played.task == 'binary' else 'w of each class'}{scaled}"))
    return entries


def _svg_legend(played: Play, width: int, top: int) -> tuple[list[str], int]:
    """The legend's parts, as many lines as it takes, and its height."""
    parts, x, y = [], GAP, top
    for kind, words in _entries(played):
        wide = 34 + round(6.8 * len(words)) + 14
        if x + wide > width and x > GAP:
            x, y = GAP, y + 20
        if kind == "ring":
            mark = f'<circle class="ring" cx="{x + 17}" cy="{y - 4}" r="7"/>'
        elif kind == "arrow":
            mark = _svg_arrow((x + 2, y - 4), (x + 28, y - 4), 0)
        else:
            mark = f'<line class="{kind}" x1="{x}" y1="{y - 4}" x2="{x + 28}" y2="{y - 4}"/>'
        parts.append(f'{mark}<text x="{x + 34}" y="{y}">{_escape(words)}</text>')
        x += wide
    return parts, y - top + 20


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


# -- matplotlib --------------------------------------------------------------------------------------------------------


def _figure(what: str, width: float, height: float, layout: str | None = "constrained") -> Any:
    """A figure without pyplot: no window system, nothing global."""
    try:
        importlib.import_module("PIL.Image")
        module = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise MissingDependencyError(
            f"Play.{what} needs matplotlib and its pillow, which are not installed: pip install onepass[plot]"
        ) from error
    return module.Figure(figsize=(width, height), layout=layout)


def _image(figure: Any, dpi: int) -> Any:
    agg, images = importlib.import_module("matplotlib.backends.backend_agg"), importlib.import_module("PIL.Image")
    figure.set_dpi(dpi)
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    picture = images.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return picture.quantize(128)


LINES = {"margin": (":", 1.3), "before": ("--", 1.5), "after": ("-", 2.0), "readout": ("-.", 2.0)}


def _ink(kind: str) -> str:
    return INK[{"after": "ink", "readout": "readout"}.get(kind, "muted")][0]


def _plot(played: Play, frame: Frame, ax: Any, large: bool = False) -> None:
    box = played.box()
    ax.set_xlim(box[0], box[2])
    ax.set_ylim(box[1], box[3])
    if played.task != "regression":
        ax.set_aspect("equal")
    for ticks, axis in ((_ticks(box[0], box[2]), ax.xaxis), (_ticks(box[1], box[3]), ax.yaxis)):
        axis.set_ticks(ticks, [show(tick) for tick in ticks], fontsize=8)
    ax.grid(True, color=INK["grid"][0], linewidth=0.8)
    ax.set_axisbelow(True)
    for region in frame.regions:
        corners = region.polygon(box)
        if corners:
            color = PALETTE[_hue(frame.task, region.label)][0]
            ax.fill(*zip(*corners, strict=True), color=color, alpha=SHADE, linewidth=0)
    for line in frame.lines:
        segment = line.segment(box)
        if segment:
            dashes, wide = LINES[line.kind]
            ax.plot(*zip(*segment, strict=True), dashes, color=_ink(line.kind), linewidth=wide)
    for hue, tip in _arrows(played, frame):
        style = {"arrowstyle": "-|>", "color": PALETTE[hue][0], "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", tip, (0, 0), arrowprops=style, annotation_clip=False)
    for example in frame.points:
        x, y = played._place(example)
        color, symbol = PALETTE[_hue(frame.task, example[1])][0], _symbol(frame.task, example[1])
        ax.plot(x, y, "o", color=color, markersize=9)
        if frame.task != "regression":
            sign = {"+": "$+$", "o": "$-$"}.get(symbol, f"${symbol}$")
            ax.plot(x, y, marker=sign, color="white", markersize=6, markeredgewidth=0.3)
    ax.plot(*played._place(frame.points[-1]), "o", color=INK["ink"][0], fillstyle="none", markersize=15)
    ax.set_title(frame.title, fontsize=11 if large else 9.5, loc="left")
    ax.set_xlabel(_caption(frame), fontsize=10 if large else 8.5, loc="left")


def _plot_legend(played: Play, figure: Any, ncols: int) -> None:
    lines = importlib.import_module("matplotlib.lines")
    handles = []
    for kind, words in _entries(played):
        if kind == "ring":
            style = {"marker": "o", "color": INK["ink"][0], "linestyle": "", "fillstyle": "none", "markersize": 10}
        elif kind == "arrow":
            style = {"color": PALETTE[0][0], "linewidth": 1.8, "marker": ">", "markevery": [1], "markersize": 6}
        else:
            style = {"color": _ink(kind), "linestyle": LINES[kind][0], "linewidth": LINES[kind][1]}
        handles.append(lines.Line2D([0, 1], [0, 0], label=words, **style))
    where = "lower center" if figure.get_layout_engine() is None else "outside lower center"
    figure.legend(handles=handles, loc=where, ncols=ncols, fontsize=9, frameon=False)
