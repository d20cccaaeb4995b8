"""Colours, captions and arrows that all pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .frames import Frame
from .geometry import Point
from .words import show, written

if TYPE_CHECKING:
    from .rounds import Play

# Okabe and Ito's colours, which colour-blind people can distinguish; the second of each pair is for dark pages.
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


def hue_of(task: str, y: Any) -> int:
    if task == "multiclass":
        return int(y) % len(PALETTE)
    return 0 if task == "regression" or y > 0 else 1


def meaning(played: Play, kind: str, frame: Frame) -> str:
    """The meaning of a line in the picture."""
    what = "line" if played.task == "regression" else "boundary"
    margin = f"{show(frame.tube)} from the line" if played.task == "regression" else "s = +1 and s = -1"
    return {
        "after": f"{what} after the round",
        "before": f"{what} before",
        "readout": f"{what} of the {played.readout.name} w",
        "margin": margin,
    }[kind]


def caption(frame: Frame) -> str:
    """The score before and the weights after, short enough to stand under a picture."""
    if frame.task == "multiclass":
        return f"y = {frame.y}, scores {show(frame.score, 3)}"
    return f"s = {show(frame.score, 3)}, then w = {written(frame.after.rows()[0], 3)}"


def fitting(size: float, width: float, texts: Sequence[str]) -> float:
    """The font size, smaller where a text would be wider than `width`; a letter is 0.56 of its size on average."""
    return min(size, width / (0.56 * max(map(len, texts))))


def arrows(played: Play, frame: Frame) -> list[tuple[int, Point]]:
    """Colour and tip of each arrow from the origin."""
    if frame.task == "regression":
        return []
    scale = played.arrow_scale()
    rows = np.atleast_2d(frame.after.w)
    return [(i % len(PALETTE), (scale * float(w[0]), scale * float(w[1]))) for i, w in enumerate(rows) if np.any(w)]


def legend_of(played: Play) -> list[tuple[str, str]]:
    """The legend: kind and words."""
    frame = played.frames[0]
    entries = [("ring", "the new example")]
    kinds = ["before", "after"] + (["readout"] if frame.predicting is not frame.after else [])
    entries += [(kind, meaning(played, kind, frame)) for kind in kinds]
    if played.task == "binary" or frame.tube:
        entries.append(("margin", meaning(played, "margin", frame)))
    if played.task != "regression":
        scale = played.arrow_scale()
        scaled = "" if scale == 1 else f" × {show(scale)}" if scale > 1 else f" / {show(1 / scale)}"
        entries.append(("arrow", f"{'w' if played.task == 'binary' else 'w of each class'}{scaled}"))
    return entries
