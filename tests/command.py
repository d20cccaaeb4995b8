"""Running the command as people do, and small streams to run it on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).parent.parent / "src"


def onepass(*args: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """The whole process: its code, stdout and stderr."""
    options = {"text": True, "capture_output": True, "timeout": 120, **options}
    return subprocess.run(line(*args), env=environment(), **options)


def started(*args: Any, **options: Any) -> subprocess.Popen[str]:
    options = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(line(*args), env=environment(), **options)


def line(*args: Any) -> list[str]:
    return [sys.executable, "-m", "onepass", *map(str, args)]


def environment() -> dict[str, str]:
    """As it is; where onepass is run from its source, the child finds it too."""
    paths = [path for path in (os.environ.get("PYTHONPATH", "")).split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in paths)}


def write_vw(path: Path, rows: int, *, seed: int = 0, words: int = 200, unlabelled: float = 0.0) -> Path:
    """Two classes of rows of words, 5% of the labels wrong."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=words)
    with path.open("w") as file:
        for number in range(rows):
            met = rng.choice(words, size=8, replace=False)
            y = "1" if (w[met].sum() > 0) != (rng.random() < 0.05) else "-1"
            label = "" if rng.random() < unlabelled else y
            file.write(f"{label} '{number}| " + " ".join(f"word{j}" for j in met) + "\n")
    return path


def write_csv(path: Path, rows: int, *, seed: int = 0) -> Path:
    """Numbers, strings and gaps; the label is a word."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        file.write("id,age,income,city,spam\n")
        for number in range(rows):
            age, income = rng.integers(18, 80), rng.normal()
            city = rng.choice(["Rome", "Oslo", ""])
            spam = "yes" if (age - 50) / 20 + income + (city == "Rome") > 0 else "no"
            file.write(f"r{number},{age},{income:.4f},{city},{spam}\n")
    return path


def write_regression(path: Path, rows: int, *, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for _ in range(rows):
            x = rng.normal(size=4)
            y = 2.0 * x[0] - x[1] + 0.1 * rng.normal()
            file.write(f"{y:.5f} " + " ".join(f"{j + 1}:{v:.5f}" for j, v in enumerate(x)) + "\n")
    return path


def write_sets(path: Path, rows: int, *, seed: int = 0) -> Path:
    """Rows with any of four labels; svmlight or VW text, as the name says."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(4, 10))
    with path.open("w") as file:
        for _ in range(rows):
            x = np.round(rng.normal(size=10), 3)
            labels = ",".join(str(k + 1) for k in np.flatnonzero(w @ x > 1.0))
            pairs = " ".join(f"{j}:{v}" for j, v in enumerate(x) if v)
            file.write(f"{labels} | {pairs}\n" if path.suffix == ".vw" else f"{labels} {pairs}\n")
    return path


def write_queries(path: Path, queries: int, *, seed: int = 0) -> Path:
    """svmlight text: queries of 2 to 12 rows with relevances from 0 to 3."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=6)
    with path.open("w") as file:
        for query in range(queries):
            for x in np.round(rng.normal(size=(rng.integers(2, 13), 6)), 3):
                relevance = int(np.clip(w @ x, 0, 3))
                file.write(f"{relevance} qid:{query} " + " ".join(f"{j}:{v}" for j, v in enumerate(x)) + "\n")
    return path
