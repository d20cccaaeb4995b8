"""`LinearModel`: the linear learner without scikit-learn. The estimators, the command and the server stand on it."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from . import _native, core, model_files, model_scoring, model_weights, rules, store, uncertainty
from .batches import Batch, as_batch, as_importance, is_mappings, to_row
from .columns import StreamColumns
from .core import Array, Readout, Rule, Scalars
from .errors import (
    FeatureError,
    InputError,
    LabelError,
    ParameterError,
    RowError,
    short,
)
from .labels import (
    as_label_sets,
    as_labels,
    as_targets,
    indices_of,
    not_hashable,
    plain,
    require_label,
    sorts_before,
)
from .model_options import engine_parts, read_bits, read_costs, read_flag, read_intercept, read_positive

__all__ = ["LinearModel"]

KIND = "linear"
TASKS = ("auto", "binary", "multiclass", "multilabel", "oneclass", "regression", "ranking", "structured")


# What is made of the scores that rows had before they were learned; None where nobody asks.
Read = Callable[[Array], Any] | None


class LinearModel:
    """A rule, its weights, its feature names and its labels.

    task="auto" classifies and grows with the classes that appear; "binary" and "multiclass" do the same but fix the
    kind; "regression" predicts a number; "ranking" and "structured" learn directions (`learn_direction`).
    fit_intercept="auto" is True where an intercept does not cancel.

    Where there is one score (two classes, or a number), `base` is what that of an example begins at: base + ⟨w, x⟩ is
    predicted, judged and learned from. Of two classes it speaks for the second.
    """

    kind = KIND
    counts_unknown = False  # do features that were never learned change a score?

    def __init__(
        self,
        rule: str | Rule = "pa1",
        task: str = "auto",
        *,
        classes: Iterable[Hashable] | None = None,
        fit_intercept: bool | str = "auto",
        intercept_scaling: float = 1.0,
        bias_in_norm: bool = True,
        readout: str | Readout = "last",
        hash_bits: int | None = None,
        multiclass: str = "rival",
        costs: Any = None,
        threshold: str = "uncalibrated",
        radius: float = 1.0,
    ) -> None:
        if task not in TASKS:
            raise ParameterError(f"task={task!r}: expected one of {', '.join(TASKS)}")
        self.rule = copy.deepcopy(rules.make(rule))  # its own: what is changed outside must not change what was learned
        self.task = task
        self.rule.require("binary" if task == "auto" else task)
        core.require_start(self.rule)
        self.readout = core.make_readout(readout, self.rule)
        self.threshold = threshold
        self.calibrated = core.calibrates(threshold, self.rule, task)
        self.ratchet = core.is_ratchet(self.readout, task)
        self.rule.require_multiclass(multiclass)
        self.multiclass = multiclass
        classes = None if classes is None else list(classes)
        self.costs = None if costs is None else read_costs(costs, classes)
        if self.costs is not None:
            self.rule.require_costs(task, multiclass, len(self.costs))
        self.fit_intercept = read_intercept(fit_intercept, task)
        self.bias_in_norm = read_flag("bias_in_norm", bias_in_norm)
        self.intercept_scaling = read_positive("intercept_scaling", intercept_scaling)
        self.hash_bits = read_bits(hash_bits)
        self.radius = read_positive("radius", radius)
        if task == "oneclass" and not isinstance(self.readout, core.Last):
            raise ParameterError(f"task='oneclass' has a centre, not a score: readout='last' alone, not {readout!r}")
        self.declared = classes is not None
        # What an estimator keeps beside the model, carried through files.
        self.extra: dict[str, Any] = {}
        self.extra_arrays: dict[str, NDArray[Any]] = {}
        core.require_norm(self.rule, self.fit_intercept, self.bias_in_norm)
        self._columns = StreamColumns()
        self._engine = self._make_engine()
        self._engine.on_new_label = self._new_label
        if classes is not None:
            self._declare(classes)
        # Bound natively: one call from Python into the loop.
        self.learn_one = self._engine.learn_one
        self.predict_one = self._engine.predict_one
        self.score_one = self._engine.score_one
        self.check_one = self._engine.check_one  # raises what learn_one would raise of x; learns nothing

    def __repr__(self) -> str:
        return f"LinearModel({self.rule!r}, task={self.task!r})"

    def new_model(self, classes: Iterable[Hashable] | None = None) -> LinearModel:
        """A model like this one that has learned nothing, for other classes (with costs for the same, in any order)."""
        return LinearModel(
            self.rule,
            self.task,
            **self._classes_and_costs(classes),
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            bias_in_norm=self.bias_in_norm,
            readout=self.readout,
            hash_bits=self.hash_bits,
            multiclass=self.multiclass,
            threshold=self.threshold,
            radius=self.radius,
        )

    def _classes_and_costs(self, classes: Iterable[Hashable] | None) -> dict[str, Any]:
        """Of a model like this one: costs go with the classes that they are of."""
        if self.task in ("regression", "oneclass"):
            return {}
        given = None if classes is None else list(classes)
        if self.costs is None:
            return {"classes": given}
        known = self.classes
        given = known if given is None else given
        if len(given) != len(known) or set(given) != set(known):
            raise ParameterError(f"costs= are of the classes {known!r}: a model of {given!r} needs costs of its own")
        order = [known.index(label) for label in given]
        return {"classes": given, "costs": self.costs[np.ix_(order, order)]}

    # -- what was learned ------------------------------------------------------------------------------------------

    @property
    def classes(self) -> list[Any]:
        """The labels known so far, in the order of their weights."""
        return list(self._engine.classes)

    @property
    def n_features(self) -> int:
        return int(self._engine.features)

    @property
    def t(self) -> int:
        """Examples seen."""
        return int(self._engine.t)

    @property
    def k(self) -> int:
        """Updates made."""
        return int(self._engine.k)

    @property
    def names(self) -> list[str | int]:
        """Feature names by index; empty where features are positions or hashes."""
        return list(self._engine.names)

    @property
    def n_names(self) -> int:
        """How many features have names."""
        return len(self._engine.names)

    @property
    def positional(self) -> bool:
        """Were rows, not names, learned?"""
        return bool(self._engine.positional)

    def name_columns(self, names: list[str]) -> None:
        """Name the columns of the tables to come, so that mappings may follow."""
        self._engine.set_names(names)
        self._engine.set_features(len(names))

    def set_columns(self, columns: int) -> None:
        """Declare the width of the rows to come, before any is learned."""
        self._engine.set_features(columns)

    def admit(self, names: list[str]) -> None:
        """Let in features by name, before rows that have them."""
        self._engine.admit_names(names)

    def forget(self, count: int) -> None:
        """Take out the newest names again, about which nothing was learned."""
        self._engine.forget_names(count)

    @property
    def started(self) -> bool:
        return self.t > 0 or bool(self._engine.classes)

    def weights(self, *, last: bool = False) -> tuple[Array, Array]:
        """The predicting weights (rows × features) and intercepts (rows); with `last`, the current ones."""
        return model_weights.weights(self, last)

    def find(self, names: Iterable[str | int]) -> NDArray[np.int64]:
        """Feature indices of names; −1 for a name never learned."""
        return np.array([self._engine.find(name) for name in names], dtype=np.int64)

    def weights_at(self, indices: NDArray[np.int64]) -> Array:
        """The predicting weights of some features of a one-row model: cost in proportion to their number."""
        return model_weights.weights_at(self, indices)

    def named_weights(self) -> dict[Any, Any]:
        """name → weight; with more than two classes label → name → weight. Positions or hashes where unnamed."""
        return model_weights.named_weights(self)

    def explain_one(self, x: Any, label: Hashable | None = None) -> dict[Any, float]:
        """Each feature's contribution to the score, largest first; the intercept under "intercept".

        With more than two classes, the score of `label` (by default the predicted one).
        """
        return model_weights.explain_one(self, x, label)

    # -- many examples ---------------------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> None:
        """Learn rows in order: bit for bit the loop of `learn_one`. Malformed input refuses the whole call."""
        self._learn(X, y, importance, base)

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> Any:
        """For each row the prediction before learning it, as predict-then-learn one by one would give."""
        return _joined(self._learn(X, y, importance, base, self._predictions))

    def score_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None
    ) -> list[tuple[list[Any], Array]]:
        """The scores of each row of a table before learning it, in parts: (classes known then, their scores)."""
        if is_mappings(X):
            raise FeatureError("score_then_learn takes a table; with mappings use score_one and learn_one")
        return self._learn(X, y, importance, base, lambda scores: (self.classes, scores))

    def score_many(self, X: Any, base: Any = None) -> Array:
        """Scores, rows × outputs; of one class ‖x − w‖ − radius, above 0 an anomaly."""
        return model_scoring.score_many(self, X, base)

    def refused_base(self, base: Array, labels: NDArray[Any] | None = None) -> tuple[int, str] | None:
        """The first row whose score may not begin at its base, and why; `labels`, where the rows are to be learned."""
        return model_scoring.refused_base(self, base, labels)

    def variances(self, X: Any) -> Array:
        """xᵀΣx, rows × class rows, for rules with Gaussian weights: how unsure each score is."""
        return uncertainty.variances(self, X)

    def predict_many(self, X: Any, base: Any = None) -> Any:
        """An array of labels or numbers (a list where labels are of mixed types)."""
        return self._predictions(self.score_many(X, base))

    def class_indices(self, scores: Array) -> NDArray[np.intp]:
        if scores.shape[1] == 1:
            known = len(self._engine.classes)
            return (scores[:, 0] > 0).astype(np.intp) if known > 1 else np.zeros(len(scores), dtype=np.intp)
        return np.asarray(np.argmax(scores, axis=1))

    def probabilities(self, scores: Array) -> Array:
        """σ or softmax of scores, rows × classes; for rules whose loss gives probabilities."""
        return model_scoring.probabilities(self, scores)

    def predict_proba_one(self, x: Any, base: float = 0.0) -> dict[Any, float]:
        """label → probability; empty before anything was learned."""
        scores = np.atleast_1d(np.array(self.score_one(x, base), dtype=np.float64))[np.newaxis]
        p = self.probabilities(scores)[0]
        return {label: float(q) for label, q in zip(self.classes, p, strict=False)}

    def distances(self, X: Any) -> Array:
        """One-class: ‖x − w‖ of every row."""
        return model_scoring.distances(self, X)

    def flush(self) -> None:
        """Take the step of a mini-batch that is not full yet, as if it were (rules with batch_size)."""
        self._engine.flush()

    @contextlib.contextmanager
    def judged_by(self, X: Any, y: Any, importance: Any = None) -> Iterator[None]:
        """For as long as it lasts, pocket(ratchet=true) judges by the errors on this set; its classes must be known."""
        batch = self._placed(as_batch(X))
        indices = self._indices(as_labels(y))
        if np.any(indices < 0):
            raise LabelError(
                f"y[{int(np.argmin(indices))}] of the stored set is not one of the classes {self.classes!r}"
            )
        c = as_importance(importance, batch.rows)
        if batch.dense is not None:
            self._engine.keep_set(batch.dense, indices, c)
        else:
            assert batch.csr is not None
            self._engine.keep_set_csr(*batch.csr, batch.columns, indices, c)
        try:
            yield
        finally:
            self._engine.forget_set()

    def learn_and_suffer(self, X: Any, y: Any, importance: Any = None) -> float:
        """Learn a table in order; the mean loss of its rows, each before its own update."""
        batch = self._placed(as_batch(X))
        c = as_importance(importance, batch.rows)
        targets = as_targets(y) if self.task == "regression" else self._indices(as_labels(y))
        scores = np.zeros((batch.rows, int(self._engine.rows)))
        self._run_into(batch, targets, c, scores)
        losses = [self._suffered(s, t) for s, t in zip(scores, targets, strict=True)]
        weights = np.ones(batch.rows) if c is None else c
        return float(np.average(losses, weights=weights)) if np.sum(weights) > 0 else 0.0

    def _suffered(self, scores: Array, y: float) -> float:
        """The rule's loss of one example from its scores."""
        rule = self.rule
        if self.task == "regression":
            side = -1.0 if y < scores[0] else 1.0
            target = side * y - rule.epsilon_tube()
            return rule.suffer(Scalars(side * scores[0], target, 1.0, 0.0, 1.0, 1, 0, side, regression=True))
        if len(scores) == 1:
            return rule.suffer(Scalars(scores[0] if y else -scores[0], 1.0, 1.0, 0.0, 1.0, 1, 0))
        if rule.sees_all_scores("multiclass", self.multiclass):
            return rule.suffer_all(scores, int(y))
        rivals = np.delete(scores, int(y))
        return rule.suffer(Scalars(float(scores[int(y)] - np.max(rivals)), 1.0, 1.0, 0.0, 1.0, 1, 0))

    def add_rows(self, batch: Batch, coefficients: Array) -> None:
        """w ← w + Σ coefficients_i x_i in one step (batch learning); one-row models."""
        model_weights.add_rows(self, batch, coefficients)

    def learn_direction(self, x: Any, target: float = 1.0, importance: float = 1.0) -> None:
        """One round on φ itself (ranking pairs, structured differences): ⟨w, φ⟩ should reach `target`."""
        self._engine.learn_direction(x, target, importance)

    def learn_together(self, directions: list[Any], importance: Array) -> None:
        """Mappings φ in order, each to reach 1: all of them are learned, or none."""
        self._engine.learn_together(directions, importance)

    def learn_directions(self, batch: Batch, importance: Array | None = None) -> None:
        """Rows of φ in order, each to reach 1: bit for bit the loop of `learn_direction`."""
        self._run(batch, None, importance, None)

    def learn_pairs(
        self,
        rows: Batch,
        relevance: Array,
        importance: Array,
        begin: NDArray[np.int64],
        first: int,
        scores: Array | None,
        learned: NDArray[np.int64],
    ) -> None:
        """Ranking: each row from `first` on meets the earlier ones from begin[row] on that differ in relevance.

        `learned` counts the rows done, also where one is refused; `scores` takes each row's score before its pairs.
        """
        if rows.dense is not None:
            self._engine.learn_pairs(rows.dense, relevance, importance, begin, first, scores, learned)
        else:
            assert rows.csr is not None
            columns = max(rows.columns, self.n_features)
            self._engine.learn_pairs_csr(*rows.csr, columns, relevance, importance, begin, first, scores, learned)

    def check_rows(self, X: Any) -> Batch:
        """X as a batch whose columns fit what was learned; NaN and infinity are the caller's to find."""
        return self._placed(as_batch(X))

    # -- files -----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything, as JSON-able configuration and arrays; `from_state` resumes bit for bit."""
        return model_files.state(self)

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        return model_files.from_state(cls, config, arrays)

    def _learned_places(self) -> NDArray[np.intp]:
        """The features about which something was learned."""
        return np.flatnonzero(self.weights(last=True)[0].any(axis=0))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to a file that `load` resumes from, bit for bit."""
        config, arrays = self.state()
        store.write(path, self.kind, config, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        kind, config, arrays = store.read(path)
        if kind != cls.kind:
            raise ParameterError(f"{path} holds a model of kind {kind!r}; expected {cls.kind!r}")
        return cls.from_state(config, arrays)

    def __getstate__(self) -> dict[str, Any]:
        config, arrays = self.state()
        return {"config": config, "arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(self.from_state(state["config"], state["arrays"]).__dict__)
        self._engine.on_new_label = self._new_label

    # -- inside ----------------------------------------------------------------------------------------------------

    def _make_engine(self) -> _native.Engine:
        return _native.Engine(*engine_parts(self))

    def _row(self, x: Any) -> Any:
        """A single example that is neither a dict nor a float64 vector, as the engine reads it."""
        return self._columns.row(self, as_batch(x)) if getattr(x, "distinct", False) else to_row(x)

    def declare(self, classes: Iterable[Hashable]) -> None:
        """Fix the classes of a model that knows none yet."""
        if self.started:
            raise ParameterError(f"this model has learned {self.classes!r} already: its classes cannot be declared now")
        self._declare(list(classes))
        self.declared = True

    def _declare(self, classes: list[Any]) -> None:
        if len(set(classes)) != len(classes):
            raise LabelError(f"classes must be distinct, got {classes!r}")
        self.room_for(len(classes))
        self._engine.set_classes(classes)

    def room_for(self, classes: int) -> None:
        """Raise where the task or the rule does not take so many classes."""
        if classes > 2:
            if self.task == "binary":
                raise LabelError(f"task='binary' takes two classes, got {classes}; use task='auto' or 'multiclass'")
            self.rule.require("multiclass")

    def _new_label(self, label: Hashable) -> int:
        """Called by the engine for a label it does not know: registers it, or says why not."""
        known = self.classes
        label = plain(label)
        self._admissible(label, known)
        self._engine.set_classes([*known, label])
        if len(known) == 1 and self.task != "multilabel" and sorts_before(label, known[0]):
            self._engine.flip_classes()  # two classes stay in order: the smaller is the negative one
            return 0
        return len(known)

    def _admissible(self, label: Hashable, known: list[Any]) -> None:
        if self.declared:
            raise LabelError(f"label {label!r} is not one of the declared classes {self.classes!r}")
        require_label(label)
        self.room_for(len(known) + 1)

    def _check_labels(self, labels: list[Any]) -> None:
        """Raise, with its place, what would be raised of a label on the way: before anything is learned."""
        known = dict.fromkeys(self.classes)
        for row, label in enumerate(labels):
            try:
                if label not in known:
                    self._admissible(plain(label), list(known))
                    known[label] = None
            except (LabelError, ParameterError) as error:
                raise type(error)(f"y[{row}]: {error}. Nothing of this call was learned") from None
            except TypeError:
                raise not_hashable(label, row) from None

    def _placed(self, batch: Batch, *, learning: bool = False) -> Batch:
        """The batch, after checking that its columns are the model's features."""
        if batch.named:
            return batch
        if batch.distinct:
            return self._columns.place(self, batch, learning)
        if self.names and not self._engine.positional:
            raise FeatureError(
                "this model has learned named features; give mappings (learn_one, learn_many with a list of dicts)"
            )
        if self.hash_bits is not None:
            if batch.names:  # a frame's columns are names, to be hashed as the names of a mapping are
                return batch.at(self.find(batch.names), self.n_features)
            if batch.columns > self.n_features:
                room = f"hash_bits={self.hash_bits} leaves room for {self.n_features}"
                raise FeatureError(f"X has {batch.columns} columns, but {room}; raise hash_bits")
        elif self._engine.columns and batch.columns != self._engine.columns:
            learned = self._engine.columns
            raise FeatureError(f"X has {batch.columns} features, but this model has learned rows of {learned} features")
        elif batch.names and self.names and batch.names != self.names[: batch.columns]:
            at = next(i for i, name in enumerate(batch.names) if name != self.names[i])
            raise FeatureError(
                f"column {at} of X is {batch.names[at]!r}, but this model has learned {self.names[at]!r} there; "
                "give the columns in the same order"
            )
        return batch

    def _check(self, batch: Batch) -> None:
        """Raise what the loops would raise of a malformed row, before any row is learned."""
        if batch.sound:
            return
        if batch.dense is not None:
            self._engine.check(batch.dense)
        else:
            assert batch.csr is not None
            self._engine.check_csr(*batch.csr, batch.columns, batch.distinct)

    def _learn(self, X: Any, y: Any, importance: Any, base: Any = None, read: Read = None) -> list[Any]:
        """Learns; returns what `read` makes of the scores on the way, in parts."""
        if is_mappings(X):
            return self._learn_mappings(X, y, importance, base, read)
        batch = as_batch(X)
        if batch.rows == 0:
            raise InputError("X has no rows; expected at least one")
        c = as_importance(importance, batch.rows)
        fresh, known = self.t == 0, self.n_names
        batch = self._placed(batch, learning=True)
        try:
            if self.task == "oneclass":
                return [self._run(batch, None, c, read, base=model_scoring.bases(self, base, batch.rows))]
            if self.task == "multilabel":
                model_scoring.bases(self, base, batch.rows)  # raises where there is one
                return self._learn_sets(batch, y, c, read)
            y = as_targets(y) if self.task == "regression" else as_labels(y)
            if len(y) != batch.rows:
                raise InputError(f"X has {batch.rows} rows, y has {len(y)}")
            if self.task == "regression":
                return [self._run(batch, y, c, read, base=model_scoring.bases(self, base, batch.rows))]
            indices = self._indices(y)
            if np.all(indices >= 0):
                return [self._run(batch, indices, c, read, base=model_scoring.bases(self, base, batch.rows, y))]
            return self._learn_growing(batch, y, c, base, read)
        except BaseException as error:
            if batch.named and self.hash_bits is None:
                self._columns.forget(self, batch, known, error.row if isinstance(error, RowError) else 0)
            raise
        finally:
            if batch.names and fresh and self.t and not self.names and self.hash_bits is None:
                self._engine.set_names(batch.names)  # so that mappings may follow

    def _learn_sets(self, batch: Batch, y: Any, c: Array | None, read: Read) -> list[Any]:
        """Label sets: a table of 0 and 1 in the order of the classes, or collections of labels."""
        rows = batch.rows
        sets = np.asarray(y.toarray() if hasattr(y, "toarray") else y) if hasattr(y, "ndim") else None
        if sets is not None and sets.ndim == 2:
            if not self.classes and not self.declared:
                self._engine.set_classes(list(range(sets.shape[1])))
            if sets.shape != (rows, len(self.classes)) or not np.all((sets == 0) | (sets == 1)):
                raise LabelError(f"y must be {rows} × {len(self.classes)} of 0 and 1, got shape {sets.shape}")
            return [self._run(batch, None, c, read, np.ascontiguousarray(sets, dtype=np.uint8))]
        if sets is not None and sets.ndim == 1 and (sets.dtype != object or isinstance(sets[0], str)):
            y = [[label] for label in sets.tolist()]  # a plain column: sets of one
        collections = as_label_sets(y, rows)
        self._check_labels([label for members in collections for label in members])
        table = {label: index for index, label in enumerate(self.classes)}
        if all(label in table for members in collections for label in members):
            marks = np.zeros((rows, len(table)), dtype=np.uint8)
            for row, members in enumerate(collections):
                marks[row, [table[label] for label in members]] = 1
            return [self._run(batch, None, c, read, marks)]
        if read and read != self._predictions:
            raise LabelError("score_then_learn of label sets needs a table of 0 and 1, or classes=[…] declared")
        self._check(batch)  # labels that are new on the way: one by one
        predictions = []
        for i, members in enumerate(collections):
            if batch.distinct:  # rows of a stream, whose order counts
                importance = None if c is None else c[i : i + 1]
                predictions += self._learn_set(batch.part(i, i + 1), members, importance, read)
                continue
            x = batch.part(i, i + 1).single()
            if read:
                predictions.append(self.predict_one(x))
            self.learn_one(x, members, 1.0 if c is None else float(c[i]))
        return [predictions]

    def _learn_set(self, row: Batch, members: list[Any], c: Array | None, read: Read) -> list[Any]:
        """One row, letting its labels in; they go again where it is refused."""
        known = self.classes
        try:
            for label in members:
                if label not in self.classes:
                    self._new_label(label)
            classes = self.classes
            marks = np.array([[label in members for label in classes]], dtype=np.uint8)
            said = self._run(row, None, c, read, marks)
        except BaseException:
            self._engine.set_classes(known)
            raise
        return [] if said is None else [[label for label, mark in zip(classes, said[0], strict=True) if mark]]

    def _run_into(self, batch: Batch, y: Array, c: Array | None, scores: Array) -> None:
        """Learn, writing the scores before each update."""
        if batch.dense is not None:
            self._engine.learn(batch.dense, y, c, None, None, scores)
        else:
            assert batch.csr is not None
            self._engine.learn_csr(
                *batch.csr, batch.columns, y, c, None, None, scores, batch.distinct, batch.named, batch.sound
            )

    def _run(
        self,
        batch: Batch,
        y: Array | None,
        c: Array | None,
        read: Read,
        sets: NDArray[np.uint8] | None = None,
        skip: int = 0,
        base: Array | None = None,
    ) -> Any:
        """Learns; what `read` makes of the scores, but for those of the first `skip` rows."""
        scores = np.zeros((batch.rows, int(self._engine.rows))) if read else None
        more = {} if base is None else {"base": base}
        if batch.dense is not None:
            self._engine.learn(batch.dense, y, c, None, sets, scores, **more)
        else:
            assert batch.csr is not None
            self._engine.learn_csr(
                *batch.csr, batch.columns, y, c, None, sets, scores, batch.distinct, batch.named, batch.sound, **more
            )
        return None if scores is None or read is None else read(scores[skip:])

    def _learn_growing(self, batch: Batch, labels: NDArray[Any], c: Array | None, base: Any, read: Read) -> list[Any]:
        """Labels that are new within the batch: learn up to each, let it in, go on."""
        self._check(batch)
        self._check_labels(labels.tolist())
        b = model_scoring.bases(self, base, batch.rows, labels)
        before = self.__getstate__()
        parts: list[Any] = []
        start = 0
        try:
            while start < batch.rows:
                first = None
                if read:
                    first = read(
                        self.score_many(batch.part(start, start + 1), None if b is None else b[start : start + 1])
                    )
                if self._indices(labels[start : start + 1])[0] < 0:
                    self._new_label(plain(labels[start]))
                indices = self._indices(labels[start:])
                unknown = np.flatnonzero(indices < 0)
                stop = start + int(unknown[0]) if len(unknown) else batch.rows
                importance, begins_at = (None if each is None else each[start:stop] for each in (c, b))
                part = batch.part(start, stop)
                later = self._run(part, indices[: stop - start], importance, read, skip=1, base=begins_at)
                if read:
                    parts += [first, later]  # the first was made before its label was let in
                start = stop
        except RowError as error:
            row = start + error.row
            if error.row == 0:  # its label may be new: as in learn_one, it is not let in
                self.__setstate__(before)
                if row:
                    importance, begins_at = (None if each is None else each[:row] for each in (c, b))
                    self._learn(batch.part(0, row), labels[:row], importance, begins_at)
            raise error.at(row) from None
        return parts

    def _learn_mappings(self, X: Any, y: Any, importance: Any, base: Any, read: Read) -> list[Any]:
        ys = self._answers(y, len(X))
        if len(X) != len(ys):
            raise InputError(f"X has {len(X)} rows, y has {len(ys)}")
        weights = as_importance(importance, len(X))
        cs = [1.0] * len(X) if weights is None else weights.tolist()
        for row, x in enumerate(X):
            try:
                if not isinstance(x, Mapping):
                    raise FeatureError(f"expected a mapping like the first row, got {short(x)}")
                self._engine.check_one(x)
            except InputError as error:
                raise type(error)(f"row {row}: {error}. Nothing of this call was learned") from None
        if self.task == "multilabel":
            self._check_labels([label for members in ys for label in members])
        elif self.task not in ("regression", "oneclass"):
            self._check_labels(ys)
        begins_at = model_scoring.bases(self, base, len(X), as_labels(ys))
        at = [0.0] * len(X) if begins_at is None else begins_at.tolist()
        predictions = []
        for row, (x, label, c, b) in enumerate(zip(X, ys, cs, at, strict=True)):
            try:
                if read:
                    predictions.append(self.predict_one(x, b))
                self.learn_one(x, label, c, b)
            except RowError as error:
                raise error.at(row) from None
        return [predictions]

    def _answers(self, y: Any, rows: int) -> list[Any]:
        if self.task == "oneclass":
            return [None] * rows
        if self.task == "multilabel":
            return as_label_sets(y, rows)
        return list((as_targets(y) if self.task == "regression" else as_labels(y)).tolist())

    def _indices(self, labels: NDArray[Any]) -> Array:
        """Class indices as the loops take them; -1 for labels not known."""
        try:
            return indices_of(labels, self.classes)
        except TypeError:
            self._check_labels(labels.tolist())  # says which label is not hashable
            raise

    def _predictions(self, scores: Array) -> Any:
        return model_scoring.predictions(self, scores)


def _joined(parts: list[Any]) -> Any:
    """Predictions of consecutive parts as one array, or as a list where they are of different kinds."""
    if len(parts) == 1:
        return parts[0]
    return [label for part in parts for label in (part.tolist() if isinstance(part, np.ndarray) else part)]
