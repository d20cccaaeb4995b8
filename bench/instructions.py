"""Instructions per example and per feature, counted by valgrind: figures that do not depend on the load of the machine.

python bench/instructions.py [csr dense dicts rows]

One process does the work twice, another twelve times, each time with a new model: the difference is the cost of ten
runs without the start of the interpreter. valgrind does not support AVX-512, so the loops are those of AVX2.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROWS = 4_096


def text(classes: int = 2) -> tuple[Any, Any]:
    from onepass import datasets

    return next(datasets.SparseText(ROWS, tilt=0.5, classes=classes).chunks(ROWS))


def table(d: int) -> tuple[Any, Any]:
    from onepass import datasets

    return next(datasets.RotatingHyperplane(ROWS, d=d, turns=0.0).chunks(ROWS))


def batch(X: Any, y: Any) -> Any:
    return lambda model: model.learn_many(X, y)


def singly(pairs: list[Any], predict: bool) -> Any:
    def learn(model: Any) -> None:
        for x, label in pairs:
            if predict:
                model.predict_one(x)
            model.learn_one(x, label)

    return learn


def named(X: Any, y: Any) -> list[Any]:
    """Dicts whose keys are shared between rows."""
    rows = [{sys.intern(name): value for name, value in row.items()} for row in X.dicts()]
    return list(zip(rows, y.tolist(), strict=True))


def short(d: int) -> list[Any]:
    X, y = table(d)
    names = [f"x{j}" for j in range(d)]
    return [(dict(zip(names, row, strict=True)), label) for row, label in zip(X.tolist(), y.tolist(), strict=True)]


# name → (features of an example, the work)
CLASSES = 20
WORK = {
    f"csr 68, {CLASSES} classes, learn_many": (68, lambda: batch(*text(CLASSES))),
    "csr 68, learn_many": (68, lambda: batch(*text())),
    "dense 10, learn_many": (10, lambda: batch(*table(10))),
    "dense 100, learn_many": (100, lambda: batch(*table(100))),
    "rows of 100, learn_one": (100, lambda: singly([*zip(*table(100), strict=True)], predict=False)),
    "dicts of 10, predict_one + learn_one": (10, lambda: singly(short(10), predict=True)),
    "dicts of 68, predict_one + learn_one": (68, lambda: singly(named(*text()), predict=True)),
}


def child(name: str, times: int) -> None:
    from onepass import LinearModel

    work = WORK[name][1]()
    classes = list(range(CLASSES if "classes" in name else 2))
    models = [LinearModel("pa1", classes=classes) for _ in range(12)]
    for model in models[:times]:
        work(model)
    model = models[0]
    print(f"updates {model.k / model.t:.3f}")


def count(name: str, times: int) -> tuple[int, float]:
    """Instructions of a process that does the work `times` times, and the share of rounds that updated."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, __file__]
        done = subprocess.run(
            [*command, "--child", name, "--times", str(times)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
        )
        total = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
    updates = re.search(r"updates ([\d.]+)", done.stdout)
    assert total and updates
    return int(total[1]), float(updates[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", help="first words of the kinds of work; all by default")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--times", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.times)
        return
    if not shutil.which("valgrind"):
        sys.exit("valgrind is not installed")
    from onepass.charts.text import text_table

    cells = [["work", "instructions/example", "per feature", "updates"]]
    for name, (features, _) in WORK.items():
        if given.kinds and name.split()[0] not in given.kinds:
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        (few, _), (many, updates) = count(name, 2), count(name, 12)
        each = (many - few) / 10 / ROWS
        cells.append([name, f"{each:,.0f}", f"{each / features:.1f}", f"{updates:.0%}"])
    print(text_table(cells, left=1))


if __name__ == "__main__":
    main()
