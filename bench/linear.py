"""Linear learners against scikit-learn and River: speed and accuracy, then the cost of options.

python bench/linear.py [--quick] [--only csr,dicts] [--clock cpu] [--json FILE]
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import linear_model, optim
from sklearn.linear_model import SGDClassifier
from timing import ask, in_turn, once, say

import onepass as op
from onepass import datasets
from onepass.charts.text import text_table

HELD_OUT = 5_000
FEATURES = 47_000


@dataclasses.dataclass
class Side:
    """How a model is made, how it learns its rows (only this is timed), and how it predicts held-out rows."""

    make: Callable[[], Any]
    learn: Callable[[Any], Any]
    predict: Callable[[Any], Any]


@dataclasses.dataclass
class Contest:
    """The same rows in the same order, learned by both sides."""

    work: str
    peer: str
    rows: int
    wanted: float  # 0: no ratio is required
    moonshot: float
    ours: Side
    theirs: Side
    truth: Any  # accuracy on the held-out rows


@dataclasses.dataclass
class Cost:
    """A ratio that should stay below `WANTED_COST`."""

    what: str
    measured: str
    ratio: float


WANTED_COST = 1.3


# -- data --------------------------------------------------------------------------------------------------


def text(rows: int, *, nnz: int = 68, classes: int = 2, tilt: float = 0.2) -> tuple[Any, Any]:
    """Bags of words as SciPy CSR: Zipf-distributed columns of 47k, unit rows."""
    stream = datasets.SparseText(rows, features=FEATURES, nnz=nnz, classes=classes, tilt=tilt)
    X, y = next(stream.chunks(rows))
    return X.csr_matrix(), y


def table(rows: int, d: int) -> tuple[Any, Any]:
    """Normal features, labels from a hidden linear model, 5% of them flipped."""
    return next(datasets.RotatingHyperplane(rows, d=d, turns=0.0, noise=0.05).chunks(rows))


def shared_keys(X: Any) -> list[dict[str, float]]:
    """Rows as dicts, whose keys are the same string objects in all rows, as from a schema or an interning parser."""
    names = [f"w{j}" for j in range(X.shape[1])]
    if isinstance(X, np.ndarray):
        return [dict(zip(names, row, strict=True)) for row in X.tolist()]
    indices, values = X.indices.tolist(), X.data.tolist()
    spans = itertools.pairwise(X.indptr.tolist())
    return [{names[j]: x for j, x in zip(indices[a:b], values[a:b], strict=True)} for a, b in spans]


def fresh_keys(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    """The same rows with string objects of their own, as `json.loads` line by line gives them."""
    return [json.loads(line) for line in [json.dumps(row) for row in rows]]


# -- contests ----------------------------------------------------------------------------------------------


def scikit_pa1(shuffle: bool = True) -> SGDClassifier:
    """PA-I with C = 1. By default it reads the rows in a random order, which causes cache misses."""
    return SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0, shuffle=shuffle)


def batches(work: str, X: Any, y: Any, wanted: float, moonshot: float) -> Iterator[Contest]:
    """One `partial_fit` over all but the last rows: the peer with its defaults, then with rows in our order."""
    rows = X.shape[0] - HELD_OUT
    train, labels, held = X[:rows], y[:rows], X[rows:]
    classes = np.unique(y)
    peer = "scikit-learn SGD pa1" + (" one-vs-all" if len(classes) > 2 else "")
    # scikit-learn multiplies its steps for the intercept of sparse rows by 0.01, as a constant feature of 0.1 does.
    scaling = 1.0 if isinstance(X, np.ndarray) else 0.1

    def learn(model: Any) -> None:
        model.partial_fit(train, labels, classes=classes)

    def predict(model: Any) -> Any:
        return model.predict(held)

    ours = Side(lambda: op.LinearClassifier("pa1", intercept_scaling=scaling), learn, predict)
    theirs = Side(scikit_pa1, learn, predict)
    yield Contest(work, peer, rows, wanted, moonshot, ours, theirs, y[rows:])
    theirs = Side(lambda: scikit_pa1(shuffle=False), learn, predict)
    yield Contest("  not shuffled", peer, rows, 0, 0, ours, theirs, y[rows:])


def one_at_a_time(work: str, X: Any, y: Any, wanted: float, moonshot: float) -> Contest:
    """Rows of an array, each learned by its own call."""
    rows = X.shape[0] - HELD_OUT
    train, labels, held = X[:rows], y[:rows].tolist(), X[rows:]
    classes = np.unique(y)

    def ours(model: Any) -> None:
        for row, label in zip(train, labels, strict=True):
            model.learn_one(row, label)

    def theirs(model: Any) -> None:
        for i in range(rows):
            model.partial_fit(train[i : i + 1], labels[i : i + 1], classes=classes)

    return Contest(
        work,
        "scikit-learn SGD pa1",
        rows,
        wanted,
        moonshot,
        Side(lambda: op.LinearClassifier("pa1"), ours, lambda model: model.predict_many(held)),
        Side(scikit_pa1, theirs, lambda model: model.predict(held)),
        y[rows:],
    )


def mappings(
    work: str, X: list[dict[str, float]], y: list[bool], wanted: dict[str, float], moonshot: float
) -> Iterator[Contest]:
    """predict_one + learn_one for every dict; PA-I, then logistic regression with the same constant step."""
    rows = len(X) - HELD_OUT
    train, held = list(zip(X[:rows], y[:rows], strict=True)), X[rows:]

    def learn(model: Any) -> None:
        for x, label in train:
            model.predict_one(x)
            model.learn_one(x, label)

    def predict(model: Any) -> Any:
        return [model.predict_one(x) for x in held]

    def river_logistic() -> Any:
        return linear_model.LogisticRegression(optim.SGD(0.1), intercept_lr=0.1)

    pairs = {
        "PAClassifier": ("pa1", linear_model.PAClassifier),
        "LogisticRegression": ("sgd:loss=logistic,schedule=constant,eta=0.1", river_logistic),
    }
    for name, (rule, peer) in pairs.items():
        ours = Side(lambda rule=rule: op.LinearClassifier(rule), learn, predict)
        theirs = Side(peer, learn, predict)
        yield Contest(work, f"River {name}", rows, wanted[name], moonshot, ours, theirs, y[rows:])


def csr(scale: float) -> Iterator[Contest]:
    X, y = text(int(200_000 * scale) + HELD_OUT)
    yield from batches("CSR, 68 of 47k features", X, y, 5, 7)


def dense(scale: float) -> Iterator[Contest]:
    for d, rows in ((10, 1_000_000), (100, 200_000), (1000, 20_000)):
        X, y = table(int(rows * scale) + HELD_OUT, d)
        yield from batches(f"dense, {d} features", X, y, 2, 3)


def rows(scale: float) -> Iterator[Contest]:
    X, y = table(int(5_000 * scale) + HELD_OUT, 100)
    yield one_at_a_time("rows of 100, one at a time", X, y, 100, 300)


def dicts(scale: float) -> Iterator[Contest]:
    count = int(20_000 * scale) + HELD_OUT
    few = {"PAClassifier": 10.0, "LogisticRegression": 7.0}
    many = {"PAClassifier": 8.0, "LogisticRegression": 5.0}
    for (X, y), work, wanted, moonshot in (
        (table(count, 10), "dicts of 10", few, 20.0),
        (text(count, tilt=0.3), "dicts of 68 of 47k", many, 15.0),
    ):
        labels = (y == 1).tolist()
        named = shared_keys(X)
        yield from mappings(work, named, labels, wanted, moonshot)
        yield from mappings("  keys of their own", fresh_keys(named), labels, dict.fromkeys(wanted, 0.0), 0.0)


def classes(scale: float) -> Iterator[Contest]:
    X, y = text(int(100_000 * scale) + HELD_OUT, classes=20, tilt=0.3)
    yield from batches("20 classes, CSR 68 of 47k", X, y, 6, 10)


CONTESTS = {"csr": csr, "dense": dense, "rows": rows, "dicts": dicts, "classes": classes}


def run(contest: Contest, repeats: int, clock: str) -> dict[str, Any]:
    say(f"{contest.work.strip()} / {contest.peer} …")
    sides = [contest.ours, contest.theirs]
    seconds, models = in_turn([(side.make, side.learn) for side in sides], repeats, clock)
    truth = np.asarray(contest.truth)
    predictions = [side.predict(model) for side, model in zip(sides, models, strict=True)]
    accuracy = [float(np.mean(np.asarray(given) == truth)) for given in predictions]
    ours = models[0]
    return {
        "work": contest.work,
        "peer": contest.peer,
        "rows": contest.rows,
        "ours": contest.rows / seconds[0],
        "theirs": contest.rows / seconds[1],
        "ratio": seconds[1] / seconds[0],
        "wanted": contest.wanted,
        "moonshot": contest.moonshot,
        "accuracy_ours": accuracy[0],
        "accuracy_theirs": accuracy[1],
        "updates": ours.k_ / ours.t_,
    }


# -- costs -------------------------------------------------------------------------------------------------


def costs(scale: float, repeats: int, clock: str) -> Iterator[Cost]:
    yield flat_batches(scale, repeats, clock)
    yield flat_dicts(scale, repeats, clock)
    yield linear_in_nnz(scale, repeats, clock)
    sparse = text(int(60_000 * scale))
    thick = table(int(60_000 * scale), 100)
    for name, (X, y) in (("CSR 68 of 47k", sparse), ("dense 100", thick)):
        average = {"rule": "pa1", "readout": "average"}
        yield overhead(f"averaging, {name}", X, y, {"rule": "pa1"}, average, repeats, clock)
        yield overhead(f"L2, {name}", X, y, {"rule": "sgd"}, {"rule": "sgd:l2=1e-4"}, repeats, clock)


def flat_batches(scale: float, repeats: int, clock: str) -> Cost:
    """Tenths of one stream, each a `partial_fit`; no row is learned twice."""
    count = int(1_000_000 * scale)
    X, y = text(count, nnz=17)
    parts = [(X[i : i + count // 10], y[i : i + count // 10]) for i in range(0, count, count // 10)]

    def tenth(model: Any, i: int) -> None:
        model.partial_fit(*parts[i], classes=[0, 1])

    return flat(f"flat: {count:,} rows, CSR 17 of 47k", tenth, count // 10, repeats, clock)


def flat_dicts(scale: float, repeats: int, clock: str) -> Cost:
    """The same tenth again and again: fresh dicts for 1M rows would not fit in memory."""
    count = int(100_000 * scale)
    X, y = table(count, 10)
    train = list(zip(shared_keys(X), y.tolist(), strict=True))

    def tenth(model: Any, i: int) -> None:
        for x, label in train:
            model.learn_one(x, label)

    return flat(f"flat: {10 * count:,} dicts of 10, learn_one", tenth, count, repeats, clock)


def flat(what: str, tenth: Callable[[Any, int], None], rows: int, repeats: int, clock: str) -> Cost:
    say(f"{what} …")
    best = [float("inf")] * 10
    for _ in range(repeats):
        model = op.LinearClassifier("pa1")
        for i in range(10):
            best[i] = min(best[i], once(lambda model=model, i=i: tenth(model, i), clock))
    first, last = (seconds / rows * 1e9 for seconds in (best[0], best[9]))
    return Cost(what, f"first tenth {first:.0f}, last {last:.0f} ns/example", last / first)


def linear_in_nnz(scale: float, repeats: int, clock: str) -> Cost:
    """Cost per non-zero of the longest rows over that of the shortest."""
    say("linear in nnz …")
    sizes = (17, 34, 68, 136)
    data = [text(int(40_000 * scale), nnz=nnz) for nnz in sizes]
    sides = [
        (lambda: op.LinearClassifier("pa1"), lambda model, X=X, y=y: model.partial_fit(X, y, classes=[0, 1]))
        for X, y in data
    ]
    seconds, _ = in_turn(sides, repeats, clock)
    each = [s / X.nnz * 1e9 for s, (X, _) in zip(seconds, data, strict=True)]
    measured = ", ".join(f"{nnz}: {ns:.2f}" for nnz, ns in zip(sizes, each, strict=True))
    return Cost("linear in nnz: 136 over 17, CSR", f"{measured} ns/nnz", each[-1] / each[0])


def overhead(what: str, X: Any, y: Any, plain: dict[str, Any], extra: dict[str, Any], repeats: int, clock: str) -> Cost:
    say(f"{what} …")

    def learn(model: Any) -> None:
        model.partial_fit(X, y, classes=[0, 1])

    sides = [(lambda options=options: op.LinearClassifier(**options), learn) for options in (plain, extra)]
    seconds, models = in_turn(sides, repeats, clock)
    without, with_it = (s / X.shape[0] * 1e9 for s in seconds)
    share = models[1].k_ / models[1].t_
    measured = f"without {without:.0f}, with {with_it:.0f} ns/example, {share:.0%} update"
    return Cost(what, measured, with_it / without)


# -- tables ------------------------------------------------------------------------------------------------


def speed_table(results: list[dict[str, Any]]) -> str:
    columns = "work|peer|ours ex/s|peer ex/s|ratio|wanted|moonshot|accuracy ours|accuracy peer|updates"
    cells = [columns.split("|")]
    for r in results:
        cells.append(
            [
                r["work"],
                r["peer"],
                f"{r['ours']:,.0f}",
                f"{r['theirs']:,.0f}",
                f"{r['ratio']:.1f}×",
                f"{r['wanted']:g}×" if r["wanted"] else "",
                f"{r['moonshot']:g}×" if r["moonshot"] else "",
                f"{r['accuracy_ours']:.3f}",
                f"{r['accuracy_theirs']:.3f}",
                f"{r['updates']:.0%}",
            ]
        )
    return text_table(cells, left=2)


def cost_table(results: list[Cost]) -> str:
    cells = [["cost", "measured", "ratio", "wanted"]]
    cells += [[cost.what, cost.measured, f"{cost.ratio:.2f}", f"< {WANTED_COST}"] for cost in results]
    return text_table(cells, left=2)


def verdict(speed: list[dict[str, Any]], cost: list[Cost]) -> str:
    below = [r for r in speed if r["ratio"] < r["wanted"]]
    missed = [f"{r['work'].strip()} / {r['peer']} ({r['ratio']:.1f}×)" for r in below]
    missed += [f"{c.what} ({c.ratio:.2f})" for c in cost if c.ratio >= WANTED_COST]
    return "missed: " + ("; ".join(missed) or "none")


def main() -> None:
    asked, about = ask(__doc__, (*CONTESTS, "costs"))
    print(f"accuracy: of {HELD_OUT:,} held-out rows after the pass; updates: share of rounds that changed ours")
    contests = itertools.chain.from_iterable(CONTESTS[name](asked.scale) for name in CONTESTS if name in asked.groups)
    speed = [run(contest, asked.repeats, asked.clock) for contest in contests]
    cost = list(costs(asked.scale, asked.repeats, asked.clock)) if "costs" in asked.groups else []
    if speed:
        print("\n" + speed_table(speed))
    if cost:
        print("\n" + cost_table(cost))
    print("\n" + verdict(speed, cost))
    asked.keep(about, speed=speed, cost=[dataclasses.asdict(c) for c in cost])


if __name__ == "__main__":
    main()
