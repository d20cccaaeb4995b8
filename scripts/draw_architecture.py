"""The two pictures of docs/architecture.md: the rooms as layers, and the way of a row to a weight.

    python scripts/draw_architecture.py

The layers are those of the import contract in pyproject.toml, so that picture and check cannot differ.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STYLE = """<style>
  text { font: 13px system-ui, sans-serif; fill: #1b1f24 } .small { font-size: 11px; fill: #57606a }
  rect { fill: #eef4fa; stroke: #2a78b5; stroke-width: 1 } .native { fill: #fdf1e2; stroke: #e08214 }
  path { stroke: #57606a; fill: none; stroke-width: 1.4; marker-end: url(#tip) }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e8eb } .small { fill: #9aa4af } path { stroke: #9aa4af }
    rect { fill: #16293b } .native { fill: #3a2a14 }
  }
</style>
<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">
  <path d="M1,1 L7,4 L1,7" style="marker-end: none" /></marker></defs>"""
STEPS = [
    ("Block", "1.5,red,spam", "streams/blocks.py: whole lines of a file", False),
    ("Chunk", "sparse rows, labels, position", "streams/tables.py; VW and svmlight: native/parse/, in threads", False),
    ("Batch", "checked rows", "rows/batches.py, models/learning.py: labels and names; all or nothing", False),
    ("CsrBatch", "pointers to the rows", "native/bind/engine_batches.cpp: one call of the native loops", True),
    ("Scalars", "m, target, ‖φ‖², …", "native/loops/round.hpp: the task's direction φ and the score", True),
    ("Step", "add, scale, decay, …", "native/core/rules.cpp: the rule's formula", True),
    ("a weight", "w ← scale·w + add·φ", "native/loops/moves.hpp: checked, then written", True),
]


def layers() -> list[list[str]]:
    """The rooms, lowest first."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    return [[room.strip() for room in layer.split("|")] for layer in reversed(contract["layers"])]


def svg(width: int, height: int, title: str, body: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
    return "\n".join([head, f"<title>{title}</title>", STYLE, *body, "</svg>"]) + "\n"


def rooms() -> str:
    width, height, gap = 760, 26, 6
    body, found = [], layers()
    for i, layer in enumerate(found):
        y = 10 + (len(found) - 1 - i) * (height + gap)
        each = (width - 20 - gap * (len(layer) - 1)) / len(layer)
        for j, room in enumerate(layer):
            x = 10 + j * (each + gap)
            body.append(f'<rect x="{x:.0f}" y="{y}" width="{each:.0f}" height="{height}" rx="4" />')
            body.append(f'<text x="{x + each / 2:.0f}" y="{y + 17}" text-anchor="middle">{room}</text>')
    foot = 10 + len(found) * (height + gap)
    body.append(f'<text class="small" x="10" y="{foot + 12}">A room imports only from rooms further down.</text>')
    return svg(width, foot + 20, "The rooms of onepass as layers", body)


def way() -> str:
    body, step = [], 52
    for i, (name, holds, where, native) in enumerate(STEPS):
        y, kind = 10 + i * step, ' class="native"' if native else ""
        body.append(f'<rect x="10" y="{y}" width="210" height="36" rx="4"{kind} />')
        body.append(f'<text x="20" y="{y + 16}">{name}</text><text class="small" x="20" y="{y + 30}">{holds}</text>')
        body.append(f'<text class="small" x="236" y="{y + 22}">{where}</text>')
        if i:
            body.append(f'<path d="M115,{y - step + 36} L115,{y - 1}" />')
    return svg(700, 10 + len(STEPS) * step, "The way of a row from a CSV line to a weight", body)


if __name__ == "__main__":
    for name, drawn in (("rooms", rooms()), ("row", way())):
        path = ROOT / "docs" / f"architecture-{name}.svg"
        path.write_text(drawn, encoding="utf-8")
        print(path.relative_to(ROOT))
