"""`Ranker`: learns to order the examples of a query, from pairs of which one is preferred to the other."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from . import store
from .batches import Batch, as_batch, is_mappings, to_row
from .core import Array, Readout, Rule
from .decoders import Features, difference, expand
from .errors import DamagedFileError, FeatureError, InputError, LabelError, NumericalError, ParameterError, RowError
from .estimator import LinearEstimator
from .model import LinearModel, as_targets

__all__ = ["Ranker"]


class Ranker(LinearEstimator):
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
    passes, shuffle, random_state : how often and in which order `fit` goes through its data. `shuffle` permutes the
        queries, and the examples within each.

    The examples of a query must follow one another: a new `qid` ends the query before it, and one that comes back
    begins anew. Without `qid` the whole stream is one query, in which `max_query` makes a sliding window.

    `t_` counts pairs, `n_examples_` examples. Where a pair's update overflows, its example is refused
    (`NumericalError`, `.row`) and not remembered, but pairs of that example before it may have been learned.
    """

    _query: Query | None = None
    _examples = _dropped = 0

    def __init__(
        self,
        rule: str | Rule = "pa1",
        *,
        readout: str | Readout = "last",
        hash_bits: int | None = None,
        max_query: int = 1000,
        passes: int = 1,
        shuffle: bool = False,
        random_state: Any = None,
    ) -> None:
        self.rule = rule
        self.readout = readout
        self.hash_bits = hash_bits
        self.max_query = max_query
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state

    # -- one at a time ---------------------------------------------------------------------------------------------

    def learn_pair(self, preferred: Any, other: Any, importance: float = 1.0) -> None:
        """Learn that one example, a mapping or a row, is preferred to another, whatever their query."""
        model = self._model or self._named(self._new_model())
        examples = [_read_one(model, x) for x in (preferred, other)]
        meeting = Query(self._room())
        meeting.welcome(model, examples[1])
        meeting.push(examples[1], 0.0, 1.0)
        x = meeting.welcome(model, examples[0])
        try:
            self._learn_pairs(
                model, meeting, x, np.zeros(1, dtype=np.intp), np.ones(1), np.array([_finite(importance)])
            )
        except NumericalError:
            raise _overflow(model, 0) from None
        except RowError as error:
            raise error.at(0) from None
        self._model = model

    def learn_one(self, x: Any, y: Any, qid: Hashable = None, importance: float = 1.0) -> None:  # type: ignore[override]
        """Learn one example of query `qid`: x a mapping or a row, y its relevance."""
        relevance, c = _relevance(y), _finite(importance)
        query = self._query
        if query is None or query.key != qid:
            _check_queries([qid])
            query = Query(self._room(), qid)
        model = self._model or self._named(self._new_model())
        example = query.welcome(model, _read_one(model, x))
        self._model, self._query = model, query
        self._arrive(model, query, example, relevance, c, 0)

    def _arrive(self, model: LinearModel, query: Query, x: Any, y: float, c: float, row: int) -> None:
        """Pair x with the query so far, then remember it."""
        if model.n_features == 0 and query.kind != "named":
            model.set_columns(x.columns if isinstance(x, SparseRow) else len(x))
        at = query.unlike(y)
        if len(at):
            sign = np.where(query.relevance[at] < y, 1.0, -1.0)
            try:
                with np.errstate(over="ignore"):
                    self._learn_pairs(model, query, x, at, sign, c * query.importance[at])
            except NumericalError:
                raise _overflow(model, row) from None
            except RowError as error:
                raise error.at(row) from None
        self._dropped += query.push(x, y, c)
        self._examples += 1

    @staticmethod
    def _learn_pairs(
        model: LinearModel, query: Query, x: Any, at: NDArray[np.intp], sign: Array, importance: Array
    ) -> None:
        """The rounds of sign·(x − example) for the examples in some slots."""
        finite = bool(np.all(np.isfinite(importance)))  # a product of two that are
        if query.kind == "named":
            for phi, c in zip(query.named_pairs(x, at, sign), importance.tolist(), strict=True):
                if not (finite and all(map(math.isfinite, phi.values()))):
                    raise NumericalError("not finite")
                model.learn_direction(phi, 1.0, c)
            return
        pairs = query.pairs(x, at, sign, model.n_features)
        try:
            model.learn_directions(pairs, importance)
        except InputError:
            # Both examples were found finite; their difference may not be.
            data = pairs.dense if pairs.csr is None else pairs.csr[0]
            if finite and data is not None and np.all(np.isfinite(data)):
                raise
            raise NumericalError("not finite") from None

    # -- many ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn afresh from the rows of queries: X a table or a list of mappings, y relevances, qid their queries."""
        if isinstance(self.passes, bool) or not isinstance(self.passes, (int, np.integer)) or self.passes < 1:
            raise ParameterError(f"passes={self.passes!r}: expected a whole number >= 1")
        if not isinstance(self.shuffle, (bool, np.bool_)):
            raise ParameterError(f"shuffle={self.shuffle!r}: expected True or False")
        try:
            generator = check_random_state(self.random_state)
        except ValueError:
            expected = "None, a whole number or a numpy.random.RandomState"
            raise ParameterError(f"random_state={self.random_state!r}: expected {expected}") from None
        model, stream = self._checked(None, X, y, qid, sample_weight, whole=True)
        self._model, self._query = model, None
        self._examples = self._dropped = 0
        for _ in range(self.passes):
            self._query = None
            self._learn(model, stream, stream.shuffled(generator) if self.shuffle else None)
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
        self.partial_fit(X, y, qid, importance)

    def predict_then_learn(  # type: ignore[override]
        self, X: Any, y: Any, qid: Any = None, importance: Any = None
    ) -> Array:
        """For each row the score given to it just before it is learned."""
        model, stream = self._checked(self._model, X, y, qid, importance)
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
        for row, key in enumerate(_queries(qid, len(scores))):
            members.setdefault(key, []).append(row)
        shares = [share for rows in members.values() if (share := _in_order(scores[rows], relevance[rows])) is not None]
        if not shares:
            raise InputError("no two examples of one query differ in relevance: there is no pair to score")
        return float(np.mean(shares))

    def _checked(
        self, model: LinearModel | None, X: Any, y: Any, qid: Any, sample_weight: Any, *, whole: bool = False
    ) -> tuple[LinearModel, Stream]:
        """The model to learn with and what it is to learn, all found well formed; if not, nothing has changed."""
        with self._all_or_nothing():
            if is_mappings(X):
                model = model or self._new_model()
                examples = _read_mappings(model, X)
            else:
                table = self._validated(X, reset=model is None)
                model = model or self._named(self._new_model())
                examples = _read_table(model, model.check_rows(table))
            n = len(examples)
            weights = self._weights_of(sample_weight, Batch(n, 1), whole=whole)
            stream = Stream(examples, _relevances(y, n), _queries(qid, n), np.ones(n) if weights is None else weights)
            if n and self._query is not None and self._query.key == stream.queries[0] and not whole:
                self._query.can_meet(model, examples[0])
        return model, stream

    def _learn(
        self, model: LinearModel, stream: Stream, order: NDArray[Any] | None = None, predict: bool = False
    ) -> Array:
        scores = np.zeros(len(stream.examples) if predict else 0)
        relevance, importance = stream.relevance.tolist(), stream.importance.tolist()
        for row in range(len(stream.examples)) if order is None else order.tolist():
            query, key = self._query, stream.queries[row]
            if query is None or query.key != key:
                query = self._query = Query(self._room(), key)
            x = query.welcome(model, stream.examples[row])
            if predict:
                scores[row] = model.score_one(x) if query.kind != "sparse" else _score_sparse(model, x)
            self._arrive(model, query, x, relevance[row], importance[row], row)
        return scores

    # -- what was learned ------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Array:
        weights, _ = self._learned().weights()
        return np.ravel(weights)

    @property
    def n_examples_(self) -> int:
        """Examples seen, each of which made as many pairs as there were unlike ones before it in its query."""
        self._learned()
        return self._examples

    @property
    def dropped_(self) -> int:
        """Examples that left the memory of their query early, for max_query."""
        self._learned()
        return self._dropped

    def _started(self) -> bool:
        return self._model is not None and (self._model.started or self._examples > 0)

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        self._room()
        return LinearModel(self.rule, "ranking", fit_intercept=False, readout=self.readout, hash_bits=self.hash_bits)

    def _room(self) -> int:
        if isinstance(self.max_query, bool) or not isinstance(self.max_query, (int, np.integer)) or self.max_query < 1:
            raise ParameterError(f"max_query={self.max_query!r}: expected a whole number >= 1")
        return int(self.max_query)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ranker, the query in progress included; `onepass.load` resumes bit for bit."""
        model = self._fitted()
        model.extra_arrays = {} if self._query is None else self._query.arrays()
        try:
            super().save(path)
        finally:
            model.extra_arrays = {}

    def _attributes(self) -> dict[str, Any]:
        query = (
            None if self._query is None else {"key": store.encode_values([self._query.key]), "kind": self._query.kind}
        )
        return {**super()._attributes(), "query": query, "examples": self._examples, "dropped": self._dropped}

    def _adopt(self, model: LinearModel, attributes: dict[str, Any]) -> Self:
        self._examples, self._dropped = attributes.get("examples", 0), attributes.get("dropped", 0)
        arrays, model.extra_arrays = model.extra_arrays, {}
        if attributes.get("query") is not None:
            try:
                [key] = store.decode_values(attributes["query"]["key"])
                self._query = Query.of_arrays(self._room(), key, attributes["query"]["kind"], arrays, model.n_features)
            except (KeyError, ValueError, TypeError, IndexError) as error:
                raise DamagedFileError(
                    f"the query in progress is not whole ({error}); restore it from a backup"
                ) from None
        return super()._adopt(model, attributes)


# -- the query in progress -----------------------------------------------------------------------------------------


class SparseRow(NamedTuple):
    """A row of a CSR matrix, its indices in order and each there once."""

    indices: NDArray[np.int64]
    values: Array
    columns: int


Example = Array | SparseRow | Features


class Query:
    """The examples of a query so far: a ring of at most `room`, all of them dense, sparse or named.

    The first example decides which. A later row is turned into that; a mapping among the rows of named columns
    turns all into mappings.
    """

    def __init__(self, room: int, key: Hashable = None) -> None:
        self.room = room
        self.key = key
        self.kind = ""
        self.start = self.count = 0
        self.relevance = np.zeros(0)
        self.importance = np.zeros(0)
        self.rows: Any = []  # dense: a table with the ring's slots for rows; otherwise a list

    def slots(self) -> NDArray[np.intp]:
        """Where the examples are, oldest first."""
        return (self.start + np.arange(self.count)) % max(1, len(self.relevance))

    def unlike(self, y: float) -> NDArray[np.intp]:
        """The slots of the examples whose relevance is not y, oldest first."""
        if self.start == 0:
            return np.flatnonzero(self.relevance[: self.count] != y)
        at = self.slots()
        return at[np.flatnonzero(self.relevance[at] != y)]

    def push(self, x: Any, y: float, c: float) -> bool:
        """Remember an example. True if the oldest had to go for it."""
        full = self.count == self.room
        if full:
            at = self.start
            self.start = (self.start + 1) % self.room
        else:
            at = self.count  # the ring turns only once it is full
            if at == len(self.relevance):
                self._grow(x)
            self.count += 1
        self.relevance[at], self.importance[at] = y, c
        self.rows[at] = x
        return full

    def _grow(self, x: Any) -> None:
        more = min(max(8, len(self.relevance)), self.room - len(self.relevance))
        self.relevance = np.append(self.relevance, np.zeros(more))
        self.importance = np.append(self.importance, np.zeros(more))
        if self.kind == "dense":
            table = np.zeros((len(self.relevance), len(x)))
            table[: self.count] = self.rows[: self.count] if self.count else 0.0
            self.rows = table
        else:
            self.rows = [*self.rows, *[None] * more]

    def can_meet(self, model: LinearModel, x: Example) -> None:
        """A FeatureError where x cannot be compared with the query's examples; changes nothing."""
        kind = _kind(x)
        if self.count and "named" in (kind, self.kind) and kind != self.kind:
            _column_names(model)
        if self.count and kind == self.kind == "dense" and len(x) != len(self.rows[0]):
            raise FeatureError(f"x has {len(x)} features, but the rows of its query have {len(self.rows[0])}")

    def welcome(self, model: LinearModel, x: Example) -> Any:
        """x as the query keeps its examples."""
        self.can_meet(model, x)
        kind = _kind(x)
        if self.count == 0:
            self.kind = kind
        if kind == self.kind:
            return x
        if kind == "named":
            self._become_named(model)
            return x
        if self.kind == "named":
            return _by_name(model, x)
        if isinstance(x, SparseRow):
            row = np.zeros_like(self.rows[0])
            np.add.at(row, x.indices, x.values)
            return row
        return _sparse(x)

    def _become_named(self, model: LinearModel) -> None:
        at = self.slots()
        named = [_by_name(model, self.rows[i]) for i in at]
        self.relevance, self.importance, self.rows, self.start = self.relevance[at], self.importance[at], named, 0
        self.kind = "named"

    def pairs(self, x: Any, at: NDArray[np.intp], sign: Array, columns: int) -> Batch:
        """The rows sign·(x − example), for the examples in some slots."""
        if self.kind == "dense":
            table = x - self.rows[at]
            table *= sign[:, np.newaxis]
            return Batch(len(at), table.shape[1], dense=table)
        others = [self.rows[i] for i in at.tolist()]
        shape = (len(at), columns)
        ends = np.cumsum([0, *(len(other.indices) for other in others)])
        minus = np.concatenate([other.values for other in others]), np.concatenate([other.indices for other in others])
        plus = np.tile(x.values, len(at)), np.tile(x.indices, len(at))
        starts = np.arange(len(at) + 1) * len(x.indices)
        phi = sparse.csr_array((*plus, starts), shape=shape) - sparse.csr_array((*minus, ends), shape=shape)
        phi.data *= np.repeat(sign, np.diff(phi.indptr))
        return as_batch(phi)

    def named_pairs(self, x: Features, at: NDArray[np.intp], sign: Array) -> list[Features]:
        others = [self.rows[i] for i in at]
        return [difference(x, o) if s > 0 else difference(o, x) for o, s in zip(others, sign.tolist(), strict=True)]

    # -- files

    def arrays(self) -> dict[str, NDArray[Any]]:
        at = self.slots()
        out: dict[str, NDArray[Any]] = {"relevance": self.relevance[at], "importance": self.importance[at]}
        if self.kind == "dense":
            return {**out, "rows": self.rows[at] if self.count else np.zeros((0, 0))}
        rows = [self.rows[i] for i in at]
        if self.kind == "named":
            names = store.encode_names([name for row in rows for name in row])
            out.update({f"names.{key}": array for key, array in names.items()})
            pieces = [np.array(list(row.values()), dtype=np.float64) for row in rows]
        else:
            out["indices"] = np.concatenate([np.zeros(0, dtype=np.int64), *(row.indices for row in rows)])
            pieces = [row.values for row in rows]
        out["values"] = np.concatenate([np.zeros(0), *pieces])
        out["ends"] = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
        return out

    @classmethod
    def of_arrays(cls, room: int, key: Hashable, kind: str, arrays: Mapping[str, NDArray[Any]], columns: int) -> Query:
        query = cls(room, key)
        query.kind = kind
        relevance, importance = arrays["relevance"], arrays["importance"]
        at = arrays.get("indices", np.zeros(0))
        if not all(np.isfinite(array).all() for array in arrays.values()) or np.any(importance < 0):
            raise ValueError("a number is not finite")
        if kind not in ("dense", "sparse", "named") or np.any(at < 0) or np.any(at >= columns):
            raise ValueError("a row does not fit the weights")
        if kind == "dense" and not (arrays["rows"].ndim == 2 and 0 < arrays["rows"].shape[1] <= columns):
            raise ValueError("a row does not fit the weights")
        rows: list[Any]
        if kind == "dense":
            rows = list(arrays["rows"])
        else:
            spans = list(zip([0, *arrays["ends"].tolist()], arrays["ends"].tolist(), strict=False))
            values = arrays["values"]
            if kind == "named":
                names = store.decode_names({key[6:]: a for key, a in arrays.items() if key.startswith("names.")})
                rows = [dict(zip(names[a:b], values[a:b].tolist(), strict=True)) for a, b in spans]
            else:
                rows = [SparseRow(arrays["indices"][a:b], values[a:b], columns) for a, b in spans]
        for x, y, c in zip(rows, relevance.tolist(), importance.tolist(), strict=True):
            query.push(x, y, c)
        return query


