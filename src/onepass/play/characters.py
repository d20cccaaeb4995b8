"""A round drawn with characters, in a terminal."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from .frames import Frame
from .geometry import Box, Line, Point
from .style import meaning
from .words import count, plain, show, symbol_of

if TYPE_CHECKING:
    from .rounds import Play

COLUMNS = 80
CANVAS = (44, 15)  # columns and rows inside the border; a character is twice as high as wide

# Braille patterns hold two columns of four dots: bit of the dot at (column, row).
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
# Which dots along a line are set, as (number, out of), and the letter that is used without Braille.
DASHES = {"margin": (1, 5, "."), "before": (3, 7, ":"), "after": (1, 1, "#"), "readout": (6, 8, "%")}
# ANSI colours; the empty one is the terminal's own.
COLORS = {"margin": "2", "before": "2", "after": "1", "readout": "35", "+": "34;1", "o": "33;1"}
CLASS_COLORS = ("34;1", "33;1", "32;1", "35;1", "36;1", "31;1")


def draw(played: Play, frame: Frame, ascii: bool, color: bool) -> str:
    """One round: its picture, the legend to the right of it, and its arithmetic below."""
    canvas = Canvas(played.box(CANVAS[0] / (2 * CANVAS[1])), ascii)
    for line in frame.lines:
        canvas.line(line)
    canvas.origin()
    for example in frame.points:
        canvas.point(played.place(example), symbol_of(played.task, example[1]), new=example is frame.points[-1])
    rows = canvas.framed(color)
    legend = _legend(played, frame, canvas, ascii)
    lines = [frame.title]
    for i, row in enumerate(rows):
        lines.append(f"{row}  {legend[i][: COLUMNS - CANVAS[0] - 4]}".rstrip() if i < len(legend) else row)
    for words in frame.arithmetic(ascii):
        lines += textwrap.wrap(words, COLUMNS - 1, initial_indent=" ", subsequent_indent="    ")
    return "\n".join(lines)


def _legend(played: Play, frame: Frame, canvas: Canvas, ascii: bool) -> list[str]:
    left, bottom, right, top = (show(side, 2) for side in canvas.box)
    axes = ("x", "y") if played.task == "regression" else ("x1", "x2")
    marks = {
        "binary": ["+    positive", "o    negative"],
        "multiclass": ["0, 1 … the classes"],
        "regression": ["o    an example"],
    }[played.task]
    names = ["readout"] if frame.predicting is not frame.after else []
    if played.task != "multiclass":
        names.append("margin")
    legend = [*marks, f"({symbol_of(played.task, frame.y)})  the new one"]
    for kind in ("after", "before", *names):
        legend.append(f"{canvas.sample(kind)} {meaning(played, kind, frame)}")
    past = played.frames[: frame.t]
    legend += [
        "",
        f"{axes[0]} from {left} to {right}",
        f"{axes[1]} from {bottom} to {top}",
        "",
        f"so far: loss {show(sum(each.loss for each in past), 4)}",
        f"  {count(sum(each.step.add != 0 for each in past), 'update')}",
    ]
    if played.task != "regression":
        legend.append(f"  {count(sum(each.verdict == 'mistake' for each in past), 'mistake')}")
    return [plain(line) for line in legend] if ascii else legend


class Canvas:
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
