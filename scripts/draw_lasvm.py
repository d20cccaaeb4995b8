"""Draws docs/lasvm.svg: ``python scripts/draw_lasvm.py [FILE]``.

Two moons, one pass: the boundary early and at the end, the set S and the support vectors over time, and the objective
against the batch solution's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from onepass import LaSVMClassifier

matplotlib.use("Agg")
from matplotlib import pyplot

C, GAMMA, ROWS = 10.0, 2.0, 400
TIMES = (20, 80, ROWS)


def boundary(axis: Any, model: LaSVMClassifier, X: Any, y: Any, t: int) -> None:
    side = np.linspace(0, 1, 70)
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    a, b = np.meshgrid(low[0] + side * (high[0] - low[0]), low[1] + side * (high[1] - low[1]))
    f = model.decision_function(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    axis.contour(a, b, f, levels=[-1, 0, 1], colors="black", linestyles=["dashed", "solid", "dashed"], linewidths=0.8)
    axis.scatter(*X[:t].T, c=np.where(y[:t] == 1, "tab:orange", "tab:blue"), s=5, linewidths=0)
    axis.scatter(*model.support_vectors_.T, s=32, facecolors="none", edgecolors="black", linewidths=0.6)
    axis.set_title(f"t = {t}: {model.n_support_} support vectors")
    axis.set_xticks([])
    axis.set_yticks([])


def draw(path: Path) -> None:
    X, y = make_moons(ROWS, noise=0.2, random_state=0)
    svc = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(X, y)
    alpha, vectors = svc.dual_coef_[0], svc.support_vectors_
    K = np.exp(-GAMMA * np.sum((vectors[:, np.newaxis] - vectors) ** 2, axis=2))
    best = alpha @ (2 * y[svc.support_] - 1) - alpha @ K @ alpha / 2
    matplotlib.rcParams |= {"svg.hashsalt": "onepass", "font.size": 8}
    picture, axes = pyplot.subplots(1, 5, figsize=(15, 3), constrained_layout=True)
    model = LaSVMClassifier(C=C, gamma=GAMMA)
    stored, support, objective = [], [], []
    pictures = iter(axes)
    for t in range(1, ROWS + 1):
        model.partial_fit(X[t - 1 : t], y[t - 1 : t], classes=[0, 1])
        stored.append(model.n_stored_)
        support.append(model.n_support_)
        objective.append(model.objective_[0] / best)
        if t in TIMES:
            boundary(next(pictures), model, X, y, t)
    times = np.arange(1, ROWS + 1)
    sizes, progress = axes[3:]
    sizes.plot(times, stored, color="tab:gray", label="stored, |S|")
    sizes.plot(times, support, color="black", label="with α ≠ 0")
    sizes.axhline(len(svc.support_), color="tab:red", linestyle="dotted", label="batch SVM")
    progress.plot(times, objective, color="black", label="one pass")
    model.finish_now()
    progress.plot(ROWS, model.objective_[0] / best, "o", color="tab:green", label="and finish")
    progress.axhline(1, color="tab:red", linestyle="dotted", label="batch SVM")
    progress.set_title("objective W / W*")
    sizes.set_title("vectors")
    for axis in (sizes, progress):
        axis.set_xlabel("examples seen")
        axis.legend()
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "docs" / "lasvm.svg")
