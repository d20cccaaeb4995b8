"""Reading and learning a file, whole process: ours against VW, scikit-learn and River, in turns, the best of several.

python bench/streams.py [--rows 500000] [--repeats 3] [--clock wall|cpu] [--only vw,words,cache,svmlight,csv]

Every program is timed as a process, from start to exit, that reads the same generated file once and learns it. The time
for a file of ten rows is printed too, but not subtracted: if it matters, use more --rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

OURS = """
import onepass as op
from onepass.models.linear import LinearModel
model = LinearModel("pa1", hash_bits={bits})
for chunk in op.stream({path!r}, hash_bits={bits}, cache={cache!r}).batches():
    model.predict_then_learn(chunk.X, chunk.y)
"""
VW = """
from vowpalwabbit import Workspace
Workspace("--quiet -b 18 --loss_function hinge {cache} -d {path}").finish()
"""
SKLEARN = """
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file({path!r})
X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")  # SGDClassifier refuses 64 bits
SGDClassifier(loss="hinge").partial_fit(X, y, classes=[-1, 1])
"""
RIVER = """
from river import linear_model, stream
model = linear_model.PAClassifier()
kinds = {{f"x{{j}}": float for j in range(20)}} | {{"label": int}}
for x, y in stream.iter_csv({path!r}, target="label", converters=kinds):
    model.predict_one(x)
    model.learn_one(x, y)
"""


def write(folder: Path, rows: int) -> None:
    """Rows of about 60 features out of 47,000, as rcv1 has; and a table of 20 columns."""
    g = np.random.default_rng(0)
    with open(folder / "n.vw", "w") as vw, open(folder / "w.vw", "w") as words, open(folder / "a.svm", "w") as svm:
        for _ in range(rows):
            index = np.unique((47_000 * g.random(68) ** 3).astype(int))
            value = g.random(len(index))
            y = 1 if value[index % 2 == 0].sum() > value[index % 2 == 1].sum() else -1
            pairs = " ".join(f"{i}:{v:.6f}" for i, v in zip(index.tolist(), value.tolist(), strict=True))
            vw.write(f"{y} | {pairs}\n")
            svm.write(f"{y} {pairs}\n")
            words.write(f"{y} |t {' '.join(f'word{i}' for i in index.tolist())}\n")
    X = g.normal(size=(rows, 20)).round(4)
    table = np.column_stack([(X[:, 0] + X[:, 1] > 0).astype(int), X])
    header = ",".join(["label", *(f"x{j}" for j in range(20))])
    np.savetxt(folder / "a.csv", table, fmt=["%d", *["%.4f"] * 20], delimiter=",", header=header, comments="")


def seconds(code: str, clock: str) -> float:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall if clock == "wall" else cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--only", default="vw,words,cache,svmlight,csv")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cases = {
        "vw": ("VW text, numbers", "n.vw", 18, "", VW, "VW", 3),
        "words": ("VW text, words", "w.vw", 18, "", VW, "VW", 3),
        "cache": ("cached rows", "n.vw", 18, "cached", VW, "VW's cache", 4),
        "svmlight": ("svmlight", "a.svm", None, "", SKLEARN, "scikit-learn", 10),
        "csv": ("CSV", "a.csv", None, "", RIVER, "River", 10),
    }
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        large, small = Path(name) / "large", Path(name) / "small"
        for folder, rows in ((large, given.rows), (small, 10)):
            folder.mkdir()
            write(folder, rows)
        titles = "".join(f"{title:>8}" for title in ("ratio", "wanted", "start", "peer's"))
        print(f"{'':22}{'ours ex/s':>12}{'peer ex/s':>12}{titles}   peer (whole processes, {given.clock} clock)")
        for key in given.only.split(","):
            title, file, bits, cached, peer, who, wanted = cases[key]

            def codes(folder: Path, file=file, bits=bits, cached=cached, peer=peer) -> tuple[str, str]:
                path, cache = str(folder / file), str(folder / "rows.cache") if cached else None
                theirs = f"--cache_file {folder / 'vw.cache'}" if cached else ""
                return OURS.format(path=path, bits=bits, cache=cache), peer.format(path=path, cache=theirs)

            for folder in (large, small) if cached else ():
                for code in codes(folder):
                    seconds(code, given.clock)  # makes the caches
            best = np.full((2, 2), np.inf)  # large and small; ours and the peer's
            for _ in range(given.repeats):
                for i, folder in enumerate((large, small)):
                    for j, code in enumerate(codes(folder)):
                        best[i, j] = min(best[i, j], seconds(code, given.clock))
            speed = given.rows / best[0]
            figures[key] = {"ours": speed[0], "peer": speed[1], "ratio": speed[0] / speed[1], "wanted": wanted,
                            "start": best[1].tolist()}  # fmt: skip
            ratio = f"{speed[0] / speed[1]:8.2f}{wanted:8}{best[1, 0]:8.2f}{best[1, 1]:8.2f}"
            print(f"{title:22}{speed[0]:12,.0f}{speed[1]:12,.0f}{ratio}   {who}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
