"""k-means, PCA, dictionaries, LVQ and nearest neighbours against transcriptions and scikit-learn."""

from __future__ import annotations

import warnings
from collections import deque
from typing import Any

import numpy as np
import pytest
from sklearn import cluster, decomposition
from sklearn.datasets import load_digits, make_blobs
from sklearn.neighbors import KNeighborsClassifier

import onepass as op
from onepass import _native
from onepass.prototypes import seeding


def blobs(n: int = 1500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(n, n_features=6, centers=5, cluster_std=1.5, random_state=seed)


# -- k-means -----------------------------------------------------------------------------------------------------------


def test_minibatches_are_scikit_learns() -> None:
    X = blobs(700)[0]
    model = op.KMeans(5, batch_size=50, init_size=50).partial_fit(X[:50])
    start = model._state.centers.copy()
    seeds = seeding.plus_plus(X[:50], 5, np.ones(50), np.random.default_rng([0, 0]))
    reference = cluster.MiniBatchKMeans(5, init=seeds, n_init=1, reassignment_ratio=0, batch_size=50)
    for i in range(0, 700, 50):
        reference.partial_fit(X[i : i + 50])
        if i:
            model.partial_fit(X[i : i + 50])
    assert not np.array_equal(start, model.cluster_centers_)
    np.testing.assert_allclose(model.cluster_centers_, reference.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))
    np.testing.assert_allclose(model.transform(X), reference.transform(X), atol=1e-6)


def test_a_centre_is_the_mean_of_its_own() -> None:
    """decay = 1, one at a time: MacQueen, transcribed; the first centre has no weight."""
    X = blobs(300)[0]
    model = op.KMeans(4, batch_size=1, init_size=20).partial_fit(X[:20])
    centers = seeding.plus_plus(X[:20], 4, np.ones(20), np.random.default_rng([0, 0]))
    taken: list[list[np.ndarray]] = [[] for _ in centers]
    for x in X:
        k = int(np.argmin(((centers - x) ** 2).sum(axis=1)))
        taken[k].append(x)
        centers[k] = np.mean(taken[k], axis=0)
    model.partial_fit(X[20:])
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-10)
    np.testing.assert_array_equal(model.counts_, [len(each) for each in taken])


def test_inertia_near_lloyds() -> None:
    X = blobs()[0]
    best = cluster.KMeans(5, n_init=3, random_state=0).fit(X).inertia_
    assert -op.KMeans(5, passes=10).fit(X).score(X) < 1.05 * best


def test_decay_follows_and_reassigns() -> None:
    generator = np.random.default_rng(0)
    X = np.concatenate([generator.normal(size=(2000, 2)), generator.normal(size=(2000, 2)) + 10])
    assert np.abs(op.KMeans(1, decay=0.7).partial_fit(X).cluster_centers_ - 10).max() < 0.5
    assert np.abs(op.KMeans(1).partial_fit(X).cluster_centers_ - 5).max() < 0.5
    lost = np.concatenate([[[1000.0, 1000.0]], X])  # an outlier among the first rows seeds a centre
    still = op.KMeans(2, init_size=10, batch_size=20).partial_fit(lost)
    moved = op.KMeans(2, init_size=10, batch_size=20, reassign=True).partial_fit(lost)
    assert moved.score(X) > 2 * still.score(X)


# -- principal components ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 5])
def test_incremental_pca_is_scikit_learns(k: int) -> None:
    X = np.random.default_rng(1).normal(size=(600, 8)) @ np.random.default_rng(2).normal(size=(8, 8)) + 50.0
    model = op.IncrementalPCA(k, batch_size=60).fit(X)
    reference = decomposition.IncrementalPCA(k, batch_size=60).fit(X)
    np.testing.assert_allclose(model.singular_values_, reference.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(reference.components_), atol=1e-8)
    np.testing.assert_allclose(model.mean_, reference.mean_, rtol=1e-12)
    np.testing.assert_allclose(model.explained_variance_, reference.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(reference.transform(X)), atol=1e-6)
    np.testing.assert_allclose(
        model.inverse_transform(model.transform(X)), reference.inverse_transform(reference.transform(X)), atol=1e-7
    )


def test_all_components_are_batch_pca_whatever_the_batches() -> None:
    X = np.random.default_rng(1).normal(size=(200, 6)) * [5, 4, 3, 2, 1, 1e-6]
    exact = decomposition.PCA().fit(X)
    for b in (1, 7, 60):
        model = op.IncrementalPCA(6, batch_size=b).fit(X)
        np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=1e-8)  # the last too
        np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(6), atol=1e-10)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("wide", [False, True])
def test_directions_that_were_never_shown_are_zero(offset: float, wide: bool) -> None:
    """Rounding gives every row some length in all directions; which ones would depend on the processor."""
    d = 30 if wide else 8
    basis = np.random.default_rng(1).normal(size=(4, d))
    X = np.random.default_rng(2).normal(size=(50, 4)) @ basis + offset
    for rows, shown in ((1, 0), (2, 1), (3, 1), (8, 4), (20, 4), (50, 4)):  # before 20, of the first 1, 2, 4, 8, 16
        model = op.IncrementalPCA(7, batch_size=20).partial_fit(X[:rows])
        np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), [1.0] * shown + [0.0] * (7 - shown))
        assert np.all(model.singular_values_[:shown] > 0) and not np.any(model.singular_values_[shown:])
        assert not np.any(model.transform(X)[:, shown:])


