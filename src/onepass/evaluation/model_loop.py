"""The prequential loop of a model whose task is known: labels, numbers, sets of labels, or whole queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, NumericalError
from ..metrics import Outcomes
from ..metrics.outcomes import of_sets
from ..models.options import RankingOptions
from ..rows.batches import as_batch
from ..rows.examples import Examples
from .answers import Asker, Scored
from .examples import equal_runs
from .loop import Loop
from .queries import Queries

if TYPE_CHECKING:
    from .regret_recorder import RegretRecorder

__all__ = ["ModelLoop", "kind_of", "label_sets", "predictions_of", "scores_of"]

KINDS = {"regression": "numbers", "oneclass": "numbers", "multilabel": "sets", "ranking": "rankings"}
MAX_QUERY = RankingOptions.max_query  # examples of a query that a new one is paired with

Predictions = Callable[[], Any]  # makes the predictions as they are written to a file


def kind_of(task: str) -> str:
    """What kind of metrics judges a task."""
    return KINDS.get(task, "classes")


class ModelLoop(Loop):
    """The loop over a `LinearModel`, `KernelModel` or `EnsembleModel`, with every task that they have."""

    def __init__(self, model: Any, needs: list[str], regret: RegretRecorder | None = None) -> None:
        """Fails where the model cannot give what the metrics need: `needs`."""
        super().__init__(Asker(model, needs, by_scores=kind_of(model.task) == "classes"), regret=regret)
        self.model = model

    def learn(
        self, rows: Examples, held: NDArray[np.bool_] | None = None, *, test_only: bool = False
    ) -> tuple[Outcomes, Predictions]:
        """Judge labelled rows and learn those that are not `held` out; none with `test_only`."""
        if self.model.task == "multilabel":
            outcomes, predictions = self._label_sets(rows, held, test_only)
        elif self.model.task == "ranking":
            outcomes, predictions = self._queries(rows, test_only)
        else:
            said = self._test(rows) if test_only else self.predict_then_learn(rows, held)
            outcomes = self.judge(rows, said)
            predictions = lambda: labels_or_numbers(outcomes)  # noqa: E731
        self.examples += rows.size()
        return outcomes, predictions

    def _test(self, rows: Examples) -> Any:
        scores = scores_of(self.model, rows.X, rows.base)
        return Scored([(self.model.classes, scores)]) if self.asker.asks_more else self.model._predictions(scores)

    def _label_sets(
        self, rows: Examples, held: NDArray[np.bool_] | None, test_only: bool
    ) -> tuple[Outcomes, Predictions]:
        """Examples of which each has a set of labels."""
        said: list[tuple[Any, ...]] = []
        unlearned = np.full(rows.size(), test_only) if held is None else held | test_only
        for start, stop in equal_runs(unlearned):
            part = rows.part(start, stop)
            if unlearned[start]:
                said += label_sets(self.model.classes, self.model.score_many(part.X))
            else:
                said += self._learn_sets(part)
        c = np.ones(rows.size()) if rows.weight is None else rows.weight
        return of_sets(rows.y.tolist(), said, c, self.labels), lambda: said

    def _learn_sets(self, rows: Examples) -> list[tuple[Any, ...]]:
        """Consecutive rows whose labels are all known are learned at once, a row that brings a new label by itself."""
        model, truth, weight = self.model, rows.y.tolist(), rows.weight
        said: list[tuple[Any, ...]] = []
        start = 0
        while start < len(truth):
            stop = self._end_of_known(truth, start)
            X, importance = rows.X[start:stop], None if weight is None else weight[start:stop]
            if not set(model.classes).issuperset(truth[start]):
                said += label_sets(model.classes, model.score_many(X))
                model.learn_many(X, truth[start:stop], importance)
            else:
                for classes, scores in model.score_then_learn(X, truth[start:stop], importance):
                    said += label_sets(classes, scores)
            start = stop
        return said

    def _end_of_known(self, truth: list[Any], start: int) -> int:
        """Where the rows from `start` on end whose labels the model knows; at least one row."""
        known, stop = set(self.model.classes), start
        while stop < len(truth) and known.issuperset(truth[stop]):
            stop += 1
        return max(stop, start + 1)

    def _queries(self, rows: Examples, test_only: bool) -> tuple[Outcomes, Predictions]:
        """Whole queries: each row is scored, then paired with the rows of its query before it."""
        relevance = np.ascontiguousarray(rows.y, dtype=np.float64)
        queries = np.full(len(relevance), -1) if rows.query is None else rows.query
        if test_only:
            scores = self.model.score_many(rows.X)[:, 0]
        else:
            scores = rank_then_learn(self.model, rows.X, relevance, queries, rows.weight)
        gathered = Queries()
        parts = [gathered.add(Examples(rows.X, relevance, None, None, queries), scores), gathered.close()]
        return Outcomes.join([part for part in parts if part is not None]), lambda: scores


def label_sets(classes: list[Any], scores: Any) -> list[tuple[Any, ...]]:
    """Of each row the labels that score above 0."""
    return [tuple(classes[k] for k in np.flatnonzero(row > 0).tolist()) for row in scores[:, : len(classes)]]


def labels_or_numbers(outcomes: Outcomes) -> Any:
    """What was predicted, as users write it."""
    if outcomes.kind == "numbers":
        return outcomes.predicted
    values = outcomes.labels.values
    return [values[code] for code in outcomes.predicted.tolist()]


def scores_of(model: Any, X: Any, base: Any) -> Any:
    """Scores of rows; each begins at its initial prediction, where there are some."""
    return model.score_many(X) if base is None else model.score_many(X, base)


def predictions_of(model: Any, X: Any, base: Any) -> Any:
    """Predictions as users write them."""
    scores = scores_of(model, X, base)
    return label_sets(model.classes, scores) if model.task == "multilabel" else model._predictions(scores)


def rank_then_learn(model: Any, X: Any, relevance: Any, queries: Any, importance: Any) -> Any:
    """Scores of the rows of whole queries, each before its pairs were learned. A refused row leaves those before it."""
    known = model.n_names
    batch = model._placed(as_batch(X), learning=True)
    assert batch.csr is not None
    data, indices, starts = batch.csr
    rows = np.repeat(np.arange(batch.rows), np.diff(starts))
    order = np.lexsort((indices, rows))  # differences are made of rows whose columns rise
    batch.csr = (np.ascontiguousarray(data[order], dtype=np.float64), np.ascontiguousarray(indices[order]), starts)
    number = np.arange(batch.rows)
    first = np.concatenate([[True], queries[1:] != queries[:-1]])
    begin = np.maximum(np.maximum.accumulate(np.where(first, number, 0)), number - MAX_QUERY)
    c = np.ones(batch.rows) if importance is None else np.ascontiguousarray(importance, dtype=np.float64)
    scores, learned = np.zeros((batch.rows, 1)), np.zeros(1, dtype=np.int64)
    try:
        model.learn_pairs(batch, relevance, c, begin.astype(np.int64), 0, scores, learned)
    except (InputError, NumericalError):
        if batch.named and model.hash_bits is None:
            model._columns.forget(model, batch, known, int(learned[0]))
        raise
    return scores[:, 0]
