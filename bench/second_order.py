"""Second-order rules: diagonal AROW on sparse text; full AROW and RLS against NumPy's formula and River; forms of RLS;
GB/s of Σ.

python bench/second_order.py [--quick] [--repeats R] [--json FILE]

One process; the sides take turns and the best time counts. No other package has AROW. Its diagonal form is compared
with the formula in NumPy for each row, with plain dicts, and with a loop compiled by numba, which is the fastest that a
loop can be.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from timing import header, in_turn, machine, say

from onepass.charts.text import text_table
from onepass.models.linear import LinearModel
from onepass.scheme.spread import FORMS

Row = dict[str, Any]


def text_rows(rows: int, columns: int = 47_000, nonzeros: int = 68) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows like a bag of words: common words often, rare ones seldom; labels by a hidden direction, with noise."""
    rng = np.random.default_rng(0)
    words = np.minimum((columns ** rng.random((rows, nonzeros))).astype(np.int32), columns - 1)
    X = sparse.csr_matrix(
        (rng.random(rows * nonzeros) + 0.1, words.ravel(), np.arange(0, rows * nonzeros + 1, nonzeros)),
        shape=(rows, columns),
    )
    X.sum_duplicates()
    margin = X @ (rng.normal(size=columns) / np.sqrt(1 + np.arange(columns) % 97))
    return X, np.where(margin + 0.5 * rng.normal(size=rows) > np.median(margin), 1, -1)


def arow_numpy(X: sparse.csr_matrix, y: np.ndarray, lam: float) -> np.ndarray:
    mu, sigma = np.zeros(X.shape[1] + 1), np.ones(X.shape[1] + 1)
    for i in range(X.shape[0]):
        at = np.append(X.indices[X.indptr[i] : X.indptr[i + 1]], X.shape[1])
        x = np.append(X.data[X.indptr[i] : X.indptr[i + 1]], 1.0)
        m = y[i] * (mu[at] @ x)
        if m < 1:
            z = sigma[at] * x
            beta = x @ z + lam
            mu[at] += y[i] * (1 - m) / beta * z
            sigma[at] -= z * z / beta
    return mu


def arow_dicts(rows: list[dict[int, float]], y: list[int], lam: float) -> dict[int, float]:
    mu: dict[int, float] = {}
    sigma: dict[int, float] = {}
    for x, label in zip(rows, y, strict=True):
        m = label * sum(mu.get(j, 0.0) * value for j, value in x.items())
        if m < 1:
            beta = lam + sum(sigma.get(j, 1.0) * value * value for j, value in x.items())
            for j, value in x.items():
                z = sigma.get(j, 1.0) * value
                mu[j] = mu.get(j, 0.0) + label * (1 - m) / beta * z
                sigma[j] = sigma.get(j, 1.0) - z * z / beta
    return mu


def arow_numba() -> Callable[..., np.ndarray]:
    import numba

    @numba.njit
    def learn(data, indices, starts, columns, y, lam):  # type: ignore[no-untyped-def]
        mu, sigma = np.zeros(columns + 1), np.ones(columns + 1)
        for i in range(len(y)):
            m, v = mu[columns], sigma[columns]
            for k in range(starts[i], starts[i + 1]):
                m += mu[indices[k]] * data[k]
                v += sigma[indices[k]] * data[k] * data[k]
            if y[i] * m < 1:
                c, beta = (y[i] - m) / (v + lam), 1 / (v + lam)
                for k in range(starts[i], starts[i + 1]):
                    z = sigma[indices[k]] * data[k]
                    mu[indices[k]] += c * z
                    sigma[indices[k]] -= beta * z * z
                z = sigma[columns]
                mu[columns] += c * z
                sigma[columns] -= beta * z * z
        return mu

    return learn  # type: ignore[no-any-return]


