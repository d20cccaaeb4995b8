"""Pictures of drift and of continual learning: ``python scripts/draw_drift.py [FOLDER]``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from sklearn.datasets import load_digits

import onepass as op
from onepass import datasets
from onepass.compose.continual import AGEM, EWC, Replay, SoftmaxSGD, learn_tasks, split_tasks
from onepass.drift import DriftAdapt, DriftReset, DriftWindow

matplotlib.use("Agg")
from matplotlib import pyplot


def drift(folder: Path) -> None:
    """Errors over three concepts, each of 3,000 examples, with the drifts that were detected."""
    stream = datasets.STAGGER(9000, concepts=(0, 2, 0), noise=0.05)
    base = op.LinearClassifier("perceptron", readout="average")
    picture, axis = pyplot.subplots(figsize=(9, 3), constrained_layout=True)
    models = {"static": base, "DriftReset": DriftReset(base), "DriftAdapt": DriftAdapt(base)}
    for name, model in {**models, "DriftWindow": DriftWindow(base, window=500)}.items():
        run = op.prequential(model, stream, every=50, window=200)
        [line] = axis.plot(run.t, run.window, label=name, linewidth=1.2)
        for t, _ in run.marks:
            axis.axvline(t, color=line.get_color(), linestyle=":", linewidth=1)
    axis.set_xlabel("examples; the concept changes at 3,000 and 6,000; dotted: a learner was replaced")
    axis.set_ylabel("error, last 200")
    axis.legend()
    picture.savefig(folder / "drift.svg", metadata={"Date": None})


def continual(folder: Path) -> None:
    """Accuracy on the first two digits while the others are learned, and on all tasks at the end."""
    X, y = load_digits(return_X_y=True)
    tasks = split_tasks(X / 16, y, 2)
    picture, axes = pyplot.subplots(1, 2, figsize=(9, 3), constrained_layout=True)
    for i, model in enumerate((SoftmaxSGD(), EWC(lam=5.0), AGEM(), Replay())):
        kept = learn_tasks(model, tasks, classes=list(range(10)))
        name = type(model).__name__
        axes[0].plot(range(1, 6), kept.R[:, 0], marker="o", markersize=3, label=name)
        axes[1].bar([j + 0.2 * i for j in range(5)], kept.R[-1], width=0.2, label=name)
    axes[0].set_title("0 against 1, after each task")
    axes[0].set_xlabel("tasks learned")
    axes[0].set_ylabel("accuracy")
    axes[0].set_xticks(range(1, 6))
    axes[0].legend()
    axes[1].set_title("all tasks, after the last")
    axes[1].set_xticks([j + 0.3 for j in range(5)], [task.name for task in tasks])
    axes[1].set_xlabel("digits")
    picture.savefig(folder / "continual.svg", metadata={"Date": None})


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs"
    matplotlib.rcParams |= {"svg.hashsalt": "onepass", "font.size": 8}
    drift(folder)
    continual(folder)


if __name__ == "__main__":
    main()
