"""The time of imports, each in a fresh interpreter; with --build also build time and size of the wheel.

python bench/startup.py [--build] [--against COMMIT] [--json FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from timing import header, machine, say

from onepass.charts.text import text_table

ROOT = Path(__file__).resolve().parent.parent
LAUNCHERS = ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER")  # a compiler cache would be measured instead

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


@dataclasses.dataclass
class Build:
    """What building a wheel took: seconds by the clock and of all processors, and the sizes of what was built."""

    seconds: float
    processor_seconds: float
    wheel: int = 0
    module: int = 0

    def row(self, what: str) -> list[str]:
        sizes = f"{self.wheel / 1e6:.2f} MB, {self.module / 1e6:.2f} MB unpacked" if self.wheel else ""
        return [what, f"{self.seconds:.1f} s", f"{self.processor_seconds:.1f} s", sizes]


def timed(command: list[str], environment: dict[str, str]) -> Build:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Build(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def build(source: Path, folder: Path) -> dict[str, Build]:
    """Builds the wheel of a checkout: all of it, then again after a change to the file that holds the rules' formulas.

    The build tools are installed before the clock starts, and no compiler cache is used.
    """
    tools, wheels = folder / "tools", folder / "wheels"
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    pip = [str(tools / "bin" / "python"), "-m", "pip"]
    subprocess.run([*pip, "install", "-q", "scikit-build-core>=0.10", "nanobind>=2.2", "cmake", "ninja"], check=True)
    command = [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(source)]
    command += ["-C", f"build-dir={folder / 'build'}"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", *LAUNCHERS)}
    environment["PATH"] = f"{tools / 'bin'}{os.pathsep}{environment['PATH']}"
    clean = timed(command, environment)
    (wheel,) = wheels.glob("onepass-*.whl")
    clean.wheel = wheel.stat().st_size
    with zipfile.ZipFile(wheel) as files:
        clean.module = max(file.file_size for file in files.infolist() if file.filename.endswith(".so"))
    min((source / "native").rglob("rules.?pp")).touch()  # an older commit has its formulas in the header
    return {"clean build": clean, "after a change to a formula": timed(command, environment)}


def builds(commits: list[str]) -> dict[str, Build]:
    """Builds this checkout, and others of its history: each from a copy without anything that was built before."""
    done = {}
    for commit in ["", *commits]:
        say(f"pip wheel {commit} …")
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source"
            source.mkdir()
            files = ["git", "-C", str(ROOT), "archive", commit or "HEAD"]
            archive = subprocess.run(files, check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
            for what, figures in build(source, Path(folder)).items():
                done[f"{what}, {commit}" if commit else what] = figures
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", action="store_true", help="also build a wheel of the last commit (minutes)")
    parser.add_argument("--against", metavar="COMMIT", action="append", default=[], help="and one of this commit")
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
    print("\n" + text_table(cells, left=1))
    if given.build or given.against:
        measured = builds(given.against)
        figures |= {what: dataclasses.asdict(one) for what, one in measured.items()}
        rows = [["build", "by the clock", "of processors", "wheel, module"]]
        print("\n" + text_table(rows + [one.row(what) for what, one in measured.items()], left=1))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump({"machine": about, "figures": figures}, file, indent=1)


if __name__ == "__main__":
    main()
