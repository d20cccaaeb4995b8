"""What ``--rule auto`` chooses from: every member of the portfolio on every set, and the ensemble of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..models.portfolio import DEFAULT, DEFAULT_FOR_NUMBERS
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pages import markdown_table
from .pictures import Dot, dots, picture

__all__ = ["Portfolio", "experiment"]

SETS = (
    "adult", "banana", "phoneme", "usps", "spambase", "elec2", "weather-noaa", "sea", "spam-drift", "rcv1", "covtype",
    "imdb",
)  # fmt: skip
SORTED = ("banana", "phoneme", "usps", "spambase", "covtype")  # sorted by class, or nearly, and therefore shuffled
ROWS = 12_000
# Numbers: a column of a set, told from the others: price, temperature, elevation, a harmonic, a mean length, a pixel.
COLUMNS = {"elec2": 3, "weather-noaa": 0, "covtype": 0, "phoneme": 0, "spambase": 54, "usps": 100}


class Portfolio(Experiment):
    name = "portfolio"
    title = "--rule auto: the ensemble against the best of its members in hindsight"
    seeds = 1
    version = 3
    protocol = f"""
The first {ROWS:,} rows of each set, {", ".join(SORTED)} shuffled, the others in the order of their file; columns as
they are. Every row is predicted, then learned, once: progressive error (per cent), and for numbers the root of the mean
squared error. *ensemble* is `EnsembleModel()`, the model of `onepass learn --rule auto`; *best member* is the member of
the portfolio that was best, known only afterwards; *default* is {DEFAULT}, for numbers {DEFAULT_FOR_NUMBERS},
what `onepass learn` uses without `--rule`. The sets have classes; for numbers one of their columns, counted from 0, is
told from the others, and members' answers are brought into the range of the answers so far, as the ensemble does it.
"""

    def cells(self, quick: bool) -> list[Cell]:
        numbers: list[Cell] = [{"set": name, "target": column} for name, column in COLUMNS.items()]
        return [*({"set": name} for name in (SETS[1:4] if quick else SETS)), *([] if quick else numbers)]

    def data(self, cell: Cell) -> list[tuple[str, str | None]]:
        return [(str(cell["set"]), None)]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        from .. import datasets

        stream = datasets.load(str(cell["set"]))
        stream = stream.shuffled(seed) if cell["set"] in SORTED else stream
        chunks, rows = [], 0
        for X, y in stream.chunks(2000):
            chunks.append((X, y))
            rows += len(y)
            if rows >= (2000 if quick else ROWS):
                break
        return {"rows": rows, **(_numbers(chunks, int(cell["target"])) if "target" in cell else _classes(chunks, rows))}

    def report(self, results: Results) -> Report:
        found = [r for r in results if r.runs]
        classes = [r for r in found if "target" not in r.cell]
        numbers = [r for r in found if "target" in r.cell]
        text = f"Progressive error (per cent).\n\n{_tables(classes)}"
        if numbers:
            text += f"\n\n## Numbers\n\nRoot of the mean squared error.\n\n{_tables(numbers)}"
        return Report(text, {"error": _draw(classes)}, [] if results.quick else _checks(classes, numbers))


def _classes(chunks: list[Any], rows: int) -> Numbers:
    from ..models import portfolio
    from ..models.ensemble import EnsembleModel
    from ..models.linear import LinearModel

    ensemble, default = EnsembleModel(), LinearModel(DEFAULT)
    wrong = sum(_wrong(ensemble.predict_then_learn(X, y), y) for X, y in chunks)
    plain = sum(_wrong(default.predict_then_learn(X, y), y) for X, y in chunks)
    counted = zip(portfolio.CLASSIFIERS, ensemble.losses, strict=True)
    members = {name: 100.0 * float(n) / rows for name, n in counted}
    best = min(members.values())
    return {"ensemble": 100.0 * wrong / rows, "default": 100.0 * plain / rows, "best": best, "members": members}


def _numbers(chunks: list[Any], column: int) -> Numbers:
    from ..models import portfolio
    from ..models.ensemble import EnsembleModel

    whole = np.vstack([X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64) for X, _ in chunks])
    X, y = np.delete(whole, column, axis=1), whole[:, column]

    def error(*members: str) -> float:
        said = EnsembleModel(members, "regression").predict_then_learn(X, y)
        return float(np.sqrt(np.mean(np.square(said - y))))

    members = {name: error(name) for name in portfolio.REGRESSORS}
    together, best = error(*portfolio.REGRESSORS), min(members.values())
    return {"ensemble": together, "default": error(DEFAULT_FOR_NUMBERS), "best": best, "members": members}


def _name(r: Any) -> str:
    return str(r.cell["set"]) + (f" {r.cell['target']}" if "target" in r.cell else "")


def _tables(found: list[Any]) -> str:
    show = "{:.4g}" if found and "target" in found[0].cell else "{:.2f}"
    rows = [["set", "ensemble", "best member", "default", "worst member", "which is best"]]
    for r in found:
        members = r.values("members")[0]
        first = min(members, key=members.__getitem__)
        shown = [show.format(r.mean(key)) for key in ("ensemble", "best", "default")]
        rows.append([_name(r), *shown, show.format(max(members.values())), first])
    table = [["member", *map(_name, found)]]
    for name in found[0].values("members")[0] if found else ():
        table.append([name, *(show.format(r.values("members")[0][name]) for r in found)])
    return f"{markdown_table(rows)}\n\nTheir members:\n\n{markdown_table(table)}"


def _wrong(said: Any, y: Any) -> int:
    return int(np.sum(np.array([a != b for a, b in zip(list(said), list(y), strict=True)])))


def _draw(found: list[Any]) -> str:
    """Errors as multiples of the best member's."""
    points = []
    for r in found:
        name, best = str(r.cell["set"]), r.mean("best")
        members = r.values("members")[0].values()
        points += [Dot(name, min(value / best, 2.5), None, 8, hollow=True) for value in members]
        points.append(Dot(name, min(r.mean("default") / best, 2.5), None, 2))
        points.append(Dot(name, r.mean("ensemble") / best, None, 1))
    panel = dots([str(r.cell["set"]) for r in found], points, title="error, best member = 1 (2.5: or more)",
                 across="times the best member's error", width=760)  # fmt: skip
    keys = [
        Dot("ensemble", 0, None, 1),
        Dot("default", 0, None, 2),
        Dot("members", 0, None, 8, hollow=True),
    ]
    return picture([panel], keys, title="--rule auto on twelve sets", columns=1)


def _geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _checks(classes: list[Any], numbers: list[Any]) -> list[Check]:
    checks = []
    # Of numbers, losses are relative to the whole range of the answers: a few outliers slow the weights down.
    for of, found, near, far in (("", classes, 1, 3), ("numbers: ", numbers, 2, 10)):
        if not found:
            continue
        ratios = {_name(r): r.mean("ensemble") / r.mean("best") for r in found}
        mean = _geometric_mean(list(ratios.values()))
        worst = max(ratios, key=ratios.__getitem__)
        to_default = [r.mean("ensemble") / r.mean("default") for r in found]
        less = _geometric_mean(to_default)
        on = f"{less:.4f} times; no worse on {sum(ratio <= 1 for ratio in to_default)} of {len(found)} sets"
        within = f"on the geometric mean within {near}% of the best member in hindsight"
        nowhere, most = f"nowhere more than {far}% above it", ratios[worst]
        checks += [
            Check(of + within, mean <= 1 + near / 100, f"{mean:.4f} times"),
            Check(of + nowhere, most <= 1 + far / 100, f"{worst}: {most:.4f} times"),
            Check(f"{of}on the geometric mean below the default rule, which is one of them", less < 1, on),
        ]
    return checks


experiment = Portfolio()
