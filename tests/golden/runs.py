"""A cell is run: its learner is taught in pieces, perhaps meets a row that it must refuse, and is then asked."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onepass as op
from golden import learners, values
from golden.cells import Cell
from golden.other_families import BAYES
from golden.rule_table import RULES
from golden.scheme_families import COUNTS
from golden.streams import LABELS, Stream, formed, sentences, stream
from onepass.persistence import store
from onepass.transforms import Pipeline

BEFORE = 24  # rows before the event
PIECES = (0, 5, 6, BEFORE)
AT = 3  # the bad row, counted from the event's first
COUNTED = ("BernoulliNB", "MultinomialNB", "MultinomialNB fading", "ComplementNB", "CategoricalNB", "OneHotEncoder")
UNTAUGHT = ("oneclass", "none")

# -- what may differ from processor to processor -------------------------------------------------------------------

# Cells that go through BLAS or libm are compared within values.RTOL and values.ATOL; everywhere else each bit counts.
LIBM = "exp, log, pow or tanh of libm or numpy, whose last bit is not defined"
BLAS = "products of matrices or decompositions by BLAS and LAPACK, which add up in an order of their own"
INEXACT_STATE = {
    **dict.fromkeys(("SoftmaxSGD", "SoftmaxSGD rbf", "Replay", "EWC", "AGEM", "AGEM laplacian"), f"{BLAS}; {LIBM}"),
    **{f"GaussianMixture{kind}": f"{BLAS}; {LIBM}" for kind in ("", " full", " tied", " spherical")},
    **dict.fromkeys(("IncrementalPCA", "OjaPCA", "DictionaryLearning"), BLAS),
    **dict.fromkeys(("BernoulliMixture", "ensemble", "ensemble model"), LIBM),  # an ensemble's weights are e^(−η loss)
    **{text: LIBM for text, entry in RULES.items() if entry.libm},
    **dict.fromkeys(("logistic", "sigmoid:gamma=0.05"), LIBM),
    **dict.fromkeys(("forgetron:B=6", "forgetron:B=6,tuning=basic", "merge:B=6"), LIBM),
}
# Counts are exact, and the centre of a one-class learner; what is worked out of them is not.
INEXACT_ANSWERS = {**dict.fromkeys(BAYES, f"{BLAS}; {LIBM}"), "oneclass": BLAS}
INEXACT_VERBS = {
    **dict.fromkeys(("predict_proba", "predict_proba_one"), LIBM),
    "predict_interval": LIBM,  # the quantile of a normal distribution
}


def inexact_state(cell: Cell) -> str | None:
    """Why the arrays of a cell are compared within a tolerance; None where every bit counts."""
    return next((INEXACT_STATE[value] for value in dataclasses.astuple(cell) if value in INEXACT_STATE), None)


def inexact_answers(cell: Cell) -> str | None:
    """The same for its answers."""
    values = (*dataclasses.astuple(cell), cell.task)
    return inexact_state(cell) or next((INEXACT_ANSWERS[each] for each in values if each in INEXACT_ANSWERS), None)


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
        if self.cell.learner in learners.TRANSFORMS and not isinstance(self.learner, Pipeline):
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
        for start, stop in itertools.pairwise(pieces):
            piece = slice(start, stop)
            self.teach(s.X[piece], s.y[piece], s.importance[piece], s.qid[piece], start == 0)
        if self.cell.option == "end of task":
            self.learner.end_task()

    def finish(self) -> None:
        """The rows after them, one of which may be bad."""
        s, event = self.stream, self.cell.event
        X, y, weights, qid = s.X[BEFORE:].copy(), list(s.y[BEFORE:]), list(s.importance[BEFORE:]), s.qid[BEFORE:]
        labelled = (lambda label: [label]) if self.cell.task == "multilabel" else (lambda label: label)
        if event == "nan":
            X[AT, 2] = np.nan
        elif event.endswith("overflow"):
            X[AT, 2] = 1e200
        if event == "new classes and overflow":  # one before the bad row, one in it, one after
            y[AT - 1 : AT + 2] = [labelled("early"), labelled("refused"), labelled("late")]
        elif event == "label":
            y[AT] = float("nan") if self.cell.task in ("regression", "ranking") else None
        elif event == "new class":
            y[AT] = labelled("maybe")
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
FITTED = ("coef_", "intercept_", "mean_", "var_", "dual_coef_", "member_weights_")
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
        out: dict[str, Any] = {}
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
        encode = values.near if inexact_answers(cell) else values.exact
        if hasattr(pupil.learner, "detector_"):
            out |= {"drifts": pupil.learner.drifts_, "detector": encode(pupil.learner.detector_.state())}
        said = [each for piece in pupil.said for each in piece][-SAID:]
        out |= observed(pupil.learner, values.summary if inexact_state(cell) else values.digest)
        out |= {"said": encode(said)} if said else {}
        return {**out, "answers": answers(pupil.learner, pupil.rows(pupil.stream.probes), encode)}


def observed(learner: Any, summary: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """Counters, classes, fitted attributes and the arrays of the state."""
    out: dict[str, Any] = {}
    for name in COUNTERS:
        value = attempt(lambda name=name: getattr(learner, name))
        if isinstance(value, int | np.integer):
            out[name] = int(value)
    classes = attempt(lambda: getattr(learner, "classes_", None) if hasattr(learner, "classes_") else learner.classes)
    if isinstance(classes, list | np.ndarray):
        out["classes"] = [repr(label) for label in np.asarray(classes, dtype=object).tolist()]
    fitted = {name: attempt(lambda name=name: getattr(learner, name)) for name in FITTED}
    out |= {name: summary(value) for name, value in fitted.items() if isinstance(value, np.ndarray)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onepass"
        try:
            learner.save(path)
            out["state"] = {name: summary(array) for name, array in state_arrays(learner, path).items()}
            op.load(path)
        except Exception as error:
            out["load" if "state" in out else "state"] = failed(error)
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
            answer = getattr(learner, verb)(probes[0] if verb in ONE else probes)
            out[verb] = (values.near if verb in INEXACT_VERBS else encode)(answer)
        except Exception as error:
            out[verb] = failed(error)
    return out
