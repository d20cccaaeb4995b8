"""The time of imports, each in a fresh interpreter; with --build also build time and size of the wheel.

python bench/startup.py [--build] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from timing import header, machine, say

from onepass.charts.text import text_table

ROOT = Path(__file__).resolve().parent.parent

# What is timed after NumPy was imported → (the statement, the required seconds).
IMPORTS: dict[str, tuple[str, float | None]] = {
    "import onepass, over NumPy": ("import onepass", 0.3),
    "  and the learner without scikit-learn": ("from onepass import LinearModel", 0.3),
    "  and the command": ("import onepass.cli", 0.3),
    "  and an estimator, with scikit-learn": ("from onepass import LinearClassifier", None),
    "scikit-learn's base alone": ("import sklearn.base", None),
}


def import_seconds(statement: str, repeats: int) -> float:
    """The fastest of `repeats` fresh interpreters that have imported NumPy already."""
    code = f"import numpy, time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(repeats)
    ]
    return min(float(run.stdout) for run in runs)


def build() -> tuple[float, int]:
    """Seconds for `pip wheel` from a clean tree (fetching the build tools included), and the wheel's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-cache-dir",
            "--wheel-dir",
            folder,
        ]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        start = time.perf_counter()
        subprocess.run([*command, str(ROOT)], check=True, env=environment)
        seconds = time.perf_counter() - start
        (wheel,) = Path(folder).glob("onepass-*.whl")
        return seconds, wheel.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", action="store_true", help="also build a wheel (about a minute)")
    parser.add_argument("--repeats", type=int, default=10, help="interpreters started for each import; the best counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    given = parser.parse_args()

    about = machine()
    print(header(about), flush=True)
    figures: dict[str, Any] = {}
    cells = [["what", "measured", "wanted"]]
    for what, (statement, wanted) in IMPORTS.items():
        say(f"{statement} …")
        figures[what.strip()] = seconds = import_seconds(statement, given.repeats)
        cells.append([what, f"{seconds:.3f} s", f"< {wanted} s" if wanted else ""])
    if given.build:
        say("pip wheel …")
        seconds, size = build()
        figures |= {"clean build": seconds, "wheel bytes": size}
        cells.append(["clean build", f"{seconds:.0f} s", "< 120 s"])
        cells.append(["wheel", f"{size / 1e6:.2f} MB", "< 5 MB"])
    print("\n" + text_table(cells, left=1))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"machine": about, "figures": figures}, file, indent=1)


if __name__ == "__main__":
    main()
