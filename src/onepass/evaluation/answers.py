"""Asking a model: predictions, scores and probabilities, from whatever methods it has, as `Outcomes`."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError
from ..metrics import Labels, Metric, Outcomes
from ..metrics.meters import as_numbers
from ..rows.examples import Examples
from .examples import equal_runs, single

__all__ = ["Answer", "Asker", "StreamModel", "answer_kind"]

Array = NDArray[np.float64]
WEIGHT_NAMES = ("importance", "w", "sample_weight", "weight")


class StreamModel(Protocol):
    """The methods that `prequential` needs: models of onepass and River have them."""

    def predict_one(self, x: Any, /) -> Any: ...
    def learn_one(self, x: Any, y: Any, /) -> object: ...


class Answer(NamedTuple):
    """The answer of a model to one example."""

    prediction: Any
    classes: list[Any] = []  # noqa: RUF012  labels of the scores and probabilities
    scores: Array | None = None
    probabilities: Array | None = None


class Scored(list[tuple[list[Any], Array]]):
    """Answers to consecutive rows as scores, in parts: the classes known then, and a row of scores for each example."""


class Asker:
    """Asks a model for predictions, and for scores or probabilities where metrics need them. Raises if it has none.

    `by_scores`: the prediction is the class of the largest score, so that scores are enough.
    """

    def __init__(self, model: Any, needs: Iterable[str], by_scores: bool = False) -> None:
        self.model = model
        self.by_scores = by_scores
        wanted = set(needs) - {""}
        _require_answers(model, wanted)
        has_scores = hasattr(model, "score_one")
        self.with_scores = bool(wanted & {"scores", "margins"}) and has_scores
        self.with_probabilities = "probabilities" in wanted or ("scores" in wanted and not has_scores)
        self._learn_weight = _weight_name(model, "learn_one")
        self._chunk_weight = _weight_name(model, "predict_then_learn")
        # Why examples may not begin at an initial prediction.
        asked = "learn_one" if hasattr(model, "learn_one") else "predict_then_learn"
        self.no_base = "" if "base" in _parameters(model, asked) else f"which {_name(model)} does not use; leave it out"

    @property
    def asks_more(self) -> bool:
        """Are scores or probabilities needed, beside predictions?"""
        return self.with_scores or self.with_probabilities

    def takes_chunks(self) -> bool:
        """Can whole tables be judged and learned in one call?"""
        if self.with_scores or self.with_probabilities:
            return hasattr(self.model, "score_then_learn")
        return hasattr(self.model, "predict_then_learn")

    # -- one example -----------------------------------------------------------------------------------------------

    def answer(self, x: Any, base: float = 0.0) -> Answer:
        more = {} if not base else self._based("predict_one", base)
        prediction = self.model.predict_one(x, **more)
        if not self.asks_more:
            return Answer(prediction)
        if self.with_scores:
            classes = self.classes()
            raw = np.atleast_1d(np.asarray(self.model.score_one(x, **more), dtype=np.float64))[np.newaxis]
            scores = margins(raw, len(classes))
            return Answer(prediction, classes, scores[0], softmax(scores)[0] if self.with_probabilities else None)
        table = self.model.predict_proba_one(x, **more) or {}
        return Answer(prediction, list(table), None, np.array(list(table.values()), dtype=np.float64))

    def classes(self) -> list[Any]:
        """The labels the model knows, in the order of its scores."""
        known = getattr(self.model, "classes", None)
        if known is None:
            try:
                known = self.model.classes_
            except AttributeError:  # an estimator that has learned nothing
                known = []
        return [label.item() if isinstance(label, np.generic) else label for label in known]

    def learn(self, x: Any, y: Any, weight: float | None, base: float = 0.0) -> None:
        if weight is None and not base:
            self.model.learn_one(x, y)
            return
        more = {} if weight is None else {self._weighted(self._learn_weight): weight}
        self.model.learn_one(x, y, **more, **self._based("learn_one", base))

    def _based(self, method: str, base: Any) -> dict[str, Any]:
        """`base=` for a method of the model, where examples begin at an initial prediction."""
        if base is None or (isinstance(base, float) and not base):
            return {}
        if "base" not in _parameters(self.model, method):
            raise InputError(f"an example has an initial prediction (base), which {_name(self.model)} does not use")
        return {"base": base}

    def _weighted(self, name: str) -> str:
        if not name:
            raise ParameterError(
                f"the stream has weights, but {_name(self.model)} takes none; "
                f"expected a parameter called {' or '.join(WEIGHT_NAMES)}"
            )
        return name

    @property
    def takes_weights(self) -> bool:
        return bool(self._learn_weight)

    # -- many ------------------------------------------------------------------------------------------------------

    def predict_then_learn(self, rows: Examples, held: NDArray[np.bool_] | None = None) -> Any:
        """Predictions (or scored parts) for rows, each made before its row was learned; `held` rows are not learned."""
        if held is not None and held.any() and "held" not in _parameters(self.model, "predict_then_learn"):
            return self._by_runs(rows, held)
        more: dict[str, Any] = {} if rows.weight is None else {self._weighted(self._chunk_weight): rows.weight}
        more |= self._based("predict_then_learn", rows.base)
        if rows.query is not None and "qid" in _parameters(self.model, "predict_then_learn"):
            more["qid"] = rows.query
        if held is not None and held.any():
            more["held"] = held
        if self.asks_more or (self.by_scores and not isinstance(rows.X, list)):
            return Scored(self.model.score_then_learn(rows.X, rows.y, **more))
        predictions = self.model.predict_then_learn(rows.X, rows.y, **more)
        if len(predictions) != rows.size():
            raise InputError(f"predict_then_learn gave {len(predictions)} predictions for {rows.size()} rows")
        return predictions

    def _by_runs(self, rows: Examples, held: NDArray[np.bool_]) -> Any:
        """The same of a model that learns all rows of a call: the others are predicted one by one, between calls."""
        said: list[Any] = []
        scored = False
        for start, stop in equal_runs(held):
            part = rows.part(start, stop)
            if not held[start]:
                own = self.predict_then_learn(part)
                scored |= isinstance(own, Scored)
                said += own if isinstance(own, Scored) else _as_list(own)
            elif self.asks_more or (self.by_scores and not isinstance(rows.X, list)):
                scored = True
                said.append(self._scores(part))
            else:
                said += _as_list(self.predict(part.X, single(part.X, False), part.base))
        return Scored(said) if scored else said

    def _scores(self, rows: Examples) -> tuple[list[Any], Array]:
        """The classes that the model knows, and the scores of rows."""
        base = np.zeros(rows.size()) if rows.base is None else rows.base
        raw = [
            self.model.score_one(x, **self._based("score_one", b))
            for x, b in zip(single(rows.X, False), base.tolist(), strict=True)
        ]
        return self.classes(), np.array([np.atleast_1d(np.asarray(row, dtype=np.float64)) for row in raw])

    def predict(self, X: Any, rows: Iterable[Any], base: Array | None = None) -> Any:
        """Predictions for a table, and nothing learned; `rows` are its rows for models that take one at a time."""
        if hasattr(self.model, "predict_many") and not isinstance(X, list):
            return self.model.predict_many(X, **self._based("predict_many", base))
        if base is None:
            return [self.model.predict_one(x) for x in rows]
        return [
            self.model.predict_one(x, **self._based("predict_one", b)) for x, b in zip(rows, base.tolist(), strict=True)
        ]

    def outcomes_of(self, kind: str, labels: Labels, said: Any, y: Any, weight: Array | None) -> Outcomes:
        """What `predict_then_learn` returned, beside the truth."""
        rows = len(y)
        c = np.ones(rows) if weight is None else weight
        if kind == "numbers":
            return Outcomes(kind, as_numbers(y), as_numbers(said), c, None, None, labels)
        if not isinstance(said, Scored):
            truth = labels.codes(y)
            if isinstance(said, np.ndarray) and said.ndim == 1:
                return Outcomes(kind, truth, labels.codes(said), c, None, None, labels)
            predicted = [labels.judged(prediction, label) for prediction, label in zip(said, y, strict=True)]
            return Outcomes(kind, truth, np.array(predicted, dtype=np.int64), c, None, None, labels)
        truth, parts, start = labels.codes(y), [], 0
        for classes, raw in said:
            stop = start + len(raw)
            parts.append(self._scored(labels, classes, raw, truth[start:stop], c[start:stop]))
            start = stop
        return Outcomes.join(parts)

    def _scored(self, labels: Labels, classes: list[Any], raw: Array, truth: Any, c: Array) -> Outcomes:
        choices = chosen(raw, len(classes))
        if not self.asks_more:
            said = labels.codes_at(classes or [None], choices)  # no class, no prediction
            return Outcomes("classes", truth, said, c, None, None, labels)
        scores, codes = margins(raw, len(classes)), labels.codes(classes)
        predicted = codes[choices] if len(classes) else np.zeros(len(raw), dtype=np.int64)
        probabilities = placed(softmax(scores), codes, len(labels), 0.0) if self.with_probabilities else None
        table = placed(scores, codes, len(labels), np.nan) if self.with_scores else None
        return Outcomes("classes", truth, predicted, c, table, probabilities, labels)


class Rounds:
    """Outcomes gathered one by one."""

    def __init__(self, kind: str, labels: Labels) -> None:
        self.kind, self.labels = kind, labels
        self.truth: list[Any] = []
        self.predicted: list[Any] = []
        self.weight: list[float] = []
        self.answers: list[Answer] = []

    def __len__(self) -> int:
        return len(self.truth)

    def add(self, answer: Answer, y: Any, weight: float | None) -> None:
        if self.kind == "numbers":
            self.truth.append(_number(y, y, answer.prediction))
            self.predicted.append(
                0.0 if answer.prediction is None else _number(answer.prediction, y, answer.prediction)
            )
        else:
            self.truth.append(self.labels.code(y))
            self.predicted.append(self.labels.judged(answer.prediction, y))
        self.weight.append(1.0 if weight is None else weight)
        if answer.scores is not None or answer.probabilities is not None:
            self.answers.append(answer)

    def take(self) -> Outcomes:
        """All outcomes gathered so far; the list is then empty."""
        kind, answers = self.kind, self.answers
        dtype = np.float64 if kind == "numbers" else np.int64
        tables: dict[str, Array | None] = {"scores": None, "probabilities": None}
        for name, missing in (("scores", np.nan), ("probabilities", 0.0)):
            if answers and getattr(answers[0], name) is not None:
                codes = [self.labels.codes(answer.classes) for answer in answers]
                table = np.full((len(answers), len(self.labels)), missing)
                for row, (at, answer) in enumerate(zip(codes, answers, strict=True)):
                    values = getattr(answer, name)
                    table[row, at - 1] = values
                    if name == "probabilities" and len(at) < 2:
                        table[row] = np.nan
                tables[name] = table
        out = Outcomes(
            kind,
            np.array(self.truth, dtype=dtype),
            np.array(self.predicted, dtype=dtype),
            np.array(self.weight, dtype=np.float64),
            tables["scores"],
            tables["probabilities"],
            self.labels,
        )
        self.truth, self.predicted, self.weight, self.answers = [], [], [], []
        return out


def _require_answers(model: Any, wanted: set[str]) -> None:
    """Raise where the model cannot give what the metrics want."""
    if not hasattr(model, "predict_then_learn") and not (hasattr(model, "predict_one") and hasattr(model, "learn_one")):
        raise ParameterError(
            f"model={model!r:.80}: expected predict_one and learn_one, or predict_then_learn for chunks"
        )
    has_scores = hasattr(model, "score_one")
    has_probabilities = _has_probabilities(model)
    if "probabilities" in wanted and not has_probabilities:
        raise ParameterError(
            f"log_loss and calibration need probabilities, and {_name(model)} has no predict_proba_one; "
            "use a rule whose loss gives them (sgd:loss=logistic), or another metric"
        )
    if "margins" in wanted and not has_scores:
        raise ParameterError(f"hinge needs scores, and {_name(model)} has no score_one")
    if "scores" in wanted and not (has_scores or has_probabilities):
        raise ParameterError(
            f"auc, average_precision and top_k need scores, and {_name(model)} has neither score_one nor "
            "predict_proba_one"
        )


def margins(raw: Array, classes: int) -> Array:
    """Raw scores with a column for each class: the one score s of two classes as (−s/2, s/2), which differ by s."""
    if classes == 2 and raw.shape[1] == 1:
        half = 0.5 * raw
        return np.concatenate([-half, half], axis=1)
    return np.zeros((len(raw), classes)) if classes < 2 else raw


def chosen(raw: Array, classes: int) -> NDArray[np.intp]:
    """The index of the predicted class."""
    if raw.shape[1] == 1:
        return (raw[:, 0] > 0).astype(np.intp) if classes > 1 else np.zeros(len(raw), dtype=np.intp)
    return np.asarray(np.argmax(raw, axis=1))


def softmax(scores: Array) -> Array:
    """Probabilities of at least two classes; NaN while the model knows fewer."""
    if scores.shape[1] < 2:
        return np.full(scores.shape, np.nan)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def placed(table: Array, codes: NDArray[np.int64], labels: int, missing: float) -> Array:
    """The table with its columns in the order of the label codes."""
    if table.shape[1] == labels and np.array_equal(codes, np.arange(1, labels + 1)):
        return table
    out = np.full((len(table), labels), np.nan if table.shape[1] < 2 else missing)
    out[:, codes - 1] = table
    return out


def answer_kind(model: Any, y: Any, prediction: Any) -> str:
    """ "classes" or "numbers": by the model's declared task, else by the kinds of y and of the prediction."""
    task = getattr(model, "task", None)
    if isinstance(task, str):
        return "numbers" if task == "regression" else "classes"

    def real(value: Any) -> bool:
        return isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral | np.bool_)

    number = isinstance(y, numbers.Real) and not isinstance(y, bool | np.bool_)
    # 3 predicted as 2.7 is regression; so is 3.0 with no prediction yet.
    return "numbers" if number and (real(prediction) if prediction is not None else real(y)) else "classes"


def _number(value: Any, y: Any, prediction: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"metrics of numbers need numbers, got y={y!r:.80}, prediction={prediction!r:.80}") from None


def _has_probabilities(model: Any) -> bool:
    """Does the model give probabilities? Models of onepass do where the rule's loss defines them."""
    if not hasattr(model, "predict_proba_one"):
        return False
    traits = getattr(model, "rule_traits", None)
    return traits is None or "binary" in traits.probabilities


def _parameters(model: Any, method: str) -> Sequence[str]:
    function: Callable[..., Any] | None = getattr(model, method, None)
    if function is None:
        return ()
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # native methods of onepass, which all take these
        return ("x", "y", "importance", "base")


def _weight_name(model: Any, method: str) -> str:
    return next((name for name in WEIGHT_NAMES if name in _parameters(model, method)), "")


def _as_list(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _name(model: Any) -> str:
    text = repr(model)
    return text if len(text) <= 60 else type(model).__name__


def needs_of(metrics: Sequence[Metric], calibration: bool) -> list[str]:
    """Rankings are judged by the predictions themselves, which are scores."""
    own = [metric.needs for metric in metrics if metric.kind != "rankings"]
    return [*own, "probabilities" if calibration else ""]