def _kind(x: Example) -> str:
    return "named" if isinstance(x, dict) else ("dense" if isinstance(x, np.ndarray) else "sparse")


def _sparse(x: Any) -> SparseRow:
    at = np.flatnonzero(x)
    return SparseRow(at.astype(np.int64), x[at], len(x))


def _column_names(model: LinearModel) -> list[Any]:
    if not model.names or not model.positional:
        raise FeatureError("a query cannot hold both rows and mappings, unless a data frame named the columns")
    return model.names


def _by_name(model: LinearModel, x: Any) -> Features:
    names = _column_names(model)
    row = x if isinstance(x, SparseRow) else _sparse(x)
    out: Features = {}
    for j, value in zip(row.indices.tolist(), row.values.tolist(), strict=True):
        out[names[j]] = out.get(names[j], 0.0) + value
    return out


# -- what comes in -------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Stream:
    """Examples in order, checked."""

    examples: list[Any]
    relevance: Array
    queries: list[Any]
    importance: Array

    def shuffled(self, generator: Any) -> NDArray[Any]:
        """The queries in random order, and the examples in each."""
        new = [i == 0 or self.queries[i] != self.queries[i - 1] for i in range(len(self.queries))]
        run = np.cumsum(new) - 1
        place = generator.permutation(run[-1] + 1 if len(run) else 0)
        return np.lexsort((generator.permutation(len(run)), place[run]))


