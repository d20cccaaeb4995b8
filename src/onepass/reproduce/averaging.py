"""Online to batch: the average of all iterates against the last one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..charts.lines import Line
from .framework import Cell, Check, Experiment, Numbers, Report, Results
from .pages import markdown_table
from .pictures import curves, picture

__all__ = ["Averaging", "experiment"]

SETS = ("adult", "imdb", "rcv1", "spambase")
RULES = {
    "Perceptron": "perceptron",
    "PA-I, C = 1": "pa1:C=1",
    "SGD, η = 0.5": "sgd:loss=logistic,schedule=constant,eta=0.5",
    "SGD, 0.1/√t": "sgd:loss=logistic,schedule=inv_sqrt,eta=0.1",
}
STEADY = "SGD, 0.1/√t"  # whose last iterate already changes little
READOUTS = ("last", "average")
SIZES = (0.0625, 0.125, 0.25, 0.5, 1.0)
ROWS = 20_000


class Averaging(Experiment):
    name = "averaging"
    title = "the average of all iterates against the last, on test rows, as the stream goes on"
    seeds = 3
    protocol = f"""
At most {ROWS:,} rows of each set in a random order: the first three quarters are learned once, the rest are test
rows; the columns of spambase are scaled by the mean and deviation of the rows learned. Error (per cent) of the last
weights and of the average of all weights that predicted (Polyak and Ruppert; online-to-batch conversion), after a
sixteenth, an eighth, …, all of the stream. The average of iterates with regret R_T has expected excess risk at most
R_T/T; of the last nothing is said. Steps that shrink calm the last iterate themselves, and while its weights still
grow the average lags behind: of that rule nothing is claimed. 3 repetitions.
"""

    def cells(self, quick: bool) -> list[Cell]:
        sets = SETS[:1] if quick else SETS
        return [
            {"set": name, "rule": rule, "readout": readout} for name in sets for rule in RULES for readout in READOUTS
        ]

    def data(self, cell: Cell) -> list[tuple[str, str | None]]:
        return [(str(cell["set"]), None)]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        from ..models.linear import LinearModel

        X, y = _rows(str(cell["set"]), seed, 2000 if quick else ROWS)
        cut = (3 * len(y)) // 4
        if cell["set"] == "spambase":
            X = (X - X[:cut].mean(axis=0)) / np.maximum(X[:cut].std(axis=0), 1e-12)
        model = LinearModel(RULES[str(cell["rule"])], classes=sorted(set(y.tolist())), readout=str(cell["readout"]))
        errors, start = [], 0
        for size in SIZES:
            stop = int(size * cut)
            model.learn_many(X[start:stop], y[start:stop])
            start = stop
            errors.append(100.0 * float(np.mean(np.asarray(model.predict_many(X[cut:])) != y[cut:])))
        return {"error": errors[-1], "t": [int(size * cut) for size in SIZES], "curve": errors}

    def report(self, results: Results) -> Report:
        sets = results.names("set")
        rows = [["rule", *(f"{name}: last, average" for name in sets)]]
        for rule in results.names("rule"):
            cells = []
            for name in sets:
                pair = [results.one(set=name, rule=rule, readout=readout) for readout in READOUTS]
                cells.append(", ".join("–" if r is None else r.spread("error").show() for r in pair))
            rows.append([rule, *cells])
        text = "Test error (per cent) after one pass.\n\n" + markdown_table(rows)
        return Report(text, {"error": _draw(results)}, [] if results.quick else _checks(results))


def _rows(name: str, seed: int, rows: int) -> tuple[Any, Any]:
    from scipy.sparse import csr_matrix, issparse, vstack

    from .. import datasets

    parts, count = [], 0
    for X, y in datasets.load(name).shuffled(seed).chunks(rows):
        parts.append((X, np.asarray(y)))
        count += len(y)
        if count >= rows:
            break
    tables = [csr_matrix((X.data, X.indices, X.indptr), X.shape) if hasattr(X, "indptr") else X for X, _ in parts]
    table: Any = vstack(tables).tocsr() if issparse(tables[0]) else np.concatenate(tables)  # type: ignore[arg-type]
    return table[:rows], np.concatenate([y for _, y in parts])[:rows]


def _draw(results: Results) -> str:
    panels = []
    for name in results.names("set"):
        lines = []
        for i, rule in enumerate(RULES):
            for readout in READOUTS:
                r = results.one(set=name, rule=rule, readout=readout)
                if r is not None:
                    mean = np.mean(r.values("curve"), axis=0).tolist()
                    lines.append(Line(f"{rule}, {readout}", r.values("t")[0], mean, i + 1, thin=readout == "last"))
        panels.append(curves(lines, title=name, across="examples learned", width=400, height=300, log=True))
    keys = [Line(f"{rule}, {readout}", [], [], i + 1, thin=readout == "last")
            for i, rule in enumerate(RULES) for readout in READOUTS]  # fmt: skip
    return picture(panels, keys, title="Test error (%) while the stream is learned once", columns=2)


def _checks(results: Results) -> list[Check]:
    def better(rule: str) -> tuple[bool, str]:
        pairs = [
            (results.the(set=name, rule=rule, readout="average").mean("error"),
             results.the(set=name, rule=rule, readout="last").mean("error"))
            for name in SETS
        ]  # fmt: skip
        return all(a <= b for a, b in pairs), "; ".join(f"{a:.1f} against {b:.1f}" for a, b in pairs)

    return [
        Check.of(f"{rule}: the average is no worse than the last, on every set", better, rule)
        for rule in RULES
        if rule != STEADY
    ]


experiment = Averaging()
