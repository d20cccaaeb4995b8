"""MQ2008: rankers learned in one pass over the pairs of each query; NDCG@10 and MAP, mean over LETOR's five folds.

ONEPASS_DATA=/path/to/data python bench/ranking.py [--quick]

Fold k trains on three parts, chooses the step (C, eta, mu) by NDCG@10 on the fourth, and is measured on the fifth.
Gain 2^relevance − 1, discount log2(1 + place); MAP counts relevance above 0. A query without a relevant document counts
as 0 in both, as in LETOR's own script, hence the row "ideal order". Equal scores are ordered at random.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import data_sets
import numpy as np
from sklearn.linear_model import SGDClassifier

import onepass as op

STEPS = ("1", "0.1", "0.01", "0.001", "0.0001")
RULES: dict[str, tuple[str, ...]] = {
    "pamir": tuple(f"pamir:C={c}" for c in STEPS),
    "pa": ("pa",),
    "pa2": tuple(f"pa2:C={c}" for c in STEPS),
    "mroc": tuple(f"mroc:beta={beta},mu={mu}" for beta in ("1", "10") for mu in STEPS),
    "perceptron": ("perceptron",),
    "romma": ("romma",),
    "aromma": ("aromma",),
    "alma": ("alma",),
    "mira": ("mira",),
    "shifting": ("shifting",),
    "sgd hinge": tuple(f"sgd:eta={eta}" for eta in ("10", *STEPS)),
    "sgd logistic": tuple(f"sgd:loss=logistic,eta={eta}" for eta in ("10", *STEPS)),
    "pegasos": tuple(f"pegasos:lam={lam}" for lam in STEPS),
}
Part = tuple[Any, Any, Any]  # X, relevance, query


def ndcg(relevance: Any, at: int = 10) -> float:
    """NDCG of relevances in the order of the results."""
    discount = 1.0 / np.log2(2.0 + np.arange(min(at, len(relevance))))
    gain = 2.0**relevance - 1.0
    best = np.sort(gain)[::-1][: len(discount)] @ discount
    return float(gain[: len(discount)] @ discount / best) if best > 0 else 0.0


def average_precision(relevance: Any) -> float:
    places = np.flatnonzero(relevance > 0) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places)) if len(places) else 0.0


def measure(scores: Any, y: Any, qid: Any) -> tuple[float, float]:
    """NDCG@10 and MAP, mean over queries."""
    shuffled = np.random.default_rng(0).permutation(len(y))
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    queries = [y[order[qid[order] == key]] for key in np.unique(qid)]
    return float(np.mean([ndcg(q) for q in queries])), float(np.mean([average_precision(q) for q in queries]))


def pairs(X: Any, y: Any, qid: Any) -> Any:
    """The differences that Ranker learns, in its order: each row with every earlier, unlike row of its query."""
    out = []
    for i in range(len(y)):
        before = np.flatnonzero((qid[:i] == qid[i]) & (y[:i] != y[i]))
        out.append(np.sign(y[i] - y[before])[:, np.newaxis] * (X[i] - X[before]))
    return np.concatenate(out)


def ours(rule: str, readout: str, train: Part) -> Any:
    X, y, qid = train
    return op.Ranker(rule, readout=readout).fit(X, y, qid).coef_


def theirs(C: float, average: bool, train: Part) -> Any:
    """The same pairs; every other one is reversed, so that there are two classes."""
    z = pairs(*train)
    side = np.where(np.arange(len(z)) % 2 == 0, 1, -1)
    options = {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": C, "fit_intercept": False}
    model = SGDClassifier(shuffle=False, average=average, **options)
    return model.partial_fit(z * side[:, np.newaxis], side, classes=[-1, 1]).coef_[0]


def best_feature(train: Part) -> Any:
    """The one feature, up or down, that orders the training queries best."""
    X, y, qid = train
    directions = [sign * row for row in np.eye(X.shape[1]) for sign in (1.0, -1.0)]
    return max(directions, key=lambda w: measure(X @ w, y, qid)[0])


def learners() -> Iterator[tuple[str, str, list[Callable[[Part], Any]]]]:
    for name, rules in RULES.items():
        for readout in ("last", "average"):
            makes = [lambda train, rule=rule, readout=readout: ours(rule, readout, train) for rule in rules]
            yield name, readout, makes
    for readout in ("last", "average"):
        average = readout == "average"
        yield (
            "scikit-learn pa1 on the pairs",
            readout,
            [lambda train, C=float(c), average=average: theirs(C, average, train) for c in STEPS],
        )
    yield "best single feature", "", [best_feature]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first fold only")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")  # scikit-learn's FutureWarnings
    parts = data_sets.mq2008()
    folds = []
    for k in range(1 if given.quick else 5):
        turned = [parts[(k + i) % 5] for i in range(5)]
        train = tuple(np.concatenate([part[i] for part in turned[:3]]) for i in range(3))
        folds.append((train, turned[3], turned[4]))

    def mean(score: Callable[[Part, Part, Part], Any]) -> list[str]:
        results = []
        for train, validation, test in folds:
            results.append(measure(score(train, validation, test), test[1], test[2]))
        return [f"{value:.4f}" for value in np.mean(results, axis=0)]

    cells = [["learner", "readout", "NDCG@10", "MAP"]]
    for name, readout, makes in learners():
        data_sets.say(f"{name} {readout}")

        def score(train: Part, validation: Part, test: Part, makes: Any = makes) -> Any:
            tried = [make(train) for make in makes]
            w = max(tried, key=lambda w: measure(validation[0] @ w, validation[1], validation[2])[0])
            return test[0] @ w

        cells.append([name, readout, *mean(score)])
    cells.append(["random order", "", *mean(lambda train, validation, test: np.zeros(len(test[1])))])
    cells.append(["ideal order", "", *mean(lambda train, validation, test: test[1])])
    counts = [len(pairs(*part)) for part in parts]
    queries = sum(len(np.unique(part[2])) for part in parts)
    print(f"{len(folds)} fold(s); {queries} queries, {sum(counts):,} pairs in the five parts\n")
    print(data_sets.table(cells, left=2))


if __name__ == "__main__":
    main()
