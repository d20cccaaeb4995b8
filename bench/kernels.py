"""Kernel PA-I with the Gaussian kernel on a budget, against a tight NumPy loop in the same run; growth of costs.

python bench/kernels.py [--quick] [--repeats N] [--json FILE]

The NumPy loop stores ‖x_i‖², calls BLAS once per example and reuses its buffers. Both remove the oldest vector when
full, so they do the same work. Single-threaded: OPENBLAS_NUM_THREADS=1 is set before NumPy is imported. With
ONEPASS_DATA also on the rows of covtype and MNIST, where many columns are 0 in all of 16 rows: our loops leave them
out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from timing import header, in_turn, machine, say

from onepass import budgets, kernels
from onepass.charts.text import text_table
from onepass.models.kernel import KernelModel


class TightNumpy:
    """Kernel PA-I with the newest B support vectors."""

    def __init__(self, d: int, B: int, gamma: float, C: float = 1.0) -> None:
        self.S, self.norms, self.c = np.zeros((B, d)), np.zeros(B), np.zeros(B)
        self.k = np.zeros(B)
        self.n = self.at = self.updates = 0
        self.B, self.gamma, self.C = B, gamma, C

    def fill(self, support: np.ndarray, c: np.ndarray, births: np.ndarray) -> TightNumpy:
        order = np.argsort(births)  # the slot of the oldest vector, which is replaced next
        self.S[:], self.c[:] = support[order], c[order]
        self.norms[:] = np.einsum("ij,ij->i", self.S, self.S)
        self.n = self.B
        return self

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        norms = np.einsum("ij,ij->i", X, X)
        for x, xx, label in zip(X, norms.tolist(), y.tolist(), strict=True):
            n, k = self.n, self.k[: self.n]
            np.dot(self.S[:n], x, out=k)
            k *= 2.0
            k -= self.norms[:n]
            k -= xx
            k *= self.gamma
            np.minimum(k, 0.0, out=k)
            np.exp(k, out=k)
            loss = 1.0 - label * float(self.c[:n] @ k)
            if loss > 0:
                at = self.at
                self.S[at], self.norms[at], self.c[at] = x, xx, label * min(self.C, loss)
                self.at = (at + 1) % self.B
                self.n = min(self.B, n + 1)
                self.updates += 1


def stream(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noise: every example is an update, so the set stays full."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) / np.sqrt(d), rng.choice([-1, 1], n)


def real(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A set's first rows, columns between 0 and 1, of length 1; labels at random: the set stays full here too."""
    from onepass import datasets

    X = np.asarray(next(iter(datasets.load(name).chunks(n)))[0], dtype=np.float64)
    X = (X - X.min(axis=0)) / np.maximum(X.max(axis=0) - X.min(axis=0), 1e-300)
    return X / np.linalg.norm(X, axis=1)[:, None], np.random.default_rng(0).choice([-1, 1], n)


