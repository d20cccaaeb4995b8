"""The first-order rules: speed and quality of multiclass variants, FOBOS, PAMIR and multilabel learning.

python bench/first_order.py [--quick] [--only classes,pamir] [--clock cpu] [--json FILE]
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import label_ranking_average_precision_score
from sklearn.multioutput import MultiOutputClassifier
from timing import ask, in_turn, once, say

import onepass as op
from onepass import datasets
from onepass.charts.text import text_table
from onepass.models.linear import LinearModel
from onepass.rows.batches import as_batch

HELD_OUT = 5_000
FEATURES = 47_000
CLASSES = 20


@dataclasses.dataclass
class Side:
    """How a model is made, how it learns its rows (only this is timed), and how its quality is measured."""

    name: str
    make: Callable[[], Any]
    learn: Callable[[Any], Any]
    quality: Callable[[Any], float]


@dataclasses.dataclass
class Round:
    """Some of our learners and their peers, in turns on the same rows; each of ours is compared with the peer of the
    same index.
    """

    work: str
    rows: int  # or pairs
    ours: list[tuple[Side, int]]
    peers: list[Side]
    wanted: float | None  # no ratio is required where both sides wait for the memory
    at_most: bool = False  # the ratio is then a cost: our seconds over theirs
    memory: Any = None  # an array that is read once and too large for the caches: the memory bounds the speed


# -- data --------------------------------------------------------------------------------------------------


def text(rows: int, *, nnz: int = 68, classes: int = 2, tilt: float = 0.2, seed: int = 0) -> tuple[Any, Any]:
    """Bags of words as SciPy CSR: Zipf-distributed columns of 47k, unit rows."""
    stream = datasets.SparseText(rows, features=FEATURES, nnz=nnz, classes=classes, tilt=tilt, seed=seed)
    X, y = next(stream.chunks(rows))
    return X.csr_matrix(), y


def mixtures(rows: int) -> tuple[Any, Any]:
    """Texts of two halves, each about one of 20 topics: CSR of about 64 words, and the set of topics."""
    X, Y = 0.0, np.zeros((rows, CLASSES), dtype=np.int64)
    for seed in (0, 1):
        half, y = text(rows, nnz=34, classes=CLASSES, tilt=0.5, seed=seed)
        X = half + X if seed else half
        Y[np.arange(rows), y] = 1
    X.sort_indices()
    return X, Y


def labelled_table(rows: int, d: int, labels: int) -> tuple[Any, Any]:
    """Normal features; a label where its hidden direction says so, a fifth of the time."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, d))
    scores = X @ rng.standard_normal((d, labels)) / np.sqrt(d) + 0.3 * rng.standard_normal((rows, labels))
    return X, (scores > 0.8).astype(np.int64)


def queries(count: int, documents: int, d: int) -> tuple[Any, Any, Any]:
    """A table of queries, relevance 0 or 1 by a hidden direction and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((count * documents, d)) / np.sqrt(d)
    y = (X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(len(X)) > 0.8).astype(float)
    return X, y, np.repeat(np.arange(count), documents)


# -- multiclass and FOBOS ----------------------------------------------------------------------------------


def classifier(name: str, rule: str, X: Any, y: Any, **options: Any) -> Side:
    return batch_side(name, lambda: op.LinearClassifier(rule, **options), X, y)


def batch_side(name: str, make: Callable[[], Any], X: Any, y: Any) -> Side:
    rows = X.shape[0] - HELD_OUT
    train, labels, held, truth = X[:rows], y[:rows], X[rows:], y[rows:]
    classes = np.unique(y)

    def learn(model: Any) -> None:
        model.partial_fit(train, labels, classes=classes)

    return Side(name, make, learn, lambda model: float(np.mean(model.predict(held) == truth)))


def classes(scale: float) -> Iterator[Round]:
    """Each variant against scikit-learn's one-vs-all by the same kind of loss."""
    X, y = text(int(100_000 * scale) + HELD_OUT, classes=CLASSES, tilt=0.3)
    variants = [
        ("perceptron, rival", "perceptron", "rival", 0),
        ("perceptron, uniform", "perceptron", "uniform", 0),
        ("perceptron, proportional", "perceptron", "proportional", 0),
        ("mira, mira", "mira", "mira", 1),
        ("pa1, rival", "pa1", "rival", 1),
        ("pa1, all", "pa1", "all", 1),
        ("pa2, all", "pa2", "all", 1),
        ("sgd logistic, softmax", "sgd:loss=logistic,eta=10", "rival", 2),
    ]
    options = [
        {"loss": "perceptron", "learning_rate": "constant", "eta0": 1.0},
        {"loss": "hinge", "learning_rate": "pa1", "eta0": 1.0},
        {"loss": "log_loss", "learning_rate": "invscaling", "eta0": 10.0, "power_t": 0.5},
    ]
    ours = [
        (classifier(name, rule, X, y, multiclass=multiclass, intercept_scaling=0.1), peer)
        for name, rule, multiclass, peer in variants
    ]
    peers = [
        batch_side(
            f"scikit-learn SGD {given['loss']}{' pa1' if given['learning_rate'] == 'pa1' else ''} one-vs-all",
            lambda given=given: SGDClassifier(penalty=None, **given),
            X,
            y,
        )
        for given in options
    ]
    yield Round(f"{CLASSES} classes, CSR 68 of 47k", X.shape[0] - HELD_OUT, ours, peers, 6)


