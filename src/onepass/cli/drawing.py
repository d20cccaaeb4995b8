"""The curves of several runs as one SVG file."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from .. import metrics
from ..charts import _DARK, _DRAWING, _LIGHT, HEIGHT, SERIES, WIDE, Line, line_chart

if TYPE_CHECKING:
    from ..evaluate import Run

__all__ = ["picture"]


def picture(runs: dict[str, Run]) -> str:
    """All curves of the first metric over the window, as an SVG that stands alone, light or dark as the viewer is."""
    first = next(iter(runs.values()))
    made = metrics.make(first.metric)
    lines = [Line(name, run.t, run.window, i % SERIES + 1) for i, (name, run) in enumerate(runs.items())]
    chart = line_chart(lines, title=f"{first.metric} of all", across=first.unit, show=made.show)
    drawing = chart[chart.rindex("<svg ") :]
    legend, row = "", HEIGHT + 14
    for line in lines:
        legend += f'<path class="line s{line.colour}" d="M62 {row - 4}H84"/>'
        legend += f'<text class="name" x="92" y="{row}">{html.escape(line.name)}</text>'
        row += 18
    title = f"{first.metric}, last {first.window_size:,} {first.unit}"
    body = drawing[drawing.index(">") + 1 :]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="onepass" viewBox="0 -26 {WIDE} {row + 30}" role="img" '
        f'aria-label="{html.escape(title)}"><style>{_plain_style()}</style>'
        f'<rect class="back" x="0" y="-26" width="{WIDE}" height="{row + 30}"/>'
        f'<text class="name" x="62" y="-8">{html.escape(title)}</text>{legend}{body}\n'
    )


def _plain_style() -> str:
    """The charts' style without CSS variables, which few viewers of SVG know: light, or dark where asked for."""
    rules = _DRAWING.replace(".onepass svg ", ".onepass ").replace("}", "}\n")
    rules += ".onepass .name { fill: var(--ink); font: 13px system-ui, sans-serif; } .back { fill: var(--surface); }"
    for i in range(1, SERIES + 1):
        rules += f".onepass .s{i} {{ stroke: var(--series-{i}); }} .onepass .f{i} {{ fill: var(--series-{i}); }}\n"
    return f"{_coloured(rules, _LIGHT)}@media (prefers-color-scheme: dark) {{ {_coloured(rules, _DARK)} }}"


def _coloured(rules: str, definitions: str) -> str:
    colours = dict(re.findall(r"(--[\w-]+): (#\w+)", definitions))
    return re.sub(r"var\((--[\w-]+)\)", lambda match: colours[match.group(1)], rules)
