"""MNIST: LASVM after one and two passes against scikit-learn's SVC (LIBSVM), and against the size of the kernel cache.

ONEPASS_DATA=/path/to/data python experiments/lasvm.py [--quick] [--pairs 4,9 3,8] [--rest 0 1 … 9] [--cache 24 48 96 …]
                                                       [--rows N] [--json FILE] [--plot FILE]

Bordes et al. 2005, section 5: two digits, or one digit against the rest; Gaussian kernel, grey levels from 0 to 1, C
and γ of the paper's MNIST runs (1000, 0.005) unless given. LASVM ×1 and ×2 finish. Every figure is one run, one thread;
"seconds" are processor time to train. Kernel values: LIBSVM does not count its own, so its column holds the least it
can do, the row of each support vector once. `--cache` trains on one digit against the rest at each size, in megabytes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import data
import numpy as np
from sklearn.svm import SVC

from onepass import LaSVMClassifier


@dataclasses.dataclass
class Problem:
    name: str
    X: Any
    y: Any
    held: Any
    truth: Any


@dataclasses.dataclass
class Figures:
    problem: str
    learner: str
    cache_mb: float
    error: float  # per cent of the test digits
    seconds: float
    support: int
    kernel_values: float


def problems(options: argparse.Namespace) -> Iterator[Problem]:
    X, y, held, truth = data.mnist()
    for pair in options.pairs:
        digits = [int(digit) for digit in pair.split(",")]
        some, tested = np.isin(y, digits), np.isin(truth, digits)
        rows = X[some][: options.rows], (y[some] == digits[1])[: options.rows]
        yield Problem(f"{digits[0]} against {digits[1]}", *rows, held[tested], truth[tested] == digits[1])
    for digit in options.rest:
        yield rest(digit, options, X, y, held, truth)


def rest(digit: int, options: argparse.Namespace, X: Any, y: Any, held: Any, truth: Any) -> Problem:
    return Problem(f"{digit} against the rest", X[: options.rows], y[: options.rows] == digit, held, truth == digit)


def learners(options: argparse.Namespace) -> dict[str, Callable[[float], Any]]:
    C, gamma = options.C, options.gamma
    return {
        "SVC": lambda cache: SVC(C=C, gamma=gamma, cache_size=cache),
        "LASVM ×1": lambda cache: LaSVMClassifier(C, gamma=gamma, cache_mb=cache, random_state=0),
        "LASVM ×2": lambda cache: LaSVMClassifier(C, gamma=gamma, cache_mb=cache, passes=2, random_state=0),
    }


def train(problem: Problem, learner: str, make: Callable[[float], Any], cache: float) -> Figures:
    model = make(cache)
    start = time.process_time()
    model.fit(problem.X, problem.y)
    seconds = time.process_time() - start
    error = 100.0 * float(np.mean(model.predict(problem.held) != problem.truth))
    support = int(np.sum(model.n_support_))
    values = float(getattr(model, "kernel_evaluations_", support * len(problem.y)))
    out = Figures(problem.name, learner, cache, error, seconds, support, values)
    data.say(f"{problem.name}, {cache:g} MB, {learner}: {error:.2f} %, {seconds:.1f} s, {support} support vectors")
    return out


def as_table(figures: list[Figures]) -> str:
    cells = [["problem", "cache MB", "learner", "error %", "seconds", "times SVC's speed", "SVs", "kernel values"]]
    for f in figures:
        peer = next(p for p in figures if (p.problem, p.cache_mb, p.learner) == (f.problem, f.cache_mb, "SVC"))
        speed = f"{peer.seconds / max(f.seconds, 1e-9):.1f}"
        least = "≥ " if f.learner == "SVC" else ""
        row = [f.problem, f"{f.cache_mb:g}", f.learner, f"{f.error:.2f}", f"{f.seconds:.1f}", speed, str(f.support)]
        cells.append([*row, f"{least}{f.kernel_values:.2e}"])
    return data.table(cells, left=1)


def draw(figures: list[Figures], swept: list[Figures], path: str) -> None:
    """Error, time and support vectors of each problem; time against the cache, relative to each learner's best."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(f.problem for f in figures))
    kinds = list(dict.fromkeys(f.learner for f in (*figures, *swept)))
    picture, axes = pyplot.subplots(2, 2, figsize=(10, 7), constrained_layout=True)
    quantities = (("error", "test error (%)"), ("seconds", "training (s)"), ("support", "support vectors"))
    for axis, (quantity, label) in zip(axes.flat, quantities, strict=False):
        for i, kind in enumerate(kinds):
            heights = [getattr(f, quantity) for f in figures if f.learner == kind]
            axis.bar(np.arange(len(heights)) + 0.27 * (i - 1), heights, 0.25, label=kind)
        axis.set_xticks(range(len(names)), names, rotation=20 if len(names) > 3 else 0, fontsize=8)
        axis.set_ylabel(label)
    for kind in kinds:
        line = sorted((f.cache_mb, f.seconds) for f in swept if f.learner == kind)
        if line:
            best = min(seconds for _, seconds in line)
            axes[1, 1].plot([mb for mb, _ in line], [s / best for _, s in line], "o-", label=kind)
    axes[1, 1].set_xscale("log", base=2)
    axes[1, 1].set_xlabel("kernel cache (MB)")
    axes[1, 1].set_ylabel("training time, relative to its best")
    axes[0, 0].legend()
    picture.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first 4,000 training rows of each problem")
    parser.add_argument("--pairs", nargs="*", default=["4,9", "3,8"])
    parser.add_argument("--rest", nargs="*", type=int, default=[])
    parser.add_argument(
        "--cache", nargs="*", type=float, default=[], help="sizes to sweep, on --digit against the rest"
    )
    parser.add_argument("--digit", type=int, default=8)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--C", type=float, default=1000.0)
    parser.add_argument("--gamma", type=float, default=0.005)
    parser.add_argument("--json")
    parser.add_argument("--plot")
    options = parser.parse_args()
    options.rows = min(options.rows, 4000) if options.quick else options.rows
    kinds = learners(options)
    figures = [train(problem, kind, kinds[kind], 256) for problem in problems(options) for kind in kinds]
    swept = []
    if options.cache:
        problem = rest(options.digit, options, *data.mnist())
        swept = [train(problem, kind, kinds[kind], cache) for cache in options.cache for kind in ("SVC", "LASVM ×1")]
    for part in (figures, swept):
        if part:
            print(as_table(part), end="\n\n")
    if options.json:
        Path(options.json).write_text(json.dumps([dataclasses.asdict(f) for f in (*figures, *swept)], indent=1))
    if options.plot:
        draw(figures, swept, options.plot)


if __name__ == "__main__":
    main()