def fobos(scale: float) -> Iterator[Round]:
    X, y = text(int(100_000 * scale) + HELD_OUT)
    for loss in ("hinge", "logistic"):
        rule = f"loss={loss},eta=10"
        ours = [
            (classifier(f"fobos {loss}, lam1={lam1}", f"fobos:{rule},lam1={lam1}", X, y, intercept_scaling=0.1), 0)
            for lam1 in ("1e-6", "1e-4")
        ]
        net = f"fobos:{rule},lam1=1e-5,lam2=1e-5"
        ours.append((classifier(f"fobos {loss}, lam1=lam2=1e-5", net, X, y, intercept_scaling=0.1), 0))
        truncated = f"truncated:{rule},gravity=1e-5"
        ours.append((classifier(f"truncated {loss}, gravity=1e-5", truncated, X, y, intercept_scaling=0.1), 0))
        plain = classifier(f"sgd {loss}", f"sgd:{rule}", X, y, intercept_scaling=0.1)
        yield Round("CSR 68 of 47k", X.shape[0] - HELD_OUT, ours, [plain], 1.5, at_most=True)


# -- PAMIR -------------------------------------------------------------------------------------------------


def numpy_dense(w: Any, z: Any) -> None:
    """PAMIR with C = 1, as fast as possible in NumPy: all norms at once, one product and one addition for each pair."""
    norms = np.einsum("ij,ij->i", z, z).tolist()
    for row, norm in zip(z, norms, strict=True):
        loss = 1.0 - row.dot(w)
        if loss > 0.0:
            w += min(1.0, loss / norm) * row


def numpy_csr(w: Any, z: Any) -> None:
    norms = np.add.reduceat(z.data * z.data, z.indptr[:-1]).tolist()
    data, indices = z.data, z.indices
    for (a, b), norm in zip(itertools.pairwise(z.indptr.tolist()), norms, strict=True):
        at, values = indices[a:b], data[a:b]
        now = w[at]
        loss = 1.0 - now.dot(values)
        if loss > 0.0:
            now += min(1.0, loss / norm) * values
            w[at] = now


def met(y: Any) -> tuple[Any, Any, Any]:
    """The pairs of one query in Ranker's order, each row with every earlier one of another relevance: both rows, and a
    sign.
    """
    row, before = np.nonzero(np.tri(len(y), k=-1, dtype=bool) & (y[:, np.newaxis] != y))
    return row, before, np.where(y[before] < y[row], 1.0, -1.0)


def by_query(qid: Any) -> Iterator[slice]:
    ends = [0, *(np.flatnonzero(np.diff(qid)) + 1).tolist(), len(qid)]
    return itertools.starmap(slice, itertools.pairwise(ends))


def numpy_queries(w: Any, X: Any, y: Any, qid: Any) -> None:
    """All differences of a query at once (NumPy has the whole query; Ranker can also learn it row by row)."""
    for query in by_query(qid):
        row, before, sign = met(y[query])
        numpy_dense(w, (X[query][row] - X[query][before]) * sign[:, np.newaxis])


def numpy_sparse_queries(w: Any, X: Any, y: Any, qid: Any) -> None:
    """The same for CSR rows; no difference is formed: the norms from a query's products, two gathers a pair."""
    data, indices, starts = X.data, X.indices, X.indptr.tolist()
    for query in by_query(qid):
        row, before, sign = met(y[query])
        products = (X[query] @ X[query].T).toarray()
        squares = products.diagonal()
        norms = squares[row] + squares[before] - 2.0 * products[row, before]
        parts = [(indices[a:b], data[a:b]) for a, b in itertools.pairwise(starts[query.start : query.stop + 1])]
        for i, j, s, norm in zip(row.tolist(), before.tolist(), sign.tolist(), norms.tolist(), strict=True):
            (at, values), (at_before, values_before) = parts[i], parts[j]
            loss = 1.0 - s * (w[at].dot(values) - w[at_before].dot(values_before))
            if loss > 0.0:
                step = s * min(1.0, loss / norm)
                w[at] += step * values
                w[at_before] -= step * values_before


