"""`RuleModel`: what linear and kernel models share. A rule, its names and its labels over one native engine.

No scikit-learn: the estimators, the command and the server stand on it. This is what it offers; how it does so is in
the files model_*.py, whose functions take the model first.
"""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Collection, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .. import _native, rules, scheme
from ..errors import FeatureError, LabelError, ParameterError
from ..learner import LearnerTraits, State
from ..persistence import registry, store
from ..rows.batches import Batch, as_batch, is_mappings, to_row
from ..rows.labels import Distinct, distinct, indices_of, not_hashable, plain, require_few, require_label, sorts_before
from ..scheme.readouts import Readout
from ..scheme.rounds import Array, Rule
from ..scheme.sizes import read_max_features
from . import files, scoring, uncertainty
from . import learning as model_learning
from .base import LearnerBase, array_bytes
from .columns import StreamColumns, placed
from .option_values import (
    check_options,
    classes_and_costs,
    read_bits,
    read_costs,
    read_intercept,
    read_max_classes,
)

__all__ = ["RuleModel"]

ANSWER_OF = {
    "multilabel": "labels",
    "oneclass": "outlier",
    "regression": "number",
    "ranking": "rank",
    "structured": "structure",
}
TASKS = ("auto", "binary", "multiclass", "multilabel", "oneclass", "regression", "ranking", "structured")


