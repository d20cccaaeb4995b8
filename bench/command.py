"""Whole commands on whole files: `onepass learn` against Vowpal Wabbit, scikit-learn and River.

python bench/command.py [--rows N] [--repeats R] [--only vw,cache,svmlight,csv,errors] [--json FILE]

Every program is timed as a process, from start to exit, on the same file. The programs take turns; the best time of
each is printed. Files are generated; with ONEPASS_DATA, `errors` compares progressive errors on imdb, rcv1,
url-phishing and sms-spam.

VW's update adapts every weight. It is compared with three of our rules: the command's default, which is VW's update
with shorter steps on long rows; plain descent, which is the fastest and makes more errors; and AROW, which makes fewer
errors than VW here (its lam was chosen on these generated files). `errors` also has VW's flags, and the ensemble
`--rule auto`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import header, machine, say

from onepass import datasets
from onepass.charts.text import text_table
from onepass.models.portfolio import DEFAULT

SETS = ("imdb", "rcv1", "url-phishing", "sms-spam")
LOSSES = ("squared", "logistic", "hinge")
RULES = {"default": DEFAULT, "sgd": "sgd:loss=logistic", "arow": "arow:lam=30"}
SLOW_PEERS = 1_000_000  # rows of the files that scikit-learn and River read
BITS = "18"

SCIKIT = """
import sys, numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1])
X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
model, wrong = SGDClassifier(loss="log_loss"), 0
for start in range(0, X.shape[0], 4096):
    part, labels = X[start:start + 4096], y[start:start + 4096]
    if start:
        wrong += int(np.sum(model.predict(part) != labels))
    model.partial_fit(part, labels, [-1, 1])
print(wrong / X.shape[0])
"""
RIVER = """
import sys
from river import linear_model, optim, stream
model, wrong, rows = linear_model.LogisticRegression(optimizer=optim.SGD(0.1)), 0, 0
kinds = {f"x{j}": float for j in range(20)} | {"y": int}
for x, y in stream.iter_csv(sys.argv[1], target="y", converters=kinds):
    wrong += bool(model.predict_one(x)) != bool(y)
    model.learn_one(x, bool(y))
    rows += 1
print(wrong / rows)
"""


# -- files -------------------------------------------------------------------------------------------------------------


def sparse(rows: int, seed: int = 0) -> Any:
    """Labels ±1 and rows of about 60 of 50,000 features, the frequent ones often; 5% of the labels are wrong."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=50_000)
    for start in range(0, rows, 10_000):
        shape = (min(10_000, rows - start), 60)
        drawn = np.sort((50_000 * rng.random(shape) ** 3).astype(int), axis=1)
        first = np.diff(drawn, axis=1, prepend=-1) > 0
        values = np.round(rng.random(shape), 4)
        wrong = rng.random(shape[0]) < 0.05
        y = np.where((np.sum(w[drawn] * values * first, axis=1) > 0) != wrong, 1, -1)
        for row in range(shape[0]):
            yield int(y[row]), drawn[row, first[row]], values[row, first[row]]


def write_files(folder: Path, rows: int) -> None:
    with (
        (folder / "numbers.vw").open("w") as numbers,
        (folder / "words.vw").open("w") as words,
        (folder / "rows.svm").open("w") as svm,
    ):
        for number, (y, met, values) in enumerate(sparse(rows)):
            pairs = list(zip(met.tolist(), values.tolist(), strict=True))
            numbers.write(f"{y} | {' '.join(f'{j}:{v}' for j, v in pairs)}\n")
            words.write(f"{y} |w {' '.join(f'word{j}' for j, _ in pairs)}\n")
            if number < SLOW_PEERS:
                svm.write(f"{y} {' '.join(f'{j + 1}:{v}' for j, v in pairs)}\n")
    rng = np.random.default_rng(1)
    w = rng.normal(size=20)
    with (folder / "table.csv").open("w") as csv:
        csv.write(",".join([*(f"x{j}" for j in range(20)), "y"]) + "\n")
        rows = min(rows, SLOW_PEERS)
        for start in range(0, rows, 10_000):
            X = np.round(rng.normal(size=(min(10_000, rows - start), 20)), 5)
            for x, y in zip(X.tolist(), (X @ w > 0).tolist(), strict=True):
                csv.write(",".join(map(str, x)) + f",{int(y)}\n")


