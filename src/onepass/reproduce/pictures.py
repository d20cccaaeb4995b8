"""Pictures of experiments as SVG files: panels of curves or of dots, for light and dark pages."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Callable, Sequence

from ..charts.lines import Line, compact, nice_ticks, plain_style

__all__ = ["Dot", "Panel", "curves", "dots", "picture"]

LEFT, RIGHT, TOP, BOTTOM = 56, 24, 34, 40
ROW = 22  # pixels of a row of dots
LETTER = 7.2  # pixels of a letter, about


@dataclasses.dataclass
class Panel:
    body: str
    width: float
    height: float


@dataclasses.dataclass
class Dot:
    """A value in a row, with its deviation as a bar; a hollow one is a published value."""

    row: str
    value: float
    sd: float | None = None
    colour: int = 1
    hollow: bool = False


def curves(
    lines: Sequence[Line],
    *,
    title: str,
    across: str,
    width: int = 430,
    height: int = 300,
    show: Callable[[float], str] = lambda value: f"{value:g}",
    log: bool = False,
    floor: float | None = None,
) -> Panel:
    """Curves over t. `log`: t doubles from tick to tick. `floor`: the least value drawn."""
    values = [v for line in lines for v in line.values if math.isfinite(v)]
    places = sorted({t for line in lines for t in line.t})
    if not values:
        return Panel(_heading(title, LEFT) + _text(LEFT, TOP + 20, "nothing to draw"), width, height)
    ticks = nice_ticks(min(values) if floor is None else max(min(values), floor), max(values))
    low, high = ticks[0], ticks[-1]
    scale = math.log2 if log else float
    start, stop = scale(places[0]), max(scale(places[-1]), scale(places[0]) + 1e-9)
    bottom = height - BOTTOM

    def x(t: float) -> float:
        return LEFT + (width - LEFT - RIGHT) * (scale(t) - start) / (stop - start)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * (max(value, low) - low) / (high - low)

    out = [_heading(title, LEFT)]
    for tick in ticks:
        out.append(_line("grid", LEFT, width - RIGHT, y(tick), y(tick)))
        out.append(_text(LEFT - 8, y(tick) + 4, show(tick), "end"))
    out.append(_line("axis", LEFT, width - RIGHT, bottom, bottom))
    for tick in places if log else _within(nice_ticks(start, stop, 5), start, stop):
        out.append(_text(x(tick), bottom + 17, compact(tick), "middle"))
    out.append(_text((LEFT + width - RIGHT) / 2, height - 6, across, "middle"))
    for line in lines:
        points = zip(line.t, line.values, strict=True)
        out += _curve(line, [(x(t), y(v)) for t, v in points if math.isfinite(v)])
    return Panel("".join(out), width, height)


def _within(ticks: Sequence[float], start: float, stop: float) -> list[float]:
    return [tick for tick in ticks if start <= tick <= stop]


def _curve(line: Line, points: Sequence[tuple[float, float]]) -> list[str]:
    """A path through the points; few of them are drawn as dots too."""
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    dashed = " thin" if line.thin else ""
    out = [f'<path class="line s{line.colour}{dashed}" d="M{path}"/>']
    if len(points) <= 12:
        out += [f'<circle class="f{line.colour}" cx="{a:.1f}" cy="{b:.1f}" r="2.8"/>' for a, b in points]
    return out


def dots(
    rows: Sequence[str], points: Sequence[Dot], *, title: str, across: str, names: bool = True, width: int = 300
) -> Panel:
    """A row for each name, its values as dots; `names`: written at the left."""
    left = 12 + (LETTER * max(map(len, rows)) if names else 0)
    bottom = TOP + ROW * len(rows)
    height = bottom + BOTTOM
    points = [point for point in points if math.isfinite(point.value)]
    if not points:
        return Panel(_heading(title, left) + _text(left, TOP + 20, "nothing to draw"), width, height)
    spans = [(p.value - (p.sd or 0), p.value + (p.sd or 0)) for p in points]
    ticks = nice_ticks(min(a for a, _ in spans), max(b for _, b in spans), 4)

    def x(value: float) -> float:
        return left + (width - left - RIGHT) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    out = [_heading(title, left)]
    for tick in ticks:
        out.append(_line("grid", x(tick), x(tick), TOP, bottom))
        out.append(_text(x(tick), bottom + 16, f"{tick:g}", "middle"))
    out.append(_text((left + width - RIGHT) / 2, height - 8, across, "middle"))
    for i, row in enumerate(rows):
        if names:
            out.append(_text(left - 8, TOP + ROW * (i + 0.5) + 4, row, "end"))
        out += _row_of_dots([point for point in points if point.row == row], i, x)
    return Panel("".join(out), width, height)


def _row_of_dots(points: Sequence[Dot], row: int, x: Callable[[float], float]) -> list[str]:
    """The dots of a row, each colour at its own height, with their deviations as bars."""
    out = []
    colours = sorted({point.colour for point in points})
    for point in points:
        at = TOP + ROW * (row + (colours.index(point.colour) + 1) / (len(colours) + 1))
        if point.sd:
            ends = x(point.value - point.sd), x(point.value + point.sd)
            bar = f"M{ends[0]:.1f} {at:.1f}H{ends[1]:.1f}"
            out.append(f'<path class="line s{point.colour}" style="stroke-width:1" d="{bar}"/>')
        out.append(_disc(x(point.value), at, point.colour, point.hollow))
    return out


def picture(panels: Sequence[Panel], keys: Sequence[Line | Dot], *, title: str, columns: int) -> str:
    """The panels in rows, `columns` of them each, under a title and the names of the colours."""
    lines = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    width = max(sum(panel.width for panel in line) for line in lines) if lines else 400.0
    legend, head = _legend(keys, width, 44)
    height = head + sum(max(panel.height for panel in line) for line in lines)
    out, y = [], head
    for line in lines:
        x = 0.0
        for panel in line:
            out.append(f'<g transform="translate({x:.0f} {y:.0f})">{panel.body}</g>')
            x += panel.width
        y += max(panel.height for panel in line)
    name = html.escape(title, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="onepass" viewBox="0 0 {width:.0f} {height:.0f}" role="img"'
        f' width="{width:.0f}" height="{height:.0f}" aria-label="{name}" style="font: 12px system-ui, sans-serif">'
        f'<style>{plain_style()}</style><rect class="back" width="{width:.0f}" height="{height:.0f}"/>'
        f'<text class="name" x="12" y="20">{html.escape(title)}</text>{legend}{"".join(out)}</svg>\n'
    )


def _legend(keys: Sequence[Line | Dot], width: float, y: float) -> tuple[str, float]:
    """The names of the colours, in as many lines as they take, and where they end."""
    out, x = [], 12.0
    for key in keys:
        name = key.name if isinstance(key, Line) else key.row
        size = 30 + LETTER * len(name) + 14
        if x > 12 and x + size > width:
            x, y = 12.0, y + 18
        if isinstance(key, Line):
            thin = " thin" if key.thin else ""
            out.append(f'<path class="line s{key.colour}{thin}" d="M{x:.0f} {y - 4:.0f}h22"/>')
        else:
            out.append(_disc(x + 11, y - 4, key.colour, key.hollow))
        out.append(_text(x + 28, y, name))
        x += size
    return "".join(out), y + 12


def _disc(x: float, y: float, colour: int, hollow: bool) -> str:
    if hollow:
        return f'<circle class="line s{colour}" style="stroke-width:1.4" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>'
    return f'<circle class="f{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.4"/>'


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _heading(title: str, x: float) -> str:
    return f'<text class="name" x="{x:.1f}" y="{TOP - 12}">{html.escape(title)}</text>'
