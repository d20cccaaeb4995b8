"""Pictures of mixtures, naive Bayes, clusters and components: ``python scripts/draw_learners.py [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.decomposition import PCA

import onepass as op

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.patches import Ellipse

COLOURS = np.array(["tab:blue", "tab:orange", "tab:green", "tab:red"])


def bare(axis: Any, title: str) -> None:
    axis.set_title(title)
    axis.set_xticks([])
    axis.set_yticks([])


def mixtures(folder: Path) -> None:
    """Components over time, and how schedules follow a sudden change."""
    generator = np.random.default_rng(0)
    centers = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    shape = np.array([[1.0, 0.6], [0.0, 0.6]])
    X = centers[generator.integers(0, 3, 3000)] + generator.normal(size=(3000, 2)) @ shape
    picture, axes = pyplot.subplots(1, 4, figsize=(13, 3), constrained_layout=True)
    model = op.GaussianMixture(3, covariance="full")
    seen = 0
    for axis, t in zip(axes, (100, 400, 3000), strict=False):
        model.partial_fit(X[seen:t])
        seen = t
        axis.scatter(*X[max(0, t - 400) : t].T, s=4, linewidths=0, c=COLOURS[model.predict(X[max(0, t - 400) : t])])
        for mean, cov in zip(model.means_, model.covariances_, strict=True):
            values, vectors = np.linalg.eigh(cov)
            angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
            size = 4 * np.sqrt(values[::-1])
            axis.add_patch(Ellipse(mean, *size, angle=angle, fill=False, linewidth=1.2))
        bare(axis, f"{t} rows: ln p = {model.score(X):.2f}")
    Y = centers[generator.integers(0, 2, 6000)] + generator.normal(size=(6000, 2))
    Y[3000:, 1] += 4.0
    for name, options in {
        "1/n": {"schedule": "1/n"},
        "power, κ = 0.6": {"schedule": "power"},
        "constant, η = 0.05": {"schedule": "constant"},
    }.items():
        learner = op.GaussianMixture(2, batch_size=50, **options)
        curve = []
        for start in range(0, 6000, 50):
            learner.partial_fit(Y[start : start + 50])
            curve.append(learner._state.last_likelihood if learner._state.seeded else np.nan)
        smooth = np.convolve(curve, np.ones(5) / 5, mode="valid")
        axes[3].plot(np.arange(len(smooth)) * 50 + 250, smooth, label=name, linewidth=1)
    axes[3].set_ylim(-9, -3)
    axes[3].set_title("ln p before learning; means jump at 3000")
    axes[3].set_xlabel("rows")
    axes[3].legend(frameon=False)
    picture.savefig(folder / "mixtures.svg", metadata={"Date": None})


def bayes(folder: Path) -> None:
    """Boundaries that naive Bayes can and cannot learn; and accuracy over time."""
    picture, axes = pyplot.subplots(1, 4, figsize=(13, 3), constrained_layout=True)
    moons = make_moons(600, noise=0.25, random_state=0)
    for axis, model in zip(axes, (op.GaussianNB(), op.LVQClassifier(6, passes=5), op.KNNClassifier(15)), strict=False):
        X, y = moons
        model.fit(X, y)
        side = np.linspace(0, 1, 120)
        low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
        a, b = np.meshgrid(low[0] + side * (high[0] - low[0]), low[1] + side * (high[1] - low[1]))
        said = model.predict(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
        axis.contourf(a, b, said, levels=[-0.5, 0.5, 1.5], colors=["tab:blue", "tab:orange"], alpha=0.2)
        axis.scatter(*X.T, s=4, linewidths=0, c=COLOURS[y])
        if hasattr(model, "prototypes_"):
            colours = COLOURS[model.prototype_classes_]
            axis.scatter(*model.prototypes_.T, s=40, marker="D", c=colours, edgecolors="black")
        bare(axis, f"{type(model).__name__}: {model.score(X, y):.2f}")
    X, y = load_digits(return_X_y=True)
    for name, model in {
        "GaussianNB": op.GaussianNB(0.01),
        "MultinomialNB": op.MultinomialNB(),
        "BernoulliNB": op.BernoulliNB(binarize=7.0),
        "KNNClassifier": op.KNNClassifier(),
    }.items():
        right = []
        for x, label in zip(X, y.tolist(), strict=True):
            right.append(model.predict_one(x) == label)
            model.learn_one(x, label)
        axes[3].plot(np.cumsum(right) / np.arange(1, len(right) + 1), label=name, linewidth=1)
    axes[3].set_title("digits, predicted before learned: accuracy")
    axes[3].set_xlabel("examples")
    axes[3].set_ylim(0.5, 1)
    axes[3].legend(frameon=False)
    picture.savefig(folder / "naive-bayes.svg", metadata={"Date": None})


def clusters(folder: Path) -> None:
    """Centres over time, and centres that follow a drift."""
    X, _ = make_blobs(4000, centers=4, cluster_std=1.3, random_state=3)
    picture, axes = pyplot.subplots(1, 4, figsize=(13, 3), constrained_layout=True)
    model = op.KMeans(4, batch_size=1)
    path = []
    for x in X[:2000]:
        model.learn_one(x)
        path.append(model.cluster_centers_)
    for axis, t in zip(axes, (40, 300, 2000), strict=False):
        axis.scatter(*X[max(0, t - 600) : t].T, s=4, linewidths=0, color="tab:gray")
        trail = np.array(path[40:t] or path[:1])
        for k in range(4):
            axis.plot(trail[:, k, 0], trail[:, k, 1], color=COLOURS[k], linewidth=1)
        axis.scatter(*path[t - 1].T, s=60, c=COLOURS, edgecolors="black", zorder=3)
        bare(axis, f"one at a time, {t} rows")
    generator = np.random.default_rng(0)
    turn = np.linspace(0, np.pi, 4000)
    drift = np.column_stack([np.cos(turn), np.sin(turn)]) * 5 + generator.normal(size=(4000, 2)) * 0.5
    axes[3].scatter(*drift[::4].T, s=4, linewidths=0, c=turn[::4], cmap="Greys")
    for decay, colour in ((1.0, "tab:blue"), (0.7, "tab:orange")):
        follower = op.KMeans(1, batch_size=50, decay=decay)
        trail = []
        for start in range(0, 4000, 50):
            follower.partial_fit(drift[start : start + 50])
            trail.append(follower.cluster_centers_[0])
        axes[3].plot(*np.array(trail).T, color=colour, linewidth=2, label=f"decay = {decay:g}")
    axes[3].legend(frameon=False, loc="lower center")
    bare(axes[3], "a cluster that wanders")
    picture.savefig(folder / "clustering.svg", metadata={"Date": None})


def components(folder: Path) -> None:
    """The distance of the directions from the exact ones, and dictionary atoms of digits."""
    X = load_digits().data / 16
    picture = pyplot.figure(figsize=(13, 3), constrained_layout=True)
    curve, pca, dictionary = picture.subfigures(1, 3, width_ratios=[1.2, 1, 1])
    axis = curve.subplots()
    exact = PCA(8).fit(X)
    best = exact.explained_variance_.sum()
    for name, model in {
        "IncrementalPCA": op.IncrementalPCA(8, batch_size=50),
        "CCIPCA": op.CCIPCA(8),
        "OjaPCA": op.OjaPCA(8, batch_size=50),
    }.items():
        captured = []
        for start in range(0, len(X), 50):
            model.partial_fit(X[start : start + 50])
            plane = np.linalg.qr(model.components_.T)[0]
            captured.append(np.var((X - X.mean(axis=0)) @ plane, axis=0).sum() / best)
        axis.plot(np.arange(len(captured)) * 50 + 50, captured, label=name, linewidth=1)
    axis.set_title("variance in 8 directions, of what batch PCA finds")
    axis.set_xlabel("digits seen")
    axis.set_ylim(0.5, 1.02)
    axis.legend(frameon=False, loc="lower right")
    learned = op.DictionaryLearning(16, alpha=0.3, batch_size=20, passes=3).fit(X)
    for part, rows, title in (
        (pca, op.IncrementalPCA(16).fit(X).components_, "16 principal components"),
        (dictionary, learned.components_, "16 atoms of a dictionary"),
    ):
        part.suptitle(title, fontsize=9)
        for cell, row in zip(part.subplots(2, 8).ravel(), rows, strict=True):
            cell.imshow(row.reshape(8, 8), cmap="RdBu_r", vmin=-np.abs(row).max(), vmax=np.abs(row).max())
            cell.axis("off")
    picture.savefig(folder / "decomposition.svg", metadata={"Date": None})


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs")
    matplotlib.rcParams |= {"svg.hashsalt": "onepass", "font.size": 8}
    for draw in (mixtures, bayes, clusters, components):
        draw(where)
