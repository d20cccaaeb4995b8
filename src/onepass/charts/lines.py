"""Line charts and calibration diagrams as inline SVG: no scripts, colours from CSS, values under the pointer.

The colours are custom properties (`--ink`, `--series-1`, …) that `STYLE` sets for light and dark, so one picture serves
both, on screen and on paper.
"""

from __future__ import annotations

import collections
import dataclasses
import html
import math
import re
from collections.abc import Callable, Sequence

__all__ = ["STYLE", "Line", "calibration_chart", "line_chart", "plain_style"]

WIDE, NARROW, HEIGHT = 920, 450, 280  # one unit is one pixel, so that all text has the same size
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 44
POSITIONS = 160  # the most positions with values under the pointer, and the most points of a line
SERIES = 8
MANY, SHORT = 20, 9  # more marks than that are short lines of so many pixels
LETTER = 7.2  # pixels of a letter, about

_LIGHT = """--ink: #1c2024; --muted: #60646c; --grid: #e4e6ea; --surface: #ffffff; --raised: #f6f7f9; --mark: #9a4a00;
 --series-1: #1f62c9; --series-2: #c2500e; --series-3: #12805c; --series-4: #8a3ffc; --series-5: #c4206e;
 --series-6: #6b6f00; --series-7: #00788a; --series-8: #5b6472;"""
_DARK = """--ink: #eceef1; --muted: #a2a8b3; --grid: #33383f; --surface: #15181c; --raised: #1e2227; --mark: #ffb36b;
 --series-1: #6ea8ff; --series-2: #ff9a5c; --series-3: #4fd1a1; --series-4: #be95ff; --series-5: #ff7eb6;
 --series-6: #d2d64b; --series-7: #4cd4e8; --series-8: #b4bcc8;"""
_DRAWING = """
.onepass svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; }
.onepass svg text { fill: var(--muted); }
.onepass .grid { stroke: var(--grid); stroke-width: 1; }
.onepass .axis { stroke: var(--muted); stroke-width: 1; }
.onepass .line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.onepass .thin { stroke-width: 1.5; stroke-dasharray: 5 3; }
.onepass .mark { stroke: var(--mark); stroke-width: 1.5; stroke-dasharray: 2 3; }
.onepass svg text.marked { fill: var(--mark); }
.onepass .at { fill: transparent; }
.onepass .here { opacity: 0; pointer-events: none; }
.onepass .place:hover .here { opacity: 1; }
.onepass .cursor { stroke: var(--muted); stroke-width: 1; }
.onepass .said { paint-order: stroke; stroke: var(--surface); stroke-width: 4px; stroke-linejoin: round; }
.onepass svg text.said { fill: var(--ink); }
"""
STYLE = (
    ".onepass { "
    + _LIGHT
    + " color-scheme: light dark; color: var(--ink); }\n@media screen and (prefers-color-scheme: dark) { .onepass { "
    + _DARK
    + " } }\n"
    + _DRAWING
    + "".join(
        f".onepass .s{i} {{ stroke: var(--series-{i}); }} .onepass .f{i} {{ fill: var(--series-{i}); }}\n"
        for i in range(1, SERIES + 1)
    )
    + ".onepass .many { stroke-dasharray: none; }\n"
    + ".onepass svg text.marked { paint-order: stroke; stroke: var(--surface); stroke-width: 3px; }\n"
)


def plain_style() -> str:
    """The same without CSS variables, which few viewers of SVG files know: light, or dark if preferred."""
    rules = _DRAWING.replace(".onepass svg ", ".onepass ").replace("}", "}\n")
    rules += ".onepass .name { fill: var(--ink); font: 13px system-ui, sans-serif; } .back { fill: var(--surface); }"
    for i in range(1, SERIES + 1):
        rules += f".onepass .s{i} {{ stroke: var(--series-{i}); }} .onepass .f{i} {{ fill: var(--series-{i}); }}\n"
    return f"{_coloured(rules, _LIGHT)}@media (prefers-color-scheme: dark) {{ {_coloured(rules, _DARK)} }}"


def _coloured(rules: str, definitions: str) -> str:
    colours = dict(re.findall(r"(--[\w-]+): (#\w+)", definitions))
    return re.sub(r"var\((--[\w-]+)\)", lambda match: colours[match.group(1)], rules)