def weights(model: Any) -> Any:
    if isinstance(model, LinearModel):
        return model.weights()[0][0]
    return model.coef_ if isinstance(model, op.Ranker) else model


def in_order(held: Any) -> Callable[[Any], float]:
    """The share of held-out pairs with the preferred one ahead."""
    return lambda model: float(np.mean(held @ weights(model) > 0))


def directions(work: str, z: Any, learn: Callable[[Any, Any], None]) -> Round:
    """Pairs given as rows of differences, read once from memory: for comparison, without a required ratio."""
    rows, d = z.shape[0] - HELD_OUT, z.shape[1]
    train, quality = z[:rows], in_order(z[rows:])
    ours = Side(
        "LinearModel.learn_directions",
        lambda: LinearModel("pamir", "ranking", fit_intercept=False),
        lambda model: model.learn_directions(as_batch(train)),
        quality,
    )
    theirs = Side("NumPy", lambda: np.zeros(d), lambda w: learn(w, train), quality)
    large = train if isinstance(train, np.ndarray) and train.nbytes > 100e6 else None
    return Round(work, rows, [(ours, 0)], [theirs], None, memory=large)


def rankers(work: str, X: Any, y: Any, qid: Any, learn: Callable[..., None]) -> Round:
    """Pairs that Ranker makes from the rows of queries; quality on the pairs of the first 50 queries."""
    probe = op.Ranker("pamir").fit(X, y, qid)
    wrong_way = [np.flatnonzero((qid == key) & (y == level)) for key in range(50) for level in (0.0, 1.0)]
    low = np.concatenate([np.tile(a, len(b)) for a, b in zip(wrong_way[::2], wrong_way[1::2], strict=True)])
    high = np.concatenate([np.repeat(b, len(a)) for a, b in zip(wrong_way[::2], wrong_way[1::2], strict=True)])
    quality = in_order(X[high] - X[low])
    ours = Side("Ranker.fit", lambda: op.Ranker("pamir"), lambda model: model.fit(X, y, qid), quality)
    theirs = Side("NumPy", lambda: np.zeros(X.shape[1]), lambda w: learn(w, X, y, qid), quality)
    return Round(work, probe.t_, [(ours, 0)], [theirs], 20)


