"""`StructuredLearner`: answers with parts (label sequences, trees, …), learned by any rule through a decoder."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from . import decoders, files, store
from .batches import Batch, is_mappings, to_row
from .core import Array, Average, Readout, Rule
from .errors import InputError, LabelError, NumericalError, ParameterError
from .estimator import LinearEstimator
from .model import LinearModel

__all__ = ["StructuredLearner", "WeightView"]

TRANSFORMS: dict[str, decoders.Transform] = {"sqrt": math.sqrt, "identity": decoders.identity}
SELECTIONS = ("max_loss", "prediction")

# A rival that scores below the truth by more than rounding could: the decoder did not find the best answer.
TOLERANCE = 1e-9


class WeightView:
    """The weights of a model by feature name, as a decoder reads them; a name never learned weighs 0.

    Under readout="average" these are the averaged weights, or with `last` the current ones.
    """

    def __init__(self, model: LinearModel, *, last: bool = False) -> None:
        self._model = model
        # Known limit: the average readout answers for averages only, so the current weights are copied whole.
        copied = last and isinstance(model.readout, Average)
        self._table: Array | None = model.weights(last=True)[0][0] if copied else None

    def many(self, names: list[str]) -> Array:
        """The weights of many names in one call."""
        at = self._model.find(names)
        known = at >= 0
        out = np.zeros(len(at))
        out[known] = self._model.weights_at(at[known]) if self._table is None else self._table[at[known]]
        return out

    def get(self, name: str | int, default: float = 0.0) -> float:
        [at] = self._model.find([name])
        if at < 0:
            return default
        return float(self._model.weights_at(np.array([at]))[0] if self._table is None else self._table[at])

    def __getitem__(self, name: str | int) -> float:
        return self.get(name)

    def dot(self, features: Mapping[Any, float]) -> float:
        """⟨w, features⟩."""
        return math.fsum((self.many(list(features)) * list(features.values())).tolist())


class StructuredLearner(LinearEstimator):
    """Learns to answer with what a decoder can find: Φ(x, y) should score above Φ(x, r) for every other answer r.

    Each round takes one rival r and learns Δ = Φ(x, y) − Φ(x, r): ⟨w, Δ⟩ should reach √cost(y, r)
    (Crammer et al. 2006, §9 and §10). Costs, features and the search belong to the decoder; see `onepass.decoders`.

    Parameters
    ----------
    rule : a rule's name or a `Rule` that is defined for structured answers.
    decoder : `decoders.Sequence(labels)`, `decoders.Multiclass(labels)` or an object of yours. None makes this a
        classifier of rows and mappings, over the labels that it is shown.
    selection : the rival is the answer that violates most ("max_loss", which the decoder must support), or the
        predicted one ("prediction").
    cost_transform : "sqrt" or "identity": what of the cost the margin should reach.
    readout : which weights predict: "last" or "average". Rivals are always chosen by the last ones.
    hash_bits : None gives every feature name its own weight; b hashes names into 2^b weights.
    passes : how often `fit` goes through its data.

    `n_decoder_suboptimal_` counts the rounds in which the decoder returned an answer that scores below y.
    """

    _labels: tuple[Any, ...] = ()  # without a decoder: the labels shown so far
    _own: decoders.Multiclass | None = None
    _suboptimal = 0

    def __init__(
        self,
        rule: str | Rule = "pa1",
        decoder: Any = None,
        *,
        selection: str = "max_loss",
        cost_transform: str = "sqrt",
        readout: str | Readout = "last",
        hash_bits: int | None = None,
        passes: int = 1,
    ) -> None:
        self.rule = rule
        self.decoder = decoder
        self.selection = selection
        self.cost_transform = cost_transform
        self.readout = readout
        self.hash_bits = hash_bits
        self.passes = passes

    # -- one example -----------------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        """Learn one example: whatever x and y the decoder reads."""
        model = self._model or self._new_model()
        self._round(model, self._input(x), y, importance)
        self._model = model

    def predict_one(self, x: Any) -> Any:
        """The decoder's best answer; changes nothing. Without a decoder, None before any label is known."""
        return self._decoder().decode(WeightView(self._model or self._new_model()), self._input(x))

    def _round(self, model: LinearModel, x: Any, y: Any, importance: float) -> None:
        """One round, or an exception that leaves everything as it was."""
        decoder = self._knowing(y)
        w = WeightView(model, last=True)
        truth = decoder.features(x, y)
        model.check_one(truth)
        rival = self._rival(decoder, w, x, y)
        equal = getattr(decoder, "equal", None) or (lambda a, b: a == b)
        phi: Mapping[Any, float] = {}
        target, suboptimal = 0.0, False
        if not equal(y, rival):
            target = TRANSFORMS[self.cost_transform](_cost(decoder, y, rival))
            phi = decoders.difference(truth, decoder.features(x, rival))
            m = w.dot(phi)
            # The rival's score, with its cost where that was searched for, is at least that of y.
            excess = m - (target if self.selection == "max_loss" else 0.0)
            suboptimal = excess > TOLERANCE * (1.0 + abs(m) + abs(target))
        model.learn_direction(phi, target, importance)
        self._suboptimal += suboptimal
        if self.decoder is None:
            self._own, self._labels = decoder, decoder.labels

    def _rival(self, decoder: Any, w: WeightView, x: Any, y: Any) -> Any:
        if self.selection == "prediction":
            return decoder.decode(w, x)
        if self.cost_transform == "sqrt":
            return decoder.loss_augmented(w, x, y)
        return decoder.loss_augmented(w, x, y, TRANSFORMS[self.cost_transform])

    # -- many examples ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh: X a list of inputs and y a list of answers; without a decoder, a table and its labels."""
        inputs, answers, importance = self._examples(X, y, sample_weight, reset=True)
        if isinstance(self.passes, bool) or not isinstance(self.passes, (int, np.integer)) or self.passes < 1:
            raise ParameterError(f"passes={self.passes!r}: expected a whole number >= 1")
        before = self._everything()
        self._model = self._new_model()
        self._suboptimal = 0
        self._declare(np.unique(np.asarray(answers)) if self.decoder is None else None)
        try:
            for _ in range(self.passes):
                self._learn(inputs, answers, importance)
        except NumericalError:
            raise
        except Exception:
            self.__dict__.update(before)
            raise
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` example by example. `classes` is for learners without a decoder."""
        if classes is not None and self.decoder is not None:
            raise ParameterError("classes= goes with decoder=None; a decoder knows its own labels")
        inputs, answers, importance = self._examples(X, y, sample_weight, reset=self._model is None)
        before = self._everything()
        if self._model is None:
            self._model = self._new_model()
            if classes is not None:
                self._declare(np.unique(np.asarray(classes)))
        elif classes is not None and set(np.asarray(classes).tolist()) != set(self._labels):
            raise LabelError(f"classes={classes!r} differ from the labels so far, {list(self._labels)!r}")
        try:
            self._learn(inputs, answers, importance)
        except NumericalError:
            raise
        except Exception:
            self.__dict__.update(before)
            raise
        return self

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn examples in order; malformed input refuses the whole call."""
        self.partial_fit(X, y, sample_weight=importance)

    def predict(self, X: Any) -> Any:
        """The decoder's answers, as a list; without a decoder, an array of labels."""
        model = self._fitted()
        decoder, w = self._decoder(), WeightView(model)
        answers = [decoder.decode(w, x) for x in self._inputs(X, reset=False)]
        return np.array(answers, dtype=self.classes_.dtype) if self.decoder is None else answers

    def predict_many(self, X: Any) -> Any:
        return self.predict(X) if self._started() else [self.predict_one(x) for x in X]

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None) -> list[Any]:
        """For each example the prediction made just before it is learned."""
        inputs, answers, weights = self._examples(X, y, importance, reset=self._model is None)
        before = self._everything()
        self._model = self._model or self._new_model()
        try:
            return self._learn(inputs, answers, weights, predict=True)
        except NumericalError:
            raise
        except Exception:
            self.__dict__.update(before)
            raise

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of examples answered exactly right (whole answers: one wrong label spoils a sequence)."""
        answers = self._answers(y, len(predicted := self.predict(X)))
        equal = getattr(self._decoder(), "equal", None) or (lambda a, b: a == b)
        right = [bool(equal(truth, answer)) for truth, answer in zip(answers, predicted, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def mean_cost(self, X: Any, y: Any) -> float:
        """The decoder's cost of the predictions, averaged over examples (for `Sequence`, wrong labels in each)."""
        answers = self._answers(y, len(predicted := self.predict(X)))
        cost = self._decoder().cost
        return float(np.mean([cost(truth, answer) for truth, answer in zip(answers, predicted, strict=True)]))

    def _learn(self, inputs: list[Any], answers: list[Any], importance: list[float], predict: bool = False) -> list[Any]:
        """The rounds in order. A numerical overflow ends it; anything malformed is the caller's to undo."""
        model = self._model
        assert model is not None
        predictions = []
        for row, (x, y, c) in enumerate(zip(inputs, answers, importance, strict=True)):
            try:
                if predict:
                    predictions.append(self._decoder().decode(WeightView(model), x))
                self._round(model, x, y, c)
            except NumericalError as error:
                for later in range(row + 1, len(inputs)):  # what is malformed refuses the call, wherever it is
                    self._check(model, inputs[later], answers[later], later)
                raise NumericalError(str(error).replace("row 0:", f"row {row}:", 1), row) from None
            except InputError as error:
                raise type(error)(f"example {row}: {error}. Nothing of this call was learned") from None
        return predictions

    def _check(self, model: LinearModel, x: Any, y: Any, row: int) -> None:
        try:
            model.check_one(self._knowing(y).features(x, y))
        except InputError as error:
            raise type(error)(f"example {row}: {error}. Nothing of this call was learned") from None

    def _everything(self) -> dict[str, Any]:
        """What an undone call puts back. The model is copied: rounds change it in place."""
        copy = None
        if self._model is not None:
            copy = LinearModel.__new__(LinearModel)
            copy.__setstate__(self._model.__getstate__())
        kept = {"_labels": self._labels, "_own": self._own, "_suboptimal": self._suboptimal}
        return {**self.__dict__, **kept, "_model": copy}

    # -- inputs ----------------------------------------------------------------------------------------------------

    def _examples(self, X: Any, y: Any, weight: Any, *, reset: bool) -> tuple[list[Any], list[Any], list[float]]:
        inputs = self._inputs(X, reset=reset)
        answers = self._answers(y, len(inputs))
        table = Batch(len(inputs), 1)
        weights = self._weights_of(weight, table)
        c = np.ones(len(inputs)) if weights is None else weights
        bad = np.flatnonzero(~(np.isfinite(c) & (c >= 0)))
        if len(bad):
            raise InputError(f"importance must be finite and >= 0, but entry {bad[0]} is {c[bad[0]]}")
        return inputs, answers, c.tolist()

    def _inputs(self, X: Any, *, reset: bool) -> list[Any]:
        if self.decoder is not None:
            if isinstance(X, (str, bytes, Mapping)) or not hasattr(X, "__len__"):
                raise InputError(f"X must be a list of inputs, got {X!r:.80} ({type(X).__name__})")
            return list(X)
        if is_mappings(X):
            return list(X)
        batch = self._validated(X, reset=reset)
        names = self._column_names(batch.columns)
        rows: list[Any] = []
        for i in range(batch.rows):
            if batch.dense is not None:
                values, at = batch.dense[i], np.flatnonzero(batch.dense[i])
            else:
                assert batch.csr is not None
                data, indices, starts = batch.csr
                values, at = np.zeros(batch.columns), indices[starts[i] : starts[i + 1]]
                np.add.at(values, at, data[starts[i] : starts[i + 1]])
            bad = np.flatnonzero(~np.isfinite(values[at]))
            if len(bad):
                value = values[at[bad[0]]]
                shown = "NaN" if np.isnan(value) else ("infinity" if value > 0 else "-infinity")
                raise InputError(
                    f"X must hold finite numbers, but X[{i}, {at[bad[0]]}] is {shown}; drop or impute the row. "
                    "Nothing of this call was learned"
                )
            rows.append({names[j]: float(values[j]) for j in at})
        return rows

    def _column_names(self, columns: int) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [str(j) for j in range(columns)] if names is None else [str(name) for name in names]

    def _input(self, x: Any) -> Any:
        """One x; without a decoder, a row of a named table as the mapping that it is."""
        if self.decoder is not None or isinstance(x, Mapping) or not hasattr(self, "feature_names_in_"):
            return x
        row = to_row(x)
        return dict(zip(self._column_names(len(row)), row.tolist(), strict=True))

    def _answers(self, y: Any, rows: int) -> list[Any]:
        if self.decoder is not None:
            if isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__"):
                raise LabelError(f"y must be a list of answers, got {y!r:.80} ({type(y).__name__})")
            answers = list(y)
        else:
            try:
                labels = column_or_1d(y, warn=True)
                check_classification_targets(labels)
            except ValueError as error:
                raise LabelError(str(error)) from None
            answers = labels.tolist()
        if len(answers) != rows:
            raise InputError(f"X has {rows} inputs, y has {len(answers)} answers")
        return answers

    # -- the decoder -----------------------------------------------------------------------------------------------

    def _decoder(self) -> Any:
        if self.decoder is not None:
            return self.decoder
        if self._own is None:
            self._own = decoders.Multiclass(self._labels)
        return self._own

    def _knowing(self, y: Hashable) -> Any:
        """The decoder; without one, blocks that have room for label y."""
        decoder = self._decoder()
        if self.decoder is not None:
            return decoder
        label = y.item() if isinstance(y, np.generic) else y
        if label is None or (isinstance(label, float) and not math.isfinite(label)):
            raise LabelError(f"a label must not be {label!r}")
        try:
            return decoder if label in self._labels else decoders.Multiclass((*self._labels, label))
        except ParameterError as error:
            raise LabelError(str(error)) from None

    def _declare(self, labels: NDArray[Any] | None) -> None:
        self._labels, self._own = (), None
        if labels is not None:
            self._class_dtype = labels.dtype
            self._labels = tuple(labels.tolist())

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        for name, value, options in (
            ("selection", self.selection, SELECTIONS),
            ("cost_transform", self.cost_transform, tuple(TRANSFORMS)),
        ):
            if value not in options:
                expected = " or ".join(repr(option) for option in options)
                raise ParameterError(f"{name}={value!r}: expected {expected}")
        if self.decoder is not None:
            self._check_decoder(self.decoder)
        return LinearModel(
            self.rule, "structured", fit_intercept=False, readout=self.readout, hash_bits=self.hash_bits
        )

    def _check_decoder(self, decoder: Any) -> None:
        missing = [name for name in ("decode", "features", "cost") if not callable(getattr(decoder, name, None))]
        if missing or isinstance(decoder, type):
            raise ParameterError(
                f"decoder={decoder!r}: expected an object with decode, features and cost, as onepass.decoders.Decoder says"
            )
        if self.selection == "prediction":
            return
        search = getattr(decoder, "loss_augmented", None)
        if not callable(search):
            raise ParameterError(
                f"decoder={decoder!r} has no loss_augmented, which selection='max_loss' needs; use selection='prediction'"
            )
        if self.cost_transform != "sqrt":
            try:
                inspect.signature(search).bind(None, None, None, None)
            except TypeError:
                raise ParameterError(
                    f"cost_transform={self.cost_transform!r} needs a decoder with loss_augmented(w, x, y, transform)"
                ) from None
            except ValueError:  # written in C, without a signature: it will say so itself
                pass

    # -- what was learned ------------------------------------------------------------------------------------------

    @property
    def n_decoder_suboptimal_(self) -> int:
        """Rounds in which the decoder's answer scored below y, so that it was not the best one."""
        self._learned()
        return self._suboptimal

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, without a decoder or with one that lists them."""
        self._learned()
        labels = self._labels if self.decoder is None else getattr(self.decoder, "labels", None)
        if labels is None:
            raise AttributeError(f"{type(self.decoder).__name__} lists no labels")
        dtype = getattr(self, "_class_dtype", None) if self.decoder is None else None
        if dtype is not None and set(np.array(labels, dtype=dtype).tolist()) == set(labels):
            return np.array(labels, dtype=dtype)
        if len({type(label) for label in labels}) == 1 and isinstance(labels[0], (str, bool, int, float)):
            return np.array(labels)
        out = np.empty(len(labels), dtype=object)
        out[:] = labels
        return out

    def explain_one(self, x: Any, label: Any = None) -> dict[Any, float]:
        """Each feature's part in the score of an answer (by default the predicted one), largest first."""
        model = self._fitted()
        x = self._input(x)
        w = WeightView(model)
        features = self._decoder().features(x, self._decoder().decode(w, x) if label is None else label)
        parts = {name: w[name] * value for name, value in features.items()}
        return dict(sorted(parts.items(), key=lambda item: -abs(item[1])))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.decoder is None:
            tags.estimator_type = "classifier"
            # As for LinearClassifier: one pass over scikit-learn's 50 rows is too little for its class-weight check.
            tags.classifier_tags = ClassifierTags(poor_score=True)
        return tags

    # -- files -----------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str], decoder: Any = None) -> Self:
        """Open a file written by `save`. A decoder of your own, which no file can hold, is given again here."""
        model = LinearModel.load(path)
        given = {} if decoder is None else {"decoder": decoder}
        learner = files.estimator_of(model, **given) if model.task == "structured" else None
        if not isinstance(learner, cls):
            raise ParameterError(f"{os.fspath(path)} holds no {cls.__name__}; open it with onepass.load")
        return learner

    def _config(self) -> dict[str, Any]:
        return {**super()._config(), "decoder": decoders.to_config(self.decoder)}

    def _attributes(self) -> dict[str, Any]:
        out = {**super()._attributes(), "suboptimal": self._suboptimal, "labels": store.encode_values(self._labels)}
        if hasattr(self, "_class_dtype"):
            out["class_dtype"] = self._class_dtype.str
        return out

    def _adopt(self, model: LinearModel, attributes: dict[str, Any]) -> Self:
        self._suboptimal = attributes.get("suboptimal", 0)
        self._labels = tuple(store.decode_values(attributes.get("labels", [])))
        if "class_dtype" in attributes:
            self._class_dtype = np.dtype(attributes["class_dtype"])
        return super()._adopt(model, attributes)


def _cost(decoder: Any, y: Any, rival: Any) -> float:
    cost = float(decoder.cost(y, rival))
    if not (math.isfinite(cost) and cost >= 0):
        raise InputError(f"{type(decoder).__name__}.cost must be a finite number >= 0, got {cost!r}")
    return cost