@dataclasses.dataclass
class Line:
    """A curve. NaN leaves a gap. `colour` counts from 1; a thin one is dashed."""

    name: str
    t: Sequence[float]
    values: Sequence[float]
    colour: int = 1
    thin: bool = False


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    across: str = "examples",
    show: Callable[[float], str] = lambda value: f"{value:.4g}",
    marks: Sequence[tuple[float, str]] = (),
    width: int = WIDE,
) -> str:
    """Curves over t. `show` writes a value; `marks` are (t, text), drawn as dotted lines."""
    edge = width - RIGHT
    lines = [_thinned(line) for line in lines]
    finite = [value for line in lines for value in line.values if math.isfinite(value)]
    places = sorted({t for line in lines for t in line.t})
    if not finite or not places:
        return f'<p class="none">{html.escape(title)}: nothing to draw yet</p>'
    ticks = nice_ticks(min(finite), max(finite))
    low, high = min(ticks[0], min(finite)), max(ticks[-1], max(finite))
    start, stop = (0.0, places[-1]) if places[0] > 0 else (places[0], max(places[-1], places[0] + 1))

    def x(t: float) -> float:
        return LEFT + (edge - LEFT) * (t - start) / (stop - start)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    out = [_opening(width, HEIGHT, title)]
    out += _grid(ticks, y, edge, show)
    out += _axis(nice_ticks(start, stop, 6 if width > NARROW else 4), x, (start, stop), edge, across)
    out += _marks(marks, x, start, stop, edge)
    for line in lines:
        for path in _paths(line, x, y):
            out.append(f'<path class="line s{line.colour}{" thin" if line.thin else ""}" d="{path}"/>')
    out += _places(lines, places, x, y, across, show, edge)
    return legend(lines) + "".join(out) + "</svg>"


def legend(lines: Sequence[Line]) -> str:
    """The names of the curves beside their colours; nothing for a single one without a name."""
    if not any(line.name for line in lines):
        return ""
    keys = (
        f'<span class="key"><svg viewBox="0 0 22 8" aria-hidden="true"><path class="line s{line.colour}'
        f'{" thin" if line.thin else ""}" d="M1 4H21"/></svg>{html.escape(line.name)}</span>'
        for line in lines
    )
    return f'<div class="legend">{"".join(keys)}</div>'


