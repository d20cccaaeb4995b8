"""Reports of runs: one HTML file that needs nothing else, and the short form that notebooks show."""

from __future__ import annotations

import dataclasses
import html
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import metrics as metrics_module
from ..charts.lines import NARROW, SERIES, STYLE, WIDE, Line, calibration_chart, line_chart
from ..errors import ParameterError
from ..persistence import files

if TYPE_CHECKING:
    from ..convex.regret.curves import Regret
    from . import Run

__all__ = ["fragment", "page", "write"]

_PAGE = """
html:has(.onepass) { background: var(--back, #fff); }
body { margin: 0; }
.onepass { background: var(--surface); min-height: 100vh; font: 15px/1.5 system-ui, sans-serif; }
.onepass main { max-width: 980px; margin: 0 auto; padding: 32px 24px 48px; }
.onepass h1 { font-size: 1.5rem; margin: 0; letter-spacing: -0.01em; }
.onepass h2 { font-size: 1.05rem; margin: 36px 0 10px; }
.onepass .model { color: var(--muted); font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere;
  margin: 4px 0 0; }
.onepass .figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(400px, 1fr)); gap: 24px 32px; }
.onepass figure { margin: 0; break-inside: avoid; }
.onepass figcaption { font-weight: 600; margin-bottom: 4px; }
.onepass .narrow { max-width: 380px; }
.onepass .scroll { overflow-x: auto; }
.onepass footer { color: var(--muted); font-size: 13px; margin-top: 40px; }
@media print {
  .onepass { min-height: 0; } .onepass main { max-width: none; padding: 0; }
  .onepass .figures { grid-template-columns: 1fr 1fr; gap: 12px 18px; }
  .onepass h2 { break-after: avoid; } .onepass tr { break-inside: avoid; }
}
@media (max-width: 520px) { .onepass .figures { grid-template-columns: 1fr; } .onepass main { padding: 20px 14px; } }
"""
_PARTS = """
.onepass .tiles { display: flex; flex-wrap: wrap; gap: 12px; margin: 20px 0 8px; }
.onepass .tile { background: var(--raised); border: 1px solid var(--grid); border-radius: 8px; padding: 10px 16px;
  min-width: 104px; }
.onepass .tile b { display: block; font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.onepass .tile span, .onepass .tile small { color: var(--muted); display: block; font-size: 12.5px; }
.onepass .legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; color: var(--ink); margin: 2px 0; }
.onepass .key svg { display: inline-block; width: 22px; height: 8px; margin-right: 6px; vertical-align: middle; }
.onepass table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; color: var(--ink);
  background: none; }
.onepass th, .onepass td { text-align: right; padding: 4px 12px; border-bottom: 1px solid var(--grid);
  background: none; }
.onepass th { color: var(--muted); font-weight: 500; white-space: nowrap; }
.onepass td:first-child, .onepass th:first-child { text-align: left; padding-left: 0; }
.onepass .settings td { text-align: left; overflow-wrap: anywhere; }
.onepass .bar { display: inline-block; height: 8px; border-radius: 2px; background: var(--series-1); margin-left: 8px;
  vertical-align: baseline; opacity: 0.75; }
.onepass .barbox { display: inline-block; width: 70px; text-align: left; }
.onepass .none, .onepass .note { color: var(--muted); font-size: 13px; font-weight: 400; }
"""
# A notebook may be light where the browser asks for dark: give the picture its own background.
_NOTEBOOK = """
.onepass { max-width: 920px; background: var(--surface); padding: 4px 16px 12px; border-radius: 8px; }
.onepass figure { margin: 0; }
"""

MAX_CLASSES = 50  # rows of the per-class table


def fragment(run: Run) -> str:
    """What a notebook shows: the values, the first curve, the reports."""
    if not run.t:
        return f"<p>{html.escape(run.table())}</p>"
    return (
        f'<div class="onepass"><style>{STYLE}{_PARTS}{_NOTEBOOK}</style>{_tiles(run)}'
        f"{_figure(run, run.metric)}<details><summary>{html.escape(repr(run))}</summary>"
        f'<div class="scroll">{_table(run.cells(20))}</div></details></div>'
    )


def page(runs: Mapping[str, Run], heading: str | None = None) -> str:
    """One run, or several under their names to be compared (and a heading), as a whole HTML document."""
    if not runs:
        raise ParameterError("a report needs at least one run")
    name, run = next(iter(runs.items()))
    title = name or "onepass report"
    body = _single(run, title) if len(runs) == 1 else _comparison(runs, heading or f"{len(runs)} models on one stream")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title if len(runs) == 1 else 'onepass: comparison')}</title>"
        f'<style>{STYLE}{_PAGE}{_PARTS}</style></head>\n<body><div class="onepass"><main>\n{body}\n'
        f"<footer>onepass {_version()}. Every example was predicted before it was learned.</footer>"
        "</main></div></body></html>\n"
    )


