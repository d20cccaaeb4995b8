"""A cell is run: its learner is taught in pieces, perhaps meets a row that it must refuse, and is then asked."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from golden import learners, values
from golden.cells import COUNTS, Cell
from golden.rule_table import RULES
from golden.streams import LABELS, Stream, formed, sentences, stream

import onepass as op
from onepass import store
from onepass.transforms.base import Transform

BEFORE = 24  # rows before the event
PIECES = (0, 5, 6, BEFORE)
AT = 3  # the bad row, counted from the event's first
COUNTED = ("BernoulliNB", "MultinomialNB", "MultinomialNB fading", "ComplementNB", "CategoricalNB", "OneHotEncoder")
UNTAUGHT = ("oneclass", "none")

# Learner → why its numbers depend on the processor. Such cells are compared within values.RTOL and values.ATOL.
BLAS = "products of matrices, decompositions (BLAS, LAPACK)"
LIBM = "exp, log, pow or trigonometric functions (libm, numpy)"
TOLERANT_LEARNERS = {
    "SoftmaxSGD": f"{BLAS}; {LIBM}",
}
TOLERANT_RULES = {text: LIBM for text, entry in RULES.items() if entry.libm}


def reason(cell: Cell) -> str | None:
    """Why a cell is compared within a tolerance; None where every bit counts."""
    return TOLERANT_LEARNERS.get(cell.learner) or TOLERANT_RULES.get(cell.rule)


# -- teaching ------------------------------------------------------------------------------------------------------


def data(cell: Cell) -> Stream:
    if cell.learner == "structured":
        return sentences(cell.option)
    counts = cell.learner in COUNTED or cell.kernel in COUNTS
    task = "multiclass" if cell.task == "costs" else cell.task
    return stream(task, "counts" if counts else "real")


class Pupil:
    """A learner, and how its cell teaches it."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.learner = learners.made(cell)
        self.stream = data(cell)
        self.said: list[Any] = []  # predictions made just before learning, where that is the way

    def rows(self, X: Any) -> Any:
        return list(X) if self.cell.learner == "structured" else formed(X, self.cell.form)

    def answers(self, y: list[Any], table: bool) -> Any:
        task = self.cell.task
        if task in UNTAUGHT:
            return None
        if task == "costs":
            return [{label: abs(label - right) / 10 for label in LABELS["multiclass"]} for right in y]
        if task == "multilabel":
            sets = [[label in each for label in LABELS[task]] for each in y] if table else y
            return np.array(sets, dtype=np.int64) if table else sets
        return np.array(y) if table else y

    def teach(self, X: Any, y: list[Any], importance: list[float], qid: list[int], first: bool) -> None:
        weights = None if self.cell.weights in ("ones", "-") else importance
        way = "partial" if self.cell.way == "fit" and not first else self.cell.way
        if isinstance(self.learner, Transform):
            self._teach_transform(X, way)
        elif way == "one":
            self._one_by_one(self.rows(X), y, weights, qid)
        elif way in ("many", "then"):
            more = {"qid": qid} if isinstance(self.learner, op.Ranker) else {}
            verb = self.learner.learn_many if way == "many" else self.learner.predict_then_learn
            said = verb(self.rows(X), self.answers(y, False), importance=weights, **more)
            self.said += [] if said is None else [said]
        else:
            self._table(X, y, weights, qid, way)

    def _one_by_one(self, rows: Any, y: list[Any], weights: list[float] | None, qid: list[int]) -> None:
        answers = self.answers(y, False)
        for i, answer in enumerate([None] * len(y) if answers is None else answers):
            more: dict[str, Any] = {} if weights is None else {"importance": weights[i]}
            if isinstance(self.learner, op.Ranker):
                more["qid"] = qid[i]
            try:
                self.learner.learn_one(rows[i], answer, **more)
            except Exception as error:
                error.add_note(f"row {i} of a piece")
                raise

    def _table(self, X: Any, y: list[Any], weights: list[float] | None, qid: list[int], way: str) -> None:
        more: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
        if isinstance(self.learner, op.Ranker):
            more["qid"] = qid
        answers = self.answers(y, True)
        known = self.cell.task in ("binary", "multiclass", "structured", "costs")
        if way == "partial" and known and not self.said:
            more["classes"] = LABELS["binary" if self.cell.task == "binary" else "multiclass"]
        (self.learner.fit if way == "fit" else self.learner.partial_fit)(self.rows(X), answers, **more)

    def _teach_transform(self, X: Any, way: str) -> None:
        rows = self.rows(X)
        if way == "one":
            for i in range(len(X)):
                self.learner.learn_one(rows[i])
        else:
            {"many": self.learner.learn_many, "partial": self.learner.partial_fit, "fit": self.learner.fit}[way](rows)

    def begin(self) -> None:
        """The rows before the event."""
        s, pieces = self.stream, (0, BEFORE) if self.cell.way == "fit" else PIECES
        for start, stop in zip(pieces[:-1], pieces[1:], strict=True):
            piece = slice(start, stop)
            self.teach(s.X[piece], s.y[piece], s.importance[piece], s.qid[piece], start == 0)
        if self.cell.option == "end of task":
            self.learner.end_task()

    def finish(self) -> None:
        """The rows after them, one of which may be bad."""
        s, event = self.stream, self.cell.event
        X, y, weights, qid = s.X[BEFORE:].copy(), list(s.y[BEFORE:]), list(s.importance[BEFORE:]), s.qid[BEFORE:]
        if event in ("nan", "overflow"):
            X[AT, 2] = {"nan": np.nan, "overflow": 1e200}[event]
        elif event == "label":
            y[AT] = float("nan") if self.cell.task in ("regression", "ranking") else None
        elif event == "new class":
            y[AT] = ["maybe"] if self.cell.task == "multilabel" else "maybe"
        elif event == "width":
            X = np.hstack([X, np.ones((len(X), 1))])
        elif event == "weight":
            weights[AT] = -1.0
        self.teach(X, y, weights, qid, False)


