"""Rules by coordinates on sparse text: FTRL-Proximal, AdaGrad and VW's update against Vowpal Wabbit and River.

python bench/coordinate.py [--rows N] [--repeats R] [--only text,cache,river] [--json FILE]

Both programs read the same file, predict and learn every row once, and take turns. The best time of each counts, minus
the time that the program takes for a file of ten rows. Files are generated (numbers, words); with ONEPASS_DATA also
rcv1, repeated until it is as long. River splits each line in Python, as its users do, and gets a tenth of the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from command import BITS, our_error, ours, peer_error, timed, vw, vw_error, write_files, write_set
from timing import header, machine, say

from onepass.charts.text import text_table

# Ours and VW's flags for the same rule.
RULES = {
    "FTRL-Proximal": ["--ftrl", "--loss_function", "logistic"],
    "AdaGrad": ["--adaptive", "--loss_function", "logistic", "-l", "0.5"],
    "VW's default": ["--loss_function", "logistic"],
}
OPTIMISERS = {"FTRL-Proximal": "FTRLProximal(alpha=0.05)", "AdaGrad": "AdaGrad(0.1)"}
OURS_BESIDE_RIVER = {"FTRL-Proximal": "ftrl:alpha=0.05", "AdaGrad": "adagrad:eta=0.1"}
RIVER = """
import sys
from river import linear_model, optim
model, wrong, rows = linear_model.LogisticRegression(optim.{optimiser}), 0, 0
for line in open(sys.argv[1]):
    label, _, rest = line.partition(" |")
    pairs = (word.partition(":") for word in rest.partition(" ")[2].split())
    x, y = {{name: float(value or 1) for name, _, value in pairs}}, label == "1"
    wrong += bool(model.predict_one(x)) != y
    model.learn_one(x, y)
    rows += 1
print(wrong / rows)
"""


def heads(folder: Path, files: dict[str, Path], rows: int, name: str) -> dict[str, Path]:
    """The first rows of every file, in files of their own."""
    out = {}
    for what, path in files.items():
        out[what] = folder / f"{path.stem}.{name}.vw"
        with path.open() as long, out[what].open("w") as short:
            short.writelines(islice(long, rows))
    return out


def count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def race(sides: list[tuple[Any, Any]], rows: int, large: Path, small: Path, repeats: int) -> dict[str, Any]:
    """Examples a second, start-up apart, and progressive errors; a side is (its command for a file, the error it
    printed). NaN if the file takes hardly longer than the start of the program, and so is too short to measure."""
    best = np.full((len(sides), 2), np.inf)
    errors = [0.0] * len(sides)
    for _ in range(repeats):
        for i, (command, error) in enumerate(sides):
            for k, path in enumerate((large, small)):
                seconds, _, said = timed(command(path))
                best[i, k] = min(best[i, k], seconds)
                if k == 0:
                    errors[i] = error(said)
    learning, starting = best[:, 0] - best[:, 1], best[:, 1]
    speeds = np.where(learning > starting / 5, rows / np.maximum(learning, 1e-9), np.nan)
    return {"ours": speeds[0], "theirs": speeds[1], "error": errors[0], "their error": errors[1]}


def with_cache(made: list[str], flag: str, kind: str) -> Any:
    return lambda path: [*made, "-d", str(path), "-b", BITS, flag, f"{path}.{kind}"]


def make_files(folder: Path, rows: int) -> dict[str, Path]:
    """Generated files of so many rows; with ONEPASS_DATA also RCV1, repeated until it is as long."""
    say(f"writing {rows:,} rows …")
    write_files(folder, rows)
    files = {"numbers": folder / "numbers.vw", "words": folder / "words.vw"}
    if os.environ.get("ONEPASS_DATA"):
        files["rcv1"] = folder / "rcv1.vw"
        write_set(files["rcv1"], "rcv1")
        once = files["rcv1"].read_bytes()
        with files["rcv1"].open("ab") as file:
            for _ in range(rows // once.count(b"\n")):
                file.write(once)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each file")
    parser.add_argument("--repeats", type=int, default=3, help="turns each side takes; the best counts")
    parser.add_argument("--only", default="text,cache,river", help="some of text,cache,river")
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    given = parser.parse_args()
    about, only, figures = machine(), set(given.only.split(",")), []
    print(header(about), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = make_files(folder, given.rows)
        small, tenth = heads(folder, files, 10, "ten"), heads(folder, files, given.rows // 10, "tenth")
        for what, path in files.items():
            rows = count(path)
            for rule, flags in RULES.items():
                work: list[tuple[str, int, Path, list[tuple[Any, Any]]]] = []
                mine = [*ours(), "--task", "classification", *flags]
                if "text" in only:
                    sides = [(lambda p, m=mine: [*m, "-d", str(p), "-b", BITS], our_error),
                             (lambda p, f=flags: [*vw(*f), "-d", str(p), "-b", BITS], vw_error)]  # fmt: skip
                    work.append(("VW, text", rows, path, sides))
                if "cache" in only:
                    sides = [(with_cache(mine, "--cache-file", "ours"), our_error),
                             (with_cache(vw(*flags), "--cache_file", "theirs"), vw_error)]  # fmt: skip
                    for command, _ in sides:
                        timed(command(path))
                        timed(command(small[what]))  # the caches exist now
                    work.append(("VW, caches", rows, path, sides))
                if "river" in only and rule in OPTIMISERS:
                    code = RIVER.format(optimiser=OPTIMISERS[rule])
                    one = ["--rule", OURS_BESIDE_RIVER[rule], "-b", BITS]
                    sides = [(lambda p, o=one: ours(str(p), *o), our_error),
                             (lambda p, c=code: [sys.executable, "-c", c, str(p)], peer_error)]  # fmt: skip
                    work.append(("River, text", min(rows, given.rows // 10), tenth[what], sides))
                for against, n, large, sides in work:
                    say(f"{what}, {rule} against {against} …")
                    found = race(sides, n, large, small[what], given.repeats)
                    figures.append({"file": what, "rule": rule, "against": against, "rows": n, **found})
                    say(f"    {found['ours']:,.0f} and {found['theirs']:,.0f} examples a second")
    cells = [["file", "rule", "against", "ours ex/s", "theirs ex/s", "ratio", "error", "theirs"]]
    for f in figures:
        shown = (f"{f['ours']:,.0f}", f"{f['theirs']:,.0f}", f"{f['ours'] / f['theirs']:.1f}")
        numbers = [*("too short" if text == "nan" else text for text in shown), f"{f['error']:.2%}"]
        cells.append([f["file"], f["rule"], f["against"], *numbers, f"{f['their error']:.2%}"])
    print(f"\none pass, predict then learn; wanted for FTRL-Proximal: ≥ 5\n\n{text_table(cells, left=3)}")
    if given.json:
        Path(given.json).write_text(json.dumps({"machine": about, "figures": figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
