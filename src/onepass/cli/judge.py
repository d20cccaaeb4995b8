"""What a model says of rows before it learns them, beside what was so: one way for each kind of answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, NumericalError, ParameterError
from ..evaluation.answers import Asker, Scored
from ..evaluation.examples import Rows
from ..evaluation.queries import Queries
from ..metrics import Outcomes
from ..metrics.outcomes import Labels, of_sets
from ..rows.batches import as_base, as_batch
from . import tasks

if TYPE_CHECKING:
    from ..evaluation.regret_recorder import RegretRecorder
    from ..models.linear import LinearModel
    from ..streams import Chunk

__all__ = ["Judge", "asker_of", "kind_of", "members", "new_model", "predictions_of", "scores_of", "usual_metrics"]

KINDS = {"regression": "numbers", "oneclass": "numbers", "multilabel": "sets", "ranking": "rankings"}
METRICS = {
    "regression": ["mae", "rmse"],
    "oneclass": ["excess", "above"],
    "multilabel": ["hamming", "set_error"],
    "ranking": ["ndcg"],
}
MOST = 1000  # examples of a query that a new one is paired with, as `Ranker`'s max_query


def new_model(rule: Any, task: str, **options: Any) -> Any:
    """Sets are predicted, so the scores of labels are divided by 0 where the rule can do that."""
    from ..models.linear import LinearModel

    if rule == "auto":
        from ..models.ensemble import EnsembleModel

        return EnsembleModel(task=task, **options)
    if task == "multilabel":
        try:
            return LinearModel(rule, task, threshold="calibrated", **options)
        except ParameterError:
            pass
    return LinearModel(rule, task, **options)


def kind_of(task: str) -> str:
    """What kind of metrics judges a task."""
    return KINDS.get(task, "classes")


def usual_metrics(task: str) -> list[str]:
    """What is measured where nothing is said."""
    return METRICS.get(task, ["error"])


def asker_of(model: LinearModel, needs: list[str]) -> Asker:
    """Fails where the model cannot give what is needed."""
    return Asker(model, needs, by_scores=kind_of(model.task) == "classes")


class Judge:
    """A model at work: outcomes of labelled rows, each made before its row was learned (or without learning it)."""

    def __init__(
        self, model: LinearModel, asker: Asker, labels: Labels, regret_recorder: RegretRecorder | None = None
    ) -> None:
        self.model, self.asker, self.labels, self.regret_recorder = model, asker, labels, regret_recorder

    def take(self, chunk: Chunk, held: Any = None, test_only: bool = False) -> tuple[Outcomes, Callable[[], Any]]:
        """Outcomes, and how to get what to write as predictions. `held`: rows that are judged but not learned."""
        weight = chunk.weight
        if held is not None:
            weight = np.where(held, 0.0, 1.0 if weight is None else weight)
        if self.model.task == "multilabel":
            return self._sets(chunk, weight, test_only)
        if self.model.task == "ranking":
            return self._queries(chunk, test_only)
        y = chunk.y if kind_of(self.model.task) == "numbers" else tasks.as_labels(chunk.y)
        if test_only:
            scores = scores_of(self.model, chunk)
            scored = Scored([(self.model.classes, scores)])
            said: Any = scored if self.asker.asks_more else self.model._predictions(scores)
        else:
            rows = Rows(chunk.X, y, weight, base=as_base(chunk.base, len(chunk)))
            if self.regret_recorder is not None:
                self.regret_recorder.require_no_base(rows)
            said = self.asker.predict_then_learn(rows)
            if self.regret_recorder is not None:
                self.regret_recorder.add(rows, said)
        outcomes = self.asker.outcomes_of(kind_of(self.model.task), self.labels, said, y, chunk.weight)
        return outcomes, lambda: said_of(outcomes)

    def _sets(self, chunk: Chunk, weight: Any, test_only: bool) -> tuple[Outcomes, Callable[[], Any]]:
        """Runs of rows whose labels are all known are learned at once; a row that brings a new one by itself."""
        model, truth = self.model, chunk.y.tolist()
        said: list[tuple[Any, ...]] = []
        start = 0
        while start < len(truth):
            known = set(model.classes)
            stop = start
            while stop < len(truth) and (test_only or known.issuperset(truth[stop])):
                stop += 1
            stop = max(stop, start + 1)
            X = chunk.X[start:stop]
            if test_only or not known.issuperset(truth[start]):
                said += members(model.classes, model.score_many(X))
                if not test_only:
                    model.learn_many(X, truth[start:stop], None if weight is None else weight[start:stop])
            else:
                importance = None if weight is None else weight[start:stop]
                for classes, scores in model.score_then_learn(X, truth[start:stop], importance):
                    said += members(classes, scores)
            start = stop
        c = np.ones(len(truth)) if chunk.weight is None else chunk.weight
        return of_sets(truth, said, c, self.labels), lambda: said

    def _queries(self, chunk: Chunk, test_only: bool) -> tuple[Outcomes, Callable[[], Any]]:
        """Whole queries: each row is scored, then paired with the rows of its query before it."""
        relevance = np.ascontiguousarray(chunk.y, dtype=np.float64)
        queries = np.full(len(relevance), -1) if chunk.query is None else chunk.query
        if test_only:
            scores = self.model.score_many(chunk.X)[:, 0]
        else:
            scores = rank_then_learn(self.model, chunk.X, relevance, queries, chunk.weight)
        gathered = Queries()
        parts = [gathered.add(Rows(chunk.X, relevance, None, None, queries), scores), gathered.close()]
        return Outcomes.join([part for part in parts if part is not None]), lambda: scores


def members(classes: list[Any], scores: Any) -> list[tuple[Any, ...]]:
    """The labels that score above 0."""
    return [tuple(classes[k] for k in np.flatnonzero(row > 0).tolist()) for row in scores[:, : len(classes)]]


def said_of(outcomes: Outcomes) -> Any:
    """Predictions of classes or numbers."""
    if outcomes.kind == "numbers":
        return outcomes.predicted
    values = outcomes.labels.values
    return [values[code] for code in outcomes.predicted.tolist()]


def scores_of(model: LinearModel, chunk: Chunk) -> Any:
    """Scores of rows, which begin where the rows say."""
    base = as_base(chunk.base, len(chunk))
    return model.score_many(chunk.X) if base is None else model.score_many(chunk.X, base)


def predictions_of(model: LinearModel | None, chunk: Chunk) -> Any:
    """What to write for rows without labels."""
    if model is None:
        return [None] * len(chunk)
    scores = scores_of(model, chunk)
    return members(model.classes, scores) if model.task == "multilabel" else model._predictions(scores)


def rank_then_learn(model: LinearModel, X: Any, relevance: Any, queries: Any, importance: Any) -> Any:
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
    begin = np.maximum(np.maximum.accumulate(np.where(first, number, 0)), number - MOST)
    c = np.ones(batch.rows) if importance is None else np.ascontiguousarray(importance, dtype=np.float64)
    scores, learned = np.zeros((batch.rows, 1)), np.zeros(1, dtype=np.int64)
    try:
        model.learn_pairs(batch, relevance, c, begin.astype(np.int64), 0, scores, learned)
    except (InputError, NumericalError):
        if batch.named and model.hash_bits is None:
            model._columns.forget(model, batch, known, int(learned[0]))
        raise
    return scores[:, 0]
