"""LASVM against scikit-learn's SVC (LIBSVM) on pairs of MNIST digits, to the same test error.

ONEPASS_DATA=/path/to/data python bench/lasvm.py [--quick] [--pairs 4,9 3,8] [--clock cpu] [--repeats 3] [--json FILE]

Both train in one process and take turns; the best of three runs counts. LASVM goes once through the data and finishes;
where its error is more than a tenth of a point above SVC's it takes further passes, and these count. The project asks
for three times SVC's speed. "values/s" are the kernel values that LASVM computes in a second of its whole training
time.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import timing
from sklearn.svm import SVC

from onepass import LaSVMClassifier

TARGET = 3.0
SAME = 0.1  # points of error
SETTINGS = ((1000.0, 0.005), (10.0, 0.02))  # C and γ: those of the paper, and others with fewer errors


def measure(pair: tuple[int, int], C: float, gamma: float, options: argparse.Namespace) -> dict[str, Any]:
    X, y, held, truth = data_sets.mnist()
    some, tested = np.isin(y, pair), np.isin(truth, pair)
    X, y = X[some][: options.rows], y[some][: options.rows]
    held, truth = held[tested], truth[tested]

    def error(model: Any) -> float:
        return 100.0 * float(np.mean(model.predict(held) != truth))

    for passes in range(1, 6):
        sides = [
            (lambda: SVC(C=C, gamma=gamma, cache_size=256), lambda model: model.fit(X, y)),
            (
                lambda passes=passes: LaSVMClassifier(C, gamma=gamma, passes=passes, random_state=0),
                lambda model: model.fit(X, y),
            ),
        ]
        (theirs, ours), (svc, lasvm) = timing.in_turn(sides, options.repeats, options.clock)
        errors = error(svc), error(lasvm)
        if errors[1] <= errors[0] + SAME:
            break
    out = {"pair": f"{pair[0]}, {pair[1]}", "C": C, "gamma": gamma, "rows": len(y), "passes": passes}
    out |= {
        "SVC s": theirs,
        "LASVM s": ours,
        "ratio": theirs / ours,
        "SVC error %": errors[0],
        "LASVM error %": errors[1],
    }
    out |= {"SVC SVs": int(np.sum(svc.n_support_)), "LASVM SVs": lasvm.n_support_}
    out |= {"kernel values": lasvm.kernel_evaluations_, "values/s": lasvm.kernel_evaluations_ / ours}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4,000 rows of each pair, once")
    parser.add_argument("--pairs", nargs="*", default=["4,9", "3,8"])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clock", choices=list(timing.CLOCKS), default="wall")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.repeats = 4000, 1
    results = []
    for pair in options.pairs:
        first, second = (int(digit) for digit in pair.split(","))
        for C, gamma in SETTINGS:
            results.append(measure((first, second), C, gamma, options))
            timing.say(str(results[-1]))
    names = ["pair", "C", "gamma", "rows", "passes", "SVC s", "LASVM s", "ratio", "SVC error %", "LASVM error %"]
    names += ["SVC SVs", "LASVM SVs", "kernel values", "values/s"]
    cells = [names]
    for result in results:
        shown = [f"{result[name]:.3g}" if isinstance(result[name], float) else str(result[name]) for name in names]
        cells.append(shown)
    print(data_sets.table(cells))
    print(f"\nasked for: ratio >= {TARGET:g}; {timing.processor()}, clock {options.clock}")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
