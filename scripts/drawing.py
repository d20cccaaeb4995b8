"""Helpers of the drawing scripts: pictures in the same style, readable on light and on dark pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

CLASSES = ("#2a78b5", "#e08214")
INK = "#1b1f24"
MOST = 400  # examples in a panel
# The colours for dark pages: matplotlib writes colours as styles, which a style sheet can override.
DARK = """@media (prefers-color-scheme: dark) {
  [style*="fill: #ffffff"] { fill: #14171c !important }
  [style*="fill: #1b1f24"] { fill: #e6e8eb !important }
  [style*="stroke: #1b1f24"] { stroke: #e6e8eb !important }
  use[style*="stroke: #1b1f24"] { stroke: #e6e8eb !important }
}"""


def panels(count: int) -> tuple[Any, Any]:
    """A row of square panels."""
    colours = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    matplotlib.rcParams |= {"svg.hashsalt": "onepass", "font.size": 8, **dict.fromkeys(colours, INK)}
    return pyplot.subplots(1, count, figsize=(3 * count, 3), constrained_layout=True)


def boundary(axis: Any, score: Any, X: Any, positive: Any, support: Any, title: str) -> None:
    """Examples, f = 0 (and ±1, dashed), the support vectors ringed."""
    side = np.linspace(0, 1, 70)
    low, high = X.min(axis=0), X.max(axis=0)
    edge = 0.05 * (high - low)
    a, b = np.meshgrid(*(low[i] - edge[i] + side * (high[i] - low[i] + 2 * edge[i]) for i in (0, 1)))
    f = score(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    axis.contour(a, b, f, levels=[-1, 0, 1], colors=INK, linestyles=["dashed", "solid", "dashed"], linewidths=0.8)
    shown = slice(None, None, max(1, len(X) // MOST))
    axis.scatter(*X[shown].T, c=np.where(positive[shown], CLASSES[1], CLASSES[0]), s=5, linewidths=0)
    axis.scatter(*support.T, s=32, facecolors="none", edgecolors=INK, linewidths=0.6)
    axis.set_title(title)
    axis.set_xticks([])
    axis.set_yticks([])


def over_time(axis: Any, title: str) -> None:
    axis.set_title(title)
    axis.set_xlabel("examples seen")
    axis.legend(frameon=False)


def save(picture: Any, path: Path) -> None:
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)
    text = re.sub(r"(\d\d\.\d\d)\d+", r"\1", path.read_text(encoding="utf-8"))  # hundredths of a point are enough
    path.write_text(text.replace("</style>", f"\n{DARK}</style>", 1), encoding="utf-8")