def write(path: str | os.PathLike[str], runs: Mapping[str, Run], heading: str | None = None) -> None:
    """Write `page` to a file, atomically."""
    target, text = Path(path), page(runs, heading)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"{target}: the folder for the report does not exist")
    files.write(target, text)


# -- one run ---------------------------------------------------------------------------------------------------------


def _single(run: Run, title: str) -> str:
    parts = [f"<h1>{html.escape(title)}</h1>", f'<p class="model">{html.escape(run.settings.get("model", ""))}</p>']
    if not run.t:
        return "".join([*parts, f"<p>{html.escape(run.table())}</p>"])
    parts.append(_tiles(run))
    parts.append("<h2>Over the stream</h2>")
    width = WIDE if len(run.metrics) == 1 else NARROW
    parts.append(_side_by_side([_figure(run, metric, width) for metric in run.metrics]))
    if run.regret is not None:
        parts.append("<h2>Regret</h2>" + _regret(run.regret))
    if run.per_class:
        parts.append("<h2>Classes</h2>" + _classes(run.per_class))
    if run.calibration and run.calibration["weight"]:
        parts.append("<h2>Calibration and throughput</h2>")
        parts.append(_side_by_side([_calibration(run.calibration), _throughput(run, NARROW)]))
    else:
        parts.append("<h2>Throughput</h2>" + _throughput(run, WIDE))
    parts.append(f'<h2>Reports</h2><div class="scroll">{_table(run.cells(20))}</div>')
    parts.append("<h2>Settings</h2>" + _settings(run))
    return "\n".join(parts)


def _tiles(run: Run) -> str:
    tiles = []
    for metric in run.metrics:
        recent = run.show(run.curves[metric]["window"][-1], metric)
        tiles.append((metric, run.show(run.values[metric], metric), f"last {run.window_size:,}: {recent}"))
    tiles.append((run.unit, f"{run.examples:,}", _counts(run)))
    tiles.append((f"{run.unit} a second", _rounded(run.speed), f"{run.seconds:.3g} s in the model"))
    cells = (
        f'<div class="tile"><span>{html.escape(name)}</span><b>{html.escape(value)}</b>'
        f"<small>{html.escape(more)}</small></div>"
        for name, value, more in tiles
    )
    return f'<div class="tiles">{"".join(cells)}</div>'


def _counts(run: Run) -> str:
    counts = [(run.unlabelled, "without label"), (run.dropped, "dropped"), (run.late, "labels late")]
    said = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    return said or f"{len(run)} reports"


def _side_by_side(figures: Sequence[str]) -> str:
    return f'<div class="figures">{"".join(figures)}</div>' if len(figures) > 1 else figures[0]


def _figure(run: Run, metric: str, width: int = WIDE) -> str:
    made = metrics_module.make(metric)
    view = "window" if run.every <= run.window_size else "since_last"
    title = {"window": f"last {run.window_size:,}", "since_last": f"each {run.every:,}"}[view]
    curves = run.curves[metric]
    lines = [
        Line(title, run.t, curves[view], 1),
        Line("all so far", run.t, curves["cumulative"], 2, thin=True),
    ]
    if run.at_label is not None and metric in run.at_label.curves:
        lines.append(Line("when labels came", run.at_label.t, run.at_label.curves[metric][view], 3))
    if run.holdout:
        lines.append(Line("held out", run.holdout["t"], run.holdout[metric], 4))
    better = "higher is better" if made.higher_is_better else "lower is better"
    title = f"{metric} over the stream"
    chart = line_chart(lines, title=title, across=run.unit, show=made.show, marks=run.marks, width=width)
    return f'<figure><figcaption>{html.escape(metric)} <span class="note">{better}</span></figcaption>{chart}</figure>'


def _regret(regret: Regret) -> str:
    """The regret with its bound, and once more alone where the bound is so large that the regret looks flat."""
    figures = [_regret_figure(regret, "against the best fixed weights", regret.svg(WIDE))]
    if regret.bound is not None and regret.bound[-1] > 4 * max(abs(regret.final), 1e-12):
        alone = dataclasses.replace(regret, bound=None)
        figures = [
            _regret_figure(regret, "beside its bound", regret.svg(NARROW)),
            _regret_figure(regret, "alone", alone.svg(NARROW)),
        ]
    cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in regret.rows())
    return f'{_side_by_side(figures)}<table class="settings"><tbody>{cells}</tbody></table>'


def _regret_figure(regret: Regret, note: str, chart: str) -> str:
    return f'<figure><figcaption>regret <span class="note">{note}; {regret.what}</span></figcaption>{chart}</figure>'