# -- a record ------------------------------------------------------------------------------------------------------


def state_arrays(learner: Any, path: Path) -> dict[str, np.ndarray]:
    """Every array of what was learned, by name. The one place that knows how to get at them: today, by the file."""
    _, _, arrays = store.read(path)
    return {name: array for name, array in sorted(arrays.items()) if array.size}


SAID = 6  # the last predictions before learning that are recorded
COUNTERS = ("t_", "k_", "t", "k", "n_support_", "n_support", "n_examples_", "dropped_", "n_drifts_", "n_passes_")
ONE = ("predict_one", "score_one", "predict_proba_one", "transform_one")
MANY = (
    "predict_many",
    "predict",
    "decision_function",
    "predict_proba",
    "score_samples",
    "predict_interval",
    "transform",
    "transform_many",
)


def failed(error: Exception) -> dict[str, Any]:
    row = getattr(error, "row", None)
    return {"error": type(error).__name__, **({} if row is None else {"row": int(row)})}


def record(cell: Cell) -> dict[str, Any]:
    """What happens in a cell, as JSON."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        out: dict[str, Any] = {"cell": cell.name}
        try:
            pupil = Pupil(cell)
        except Exception as error:
            return {**out, "make": failed(error)}
        for stage in ("begin", "finish"):
            try:
                getattr(pupil, stage)()
            except Exception as error:
                out[stage] = failed(error)
                if stage == "begin":
                    break
        return {**out, **observed(pupil.learner, pupil.rows(pupil.stream.probes), pupil.said, reason(cell) is not None)}


def observed(learner: Any, probes: Any, said: list[Any], tolerant: bool) -> dict[str, Any]:
    """Counters, classes, arrays and answers of a learner."""
    encode = values.near if tolerant else values.exact
    out: dict[str, Any] = {}
    for name in COUNTERS:
        value = attempt(lambda name=name: getattr(learner, name))
        if isinstance(value, int | np.integer):
            out[name] = int(value)
    classes = attempt(lambda: getattr(learner, "classes_", None) if hasattr(learner, "classes_") else learner.classes)
    if isinstance(classes, list | np.ndarray):
        out["classes"] = [repr(label) for label in np.asarray(classes, dtype=object).tolist()]
    summary = values.summary if tolerant else values.digest
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onepass"
        try:
            learner.save(path)
            out["state"] = {name: summary(array) for name, array in state_arrays(learner, path).items()}
            op.load(path)
        except Exception as error:
            out["load" if "state" in out else "state"] = failed(error)
    if said:
        out["said"] = encode([each for piece in said for each in piece][-SAID:])
    out["answers"] = answers(learner, probes, encode)
    return out


def attempt(ask: Any) -> Any:
    try:
        return ask()
    except Exception:
        return None


def answers(learner: Any, probes: Any, encode: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    predicts = attempt(lambda: hasattr(learner, "predict_many"))
    for verb in (*ONE, *MANY):
        if predicts and verb.startswith("transform"):
            continue
        if not attempt(lambda verb=verb: hasattr(learner, verb)):
            continue
        try:
            out[verb] = encode(getattr(learner, verb)(probes[0] if verb in ONE else probes))
        except Exception as error:
            out[verb] = failed(error)
    return out
