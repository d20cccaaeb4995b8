"""Base learners: one interface over models, estimators, reductions and foreign learners."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..errors import DamagedFileError, FeatureError, InputError, ParameterError, rows_from
from ..learner import State, traits_of
from ..models.columns import require_same_names
from ..models.linear import LinearModel
from ..models.rule_model import RuleModel
from ..rows.batches import Batch
from ..rows.named import named_vector
from ..rows.reals import is_real
from ..scheme.rounds import Array, Rule
from .examples import Rows, check_mappings, count, singles, width

__all__ = ["BaseLearner", "ForeignLearner", "OnepassLearner", "RuleLearner", "is_regressor", "make_learner"]


class BaseLearner:
    """A base learner. Its task is "binary" (labels False and True), "regression", or "multiclass" (any labels).

    Arguments are validated before: x by `check`, X by `check_rows`, labels and importances by the reduction.
    """

    task: str
    c_max = math.inf  # the largest importance that the learner takes
    unit_only = False  # does it take no importance but 0 and 1?
    shaped = True  # does it know the columns or names of its features?
    foreign = False  # may it raise any exception, even in the middle of a batch?
    atomic = True  # does a refused example leave it unchanged?
    weights = 0  # how many numbers a snapshot holds
    risky = False  # may the weights make an ordinary example overflow?
    in_blocks = False  # can it predict and learn many rows in one call, with the result of one by one?

    def check(self, x: Any) -> None:
        """Raise the error that `learn` would raise for x; learn nothing."""
        raise NotImplementedError

    def check_rows(self, rows: Rows) -> None:
        raise NotImplementedError

    def set_shape(self, columns: int, names: list[str] | None) -> None:
        """Declare the width of rows to come, and their names."""

    def room_for(self, classes: int) -> None:
        """Raise where the learner does not take so many classes (multiclass)."""

    def learn(self, x: Any, y: Any, c: float) -> None:
        raise NotImplementedError

    def learn_rows(self, rows: Rows, y: NDArray[Any], c: Array | None) -> None:
        """Bit for bit the loop of `learn`."""
        raise NotImplementedError

    def score(self, x: Any) -> float:
        """A margin, above 0 for True; for regression the prediction."""
        raise NotImplementedError

    def score_rows(self, rows: Rows) -> Array:
        raise NotImplementedError

    def predict(self, x: Any) -> Any:
        """A label, for the task "multiclass"."""
        raise NotImplementedError

    def predict_rows(self, rows: Rows) -> Any:
        raise NotImplementedError

    def decide_then_learn(self, rows: Rows, y: NDArray[np.bool_], c: Array | None) -> NDArray[np.bool_]:
        """For each row the decision made before that row was learned (binary)."""
        out = np.zeros(count(rows), dtype=np.bool_)
        for i, x in enumerate(singles(rows)):
            with rows_from(i):
                out[i] = self.score(x) > 0
                self.learn(x, bool(y[i]), 1.0 if c is None else float(c[i]))
        return out

    def predict_then_learn(self, rows: Rows, y: NDArray[Any], c: Array | None) -> Any:
        """For each row the answer made before that row was learned; where `in_blocks`."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of what was learned."""
        raise NotImplementedError

    def copy(self) -> BaseLearner:
        raise NotImplementedError

    def snapshot(self) -> Any:
        """The state that `roll_back` needs to undo later learning; cheaper than a copy."""
        raise NotImplementedError

    def roll_back(self, snapshot: Any) -> None:
        raise NotImplementedError

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        raise NotImplementedError

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        raise NotImplementedError