def write_set(path: Path, name: str) -> int:
    """A real set as VW text, classes as ±1."""
    rows = 0
    marks = str.maketrans({" ": "_", ":": "_", "|": "_", "\n": "_", "\t": "_"})
    with path.open("w") as file:
        for x, y in datasets.load(name):
            words = (str(w).translate(marks) + ("" if v == 1 else f":{v:.6g}") for w, v in x.items())
            file.write(f"{1 if y in (1, 'spam') else -1} | {' '.join(words)}\n")
            rows += 1
    return rows


# -- processes ---------------------------------------------------------------------------------------------------------


def timed(command: list[str]) -> tuple[float, float, str]:
    """Wall seconds, processor seconds and what it printed."""
    # Bytecode is compiled once, as in an installed package, and not at every start.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment["PYTHONPYCACHEPREFIX"] = tempfile.gettempdir() + "/onepass-bench-pycache"
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}\n{said}")
    return wall, usage.ru_utime + usage.ru_stime, said


def ours(*args: str) -> list[str]:
    return [sys.executable, "-m", "onepass", "learn", *args, "--progress", "none"]


def vw(*args: str) -> list[str]:
    return [sys.executable, "-m", "vowpalwabbit", *args, "--binary"]


def found(pattern: str, said: str) -> str:
    """The group of a pattern that must be in the output of a command."""
    match = re.search(pattern, said, re.MULTILINE)
    assert match is not None, f"{pattern} is not in: {said[-300:]}"
    return match[1]


def our_error(said: str) -> float:
    return float(found(r"^error +([\d.]+)%", said)) / 100


def vw_error(said: str) -> float:
    return float(found(r"average loss = ([\d.]+)", said))


def peer_error(said: str) -> float:
    return float(said.split()[-1])


Side = tuple[list[str], Callable[[str], float]]


def race(one: Side, other: Side, repeats: int) -> dict[str, float]:
    """Both commands in turn: the best wall and processor seconds of each, and their progressive errors."""
    best = {"wall": [np.inf] * 2, "cpu": [np.inf] * 2, "error": [0.0] * 2}
    for _ in range(repeats):
        for i, (command, error) in enumerate((one, other)):
            wall, cpu, said = timed(command)
            best["wall"][i], best["cpu"][i] = min(best["wall"][i], wall), min(best["cpu"][i], cpu)
            best["error"][i] = error(said)
    return {f"{what} {who}": best[what][i] for what in best for i, who in enumerate(("ours", "theirs"))}


# -- the tables --------------------------------------------------------------------------------------------------------


def speeds(folder: Path, rows: int, repeats: int, only: set[str]) -> list[dict[str, Any]]:
    logistic = ["--rule", "sgd:loss=logistic"]
    names = {key: str(folder / name) for key, name in
             (("numbers", "numbers.vw"), ("words", "words.vw"), ("svm", "rows.svm"), ("csv", "table.csv"))}  # fmt: skip
    few = min(rows, SLOW_PEERS)
    work: list[tuple[str, str, str, int, Side, Side]] = []
    if "vw" in only:
        for kind in ("numbers", "words"):
            file = names[kind]
            them: Side = (vw("-d", file, "-b", BITS, "--loss_function", "logistic"), vw_error)
            for called, rule in RULES.items():
                one = ours(file, "-b", BITS, "--rule", rule)
                work.append((f"VW text, {kind}, {called}", "VW", "≥ 3", rows, (one, our_error), them))
    if "cache" in only:
        for kind in ("numbers", "words"):
            file, mine, theirs = names[kind], str(folder / f"{kind}.ours"), str(folder / f"{kind}.theirs")
            other = vw("-d", file, "-b", BITS, "--loss_function", "logistic", "--cache_file", theirs)
            timed(other)
            for called, rule in RULES.items():
                one = ours(file, "-b", BITS, "--cache-file", mine, "--rule", rule)
                timed(one)  # both caches exist now
                work.append(
                    (f"cache, {kind}, {called}", "VW's cache", "≥ 4", rows, (one, our_error), (other, vw_error))
                )
    if "svmlight" in only:
        them = ([sys.executable, "-c", SCIKIT, names["svm"]], peer_error)
        what = "load_svmlight_file, partial_fit"
        work.append(("svmlight", what, "≥ 10", few, (ours(names["svm"], *logistic), our_error), them))
    if "csv" in only:
        them = ([sys.executable, "-c", RIVER, names["csv"]], peer_error)
        one = ours(names["csv"], *logistic)
        work.append(("CSV, 20 numbers", "River's iter_csv", "≥ 10", few, (one, our_error), them))
    out = []
    for what, peer, wanted, count, side, other_side in work:
        say(f"{what} against {peer} …")
        out.append({"what": what, "peer": peer, "wanted": wanted, "rows": count, **race(side, other_side, repeats)})
    return out


