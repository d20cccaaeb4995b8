"""LASVM after one and two passes against scikit-learn's SVC (LIBSVM) on pairs of MNIST digits, and by size of cache."""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import datasets
from ..charts import Line
from .framework import Cell, Check, Experiment, NotRun, Numbers, Report, Result, Results
from .pictures import Dot, curves, dots, picture
from .writing import markdown_table

__all__ = ["MnistLasvm", "experiment"]

PAIRS = tuple(f"{a}-{b}" for a, b in itertools.combinations(range(10), 2))
QUICK_PAIRS = ("4-9", "3-8")
CACHES = (4, 8, 16, 32, 64, 256)  # megabytes
LEARNERS = ("SVC", "LASVM ×1", "LASVM ×2")
C, GAMMA = 1000.0, 0.005  # of the paper's MNIST runs
ROWS = 12_000  # for the ten digits together and for the cache


class MnistLasvm(Experiment):
    name = "mnist-lasvm"
    title = "LASVM after one and two passes against scikit-learn's SVC on MNIST"
    seeds = 1
    timed = True
    protocol = f"""
Bordes, Ertekin, Weston and Bottou, *Fast kernel classifiers with online and active learning*, JMLR 2005, section 5.
MNIST, grey from 0 to 1, Gaussian kernel, C = {C:g}, γ = {GAMMA:g} (the paper's). Against scikit-learn's SVC (LIBSVM)
with the same C, γ and cache, in the same process, in turns, one thread, one cell at a time; seconds are processor time
to train. LASVM sees the rows in an order drawn from the seed and finishes at the end; ×2 is two passes.

- **pair**: all 45 pairs of digits, all their training and test rows, 256 MB of cache.
- **ten**: all ten digits, one-vs-one, the first {ROWS:,} training rows (of all 60,000 SVC would take very long), all
  10,000 test rows, 256 MB.
- **cache**: 8 against the rest, the first {ROWS:,} rows, by megabytes of cache.

Kernel values: LASVM counts them. LIBSVM does not; its figure is rows × support vectors, summed over its machines: the
row of every support vector once. Without shrinking that is the least it can do. Shrinking shortens rows; a cache that
is too small repeats them; vectors that come and go add rows.
"""

    def cells(self, quick: bool) -> list[Cell]:
        pairs: list[Cell] = [{"problem": "pair", "digits": pair} for pair in (QUICK_PAIRS if quick else PAIRS)]
        caches: list[Cell] = [{"problem": "cache", "cache": cache} for cache in ((8, 64) if quick else CACHES)]
        return [*pairs, {"problem": "ten"}, *caches]

    def data(self, cell: Cell) -> list[tuple[str, str | None]]:
        return [("mnist", "train"), ("mnist", "test")]

    def run(self, cell: Cell, seed: int, quick: bool) -> Numbers:
        X, y, held, truth = problem(cell, 2000 if quick else None)
        numbers: Numbers = {"rows": len(y)}
        for learner in LEARNERS if cell["problem"] != "cache" else LEARNERS[:2]:
            numbers |= {
                f"{learner} {key}": value for key, value in _train(learner, cell, seed, X, y, held, truth).items()
            }
        return numbers

    def report(self, results: Results) -> Report:
        parts = []
        if pairs := [r for r in results.where(problem="pair") if r.runs]:
            parts.append(f"## {len(pairs)} pairs of digits\n\n" + _table(Results(pairs), "digits"))
        if ten := results.one(problem="ten"):
            parts.append("## Ten digits, one-vs-one\n\n" + _table(Results([ten]), "problem"))
        if cache := [r for r in results.where(problem="cache") if r.runs]:
            parts.append("## By size of the cache: 8 against the rest\n\n" + _table(Results(cache), "cache"))
        if gone := next((r.missing for r in results if r.missing), None):
            parts.append(f"missing: {gone}")
        return Report("\n\n".join(parts), {"figures": _draw(results)}, [] if results.quick else _checks(results))


@functools.lru_cache(maxsize=2)
def _mnist(part: str) -> tuple[Any, Any]:
    chunks = list(datasets.load("mnist", part).chunks(10_000))
    return np.concatenate([X for X, _ in chunks]).astype(np.float32), np.concatenate([y for _, y in chunks])


def problem(cell: Cell, most: int | None) -> tuple[Any, Any, Any, Any]:
    """X, y, test X, test y."""
    (X, y), (held, truth) = _mnist("train"), _mnist("test")
    if cell["problem"] == "pair":
        digits = [int(digit) for digit in str(cell["digits"]).split("-")]
        some, tested = np.isin(y, digits), np.isin(truth, digits)
        X, y, held, truth = X[some], y[some], held[tested], truth[tested]
    else:
        X, y = X[:ROWS], y[:ROWS]
        if cell["problem"] == "cache":
            y, truth = (y == 8).astype(np.int64), (truth == 8).astype(np.int64)
    return X[:most], y[:most], held[:most], truth[:most]


def _train(learner: str, cell: Cell, seed: int, X: Any, y: Any, held: Any, truth: Any) -> Numbers:
    model = _model(learner, float(cell.get("cache", 256)), seed)
    began = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - began
    support = len(model.support_vectors_)
    return {
        "error": 100.0 * float(np.mean(model.predict(held) != truth)),
        "seconds": seconds,
        "support": support,
        "kernel values": float(least_values(model, y) if learner == "SVC" else model.kernel_evaluations_),
    }


