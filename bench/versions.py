"""Two builds of onepass against each other: microseconds an example, each build in fresh processes, in turns.

python bench/versions.py OLD.whl NEW.whl [--rounds 3]

The wheels are unpacked, not installed. Each process takes the best of some runs, a cell the median over the processes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

ROWS = 2_000
RULES = ("pa1", "perceptron", "arow", "scw1", "adagrad", "ftrl", "rmsprop", "adadelta", "vw")


def work() -> dict[str, tuple[Any, Any, Any]]:
    """Name → (makes the learner, rows, labels)."""
    from onepass import LinearModel, datasets

    def text(classes: int = 2) -> Any:
        return next(datasets.SparseText(ROWS, tilt=0.5, classes=classes).chunks(ROWS))

    def table(d: int) -> Any:
        return next(datasets.RotatingHyperplane(ROWS, d=d, turns=0.0).chunks(ROWS))

    cells: dict[str, tuple[Any, Any, Any]] = {}
    for rule in RULES:
        cells[f"csr {rule}"] = (lambda rule=rule: LinearModel(rule), *text())
        cells[f"dense 100 {rule}"] = (lambda rule=rule: LinearModel(rule), *table(100))
    for rule in ("pa1", "arow", "adagrad"):
        cells[f"csr, 20 classes, {rule}"] = (lambda rule=rule: LinearModel(rule, classes=list(range(20))), *text(20))
    cells["dense 10 arow, full"] = (lambda: LinearModel("arow:covariance=full"), *table(10))
    for readout in ("average", "pocket"):
        cells[f"csr pa1, {readout}"] = (lambda readout=readout: LinearModel("pa1", readout=readout), *text())
    return cells


def child(runs: int) -> None:
    """Prints seconds of this thread's processor time for each cell: the best of the runs."""

    def best(run: Any) -> float:
        times = []
        for _ in range(runs):
            start = time.thread_time()
            run()
            times.append(time.thread_time() - start)
        return min(times)

    done = {}
    for name, (make, X, y) in work().items():
        done[name] = best(lambda make=make, X=X, y=y: make().learn_many(X, y))
        model = make()
        model.learn_many(X, y)
        done[f"{name}, predict"] = best(lambda model=model, X=X: model.predict_many(X))
    print(json.dumps(done))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheels", nargs="*", metavar="OLD.whl NEW.whl")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each build")
    parser.add_argument("--runs", type=int, default=7, help="runs in each process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.runs)
        return
    if len(given.wheels) != 2:
        parser.error("expected two wheels: the old one and the new one")
    from timing import processor, say

    from onepass.charts.text import text_table

    seconds: list[list[dict[str, float]]] = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        for side, wheel in enumerate(given.wheels):
            with zipfile.ZipFile(wheel) as files:
                files.extractall(Path(folder) / str(side))
        for turn in range(given.rounds):
            say(f"round {turn + 1} of {given.rounds} …")
            for side in (0, 1):
                run = subprocess.run(
                    [sys.executable, __file__, "--child", "--runs", str(given.runs)],
                    env={**os.environ, "PYTHONPATH": str(Path(folder) / str(side))},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                seconds[side].append(json.loads(run.stdout))
    rows = [["µs an example", "old", "new", "new / old"]]
    for name in seconds[0][0]:
        old, new = (statistics.median(one[name] for one in side) for side in seconds)
        rows.append([name, f"{old / ROWS * 1e6:.3f}", f"{new / ROWS * 1e6:.3f}", f"{new / old:.2f}"])
    print(f"{processor()}\n\n{text_table(rows, left=1)}")


if __name__ == "__main__":
    main()
