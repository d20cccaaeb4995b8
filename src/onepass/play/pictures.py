"""All rounds in one PNG or GIF, by matplotlib."""

from __future__ import annotations

import io
import itertools
import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingDependencyError
from ..persistence import files
from .frames import Frame
from .geometry import balanced, ticks
from .style import INK, PALETTE, SHADE, arrows, caption, fitting, hue_of, legend_of
from .words import show, symbol_of

if TYPE_CHECKING:
    from .rounds import Play

LINES = {"margin": (":", 1.3), "before": ("--", 1.5), "after": ("-", 2.0), "readout": ("-.", 2.0)}


def png(played: Play, path: str, columns: int, dpi: int) -> None:
    """All rounds in one PNG, at most `columns` to a row (with matplotlib)."""
    columns = balanced(columns, len(played.frames))
    figure = new_figure("png", 3.2 * columns, 3.7 * math.ceil(len(played.frames) / columns) + 0.9)
    axes = figure.subplots(math.ceil(len(played.frames) / columns), columns, squeeze=False).ravel()
    for frame, ax in itertools.zip_longest(played.frames, axes):
        if frame is None:
            ax.set_axis_off()
        else:
            draw(played, frame, ax, inches=2.85, letters=9.5)
    figure.suptitle(played.heading, fontsize=11, fontweight="bold", x=0.01, ha="left")
    draw_legend(played, figure, ncols=columns)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=dpi, format="png")
    files.write(path, picture.getvalue())


def gif(played: Play, path: str, seconds: float, dpi: int) -> None:
    """One picture per round, `seconds` each, over and over (with matplotlib and pillow)."""
    images = []
    for frame in played.frames:
        figure = new_figure("gif", 5.0, 6.2, layout=None)
        draw(played, frame, figure.add_axes((0.5 / 5.0, 1.25 / 6.2, 4.3 / 5.0, 4.3 / 6.2)), inches=4.3, letters=11)
        figure.text(0.5 / 5.0, 6.05 / 6.2, textwrap.fill(played.heading, 72), fontsize=8, va="top")
        draw_legend(played, figure, ncols=2)
        images.append(image_of(figure, dpi))
    milliseconds = [round(1000 * seconds)] * len(images)
    milliseconds[-1] *= 3  # the last picture is shown for longer
    picture = io.BytesIO()
    images[0].save(picture, format="GIF", save_all=True, append_images=images[1:], duration=milliseconds, loop=0)
    files.write(path, picture.getvalue())


def new_figure(what: str, width: float, height: float, layout: Any = "constrained") -> Any:
    """A figure without pyplot: no window system, nothing global."""
    try:
        import PIL.Image  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            f"Play.{what} needs matplotlib and its pillow, which are not installed: pip install onepass[plot]"
        ) from error
    return Figure(figsize=(width, height), layout=layout)


def image_of(figure: Any, dpi: int) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    return picture.quantize(128)


def _ink(kind: str) -> str:
    return INK[{"after": "ink", "readout": "readout"}.get(kind, "muted")][0]


def draw(played: Play, frame: Frame, ax: Any, inches: float, letters: float) -> None:
    """One picture, so many inches wide; `letters` is the size of its title, where that fits."""
    box = played.box()
    ax.set_xlim(box[0], box[2])
    ax.set_ylim(box[1], box[3])
    if played.task != "regression":
        ax.set_aspect("equal")
    for at, axis in ((ticks(box[0], box[2]), ax.xaxis), (ticks(box[1], box[3]), ax.yaxis)):
        axis.set_ticks(at, [show(tick) for tick in at], fontsize=8)
    ax.grid(True, color=INK["grid"][0], linewidth=0.8)
    ax.set_axisbelow(True)
    for spine in ax.spines.values():
        spine.set_color(INK["edge"][0])
    ax.tick_params(color=INK["edge"][0], labelcolor=INK["muted"][0])
    for region in frame.regions:
        corners = region.polygon(box)
        if corners:
            color = PALETTE[hue_of(frame.task, region.label)][0]
            ax.fill(*zip(*corners, strict=True), color=color, alpha=SHADE, linewidth=0)
    for line in frame.lines:
        segment = line.segment(box)
        if segment:
            dashes, wide = LINES[line.kind]
            ax.plot(*zip(*segment, strict=True), dashes, color=_ink(line.kind), linewidth=wide)
    for hue, tip in arrows(played, frame):
        style = {"arrowstyle": "-|>", "color": PALETTE[hue][0], "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", tip, (0, 0), arrowprops=style, annotation_clip=False, zorder=3)
    for example in frame.points:
        x, y = played.place(example)
        color, symbol = PALETTE[hue_of(frame.task, example[1])][0], symbol_of(frame.task, example[1])
        ax.plot(x, y, "o", color=color, markersize=10, markeredgecolor=INK["page"][0], zorder=4)
        if frame.task != "regression":
            sign = {"+": "$+$", "o": "$-$"}.get(symbol, f"${symbol}$")
            ax.plot(x, y, marker=sign, color="white", markersize=6, markeredgewidth=0.3, zorder=4)
    ax.plot(*played.place(frame.points[-1]), "o", color=INK["ink"][0], fillstyle="none", markersize=15, zorder=4)
    titles, captions = [each.title for each in played.frames], [caption(each) for each in played.frames]
    ax.set_title(frame.title, fontsize=fitting(letters, 72 * inches, titles), loc="left", color=INK["ink"][0])
    ax.set_xlabel(
        caption(frame), fontsize=fitting(letters - 1, 72 * inches, captions), loc="left", color=INK["muted"][0]
    )


def draw_legend(played: Play, figure: Any, ncols: int) -> None:
    from matplotlib.lines import Line2D

    handles = []
    style: dict[str, Any]
    for kind, words in legend_of(played):
        if kind == "ring":
            style = {"marker": "o", "color": INK["ink"][0], "linestyle": "", "fillstyle": "none", "markersize": 10}
        elif kind == "arrow":
            style = {"color": PALETTE[0][0], "linewidth": 1.8, "marker": ">", "markevery": [1], "markersize": 6}
        else:
            style = {"color": _ink(kind), "linestyle": LINES[kind][0], "linewidth": LINES[kind][1]}
        handles.append(Line2D([0, 1], [0, 0], label=words, **style))
    where = "lower center" if figure.get_layout_engine() is None else "outside lower center"
    figure.legend(handles=handles, loc=where, ncols=ncols, fontsize=9, frameon=False)