class RuleLearner(BaseLearner):
    """A `RuleModel`, linear or kernel."""

    in_blocks = True

    def __init__(self, model: RuleModel, task: str) -> None:
        self.model = model
        self.task = task

    @property
    def shaped(self) -> bool:  # type: ignore[override]
        return self.model.n_features > 0

    @property
    def weights(self) -> int:  # type: ignore[override]
        return self.model.n_features * max(1, len(self.model.classes) if self.task == "multiclass" else 1)

    @property
    def risky(self) -> bool:  # type: ignore[override]
        return self.model._engine.risky

    def check(self, x: Any) -> None:
        self.model.check_one(x)

    def check_rows(self, rows: Rows) -> None:
        if isinstance(rows, Batch):
            self.model.check_rows(rows).require_finite()
        else:
            check_mappings(rows, self.model.check_one)

    def set_shape(self, columns: int, names: list[str] | None) -> None:
        if self.model.hash_bits is not None:
            return
        if names:
            self.model.name_columns(names)
        else:
            self.model.set_columns(columns)

    def room_for(self, classes: int) -> None:
        self.model.room_for(classes)

    def learn(self, x: Any, y: Any, c: float) -> None:
        self.model.learn_one(x, y, c)

    def learn_rows(self, rows: Rows, y: NDArray[Any], c: Array | None) -> None:
        self.model.learn_many(rows, y, c)

    def score(self, x: Any) -> float:
        return float(self.model.score_one(x))

    def score_rows(self, rows: Rows) -> Array:
        return self.model.score_many(rows)[:, 0] if count(rows) else np.zeros(0)

    def predict(self, x: Any) -> Any:
        return self.model.predict_one(x)

    def predict_rows(self, rows: Rows) -> Any:
        return self.model.predict_many(rows)

    def decide_then_learn(self, rows: Rows, y: NDArray[np.bool_], c: Array | None) -> NDArray[np.bool_]:
        return np.asarray(self.model.predict_then_learn(rows, y, c), dtype=np.bool_)

    def predict_then_learn(self, rows: Rows, y: NDArray[Any], c: Array | None) -> Any:
        return self.model.predict_then_learn(rows, y, c)

    @property
    def nbytes(self) -> int:
        return self.model.nbytes

    def copy(self) -> RuleLearner:
        return RuleLearner(self.model.copy(), self.task)

    def snapshot(self) -> Any:
        return self.model.__getstate__()  # unlike `state`, it can hold a kernel that is a function

    def roll_back(self, snapshot: Any) -> None:
        self.model.__setstate__(snapshot)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return self.model.state()

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        model, mine = type(self.model).from_state(config, arrays), self.model
        same = model.task == mine.task and model.hash_bits == mine.hash_bits and model.declared == mine.declared
        if not same or (mine.declared and model.classes != mine.classes):
            raise DamagedFileError("a base learner in the file is not of the kind that the reduction makes")
        self.model = model