def test_rounding_of_the_rows_is_not_magnified() -> None:
    """By a factor of 1e6 at most, from the second row on."""
    X = np.random.default_rng(3).normal(size=(60, 25)) + 3.0
    nudged = X * (1.0 + 2e-16 * np.random.default_rng(4).integers(-1, 2, size=X.shape))
    models = [op.IncrementalPCA(12, batch_size=50) for _ in range(2)]
    for x, other in zip(X, nudged, strict=True):
        for model, row in zip(models, (x, other), strict=True):
            model.learn_one(row)
        np.testing.assert_allclose(models[0].transform(X), models[1].transform(X), atol=1e-9)


def test_forgetting_follows() -> None:
    generator = np.random.default_rng(0)
    X = np.concatenate([generator.normal(size=(3000, 3)) * [5, 1, 1], generator.normal(size=(1000, 3)) * [1, 5, 1]])
    assert np.argmax(np.abs(op.IncrementalPCA(1).fit(X).components_[0])) == 0
    assert np.argmax(np.abs(op.IncrementalPCA(1, forgetting=0.7).fit(X).components_[0])) == 1


@pytest.mark.parametrize("kind", [op.OjaPCA, op.CCIPCA])
def test_streaming_directions_come_near_the_exact_ones(kind: Any) -> None:
    generator = np.random.default_rng(3)
    turn = np.linalg.qr(generator.normal(size=(10, 10)))[0]
    X = generator.normal(size=(20000, 10)) * np.sqrt([20, 10, 5, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]) @ turn + 7.0
    exact = decomposition.PCA(3).fit(X)
    model = kind(3).fit(X)
    cosines = np.abs(np.sum(model.components_ * exact.components_, axis=1))
    assert cosines.min() > 0.99
    np.testing.assert_allclose(model.explained_variance_, exact.explained_variance_, rtol=0.1)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=1e-8)
    captured = np.var((X - X.mean(axis=0)) @ model.components_.T, axis=0).sum()
    assert captured > 0.995 * exact.explained_variance_.sum()


def test_ccipca_is_the_papers_loop() -> None:
    """Weng, Zhang and Hwang 2003, algorithm 1, with the mean taken off as it comes."""
    X = np.random.default_rng(0).normal(size=(60, 4)) * [3, 2, 1, 0.5]
    amnesic, k = 2.0, 3
    mean, v, filled = np.zeros(4), np.zeros((k, 4)), 0
    for n, x in enumerate(X, start=1):
        mean = mean + (x - mean) / n
        u = x - mean
        for i in range(k):
            if i == filled:
                if np.linalg.norm(u) > 0:
                    v[i], filled = u, filled + 1
                break
            l = min(amnesic, max(0.0, n - 2.0))  # noqa: E741  the paper's letter
            v[i] = (n - 1 - l) / n * v[i] + (1 + l) / n * u * (u @ v[i]) / np.linalg.norm(v[i])
            unit = v[i] / np.linalg.norm(v[i])
            u = u - (u @ unit) * unit
    model = op.CCIPCA(k, amnesic=amnesic).partial_fit(X)
    np.testing.assert_allclose(model._state.components, v, atol=1e-10)


# -- dictionaries ------------------------------------------------------------------------------------------------------


