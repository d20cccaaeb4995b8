"""All rounds in one SVG, for light and dark pages."""

from __future__ import annotations

import html
import math
import textwrap
import zlib
from typing import TYPE_CHECKING, Any

from .frames import Frame
from .geometry import Box, Point, balanced, ticks
from .style import INK, PALETTE, SHADE, arrows, caption, fitting, hue_of, legend_of
from .words import show

if TYPE_CHECKING:
    from .rounds import Play

PANEL = 260  # pixels on a side
LEFT, TOP, BELOW, GAP = 34, 26, 40, 14  # room for tick labels, title, numbers; between panels


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
        f".onepass-play .sign,.onepass-play .disc{{stroke:{ink['page']}}}",
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
.onepass-play .sign{stroke-width:1.8}
.onepass-play .disc{stroke-width:1.2}"""


def strip(played: Play, columns: int) -> str:
    frames = played.frames
    columns = balanced(columns, len(frames))
    box, wide = played.box(), LEFT + PANEL + GAP
    titles = textwrap.wrap(played.heading, columns * wide // 9)
    legend, legend_height = _legend(played, columns * wide, 24 + 20 * len(titles))
    high, head = TOP + PANEL + BELOW, 14 + 20 * len(titles) + legend_height
    width, height = columns * wide + GAP, head + math.ceil(len(frames) / columns) * high + 4
    clip = f"panel{zlib.crc32(played.heading.encode()):08x}"
    sizes = (
        fitting(12, PANEL, [frame.title for frame in frames]),
        fitting(11, PANEL, [caption(frame) for frame in frames]),
    )
    body = []
    for i, frame in enumerate(frames):
        x, y = LEFT + GAP // 2 + i % columns * wide, head + TOP + i // columns * high
        body.append(_round(played, frame, box, clip, sizes, x, y))
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


def _round(played: Play, frame: Frame, box: Box, clip: str, sizes: tuple[float, float], x: int, y: int) -> str:
    """One picture; `sizes` are those of the letters of its title and its caption."""

    def at(point: Point) -> Point:
        across, up = (point[0] - box[0]) / (box[2] - box[0]), (point[1] - box[1]) / (box[3] - box[1])
        return across * PANEL, (1 - up) * PANEL

    grid, labels = [], []
    for tick in ticks(box[0], box[2]):
        along = at((tick, box[1]))[0]
        kind = "grid" if tick else "axis"
        grid.append(f'<line class="{kind}" x1="{along:.2f}" y1="0" x2="{along:.2f}" y2="{PANEL}"/>')
        labels.append(f'<text class="small" x="{along:.2f}" y="{PANEL + 13}" text-anchor="middle">{show(tick)}</text>')
    for tick in ticks(box[1], box[3]):
        along = at((box[0], tick))[1]
        kind = "grid" if tick else "axis"
        grid.append(f'<line class="{kind}" x1="0" y1="{along:.2f}" x2="{PANEL}" y2="{along:.2f}"/>')
        labels.append(f'<text class="small" x="-5" y="{along + 3.5:.2f}" text-anchor="end">{show(tick)}</text>')
    inside = []
    for region in frame.regions:
        corners = " ".join(f"{px:.2f},{py:.2f}" for px, py in map(at, region.polygon(box)))
        if corners:
            fill = f"fill{hue_of(frame.task, region.label)}"
            inside.append(f'<polygon class="region {fill}" fill-opacity="{SHADE}" points="{corners}"/>')
    inside += grid
    for line in frame.lines:
        segment = line.segment(box)
        if segment:
            (x1, y1), (x2, y2) = map(at, segment)
            where = f'x1="{x1:.4f}" y1="{y1:.4f}" x2="{x2:.4f}" y2="{y2:.4f}"'
            inside.append(f'<line class="{line.kind}" {where}/>')
    inside += [_arrow(at((0, 0)), at(tip), hue) for hue, tip in arrows(played, frame)]
    inside += [_point(frame.task, at(played.place(example)), example[1]) for example in frame.points]
    px, py = at(played.place(frame.points[-1]))
    inside.append(f'<circle class="ring" cx="{px:.2f}" cy="{py:.2f}" r="10"/>')
    start, _, rest = frame.title.partition(", ")
    return "\n".join(
        [
            f'<g class="round" transform="translate({x},{y})">',
            f"<title>{_escape(' | '.join([frame.title, *frame.arithmetic()]))}</title>",
            f'<text x="0" y="-8" font-size="{sizes[0]:.3g}">'
            f'<tspan font-weight="600">{_escape(start)}</tspan>, {_escape(rest)}</text>',
            f'<g clip-path="url(#{clip})">',
            *inside,
            "</g>",
            f'<rect class="edge" width="{PANEL}" height="{PANEL}"/>',
            f'<g font-size="10">{"".join(labels)}</g>',
            f'<text class="small" x="0" y="{PANEL + 29}" font-size="{sizes[1]:.3g}">{_escape(caption(frame))}</text>',
            "</g>",
        ]
    )


def _arrow(start: Point, tip: Point, hue: int) -> str:
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


def _point(task: str, at: Point, y: Any) -> str:
    x, z = at
    disc = f'<circle class="disc fill{hue_of(task, y)}" cx="{x:.2f}" cy="{z:.2f}" r="6.6"/>'
    if task == "multiclass":
        text = f'<text class="sign" x="{x:.2f}" y="{z + 3.3:.2f}" font-size="9" font-weight="700" text-anchor="middle">'
        return f"{disc}{text}{y}</text>"
    if task == "regression":
        return disc
    stroke = f"M{x - 3.5:.2f} {z:.2f}h7" + (f"M{x:.2f} {z - 3.5:.2f}v7" if y > 0 else "")
    return f'{disc}<path class="sign" d="{stroke}"/>'


def _legend(played: Play, width: int, top: int) -> tuple[list[str], int]:
    """The legend's parts, as many lines as it takes, and its height."""
    parts, x, y = [], GAP, top
    for kind, words in legend_of(played):
        wide = 34 + round(6.8 * len(words)) + 14
        if x + wide > width and x > GAP:
            x, y = GAP, y + 20
        if kind == "ring":
            mark = f'<circle class="ring" cx="{x + 17}" cy="{y - 4}" r="7"/>'
        elif kind == "arrow":
            mark = _arrow((x + 2, y - 4), (x + 28, y - 4), 0)
        else:
            mark = f'<line class="{kind}" x1="{x}" y1="{y - 4}" x2="{x + 28}" y2="{y - 4}"/>'
        parts.append(f'{mark}<text x="{x + 34}" y="{y}">{_escape(words)}</text>')
        x += wide
    return parts, y - top + 20


def _escape(text: str) -> str:
    return html.escape(text, quote=False)
