"""The results of an experiment as files: a Markdown page, the same as JSON, and pictures."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..persistence import files
from .framework import Check, Experiment, Report, Results, Spread
from .runner import describe

__all__ = ["markdown_table", "write"]

FORMAT = 1  # of the JSON file


def write(experiment: Experiment, results: Results, folder: Path, command: str) -> list[Path]:
    """NAME.md, NAME.json and NAME-*.svg in `folder`; NAME-quick where the run was quick."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = experiment.name + ("-quick" if results.quick else "")
    report = experiment.report(results)
    pictures = {f"{stem}-{name}.svg": svg for name, svg in report.pictures.items()}
    text = _page(experiment, results, report, list(pictures), command)
    pages = {f"{stem}.md": text, f"{stem}.json": _json(experiment, results, report, command), **pictures}
    for name, content in pages.items():
        files.write(folder / name, content)
    return [folder / name for name in pages]


def _page(experiment: Experiment, results: Results, report: Report, pictures: Sequence[str], command: str) -> str:
    parts = [f"# {experiment.name}: {experiment.title}", _how(results, command)]
    if absent := _absent(results):
        parts.append(absent)
    parts.append(report.text.strip())
    parts += [f"![{name.rpartition('.')[0]}]({name})" for name in pictures]
    if report.checks:
        lines = [
            f"- {_MARKS[check.holds]} {check.claim}{': ' if check.detail else ''}{check.detail}"
            for check in report.checks
        ]
        parts.append("## Checked\n\n" + "\n".join(lines))
    parts.append("## Protocol\n\n" + experiment.protocol.strip())
    return "\n\n".join(parts) + "\n"


_MARKS = {True: "holds:", False: "**does not hold**:", None: "not decided:"}


def _how(results: Results, command: str) -> str:
    n = sorted({len(result.runs) for result in results if result.runs})
    seeds = " to ".join(str(count) for count in {n[0]: 0, n[-1]: 0}) if n else "no"
    quick = (
        " A quick run: fewer rows, fewer choices; its numbers are not those of the protocol." if results.quick else ""
    )
    return f"Written by `{command}`; {seeds} seed{'s' * (n != [1])} a cell, mean ± sample deviation.{quick}"


def _absent(results: Results) -> str:
    gone: dict[str, list[str]] = {}
    for result in results:
        if result.missing:
            gone.setdefault(result.missing, []).append(describe(result.cell))
    lines = [
        f"- {reason} Cells: {'; '.join(cells[:3])}{f' and {len(cells) - 3} more' if len(cells) > 3 else ''}."
        for reason, cells in gone.items()
    ]
    return "**Missing data, not run:**\n\n" + "\n".join(lines) if lines else ""


def _json(experiment: Experiment, results: Results, report: Report, command: str) -> str:
    page = {
        "format": FORMAT,
        "experiment": experiment.name,
        "version": experiment.version,
        "title": experiment.title,
        "protocol": experiment.protocol.strip(),
        "command": command,
        "quick": results.quick,
        "machine": _machine(),
        "results": [
            {
                "cell": dict(result.cell),
                "missing": result.missing,
                "published": {key: _spread(value) for key, value in experiment.published(result.cell).items()},
                "ours": {key: _spread(result.spread(key)) for key in _scalars(result.runs)},
                "runs": [{"seed": seed, **result.runs[seed]} for seed in sorted(result.runs)],
            }
            for result in results
        ],
        "checks": [_check(check) for check in report.checks],
    }
    return "{\n" + ",\n".join(f"{_text(key)}: {_listed(value)}" for key, value in page.items()) + "\n}\n"


def _listed(value: Any) -> str:
    """A list has a line for each entry: short files whose differences can be read."""
    return "[\n" + ",\n".join(map(_text, value)) + "\n]" if isinstance(value, list) and value else _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _scalars(runs: dict[int, Any]) -> list[str]:
    """The names under which every run has a number."""
    if not runs:
        return []
    first = next(iter(runs.values()))
    return [key for key in first if all(_is_number(run.get(key)) for run in runs.values())]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _spread(value: Spread) -> dict[str, Any]:
    return {"mean": value.mean, "sd": value.sd, "n": value.n}


def _check(check: Check) -> dict[str, Any]:
    return {"claim": check.claim, "holds": check.holds, "detail": check.detail}


def _machine() -> dict[str, Any]:
    def version(name: str) -> str:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return "from its source"

    packages = {name: version(name) for name in ("onepass", "numpy", "scikit-learn")}
    return {"python": platform.python_version(), "processor": platform.machine(), "cores": os.cpu_count(), **packages}


def markdown_table(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Columns aligned; the first `left` of them flush left. The first row is the heading."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        [cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    ]
    rule = ["-" * w if i < left else "-" * max(w - 1, 1) + ":" for i, w in enumerate(widths)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))
