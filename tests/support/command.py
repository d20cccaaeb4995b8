"""Running the command as people do, and small streams to run it on."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from onepass.cli import main

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def onepass(*args: Any, cwd: Path | None = None, stdin: IO[str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command, called within this process: its code, stdout and stderr. An exception that it lets out is raised."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in "12")
    before, collecting = {name: signal.getsignal(name) for name in SIGNALS}, gc.get_threshold()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.resetwarnings()  # shown, as in a process of its own, and no errors
        patch.setattr(sys, "argv", line(*args)[2:])
        patch.setattr(sys, "stdin", stdin or io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main(list(map(str, args)), "onepass")
        except SystemExit as end:
            code = end.code
        finally:
            gc.set_threshold(*collecting)
    assert before == {name: signal.getsignal(name) for name in SIGNALS}, "the command left a handler of signals behind"
    said = [each.buffer.getvalue().decode() for each in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(line(*args), code, *said)


def process(*args: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own: where limits, signals, memory or exit codes are what is tested."""
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
    met = rng.integers(words, size=(rows, 8))
    while len(again := np.flatnonzero((np.diff(np.sort(met)) == 0).any(axis=1))):  # a word that stands twice
        met[again] = rng.integers(words, size=(len(again), 8))
    positive = (w[met].sum(axis=1) > 0) != (rng.random(rows) < 0.05)
    labels = np.where(rng.random(rows) < unlabelled, "", np.where(positive, "1", "-1"))
    lines = (
        f"{label} '{number}| " + " ".join(f"word{j}" for j in row) + "\n"
        for number, (label, row) in enumerate(zip(labels.tolist(), met.tolist(), strict=True))
    )
    path.write_text("".join(lines))
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
