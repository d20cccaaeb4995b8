"""`Pipeline`: transforms and a model as one learner: `StandardScaler() | Interactions(["ab"]) | LinearClassifier()`.

Learning an example (x, y): each transform learns x, transforms it and passes it on; the model learns the result.
So the model learns x as the transforms see it after learning it. Predicting changes nothing: x goes through the
unchanged transforms. (River's pipelines learn in the same order.) `partial_fit` and `learn_many` are that loop bit for
bit: row i of a chunk is scaled by the statistics of the rows up to i, not of the chunk. `fit` is scikit-learn's: each
transform learns all rows before it transforms any.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import _BaseComposition, available_if

from ..errors import InputError, ParameterError, RowError, checked_parts, rows_from
from ..estimators.tables import TableEstimator
from ..learner import FORMS, VERBS, LearnerTraits, State, traits_of
from ..models.base import LearnerBase, joined, locked, part, restore
from ..persistence import registry
from ..rows.batches import Batch
from ..rows.labels import alike
from .base import Rows, as_matrix, length_of, part_of

__all__ = ["Pipeline"]


def _final_has(name: str) -> Any:
    def check(self: Pipeline) -> bool:
        getattr(self._final, name)  # raises the model's own AttributeError
        return True

    return available_if(check)


def _ends_in_transform(self: Pipeline) -> bool:
    if self._model is not None:
        raise AttributeError("this Pipeline ends in a model; it predicts, and does not transform")
    return True


class Pipeline(LearnerBase, _BaseComposition):  # type: ignore[misc]
    """A chain of transforms, and at its end a model (or one more transform).

    Parameters
    ----------
    steps : pairs (name, step), as in scikit-learn; `a | b` names them after their classes.
    """

    _known: tuple[list[Any], list[Any], Any] | None = None  # steps that were validated: their transforms, their model

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps

    @classmethod
    def of(cls, *parts: Any) -> Self:
        """A pipeline of these steps; a Pipeline among them contributes its steps."""
        flat = [
            step for part in parts for step in ([s for _, s in part.steps] if isinstance(part, Pipeline) else [part])
        ]
        counts: dict[str, int] = {}
        names = []
        for step in flat:
            name = type(step).__name__.lower()
            counts[name] = counts.get(name, 0) + 1
            names.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
        pipeline = cls(list(zip(names, flat, strict=True)))
        pipeline._check()
        return pipeline

    def __or__(self, other: Any) -> Any:
        return Pipeline.of(self, other)

    def __ror__(self, other: Any) -> Any:
        return Pipeline.of(other, self)

    def __getitem__(self, name: str) -> Any:
        """A step by its name."""
        return dict(self.steps)[name]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self._get_params("steps", deep=deep))

    def set_params(self, **params: Any) -> Self:
        self._set_params("steps", **params)
        return self

    # -- the steps -------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        try:
            names, steps = zip(*self.steps, strict=True)
        except (TypeError, ValueError):
            raise ParameterError(f"steps={self.steps!r:.80}: expected a list of pairs (name, step)") from None
        self._validate_names(names)
        for number, step in enumerate(steps):
            last = number == len(steps) - 1
            if is_transform(step) or (last and hasattr(step, "learn_one")) or (last and _fits(step)):
                continue
            what = "a transform or a model" if last else "a transform of onepass.transforms"
            advice = "scikit-learn's own go into scikit-learn's Pipeline, which takes ours too"
            raise ParameterError(f"step {number} is {step!r:.80}; expected {what}: {advice}")

    @property
    def _transforms(self) -> list[Any]:
        known, steps = self._known, self.steps
        if (
            known is None
            or len(known[0]) != len(steps)
            or any(a is not b for a, (_, b) in zip(known[0], steps, strict=True))
        ):
            self._check()
            parts = [step for _, step in steps]
            transforms = [step for step in parts if is_transform(step)]
            self._known = known = parts, transforms, None if is_transform(parts[-1]) else parts[-1]
        return known[1]

    @property
    def _model(self) -> Any:
        """The model at the end; None where there is none."""
        known, final = self._known, self.steps[-1][1]
        if known is not None and known[0][-1] is final:
            return known[2]
        return None if is_transform(final) else final

    @property
    def _final(self) -> Any:
        if self._model is None:
            raise AttributeError("this Pipeline has no model at its end: add one with | model")
        return self._model

    # -- one at a time ---------------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any = None, importance: float = 1.0) -> None:
        """Learn one example: the transforms learn x, then the model learns x transformed."""
        transforms = self._transforms
        if not isinstance(x, Mapping) or any(step._gives_rows for step in transforms):
            self._learn(self._row(x), [y], None if importance == 1.0 else [importance])
            return
        learned = []
        for step in transforms:
            state = step._current()
            x, commit = step._one(state, x, True)
            learned.append((step, state, commit))
        if self._model is not None:
            extra = () if importance == 1.0 else (importance,)
            self._model.learn_one(x, y, *extra)
        for step, state, commit in learned:  # nothing can fail from here on
            commit()
            step._state = state

    def transform_one(self, x: Any) -> Any:
        """x transformed; changes nothing."""
        for step in self._transforms:
            x = step.transform_one(x)
        return x

    def predict_one(self, x: Any) -> Any:
        """The prediction for one example; changes nothing."""
        return self._predict_with(x, "predict_one", "predict_many")

    @_final_has("predict_proba_one")  # type: ignore[untyped-decorator]
    @locked
    def predict_proba_one(self, x: Any) -> Any:
        """label → probability, where the model has them; changes nothing."""
        return self._predict_with(x, "predict_proba_one", None)

    def _predict_with(self, x: Any, one: str, many: str | None) -> Any:
        if isinstance(x, Mapping) and not any(step._gives_rows for step in self._transforms):
            return getattr(self._final, one)(self.transform_one(x))
        rows = self._transformed(self._row(x))
        if isinstance(rows, list):
            return getattr(self._final, one)(rows[0])
        if rows.dense is not None:
            return getattr(self._final, one)(np.asarray(rows.dense[0], dtype=np.float64))
        answer = getattr(self._final, one)(rows.single()) if many is None else getattr(self._final, many)(rows)[0]
        return answer.item() if isinstance(answer, np.generic) else answer

    def _row(self, x: Any) -> Rows:
        return [x] if isinstance(x, Mapping) else self._transforms[0]._single(x)

    # -- many ------------------------------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any = None, importance: Any = None) -> None:
        """Learn rows in order, bit for bit the loop of `learn_one`: arrays, frames, CSR, stream chunks, mappings."""
        self._learn(self._transforms[0]._read(X), y, importance)

    def predict_many(self, X: Any) -> Any:
        return self._final.predict_many(self._transformed(self._transforms[0]._read(X)))

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None) -> Any:
        """For each row the prediction made just before that row is learned: a prequential run in one call."""
        rows = self._transforms[0]._read(X)
        try:
            states, before, after = self._advance(rows, before=True)
        except RowError as error:
            if error.row > 0:
                part = None if importance is None else importance[: error.row]
                self._learn(part_of(rows, 0, error.row), y[: error.row], part)
            raise
        try:
            predictions = self._predict_and_learn(before, after, y, importance)
        except RowError as error:
            if error.row:
                self._commit(self._advance(part_of(rows, 0, error.row))[0])
            raise
        self._commit(states)
        return predictions

    def _predict_and_learn(self, before: Rows, after: Rows, y: Any, importance: Any) -> Any:
        """For each row, the model predicts it as transformed before learning, and learns it as transformed after."""
        model = self._final
        if hasattr(model, "predict_then_learn") and not any(step._changes for step in self._transforms):
            return model.predict_then_learn(after, y, importance)
        y = y.tolist() if isinstance(y, np.ndarray) else list(y)
        weights = [1.0] * len(y) if importance is None else np.broadcast_to(importance, len(y)).tolist()
        if length_of(after) != len(y):
            raise InputError(f"X has {length_of(after)} rows, y has {len(y)}")
        predictions = []
        with _restored(model):
            for row, (label, weight) in enumerate(zip(y, weights, strict=True)):
                with rows_from(row):
                    predictions.append(_single_answer(model, before, row))
                    _learn_single(model, after, row, label, weight)
        return np.array(predictions) if alike(predictions) else predictions

    def transform_many(self, X: Any) -> Any:
        return self._transformed(self._transforms[0]._read(X))

    def _transformed(self, rows: Rows) -> Rows:
        for step in self._transforms:
            rows = step._apply(step._current(), rows)
        return rows

    def _advance(self, rows: Rows, *, before: bool = False) -> tuple[list[Any], Rows, Rows]:
        """The states after the rows, and the rows transformed just before and just after each is learned."""
        states = []
        old = rows
        for step in self._transforms:
            state, earlier, later = step._advance(rows, before=before, after=True)
            states.append(state)
            if before:
                # A later step gets the row as the earlier step transformed it before learning it.
                old = earlier if old is rows else step._apply_along(old, rows)
            assert later is not None
            rows = later
        return states, old, rows

    def _commit(self, states: list[Any]) -> None:
        for step, state in zip(self._transforms, states, strict=True):
            step._state = state

    def _learn(self, rows: Rows, y: Any, importance: Any, teach: Any = None) -> None:
        """All or nothing; where a row overflows, the rows before it stay learned."""
        try:
            states, _, out = self._advance(rows)
        except RowError as error:
            if error.row > 0:
                part = None if importance is None else importance[: error.row]
                self._learn(part_of(rows, 0, error.row), None if y is None else y[: error.row], part, teach)
            raise
        try:
            if self._model is not None:
                (teach or _teach)(self._model, out, y, importance)
        except RowError as error:
            if error.row:
                self._commit(self._advance(part_of(rows, 0, error.row))[0])
            raise
        self._commit(states)

    # -- scikit-learn ----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a table from scratch: each transform learns all rows, then the model learns them transformed."""
        with self._all_or_nothing():
            for step in self._transforms:
                X = step.fit(X).transform(X)
            if self._model is not None:
                extra = {} if sample_weight is None else {"sample_weight": sample_weight}
                self._model.fit(X, y, **extra)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. A classifier's first call must declare the classes."""
        with self._all_or_nothing():
            first = self._transforms[0]
            rows = first._validated(X, reset=not hasattr(first, "n_features_in_"))

            def teach(model: Any, out: Rows, y: Any, weight: Any) -> None:
                if isinstance(out, Batch) and out.table is None and out.names is None:
                    extra = {"classes": classes, "sample_weight": weight}
                    model.partial_fit(as_matrix(out), y, **{k: v for k, v in extra.items() if v is not None})
                    return
                if hasattr(model, "_declare_classes"):
                    model._declare_classes(classes)
                _teach(model, out, y, weight)

            self._learn(rows, y, sample_weight, teach)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self._final.predict(self._table(X)))

    @_final_has("predict_proba")  # type: ignore[untyped-decorator]
    @locked
    def predict_proba(self, X: Any) -> Any:
        return self._final.predict_proba(self._table(X))

    @_final_has("decision_function")  # type: ignore[untyped-decorator]
    @locked
    def decision_function(self, X: Any) -> Any:
        return self._final.decision_function(self._table(X))

    @_final_has("score")  # type: ignore[untyped-decorator]
    @locked
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(self._final.score(self._table(X), y, sample_weight))

    @available_if(_ends_in_transform)  # type: ignore[untyped-decorator]
    @locked
    def transform(self, X: Any) -> Any:
        """The table transformed."""
        for step in self._transforms:
            X = step.transform(X)
        return X

    @available_if(_ends_in_transform)  # type: ignore[untyped-decorator]
    @locked
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X, y).transform(X)

    def _table(self, X: Any) -> Any:
        """X transformed, in the form that the model takes."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This Pipeline instance is not fitted yet: call fit, partial_fit or learn_one first")
        if hasattr(self._model, "n_features_in_"):  # it was fitted on a table
            for step in self._transforms:
                X = step.transform(X)
            return X
        first = self._transforms[0]
        return self._transformed(
            first._validated(X, reset=False) if hasattr(first, "n_features_in_") else first._read(X)
        )

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for _, step in self.steps:
                stack.enter_context(TableEstimator._all_or_nothing(step))
            yield

    @property
    def classes_(self) -> NDArray[Any]:
        return np.asarray(self._final.classes_)

    @property
    def n_features_in_(self) -> int:
        return int(self.steps[0][1].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        return np.asarray(self.steps[0][1].feature_names_in_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns that the transforms make."""
        names = input_features
        for step in self._transforms:
            names = step.get_feature_names_out(names)
        return np.asarray(names)

    def __sklearn_is_fitted__(self) -> bool:
        from sklearn.utils.validation import _is_fitted

        return bool(_is_fitted(self.steps[-1][1]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = copy.copy(get_tags(self.steps[0][1]).input_tags)
        last = get_tags(self.steps[-1][1])
        tags.estimator_type, tags.target_tags = last.estimator_type, last.target_tags
        tags.classifier_tags, tags.regressor_tags = last.classifier_tags, last.regressor_tags
        tags.transformer_tags = last.transformer_tags
        return tags

    # -- the contract of a learner ---------------------------------------------------------------------------------

    @property
    def traits(self) -> LearnerTraits:
        final = self.steps[-1][1]
        known = traits_of(final) or LearnerTraits("class")
        offered = {verb for verb in VERBS if hasattr(Pipeline, verb)}
        verbs = (known.verbs & offered) | {"predict_then_learn"} if self._model is not None else {"transform_one"}
        chain = [traits for traits in map(traits_of, self._transforms) if traits is not None]
        forms = tuple(form for form in FORMS if all(form in traits.forms for traits in chain))
        needs = tuple(name for traits in chain for name in traits.needs)
        values = chain[0].values if chain else known.values
        return dataclasses.replace(
            known,
            by_rule=False,
            linear=False,
            ordered=False,
            verbs=frozenset(verbs),
            forms=forms,
            needs=needs,
            values=values,
        )

    @property
    def _risky(self) -> bool:
        return any(step._multiplies for step in self._transforms) or bool(getattr(self._model, "_risky", False))

    @property
    def nbytes(self) -> int:
        """Bytes of what all steps have learned."""
        return sum(int(step.nbytes) for _, step in self.steps)

    def state(self) -> State:
        """The state of every step; `from_state` resumes bit for bit."""
        states = [registry.nested(step) for _, step in self.steps]
        names = [name for name, _ in self.steps]
        steps = [{"name": name, **config} for name, (config, _) in zip(names, states, strict=True)]
        return {"steps": steps}, joined({f"{number}.": arrays for number, (_, arrays) in enumerate(states)})

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The pipeline that `state` described."""
        with checked_parts("the pipeline"):
            steps = [
                (step["name"], registry.restored(step, part(arrays, f"{number}.")))
                for number, step in enumerate(config["steps"])
            ]
            pipeline = cls(steps)
            pipeline._check()
        return pipeline


def is_transform(step: Any) -> bool:
    """Is this a transform of ours? A pipeline is not one: `|` joins its steps."""
    traits = traits_of(step)
    return traits is not None and "transform_one" in traits.verbs and not isinstance(step, Pipeline)


def _fits(step: Any) -> bool:
    return hasattr(step, "fit") and hasattr(step, "predict")


def _teach(model: Any, rows: Rows, y: Any, importance: Any) -> None:
    """Let a model learn rows: our models take them directly, River's one by one, scikit-learn's as tables."""
    if hasattr(model, "learn_many") and not hasattr(model, "_memory_usage"):  # River's wants data frames
        model.learn_many(rows, y, importance)
    elif isinstance(rows, list) and hasattr(model, "learn_one"):
        for row, x in enumerate(rows):
            model.learn_one(x, y[row])
    elif hasattr(model, "partial_fit") and isinstance(rows, Batch):
        extra = {} if importance is None else {"sample_weight": importance}
        model.partial_fit(as_matrix(rows), y, **extra)
    else:
        raise ParameterError(f"{type(model).__name__} cannot learn these rows one by one: it has no learn_many")


def _single_answer(model: Any, rows: Rows, row: int) -> Any:
    if isinstance(rows, list):
        return model.predict_one(rows[row])
    if rows.dense is not None and rows.names is None:
        return model.predict_one(rows.dense[row])
    answer = model.predict_many(rows.part(row, row + 1))[0]
    return answer.item() if isinstance(answer, np.generic) else answer


def _learn_single(model: Any, rows: Rows, row: int, y: Any, importance: float) -> None:
    extra = () if importance == 1.0 else (importance,)
    if isinstance(rows, list):
        model.learn_one(rows[row], y, *extra)
    elif rows.dense is not None and rows.names is None:
        model.learn_one(rows.dense[row], y, *extra)
    else:
        model.learn_many(rows.part(row, row + 1), [y], [importance])


@contextlib.contextmanager
def _restored(model: Any) -> Iterator[None]:
    """A refused call leaves the model unchanged; where a row overflows, the rows before it stay learned."""
    before = copy.deepcopy(model.__dict__)
    try:
        yield
    except RowError:
        raise
    except BaseException:
        restore(model, before)
        raise
