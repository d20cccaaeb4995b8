"""`EnsembleModel`: several linear models learn the same stream and vote, with weights that are learned, too.

No scikit-learn: the command uses it for ``--rule auto``. Files hold every member and the weights.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError, InputError, NumericalError, ParameterError, checked_parts, rows_from
from ..learner import LearnerTraits, State, traits_of
from ..persistence import registry
from ..rows.batches import Batch, as_batch, as_importance, is_mappings
from ..rows.labels import alike, as_labels, as_targets
from ..rows.reals import as_reals
from ..scheme.rounds import Array, Rule
from ..scheme.sizes import read_max_features
from . import portfolio
from .base import part as part_of
from .ensemble_members import EnsembleMembers, Members
from .ensemble_weights import MemberWeights
from .learning import check_mappings, run_into
from .linear import LinearModel
from .option_values import check_options, options_config, options_from
from .options import EnsembleOptions, shared_options

__all__ = ["EnsembleModel"]


@dataclasses.dataclass(repr=False, eq=False)
class EnsembleModel(EnsembleMembers, MemberWeights, EnsembleOptions):  # type: ignore[misc]  # as `LinearModel`
    """M models and Fixed Share over them: v ∝ w e^{−ηc}, w ← (1 − α)v + α/M, c the members' losses in the round.

    Classes: members vote with their weights, and c is 1 where the vote was wrong. Numbers: the weighted mean of the
    members' answers, each brought into the range of the answers so far, of width B; c = ((f − y)/B)².
    Beyond the best sequence of members with k switches, the weighted losses are at most
    (1/η)[(k + 1) ln M + k ln(1/α) + (N − k − 1) ln(1/(1 − α))] + ηN/8 (`experts.FixedShare`); α = 0 is Hedge.

    A member whose update would overflow is retired: it neither learns nor votes again. A row that every member
    refuses is refused.
    """

    readout = "members"
    estimator_kind = "ExpertEnsemble"

    _: dataclasses.KW_ONLY
    classes: dataclasses.InitVar[Iterable[Any] | None] = None

    def __post_init__(self, classes: Iterable[Any] | None) -> None:
        task = self.task
        if task not in ("auto", "binary", "multiclass", "regression"):
            raise ParameterError(f"task={task!r}: expected one of auto, binary, multiclass, regression")
        classes = None if classes is None else list(classes)
        members: Sequence[Any] | None = self.members
        if members is None:
            members = portfolio.REGRESSORS if task == "regression" else portfolio.CLASSIFIERS
        if not len(members):
            raise ParameterError("an ensemble needs at least one member")
        self.max_features = read_max_features(self.max_features)
        self.members = [self._member(member, classes) for member in members]
        check_options(self)
        if self.eta is None:
            self.eta = 0.5 if task == "regression" else 0.1
        M = len(self.members)
        self.member_weights: Array = np.full(M, 1.0 / M)
        self.losses: Array = np.zeros(M)
        self.alive: NDArray[np.bool_] = np.ones(M, dtype=bool)
        self.range: Array = np.array([math.inf, -math.inf])  # the range of the answers, in regression
        self.t = 0
        self.extra: dict[str, Any] = {}
        self.extra_arrays: dict[str, NDArray[Any]] = {}
        self.rule = Members(self)

    def __repr__(self) -> str:
        names = [name for name, _ in self.standing()]
        more = [f"… {len(names)} members"] if len(names) > 3 else []
        return f"EnsembleModel([{', '.join(names[:3] + more)}], task={self.task!r})"

    def _member(self, member: Any, classes: list[Any] | None) -> LinearModel:
        traits = traits_of(member)
        if traits is not None:
            if not (traits.linear and traits.by_rule):
                raise ParameterError(f"member {member!r:.60}: expected linear models")
            if member.costs is not None and classes is None:
                raise ParameterError(
                    f"member {member.rule!r}: its costs are of classes; declare them, {member.classes!r}"
                )
            made: LinearModel = member.new_model(classes)
            if (made.task == "regression") != (self.task == "regression") or made.hash_bits != self.hash_bits:
                raise ParameterError(f"member {made.rule!r}: its task and hash_bits must be the ensemble's")
            return made
        if not isinstance(member, str | Rule):
            raise ParameterError(f"member {member!r:.60}: expected a rule, its name, or a LinearModel")
        rule, readout = portfolio.read(member) if isinstance(member, str) else (member, "last")
        known = None if self.task == "regression" else classes
        return LinearModel(rule, readout=readout, classes=known, **shared_options(self, LinearModel))

    def options(self) -> dict[str, Any]:
        """The constructor's parameters."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.options(), classes=self.classes if self.declared else None)

    @property
    def traits(self) -> LearnerTraits:
        verbs = {"score_one", "predict_then_learn", "score_then_learn"}
        return LearnerTraits("number" if self.task == "regression" else "class", frozenset(verbs))

    @property
    def _risky(self) -> bool:
        return any(member._risky for member in self.members)

    @property
    def nbytes(self) -> int:
        """Bytes of all members and of their weights."""
        own = self.member_weights.nbytes + self.losses.nbytes + self.alive.nbytes + self.range.nbytes
        return int(own) + sum(member.nbytes for member in self.members)

    # -- predicting ----------------------------------------------------------------------------------------------------

    def score_many(self, X: Any) -> Array:
        """Shares of the votes: one column for two classes (above 0 is the second), one each for more; or numbers."""
        scores = [member.score_many(X) for member in self.members]
        rows = len(scores[0])
        votes = self._advice(scores)
        weights = np.broadcast_to(self.member_weights, (rows, len(self.members)))
        return self._mix(votes, weights, len(self.classes))

    def score_one(self, x: Any) -> Any:
        row = self.score_many([x] if isinstance(x, Mapping) else _as_rows(x))[0]
        return float(row[0]) if len(row) == 1 else row.tolist()

    def predict_one(self, x: Any) -> Any:
        if self.task != "regression" and not self.classes:
            return None
        said = self.predict_many([x] if isinstance(x, Mapping) else _as_rows(x))
        return said[0].item() if isinstance(said, np.ndarray) else said[0]

    def predict_many(self, X: Any) -> Any:
        return self._predictions(self.score_many(X))

    def class_indices(self, scores: Array) -> NDArray[np.intp]:
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0).astype(np.intp)
        return np.asarray(np.argmax(scores, axis=1))

    def _predictions(self, scores: Array, classes: list[Any] | None = None) -> Any:
        if self.task == "regression":
            return scores[:, 0]
        classes = self.classes if classes is None else classes
        if not classes:
            return [None] * len(scores)
        indices = self.class_indices(scores) if len(classes) > 1 else np.zeros(len(scores), dtype=np.intp)
        return np.array(classes)[indices] if alike(classes) else [classes[i] for i in indices]

    # -- learning ------------------------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        if isinstance(x, Mapping):
            self.first.check_one(x)
            self._learn([x], [y], [importance])
        else:
            self._learn(_as_rows(x), [y], [importance])

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        self._learn(X, y, importance)

    def score_then_learn(self, X: Any, y: Any, importance: Any = None) -> list[tuple[list[Any], Array]]:
        """The scores of each row before learning it, in parts: (classes known then, their scores)."""
        return self._learn(X, y, importance)

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None) -> Any:
        parts = [self._predictions(scores, classes) for classes, scores in self._learn(X, y, importance)]
        if all(isinstance(part, np.ndarray) for part in parts):
            return np.concatenate(parts)
        return [label for part in parts for label in (part.tolist() if isinstance(part, np.ndarray) else part)]

    def _learn(self, X: Any, y: Any, importance: Any) -> list[tuple[list[Any], Array]]:
        mappings = is_mappings(X)
        batch = None if mappings else as_batch(X)
        rows = len(X) if batch is None else batch.rows
        if rows == 0:
            raise InputError("X has no rows; expected at least one")
        c = as_importance(importance, rows)
        answers: NDArray[Any] = as_targets(y) if self.task == "regression" else as_labels(y)
        if len(answers) != rows:
            raise InputError(f"X has {rows} rows, y has {len(answers)}")
        if self.task != "regression":
            self.first._check_labels(answers.tolist())
        if batch is None:
            check_mappings(self.first, X)
            parts = []
            for i, (x, answer) in enumerate(zip(X, answers, strict=True)):
                with rows_from(i):
                    parts.append(self._one(x, answer, 1.0 if c is None else float(c[i])))
            return parts
        batch.require_finite()
        placed = self.first._placed(batch)  # raises where the columns do not fit
        del placed
        return self._stretches(batch, answers, c)

    def _stretches(self, batch: Batch, answers: NDArray[Any], c: Array | None) -> list[tuple[list[Any], Array]]:
        """Learn the runs of rows between new labels; a new label is registered by the row that has it."""
        parts: list[tuple[list[Any], Array]] = []
        start, first_table = 0, self.t == 0
        try:
            while start < batch.rows:
                y, stop = self._known_run(answers, start)
                if stop > start:
                    part = batch if stop - start == batch.rows else batch.part(start, stop)
                    parts.append(self._stretch(part, y, answers[start:stop], _between(c, start, stop), start))
                start = stop + 1
                if stop < batch.rows:
                    new = answers[stop:start]
                    parts.append(self._new_label(batch.part(stop, start), new, _between(c, stop, start), stop))
        finally:
            if first_table:
                self._name_columns(batch)
        return parts

    def _known_run(self, answers: NDArray[Any], start: int) -> tuple[Array, int]:
        """The answers from `start` to the first new label, as the members take them; and the row of that label."""
        if self.task == "regression":
            return answers[start:], len(answers)
        indices = self.first._indices(answers[start:])
        new = np.flatnonzero(indices < 0)
        stop = start + int(new[0]) if len(new) else len(answers)
        return indices[: stop - start], stop

    def _name_columns(self, batch: Batch) -> None:
        """Give the members the column names of the first table, so that mappings may follow."""
        if batch.names and self.t and not self.names and self.hash_bits is None:
            for member in self.members:
                member._engine.set_names(batch.names)

    def _stretch(
        self, batch: Batch, y: Array, answers: NDArray[Any], c: Array | None, start: int
    ) -> tuple[list[Any], Array]:
        """Rows with known labels, in one native call for each member."""
        classes, M = self.classes, len(self.members)
        scores: list[Array] = []
        ends = np.full(M, batch.rows)  # the number of rows that each member learned
        error: NumericalError | None = None
        for m, member in enumerate(self.members):
            scores.append(np.zeros((batch.rows, int(member._engine.rows))))
            if not self.alive[m]:
                continue
            names = member.n_names
            placed = member._placed(batch, learning=True)
            try:
                run_into(member, placed, y, c, scores[m])
            except NumericalError as refused:
                ends[m], error = refused.row, refused
                if placed.named and self.hash_bits is None:
                    member._columns.forget(member, placed, names, refused.row)
        end = int(np.max(ends[self.alive]))
        out = self._weigh(scores, answers[:end], None if c is None else c[:end], ends, len(classes))
        if end < batch.rows:
            assert error is not None
            raise NumericalError(f"row {start + end}: every member's update would overflow", start + end)
        return classes, out

    def _new_label(self, batch: Batch, answer: NDArray[Any], c: Array | None, start: int) -> tuple[list[Any], Array]:
        classes = self.classes
        scores = [member.score_many(batch) for member in self.members]
        ends = np.ones(len(self.members), dtype=np.int64)
        for m, member in enumerate(self.members):
            if self.alive[m]:
                try:
                    member.learn_many(batch, answer, c)
                except NumericalError:  # the refused row changed nothing
                    ends[m] = 0
        if not np.any(ends[self.alive]):
            raise NumericalError(f"row {start}: every member's update would overflow", start)
        return classes, self._weigh(scores, answer, c, ends, len(classes), classes)

    def _one(self, x: Mapping[Any, Any], answer: Any, c: float) -> tuple[list[Any], Array]:
        classes = self.classes
        scores = [np.atleast_2d(np.array(member.score_one(x), dtype=np.float64)) for member in self.members]
        ends = np.ones(len(self.members), dtype=np.int64)
        label = answer.item() if isinstance(answer, np.generic) else answer
        error: NumericalError | None = None
        for m, member in enumerate(self.members):
            if self.alive[m]:
                try:
                    member.learn_one(x, label, c)
                except NumericalError as refused:
                    ends[m], error = 0, refused
        if not np.any(ends[self.alive]):
            assert error is not None
            raise error
        weight = None if c == 1.0 else np.array([c])
        return classes, self._weigh(scores, as_labels([label]) if self.task != "regression" else np.array([label]),
                                    weight, ends, len(classes), classes)  # fmt: skip

    # -- files ---------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        configs, arrays = [], {}
        for i, member in enumerate(self.members):
            config, own = registry.nested(member)
            configs.append(config)
            arrays.update({f"m{i}.{key}": value for key, value in own.items()})
        arrays |= {"weights": self.member_weights, "losses": self.losses, "alive": self.alive.astype(np.uint8)}
        arrays |= {"range": self.range, **{f"extra.{key}": value for key, value in self.extra_arrays.items()}}
        return {**options_config(self), "t": self.t, "extra": self.extra, "members": configs}, arrays

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        with checked_parts("the ensemble"):
            members = []
            for i, own in enumerate(config["members"]):
                members.append(registry.restored(own, part_of(arrays, f"m{i}.")))
            model = cls(members, **options_from(cls, config, {}))
            model.members = members
            shapes = {name: np.array(arrays[name]) for name in ("weights", "losses", "alive", "range")}
            if any(shapes[name].shape != (len(members),) for name in ("weights", "losses", "alive")):
                raise KeyError("weights of another number of members")
            if shapes["range"].shape != (2,) or not np.any(shapes["alive"]) or not np.all(shapes["weights"] >= 0):
                raise KeyError("no member that learns, or weights below 0")
            model.member_weights, model.losses = shapes["weights"], shapes["losses"]
            model.alive, model.range = shapes["alive"].astype(bool), shapes["range"]
            model.t, model.extra = int(config["t"]), dict(config["extra"])
            model.extra_arrays = {k.removeprefix("extra."): v for k, v in arrays.items() if k.startswith("extra.")}
        return model

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model in a file, whether it was saved alone or with its estimator."""
        model: Self = registry.load_model(path, cls.__name__)[0]
        return model

    def __getstate__(self) -> dict[str, Any]:
        config, arrays = self.state()
        return {"config": config, "arrays": {key: np.array(value) for key, value in arrays.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(self.from_state(state["config"], state["arrays"]).__dict__)
        self.rule = Members(self)


delattr(
    EnsembleModel, "classes"
)  # the default of the constructor's argument; without it the property would be the default


def _as_rows(x: Any) -> Any:
    """One row as a table of one."""
    if hasattr(x, "tocsr"):
        return x
    try:
        row = as_reals(np.asarray(x), "x")
    except (TypeError, ValueError):
        raise FeatureError(f"expected a mapping of names to numbers or a row of numbers, got {x!r:.60}") from None
    if row.ndim != 1 and not (row.ndim == 2 and len(row) == 1):
        raise FeatureError(f"expected one row of numbers, got shape {row.shape}")
    return np.atleast_2d(row)


def _between(c: Array | None, start: int, stop: int) -> Array | None:
    return None if c is None else c[start:stop]