def pamir(scale: float) -> Iterator[Round]:
    rng = np.random.default_rng(0)
    for d, rows in ((46, 200_000), (300, 100_000)):
        rows = int(rows * scale) + HELD_OUT
        z = rng.standard_normal((rows, d)) / np.sqrt(d)
        hidden = rng.standard_normal(d)
        z *= np.sign(z @ hidden + 0.3 * rng.standard_normal(rows))[:, np.newaxis]
        yield directions(f"pairs, dense {d}", z, numpy_dense)
    X, y = text(2 * (int(50_000 * scale) + HELD_OUT))
    one, two = X[np.flatnonzero(y == 1)], X[np.flatnonzero(y == 0)]
    count = min(one.shape[0], two.shape[0])
    z = one[:count] - two[:count]
    yield directions(f"pairs, CSR {z.nnz // z.shape[0]} of 47k", z, numpy_csr)
    for documents, d in ((20, 46), (200, 46), (200, 300)):
        X, y, qid = queries(max(50, int(40_000 * scale * 46 / d) // documents), documents, d)
        yield rankers(f"queries of {documents}, dense {d}", X, y, qid, numpy_queries)
    X, y = text(int(10_000 * scale))
    qid = np.repeat(np.arange(len(y) // 20 + 1), 20)[: len(y)]
    yield rankers("queries of 20, CSR 68 of 47k", X, y.astype(float), qid, numpy_sparse_queries)


# -- multilabel --------------------------------------------------------------------------------------------


def multilabel(scale: float) -> Iterator[Round]:
    for work, (X, Y), scaling in (
        ("6 labels, dense 300", labelled_table(int(20_000 * scale) + HELD_OUT, 300, 6), 1.0),
        ("14 labels, dense 100", labelled_table(int(40_000 * scale) + HELD_OUT, 100, 14), 1.0),
        ("20 labels, CSR 64 of 47k", mixtures(int(50_000 * scale) + HELD_OUT), 0.1),
    ):
        rows = X.shape[0] - HELD_OUT
        train, labels, held, truth = X[:rows], Y[:rows], X[rows:], Y[rows:]
        some = truth.any(axis=1)

        def precision(scores: Any, truth: Any = truth, some: Any = some) -> float:
            return float(label_ranking_average_precision_score(truth[some], scores[some]))

        ours = Side(
            "MultilabelClassifier pa1",
            lambda scaling=scaling: op.MultilabelClassifier("pa1", intercept_scaling=scaling),
            lambda model, train=train, labels=labels: model.partial_fit(train, labels),
            lambda model, held=held, precision=precision: precision(model.decision_function(held)),
        )
        theirs = Side(
            "scikit-learn MultiOutputClassifier(SGD pa1)",
            lambda: MultiOutputClassifier(SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0)),
            lambda model, train=train, labels=labels: model.partial_fit(
                train, labels, classes=[np.arange(2)] * labels.shape[1]
            ),
            lambda model, held=held, precision=precision: precision(
                np.column_stack([each.decision_function(held) for each in model.estimators_])
            ),
        )
        yield Round(work, rows, [(ours, 0)], [theirs], 10)


ROUNDS = {"classes": classes, "fobos": fobos, "pamir": pamir, "multilabel": multilabel}


# -- tables ------------------------------------------------------------------------------------------------


def run(round_: Round, repeats: int, clock: str) -> Iterator[dict[str, Any]]:
    say(f"{round_.work} …")
    sides = [side for side, _ in round_.ours] + round_.peers
    seconds, models = in_turn([(side.make, side.learn) for side in sides], repeats, clock)
    quality = [side.quality(model) for side, model in zip(sides, models, strict=True)]
    for i, (side, against) in enumerate(round_.ours):
        peer = len(round_.ours) + against
        model = models[i]
        rounds, updates = (model.t, model.k) if isinstance(model, LinearModel) else (model.t_, model.k_)
        ratio = seconds[i] / seconds[peer] if round_.at_most else seconds[peer] / seconds[i]
        yield {
            "work": round_.work,
            "learner": side.name,
            "peer": sides[peer].name,
            "ours": round_.rows / seconds[i],
            "theirs": round_.rows / seconds[peer],
            "ratio": ratio,
            "wanted": round_.wanted,
            "at_most": round_.at_most,
            "met": round_.wanted is None or (ratio <= round_.wanted if round_.at_most else ratio >= round_.wanted),
            "quality_ours": quality[i],
            "quality_theirs": quality[peer],
            "updates": updates / rounds,
            "of_memory": None if round_.memory is None else memory_seconds(round_.memory, clock) / seconds[i],
        }


def memory_seconds(array: Any, clock: str) -> float:
    """The shortest time in which the array can be read from memory, by a sum and by a product with itself."""
    flat = array.reshape(-1)
    return min(once(work, clock) for _ in range(3) for work in (flat.sum, lambda: flat.dot(flat)))


def table(results: list[dict[str, Any]]) -> str:
    cells = ["work|learner|peer|ours /s|peer /s|ratio|wanted|quality ours|quality peer|updates".split("|")]
    for r in results:
        cells.append(
            [
                r["work"],
                r["learner"],
                r["peer"],
                f"{r['ours']:,.0f}",
                f"{r['theirs']:,.0f}",
                f"{r['ratio']:.2f}" if r["at_most"] else f"{r['ratio']:.1f}×",
                "" if r["wanted"] is None else f"<= {r['wanted']:g}" if r["at_most"] else f"{r['wanted']:g}×",
                f"{r['quality_ours']:.3f}",
                f"{r['quality_theirs']:.3f}",
                f"{r['updates']:.0%}",
            ]
        )
    return text_table(cells, left=3)


def main() -> None:
    asked, about = ask(__doc__, list(ROUNDS))
    print(
        "/s: examples, for pamir pairs. quality after the pass: accuracy of held-out rows; for pamir pairs in order (of"
    )
    print("queries: seen ones); for multilabel average precision. fobos: our seconds over those of plain sgd")
    rounds = itertools.chain.from_iterable(ROUNDS[name](asked.scale) for name in ROUNDS if name in asked.groups)
    results = [result for each in rounds for result in run(each, asked.repeats, asked.clock)]
    print("\n" + table(results))
    missed = [
        f"  {r['work']} / {r['learner']}: {r['ratio']:.2f}, wanted {r['wanted']:g}"
        + (f"; it reads its rows at {r['of_memory']:.0%} of what a sum of them does" if r["of_memory"] else "")
        for r in results
        if not r["met"]
    ]
    print("\nmissed:" + ("\n" + "\n".join(missed) if missed else " none"))
    asked.keep(about, speed=results)


if __name__ == "__main__":
    main()
