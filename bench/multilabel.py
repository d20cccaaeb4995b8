"""Scene and yeast: label sets, learned in one pass by MultilabelClassifier; compared with a model of scikit-learn per
label.

ONEPASS_DATA=/path/to/data python bench/multilabel.py [--quick] [--passes N]

Rules that support it are run calibrated and uncalibrated (`threshold=`); the others only order the labels.
Means over random orders of the training rows (yeast: the first 1,500; scene: 1,211 drawn anew each time; the rest is
the test set). Of the test set: ranking loss and Hamming loss (lower is better), micro-F1, micro-F1 with the threshold
that is best on the training rows in place of 0 (the rules only order labels), label-ranking average precision. Steps
(C, eta) are the best of a few by average precision on the last fifth of the first order's training rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import data_sets
import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import hamming_loss, label_ranking_average_precision_score, label_ranking_loss
from sklearn.multioutput import MultiOutputClassifier

import onepass as op

# A rule and the values of its step to choose from.
STEPS = ("1", "0.1", "0.01", "0.001")
RULES: dict[str, tuple[str, ...]] = {
    "perceptron": ("perceptron",),
    "pa": ("pa",),
    "pa1": tuple(f"pa1:C={c}" for c in STEPS),
    "pa2": tuple(f"pa2:C={c}" for c in STEPS),
    "mira": ("mira",),
    "romma": ("romma",),
    "aromma": ("aromma",),
    "alma": ("alma",),
    "shifting": ("shifting",),
    "sgd hinge": tuple(f"sgd:eta={eta}" for eta in ("10", *STEPS)),
    "sgd logistic": tuple(f"sgd:loss=logistic,eta={eta}" for eta in ("10", *STEPS)),
}
PEERS = {
    "scikit-learn pa1": {"loss": "hinge", "penalty": None, "learning_rate": "pa1"},
    "scikit-learn logistic": {"loss": "log_loss", "penalty": None, "learning_rate": "invscaling", "power_t": 0.5},
}
MEASURES = ("ranking loss", "Hamming loss", "micro-F1", "F1, threshold", "average precision")


class Frequencies:
    """The baseline: every label scores its share of the training rows, less a half."""

    def learn(self, X: Any, Y: Any) -> None:
        self.scores = Y.mean(axis=0) - 0.5

    def score(self, X: Any) -> Any:
        return np.tile(self.scores, (len(X), 1))


class Ours:
    def __init__(self, rule: str, readout: str, threshold: str) -> None:
        self.model = op.MultilabelClassifier(rule, readout=readout, threshold=threshold)

    def learn(self, X: Any, Y: Any) -> None:
        self.model.partial_fit(X, Y)

    def score(self, X: Any) -> Any:
        return self.model.decision_function(X)


class Theirs:
    """A model per label."""

    def __init__(self, options: dict[str, Any], average: bool) -> None:
        self.model = MultiOutputClassifier(SGDClassifier(shuffle=False, average=average, **options))

    def learn(self, X: Any, Y: Any) -> None:
        self.model.partial_fit(X, Y, classes=[np.arange(2)] * Y.shape[1])

    def score(self, X: Any) -> Any:
        return np.column_stack([each.decision_function(X) for each in self.model.estimators_])


def micro_f1(scores: Any, Y: Any, threshold: float = 0.0) -> float:
    given = scores > threshold
    return 2.0 * float(np.sum(Y[given])) / float(np.sum(given) + np.sum(Y))


def threshold(scores: Any, Y: Any) -> float:
    """The score above which labels are given, best by micro-F1."""
    return float(max(np.quantile(scores, np.linspace(0.02, 0.98, 49)), key=lambda cut: micro_f1(scores, Y, cut)))


def measure(scores: Any, Y: Any, cut: float = 0.0) -> list[float]:
    some = Y.any(axis=1)  # the ranking of a row without labels is never wrong, and has no precision
    return [
        label_ranking_loss(Y, scores),
        hamming_loss(Y, (scores > 0).astype(int)),
        micro_f1(scores, Y),
        micro_f1(scores, Y, cut),
        label_ranking_average_precision_score(Y[some], scores[some]),
    ]


def run(make: Callable[[], Any], split: tuple[Any, ...], passes: int) -> list[float]:
    X, Y, held, truth = split
    model = make()
    for _ in range(passes):
        model.learn(X, Y)
    return measure(model.score(held), truth, threshold(model.score(X), Y))


def splits(name: str, orders: int) -> list[tuple[Any, ...]]:
    """Training rows in random order, test rows."""
    X, Y = data_sets.scene() if name == "scene" else data_sets.yeast()
    out = []
    for seed in range(orders):
        generator = np.random.default_rng(seed)
        if name == "scene":
            order = generator.permutation(len(X))
            train, test = order[:1211], order[1211:]
        else:
            train, test = generator.permutation(1500), np.arange(1500, len(X))
        out.append((X[train], Y[train], X[test], Y[test]))
    return out


def best(makes: dict[str, Callable[[], Any]], split: tuple[Any, ...], passes: int) -> str:
    """The name of the maker whose models order the last fifth of the training rows best."""
    if len(makes) == 1:
        return next(iter(makes))
    X, Y = split[:2]
    cut = len(X) * 4 // 5
    within = X[:cut], Y[:cut], X[cut:], Y[cut:]
    return max(makes, key=lambda name: run(makes[name], within, passes)[-1])


def learners() -> Iterator[tuple[str, str, dict[str, Callable[[], Any]]]]:
    """The threshold, the readout, and the models to choose from, by name."""
    yield "", "", {"label frequencies": Frequencies}
    for rules in RULES.values():
        traits = op.LinearModel(rules[0], "multilabel").rule.traits
        calibrates = traits.additive or traits.sums_steps
        for threshold in ("calibrated", "uncalibrated") if calibrates else ("uncalibrated",):
            for readout in ("last", "average"):
                given = (readout, threshold)
                yield threshold, readout, {rule: lambda rule=rule, given=given: Ours(rule, *given) for rule in rules}
    for name, options in PEERS.items():
        for readout in ("last", "average"):
            makes = {}
            for eta in STEPS:
                given = {**options, "eta0": float(eta)}
                makes[f"{name}, eta0={eta}"] = lambda given=given, average=readout == "average": Theirs(given, average)
            yield "", readout, makes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two orders in place of five")
    parser.add_argument("--passes", type=int, default=1, help="times through the training rows (1)")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")  # scikit-learn's FutureWarnings
    orders = 2 if given.quick else 5
    cells = [["data", "learner", "threshold", "readout", *MEASURES]]
    for name in ("scene", "yeast"):
        cuts = splits(name, orders)
        for calibration, readout, makes in learners():
            chosen = best(makes, cuts[0], given.passes)
            data_sets.say(f"{name}: {chosen} {calibration} {readout}")
            results = np.mean([run(makes[chosen], split, given.passes) for split in cuts], axis=0)
            cells.append([name, chosen, calibration, readout, *(f"{value:.3f}" for value in results)])
    print(f"{given.passes} pass(es), mean of {orders} orders\n")
    print(data_sets.table(cells, left=4))


if __name__ == "__main__":
    main()
