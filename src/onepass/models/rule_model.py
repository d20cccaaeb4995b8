"""`RuleModel`: the base class of linear and kernel models: a rule, feature names and labels over one native engine.

Without scikit-learn: the estimators and the command use it. Longer methods are functions in the other modules of this
package (learning, scoring, files, …), which take the model as their first argument.
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
    """A rule, its feature names and its labels; a subclass defines the weights.

    task="auto" classifies and grows with the classes that appear; "binary" and "multiclass" do the same but fix the
    kind; "regression" predicts a number; "ranking" and "structured" learn directions (`learn_direction`).
    fit_intercept="auto" is True where an intercept does not cancel.

    If there is one score (two classes, or a number), `base` is an initial prediction: the score of the example is
    base + ⟨w, x⟩, in predictions and in learning. With two classes a positive base favours the second.
    """

    _state_is_copy = True
    counts_unknown = False  # True if unknown features change a score
    native_hold_out = True  # True if the native loops can predict held-out rows without learning them

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
    # Options of linear models; other models have the defaults.
    bias_in_norm: bool = True
    threshold: str = "uncalibrated"
    radius: float = 1.0

    def __post_init__(self, classes: Iterable[Hashable] | None) -> None:
        """Check the options, which are the fields of the subclass, and make the native engine."""
        task = self.task
        if task not in TASKS:
            raise ParameterError(f"task={task!r}: expected one of {', '.join(TASKS)}")
        # A rule that is given as an object is copied, because the caller may change it later.
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
        # Data of the estimator that is stored in the model's files.
        self.extra: dict[str, Any] = {}
        self.extra_arrays: dict[str, NDArray[Any]] = {}
        scheme.require_norm(self.rule, self.fit_intercept, self.bias_in_norm, traits)
        self._columns = StreamColumns()
        self._engine = self._make_engine()
        self._bind()
        if classes is not None:
            self._declare(classes)

    def _bind(self) -> None:
        """Bind the native methods for single examples: one call from Python into the loop."""
        self._lock = self._engine.lock
        self._engine.on_new_label = self._new_label
        self.learn_one = self._engine.learn_one
        self.predict_one = self._engine.predict_one
        self.score_one = self._engine.score_one
        self.check_one = self._engine.check_one  # raises the error that learn_one would raise for x, and learns nothing
        if self.task == "oneclass":  # where what is native is ⟨w, x⟩
            self.score_one = self.predict_one = self._excess_one

    def _join(self, lock: _native.Lock) -> None:
        """Use the lock of the learner that this model is part of."""
        self._lock = self._engine.lock = lock

    def limit(self, name: str, value: int) -> None:
        """Change a limit: max_classes or max_features."""
        setattr(self, name, value)
        self._engine.max_features = self.max_features or 0

    def options(self) -> dict[str, Any]:
        """The options for another model like this one; costs belong to its classes and are left out."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "costs"]
        return {name: getattr(self, name) for name in names}

    def new_model(self, classes: Iterable[Hashable] | None = None) -> Self:
        """An unfitted model with the same options and other classes (with costs: the same classes in any order)."""
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
        """The kind of estimator for models of this task."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of weights, names and everything else in the native engine."""
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
        """The number of learned examples."""
        return int(self._engine.t)

    @property
    def k(self) -> int:
        """The number of updates."""
        return int(self._engine.k)

    @property
    def names(self) -> list[str | int]:
        """Feature names by index; empty where features are positions or hashes."""
        return list(self._engine.names)

    @property
    def n_names(self) -> int:
        """The number of named features."""
        return len(self._engine.names)

    @property
    def positional(self) -> bool:
        """Whether features are positions in rows, not names."""
        return bool(self._engine.positional)

    def name_columns(self, names: list[str]) -> None:
        """Name the columns of later tables, so that mappings can follow."""
        self._engine.set_names(names)
        self._engine.set_features(len(names))

    def set_columns(self, columns: int) -> None:
        """Declare the width of rows before any is learned."""
        self._engine.set_features(columns)

    def register(self, names: list[str]) -> None:
        """Register features by name, before rows that have them."""
        self._engine.register_names(names)

    def forget(self, count: int) -> None:
        """Unregister the newest names, about which nothing was learned."""
        self._engine.unregister_names(count)

    @property
    def started(self) -> bool:
        return self.t > 0 or bool(self._engine.classes)

    def find(self, names: Iterable[str | int]) -> NDArray[np.int64]:
        """The feature indices of names; −1 for unknown names."""
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
        """Raise if the task or the rule does not support so many classes."""
        if classes > 2:
            if self.task == "binary":
                raise LabelError(f"task='binary' takes two classes, got {classes}; use task='auto' or 'multiclass'")
            self.rule.require("multiclass")

    def _new_label(self, label: Hashable) -> int:
        """Register an unknown label, or raise. Called by the engine."""
        known = self._engine.classes  # not a copy: the list grows below
        index = len(known)
        label = plain(label)
        self._admissible(label, known, self.t + 1)
        self._engine.add_class(label)
        if index == 1 and self.task != "multilabel" and sorts_before(label, known[0]):
            self._engine.flip_classes()  # two classes are kept in order: the smaller one is the negative one
            return 0
        return index

    def _admissible(self, label: Hashable, known: Collection[Any], rows: int) -> None:
        """Raise if a label that first occurs after so many rows cannot be added to the known classes."""
        if self.declared:
            raise LabelError(f"label {label!r} is not one of the declared classes {self.classes!r}")
        require_label(label)
        self.room_for(len(known) + 1)
        require_few(label, known, self.max_classes, rows)

    def _check_labels(self, labels: list[Any]) -> Distinct:
        """Raise the error of any label, with its row, before anything is learned."""
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
        """The class indices of labels, for the loops; -1 for unknown labels."""
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
        """For each row the prediction before learning it, as a loop of `predict_one` and `learn_one` would give.

        Rows that are `held` out (a mask) are predicted in order, and not learned: they change nothing.
        """
        return model_learning.predict_then_learn(self, X, y, importance, base, held)

    def score_then_learn(
        self, X: Any, y: Any, importance: Any = None, base: Any = None, held: NDArray[np.bool_] | None = None
    ) -> list[tuple[list[Any], Array]]:
        """The scores of each row of a table before learning it, in parts: (classes known at that time, their scores).

        Rows that are `held` out (a mask) are scored in order, and not learned: they change nothing.
        """
        if is_mappings(X):
            raise FeatureError("score_then_learn takes a table; with mappings use score_one and learn_one")
        if held is None:
            return model_learning.learn(self, X, y, importance, base, lambda scores: (self.classes, scores))
        return model_learning.learn_others(self, X, y, importance, base, held, lambda s: (self.classes, s))

    def score_many(self, X: Any, base: Any = None) -> Array:
        """Scores, rows × outputs. One-class models: ‖x − w‖ − radius, above 0 for an anomaly."""
        return scoring.score_many(self, X, base)

    def refused_base(self, base: Array, labels: NDArray[Any] | None = None) -> tuple[int, str] | None:
        """The first row whose `base` is refused, and why. `labels` are given if the rows are to be learned."""
        return scoring.refused_base(self, base, labels)

    def variances(self, X: Any) -> Array:
        """xᵀΣx, rows × class rows, for rules with Gaussian weights: the variance of each score."""
        return uncertainty.variances(self, X)

    def _excess_one(self, x: Any, base: Any = None) -> float:
        """One-class models: ‖x − w‖ − radius of a single row."""
        rows = [x] if isinstance(x, Mapping) else x if hasattr(x, "indptr") or hasattr(x, "tocsr") else np.atleast_2d(x)
        return float(self.score_many(rows, None if base is None else [base])[0, 0])

    def predict_many(self, X: Any, base: Any = None) -> Any:
        """An array of labels or numbers (a list if labels are of mixed types)."""
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
        """Take the step of a mini-batch that is not full yet (rules with batch_size)."""
        self._engine.flush()

    def judged_by(self, X: Any, y: Any, importance: Any = None) -> AbstractContextManager[None]:
        """Inside this context pocket(ratchet=true) compares weights by their errors on this set of known classes."""
        return model_learning.judged_by(self, X, y, importance)

    def learn_and_suffer(self, X: Any, y: Any, importance: Any = None) -> float:
        """Learn a table in order; the mean loss of its rows, each before its own update."""
        return model_learning.learn_and_suffer(self, X, y, importance)

    def learn_direction(self, x: Any, target: float = 1.0, importance: float = 1.0) -> None:
        """One round on φ itself (ranking pairs, structured differences): ⟨w, φ⟩ should reach `target`."""
        self._engine.learn_direction(x, target, importance)

    def learn_together(self, directions: list[Any], importance: Array) -> None:
        """Learn mappings φ in order, each with target 1: all of them, or none if one is refused."""
        self._engine.learn_together(directions, importance)

    def learn_directions(self, batch: Batch, importance: Array | None = None) -> None:
        """Learn rows φ in order, each with target 1: bit for bit the loop of `learn_direction`."""
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
        """Ranking: pair each row from `first` on with the earlier rows from begin[row] on that differ in relevance.

        `learned` receives the number of learned rows, also if one is refused; `scores` the score of each row before
        its pairs.
        """
        if rows.dense is not None:
            self._engine.learn_pairs(rows.dense, relevance, importance, begin, first, scores, learned)
        else:
            assert rows.csr is not None
            columns = max(rows.columns, self.n_features)
            self._engine.learn_pairs_csr(*rows.csr, columns, relevance, importance, begin, first, scores, learned)

    def check_rows(self, X: Any) -> Batch:
        """X as a batch whose columns fit what was learned. NaN and infinity are not checked."""
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
        """The indices of the features about which something was learned."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        config, arrays = self.state()
        return {"config": config, "arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(self.from_state(state["config"], state["arrays"]).__dict__)
        self._bind()

    # -- internals ----------------------------------------------------------------------------------------------------

    def _make_engine(self) -> _native.Engine:
        raise NotImplementedError

    def _row(self, x: Any) -> Any:
        """Convert a single example that is neither a dict nor a float64 vector, for the engine."""
        return self._columns.row(self, as_batch(x)) if getattr(x, "distinct", False) else to_row(x)

    def _placed(self, batch: Batch, *, learning: bool = False) -> Batch:
        """Check that the columns of a batch are the model's features, and return it."""
        return placed(self, batch, learning)

    def _predictions(self, scores: Array) -> Any:
        return scoring.predictions(self, scores)
