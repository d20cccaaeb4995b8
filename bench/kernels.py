"""Kernel PA-I with the Gaussian kernel on a budget, against a tight NumPy loop in the same run; growth of costs.

python bench/kernels.py [--quick] [--repeats N] [--json FILE]

The NumPy side keeps ‖x_i‖², calls BLAS once per example and reuses its buffers; both drop the oldest when full: the
same work. Single-threaded: OPENBLAS_NUM_THREADS=1 is set before NumPy is imported.
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
from onepass.evaluate import text_table
from onepass.kernel_model import KernelModel


class TightNumpy:
    """Kernel PA-I that keeps the newest B support vectors."""

    def __init__(self, d: int, B: int, gamma: float, C: float = 1.0) -> None:
        self.S, self.norms, self.c = np.zeros((B, d)), np.zeros(B), np.zeros(B)
        self.k = np.zeros(B)
        self.n = self.at = self.updates = 0
        self.B, self.gamma, self.C = B, gamma, C

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
    """Noise: every example is an update, and the set stays full."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) / np.sqrt(d), rng.choice([-1, 1], n)


def against_numpy(quick: bool, repeats: int) -> list[dict[str, Any]]:
    out = []
    for d in (54, 784):
        for B in (100, 1000) if quick else (100, 1000, 10_000):
            rows = max(60, min(4000, 200_000_000 // (d * B * (8 if quick else 2))))
            X0, y0 = stream(B, d, 1)
            X, y = stream(rows, d)

            def ours(d: int = d, B: int = B, X0: Any = X0, y0: Any = y0) -> KernelModel:
                model = KernelModel("pa1", "binary", kernel=kernels.RBF(1.0), budget=budgets.Oldest(B), classes=[-1, 1])
                model.learn_many(X0, y0)
                return model

            def theirs(d: int = d, B: int = B, X0: Any = X0, y0: Any = y0) -> TightNumpy:
                model = TightNumpy(d, B, 1.0)
                model.learn(X0, y0)
                return model

            sides = [
                (ours, lambda m, X=X, y=y: m.learn_many(X, y)),
                (theirs, lambda m, X=X, y=y: m.learn(X, y)),
            ]
            (a, b), (model, peer) = in_turn(sides, repeats, "cpu")
            assert model.n_support == peer.n
            assert abs(model.k - B - (peer.updates - B)) <= 0.01 * rows  # the same work, rounding apart
            say(f"d={d} B={B}: {rows / a:,.0f} against {rows / b:,.0f} examples a second")
            flops = rows * B * d * 2 / a / 1e9  # a product and a sum
            out.append({"d": d, "B": B, "ours": rows / a, "numpy": rows / b, "ratio": b / a, "GFLOP/s": flops})
    return out


def peak() -> float:
    """What this machine adds and multiplies at best: GFLOP/s of a matrix product (with fused multiply-add)."""
    A = np.random.default_rng(0).normal(size=(800, 800))
    best = np.inf
    for _ in range(10):
        start = time.perf_counter()
        A @ A
        best = min(best, time.perf_counter() - start)
    return float(2 * 800**3 / best / 1e9)


def update_cost(quick: bool) -> list[dict[str, Any]]:
    """Seconds an update of BPA-P against B, and the exponent of the fit (2, not 3)."""
    out = []
    sizes = (50, 100, 200) if quick else (100, 200, 400, 800)
    for name, kind in (("BPA-P", budgets.BPAP), ("BPA-NN", budgets.BPANN), ("BPA-S", budgets.BPAS)):
        seconds = []
        for B in sizes:
            X, y = stream(2 * B + 200, 8, 2)
            model = KernelModel("pa1", "binary", kernel=kernels.RBF(2.0), budget=kind(B), classes=[-1, 1])
            model.learn_many(X[: 2 * B], y[: 2 * B])
            updates = model.k
            start = time.process_time()
            model.learn_many(X[2 * B :], y[2 * B :])
            seconds.append((time.process_time() - start) / max(1, model.k - updates))
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        out.append({"budget": name, **{f"B={B}": s for B, s in zip(sizes, seconds, strict=True)}, "exponent": slope})
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
    print(f"\nkernel PA-I, RBF, the oldest goes; a matrix product here: {best:.0f} GFLOP/s (with fused multiply-add)\n")
    rows = [
        [r["d"], r["B"], f"{r['ours']:,.0f}", f"{r['numpy']:,.0f}", f"{r['ratio']:.1f}", f"{r['GFLOP/s']:.1f}"]
        for r in speeds
    ]
    head = ["d", "B", "ours ex/s", "NumPy ex/s", "ratio", "GFLOP/s"]
    print(text_table([head, *([str(cell) for cell in row] for row in rows)]))
    print("\nmicroseconds an update, and the exponent of its growth with B\n")
    names = [key for key in costs[0] if key.startswith("B=")]
    table = [[r["budget"], *(f"{1e6 * r[n]:.1f}" for n in names), f"{r['exponent']:.2f}"] for r in costs]
    print(text_table([["", *names, "exponent"], *table], left=1))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": about, "speed": speeds, "cost": costs, "peak": best}, file, indent=1)


if __name__ == "__main__":
    main()
