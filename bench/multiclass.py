"""RCV1 topics and MNIST: one pass of every multiclass variant, the weights at the end and their average.

ONEPASS_DATA=/path/to/data python bench/multiclass.py [--quick] [--only rcv1,mnist]

RCV1: documents with exactly one topic of the second level, shuffled once, the last fifth for testing. MNIST: as given.
Progressive error: each row predicted before it is learned, by the readout named. Steps (C, eta) are the best of a few
by progressive error on the first tenth of the rows. "nonzero": share of the last weights; "seconds": the learning pass.
scikit-learn is one-vs-all (its own way), in the same order. On RCV1 the constant feature is 0.1: at 1 it would be half
of every row's squared norm.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
import warnings
from typing import Any

import data_sets
import numpy as np
from sklearn.linear_model import SGDClassifier

from onepass.models.linear import LinearModel

STEPS = ("100", "10", "1", "0.1", "0.01", "0.001")


@dataclasses.dataclass
class Data:
    name: str
    X: Any
    y: Any
    held: Any
    truth: Any
    constant: float = 1.0  # the intercept's feature

    @property
    def classes(self) -> int:
        return int(self.y.max()) + 1

    def prefix(self, rows: int) -> Data:
        return Data(self.name, self.X[:rows], self.y[:rows], self.held, self.truth, self.constant)


def rcv1() -> Data:
    X, y, _ = data_sets.rcv1()
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [len(order) * 4 // 5])
    # scikit-learn multiplies its steps for the intercept of sparse rows by 0.01, as a constant feature of 0.1 does.
    return Data("rcv1", X[train], y[train], X[test], y[test], constant=0.1)


def mnist() -> Data:
    return Data("mnist", *data_sets.mnist())


SETS = {"rcv1": rcv1, "mnist": mnist}

# Rules to choose from, and the multiclass variant.
RULES: list[tuple[tuple[str, ...], str]] = [
    (("perceptron",), "rival"),
    (("perceptron",), "uniform"),
    (("perceptron",), "proportional"),
    (("mira",), "rival"),
    (("mira",), "mira"),
    (tuple(f"pa1:C={c}" for c in STEPS), "rival"),
    (tuple(f"pa1:C={c}" for c in STEPS), "all"),
    (tuple(f"pa2:C={c}" for c in STEPS), "rival"),
    (tuple(f"pa2:C={c}" for c in STEPS), "all"),
    (("romma",), "rival"),
    (("aromma",), "rival"),
    (("alma",), "rival"),
    (("shifting",), "rival"),
    (tuple(f"sgd:eta={eta}" for eta in STEPS), "rival"),
    (tuple(f"sgd:loss=logistic,eta={eta}" for eta in STEPS), "softmax"),
    *(
        (tuple(f"fobos:loss=logistic,lam1={lam1},eta={eta}" for eta in STEPS), "softmax")
        for lam1 in ("1e-6", "1e-5", "1e-4")
    ),
]
PEERS = {
    "scikit-learn pa1": {"loss": "hinge", "penalty": None, "learning_rate": "pa1"},
    "scikit-learn logistic": {"loss": "log_loss", "penalty": None, "learning_rate": "invscaling", "power_t": 0.5},
}


def model(rule: str, multiclass: str, readout: str, d: Data) -> LinearModel:
    return LinearModel(
        rule,
        "multiclass",
        classes=range(d.classes),
        intercept_scaling=d.constant,
        readout=readout,
        multiclass="rival" if multiclass == "softmax" else multiclass,
    )


def wrong(given: Any, truth: Any) -> float:
    return float(np.mean(np.asarray(given) != truth))


def ours(rule: str, multiclass: str, readout: str, d: Data) -> list[str]:
    learner = model(rule, multiclass, readout, d)
    progressive = wrong(learner.predict_then_learn(d.X, d.y), d.y)
    timed = model(rule, multiclass, readout, d)
    start = time.process_time()
    timed.learn_many(d.X, d.y)
    seconds = time.process_time() - start
    test = wrong(learner.predict_many(d.held), d.truth)
    nonzero = np.mean(learner.weights(last=True)[0] != 0)
    updates = learner.k / learner.t
    return [f"{progressive:.2%}", f"{test:.2%}", f"{nonzero:.1%}", f"{updates:.0%}", f"{seconds:.2f}"]


def best(rules: tuple[str, ...], multiclass: str, readout: str, d: Data) -> str:
    if len(rules) == 1:
        return rules[0]
    few = d.prefix(len(d.y) // 10)

    def progressive(rule: str) -> float:
        return wrong(model(rule, multiclass, readout, d).predict_then_learn(few.X, few.y), few.y)

    return min(rules, key=progressive)


def theirs(options: dict[str, Any], average: bool, d: Data) -> tuple[str, list[str]]:
    """The best step on the second half of the first tenth, after learning the first half."""
    rows = len(d.y) // 20

    def learned(eta: str, X: Any, y: Any) -> Any:
        peer = SGDClassifier(shuffle=False, average=average, eta0=float(eta), **options)
        return peer.partial_fit(X, y, classes=np.arange(d.classes))

    few, next_few = slice(0, rows), slice(rows, 2 * rows)
    eta = min(STEPS, key=lambda eta: wrong(learned(eta, d.X[few], d.y[few]).predict(d.X[next_few]), d.y[next_few]))
    start = time.process_time()
    peer = learned(eta, d.X, d.y)
    seconds = time.process_time() - start
    nonzero = np.mean(peer.coef_ != 0)
    return eta, ["–", f"{wrong(peer.predict(d.held), d.truth):.2%}", f"{nonzero:.1%}", "–", f"{seconds:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the training rows")
    parser.add_argument("--only", default=",".join(SETS), help="sets to run, by commas: rcv1,mnist")
    given = parser.parse_args()
    names = given.only.split(",")
    if not set(names) <= set(SETS):
        parser.error(f"--only {given.only}: expected some of {','.join(SETS)}")
    warnings.filterwarnings("ignore")  # scikit-learn's FutureWarnings
    heading = "data|learner|multiclass|readout|progressive error|test error|nonzero|updates|seconds"
    cells = [heading.split("|")]
    about = []
    for name in names:
        d = SETS[name]()
        if given.quick:
            d = d.prefix(len(d.y) // 10)
        about.append(f"{name}: {d.X.shape[0]:,} + {d.held.shape[0]:,} test × {d.X.shape[1]:,}, {d.classes} classes")
        for rules, multiclass in RULES:
            lazy = rules[0].startswith("fobos")  # L1 by lazy updates has no average
            for readout in ("last",) if lazy else ("last", "average"):
                rule = best(rules, multiclass, readout, d)
                data_sets.say(f"{name}: {rule} {multiclass} {readout}")
                cells.append([name, rule, multiclass, readout, *ours(rule, multiclass, readout, d)])
        for peer, options in PEERS.items():
            for readout in ("last", "average"):
                data_sets.say(f"{name}: {peer} {readout}")
                eta, results = theirs(options, readout == "average", d)
                cells.append([name, f"{peer}, eta0={eta}", "one-vs-all", readout, *results])
    print("\n".join(about) + "\n")
    print(data_sets.table(cells, left=4))


if __name__ == "__main__":
    main()
