"""`Ranker`: learns to order the examples of a query, from pairs of which one is preferred to the other."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ..errors import InputError, LabelError, NumericalError, RowError
from ..learner import LearnerTraits
from ..models.base import joined
from ..models.base import read_count as read_stored_count
from ..models.linear import LinearModel
from ..models.option_values import read_count
from ..models.options import FeatureLimitOptions, RankingOptions, ReadoutOptions, RuleOptions, shared_options
from ..persistence import store
from ..rows.batches import Batch, as_batch, is_mappings
from ..rows.labels import as_target, as_targets
from ..rows.reals import is_real
from ..scheme.rounds import Array
from .decoders import Features, difference
from .fit_options import PassOptions
from .linear import LinearWeights
from .queries import Examples, Query, Stream, check_queries, kind_of, read_mappings, read_one, read_queries, read_table
from .tables import read_order

__all__ = ["Ranker"]


class QueryWeights(LinearWeights):
    """The base of learners of queries."""

    _query: Query | None = None  # the query in progress
    _examples = _dropped = 0
    _described: dict[str, Any] | None = None  # the prefix of its arrays in the state


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class Ranker(QueryWeights, PassOptions, RankingOptions, FeatureLimitOptions, ReadoutOptions, RuleOptions):
    """Pairwise ranking, in one pass, by any rule that is defined for it; with the default PA-I it is PAMIR.

    Of two examples of one query the one of higher relevance y should score higher by 1: φ = x_p − x_n, ⟨w, φ⟩ ≥ 1
    (Grangier and Bengio 2008). An arriving example is paired with every earlier example of its query whose relevance
    differs, oldest first. The importance of a pair is the product of its examples' importances. There is no
    intercept: it would cancel.

    Parameters
    ----------
    rule : a rule's name (``"pa1"``, ``"pa1:C=0.1"``) or a `Rule`.
    readout : which weights score: "last" or "average".
    hash_bits : None gives every feature name its own weight; b hashes names into 2^b weights.
    max_query : how many examples of the current query are remembered; beyond it the oldest is dropped and counted
        in `dropped_`.
    max_features : how many features that are not hashed there may be; more are an error.
    passes, shuffle, random_state : how often and in which order `fit` goes through its data. `shuffle` permutes the
        queries, and the examples within each.

    The examples of a query must follow one another: a new `qid` ends the query before it, and one that comes back
    begins anew. Without `qid` the whole stream is one query, in which `max_query` makes a sliding window.

    `t_` counts pairs, `n_examples_` examples. Where a pair's update overflows, its example is refused
    (`NumericalError`, `.row`): none of its pairs is learned, and it is not remembered. Those before it are.
    """

    _answers_with = "rank"

    @property
    def traits(self) -> LearnerTraits:
        return dataclasses.replace(super().traits, verbs=frozenset({"predict_then_learn", "explain_one"}))

    # -- one at a time ---------------------------------------------------------------------------------------------

    def learn_pair(self, preferred: Any, other: Any, importance: float = 1.0) -> None:
        """Learn that one example, a mapping or a row, is preferred to another, whatever their query."""
        model = self._model or self._named(self._new_model())
        higher, lower = read_one(model, preferred), read_one(model, other)
        query, examples = Query(1).append(lower, np.zeros(1), np.ones(1)).with_same_kind(model, higher)
        c = np.array([_finite(importance)])
        if isinstance(examples, list):
            _learn_named_pairs(model, query, examples[0], 1.0, float(c[0]), 0)
        else:
            pair = query.append(examples, np.ones(1), c)
            assert isinstance(pair.examples, Batch)
            begin, learned = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64)
            try:
                model.learn_pairs(pair.examples, pair.relevance, pair.importance, begin, 1, None, learned)
            except NumericalError:
                raise _overflow(model, 0) from None
            except RowError as error:
                raise error.at(0) from None
        self._model = model

    def learn_one(self, x: Any, y: Any, qid: Hashable = None, importance: float = 1.0) -> None:  # type: ignore[override]
        """Learn one example of query `qid`: x a mapping or a row, y its relevance."""
        relevance, c = _relevance(y), _finite(importance)
        if self._query is None or self._query.key != qid:
            check_queries([qid])
        model = self._model or self._named(self._new_model())
        stream = Stream(read_one(model, x), np.array([relevance]), np.array([c]), [qid])
        self._query_of(stream).require_comparable(model, stream.examples)
        self._model = model
        self._learn(model, stream)

    # -- many ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn afresh from the rows of queries: X a table or a list of mappings, y relevances, qid their queries."""
        passes, order, generator = read_order(self.passes, self.shuffle, self.random_state, drawn=False)
        model, stream = self._checked(None, X, y, qid, sample_weight, whole=True)
        self._model, self._query = model, None
        self._examples = self._dropped = 0
        for _ in range(passes):
            self._query = None
            self._learn(model, stream.shuffled(generator) if order == "shuffle" else stream)
            model.flush()
        return self

    def partial_fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row, also inside a query."""
        model, stream = self._checked(self._model, X, y, qid, sample_weight)
        self._model = model
        self._learn(model, stream)
        return self

    def learn_many(self, X: Any, y: Any, qid: Any = None, importance: Any = None) -> None:  # type: ignore[override]
        """Learn rows in order: an array, a frame, a CSR matrix or a list of mappings."""
        model, stream = self._checked(self._model, X, y, qid, importance, by_table=False)
        self._model = model
        self._learn(model, stream)

    def predict_then_learn(  # type: ignore[override]
        self, X: Any, y: Any, qid: Any = None, importance: Any = None
    ) -> Array:
        """For each row the score given to it just before it is learned."""
        model, stream = self._checked(self._model, X, y, qid, importance, by_table=False)
        self._model = model
        return self._learn(model, stream, predict=True)

    def predict(self, X: Any) -> Array:
        """Scores; in a query, higher comes first."""
        return self._scores(X)[:, 0]

    def score(self, X: Any, y: Any, qid: Any = None) -> float:
        """The share of pairs that the scores put in the right order, averaged over queries.

        A pair is two examples of one query (wherever in X) that differ in relevance; equal scores count half. With
        two levels of relevance this is the area under the ROC curve.
        """
        scores = self.predict(X)
        relevance = _relevances(y, len(scores))
        members: dict[Any, list[int]] = {}
        for row, key in enumerate(read_queries(qid, len(scores))):
            members.setdefault(key, []).append(row)
        shares = [share for rows in members.values() if (share := _in_order(scores[rows], relevance[rows])) is not None]
        if not shares:
            raise InputError("no two examples of one query differ in relevance: there is no pair to score")
        return float(np.mean(shares))

    def _checked(
        self,
        model: LinearModel | None,
        X: Any,
        y: Any,
        qid: Any,
        sample_weight: Any,
        *,
        whole: bool = False,
        by_table: bool = True,
    ) -> tuple[LinearModel, Stream]:
        """Validate the input; return the model and the examples. An error changes nothing.

        `by_table`: scikit-learn's methods fix the number and the names of columns, the stream's do not.
        """
        with self._all_or_nothing():
            examples: Examples
            if is_mappings(X):
                model = model or self._new_model()
                examples = read_mappings(model, X)
            else:
                if by_table or hasattr(self, "n_features_in_"):
                    table = self._validated(X, reset=model is None)
                    model = model or self._named(self._new_model())
                else:
                    table = as_batch(X)
                    model = model or self._new_model()
                    if table.names and not model.started and model.hash_bits is None:
                        model.name_columns(table.names)
                examples = read_table(model, model.check_rows(table))
            n = len(examples) if isinstance(examples, list) else examples.rows
            if n == 0:
                raise InputError("X has no rows; expected at least one")
            weights = self._weights_of(sample_weight, Batch(n, 1), whole=whole)
            importance = np.ones(n) if weights is None else weights
            stream = Stream(examples, _relevances(y, n, by_table=by_table), importance, read_queries(qid, n))
            if n and not whole:
                self._query_of(stream).require_comparable(model, examples)
        return model, stream

    def _query_of(self, stream: Stream) -> Query:
        """The query of a stream's first example: the one in progress, or a new one."""
        query, key = self._query, stream.query(0)
        return query if query is not None and query.key == key else Query(self._room(), key)

    def _learn(self, model: LinearModel, stream: Stream, predict: bool = False) -> Array:
        """Learn a stream; return the scores before each example was learned."""
        scores = np.zeros((len(stream) if predict else 0, 1))
        query = self._query_of(stream)
        head = 0
        if len(query) and kind_of(query.examples) != kind_of(stream.examples):
            # Examples of the query in progress are converted to its kind, those of later queries are not.
            changes = np.flatnonzero(stream.changes()[1:])
            head = int(changes[0]) + 1 if len(changes) else len(stream)
        for start, stop in ((0, head), (head, len(stream))):
            if start < stop:
                self._learn_part(model, stream.part(start, stop), scores[start:stop] if predict else None)
        return scores[:, 0]

    def _learn_part(self, model: LinearModel, stream: Stream, scores: Array | None) -> None:
        query, examples = self._query_of(stream).with_same_kind(model, stream.examples)
        if isinstance(examples, Batch):
            self._learn_rows(model, query, dataclasses.replace(stream, examples=examples), scores)
            return
        for i, (x, y, c) in enumerate(
            zip(examples, stream.relevance.tolist(), stream.importance.tolist(), strict=True)
        ):
            if query.key != stream.query(i):
                query = Query(self._room(), stream.query(i))
            self._query = query
            if scores is not None:
                scores[i] = model.score_one(x)
            _learn_named_pairs(model, query, x, y, c, stream.row(i))
            full = len(query) == query.room
            longer = query.append([x], np.array([y]), np.array([c]))
            query = self._query = longer.copy_part(int(full), len(longer))
            self._dropped += full
            self._examples += 1

    def _learn_rows(self, model: LinearModel, query: Query, stream: Stream, scores: Array | None) -> None:
        """Learn all rows in one native loop. Row i is paired with the rows of its query from begin[i] on."""
        before = len(query)
        together = query.append(stream.examples, stream.relevance, stream.importance)
        firsts = np.concatenate([[0], np.flatnonzero(stream.changes()[1:]) + before + 1])
        lengths = np.diff(firsts, append=len(together))
        rooms = np.full(len(firsts), self._room())
        rooms[0] = query.room
        begin = np.repeat(firsts, lengths)
        leaves = np.zeros(0, dtype=bool)  # True if the query of a row is full when the row arrives
        if np.any(lengths > rooms):
            place, room = np.arange(len(together)), np.repeat(rooms, lengths)
            leaves = (place - begin >= room)[before:]
            begin = np.maximum(begin, place - room)
        learned = np.zeros(1, dtype=np.int64)
        assert isinstance(together.examples, Batch)
        try:
            model.learn_pairs(
                together.examples, together.relevance, together.importance, begin, before, scores, learned
            )
        except NumericalError:
            raise _overflow(model, stream.row(int(learned[0]))) from None
        except RowError as error:
            raise error.at(stream.row(int(learned[0]))) from None
        finally:
            end = before + int(learned[0])
            last = min(end, len(together) - 1)  # the row that was refused, or the last one
            which = int(np.searchsorted(firsts, last, side="right")) - 1  # its query
            key = query.key if which == 0 else stream.query(last - before)
            kept = together.copy_part(max(int(firsts[which]), end - int(rooms[which])), end)
            self._query = dataclasses.replace(kept, room=int(rooms[which]), key=key)
            self._dropped += int(np.count_nonzero(leaves[: end - before]))
            self._examples += int(learned[0])

    # -- what was learned ------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Array:
        weights, _ = self._learned().weights()
        return np.ravel(weights)

    @property
    def n_examples_(self) -> int:
        """The number of learned examples. Each is paired with the earlier ones of its query of another relevance."""
        self._learned()
        return self._examples

    @property
    def dropped_(self) -> int:
        """The number of examples that were dropped from their query because of max_query."""
        self._learned()
        return self._dropped

    def _started(self) -> bool:
        return self._model is not None and (self._model.started or self._examples > 0)

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        self._room()
        return LinearModel(**shared_options(self, LinearModel), task="ranking")

    def _room(self) -> int:
        return read_count("max_query", self.max_query)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- files -----------------------------------------------------------------------------------------------------

    def _learned_state(self) -> tuple[dict[str, Any] | None, dict[str, NDArray[Any]]]:
        """The query in progress included."""
        learned, arrays = super()._learned_state()
        if self._query is not None:
            arrays = {**arrays, **joined({"extra.": self._query.arrays()})}
        return learned, arrays

    def _resume(self, learned: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super()._resume(learned, arrays)
        model = self._learned()
        waiting, model.extra_arrays = model.extra_arrays, {}
        if self._described is not None:
            [key] = store.decode_values(self._described["key"])
            self._query = Query.of_arrays(self._room(), key, self._described["kind"], waiting, model.n_features)
        elif waiting:
            raise ValueError("there are examples of a query, but no query")

    def _attributes(self) -> dict[str, Any]:
        query = self._query
        described = query and {"key": store.encode_values([query.key]), "kind": kind_of(query.examples)}
        return {**super()._attributes(), "query": described, "examples": self._examples, "dropped": self._dropped}

    def _set_attributes(self, attributes: Mapping[str, Any]) -> None:
        super()._set_attributes(attributes)
        self._examples = read_stored_count(attributes, "examples")
        self._dropped = read_stored_count(attributes, "dropped")
        self._described = attributes["query"]


def _learn_named_pairs(model: LinearModel, query: Query, x: Features, y: float, c: float, row: int) -> None:
    """Learn the pairs of a mapping with the examples of its query whose relevance is not y, oldest first."""
    assert isinstance(query.examples, list)
    unlike = np.flatnonzero(query.relevance != y).tolist()
    others = [(query.examples[j], query.relevance[j] < y) for j in unlike]
    directions = [difference(x, z) if ahead else difference(z, x) for z, ahead in others]
    try:
        with np.errstate(over="ignore"):  # an infinite importance is refused below
            importance = c * query.importance[unlike]
        if not (np.isfinite(importance).all() and all(math.isfinite(v) for phi in directions for v in phi.values())):
            raise NumericalError("not finite")
        model.learn_together(directions, importance)
    except NumericalError:
        raise _overflow(model, row) from None
    except RowError as error:
        raise error.at(row) from None


def _overflow(model: LinearModel, row: int) -> NumericalError:
    return NumericalError(
        f"row {row}: the update of {model.rule!r} by a pair of this row overflows; scale the features down or choose "
        "smaller steps",
        row,
    )


def _relevance(y: Any) -> float:
    try:
        return as_target(y)
    except LabelError as error:
        raise LabelError(f"{error}, as the example's relevance") from None


def _relevances(y: Any, rows: int, *, by_table: bool = True) -> Array:
    try:
        relevance = as_targets(column_or_1d(y, warn=True) if by_table else y)
    except LabelError:
        raise
    except ValueError as error:
        raise LabelError(str(error)) from None
    if len(relevance) != rows:
        raise InputError(f"X has {rows} rows, y has {len(relevance)} relevances")
    return relevance


def _finite(importance: Any) -> float:
    try:
        c = float(importance) if is_real(importance) else -1.0
    except (TypeError, ValueError):
        c = -1.0
    if not (np.isfinite(c) and c >= 0):
        raise InputError(f"importance must be a finite number >= 0, got {importance!r}")
    return c


def _in_order(scores: Array, relevance: Array) -> float | None:
    """The share of pairs of different relevance in the right order; None if there is no pair."""
    right = pairs = 0.0
    lower = np.zeros(0)
    for level in np.unique(relevance):
        here = np.sort(scores[relevance == level])
        below = np.searchsorted(lower, here, side="left").sum()
        equal = np.searchsorted(lower, here, side="right").sum() - below
        right += below + 0.5 * equal
        pairs += len(lower) * len(here)
        lower = np.sort(np.concatenate([lower, here]), kind="stable")
    return None if pairs == 0 else float(right / pairs)
