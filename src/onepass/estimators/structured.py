"""`StructuredLearner`: answers with parts (label sequences, trees, …), learned by any rule through a decoder."""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, LabelError, ParameterError, RowError
from ..learner import LearnerTraits
from ..models.base import read_count
from ..models.linear import LinearModel
from ..models.options import FeatureLimitOptions, ReadoutOptions, RuleOptions, shared_options
from ..models.parameter_values import decode_all, encode_all, template
from ..persistence import store
from ..rows.batches import Batch, as_batch, as_importance, is_mappings, to_row
from ..rows.labels import as_labels, label_array, not_hashable, plain, require_label, sorted_classes
from ..scheme.parameters import check_fields
from . import decoders
from .fit_options import RepeatOptions
from .linear import LinearWeights
from .tables import class_array, read_labels, read_passes
from .weight_view import WeightView

__all__ = ["StructuredLearner"]

TRANSFORMS: dict[str, decoders.Transform] = {"sqrt": math.sqrt, "identity": decoders.identity}
SELECTIONS = ("max_loss", "prediction")

# Scores are summed in different orders; a smaller relative difference counts as equal.
ROUNDING = 1e-9


@dataclasses.dataclass(kw_only=True, repr=False, eq=False)
class StructuredLearner(LinearWeights, RepeatOptions, FeatureLimitOptions, ReadoutOptions, RuleOptions):
    """Learns to answer with what a decoder can find: Φ(x, y) should score above Φ(x, r) for every other answer r.

    Each round takes one rival r and learns Δ = Φ(x, y) − Φ(x, r): ⟨w, Δ⟩ should reach √cost(y, r)
    (Crammer et al. 2006, §9 and §10). Costs, features and the search belong to the decoder; see
    `onepass.estimators.decoders`.

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
    max_features : how many features that are not hashed there may be; more are an error.
    passes : how often `fit` goes through its data.

    `n_decoder_suboptimal_` counts the rounds in which the decoder returned an answer that scores below y.
    """

    decoder: Any = dataclasses.field(default=None, kw_only=False)
    selection: str = dataclasses.field(default="max_loss", metadata={"options": SELECTIONS})
    cost_transform: str = dataclasses.field(default="sqrt", metadata={"options": tuple(TRANSFORMS)})

    # Without a decoder: blocks for the labels so far, and whether they were declared.
    _blocks = decoders.Multiclass()
    _declared = False
    _suboptimal = 0

    @property
    def traits(self) -> LearnerTraits:
        answers = "class" if self.decoder is None else "structure"
        verbs = frozenset({"predict_then_learn", "explain_one"})
        return LearnerTraits(answers, verbs, linear=True)

    # -- one example -----------------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        """Learn one example: whatever x and y the decoder reads."""
        model = self._model or self._new_model()
        if type(importance) is not float:
            importance = as_importance([importance], 1)[0]  # type: ignore[index]
        self._round(model, self._input(x), y, importance)
        self._model = model

    def predict_one(self, x: Any) -> Any:
        """The decoder's best answer; changes nothing. Without a decoder, None before any label is known."""
        return self._decoder().decode(WeightView(self._model or self._new_model()), self._input(x))

    def _round(self, model: LinearModel, x: Any, y: Any, importance: float) -> None:
        """One round, or an exception that leaves everything as it was."""
        decoder = self._knowing([y])
        w = WeightView(model, last=True)
        truth = decoder.features(x, y)
        model.check_one(truth)
        rival = self._rival(decoder, w, x, y)
        phi: Mapping[Any, float] = {}
        target, suboptimal = 0.0, False
        if not _equal(decoder, y, rival):
            target = self._transform()(_cost(decoder, y, rival))
            answer = decoder.features(x, rival)
            phi = decoders.difference(truth, answer)
            # The rival's score, with its cost where that was searched for, should be no less than that of y.
            of_truth, of_rival = w.dot(truth), w.dot(answer)
            missed = of_truth - of_rival - (target if self.selection == "max_loss" else 0.0)
            suboptimal = missed > ROUNDING * (1.0 + abs(of_truth) + abs(of_rival))
        model.learn_direction(phi, target, importance)
        self._suboptimal += suboptimal
        if self.decoder is None:
            self._blocks = decoder

    def _transform(self) -> decoders.Transform:
        if not isinstance(self.cost_transform, str) or self.cost_transform not in TRANSFORMS:
            raise ParameterError(f"cost_transform={self.cost_transform!r}: expected one of {', '.join(TRANSFORMS)}")
        return TRANSFORMS[self.cost_transform]

    def _rival(self, decoder: Any, w: WeightView, x: Any, y: Any) -> Any:
        if self.selection == "prediction":
            return decoder.decode(w, x)
        if self.cost_transform == "sqrt":
            return decoder.loss_augmented(w, x, y)
        return decoder.loss_augmented(w, x, y, self._transform())

    # -- many examples ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh: X a list of inputs and y a list of answers; without a decoder, a table and its labels."""
        passes = read_passes(self.passes)
        model = self._new_model()
        examples = self._examples(model, X, y, sample_weight, reset=True, whole=True)
        if self.decoder is None:
            self._declare(sorted_classes(examples[1]))
        self._model = model
        self._suboptimal = 0
        for _ in range(passes):
            self._learn(model, *examples)
            model.flush()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` example by example.

        Without a decoder, `classes` in the first call are all the labels there will be; without them, labels grow.
        """
        if classes is not None and self.decoder is not None:
            raise ParameterError("classes= goes with decoder=None; a decoder knows its own labels")
        first = self._model is None
        declared = None if classes is None else sorted_classes(classes)
        if not first and declared is not None and set(declared.tolist()) != set(self._blocks.labels):
            raise LabelError(f"classes={classes!r} differ from the labels so far, {list(self._blocks.labels)!r}")
        model = self._model or self._new_model()
        examples = self._examples(model, X, y, sample_weight, reset=first, declared=declared if first else None)
        if first and declared is not None:
            self._declare(declared)
        self._model = model
        self._learn(model, *examples)
        return self

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn examples in order; malformed input refuses the whole call."""
        model = self._model or self._new_model()
        examples = self._examples(model, X, y, importance, reset=self._model is None, by_table=False)
        self._model = model
        self._learn(model, *examples)

    def predict(self, X: Any) -> Any:
        """The decoder's answers, as a list; without a decoder, an array of labels."""
        return self._decoded(self._inputs(X, reset=False))

    def _decoded(self, inputs: list[Any]) -> Any:
        decoder, w = self._decoder(), WeightView(self._fitted())
        answers = [decoder.decode(w, x) for x in inputs]
        if self.decoder is not None:
            return answers
        dtype = self.classes_.dtype
        return as_labels(answers) if dtype.hasobject else np.array(answers, dtype=dtype)

    def predict_many(self, X: Any) -> Any:
        """The answers to inputs in any shape; without a decoder, None before any label is known."""
        if self._started():
            return self._decoded(self._inputs(X, reset=False, by_table=False))
        return [self.predict_one(x) for x in self._inputs(X, reset=False, by_table=False)]

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None) -> list[Any]:
        """For each example the prediction made just before it is learned."""
        model = self._model or self._new_model()
        examples = self._examples(model, X, y, importance, reset=self._model is None, by_table=False)
        self._model = model
        return self._learn(model, *examples, predict=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of examples answered exactly right (whole answers: one wrong label spoils a sequence)."""
        answers = self._answers(y, len(predicted := self.predict(X)))
        decoder = self._decoder()
        right = [_equal(decoder, truth, answer) for truth, answer in zip(answers, predicted, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def mean_cost(self, X: Any, y: Any) -> float:
        """The decoder's cost of the predictions, averaged over examples (for `Sequence`, wrong labels in each)."""
        answers = self._answers(y, len(predicted := self.predict(X)))
        cost = self._decoder().cost
        return float(np.mean([cost(truth, answer) for truth, answer in zip(answers, predicted, strict=True)]))

    def _learn(
        self, model: LinearModel, inputs: list[Any], answers: list[Any], importance: list[float], predict: bool = False
    ) -> list[Any]:
        """Rounds in order, of examples that were checked."""
        predictions = []
        for row, (x, y, c) in enumerate(zip(inputs, answers, importance, strict=True)):
            try:
                if predict:
                    predictions.append(self._decoder().decode(WeightView(model), x))
                self._round(model, x, y, c)
            except RowError as error:
                raise error.at(row) from None
            except Exception as error:  # an error inside the decoder, which no check could find before
                error.add_note(f"in example {row} of this call; the examples before it were learned")
                raise
        return predictions

    # -- inputs ----------------------------------------------------------------------------------------------------

    def _examples(
        self,
        model: LinearModel,
        X: Any,
        y: Any,
        weight: Any,
        *,
        reset: bool,
        whole: bool = False,
        by_table: bool = True,
        declared: NDArray[Any] | None = None,
    ) -> tuple[list[Any], list[Any], list[float]]:
        """Inputs, answers and importances, validated. An error changes nothing."""
        with self._all_or_nothing():
            if reset and self.decoder is None:
                self._blocks, self._declared = decoders.Multiclass(), False
            if declared is not None:
                self._declare(declared)
            inputs = self._inputs(X, reset=reset, by_table=by_table)
            if not inputs:
                raise InputError("X holds no examples; there is nothing to learn")
            answers = self._answers(y, len(inputs), by_table=by_table)
            c = self._weights_of(weight, Batch(len(inputs), 1), whole=whole)
            decoder = self._knowing(answers)
            for row, (x, answer) in enumerate(zip(inputs, answers, strict=True)):
                try:
                    model.check_one(decoder.features(x, answer))
                except InputError as error:
                    raise type(error)(f"example {row}: {error}. Nothing of this call was learned") from None
        return inputs, answers, [1.0] * len(inputs) if c is None else c.tolist()

    def _inputs(self, X: Any, *, reset: bool, by_table: bool = True) -> list[Any]:
        """A list of inputs. `by_table`: scikit-learn's methods fix the number and names of columns, others do not."""
        if self.decoder is not None:
            if isinstance(X, (str, bytes, Mapping)) or not hasattr(X, "__len__"):
                raise InputError(f"X must be a list of inputs, got {X!r:.80} ({type(X).__name__})")
            return list(X)
        if is_mappings(X):
            return list(X)
        checked = by_table or hasattr(self, "n_features_in_")
        batch = self._validated(X, reset=reset) if checked else as_batch(X)
        batch.require_finite()
        names = self._column_names(batch.columns) if checked or not batch.names else [str(n) for n in batch.names]
        rows: list[Any] = []
        for i in range(batch.rows):
            if batch.dense is not None:
                at = np.flatnonzero(batch.dense[i])
                values = batch.dense[i, at]
            else:
                assert batch.csr is not None
                data, indices, starts = batch.csr
                at, values = indices[starts[i] : starts[i + 1]], data[starts[i] : starts[i + 1]]
            row: dict[str, float] = {}
            for j, value in zip(at.tolist(), values.tolist(), strict=True):
                row[names[j]] = row.get(names[j], 0.0) + value
            rows.append(row)
        return rows

    def _column_names(self, columns: int) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [str(j) for j in range(columns)] if names is None else [str(name) for name in names]

    def _input(self, x: Any) -> Any:
        """One x; without a decoder, a row of a named table as the mapping that it is."""
        if self.decoder is not None or isinstance(x, Mapping):
            return x
        row = to_row(x)  # refuses anything but a row of numbers
        if isinstance(row, tuple):  # sparse
            index, values, columns = row
            names = self._column_names(columns)
            return {names[j]: value for j, value in zip(index.tolist(), values.tolist(), strict=True)}
        if not hasattr(self, "feature_names_in_"):
            return x
        return dict(zip(self._column_names(len(row)), row.tolist(), strict=True))

    def _answers(self, y: Any, rows: int, *, by_table: bool = True) -> list[Any]:
        if self.decoder is not None:
            if isinstance(y, (str, bytes, Mapping)) or not hasattr(y, "__len__"):
                raise LabelError(f"y must be a list of answers, got {y!r:.80} ({type(y).__name__})")
            answers = list(y)
        else:
            answers = [plain(label) for label in (read_labels(y, rows) if by_table else as_labels(y)).tolist()]
        if len(answers) != rows:
            raise InputError(f"X has {rows} inputs, y has {len(answers)} answers")
        return answers

    # -- the decoder -----------------------------------------------------------------------------------------------

    def _decoder(self) -> Any:
        return self._blocks if self.decoder is None else self.decoder

    def _knowing(self, answers: list[Any]) -> Any:
        """The decoder; without one, blocks that also have these labels."""
        if self.decoder is not None:
            return self.decoder
        known = dict.fromkeys(self._blocks.labels)
        before = len(known)
        for row, label in enumerate(answers):
            try:
                if label in known:
                    continue
            except TypeError:
                raise not_hashable(label, row if len(answers) > 1 else None) from None
            if self._declared:
                raise LabelError(f"label {label!r} is not one of the declared classes {list(known)!r}")
            require_label(plain(label))
            known[plain(label)] = None
        try:
            return self._blocks if len(known) == before else decoders.Multiclass(tuple(known))
        except ParameterError as error:
            raise LabelError(str(error)) from None

    def _declare(self, labels: NDArray[Any]) -> None:
        self._class_dtype = labels.dtype
        self._blocks, self._declared = decoders.Multiclass(tuple(labels.tolist())), True

    def _new_model(self, classes: list[Any] | None = None) -> LinearModel:
        check_fields("StructuredLearner", self)
        if self.decoder is not None:
            self._check_decoder(self.decoder)
        return LinearModel(**shared_options(self, LinearModel), task="structured")

    def _check_decoder(self, decoder: Any) -> None:
        missing = [name for name in ("decode", "features", "cost") if not callable(getattr(decoder, name, None))]
        if missing or isinstance(decoder, type):
            raise ParameterError(
                f"decoder={decoder!r}: expected an object with decode, features and cost; see op.decoders.Decoder"
            )
        if self.selection == "prediction":
            return
        search = getattr(decoder, "loss_augmented", None)
        if not callable(search):
            raise ParameterError(
                f"decoder={decoder!r} has no loss_augmented, as selection='max_loss' needs; use selection='prediction'"
            )
        exact = getattr(decoder, "transforms", None)
        if exact is not None and self.cost_transform not in exact:
            words = " or ".join(map(repr, exact))
            raise ParameterError(
                f"decoder={decoder!r} finds the costliest rival for cost_transform={words} only, not "
                f"{self.cost_transform!r}; use that, or selection='prediction' with any"
            )
        if self.cost_transform != "sqrt":
            try:
                inspect.signature(search).bind(None, None, None, None)
            except TypeError:
                raise ParameterError(
                    f"cost_transform={self.cost_transform!r} needs a decoder with loss_augmented(w, x, y, transform)"
                ) from None
            except ValueError:  # a function in C has no signature: the call will raise
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
        labels = getattr(self._decoder(), "labels", None)
        if labels is None:
            raise AttributeError(f"{type(self.decoder).__name__} lists no labels")
        if self.decoder is None and self._declared:
            return class_array(list(labels), self._class_dtype)
        return label_array(labels)

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
        kind, config, arrays = store.read(path)
        if kind != cls.__name__:
            raise ParameterError(f"{os.fspath(path)} holds no {cls.__name__}; open it with onepass.load")
        given = {} if decoder is None else {"decoder": decoder}
        return cls.from_state(config, arrays, **given)

    def _parameter_state(self) -> dict[str, Any]:
        params = {name: value for name, value in template(self).items() if name != "decoder"}
        return {**encode_all(params), "decoder": decoders.to_config(self.decoder)}

    @classmethod
    def _from_parameters(cls, config: Mapping[str, Any]) -> Self:
        plain = {name: value for name, value in config.items() if name != "decoder"}
        return cls(**decode_all(plain), decoder=decoders.from_config(config.get("decoder")))

    def _attributes(self) -> dict[str, Any]:
        out = {
            **super()._attributes(),
            "suboptimal": self._suboptimal,
            "labels": store.encode_values(self._blocks.labels),
        }
        if self._declared:
            out["class_dtype"] = self._class_dtype.str
        return out

    def _set_attributes(self, attributes: Mapping[str, Any]) -> None:
        super()._set_attributes(attributes)
        self._suboptimal = read_count(attributes, "suboptimal")
        self._blocks = decoders.Multiclass(tuple(store.decode_values(attributes["labels"])))
        self._declared = "class_dtype" in attributes
        if self._declared:
            self._class_dtype = np.dtype(attributes["class_dtype"])


def _equal(decoder: Any, y: Any, y_hat: Any) -> bool:
    equal = getattr(decoder, "equal", None)
    return bool(y == y_hat if equal is None else equal(y, y_hat))


def _cost(decoder: Any, y: Any, rival: Any) -> float:
    cost = float(decoder.cost(y, rival))
    if not (math.isfinite(cost) and cost >= 0):
        raise InputError(f"{type(decoder).__name__}.cost must be a finite number >= 0, got {cost!r}")
    return cost