def diagonal(rows: int, repeats: int) -> list[Row]:
    X, y = text_rows(rows)
    compiled = arow_numba()
    compiled(X.data, X.indices, X.indptr, X.shape[1], y, 1.0)
    few = rows // 20
    small = X[:few]
    as_dicts = [dict(zip(r.indices.tolist(), r.data.tolist(), strict=True)) for r in small]
    labels = y[:few].tolist()

    def make() -> LinearModel:
        return LinearModel("arow", "binary", classes=[-1, 1])

    sides = {
        "numba, the same loop": (
            rows,
            (lambda: None, lambda _: compiled(X.data, X.indices, X.indptr, X.shape[1], y, 1.0)),
        ),
        "NumPy, a row at a time": (few, (lambda: None, lambda _: arow_numpy(small, y, 1.0))),
        "dicts": (few, (lambda: None, lambda _: arow_dicts(as_dicts, labels, 1.0))),
    }
    out = []
    for name, (n, side) in sides.items():
        say(f"diagonal AROW, CSR, against {name} …")
        (ours, theirs), models = in_turn([(make, lambda model: model.learn_many(X, y)), side], repeats)
        out.append({"work": "arow, diagonal, CSR", "against": name, "ours": rows / ours, "theirs": n / theirs})
    w, b = models[0].weights()
    assert np.allclose(np.append(w[0], b), compiled(X.data, X.indices, X.indptr, X.shape[1], y, 1.0)), (
        "not the same rule"
    )
    say("diagonal AROW, one mapping at a time, against dicts …")

    def one_by_one(model: LinearModel) -> None:
        for x, label in zip(as_dicts, labels, strict=True):
            model.learn_one(x, label)

    (ours, theirs), _ = in_turn([(make, one_by_one), sides["dicts"][1]], repeats)
    out.append({"work": "arow, diagonal, learn_one", "against": "dicts", "ours": few / ours, "theirs": few / theirs})
    return out