def _read_one(model: LinearModel, x: Any) -> Any:
    if isinstance(x, Mapping):
        model.check_one(x)
        return expand(x)
    if hasattr(x, "tocsr"):
        batch = model.check_rows(as_batch(x))
        if batch.rows != 1:
            raise FeatureError(f"x must be one row, got {batch.rows}; use learn_many for several")
        return _read_table(model, batch)[0]
    row = to_row(x)
    model.check_one(row)
    return row.copy() if model.hash_bits is None else _sparse(row)


def _read_mappings(model: LinearModel, X: Any) -> list[Any]:
    examples = []
    for row, x in enumerate(X):
        try:
            if not isinstance(x, Mapping):
                raise InputError(f"expected a mapping like those before it, got {x!r:.80}")
            examples.append(_read_one(model, x))
        except InputError as error:
            raise type(error)(f"row {row}: {error}. Nothing of this call was learned") from None
    return examples


def _read_table(model: LinearModel, batch: Batch) -> list[Any]:
    """The rows of a table; a hashed model, whose rows may differ in width, takes them all as sparse."""
    if batch.dense is not None:
        batch.require_finite()
        rows = np.array(batch.dense, dtype=np.float64)  # remembered beyond this call, so not the caller's own
        return list(rows) if model.hash_bits is None else [_sparse(row) for row in rows]
    assert batch.csr is not None
    data, indices, starts = batch.csr
    if len(starts) != batch.rows + 1 or np.any(np.diff(starts) < 0) or not starts[-1] <= len(data) == len(indices):
        raise InputError("X is not a CSR matrix: its arrays do not fit together")
    if len(indices) and not (indices.min() >= 0 and indices.max() < batch.columns):
        raise InputError("X has column indices outside its shape; build it with scipy.sparse, which checks")
    batch.require_finite()
    # Indices in order, each there once: what a row is does not depend on the rows beside it.
    table = sparse.csr_array(
        (data.astype(np.float64), indices.astype(np.int64), starts), shape=(batch.rows, batch.columns), copy=True
    )
    table.sum_duplicates()
    values, at, starts = table.data, table.indices.astype(np.int64), table.indptr
    spans = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    return [SparseRow(at[a:b], values[a:b], batch.columns) for a, b in spans]