def _classes(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = rows
    note = ""
    if len(rows) > MAX_CLASSES:
        shown = sorted(rows, key=lambda row: -float(row["support"]))[:MAX_CLASSES]
        note = f'<p class="note">The {MAX_CLASSES} most frequent of {len(rows):,} classes.</p>'
    head = "".join(f"<th>{name}</th>" for name in ("class", "occurred", "predicted", "precision", "recall", "F1"))
    lines = []
    for row in shown:
        bar = f'<span class="barbox"><span class="bar" style="width:{60 * row["f1"]:.0f}px"></span></span>'
        lines.append(
            f"<tr><td>{html.escape(str(row['label']))}</td><td>{row['support']:,.6g}</td>"
            f"<td>{row['predicted']:,.6g}</td><td>{row['precision']:.2%}</td><td>{row['recall']:.2%}</td>"
            f"<td>{row['f1']:.2%}{bar}</td></tr>"
        )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>{note}'
    )


def _calibration(calibration: Mapping[str, Any]) -> str:
    whose = "the class predicted" if calibration["of"] is None else f"class {calibration['of']}"
    weight, said, so = (calibration[key] for key in ("weight", "predicted", "observed"))
    gap = sum(w * abs(p - o) for w, p, o in zip(weight, said, so, strict=True)) / sum(weight)
    chart = calibration_chart(said, so, weight, title="Calibration", across=f"probability said of {whose}")
    return (
        f'<figure class="narrow"><figcaption>How often it was so <span class="note">against the probability said; '
        f"they agree on the dashed line. Mean distance {gap:.2%}.</span></figcaption>{chart}</figure>"
    )


def _throughput(run: Run, width: int) -> str:
    def show(speed: float) -> str:
        return f"{_rounded(speed)}/s"

    lines = [Line("", run.t, run.throughput, 7)]
    chart = line_chart(lines, title="throughput", across=run.unit, show=show, width=width)
    return (
        f'<figure><figcaption>{run.unit.capitalize()} a second <span class="note">of the model’s time, over all so far'
        f"</span></figcaption>{chart}</figure>"
    )


def _settings(run: Run) -> str:
    rows = {
        **run.settings,
        "report every": f"{run.every:,} {run.unit}",
        "window": f"{run.window_size:,}",
        "fading factor": f"{run.fading_factor:g}",
        "weight of all": f"{run.weight:,.6g}",
    }
    cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
    return f'<table class="settings"><tbody>{cells}</tbody></table>'


# -- several ---------------------------------------------------------------------------------------------------------


def _comparison(runs: Mapping[str, Run], heading: str) -> str:
    first = next(iter(runs.values()))
    metric = metrics_module.make(first.metric)
    ranked = sorted(
        runs.items(),
        key=lambda item: (math.isnan(item[1].value), -item[1].value if metric.higher_is_better else item[1].value),
    )
    colours = {name: i % SERIES + 1 for i, name in enumerate(runs)}
    head = ["", *first.metrics, *(f"last {first.window_size:,} {m}" for m in first.metrics), f"{first.unit}/s"]
    cells = [head]
    for name, run in ranked:
        recent = [run.show(run.curves[m]["window"][-1], m) if run.t else "–" for m in first.metrics]
        cells.append([name, *(run.show(run.values[m], m) for m in first.metrics), *recent, _rounded(run.speed)])
    parts = [f"<h1>{html.escape(heading)}</h1>"]
    parts.append(
        f'<p class="model">{html.escape(first.settings.get("stream", ""))}, {first.examples:,} {first.unit}</p>'
    )
    parts.append(f'<h2>Best first, by {html.escape(first.metric)}</h2><div class="scroll">{_table(cells)}</div>')
    for name in first.metrics:
        made = metrics_module.make(name)
        view = "window" if first.every <= first.window_size else "since_last"
        lines = [Line(who, run.t, run.curves[name][view], colours[who]) for who, run in ranked]
        over = f"last {first.window_size:,}" if view == "window" else f"each {first.every:,}"
        chart = line_chart(lines, title=f"{name} of all", across=first.unit, show=made.show, marks=first.marks)
        parts.append(
            f'<h2>{html.escape(name)} <span class="note">{over} {first.unit}</span></h2><figure>{chart}</figure>'
        )
    return "\n".join(parts)


def _table(cells: Sequence[Sequence[str]]) -> str:
    head, *body = ([html.escape(cell) for cell in row] for row in cells)
    lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in body)
    return (
        f"<table><thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
    )


def _rounded(value: float) -> str:
    """Two or three digits: a measured speed has no more."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _version() -> str:
    from .. import __version__

    return __version__