class ForeignLearner(BaseLearner):
    """Any object with `learn_one(x, y)` and `predict_one(x)`, such as River's learners.

    River's learners take named features: a row becomes {0: x₀, 1: x₁, …}, or takes the names of its frame's columns.
    """

    atomic = False

    def __init__(self, learner: Any, task: str) -> None:
        self.learner = learner
        self.task = task
        self.foreign = True
        self.river = any(kind.__module__.startswith("river.") for kind in type(learner).__mro__)
        known = inspect.signature(learner.learn_one).parameters
        self.importance = next((name for name in ("importance", "w", "sample_weight") if name in known), None)
        self.columns: int | None = None
        self.names: list[str] | None = None

    @property
    def unit_only(self) -> bool:  # type: ignore[override]
        return self.importance is None

    def check(self, x: Any) -> None:
        named = isinstance(x, Mapping)
        if not named and self.columns is not None and width(x) != self.columns:
            raise FeatureError(f"x has {width(x)} features, but this model has learned rows of {self.columns}")
        row = self._row_for_learner(x)
        for value in row.values() if isinstance(row, Mapping) else row:
            if isinstance(value, (float, np.floating)) and not math.isfinite(value):
                raise InputError(f"x must hold finite numbers, got {value}; drop or impute the example")
            if not is_real(value):
                raise InputError(f"x must hold numbers, got {value!r:.60} ({type(value).__name__})")

    def check_rows(self, rows: Rows) -> None:
        if isinstance(rows, Batch):
            if self.columns is not None and rows.columns != self.columns:
                raise FeatureError(f"X has {rows.columns} features, but this model has learned rows of {self.columns}")
            require_same_names(rows.names, self.names)
            rows.require_finite()
        else:
            check_mappings(rows, self.check)

    def set_shape(self, columns: int, names: list[str] | None) -> None:
        self.columns, self.names = columns, names

    def learn(self, x: Any, y: Any, c: float) -> None:
        if self.importance is not None:
            self.learner.learn_one(self._row_for_learner(x), y, **{self.importance: c})
        elif c:  # 1: the reductions ensure it
            self.learner.learn_one(self._row_for_learner(x), y)

    def learn_rows(self, rows: Rows, y: NDArray[Any], c: Array | None) -> None:
        weights = [1.0] * count(rows) if c is None else c.tolist()
        for i, (x, label, weight) in enumerate(zip(singles(rows), y.tolist(), weights, strict=True)):
            with rows_from(i):
                self.learn(x, label, weight)

    def score(self, x: Any) -> float:
        x = self._row_for_learner(x)
        if self.task == "regression":
            return float(self.learner.predict_one(x))
        if hasattr(self.learner, "score_one"):
            return float(self.learner.score_one(x))
        try:
            p = self.learner.predict_proba_one(x)
            return float(p.get(True, 0.0) - p.get(False, 0.0))
        except (AttributeError, NotImplementedError):
            decision = self.learner.predict_one(x)
            return 0.0 if decision is None else 1.0 if decision else -1.0

    def score_rows(self, rows: Rows) -> Array:
        return np.array([self.score(x) for x in singles(rows)], dtype=np.float64)

    def predict(self, x: Any) -> Any:
        return self.learner.predict_one(self._row_for_learner(x))

    def predict_rows(self, rows: Rows) -> Any:
        return [self.predict(x) for x in singles(rows)]

    @property
    def nbytes(self) -> int:
        own = getattr(self.learner, "nbytes", None)
        if own is None:
            raise AttributeError(f"{type(self.learner).__name__} does not report its size (nbytes)")
        return int(own)

    def copy(self) -> ForeignLearner:
        return copy.deepcopy(self)

    def snapshot(self) -> Any:
        return copy.deepcopy(self.learner), self.columns, self.names

    def roll_back(self, snapshot: Any) -> None:
        self.learner, self.columns, self.names = snapshot

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        kind = type(self.learner)
        raise ParameterError(
            f"a model file cannot hold {kind.__module__}.{kind.__qualname__}; use a onepass learner as base, or pickle"
        )

    def _row_for_learner(self, x: Any) -> Any:
        if isinstance(x, Mapping):
            return x if self.names is None or self.river else named_vector(x, self.names)
        row = x.toarray()[0] if hasattr(x, "tocsr") else x
        return dict(zip(self.names or range(len(row)), row.tolist(), strict=True)) if self.river else row


