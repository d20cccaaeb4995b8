"""Naive Bayes, k-means, PCA, dictionaries, neighbours and mixtures against scikit-learn and River, with their quality.

python bench/unsupervised.py [--quick] [--repeats 3] [--clock cpu] [--json FILE]

All learners get the same rows in one process and take turns; the best of `repeats` runs counts. Mini-batches:
`partial_fit` of 100 rows after 100, against scikit-learn (the project asks for 2×). One at a time: `predict_one`, then
`learn_one` of the same mapping, against River (10×). Peers that do not exist are left out: scikit-learn's
GaussianMixture has no `partial_fit`, so batch EM with the same start and as many steps is compared; River has no
mixture, PCA or dictionary.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import river.cluster
import river.naive_bayes
import river.neighbors
import timing
from scipy import sparse
from sklearn import cluster, decomposition, mixture, naive_bayes
from sklearn.base import clone
from sklearn.datasets import make_blobs

import onepass as op

BATCH = 100


def blobs(n: int, d: int = 20, centers: int = 10) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(n, n_features=d, centers=centers, cluster_std=4.0, random_state=0)


def text(n: int, words: int = 20_000, length: int = 60) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Words by Zipf's law; some are more frequent in each class."""
    generator = np.random.default_rng(0)
    y = generator.integers(0, 4, n)
    common = generator.zipf(1.3, size=(n, length)) % words
    own = (generator.zipf(1.5, size=(n, length // 6)) * 4 + y[:, None]) % words
    columns = np.concatenate([common, own], axis=1)
    rows = np.repeat(np.arange(n), columns.shape[1])
    X = sparse.csr_matrix((np.ones(columns.size), (rows, columns.ravel())), shape=(n, words))
    X.sum_duplicates()
    return X, y


def mappings(X: Any) -> list[dict[str, float]]:
    names = [f"w{j}" for j in range(X.shape[1])]
    if sparse.issparse(X):
        return [
            {names[j]: v for j, v in zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)}
            for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        ]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def in_batches(X: Any, y: Any = None) -> Callable[[Any], None]:
    """Let a model learn 100 rows at a time; the slices are made before."""
    parts = [(X[i : i + BATCH], None if y is None else y[i : i + BATCH]) for i in range(0, X.shape[0], BATCH)]
    classes = None if y is None else np.unique(y)

    def learn(model: Any) -> None:
        if classes is None:
            for part, _ in parts:
                model.partial_fit(part)
            return
        for part, labels in parts:
            model.partial_fit(part, labels, classes=classes)

    return learn


def one_by_one(rows: list[dict[str, float]], y: list[Any] | None) -> Callable[[Any], None]:
    """Predict, then learn each row, and count the mistakes."""

    def learn(model: Any) -> None:
        wrong = 0
        if y is None:
            for x in rows:
                model.predict_one(x)
                model.learn_one(x)
            return
        for x, label in zip(rows, y, strict=True):
            wrong += model.predict_one(x) != label
            model.learn_one(x, label)
        mistakes[id(model)] = wrong / len(rows)

    return learn


mistakes: dict[int, float] = {}


def minibatch_cases(scale: float) -> dict[str, Any]:
    """name → (our maker, theirs, teacher, what is measured of a model)."""
    X, y = blobs(int(20_000 * scale))
    return bayes_cases(X, y, *text(int(20_000 * scale))) | other_cases(X, int(10_000 * scale))


def accuracy(table: Any, labels: Any) -> Callable[[Any], float]:
    return lambda model: float(np.mean(model.predict(table) == labels))


def bayes_cases(X: Any, y: Any, T: Any, z: Any) -> dict[str, Any]:
    codes = X.astype(int) % 8
    return {
        "GaussianNB, 20 features": (op.GaussianNB, naive_bayes.GaussianNB, in_batches(X, y), accuracy(X, y)),
        "MultinomialNB, CSR text": (op.MultinomialNB, naive_bayes.MultinomialNB, in_batches(T, z), accuracy(T, z)),
        "BernoulliNB, CSR text": (op.BernoulliNB, naive_bayes.BernoulliNB, in_batches(T, z), accuracy(T, z)),
        "ComplementNB, CSR text": (op.ComplementNB, naive_bayes.ComplementNB, in_batches(T, z), accuracy(T, z)),
        "CategoricalNB, 20 × 8 values": (
            op.CategoricalNB,
            lambda: naive_bayes.CategoricalNB(min_categories=8),
            in_batches(codes, y),
            accuracy(codes, y),
        ),
    }


def other_cases(X: Any, rows: int) -> dict[str, Any]:
    digits = np.random.default_rng(1).normal(size=(rows, 20)) @ np.random.default_rng(2).normal(size=(20, 64))
    wide = digits @ np.random.default_rng(3).normal(size=(64, 400)) + np.random.default_rng(4).normal(
        size=(len(digits), 400)
    )
    D = digits / np.linalg.norm(digits, axis=1).mean()

    def residual(model: Any) -> float:
        U = model.transform(D[:500])
        objective = 0.5 * np.sum((D[:500] - U @ model.components_) ** 2, axis=1) + 0.1 * np.abs(U).sum(axis=1)
        return float(objective.mean())

    dictionary: dict[str, Any] = {"fit_algorithm": "cd", "transform_algorithm": "lasso_cd", "transform_alpha": 0.1}
    return {
        "KMeans, K = 10, inertia": (
            lambda: op.KMeans(10, batch_size=BATCH),
            lambda: cluster.MiniBatchKMeans(10, batch_size=BATCH, random_state=0, n_init=1, reassignment_ratio=0),
            in_batches(X),
            inertia_of_seeds(X, in_batches(X)),
        ),
        "KMeans, K = 100, d = 64, inertia": (
            lambda: op.KMeans(100, batch_size=BATCH),
            lambda: cluster.MiniBatchKMeans(100, batch_size=BATCH, random_state=0, n_init=1, reassignment_ratio=0),
            in_batches(digits),
            inertia_of_seeds(digits, in_batches(digits)),
        ),
        "IncrementalPCA, k = 10, d = 64, variance": (
            lambda: op.IncrementalPCA(10, batch_size=BATCH),
            lambda: decomposition.IncrementalPCA(10, batch_size=BATCH),
            in_batches(digits),
            lambda model: float(model.explained_variance_.sum()),
        ),
        "IncrementalPCA, k = 20, d = 400, variance": (
            lambda: op.IncrementalPCA(20, batch_size=BATCH),
            lambda: decomposition.IncrementalPCA(20, batch_size=BATCH),
            in_batches(wide),
            lambda model: float(model.explained_variance_.sum()),
        ),
        "DictionaryLearning, 32 atoms, objective": (
            lambda: op.DictionaryLearning(32, alpha=0.1, batch_size=BATCH, tol=1e-4),
            lambda: decomposition.MiniBatchDictionaryLearning(
                32, alpha=0.1, batch_size=BATCH, random_state=0, **dictionary
            ),
            in_batches(D[: len(D) // 5]),
            residual,
        ),
    }


def inertia_of_seeds(X: np.ndarray, learn: Callable[[Any], None]) -> Callable[[Any], float]:
    """The mean over five seeds, since a single one can be luck."""

    def quality(model: Any) -> float:
        values = []
        for seed in range(5):
            each = clone(model).set_params(random_state=seed)
            learn(each)
            values.append(-float(each.score(X)) / len(X))
        return float(np.mean(values))

    return quality


def stream_cases(scale: float) -> dict[str, Any]:
    X, y = blobs(int(4_000 * scale))
    T, z = text(int(1_500 * scale), words=3000)
    dense, words = mappings(X), mappings(T)
    wrong = lambda model: mistakes[id(model)]  # noqa: E731
    inertia = lambda model: _inertia(model, dense, X)  # noqa: E731
    lazy = lambda: river.neighbors.LazySearch(window_size=500)  # noqa: E731
    numbers, kinds = y.tolist(), z.tolist()
    short = len(words) // 5
    return {
        "GaussianNB, 20 features": (op.GaussianNB, river.naive_bayes.GaussianNB, one_by_one(dense, numbers), wrong),
        "MultinomialNB, words": (op.MultinomialNB, river.naive_bayes.MultinomialNB, one_by_one(words, kinds), wrong),
        "BernoulliNB, words": (
            op.BernoulliNB,
            river.naive_bayes.BernoulliNB,
            one_by_one(words[:short], kinds[:short]),
            wrong,
        ),
        "ComplementNB, words": (
            op.ComplementNB,
            river.naive_bayes.ComplementNB,
            one_by_one(words[:short], kinds[:short]),
            wrong,
        ),
        "KMeans, K = 10, inertia": (
            lambda: op.KMeans(10, batch_size=1),
            lambda: river.cluster.KMeans(10, halflife=0.05, sigma=5, seed=0),
            one_by_one(dense, None),
            inertia,
        ),
        "KNNClassifier, window 500": (
            lambda: op.KNNClassifier(5, window=500, weights="distance"),  # as River's
            lambda: river.neighbors.KNNClassifier(5, engine=lazy()),
            one_by_one(dense[:1500], numbers[:1500]),
            wrong,
        ),
    }


def _inertia(model: Any, rows: list[dict[str, float]], X: np.ndarray) -> float:
    if isinstance(model, op.KMeans):
        centers = model.cluster_centers_
    else:
        centers = np.array([[c[name] for name in rows[0]] for c in model.centers.values()])
    return float(np.mean(((X[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1)))


def em_cases(scale: float) -> dict[str, Any]:
    X = blobs(int(10_000 * scale), d=10, centers=5)[0]
    out = {}
    for kind in ("full", "tied", "diag", "spherical"):
        start = mixture.GaussianMixture(
            5, covariance_type=kind, max_iter=1, init_params="random_from_data", random_state=0
        )
        start.fit(X)
        ours: dict[str, Any] = {"weights_init": start.weights_, "means_init": start.means_}
        ours |= {"covariances_init": start.covariances_, "mode": "batch", "max_iter": 20, "tol": 0}
        theirs: dict[str, Any] = {"weights_init": start.weights_, "means_init": start.means_}
        theirs |= {"precisions_init": start.precisions_, "max_iter": 20, "tol": 0, "init_params": "random_from_data"}
        out[f"GaussianMixture {kind}, 20 steps, ln p"] = (
            lambda kind=kind, ours=ours: op.GaussianMixture(5, covariance=kind, cov_floor=1e-6, **ours),
            lambda kind=kind, theirs=theirs: mixture.GaussianMixture(5, covariance_type=kind, **theirs),
            lambda model: model.fit(X),
            lambda model: float(model.score(X)),
        )
    return out


def measure(cases: dict[str, Any], peer: str, asked: float, repeats: int, clock: str) -> list[dict[str, Any]]:
    results = []
    for name, (ours, theirs, learn, quality) in cases.items():
        (a, b), (mine, other) = timing.in_turn([(ours, learn), (theirs, learn)], repeats, clock)
        row = {"learner": name, "peer": peer, "onepass s": a, "peer s": b, "ratio": b / a, "asked": asked}
        results.append({**row, "onepass quality": quality(mine), "peer quality": quality(other)})
        timing.say(str(results[-1]))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clock", choices=list(timing.CLOCKS), default="cpu")
    parser.add_argument("--json")
    options = parser.parse_args()
    scale, repeats = (0.1, 1) if options.quick else (1.0, options.repeats)
    warnings.simplefilter("ignore")
    results = measure(minibatch_cases(scale), "scikit-learn", 2.0, repeats, options.clock)
    results += measure(em_cases(scale), "scikit-learn, batch", 2.0, repeats, options.clock)
    results += measure(stream_cases(scale), "River", 10.0, repeats, options.clock)
    print(timing.header(timing.machine()))
    print(f"clock: {options.clock}; quality is the share of right answers, or as the row says\n")
    print("| learner | peer | onepass s | peer s | ratio | asked | onepass | peer |\n|---|---|---|---|---|---|---|---|")
    for r in results:
        cells = [r["learner"], r["peer"], f"{r['onepass s']:.3f}", f"{r['peer s']:.3f}", f"{r['ratio']:.1f}×"]
        cells += [f"{r['asked']:g}×", f"{r['onepass quality']:.4g}", f"{r['peer quality']:.4g}"]
        print("| " + " | ".join(cells) + " |")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