def _score_sparse(model: LinearModel, x: SparseRow) -> float:
    starts = np.array([0, len(x.indices)], dtype=np.int64)
    return float(model.score_many(Batch(1, model.n_features, csr=(x.values, x.indices, starts)))[0, 0])


def _overflow(model: LinearModel, row: int) -> NumericalError:
    return NumericalError(
        f"row {row}: the update of {model.rule!r} by a pair of this row overflows; scale the features down or choose "
        "smaller steps. The rows before it were learned",
        row,
    )


def _relevance(y: Any) -> float:
    if isinstance(y, (str, bytes)) or np.ndim(y) != 0:
        raise LabelError(f"y must be a finite number, the example's relevance, got {y!r:.80}")
    return float(as_targets([y])[0])


def _relevances(y: Any, rows: int) -> Array:
    try:
        relevance = as_targets(column_or_1d(y, warn=True))
    except LabelError:
        raise
    except ValueError as error:
        raise LabelError(str(error)) from None
    if len(relevance) != rows:
        raise InputError(f"X has {rows} rows, y has {len(relevance)} relevances")
    return relevance


def _finite(importance: Any) -> float:
    try:
        c = float(importance)
    except (TypeError, ValueError):
        c = -1.0
    if not (np.isfinite(c) and c >= 0):
        raise InputError(f"importance must be a finite number >= 0, got {importance!r}")
    return c


def _queries(qid: Any, rows: int) -> list[Any]:
    if qid is None:
        return [None] * rows
    if isinstance(qid, (str, bytes)) or not hasattr(qid, "__len__"):
        raise InputError(f"qid must name the query of each row, got {qid!r:.80}")
    keys = [key.item() if isinstance(key, np.generic) else key for key in qid]
    if len(keys) != rows:
        raise InputError(f"X has {rows} rows, qid has {len(keys)} entries")
    _check_queries(keys)
    return keys


def _check_queries(keys: list[Any]) -> None:
    try:
        store.encode_values(list(set(keys)))  # what no file can hold is refused now, not when saving
    except (TypeError, ParameterError) as error:
        raise InputError(f"a qid must be a string, a number or a tuple of these: {error}") from None


def _in_order(scores: Array, relevance: Array) -> float | None:
    """The share of pairs of unlike relevance that the scores order rightly; None where there is no pair."""
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