class OnepassLearner(ForeignLearner):
    """A onepass learner that is not one rule's model: naive Bayes, LASVM, an ensemble, a pipeline, …"""

    atomic = True

    @property
    def risky(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.learner, "_risky", False))

    def score(self, x: Any) -> float:
        x = self._row_for_learner(x)
        if self.task == "regression":
            return float(self.learner.predict_one(x))
        if hasattr(self.learner, "predict_proba_one"):
            p = self.learner.predict_proba_one(x)
            return float(p.get(True, 0.0) - p.get(False, 0.0))
        decision = self.learner.predict_one(x)
        if decision is None:
            return 0.0
        # The sign comes from the decision: which class has scores above 0 depends on the learner.
        size = abs(self.learner.score_one(x)) if hasattr(self.learner, "score_one") else 1.0
        return size if decision else -size

    def predict_rows(self, rows: Rows) -> Any:
        # Rows are learned one by one, as vectors; `check_rows` has validated their names.
        return self.learner.predict_many(replace(rows, names=None) if isinstance(rows, Batch) else self._mapped(rows))

    def _mapped(self, rows: list[Any]) -> list[Any] | Array:
        return rows if self.names is None else np.array([self._row_for_learner(x) for x in rows])

    def copy(self) -> OnepassLearner:
        out = copy.copy(self)
        out.learner = self.learner.copy()
        return out

    def state(self) -> State:
        config, arrays = self.learner.state()
        return {"learner": config, "columns": self.columns, "names": self.names}, arrays

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        columns, names = config["columns"], config["names"]
        if names is not None and not (isinstance(names, list) and len(set(names)) == len(names) == columns):
            raise DamagedFileError("a base learner's names are not its columns'; restore the file from a backup")
        if columns is not None and type(columns) is not int:
            raise DamagedFileError("a base learner's number of columns is not a number; restore the file from a backup")
        self.columns, self.names = columns, names
        self.learner = type(self.learner).from_state(config["learner"], arrays)
        known = getattr(self.learner, "classes_", None) if self.task == "binary" else None
        if known is not None and not all(type(label) is bool for label in known.tolist()):
            raise DamagedFileError("a base learner has labels that are not its own; restore the file from a backup")


def make_learner(base: Any, task: str, classes: list[Any] | None, owner: str) -> BaseLearner:
    """A new learner of the kind that `base` describes, for one of the tasks of `BaseLearner`."""
    if task == "binary":
        classes = [False, True]
    if isinstance(base, (str, Rule)):
        return RuleLearner(LinearModel(base, "regression" if task == "regression" else "auto", classes=classes), task)
    traits = traits_of(base)
    _require_no_labels(base, task, owner)
    if hasattr(base, "_new_learner"):  # a reduction
        made: BaseLearner = base._new_learner(task, classes, owner)
        return made
    if traits is not None:
        if traits.answers != ("number" if task == "regression" else "class"):
            _refuse(owner, task, base)
        if traits.by_rule:
            return RuleLearner(base.new_model(classes), task)
        return OnepassLearner(clone(base, safe=False), task)
    if not (callable(getattr(base, "learn_one", None)) and callable(getattr(base, "predict_one", None))):
        raise ParameterError(
            f"{owner}(base={base!r:.80}): expected a rule or its name, an estimator, a LinearModel, a reduction, or an "
            "object with learn_one and predict_one"
        )
    if (task == "regression") != is_regressor(base) and type(base).__module__.startswith("river."):
        _refuse(owner, task, base)
    return ForeignLearner(base.clone() if hasattr(base, "clone") else copy.deepcopy(base), task)


def _require_no_labels(base: Any, task: str, owner: str) -> None:
    """Refuse options of a base that name labels, where it sees other labels than the user's."""
    for option in ("class_weight", "costs"):
        sees_them = option == "costs" and task == "multiclass" and not hasattr(base, "options")
        if getattr(base, option, None) is not None and not sees_them:
            raise ParameterError(f"{owner}: its base sees other labels than yours, so {option} means nothing there")


def is_regressor(base: Any) -> bool:
    """Does this base predict numbers? (A rule alone takes the task that it is given.)"""
    traits = traits_of(base)
    if traits is not None:
        return traits.answers == "number"
    return any(kind.__name__ in ("RegressorMixin", "Regressor") for kind in type(base).__mro__)


def _refuse(owner: str, task: str, base: Any) -> None:
    wanted = {"regression": "a regressor", "binary": "a classifier of two classes", "multiclass": "a classifier"}[task]
    raise ParameterError(f"{owner} needs {wanted} as its base, got {type(base).__name__}")