def least_values(model: Any, y: Any) -> int:
    """Rows × support vectors of each machine of an SVC, one-vs-one."""
    counts = [int(np.sum(y == label)) for label in model.classes_]
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    total = 0
    for i, j in itertools.combinations(range(len(counts)), 2):
        # dual_coef_: those of class i against j stand in row j − 1, those of class j against i in row i.
        ours, theirs = (model.dual_coef_[row, ends[k] : ends[k + 1]] for k, row in ((i, j - 1), (j, i)))
        total += (counts[i] + counts[j]) * int(np.count_nonzero(ours) + np.count_nonzero(theirs))
    return total


def _model(learner: str, cache: float, seed: int) -> Any:
    if learner == "SVC":
        from sklearn.svm import SVC

        return SVC(C=C, gamma=GAMMA, cache_size=cache)
    from ..lasvm import LaSVMClassifier

    passes = 2 if learner == "LASVM ×2" else 1
    return LaSVMClassifier(C, gamma=GAMMA, cache_mb=cache, passes=passes, multiclass="ovo", random_state=seed)


_FORMS: dict[str, tuple[str, Callable[[float], str]]] = {  # the columns: heading, and how a figure is written
    "error": ("error %", lambda value: f"{value:.2f}"),
    "seconds": ("seconds", lambda value: f"{value:.2f}"),
    "support": ("support vectors", lambda value: f"{value:,.0f}"),
    "kernel values": ("kernel values, millions", lambda value: f"{value / 1e6:.1f}"),
}


def _table(results: Results, field: str) -> str:
    """A row for each problem; several pairs end with their mean."""
    learners = [name for name in LEARNERS if f"{name} error" in next(iter(results[0].runs.values()))]
    names = " / ".join(learners)
    rows = [["cache, MB" if field == "cache" else "digits", *(heading for heading, _ in _FORMS.values()), "speed"]]
    for r in results:
        rows.append([str(r.cell[field]), *_figures([r], learners)])
    if field == "digits" and len(results) > 1:
        rows.append(["**mean**", *_figures(results, learners)])
    return f"Columns: {names}; *speed* is SVC's seconds over those of LASVM ×1.\n\n{markdown_table(rows)}"


def _figures(results: Sequence[Result], learners: Sequence[str]) -> list[str]:
    means = {(a, key): statistics.fmean(r.mean(f"{a} {key}") for r in results) for a in learners for key in _FORMS}
    out = [" / ".join(show(means[a, key]) for a in learners) for key, (_, show) in _FORMS.items()]
    return [*out, f"{means['SVC', 'seconds'] / means['LASVM ×1', 'seconds']:.1f}"]


def _draw(results: Results) -> str:
    panels, pairs = [], [r for r in results.where(problem="pair") if r.runs]
    hardest = sorted(pairs, key=lambda r: -r.mean("SVC error"))[:12]
    names = [str(r.cell["digits"]).replace("-", " against ") for r in hardest]
    for i, (key, across) in enumerate(
        (("error", "test error (%)"), ("seconds", "training (s)"), ("support", "support vectors"))
    ):
        points = [
            Dot(name, r.mean(f"{learner} {key}"), colour=LEARNERS.index(learner) + 1)
            for name, r in zip(names, hardest, strict=True)
            for learner in LEARNERS
        ]
        if names:
            panels.append(dots(names, points, title=across, across=across, names=i == 0, width=340 if i == 0 else 260))
    cache = [r for r in results.where(problem="cache") if r.runs]
    lines = [
        Line(a, [float(r.cell["cache"]) for r in cache], [r.mean(f"{a} seconds") for r in cache], LEARNERS.index(a) + 1)
        for a in LEARNERS[:2]
    ]
    if cache:
        panels.append(
            curves(
                lines,
                title="8 against the rest: training (s)",
                across="cache (MB)",
                log=True,
                width=300,
                height=290,
            )
        )
    keys = [Dot(name, 0, colour=i + 1) for i, name in enumerate(LEARNERS)]
    return picture(
        panels, keys, title="LASVM against SVC on MNIST: the hardest pairs of digits, and by size of cache", columns=4
    )


def _checks(results: Results) -> list[Check]:
    def pairs(key: str, learner: str) -> tuple[list[float], list[float]]:
        found = [r for r in results.where(problem="pair") if r.runs]
        if len(found) < len(PAIRS):
            raise NotRun(f"{len(found)} of {len(PAIRS)} pairs were run")
        return [r.mean(f"SVC {key}") for r in found], [r.mean(f"{learner} {key}") for r in found]

    def error() -> tuple[bool, str]:
        theirs, ours = pairs("error", "LASVM ×1")
        gap = float(np.mean(ours) - np.mean(theirs))
        worst = max(b - a for a, b in zip(theirs, ours, strict=True))
        return gap <= 0.2, f"{np.mean(ours):.2f} against {np.mean(theirs):.2f} on average; the worst pair {worst:+.2f}"

    def total(key: str, unit: str, scale: float = 1.0) -> tuple[bool, str]:
        theirs, ours = pairs(key, "LASVM ×1")
        said = f"{sum(ours) / scale:,.0f}{unit} against {sum(theirs) / scale:,.0f}{unit} in all"
        return all(b < a for a, b in zip(theirs, ours, strict=True)), said

    return [
        Check.of("pairs: one pass is within 0.2 points of SVC's error", error),
        Check.of("pairs: one pass takes less time than SVC, on every pair", total, "seconds", " s"),
        Check.of("pairs: one pass takes fewer kernel values, on every pair", total, "kernel values", " M", 1e6),
    ]


experiment = MnistLasvm()
