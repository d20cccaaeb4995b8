"""Draws docs/kernels.svg and docs/budgets.svg: ``python scripts/draw_kernels.py [FOLDER]``.

A checkerboard of 3 × 3 fields, one pass. Kernels: the Perceptron's boundary and support vectors over time; sizes and
errors of three rules. Budgets, with PA-I: the boundaries of four budgets of the same size, the ages of their vectors,
their errors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from drawing import CLASSES, INK, boundary, over_time, panels, save

from onepass import KernelClassifier, budgets, kernels

ROWS, FIELDS, B = 1500, 3, 40
GAMMA = 6.0


def board(rows: int, seed: int) -> tuple[Any, Any]:
    X = np.random.default_rng(seed).uniform(0, FIELDS, (rows, 2))
    return X, np.floor(X).sum(axis=1) % 2


def learn(model: KernelClassifier, X: Any, y: Any, step: int, test: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """Learn in steps: the times, the number of support vectors and the error on fresh examples at each."""
    times, sizes, errors = [], [], []
    for start in range(0, len(X), step):
        model.partial_fit(X[start : start + step], y[start : start + step], classes=[0.0, 1.0])
        times.append(start + step)
        sizes.append(model.n_support_)
        errors.append(float(np.mean(model.predict(test[0]) != test[1])))
    return times, sizes, errors


def draw_kernels(path: Path) -> None:
    (X, y), test = board(ROWS, 0), board(2000, 1)
    picture, axes = panels(5)
    for axis, t in zip(axes, (50, 300, ROWS), strict=False):
        model = KernelClassifier("perceptron", kernel=kernels.RBF(GAMMA)).fit(X[:t], y[:t])
        title = f"Perceptron, t = {t}: {model.n_support_} vectors"
        boundary(axis, model.decision_function, X[:t], y[:t] == 1, model.support_vectors_, title)
    for rule, colour in (("perceptron", CLASSES[0]), ("pa1", INK), ("norma:nu=0.1,eta=1", CLASSES[1])):
        model = KernelClassifier(rule, kernel=kernels.RBF(GAMMA))
        times, sizes, errors = learn(model, X, y, 20, test)
        axes[3].plot(times, sizes, color=colour, label=rule)
        axes[4].plot(times, errors, color=colour, label=rule)
    over_time(axes[3], "support vectors, no budget")
    over_time(axes[4], "error on fresh examples")
    axes[4].set_ylim(0, 0.6)
    save(picture, path)


def draw_budgets(path: Path) -> None:
    (X, y), test = board(ROWS, 0), board(2000, 1)
    picture, axes = panels(6)
    shown = (
        ("Oldest", budgets.Oldest(B), "#7b5aa6"),
        ("Random", budgets.Random(B), "#808080"),
        ("BPA-S", budgets.BPAS(B), CLASSES[0]),
        ("BPA-P", budgets.BPAP(B), CLASSES[1]),
    )
    for number, (name, budget, colour) in enumerate(shown):
        model = KernelClassifier("pa1", kernel=kernels.RBF(GAMMA), budget=budget)
        times, _, errors = learn(model, X, y, 20, test)
        boundary(axes[number], model.decision_function, X, y == 1, model.support_vectors_, f"{name}, B = {B}")
        axes[4].plot(np.sort(ROWS - model.births_), np.arange(1, B + 1), color=colour, label=name)
        axes[5].plot(times, errors, color=colour, label=name)
    axes[4].set_title("the support set at the end: how old")
    axes[4].set_xlabel("examples since it came")
    axes[4].set_ylabel("vectors at most so old")
    axes[4].legend(frameon=False)
    over_time(axes[5], "error on fresh examples")
    axes[5].set_ylim(0, 0.6)
    save(picture, path)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "docs"
    draw_kernels(folder / "kernels.svg")
    draw_budgets(folder / "budgets.svg")
