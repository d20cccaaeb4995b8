"""LASVM after one and two passes against scikit-learn's SVC (LIBSVM) on MNIST: each digit, pairs of them, by cache."""

from __future__ import annotations

import functools
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import datasets
from ..charts.lines import Line
from .framework import Cell, Check, Experiment, NotRun, Numbers, Report, Result, Results
from .pages import markdown_table
from .pictures import Dot, Panel, curves, dots, picture

__all__ = ["MnistLasvm", "experiment"]

PAIRS = tuple(f"{a}-{b}" for a, b in itertools.combinations(range(10), 2))
QUICK_PAIRS = ("4-9", "3-8")
DIGITS = tuple(f"{digit}" for digit in range(10))
CACHED_PAIR = "3-8"  # the pair with the most support vectors
CACHES = (4, 8, 16, 32, 64, 256)  # megabytes
LEARNERS = ("SVC", "LASVM ×1", "LASVM ×2")
C, GAMMA = 1000.0, 0.005  # the cache of the paper's MNIST runs
ROWS = 12_000  # for runs with all ten digits


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

- **rest**: each digit against the rest, as in the paper, on the first {ROWS:,} training rows (of all 60,000 SVC would
  take very long) and all 10,000 test rows, 256 MB of cache.
- **pair**: all 45 pairs of digits, all their training and test rows, 256 MB.
- **ten**: all ten digits, one-vs-one, the first {ROWS:,} training rows, all test rows, 256 MB.
- **cache**: 8 against the rest on the first {ROWS:,} rows, and 3 against 8 on all theirs, by megabytes of cache.

Kernel values: LASVM counts them. LIBSVM does not; its figure is rows × support vectors, summed over its machines: the
row of every support vector once. Without shrinking that is the least it can do. Shrinking shortens rows; a cache that
is too small repeats them; vectors that come and go add rows. On ten digits LASVM's machines share their vectors, and
each row meets all of them, also those that the machines of its digit do not use; LIBSVM's 45 machines share nothing.
"""

    def cells(self, quick: bool) -> list[Cell]:
        pairs: list[Cell] = [{"problem": "pair", "digits": pair} for pair in (QUICK_PAIRS if quick else PAIRS)]
        rest: list[Cell] = [{"problem": "rest", "digit": digit} for digit in (("8",) if quick else DIGITS)]
        caches: list[Cell] = [
            {"problem": "cache", **digits, "cache": cache}
            for digits in ({}, {"digits": CACHED_PAIR})
            for cache in ((8, 64) if quick else CACHES)
        ]
        return [*rest, *pairs, {"problem": "ten"}, *caches]

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
        if rest := [r for r in results.where(problem="rest") if r.runs]:
            parts.append("## Each digit against the rest\n\n" + _table(Results(rest), "digit"))
        if pairs := [r for r in results.where(problem="pair") if r.runs]:
            parts.append(f"## {len(pairs)} pairs of digits\n\n" + _table(Results(pairs), "digits"))
        if ten := results.one(problem="ten"):
            parts.append("## Ten digits, one-vs-one\n\n" + _table(Results([ten]), "problem"))
        for words, cache in _by_cache(results):
            parts.append(f"## By size of the cache: {words}\n\n" + _table(Results(cache), "cache"))
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
    if "digits" in cell:
        digits = [int(digit) for digit in str(cell["digits"]).split("-")]
        some, tested = np.isin(y, digits), np.isin(truth, digits)
        X, y, held, truth = X[some], y[some], held[tested], truth[tested]
    else:
        X, y = X[:ROWS], y[:ROWS]
        if cell["problem"] != "ten":
            digit = int(cell.get("digit", 8))
            y, truth = (y == digit).astype(np.int64), (truth == digit).astype(np.int64)
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
        # In dual_coef_, the coefficients of class i against j are in row j − 1, those of class j against i in row i.
        ours, theirs = (model.dual_coef_[row, ends[k] : ends[k + 1]] for k, row in ((i, j - 1), (j, i)))
        total += (counts[i] + counts[j]) * int(np.count_nonzero(ours) + np.count_nonzero(theirs))
    return total


def _model(learner: str, cache: float, seed: int) -> Any:
    if learner == "SVC":
        from sklearn.svm import SVC

        return SVC(C=C, gamma=GAMMA, cache_size=cache)
    from ..estimators.lasvm import LaSVMClassifier

    passes = 2 if learner == "LASVM ×2" else 1
    return LaSVMClassifier(C, gamma=GAMMA, cache_mb=cache, passes=passes, multiclass="ovo", random_state=seed)


_FORMS: dict[str, tuple[str, Callable[[float], str]]] = {  # the columns: heading, and how a figure is written
    "error": ("error %", lambda value: f"{value:.2f}"),
    "seconds": ("seconds", lambda value: f"{value:.2f}"),
    "support": ("support vectors", lambda value: f"{value:,.0f}"),
    "kernel values": ("kernel values, millions", lambda value: f"{value / 1e6:.1f}"),
}


def _table(results: Results, field: str) -> str:
    """A row for each problem; several end with their mean, but not the sizes of cache."""
    learners = [name for name in LEARNERS if f"{name} error" in next(iter(results[0].runs.values()))]
    names = " / ".join(learners)
    rows = [["cache, MB" if field == "cache" else "digits", *(heading for heading, _ in _FORMS.values()), "speed"]]
    for r in results:
        rows.append([str(r.cell[field]), *_figures([r], learners)])
    if field != "cache" and len(results) > 1:
        rows.append(["**mean**", *_figures(results, learners)])
    return f"Columns: {names}; *speed* is SVC's seconds over those of LASVM ×1.\n\n{markdown_table(rows)}"


def _figures(results: Sequence[Result], learners: Sequence[str]) -> list[str]:
    means = {(a, key): statistics.fmean(r.mean(f"{a} {key}") for r in results) for a in learners for key in _FORMS}
    out = [" / ".join(show(means[a, key]) for a in learners) for key, (_, show) in _FORMS.items()]
    return [*out, f"{means['SVC', 'seconds'] / means['LASVM ×1', 'seconds']:.1f}"]


def _by_cache(results: Results) -> list[tuple[str, list[Result]]]:
    """The parameters of a cell, and its runs."""
    ran = [r for r in results.where(problem="cache") if r.runs]
    pair = CACHED_PAIR.replace("-", " against ")
    both = (
        ("8 against the rest", [r for r in ran if "digits" not in r.cell]),
        (pair, [r for r in ran if "digits" in r.cell]),
    )
    return [(words, runs) for words, runs in both if runs]


def _draw(results: Results) -> str:
    """As the paper's figures: error, time and support vectors of each problem; time by size of cache."""
    pairs = sorted((r for r in results.where(problem="pair") if r.runs), key=lambda r: -r.mean("SVC error"))[:10]
    rest = [r for r in results.where(problem="rest") if r.runs]
    caches = _by_cache(results)
    panels = []
    for i, rows in enumerate((rest, pairs)):
        panels += _problem_panels(rows) if rows else []
        panels += [_cache_panel(words, runs) for words, runs in caches[i : i + 1]]
    keys = [Dot(name, 0, colour=i + 1) for i, name in enumerate(LEARNERS)]
    title = "LASVM against SVC on MNIST: digits against the rest, the hardest pairs, and by size of cache"
    return picture(panels, keys, title=title, columns=4)