def test_dictionary_is_scikit_learns() -> None:
    """Codes to convergence on both sides: LARS is exact, ours descends to 1e-12."""
    X = load_digits().data[:240] / 16
    start = X[:12] / np.linalg.norm(X[:12], axis=1, keepdims=True)
    model = op.DictionaryLearning(12, alpha=0.3, batch_size=20, dict_init=start, tol=1e-12, max_sweeps=100_000)
    options: dict[str, Any] = {"fit_algorithm": "lars", "transform_algorithm": "lasso_lars", "transform_alpha": 0.3}
    reference = decomposition.MiniBatchDictionaryLearning(12, alpha=0.3, batch_size=20, dict_init=start, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(0, 240, 20):
            reference.partial_fit(X[i : i + 20])
            model.partial_fit(X[i : i + 20])
        codes = reference.transform(X[:30])
    np.testing.assert_allclose(model.components_, reference.components_, atol=1e-5)
    np.testing.assert_allclose(model.transform(X[:30]), codes, atol=1e-4)


def test_dictionary_invariants() -> None:
    X = load_digits().data[:400] / 16
    model = op.DictionaryLearning(20, alpha=0.2, batch_size=20)
    surrogate = []
    update = model._update

    def watched(state: Any, rows: Any) -> None:
        def value() -> float:
            D, A, B = state.atoms, state.codes, state.products
            return float(0.5 * np.trace(D @ D.T @ A) - np.trace(D @ B.T))

        before = value()
        idle = bool((np.diag(state.codes) <= 1e-6).any())
        update(state, rows)
        surrogate.append((before, value(), idle))

    model._update = watched  # type: ignore[method-assign]
    model.partial_fit(X)
    assert len(surrogate) == 20 and all(after <= before + 1e-9 for before, after, idle in surrogate if not idle)
    assert np.linalg.norm(model.components_, axis=1).max() <= 1 + 1e-12
    values = np.linalg.eigvalsh(model._state.codes)
    assert values.min() > -1e-10
    residual = np.mean((X - model.transform(X) @ model.components_) ** 2)
    assert residual < 0.5 * np.mean(X**2) and np.mean(model.transform(X) == 0) > 0.4


def test_lasso_meets_its_conditions() -> None:
    """u_j ≠ 0: gradient −α sign(u_j); u_j = 0: within ±α."""
    generator = np.random.default_rng(0)
    D, X = generator.normal(size=(15, 8)), generator.normal(size=(40, 8))
    U = np.empty((40, 15))
    _native.lasso(D @ D.T, X @ D.T, 0.7, 1e-13, 100_000, U)
    gradient = (X - U @ D) @ D.T
    np.testing.assert_allclose(gradient[U != 0], 0.7 * np.sign(U[U != 0]), atol=1e-8)
    assert np.abs(gradient[U == 0]).max() <= 0.7 + 1e-8 and 0.2 < np.mean(U == 0) < 0.9


# -- learning vector quantisation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["lvq1", "olvq1", "lvq21"])
def test_lvq_is_kohonens(variant: str) -> None:
    X, y = make_blobs(200, n_features=3, centers=3, cluster_std=4.0, random_state=1)
    eta, window = 0.1, 0.3
    prototypes: list[np.ndarray] = []
    owner: list[int] = []
    rate: list[float] = []
    for x, label in zip(X, y, strict=True):
        if owner.count(label) < 2:
            prototypes.append(x.copy())
            owner.append(label)
            rate.append(eta)
            continue
        distance = [np.linalg.norm(x - p) for p in prototypes]
        if variant == "lvq21":
            own = min((k for k in range(len(owner)) if owner[k] == label), key=distance.__getitem__)
            others = [k for k in range(len(owner)) if owner[k] != label]
            if not others:
                continue
            other = min(others, key=distance.__getitem__)
            if min(distance[own] / distance[other], distance[other] / distance[own]) > (1 - window) / (1 + window):
                prototypes[own] = prototypes[own] + eta * (x - prototypes[own])
                prototypes[other] = prototypes[other] - eta * (x - prototypes[other])
            continue
        k = int(np.argmin(distance))
        sign = 1 if owner[k] == label else -1
        if variant == "olvq1":
            rate[k] = min(eta, rate[k] / (1 + sign * rate[k]))
        prototypes[k] = prototypes[k] + sign * (rate[k] if variant == "olvq1" else eta) * (x - prototypes[k])
    model = op.LVQClassifier(2, variant=variant, eta=eta, window=window).fit(X, y)
    np.testing.assert_allclose(model.prototypes_, prototypes, atol=1e-10)
    np.testing.assert_array_equal(model.prototype_classes_, owner)


def test_lvq_classifies() -> None:
    X, y = load_digits(return_X_y=True)
    for variant, least in (("lvq1", 0.9), ("olvq1", 0.9), ("lvq21", 0.85)):
        model = op.LVQClassifier(5, variant=variant, passes=5).fit(X[:1200], y[:1200])
        assert model.score(X[1200:], y[1200:]) > least


# -- nearest neighbours ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbours_of_the_window_are_scikit_learns(weights: str) -> None:
    X, y = make_blobs(400, n_features=4, centers=3, cluster_std=6.0, random_state=2)
    window: deque[int] = deque(maxlen=60)
    model = op.KNNClassifier(5, window=60, weights=weights)
    model.partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    window.append(0)
    for i in range(1, 400):
        if i > 10 and i % 7 == 0:
            reference = KNeighborsClassifier(5, weights=weights).fit(X[list(window)], y[list(window)])
            theirs = dict(zip(reference.classes_.tolist(), reference.predict_proba(X[i : i + 1])[0], strict=True))
            said = model.predict_proba_one(X[i])
            assert said == pytest.approx({c: theirs.get(c, 0.0) for c in (0, 1, 2)})
        model.learn_one(X[i], int(y[i]))
        window.append(i)


def test_a_neighbour_at_the_very_place_decides() -> None:
    model = op.KNNClassifier(3, weights="distance")
    model.learn_many(np.array([[0.0], [0.1], [0.2]]), ["a", "b", "b"])
    assert model.predict_one([0.0]) == "a" and model.predict_one([0.15]) == "b"


def test_what_is_left_of_the_prefix_waits() -> None:
    """20 rows seed, mini-batches of 7: two steps, and 6 rows wait."""
    X = blobs(21)[0]
    model = op.KMeans(3, batch_size=7, init_size=20).partial_fit(X[:20])
    assert (model._state.steps, model._state.filled, model.counts_.sum()) == (2, 6, 14.0)
    model.learn_one(X[20])
    assert (model._state.steps, model._state.filled, model.counts_.sum()) == (3, 0, 21.0)
