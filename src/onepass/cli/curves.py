"""The curves of several runs as one SVG file."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from .. import metrics
from ..charts.lines import HEIGHT, SERIES, WIDE, Line, line_chart, plain_style

if TYPE_CHECKING:
    from ..evaluation import Run

__all__ = ["picture"]


def picture(runs: dict[str, Run]) -> str:
    """All curves of the first metric over the window, as a self-contained SVG in the viewer's light or dark theme."""
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
        f'aria-label="{html.escape(title)}"><style>{plain_style()}</style>'
        f'<rect class="back" x="0" y="-26" width="{WIDE}" height="{row + 30}"/>'
        f'<text class="name" x="62" y="-8">{html.escape(title)}</text>{legend}{body}\n'
    )