def rls_numpy(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The formula as it is usually written."""
    w, gamma = np.zeros(X.shape[1]), np.eye(X.shape[1])
    for x, answer in zip(X, y, strict=True):
        g = gamma @ x
        k = g / (1 + x @ g)
        w += k * (answer - w @ x)
        gamma -= np.outer(k, g)
    return w


def arow_full_numpy(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    mu, sigma = np.zeros(X.shape[1]), np.eye(X.shape[1])
    for x, label in zip(X, y, strict=True):
        m = label * (mu @ x)
        if m < 1:
            z = sigma @ x
            beta = x @ z + 1
            mu += label * (1 - m) / beta * z
            sigma -= np.outer(z, z) / beta
    return mu


def full(d: int, rows: int, repeats: int) -> list[Row]:
    from river import linear_model

    rng = np.random.default_rng(d)
    X = rng.normal(size=(rows, d))
    y = X @ rng.normal(size=d) + rng.normal(size=rows)
    labels = np.where(y + np.std(y) * rng.normal(size=rows) > 0, 1, -1)
    say(f"full, d = {d}: {rows} rows …")

    def rls() -> LinearModel:
        return LinearModel("rls", "regression", fit_intercept=False)

    def arow() -> LinearModel:
        return LinearModel("arow:covariance=full", "binary", classes=[-1, 1], fit_intercept=False)

    out = []
    pairs = [("rls", rls, y, rls_numpy), ("arow", arow, labels, arow_full_numpy)]
    for name, make, answers, formula in pairs:
        sides: Any = [
            (make, lambda model, a=answers: model.learn_many(X, a)),
            (lambda: None, lambda _, f=formula, a=answers: f(X, a)),
        ]
        (ours, theirs), models = in_turn(sides, repeats)
        assert np.allclose(models[0].weights()[0][0], formula(X, answers), atol=1e-6)
        out.append({"work": f"{name}, full, d = {d}", "against": "NumPy", "ours": rows / ours, "theirs": rows / theirs})
    few = min(rows, {10: 5000, 100: 5000, 1000: 30}[d])
    names = [f"x{j}" for j in range(d)]
    mappings = [dict(zip(names, row.tolist(), strict=True)) for row in X[:few]]

    def one_by_one(rows: list[Any]) -> Callable[[Any], None]:
        def learn(model: Any) -> None:
            for x, answer in zip(rows, y[:few].tolist(), strict=True):
                model.predict_one(x)
                model.learn_one(x, answer)

        return learn

    river = (linear_model.BayesianLinearRegression, one_by_one(mappings))  # takes mappings only
    for what, given in (("mappings", mappings), ("NumPy rows", list(X[:few]))):
        (ours, theirs), _ = in_turn([(rls, one_by_one(given)), river], repeats)
        work = f"rls, one by one, {what}, d = {d}"
        out.append({"work": work, "against": "River Bayesian", "ours": few / ours, "theirs": few / theirs})
    return out


def forms(repeats: int) -> list[list[str]]:
    """The cost of the other forms of RLS, compared with form="gain" in the same run."""
    cells = [["d", "gain µs", *(f"{form}: times" for form in FORMS[1:])]]
    for d, rows in ((10, 20_000), (100, 4000), (1000, 100)):
        rng = np.random.default_rng(d)
        X, y = rng.normal(size=(rows, d)), rng.normal(size=rows)
        sides: Any = [
            (
                lambda form=form: LinearModel(f"rls:forgetting=0.99,form={form}", "regression", fit_intercept=False),
                lambda model, X=X, y=y: model.learn_many(X, y),
            )
            for form in FORMS
        ]
        (gain, *others), _ = in_turn(sides, repeats, "cpu")
        cells.append([str(d), f"{gain / rows * 1e6:.2f}", *(f"{each / gain:.1f}" for each in others)])
    return cells


def bandwidth(repeats: int) -> list[list[str]]:
    """Bytes a second of Σ: read for Σx, read and written for Σ − κzzᵀ; compared with a ← b + c on as many bytes."""
    cells = [["d", "Σ MB", "ours GB/s", "a = b + c GB/s", "share"]]
    for d in (100, 300, 1000, 2000, 4000):
        triangle = d * (d + 1) // 2
        rows = max(4, 60_000_000 // triangle)
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(rows, d)), rng.normal(size=rows)
        model = LinearModel("rls", "regression", fit_intercept=False)
        model.learn_many(X[:2], y[:2])
        a, b, c = np.zeros(triangle // 3), np.ones(triangle // 3), np.ones(triangle // 3)

        def triad(_: Any, a: np.ndarray = a, b: np.ndarray = b, c: np.ndarray = c, n: int = 3 * rows) -> None:
            for _ in range(n):
                np.add(b, c, out=a)

        (ours, theirs), _ = in_turn(
            [(lambda m=model: m, lambda m, X=X, y=y: m.learn_many(X, y)), (lambda: None, triad)], repeats
        )
        moved = 24.0 * triangle * rows
        mine, plain = moved / ours / 1e9, 3 * rows * 24.0 * len(a) / theirs / 1e9
        cells.append([str(d), f"{triangle * 8 / 1e6:.2f}", f"{mine:.1f}", f"{plain:.1f}", f"{mine / plain:.0%}"])
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the rows")
    parser.add_argument("--repeats", type=int, default=3, help="turns each side takes; the best counts")
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    given = parser.parse_args()
    about, part = machine(), 5 if given.quick else 1
    print(header(about), flush=True)
    figures = diagonal(100_000 // part, given.repeats)
    for d, rows in ((10, 50_000), (100, 10_000), (1000, 300)):
        figures += full(d, rows // part, given.repeats)
    cells = [["work", "against", "ours ex/s", "theirs ex/s", "ratio"]]
    for f in figures:
        ratio = f["ours"] / f["theirs"]
        cells.append([f["work"], f["against"], f"{f['ours']:,.0f}", f"{f['theirs']:,.0f}", f"{ratio:.1f}"])
    print(f"\nwanted: diagonal ≥ 5, full ≥ 2 (NumPy) and ≥ 20 (River)\n\n{text_table(cells, left=2)}", flush=True)
    others, table = forms(given.repeats), bandwidth(given.repeats)
    print(f"\n{text_table(others, left=0)}\n\n{text_table(table, left=0)}")
    if given.json:
        figures_of = {"machine": about, "figures": figures, "forms": others, "bandwidth": table}
        Path(given.json).write_text(json.dumps(figures_of, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