class RuleModel(LearnerBase):
    """A rule, its feature names and its labels; a subclass says what the weights are.

    task="auto" classifies and grows with the classes that appear; "binary" and "multiclass" do the same but fix the
    kind; "regression" predicts a number; "ranking" and "structured" learn directions (`learn_direction`).
    fit_intercept="auto" is True where an intercept does not cancel.

    Where there is one score (two classes, or a number), `base` is what that of an example begins at: base + ⟨w, x⟩ is
    predicted, judged and learned from. Of two classes it speaks for the second.
    """

    _state_is_copy = True
    counts_unknown = False  # do features that were never learned change a score?
    native_hold_out = True  # can the native loops predict rows on the way without learning them?

    rule: Rule
    task: str
    hash_bits: int | None
    fit_intercept: bool
    intercept_scaling: float
    readout: Readout
    multiclass: str
    costs: Any
    max_classes: int | None
    max_features: int | None
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]  # a subclass is a dataclass of its options
    # Options of linear models alone; the others have the defaults.
    bias_in_norm: bool = True
    threshold: str = "uncalibrated"
    radius: float = 1.0

    def __post_init__(self, classes: Iterable[Hashable] | None) -> None:
        """Check the options, which are the fields of the subclass, and make the native engine."""
        task = self.task
        if task not in TASKS:
            raise ParameterError(f"task={task!r}: expected one of {', '.join(TASKS)}")
        # What is changed outside must not change what was learned: a rule that is given as an object is copied.
        self.rule = copy.deepcopy(self.rule) if isinstance(self.rule, Rule) else rules.make(self.rule)
        self.rule_traits = traits = self.rule.traits
        self.rule.require("binary" if task == "auto" else task, traits)
        scheme.require_start(self.rule, traits)
        self.readout = scheme.make_readout(self.readout, self.rule, traits)
        self.calibrated = scheme.calibrates(self.threshold, self.rule, task, traits)
        self.ratchet = scheme.is_ratchet(self.readout, task)
        self.rule.require_multiclass(self.multiclass, traits)
        classes = None if classes is None else list(classes)
        self.costs = None if self.costs is None else read_costs(self.costs, classes)
        if self.costs is not None:
            self.rule.require_costs(task, self.multiclass, len(self.costs))
        self.fit_intercept = read_intercept(self.fit_intercept, task)
        check_options(self)
        self.hash_bits = read_bits(self.hash_bits)
        self.max_classes = read_max_classes(self.max_classes, classes)
        self.max_features = read_max_features(self.max_features)
        if task == "oneclass" and not isinstance(self.readout, scheme.Last):
            raise ParameterError(
                f"task='oneclass' has a centre, not a score: readout='last' alone, not {self.readout!r}"
            )
        self.declared = classes is not None
        # What an estimator keeps beside the model, carried through files.
        self.extra: dict[str, Any] = {}
        self.extra_arrays: dict[str, NDArray[Any]] = {}
        scheme.require_norm(self.rule, self.fit_intercept, self.bias_in_norm, traits)
        self._columns = StreamColumns()
        self._engine = self._make_engine()
        self._bind()
        if classes is not None:
            self._declare(classes)

    def _bind(self) -> None:
        """Single examples natively: one call from Python into the loop."""
        self._lock = self._engine.lock
        self._engine.on_new_label = self._new_label
        self.learn_one = self._engine.learn_one
        self.predict_one = self._engine.predict_one
        self.score_one = self._engine.score_one
        self.check_one = self._engine.check_one  # raises what learn_one would raise of x; learns nothing
        if self.task == "oneclass":  # where what is native is ⟨w, x⟩
            self.score_one = self.predict_one = self._excess_one

    def _join(self, lock: _native.Lock) -> None:
        """Be part of a learner that has this lock."""
        self._lock = self._engine.lock = lock

    def limit(self, name: str, value: int) -> None:
        """Set another limit than the model was made with: max_classes or max_features."""
        setattr(self, name, value)
        self._engine.max_features = self.max_features or 0

    def options(self) -> dict[str, Any]:
        """The options for another model like this one; costs belong to its classes and are left out."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "costs"]
        return {name: getattr(self, name) for name in names}

    def new_model(self, classes: Iterable[Hashable] | None = None) -> Self:
        """A model like this one that has learned nothing, for other classes (with costs for the same, in any order)."""
        options = {**self.options(), **classes_and_costs(self, classes)}
        return type(self)(**options | ({} if classes is None else {"max_classes": None}))

    def __sklearn_clone__(self) -> Self:
        return self.new_model(self.classes if self.declared else None)

    @property
    def traits(self) -> LearnerTraits:
        verbs = {"score_one", "predict_then_learn", "score_then_learn"}
        if "binary" in self.rule_traits.probabilities and self.task in ("auto", "binary", "multiclass"):
            verbs.add("predict_proba_one")
        answers = ANSWER_OF.get(self.task, "class")
        return LearnerTraits(answers, frozenset(verbs), supervised=self.task != "oneclass", by_rule=True)

    @property
    def _risky(self) -> bool:
        return self._engine.risky

    @property
    def estimator_kind(self) -> str:
        """The kind of estimator that takes over a model like this."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of weights, names and whatever else the native engine holds."""
        return self._table_bytes() + array_bytes(store.encode_names(self.names))

    def _table_bytes(self) -> int:
        """Bytes of the tables that the native engine holds."""
        raise NotImplementedError

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

    def register(self, names: list[str]) -> None:
        """Let in features by name, before rows that have them."""
        self._engine.register_names(names)

    def forget(self, count: int) -> None:
        """Take out the newest names again, about which nothing was learned."""
        self._engine.unregister_names(count)

    @property
    def started(self) -> bool:
        return self.t > 0 or bool(self._engine.classes)

    def find(self, names: Iterable[str | int]) -> NDArray[np.int64]:
        """Feature indices of names; −1 for a name never learned."""
        return np.array([self._engine.find(name) for name in names], dtype=np.int64)

    # -- classes ---------------------------------------------------------------------------------------------------

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
        known = self._engine.classes  # not a copy: it grows below
        index = len(known)
        label = plain(label)
        self._admissible(label, known, self.t + 1)
        self._engine.add_class(label)
        if index == 1 and self.task != "multilabel" and sorts_before(label, known[0]):
            self._engine.flip_classes()  # two classes stay in order: the smaller is the negative one
            return 0
        return index

    def _admissible(self, label: Hashable, known: Collection[Any], rows: int) -> None:
        """Raise where a label, first met in so many rows, cannot become a class beside those known."""
        if self.declared:
            raise LabelError(f"label {label!r} is not one of the declared classes {self.classes!r}")
        require_label(label)
        self.room_for(len(known) + 1)
        require_few(label, known, self.max_classes, rows)

    def _check_labels(self, labels: list[Any]) -> Distinct:
        """Raise, with its place, what would be raised of a label on the way: before anything is learned."""
        try:
            found = distinct(labels)
        except TypeError:
            for row, label in enumerate(labels):
                try:
                    hash(label)
                except TypeError:
                    raise not_hashable(label, row) from None
            raise
        known = dict.fromkeys(self.classes)
        before, rows = len(known), self.t + 1
        for row, label in zip(found.firsts.tolist(), found.values, strict=True):
            try:
                if label not in known:
                    self._admissible(plain(label), known.keys(), rows + row)
                    known[label] = None
            except (LabelError, ParameterError) as error:
                raise type(error)(f"y[{row}]: {error}. Nothing of this call was learned") from None
        if len(known) > before:
            self._engine.require_memory(len(known))
        return found

    def _indices(self, labels: NDArray[Any]) -> Array:
        """Class indices as the loops take them; -1 for labels not known."""
        try:
            return indices_of(labels, self.classes)
        except TypeError:
            self._check_labels(labels.tolist())  # says which label is not hashable
            raise

    # -- many examples ---------------------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, importance: Any = None, base: Any = None) -> None:
        """Learn rows in order: bit for bit the loop of `learn_one`. Malformed input refuses the whole call.

        Ctrl-C raises KeyboardInterrupt between two rows: those before it are learned, and `t` counts them.
        """
        model_learning.learn(self, X, y, importance, base)

    def predict_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None, held: NDArray[np.bool_] | None = None
    ) -> Any:
        """For each row the prediction before learning it, as predict-then-learn one by one would give.

        Rows that are `held` out (a mask) are predicted in their place, and not learned: they leave no trace.
        """
        return model_learning.predict_then_learn(self, X, y, importance, base, held)

    def score_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None, held: NDArray[np.bool_] | None = None
    ) -> list[tuple[list[Any], Array]]:
        """The scores of each row of a table before learning it, in parts: (classes known then, their scores).

        Rows that are `held` out (a mask) are scored in their place, and not learned: they leave no trace.
        """
        if is_mappings(X):
            raise FeatureError("score_then_learn takes a table; with mappings use score_one and learn_one")
        if held is None:
            return model_learning.learn(self, X, y, importance, base, lambda scores: (self.classes, scores))
        return model_learning.learn_others(self, X, y, importance, base, held, lambda s: (self.classes, s))

    def score_many(self, X: Any, base: Any = None) -> Array:
        """Scores, rows × outputs; of one class ‖x − w‖ − radius, above 0 an anomaly."""
        return scoring.score_many(self, X, base)

    def refused_base(self, base: Array, labels: NDArray[Any] | None = None) -> tuple[int, str] | None:
        """The first row whose score may not begin at its base, and why; `labels`, where the rows are to be learned."""
        return scoring.refused_base(self, base, labels)

    def variances(self, X: Any) -> Array:
        """xᵀΣx, rows × class rows, for rules with Gaussian weights: how unsure each score is."""
        return uncertainty.variances(self, X)

    def _excess_one(self, x: Any, base: Any = None) -> float:
        """One class: ‖x − w‖ − radius of a single row."""
        rows = [x] if isinstance(x, Mapping) else x if hasattr(x, "indptr") or hasattr(x, "tocsr") else np.atleast_2d(x)
        return float(self.score_many(rows, None if base is None else [base])[0, 0])

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
        return scoring.probabilities(self, scores)

    def predict_proba_one(self, x: Any, base: float = 0.0) -> dict[Any, float]:
        """label → probability; empty before anything was learned."""
        scores = np.atleast_1d(np.array(self.score_one(x, base), dtype=np.float64))[np.newaxis]
        p = self.probabilities(scores)[0]
        return {label: float(q) for label, q in zip(self.classes, p, strict=False)}

    def flush(self) -> None:
        """Take the step of a mini-batch that is not full yet, as if it were (rules with batch_size)."""
        self._engine.flush()

    def judged_by(self, X: Any, y: Any, importance: Any = None) -> AbstractContextManager[None]:
        """For as long as it lasts, pocket(ratchet=true) judges by the errors on this set; its classes must be known."""
        return model_learning.judged_by(self, X, y, importance)

    def learn_and_suffer(self, X: Any, y: Any, importance: Any = None) -> float:
        """Learn a table in order; the mean loss of its rows, each before its own update."""
        return model_learning.learn_and_suffer(self, X, y, importance)

    def learn_direction(self, x: Any, target: float = 1.0, importance: float = 1.0) -> None:
        """One round on φ itself (ranking pairs, structured differences): ⟨w, φ⟩ should reach `target`."""
        self._engine.learn_direction(x, target, importance)

    def learn_together(self, directions: list[Any], importance: Array) -> None:
        """Mappings φ in order, each to reach 1: all of them are learned, or none."""
        self._engine.learn_together(directions, importance)

    def learn_directions(self, batch: Batch, importance: Array | None = None) -> None:
        """Rows of φ in order, each to reach 1: bit for bit the loop of `learn_direction`."""
        model_learning.run(self, batch, None, importance, None)

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

    def state(self) -> State:
        """Everything, as a configuration that JSON can hold, and arrays; `from_state` resumes bit for bit."""
        return files.state(self)

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model in a file, whether it was saved alone or with its estimator."""
        model: Self = registry.load_model(path, cls.__name__)[0]
        return model

    def _learned_places(self) -> NDArray[np.intp]:
        """The features about which something was learned."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        config, arrays = self.state()
        return {"config": config, "arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(self.from_state(state["config"], state["arrays"]).__dict__)
        self._bind()

    # -- inside ----------------------------------------------------------------------------------------------------

    def _make_engine(self) -> _native.Engine:
        raise NotImplementedError

    def _row(self, x: Any) -> Any:
        """A single example that is neither a dict nor a float64 vector, as the engine reads it."""
        return self._columns.row(self, as_batch(x)) if getattr(x, "distinct", False) else to_row(x)

    def _placed(self, batch: Batch, *, learning: bool = False) -> Batch:
        """The batch, after checking that its columns are the model's features."""
        return placed(self, batch, learning)

    def _predictions(self, scores: Array) -> Any:
        return scoring.predictions(self, scores)
