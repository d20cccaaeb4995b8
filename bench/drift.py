"""Drift detectors, ours and River's, on the same numbers: false alarms, delays, misses, time; and learners monitored by
them.

``python bench/drift.py [--quick] [--json FILE]``. With ONEPASS_DATA also static and monitored learners on real streams.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from river import drift as river
from timing import header, machine, say

import onepass
from onepass import datasets
from onepass.drift import ADWIN, DDM, EDDM, HDDMA, HDDMW, KSWIN, DriftAdapt, DriftReset, DriftWindow, PageHinkley

PAIRS: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
    ("adwin", lambda: ADWIN(reset_on_drift=True), river.ADWIN),
    ("ddm", DDM, river.binary.DDM),
    ("eddm", EDDM, river.binary.EDDM),
    ("hddma", HDDMA, river.binary.HDDMA),
    ("hddmw", HDDMW, river.binary.HDDMW),
    ("kswin", KSWIN, lambda: river.KSWIN(seed=0)),
    ("page_hinkley, lam=20", lambda: PageHinkley(lam=20, river_start=True), lambda: river.PageHinkley(threshold=20)),
]
CHANGE = 2000  # the position at which the error rate changes from 0.2 to 0.5
WITHIN = 1000  # the longest delay; a later alarm is a miss
# Streams of each kind: 100, but fewer for KSWIN, whose peer in River takes a millisecond for each number.
STREAMS = {"kswin": 10}


def errors(kind: str, seed: int) -> np.ndarray:
    """0 and 1: nothing changes; at once; over 500 examples."""
    rng = np.random.default_rng([seed, 5])
    rate = np.full(CHANGE + WITHIN, 0.2)
    if kind != "none":
        rate[CHANGE:] = 0.5
    if kind == "gradual":
        rate[CHANGE : CHANGE + 500] = np.linspace(0.2, 0.5, 500)
    return (rng.random(len(rate)) < rate).astype(np.float64)


def alarms(detector: Any, xs: list[float]) -> list[int]:
    found = []
    ours = hasattr(detector, "alarms")
    for i, x in enumerate(xs):
        if ours:
            if detector.update(x):
                found.append(i)
        else:
            detector.update(int(x))
            if detector.drift_detected:
                found.append(i)
    return found


def measure(make: Callable[[], Any], streams: int) -> dict[str, float]:
    false, spent, count = 0, 0.0, 0
    out: dict[str, float] = {}
    for kind in ("none", "abrupt", "gradual"):
        delays = []
        for seed in range(streams):
            xs = errors(kind, seed).tolist()
            began = time.perf_counter()
            found = alarms(make(), xs)
            spent += time.perf_counter() - began
            count += len(xs)
            if kind == "none":
                false += len(found)
            else:
                delays.append(next((t - CHANGE for t in found if t >= CHANGE), math.inf))
        if kind != "none":
            seen = [delay for delay in delays if math.isfinite(delay)]
            out[f"{kind} delay"] = float(np.median(seen)) if seen else math.nan
            out[f"{kind} missed"] = 1.0 - len(seen) / len(delays)
    out["false alarms per 10,000"] = 1e4 * false / (streams * (CHANGE + WITHIN))
    out["microseconds"] = 1e6 * spent / count
    return out


def learners(quick: bool) -> list[dict[str, Any]]:
    """Progressive error of a static learner and of the same learner with a detector: the first 50,000 rows in file
    order.
    """
    rows = []
    for name in ("elec2", "spam-drift", "weather-noaa", "sea", "covtype"):
        stream = list(datasets.load(name).chunks(1000))[: 20 if quick else 50]
        for base in BASES:
            say(f"{name}, {base}")
            dense = isinstance(stream[0][0], np.ndarray)
            found = {"set": name, "base": base}
            for way, make in WAYS.items():
                model = make(BASES[base](dense))
                found[way] = onepass.prequential(model, stream, every=10**9).value
                if way == "adapt":
                    found["drifts"] = model.n_drifts_
            rows.append(found)
    return rows


BASES: dict[str, Callable[[bool], Any]] = {  # Gaussian for numbers, Bernoulli for words
    "naive Bayes": lambda dense: onepass.GaussianNB() if dense else onepass.BernoulliNB(),
    "averaged Perceptron": lambda dense: onepass.LinearClassifier("perceptron", readout="average"),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "static": lambda base: base,
    "adapt": DriftAdapt,
    "reset": DriftReset,
    "window": DriftWindow,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer streams")
    parser.add_argument("--json", help="write the figures here as well")
    given = parser.parse_args()
    about, figures = machine(), []
    print(header(about))
    heads = f"{'false/10⁴':>10} {'delay':>7} {'missed':>7} {'gradual':>8} {'missed':>7} {'µs':>7}"
    print(f"\n{'detector':22} {'whose':7} {heads}")
    for name, ours, theirs in PAIRS:
        say(name)
        for whose, make in (("ours", ours), ("River", theirs)):
            row = measure(make, 10 if given.quick else STREAMS.get(name, 100))
            figures.append({"detector": name, "whose": whose, **row})
            print(
                f"{name:22} {whose:7} {row['false alarms per 10,000']:10.2f} {row['abrupt delay']:7.0f} "
                f"{row['abrupt missed']:7.0%} {row['gradual delay']:8.0f} {row['gradual missed']:7.0%} "
                f"{row['microseconds']:7.2f}",
                flush=True,
            )
    rows: list[dict[str, Any]] = []
    if os.environ.get("ONEPASS_DATA"):
        rows = learners(given.quick)
        print(f"\nprogressive error\n{'stream':14} {'base':22}", *(f"{way:>8}" for way in WAYS), f"{'drifts':>7}")
        for row in rows:
            errors = (f"{row[way]:8.4f}" for way in WAYS)
            print(f"{row['set']:14} {row['base']:22}", *errors, f"{row['drifts']:7}")
    else:
        print("\nreal streams: set ONEPASS_DATA")
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"machine": about, "detectors": figures, "learners": rows}, file, indent=1)


if __name__ == "__main__":
    main()
