"""Draws docs/lasvm.svg: ``python scripts/draw_lasvm.py [FILE]``.

Two moons, one pass: the boundary early and at the end, the set S and the support vectors over time, and the objective
against the batch solution's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from drawing import INK, boundary, over_time, panels, save
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from onepass import LaSVMClassifier

C, GAMMA, ROWS = 10.0, 2.0, 400
TIMES = (20, 80, ROWS)


def draw(path: Path) -> None:
    X, y = make_moons(ROWS, noise=0.2, random_state=0)
    svc = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(X, y)
    alpha, vectors = svc.dual_coef_[0], svc.support_vectors_
    K = np.exp(-GAMMA * np.sum((vectors[:, np.newaxis] - vectors) ** 2, axis=2))
    best = alpha @ (2 * y[svc.support_] - 1) - alpha @ K @ alpha / 2
    picture, axes = panels(5)
    model = LaSVMClassifier(C=C, gamma=GAMMA)
    stored, support, objective = [], [], []
    pictures = iter(axes)
    for t in range(1, ROWS + 1):
        model.partial_fit(X[t - 1 : t], y[t - 1 : t], classes=[0, 1])
        stored.append(model.n_stored_)
        support.append(model.n_support_)
        objective.append(model.objective_[0] / best)
        if t in TIMES:
            title = f"t = {t}: {model.n_support_} support vectors"
            boundary(next(pictures), model.decision_function, X[:t], y[:t] == 1, model.support_vectors_, title)
    times = np.arange(1, ROWS + 1)
    sizes, progress = axes[3:]
    sizes.plot(times, stored, color="tab:gray", label="stored, |S|")
    sizes.plot(times, support, color=INK, label="with α ≠ 0")
    sizes.axhline(len(svc.support_), color="tab:red", linestyle="dotted", label="batch SVM")
    progress.plot(times, objective, color=INK, label="one pass")
    model.finish_now()
    progress.plot(ROWS, model.objective_[0] / best, "o", color="tab:green", label="and finish")
    progress.axhline(1, color="tab:red", linestyle="dotted", label="batch SVM")
    over_time(sizes, "vectors")
    over_time(progress, "objective W / W*")
    save(picture, path)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "docs" / "lasvm.svg")
