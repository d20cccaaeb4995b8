"""The command on small files of every format: what it prints, its exit status, and what it writes."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support import command

from golden.streams import stream
from golden.values import DIGITS

COLOURS = ("red", "green", "blue")
BAD_LINES = {7: "spam or not? | f1:1", 19: "-1 | f2:"}  # in bad.vw


# -- files ---------------------------------------------------------------------------------------------------------


def write_files(folder: Path) -> None:
    """All of them; whole-number arithmetic made their numbers."""
    binary, numbers, classes = stream("binary"), stream("regression"), stream("multiclass")
    sign = {"no": "-1", "yes": "1"}
    mail = [f"{sign[y]} {c} 'r{i}|f {_pairs(x)}" for i, (x, y, c) in enumerate(_rows(binary))]
    (folder / "mail.vw").write_text(_lines(mail))
    (folder / "bad.vw").write_text(_lines([BAD_LINES.get(i, line) for i, line in enumerate(mail)]))
    (folder / "classes.vw").write_text(_lines([f"{y // 10} | {_pairs(x)}" for x, y, _ in _rows(classes)]))
    sets = [f"{','.join(map(str, y))} | {_pairs(x)}" for x, y, _ in _rows(stream("multilabel"))]
    (folder / "sets.vw").write_text(_lines(sets))
    (folder / "numbers.svm").write_text(_lines([f"{y} {_pairs(x, '')}" for x, y, _ in _rows(numbers)]))
    (folder / "classes.svm").write_text(_lines([f"{y} {_pairs(x, '')}" for x, y, _ in _rows(classes)]))
    ranking = stream("ranking")
    queries = [f"{y:g} qid:{q} {_pairs(x, '')}" for (x, y, _), q in zip(_rows(ranking), ranking.qid, strict=True)]
    (folder / "queries.svm").write_text(_lines(queries))
    table = [_record(i, x, y) for i, (x, y, _) in enumerate(_rows(binary))]
    for name, mark in (("table.csv", ","), ("table.tsv", "\t")):
        rows = [mark.join("" if value is None else str(value) for value in each.values()) for each in table]
        (folder / name).write_text(_lines([mark.join(table[0]), *rows]))
        if mark == ",":
            (folder / "bad.csv").write_text(_lines([mark.join(table[0]), *rows[:9], "r9,1,2"]))
    (folder / "rows.jsonl").write_text(_lines([json.dumps(each) for each in table]))
    pq.write_table(pa.Table.from_pylist(table), folder / "table.parquet")


def _rows(s: Any) -> Any:
    return list(zip(s.X[:, :6].tolist(), s.y, s.importance, strict=True))


def _pairs(x: list[float], prefix: str = "f") -> str:
    return " ".join(f"{prefix}{j + 1}:{v}" for j, v in enumerate(x) if v)


def _record(i: int, x: list[float], y: str) -> dict[str, Any]:
    gap = None if i % 7 == 3 else x[1]
    note = f"{COLOURS[i % 3]} car, {COLOURS[i % 2]} door".replace(",", "")
    return {"id": f"r{i}", "size": x[0], "weight": gap, "colour": COLOURS[i % 3], "note": note, "spam": y}


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# -- commands ------------------------------------------------------------------------------------------------------

# Scenario → its commands, one after the other in a folder of their own. Rules are named where what they predict is
# written: those of the examples take no exp and no pow, so that every digit is the same everywhere.
SCENARIOS: dict[str, tuple[str, ...]] = {
    "vw": (
        "learn mail.vw --rule pa1 --save mail.model -p before.txt",
        "predict mail.model mail.vw -o after.txt",
        "predict mail.model mail.vw --scores",
        "inspect mail.model",
        "learn --resume mail.model mail.vw",
        "convert mail.vw out.jsonl",
    ),
    "vw, hashed": (
        "learn mail.vw -b 6 --rule arow --readout average --save mail.model --every 10",
        "inspect mail.model --all",
        "learn mail.vw --rule auto --quiet -p auto.txt",
        "learn mail.vw --rule perceptron --kernel rbf:gamma=0.1 --budget oldest:B=5",
    ),
    "vw, classes": (
        "learn classes.vw --oaa 4 --rule pa2 --save classes.model -p before.txt",
        "predict classes.model classes.vw",
        "learn sets.vw --task multilabel --rule pa1 -p sets.txt",
    ),
    "svmlight, numbers": (
        "learn numbers.svm --task regression --rule pa1:C=0.1 --save numbers.model -p before.txt",
        "predict numbers.model numbers.svm -o after.txt",
        "compare numbers.svm --task regression --rules pa1,pa2,rls --quiet",
        "convert numbers.svm out.csv",
    ),
    "svmlight, classes": (
        "learn classes.svm --rule perceptron --passes 2 --holdout 5",
        "learn queries.svm --task ranking --rule pa1 --save queries.model -p before.txt",
        "predict queries.model queries.svm",
    ),
    "csv": (
        "learn table.csv --label spam --id id --text note --rule pa1 --save table.model -p before.csv",
        "predict table.model table.csv",
        "predict table.model table.csv --proba",
        "convert table.csv out.vw --label spam --id id",
        "inspect table.model",
    ),
    "tsv, json lines, parquet": (
        "learn table.tsv --label spam --drop id,note --rule scw1 --save table.model",
        "learn rows.jsonl --label spam --id id --rule pa1 -q :: -p jsonl.txt",
        "learn table.parquet --label spam --id id --rule pa1 -p parquet.txt",
    ),
    "compare": ("compare mail.vw --rules perceptron,pa1,arow --save-best best.model", "inspect best.model --top 3"),
    "malformed": (
        "learn bad.vw --rule pa1 --save bad.model",
        "learn bad.vw --rule pa1 --on-error skip --quarantine skipped.txt",
        "learn bad.csv --label spam",
    ),
    "refused": (
        "learn nowhere.vw",
        "learn mail.vw --rule pa3",
        "predict mail.vw mail.vw",
        "learn table.csv --label nothing",
    ),
}


def run(scenario: str, folder: Path) -> list[dict[str, Any]]:
    """What each command of a scenario prints, answers and writes."""
    write_files(folder)
    return [ran(line, folder) for line in SCENARIOS[scenario]]


def ran(line: str, folder: Path) -> dict[str, Any]:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = command.onepass(*line.split(), cwd=folder)
    after = {path: path.read_bytes() for path in folder.iterdir()}
    written = sorted(path for path in after if after[path] != before.get(path) and path.suffix != ".model")
    return {
        "command": line,
        "exit": done.returncode,
        "stdout": timeless(done.stdout, folder),
        "stderr": timeless(done.stderr, folder),
        "written": {path.name: hashlib.sha256(after[path]).hexdigest()[:DIGITS] for path in written},
    }


def timeless(text: str, folder: Path) -> list[str]:
    """Lines without what differs from run to run: clocks, rates, memory, folders; nor the size of a model's file."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"^time .*$", "time …", text, flags=re.MULTILINE)
    if "examples/s" in text:  # of `compare`: a column, as wide as its numbers
        text = re.sub(r"(?m)^(\S+ +\S+ +\S+ +)[\d,]+", r"\1…", re.sub(" {2,}", "  ", text))
    text = re.sub(r"(\.model): [\d,]+ bytes", r"\1: … bytes", text)
    return [line.rstrip() for line in text.splitlines()]