def _problem_panels(rows: list[Result]) -> list[Panel]:
    """Error, time and support vectors of each problem."""
    names = [_problem_words(r.cell) for r in rows]
    panels = []
    for key, across in (("error", "test error (%)"), ("seconds", "training (s)"), ("support", "support vectors")):
        points = [
            Dot(name, r.mean(f"{learner} {key}"), colour=LEARNERS.index(learner) + 1)
            for name, r in zip(names, rows, strict=True)
            for learner in LEARNERS
        ]
        first = key == "error"
        panels.append(dots(names, points, title=across, across=across, names=first, width=340 if first else 260))
    return panels


def _cache_panel(words: str, runs: list[Result]) -> Panel:
    """Training time by size of cache."""
    sizes = [float(r.cell["cache"]) for r in runs]
    lines = [Line(a, sizes, [r.mean(f"{a} seconds") for r in runs], LEARNERS.index(a) + 1) for a in LEARNERS[:2]]
    return curves(lines, title=f"{words}: training (s)", across="cache (MB)", log=True, width=300, height=250)


def _problem_words(cell: Cell) -> str:
    return f"{cell['digit']} against the rest" if "digit" in cell else str(cell["digits"]).replace("-", " against ")


def _checks(results: Results) -> list[Check]:
    def both(problem: str, key: str) -> tuple[list[float], list[float]]:
        """SVC's figures and those of one pass."""
        found = [r for r in results.where(problem=problem) if r.runs]
        wanted = len({"pair": PAIRS, "rest": DIGITS, "ten": ("ten",)}[problem])
        if len(found) < wanted:
            raise NotRun(f"{len(found)} of {wanted} were run")
        return [r.mean(f"SVC {key}") for r in found], [r.mean(f"LASVM ×1 {key}") for r in found]

    def error(problem: str) -> tuple[bool, str]:
        theirs, ours = both(problem, "error")
        worst = max(b - a for a, b in zip(theirs, ours, strict=True))
        said = f"{np.mean(ours):.2f} against {np.mean(theirs):.2f} on average; the worst {worst:+.2f}"
        return worst <= 0.2, said

    def total(problem: str, key: str, unit: str, scale: float = 1.0) -> tuple[bool, str]:
        theirs, ours = both(problem, key)
        said = f"{sum(ours) / scale:,.0f}{unit} against {sum(theirs) / scale:,.0f}{unit} in all"
        return all(b < a for a, b in zip(theirs, ours, strict=True)), said

    def ten() -> tuple[bool, str]:
        (svc,), (ours,) = both("ten", "seconds")
        return ours < svc, f"{ours:.1f} s against {svc:.1f} s"

    def cache() -> tuple[bool, str]:
        """How many times as long training takes with the smallest cache as with the largest."""
        found = _by_cache(results)
        if [len(runs) for _, runs in found] != [len(CACHES)] * 2:
            raise NotRun("not all sizes of cache were run")
        growth = {
            words: [runs[0].mean(f"{a} seconds") / runs[-1].mean(f"{a} seconds") for a in LEARNERS[:2]]
            for words, runs in found
        }
        said = "; ".join(f"{words}: {ours:.1f} times against {svc:.1f} times" for words, (svc, ours) in growth.items())
        return all(ours < svc for svc, ours in growth.values()), said

    claims = []
    for problem, words in (("rest", "each digit against the rest"), ("pair", "pairs")):
        claims += [
            Check.of(f"{words}: one pass is within 0.2 points of SVC's error", error, problem),
            Check.of(f"{words}: one pass takes less time than SVC, each time", total, problem, "seconds", " s"),
            Check.of(
                f"{words}: one pass takes fewer kernel values, each time", total, problem, "kernel values", " M", 1e6
            ),
        ]
    return [
        *claims,
        Check.of("ten digits: one pass is within 0.2 points of SVC's error", error, "ten"),
        Check.of("ten digits: one pass takes less time than SVC", ten),
        Check.of("a small cache costs LASVM less than SVC", cache),
    ]


experiment = MnistLasvm()
