"""What all reductions share: a growing set of labels, bases in step with each other, calls that are atomic."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import DamagedFileError, InputError, LabelError, RowError, rows_from
from ..persistence import store
from ..rows.batches import Batch, as_importance
from ..scheme.rounds import Array
from ..scheme.sizes import MOST_LEARNERS
from .examples import (
    Indices,
    Labels,
    Rows,
    are_extreme,
    count,
    is_extreme,
    part,
    read_importance,
    read_labels,
    read_one,
    read_rows,
    take,
    width,
)
from .learners import BaseLearner, make_learner

__all__ = ["Reduction"]

# Each base learns a batch in one call, after a snapshot that could undo it: about 15 µs a base and 1.5 ns a weight.
# Learning a row by itself costs about 15 µs a base too. The rows go one by one where snapshots cost more.
_WEIGHTS_PER_ROW = 10_000


class Reduction(BaseLearner):
    """Base learners, and how examples are distributed among them.

    A subclass says what an answer (a label, costs) means to its bases: `_read` and `_read_many` check and number the
    labels and change nothing, `_grow` makes the bases of new labels, `_learn` and `_learn_batch` teach.

    Where a base refuses an example (`RowError`), a batch is learned up to that row, and no base learns the row. To roll
    back the bases that learned it before, a snapshot of all bases to be taught (`_taught`) is taken: before every
    batch, and before a single example that may be refused, because its numbers or the weights (`risky`) are extreme.
    A new label alone needs no snapshot of the bases, so it costs only the bases that it adds.
    """

    name = ""  # of the estimator, for messages
    task = "multiclass"
    needs = "binary"  # the task of the bases
    least = 0  # how many classes must be declared; 0 where they need not be

    def __init__(self, base: Any, classes: Any = None) -> None:
        self.base = base
        self.labels = Labels(classes)
        self.learners: list[BaseLearner] = []
        self.spares: list[BaseLearner] = []  # bases for labels still to come, taught from the start
        self.columns: int | None = None  # of the first row, if it came from a table
        self.names: list[str] | None = None
        self.t = 0
        self._representative: BaseLearner | None = None
        if self.least and len(self.labels) < self.least:
            known = f"got {len(self.labels)} class(es)" if self.labels.declared else "and none were declared"
            raise LabelError(
                f"{self.name} needs at least {self.least} classes from the start, {known}: "
                f"give {self.name}(classes=[…]), or partial_fit(X, y, classes=[…])"
            )

    # -- one example -----------------------------------------------------------------------------------------------

    def learn(self, x: Any, y: Any, c: float = 1.0) -> None:
        x, c = read_one(x), read_importance(c)
        new, answer = self._read(y)
        self.check(x)
        self._check_importance(answer, c)
        first = self.columns is None and not isinstance(x, Mapping)
        at_risk = self._to_snapshot(new, answer, first, is_extreme(x, c) or self._is_extreme(answer))
        if at_risk is not None:
            with self._all_or_nothing(at_risk):
                if first:
                    self.set_shape(width(x), None)
                self._add_labels(new)
                self._learn(x, answer, c)
        else:
            self._learn(x, answer, c)
        self.t += 1

    def check(self, x: Any) -> None:
        self.representative().check(x)

    # -- many ------------------------------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        rows = read_rows(X)
        self.learn_rows(rows, self.read_answers(y, count(rows)), as_importance(importance, count(rows)))

    def read_answers(self, y: Any, rows: int) -> Any:
        """y as a sequence of that length, which can be sliced by rows."""
        return read_labels(y, rows)

    def learn_rows(self, rows: Rows, y: Any, c: Array | None) -> None:
        self.check_rows(rows)
        new, answers = self._read_many(y)
        self._check_importance(answers, 1.0 if c is None else c)
        first = self.columns is None and isinstance(rows, Batch)
        extreme = are_extreme(rows, c) or self._is_extreme(answers)
        if not (first or extreme) and (not new or count(rows) == 1) and self._one_by_one(rows):
            self._learn_each(rows, new, answers, c)
            return
        try:
            with self._all_or_nothing(self._all_learners() if first else self._taught(answers)):
                if first:
                    assert isinstance(rows, Batch)
                    self.set_shape(rows.columns, rows.names)
                self._add_labels(new)
                self._learn_and_count(rows, answers, c)
        except RowError as error:
            if count(rows) == 1:
                raise
            self._learn_around(error.row, rows, y, c)

    def _learn_each(self, rows: Rows, new: list[Any], answers: Any, c: Array | None) -> None:
        for i in range(count(rows)):
            at_risk = self._to_snapshot(new, answers[i : i + 1], False, False)
            with rows_from(i), contextlib.nullcontext() if at_risk is None else self._all_or_nothing(at_risk):
                self._add_labels(new)
                self._learn_and_count(part(rows, i, i + 1), answers[i : i + 1], None if c is None else c[i : i + 1])

    def _learn_around(self, row: int, rows: Rows, y: Any, c: Array | None) -> None:
        """Learn rows one side at a time, after `row` was refused in a call that was rolled back.

        Learned separately, an earlier row may be refused by another base, or no row at all if the base was replaced.
        """
        for start, stop in ((0, row), (row, row + 1), (row + 1, count(rows))):
            if start < stop:
                with rows_from(start):
                    self.learn_rows(part(rows, start, stop), y[start:stop], None if c is None else c[start:stop])

    def check_rows(self, rows: Rows) -> None:
        self.representative().check_rows(rows)

    def _one_by_one(self, rows: Rows) -> bool:
        """Is learning row by row at least as cheap as one call per base?"""
        if self.foreign:
            return False
        # A base takes named rows one by one in any case.
        return isinstance(rows, list) or self.representative().weights > _WEIGHTS_PER_ROW * (count(rows) - 1)

    def _learn_and_count(self, rows: Rows, answers: Any, c: Array | None) -> None:
        if isinstance(rows, list) and len(rows) == 1:
            answer = answers[0].item() if isinstance(answers[0], np.generic) else answers[0]
            self._learn(rows[0], answer, 1.0 if c is None else float(c[0]))
        else:
            self._learn_batch(rows, answers, c)
        self.t += count(rows)

    @staticmethod
    def _teach(learner: BaseLearner, rows: Rows, at: Indices, y: NDArray[Any], c: Array | None) -> None:
        """Teach one base some of the rows; an error is renumbered to the row among all."""
        if len(at):
            try:
                learner.learn_rows(take(rows, at), y, c)
            except RowError as error:
                raise error.at(int(at[error.row])) from None

    # -- what a subclass defines -----------------------------------------------------------------------------------

    def _read(self, y: Any) -> tuple[list[Any], Any]:
        """The labels that are new in y, and y as the bases take it."""
        return self.labels.one(y)

    def _read_many(self, y: Any) -> tuple[list[Any], Any]:
        return self.labels.many(y)

    def _check_importance(self, answers: Any, c: Array | float) -> None:
        """Raise where a base would be given an importance that it does not take."""
        self._require_accepted(c)

    def _is_extreme(self, answers: Any) -> bool:
        """Might an update overflow because the answers are extreme?"""
        return False

    def _grow(self) -> None:
        """After labels have been added: make their bases, or make room in the existing ones."""
        for learner in self.learners:
            learner.room_for(len(self.labels))

    def _learn(self, x: Any, answer: Any, c: float) -> None:
        raise NotImplementedError

    def _learn_batch(self, rows: Rows, answers: Any, c: Array | None) -> None:
        raise NotImplementedError

    def _taught(self, answers: Any) -> list[BaseLearner]:
        """The existing bases that examples with these answers teach."""
        return self._all_learners()

    def _sizes(self) -> tuple[int, int]:
        """The required numbers of learners and spares."""
        raise NotImplementedError

    def decode(self, scores: Array) -> Array:
        """The bases' scores, rows × bases, as scores of the labels, rows × labels."""
        raise NotImplementedError

    # -- predictions -----------------------------------------------------------------------------------------------

    def label_scores(self, x: Any) -> Array:
        scores = self.decode(np.array([[learner.score(x) for learner in self.learners]]))
        return np.asarray(scores[0])

    def label_scores_rows(self, rows: Rows) -> Array:
        scores = np.zeros((count(rows), len(self.learners)))
        for b, learner in enumerate(self.learners):
            scores[:, b] = learner.score_rows(rows)
        return self.decode(scores)

    def predict(self, x: Any) -> Any:
        x = read_one(x)
        self.check(x)
        if not len(self.labels):
            return None
        return self.labels.values[self._choose(x)]

    def predict_rows(self, rows: Rows) -> list[Any]:
        self.check_rows(rows)
        if not len(self.labels):
            return [None] * count(rows)
        return [self.labels.values[k] for k in self.choose_rows(rows).tolist()]

    def _choose(self, x: Any) -> int:
        return int(np.argmax(self.label_scores(x)))

    def choose_rows(self, rows: Rows) -> Indices:
        """The numbers of the predicted labels."""
        return np.asarray(np.argmax(self.label_scores_rows(rows), axis=1))

    # -- bases -----------------------------------------------------------------------------------------------------

    def make(self) -> BaseLearner:
        """A new base with the columns of the others."""
        learner = make_learner(self.base, self.needs, self._base_classes(), self.name)
        if self.columns is not None:
            learner.set_shape(self.columns, self.names)
        return learner

    def _base_classes(self) -> list[Any] | None:
        return None

    def representative(self) -> BaseLearner:
        """A base that knows the features, if any does: it validates examples for all bases."""
        known = self._representative
        if known is None or not known.shaped:
            bases = self._all_learners()
            known = next((base for base in bases if base.shaped), bases[0] if bases else self.make())
            self._representative = known
        return known

    def set_shape(self, columns: int, names: list[str] | None) -> None:
        self.columns, self.names = columns, names
        self._representative = None  # one made before does not know them
        for learner in self._all_learners():
            learner.set_shape(columns, names)

    @property
    def shaped(self) -> bool:  # type: ignore[override]
        return self.representative().shaped

    @property
    def weights(self) -> int:  # type: ignore[override]
        return sum(learner.weights for learner in self._all_learners())

    @property
    def risky(self) -> bool:  # type: ignore[override]
        for learner in self.learners:
            if learner.risky:
                return True
        return any(learner.risky for learner in self.spares)

    @property
    def atomic(self) -> bool:  # type: ignore[override]
        return self.representative().atomic

    @property
    def c_max(self) -> float:  # type: ignore[override]
        return self.representative().c_max

    @property
    def unit_only(self) -> bool:  # type: ignore[override]
        return self.representative().unit_only

    @property
    def foreign(self) -> bool:  # type: ignore[override]
        return self.representative().foreign

    def _require_accepted(self, importance: Array | float) -> None:
        base = self.representative()
        if not base.unit_only and base.c_max == math.inf:
            return
        c = np.atleast_1d(importance)
        odd = c[(c != 0.0) & (c != 1.0)]
        if base.unit_only and len(odd):
            raise InputError(
                f"{self.name}: its base takes no importance, but an example has {odd[0]:g}; "
                "wrap the base: ImportanceSampling(base, c_max=…)"
            )
        if c.size and c.max() > base.c_max:
            raise InputError(f"{self.name}: its base takes importances to {base.c_max:g}, got {c.max():g}; raise c_max")

    def _add_labels(self, new: list[Any]) -> None:
        if new:
            self.labels.add(new)
            self._require_few()
            self._grow()

    def _require_few(self) -> None:
        """Refuse classes that would need more base learners than the limit."""
        if (parts := sum(self._sizes())) > MOST_LEARNERS:
            raise LabelError(
                f"{len(self.labels):,} classes would take {parts:,} base learners of {self.name}, but the limit is "
                f"{MOST_LEARNERS:,}; use a multiclass learner, or ErrorCorrectingOutputCodes"
            )

    def _to_snapshot(self, new: list[Any], answers: Any, first: bool, extreme: bool) -> list[BaseLearner] | None:
        """The bases to snapshot before an example is learned; None where not even the labels need it."""
        taught = self._all_learners() if first else self._taught(answers)
        if first or extreme or (new and not self.atomic):
            return taught
        for learner in taught:
            if learner.risky:
                return taught
        return [] if new else None

    @contextlib.contextmanager
    def _all_or_nothing(self, taught: list[BaseLearner]) -> Iterator[None]:
        """Roll the reduction back if the block raises; only the bases in `taught` may learn inside."""
        before = self._take_snapshot(taught)
        try:
            yield
        except BaseException:
            self.roll_back(before)
            raise

    @property
    def nbytes(self) -> int:
        return sum(learner.nbytes for learner in self._all_learners())

    # -- copies and files ------------------------------------------------------------------------------------------

    def copy(self) -> Self:
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.labels = self.labels.copy()
        out.learners = [learner.copy() for learner in self.learners]
        out.spares = [learner.copy() for learner in self.spares]
        out._representative = None
        return out

    def _all_learners(self) -> list[BaseLearner]:
        return [*self.learners, *self.spares]

    def snapshot(self) -> Any:
        return self._take_snapshot(self._all_learners())

    def _take_snapshot(self, taught: list[BaseLearner]) -> Any:
        own = {
            **self.__dict__,
            "labels": self.labels.copy(),
            "learners": list(self.learners),
            "spares": list(self.spares),
        }
        return own, [(learner, learner.snapshot()) for learner in taught]

    def roll_back(self, snapshot: Any) -> None:
        own, snapshots = snapshot
        self.__dict__.clear()
        self.__dict__.update(own)
        for learner, each in snapshots:
            learner.roll_back(each)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state without the parameters, as JSON and arrays."""
        configs: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for i, learner in enumerate(self._all_learners()):
            config, own = learner.state()
            configs.append(config)
            arrays.update({f"{i}/{key}": value for key, value in own.items()})
        config = {
            "labels": store.encode_values(self.labels.values),
            "declared": self.labels.declared,
            "columns": self.columns,
            "names": self.names,
            "t": self.t,
            "bases": configs,
        }
        return config, arrays

    def restore(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state; raise `DamagedFileError` where its parts do not fit together."""
        labels = store.decode_values(config["labels"])
        if config["declared"] is not self.labels.declared or (self.labels.declared and labels != self.labels.values):
            raise DamagedFileError("the reduction's classes are not those it was made with")
        self.labels = Labels(labels)
        self.labels.declared = config["declared"]
        self.t, self.columns, self.names = config["t"], config["columns"], config["names"]
        learners, _ = self._sizes()
        self._require_consistent(len(config["bases"]))
        parts: list[dict[str, NDArray[Any]]] = [{} for _ in config["bases"]]
        for key, value in arrays.items():
            number, slash, name = key.partition("/")
            if slash:
                parts[int(number) if number.isdecimal() else len(parts)][name] = value  # IndexError: no such base
        made = [self.make() for _ in parts]
        for learner, base, own in zip(made, config["bases"], parts, strict=True):
            learner.restore(base, own)
        self.learners, self.spares, self._representative = made[:learners], made[learners:], None

    def _require_consistent(self, bases: int) -> None:
        """Refuse a state read from a file whose counts and names contradict each other."""
        names, columns = self.names, self.columns
        if type(self.t) is not int or not 0 <= self.t <= 2**53:
            what = "t is not a count"
        elif columns is not None and (type(columns) is not int or columns < 0):
            what = "columns is not a count"
        elif names is not None and (len(names) != columns or any(type(name) is not str for name in names)):
            what = "names are not the columns'"
        elif bases != sum(self._sizes()):
            what = f"it holds {bases} base learners"
        else:
            return
        raise DamagedFileError(f"the reduction's parts do not fit together: {what}; restore it from a backup")