def calibration_chart(
    predicted: Sequence[float], observed: Sequence[float], weight: Sequence[float], *, title: str, across: str
) -> str:
    """Observed frequency against predicted probability; the larger the dot, the more examples."""
    size, left, bottom, top = 320, 50, 44, 12

    def x(p: float) -> float:
        return left + (size - left - 12) * p

    def y(p: float) -> float:
        return size - bottom - (size - bottom - top) * p

    out = [_opening(size, size, title)]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        out.append(f'<line class="grid" x1="{x(0)}" x2="{x(1)}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        out.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
        anchor = "end" if tick == 1 else "middle"
        out.append(f'<text x="{x(tick):.1f}" y="{size - bottom + 17}" text-anchor="{anchor}">{tick:.0%}</text>')
    out.append(f'<line class="axis thin" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>')
    points = list(zip(predicted, observed, weight, strict=True))
    path = " ".join(f"{'M' if i == 0 else 'L'}{x(p):.1f} {y(o):.1f}" for i, (p, o, _) in enumerate(points))
    out.append(f'<path class="line s1" d="{path}"/>')
    largest = max(weight, default=1.0)
    for p, o, w in points:
        radius = 2.5 + 5.5 * math.sqrt(w / largest)
        hint = html.escape(f"predicted {p:.1%}, observed {o:.1%} ({w:,.0f} examples)")
        out.append(
            f'<circle class="f1" cx="{x(p):.1f}" cy="{y(o):.1f}" r="{radius:.1f}"><title>{hint}</title></circle>'
        )
    out.append(f'<text x="{x(0.5):.0f}" y="{size - 8}" text-anchor="middle">{html.escape(across)}</text>')
    return "".join(out) + "</svg>"


def _opening(width: float, height: float, title: str) -> str:
    name = html.escape(title, quote=True)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{name}" xmlns="http://www.w3.org/2000/svg">'


def _grid(ticks: Sequence[float], y: Callable[[float], float], edge: float, show: Callable[[float], str]) -> list[str]:
    """A line across the picture for each value, with the value on its left."""
    out = []
    for tick in ticks:
        out.append(f'<line class="grid" x1="{LEFT}" x2="{edge}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        out.append(
            f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{html.escape(_short(show, tick))}</text>'
        )
    return out


def _axis(
    ticks: Sequence[float], x: Callable[[float], float], ends: tuple[float, float], edge: float, across: str
) -> list[str]:
    """The axis of t at the bottom: its line, its numbers, its name."""
    floor = HEIGHT - BOTTOM
    out = [f'<line class="axis" x1="{LEFT}" x2="{edge}" y1="{floor}" y2="{floor}"/>']
    for tick in ticks:
        if ends[0] <= tick <= ends[1]:
            anchor = "end" if x(tick) > edge - 16 else "middle"
            out.append(f'<text x="{x(tick):.1f}" y="{floor + 17}" text-anchor="{anchor}">{compact(tick)}</text>')
    middle = (LEFT + edge) / 2
    out.append(f'<text x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(across)}</text>')
    return out


def _marks(
    marks: Sequence[tuple[float, str]], x: Callable[[float], float], start: float, stop: float, edge: float
) -> list[str]:
    """Dotted lines with their labels, unless these would overlap. Many marks become short lines on the axis, and each
    text appears once with its count."""
    shown = sorted((t, text) for t, text in marks if start <= t <= stop)
    many, floor = len(shown) > MANY, HEIGHT - BOTTOM
    out, free = [], -math.inf  # `free` is the end of the labels drawn so far
    for t, text in shown:
        at = x(t)
        out.append(
            f'<line class="mark{" many" if many else ""}" x1="{at:.1f}" x2="{at:.1f}"'
            f' y1="{floor - SHORT if many else TOP}" y2="{floor}"/>'
        )
        end = at > edge - 100  # the label would end outside the picture
        left = at - 5 - LETTER * len(text) if end else at + 5
        if not many and left > free:
            out.append(_marked(at + (-5 if end else 5), text, end))
            free = left + LETTER * len(text)
    if many:
        counted = collections.Counter(text for _, text in shown)
        out.append(_marked(edge - 4, ", ".join(f"{text} × {count}" for text, count in counted.most_common(3)), True))
    return out


def _marked(x: float, text: str, end: bool) -> str:
    anchor = "end" if end else "start"
    return f'<text class="marked" x="{x:.1f}" y="{TOP + 10}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _places(
    lines: Sequence[Line],
    places: Sequence[float],
    x: Callable[[float], float],
    y: Callable[[float], float],
    across: str,
    show: Callable[[float], str],
    edge: float,
) -> list[str]:
    """For every t, a strip that shows a line, dots and the values when the pointer is over it."""
    out = []
    table = [dict(zip(line.t, line.values, strict=True)) for line in lines]
    for i, t in enumerate(places):
        left = LEFT if i == 0 else (x(places[i - 1]) + x(t)) / 2
        right = edge if i == len(places) - 1 else (x(t) + x(places[i + 1])) / 2
        known = [(line, at[t]) for line, at in zip(lines, table, strict=True) if math.isfinite(at.get(t, math.nan))]
        dots = "".join(f'<circle class="f{line.colour}" cx="{x(t):.1f}" cy="{y(v):.1f}" r="4"/>' for line, v in known)
        words = [f"{t:,.0f} {across}", *(f"{line.name} {show(v)}".strip() for line, v in known)]
        flip = x(t) > (LEFT + edge) / 2
        values = "".join(
            f'<text class="said" x="{x(t) + (-9 if flip else 9):.1f}" y="{TOP + 28 + 15 * row}"'
            f' text-anchor="{"end" if flip else "start"}">{html.escape(word)}</text>'
            for row, word in enumerate(words)
        )
        out.append(
            f'<g class="place"><rect class="at" x="{left:.1f}" y="{TOP}" width="{max(right - left, 0.1):.1f}"'
            f' height="{HEIGHT - TOP - BOTTOM}"/><g class="here"><line class="cursor" x1="{x(t):.1f}" x2="{x(t):.1f}"'
            f' y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>{dots}{values}</g></g>'
        )
    return out


def _paths(line: Line, x: Callable[[float], float], y: Callable[[float], float]) -> list[str]:
    """The curve, interrupted where a value is missing; a single value is a dot."""
    paths, current = [], []
    for t, value in [*zip(line.t, line.values, strict=True), (0.0, math.nan)]:
        if math.isfinite(value):
            current.append(f"{x(t):.1f} {y(value):.1f}")
        elif current:
            paths.append("M" + "L".join(current if len(current) > 1 else current * 2))
            current = []
    return paths


def _thinned(line: Line) -> Line:
    """At most POSITIONS points, evenly spread, the last among them."""
    n = len(line.t)
    if n <= POSITIONS:
        return line
    keep = sorted({(n * (i + 1)) // POSITIONS - 1 for i in range(POSITIONS)})
    return dataclasses.replace(line, t=[line.t[i] for i in keep], values=[line.values[i] for i in keep])


def nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """About `wanted` round numbers that cover low..high; the scale begins at 0 where that wastes little space."""
    if low > 0 and low < 0.4 * high:
        low = 0.0
    if high <= low:
        spread = abs(low) * 0.1 or 1.0
        low, high = low - spread, high + spread
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * nice for nice in (1.0, 2.0, 2.5, 5.0, 10.0) if power * nice >= raw * (1 - 1e-9))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def compact(value: float) -> str:
    """1500 as 1.5k, 2000000 as 2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _short(show: Callable[[float], str], value: float) -> str:
    """A tick in the format of the values, without trailing zeros."""
    text = show(value)
    number, sign = text.removesuffix("%"), "%" if text.endswith("%") else ""
    return (number.rstrip("0").rstrip(".") if "." in number else number) + sign