def show_speeds(figures: list[dict[str, Any]]) -> str:
    cells = [["file", "against", "ours ex/s", "theirs ex/s", "ratio", "of cpu", "wanted", "error", "theirs"]]
    for f in figures:
        cells.append([
            f["what"], f["peer"], f"{f['rows'] / f['wall ours']:,.0f}", f"{f['rows'] / f['wall theirs']:,.0f}",
            f"{f['wall theirs'] / f['wall ours']:.2f}", f"{f['cpu theirs'] / f['cpu ours']:.2f}", f["wanted"],
            f"{f['error ours']:.2%}", f"{f['error theirs']:.2%}",
        ])  # fmt: skip
    return text_table(cells, left=2)


def errors(folder: Path) -> list[dict[str, Any]]:
    """Progressive errors of one pass: the command with its defaults, with VW's flags, with our own choice of rules."""
    out = []
    for name in SETS:
        path = folder / f"{name}.vw"
        rows = write_set(path, name)
        say(f"{name} …")
        wall_auto, _, said = timed(ours(str(path), "-b", BITS, "--rule", "auto"))
        auto = our_error(said)
        wall_default, _, said = timed(ours(str(path), "-b", BITS))
        default = our_error(said)
        for loss in LOSSES:
            flags = ["-d", str(path), "-b", BITS, "--loss_function", loss]
            task = ["--task", "classification"]
            wall, _, said = timed(ours(*flags, *task))
            theirs, _, told = timed(vw(*flags))
            out.append({"set": name, "loss": loss, "rows": rows, "ours": our_error(said), "theirs": vw_error(told),
                        "default": default, "auto": auto, "wall ours": wall, "wall theirs": theirs,
                        "wall default": wall_default, "wall auto": wall_auto})  # fmt: skip
    return out


def show_errors(figures: list[dict[str, Any]]) -> str:
    """The table has VW's error with its standard error for this number of rows."""
    head = [
        "set",
        "loss",
        "rows",
        "VW",
        "± (1 s.e.)",
        "ours",
        "same flags",
        "--rule auto",
        "no worse",
    ]
    cells = [head]
    for f in figures:
        deviation = (f["theirs"] * (1 - f["theirs"]) / f["rows"]) ** 0.5
        values = [f["theirs"], deviation, f["default"], f["ours"], f["auto"]]
        kinds = (("default", "default"), ("flags", "ours"), ("auto", "auto"))
        better = [name for name, key in kinds if f[key] <= f["theirs"]]
        cells.append([f["set"], f["loss"], f"{f['rows']:,}", *(f"{v:.2%}" for v in values), ", ".join(better)])
    best = {f["set"]: min(g["theirs"] for g in figures if g["set"] == f["set"]) for f in figures}
    said = []
    for name, key in (("as it comes", "default"), ("--rule auto", "auto")):
        of = {f["set"]: f[key] for f in figures}
        below = sum(of[each] <= best[each] for each in best)
        said.append(f"ours, {name}, is at or below VW's best of the three losses on {below} of {len(best)} sets")
    return text_table(cells, left=2) + "\n\n" + "\n".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the generated files")
    parser.add_argument("--repeats", type=int, default=3, help="turns each side takes; the best counts")
    parser.add_argument("--only", default="vw,cache,svmlight,csv,errors", help="some of vw,cache,svmlight,csv,errors")
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    given = parser.parse_args()
    only = set(given.only.split(","))
    about = machine()
    print(header(about), flush=True)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if only - {"errors"}:
            say(f"writing {given.rows:,} rows …")
            write_files(folder, given.rows)
            figures["speeds"] = speeds(folder, given.rows, given.repeats, only)
            print(f"\n{given.rows:,} rows, one pass, whole processes\n\n{show_speeds(figures['speeds'])}", flush=True)
        if "errors" in only:
            if not os.environ.get("ONEPASS_DATA"):
                say("errors: set ONEPASS_DATA to the folder of the real sets")
            else:
                figures["errors"] = errors(folder)
                print(f"\nprogressive error of one pass\n\n{show_errors(figures['errors'])}")
    if given.json:
        Path(given.json).write_text(json.dumps({"machine": about, **figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