def against_numpy(quick: bool, repeats: int) -> list[dict[str, Any]]:
    out = []
    sets = [("covtype", 54), ("mnist", 784)] if "ONEPASS_DATA" in os.environ else []
    for data, d in [("noise", 54), ("noise", 784), *sets]:
        for B in (100, 1000) if quick else (100, 1000, 10_000):
            rows = max(160, min(4000, 400_000_000 // (d * B * (4 if quick else 1))))
            if data != "noise":
                X, y = real(data, B + rows)
                X0, y0, X, y = X[:B], y[:B], X[B:].copy(), y[B:]
            else:
                X0, y0 = stream(B, d, 1)
                X, y = stream(rows, d)
            full = KernelModel("pa1", "binary", kernel=kernels.RBF(1.0), budget=budgets.Oldest(B), classes=[-1, 1])
            while full.n_support < B:
                full.learn_many(X0, y0)
            config, arrays = full.state()

            def ours(config: Any = config, arrays: Any = arrays) -> KernelModel:
                return KernelModel.from_state(config, arrays)

            def theirs(d: int = d, B: int = B, full: KernelModel = full) -> TightNumpy:
                return TightNumpy(d, B, 1.0).fill(full.support, full.coefficients[:, 0], full.births)

            sides = [
                (ours, lambda m, X=X, y=y: m.learn_many(X, y)),
                (theirs, lambda m, X=X, y=y: m.learn(X, y)),
            ]
            (a, b), (model, peer) = in_turn(sides, repeats, "cpu")
            assert model.n_support == peer.n
            assert abs(model.k - full.k - peer.updates) <= 0.01 * rows  # the same work, up to rounding errors
            say(f"{data} d={d} B={B}: {rows / a:,.0f} against {rows / b:,.0f} examples a second")
            flops = rows * B * d * 2 / a / 1e9  # a product and a sum
            speeds = {"ours": rows / a, "numpy": rows / b, "ratio": b / a, "GFLOP/s": flops}
            out.append({"rows": data, "d": d, "B": B, **speeds})
    return out


def peak() -> float:
    """The arithmetic peak of this machine: GFLOP/s of a matrix product (with fused multiply-add)."""
    A = np.random.default_rng(0).normal(size=(800, 800))
    best = np.inf
    for _ in range(30):
        start = time.process_time()
        A @ A
        best = min(best, time.process_time() - start)
    return float(2 * 800**3 / best / 1e9)


def update_cost(quick: bool) -> list[dict[str, Any]]:
    """Seconds an update against B, best of three, and the exponent of the fit (BPA-P: 2, not 3)."""
    out = []
    sizes = (50, 100, 200) if quick else (100, 200, 400, 800)
    for name, kind in (("BPA-P", budgets.BPAP), ("BPA-NN", budgets.BPANN), ("BPA-S", budgets.BPAS)):
        seconds = []
        for B in sizes:
            # As many updates as there are from one fresh inverse to the next, so that its O(B^3) has its share.
            X, y = stream(2 * B + max(500, 4 * B), 8, 2)
            model = KernelModel("pa1", "binary", kernel=kernels.RBF(2.0), budget=kind(B), classes=[-1, 1])
            model.learn_many(X[: 2 * B], y[: 2 * B])
            config, arrays = model.state()

            def again(config: Any = config, arrays: Any = arrays) -> KernelModel:
                return KernelModel.from_state(config, arrays)

            sides = [(again, lambda m, X=X[2 * B :], y=y[2 * B :]: m.learn_many(X, y))]
            (best,), (after,) = in_turn(sides, 3, "cpu")
            seconds.append(best / max(1, after.k - model.k))
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        last = float(np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2]))
        costs = {f"B={B}": s for B, s in zip(sizes, seconds, strict=True)}
        out.append({"budget": name, **costs, "exponent": slope, "last doubling": last})
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    about = machine()
    speeds, costs, best = against_numpy(options.quick, options.repeats), update_cost(options.quick), peak()
    print(header(about))
    print("\nkernel PA-I, RBF, the oldest goes; one thread each, processor time, both sides in turns")
    print(f"a matrix product of BLAS here: {best:.0f} GFLOP/s (one thread, with fused multiply-add)\n")
    rows = [
        [
            r["rows"],
            r["d"],
            r["B"],
            f"{r['ours']:,.0f}",
            f"{r['numpy']:,.0f}",
            f"{r['ratio']:.2f}",
            *(["", ""] if r["rows"] != "noise" else [f"{r['GFLOP/s']:.1f}", f"{100 * r['GFLOP/s'] / best:.0f} %"]),
        ]
        for r in speeds
    ]
    head = ["rows", "d", "B", "ours ex/s", "NumPy ex/s", "ratio", "GFLOP/s", "of BLAS"]
    print(text_table([head, *([str(cell) for cell in row] for row in rows)], left=1))
    print("\nmicroseconds an update, and the exponent of its growth with B\n")
    names = [key for key in costs[0] if key.startswith("B=")]
    fits = ("exponent", "last doubling")
    table = [[r["budget"], *(f"{1e6 * r[n]:.1f}" for n in names), *(f"{r[fit]:.2f}" for fit in fits)] for r in costs]
    print(text_table([["", *names, *fits], *table], left=1))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": about, "speed": speeds, "cost": costs, "peak": best}, file, indent=1)


if __name__ == "__main__":
    main()
