"""What ``--rule auto`` chooses from: every member of the portfolio on every set, and the ensemble of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pictures import Dot, dots, picture
from .writing import markdown_table

__all__ = ["Portfolio", "experiment"]

SETS = (
    "adult", "banana", "phoneme", "usps", "spambase", "elec2", "weather-noaa", "sea", "spam-drift", "rcv1", "covtype",
    "imdb",
)  # fmt: skip
SORTED = ("banana", "phoneme", "usps", "spambase", "covtype")  # by class, or nearly: shuffled
ROWS = 12_000


class Portfolio(Experiment):
    name = "portfolio"
    title = "--rule auto: the ensemble against the best of its members in hindsight"
    seeds = 1
    protocol = f"""
The first {ROWS:,} rows of each set, {", ".join(SORTED)} shuffled, the others in the order of their file; columns as
they are. Progressive error (per cent): every row is predicted, then learned, once. *ensemble* is `EnsembleModel()`,
the model of `onepass learn --rule auto`; *best member* is the member of `onepass.portfolio` with the fewest errors,
known only afterwards; *default* is pa1:C=0.1, what `onepass learn` uses without `--rule`.
"""

    def cells(self, quick: bool) -> list[Cell]:
        return [{"set": name} for name in (SETS[1:4] if quick else SETS)]

    def data(self, cell: Cell) -> list[tuple[str, str | None]]:
        return [(str(cell["set"]), None)]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        from .. import datasets, portfolio
        from ..ensemble_model import EnsembleModel
        from ..model import LinearModel

        stream = datasets.load(str(cell["set"]))
        stream = stream.shuffled(seed) if cell["set"] in SORTED else stream
        ensemble, default = EnsembleModel(), LinearModel("pa1:C=0.1")
        wrong, plain, rows, limit = 0, 0, 0, 2000 if quick else ROWS
        for X, y in stream.chunks(2000):
            wrong += _wrong(ensemble.predict_then_learn(X, y), y)
            plain += _wrong(default.predict_then_learn(X, y), y)
            rows += len(y)
            if rows >= limit:
                break
        members = {
            name: 100.0 * float(n) / rows for name, n in zip(portfolio.CLASSIFIERS, ensemble.losses, strict=True)
        }
        return {
            "rows": rows,
            "ensemble": 100.0 * wrong / rows,
            "default": 100.0 * plain / rows,
            "best": min(members.values()),
            "members": members,
        }

    def report(self, results: Results) -> Report:
        found = [r for r in results if r.runs]
        rows = [["set", "ensemble", "best member", "default", "worst member", "which is best"]]
        for r in found:
            members = r.values("members")[0]
            first = min(members, key=members.__getitem__)
            worst = f"{max(members.values()):.2f}"
            shown = [f"{r.mean(key):.2f}" for key in ("ensemble", "best", "default")]
            rows.append([str(r.cell["set"]), *shown, worst, first])
        table = [["member", *(str(r.cell["set"]) for r in found)]]
        for name in found[0].values("members")[0] if found else ():
            table.append([name, *(f"{r.values('members')[0][name]:.2f}" for r in found)])
        text = f"Progressive error (per cent).\n\n{markdown_table(rows)}\n\n## Members\n\n{markdown_table(table)}"
        return Report(text, {"error": _draw(found)}, [] if results.quick else _checks(found))


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
    keys = [Dot("ensemble", 0, None, 1), Dot("default, pa1:C=0.1", 0, None, 2), Dot("members", 0, None, 8, hollow=True)]
    return picture([panel], keys, title="--rule auto on twelve sets", columns=1)


def _checks(found: list[Any]) -> list[Check]:
    if not found:
        return []
    ratios = {str(r.cell["set"]): r.mean("ensemble") / r.mean("best") for r in found}
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    worst = max(ratios, key=ratios.__getitem__)
    better = sum(r.mean("ensemble") <= r.mean("default") for r in found)
    return [
        Check("on the geometric mean within 1% of the best member in hindsight", mean <= 1.01, f"{mean:.4f} times"),
        Check("nowhere more than 3% above it", ratios[worst] <= 1.03, f"{worst}: {ratios[worst]:.4f} times"),
        Check("no worse than the default rule on every set", better == len(found), f"{better} of {len(found)}"),
    ]


experiment = Portfolio()
