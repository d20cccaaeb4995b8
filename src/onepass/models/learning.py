"""Learn many examples: tables and mappings, labels that appear during the call, sets of labels.

Bit for bit the loop of `learn_one`; malformed input refuses the whole call.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FeatureError, InputError, LabelError, RowError, short
from ..rows import csr
from ..rows.batches import Batch, as_base, as_batch, as_importance, is_mappings
from ..rows.labels import as_label_sets, as_labels, as_targets, require_no_dates
from ..rows.named import read_item
from ..scheme.rounds import Array, Scalars
from . import prediction_only
from .scoring import bases

if TYPE_CHECKING:
    from .rule_model import RuleModel

__all__ = ["check_mappings", "judged_by", "learn", "learn_and_suffer", "predict_then_learn", "run", "run_into"]

# The tasks in which the native loops can skip held-out rows.
NATIVE_TASKS = ("auto", "binary", "multiclass", "regression")

# A function of the scores that rows had before they were learned; None if they are not needed.
Read = Callable[[Array], Any] | None


def learn(
    model: RuleModel,
    X: Any,
    y: Any,
    importance: Any,
    base: Any,
    read: Read = None,
    held: NDArray[np.bool_] | None = None,
) -> list[Any]:
    """Learn; return what `read` makes of the scores before each update, in parts. Rows `held` out are only scored."""
    if is_mappings(X):
        return _learn_mappings(model, X, y, importance, base, read)
    batch = as_batch(X, inside=False)
    if batch.rows == 0:
        raise InputError("X has no rows; expected at least one")
    c = as_importance(importance, batch.rows)
    t, known = model.t, model.n_names
    if held is None:
        batch = model._placed(batch, learning=True)
    else:
        batch, c = prediction_only.model_features(model, batch, held), prediction_only.importance_of(held, c)
    try:
        return _learn_table(model, batch, y, c, base, read, held)
    except BaseException as error:
        if batch.named and model.hash_bits is None:
            rows = error.row if isinstance(error, RowError) else prediction_only.rows_before(held, model.t - t)
            model._columns.forget(model, batch, known, rows)
        raise
    finally:
        if batch.names and t == 0 and model.t and not model.names and model.hash_bits is None:
            model._engine.set_names(batch.names)  # so that mappings may follow


def learn_others(
    model: RuleModel, X: Any, y: Any, importance: Any, base: Any, held: NDArray[np.bool_], read: Read
) -> list[Any]:
    """Learn the rows that are not `held` out; return what `read` makes of the scores of all rows, in parts."""
    X = X if is_mappings(X) else as_batch(X, inside=False)
    rows = X.rows if isinstance(X, Batch) else len(X)
    c, b = as_importance(importance, rows), as_base(base, rows)
    held = _as_mask(held, rows)
    ends = _ends_of_calls(model, held, isinstance(X, Batch))
    if len(ends) > 2:
        _check_rows(model, X, y, held)
    parts: list[Any] = []
    for start, stop in itertools.pairwise(ends):
        part = X.part(start, stop) if isinstance(X, Batch) else X[start:stop]
        weight, begin = (None if each is None else each[start:stop] for each in (c, b))
        mask = held[start:stop]
        try:
            if mask.all():
                parts.append(read(model.score_many(part, begin)) if read else None)
            else:
                parts += learn(model, part, y[start:stop], weight, begin, read, mask if mask.any() else None)
        except RowError as error:
            raise error.at(start + error.row) from None
    return parts


def _ends_of_calls(model: RuleModel, held: NDArray[np.bool_], table: bool) -> list[int]:
    """Where to cut the rows, so that each part is either held out, or learned in one call of the loops."""
    rows = len(held)
    if table and model.native_hold_out and model.task in NATIVE_TASKS:  # the rows before the first learned one
        ends = [0, rows if held.all() else int(np.argmin(held)), rows]
    else:
        ends = [0, *(np.flatnonzero(np.diff(held)) + 1).tolist(), rows]
    return list(dict.fromkeys(ends))


def _check_rows(model: RuleModel, X: Any, y: Any, held: NDArray[np.bool_]) -> None:
    """Raise the error of any row before one is learned, because the loops get the rows in several calls."""
    if not isinstance(X, Batch):
        check_mappings(model, X)
    elif not X.validated:
        X.require_finite()
    if len(y) != len(held):
        raise InputError(f"X has {len(held)} rows, y has {len(y)}")
    if model.task in ("auto", "binary", "multiclass"):
        model._check_labels(as_labels(y)[~held].tolist())
    elif model.task == "regression":
        as_targets(y)


def _as_mask(held: Any, rows: int) -> NDArray[np.bool_]:
    mask = np.asarray(held)
    if mask.dtype != np.bool_ or mask.shape != (rows,):
        raise InputError(
            f"held must hold one True or False per row: X has {rows} rows, got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def _learn_table(
    model: RuleModel,
    batch: Batch,
    y: Any,
    c: Array | None,
    base: Any,
    read: Read,
    held: NDArray[np.bool_] | None,
) -> list[Any]:
    """Learn a table whose columns are the model's features."""
    if model.task == "oneclass":
        return [run(model, batch, None, c, read, base=bases(model, base, batch.rows))]
    if model.task == "multilabel":
        bases(model, base, batch.rows)  # raises where there is one
        return _learn_sets(model, batch, y, c, read)
    y = as_targets(y) if model.task == "regression" else as_labels(y)
    if len(y) != batch.rows:
        raise InputError(f"X has {batch.rows} rows, y has {len(y)}")
    if model.task == "regression":
        return [run(model, batch, y, c, read, base=bases(model, base, batch.rows))]
    y = y if held is None else prediction_only.labels_of(held, y)
    indices = model._indices(y)
    if np.all(indices >= 0):
        return [run(model, batch, indices, c, read, base=bases(model, base, batch.rows, y))]
    return _learn_growing(model, batch, y, c, base, read)


def predict_then_learn(
    model: RuleModel, X: Any, y: Any, importance: Any, base: Any, held: NDArray[np.bool_] | None = None
) -> Any:
    """For each row the prediction before learning it: an array, or a list if predictions are of different types."""
    if held is None:
        parts = learn(model, X, y, importance, base, model._predictions)
    else:
        parts = learn_others(model, X, y, importance, base, held, model._predictions)
    if len(parts) == 1:
        return parts[0]
    return [label for part in parts for label in (part.tolist() if isinstance(part, np.ndarray) else part)]


def _learn_growing(
    model: RuleModel, batch: Batch, labels: NDArray[Any], c: Array | None, base: Any, read: Read
) -> list[Any]:
    """Learn a batch with new labels: learn up to each new label, register it, continue."""
    _check(model, batch)
    found = model._check_labels(labels.tolist())
    b = bases(model, base, batch.rows, labels)
    indices = _class_indices(model, found.values)
    fresh = found.firsts[indices < 0].tolist()
    parts: list[Any] = []
    for start, stop in itertools.pairwise([*dict.fromkeys([0, *fresh]), batch.rows]):
        first = None
        if read:
            first = read(model.score_many(batch.part(start, start + 1), None if b is None else b[start : start + 1]))
        label = found.codes[start]
        is_new = bool(indices[label] < 0)
        with _registration(model, int(is_new)):
            if is_new:
                indices[label] = model._new_label(found.values[label])
                if len(model._engine.classes) == 2:  # two classes are in order
                    indices = _class_indices(model, found.values)
            y = indices[found.codes[start:stop]]
            importance, begins_at = (None if each is None else each[start:stop] for each in (c, b))
            try:
                later = run(model, batch.part(start, stop), y, importance, read, skip=1, base=begins_at)
            except RowError as error:
                raise error.at(start + error.row) from None
        if read:
            parts += [first, later]  # the first prediction was made before its label was registered
    return parts


def _class_indices(model: RuleModel, labels: list[Any]) -> Array:
    """The index of each label among the classes; -1 for unknown labels."""
    table = {label: index for index, label in enumerate(model.classes)}
    return np.array([table.get(label, -1) for label in labels], dtype=np.float64)


@contextlib.contextmanager
def _registration(model: RuleModel, coming: int) -> Iterator[None]:
    """A transaction for rows, of which the first has `coming` new labels. If that row is refused, they are dropped."""
    if not coming:
        yield
        return
    engine, t = model._engine, model.t
    engine.begin_growth(coming)
    try:
        yield
    except BaseException:
        engine.roll_back_growth() if model.t == t else engine.commit_growth()
        raise
    engine.commit_growth()


def _learn_sets(model: RuleModel, batch: Batch, y: Any, c: Array | None, read: Read) -> list[Any]:
    """Learn label sets: a table of 0 and 1 in the order of the classes, or collections of labels."""
    table = csr.dense(y, "y") if hasattr(y, "ndim") else None
    if table is not None:
        require_no_dates(table)
        if table.ndim == 2:
            return [run(model, batch, None, c, read, _as_marks(model, table, batch.rows))]
        if table.ndim == 1 and (table.dtype != object or isinstance(table[0], str)):
            y = [[label] for label in table.tolist()]  # a column of labels: sets of one label
    collections = as_label_sets(y, batch.rows)
    labels = [label for members in collections for label in members]
    model._check_labels(labels)
    if set(model.classes).issuperset(labels):
        return [run(model, batch, None, c, read, _marks(model, collections))]
    if read and read != model._predictions:
        raise LabelError("score_then_learn of label sets needs a table of 0 and 1, or classes=[…] declared")
    _check(model, batch)
    return [_learn_new_labels(model, batch, collections, c, read)]


def _as_marks(model: RuleModel, table: NDArray[Any], rows: int) -> NDArray[np.uint8]:
    """A table of 0 and 1, rows × classes. The first table determines the number of classes."""
    if not model.classes and not model.declared:
        model._engine.set_classes(list(range(table.shape[1])))
    if table.shape != (rows, len(model.classes)) or not np.all((table == 0) | (table == 1)):
        raise LabelError(f"y must be {rows} × {len(model.classes)} of 0 and 1, got shape {table.shape}")
    return np.ascontiguousarray(table, dtype=np.uint8)


def _learn_new_labels(
    model: RuleModel, batch: Batch, collections: list[list[Any]], c: Array | None, read: Read
) -> list[Any]:
    """Learn label sets with new labels, one by one; return the predictions if `read` is given."""
    predictions = []
    for i, members in enumerate(collections):
        importance = None if c is None else c[i : i + 1]
        try:
            if batch.distinct:  # rows of a stream, whose order counts
                predictions += _learn_set(model, batch.part(i, i + 1), members, importance, read)
                continue
            x = batch.part(i, i + 1).single()
            if read:
                predictions.append(model.predict_one(x))
            model.learn_one(x, members, 1.0 if importance is None else float(importance[0]))
        except RowError as error:
            raise error.at(i) from None
    return predictions


def _marks(model: RuleModel, collections: list[list[Any]]) -> NDArray[np.uint8]:
    """A table of 0 and 1, rows × outputs. Before any label is known there is one output, which is 0."""
    table = {label: index for index, label in enumerate(model.classes)}
    marks = np.zeros((len(collections), int(model._engine.rows)), dtype=np.uint8)
    for row, members in enumerate(collections):
        marks[row, [table[label] for label in members]] = 1
    return marks


def _learn_set(model: RuleModel, row: Batch, members: list[Any], c: Array | None, read: Read) -> list[Any]:
    """Learn one row, and register its labels."""
    fresh = [label for label in dict.fromkeys(members) if label not in model.classes]
    with _registration(model, len(fresh)):
        for label in fresh:
            model._new_label(label)
        classes = model.classes
        said = run(model, row, None, c, read, _marks(model, [members]))
    return [] if said is None else [[label for label, mark in zip(classes, said[0], strict=True) if mark]]


def _learn_mappings(model: RuleModel, X: Any, y: Any, importance: Any, base: Any, read: Read) -> list[Any]:
    ys = _answers(model, y, len(X))
    if len(X) != len(ys):
        raise InputError(f"X has {len(X)} rows, y has {len(ys)}")
    weights = as_importance(importance, len(X))
    cs = [1.0] * len(X) if weights is None else weights.tolist()
    check_mappings(model, X)
    if model.task == "multilabel":
        model._check_labels([label for members in ys for label in members])
    elif model.task not in ("regression", "oneclass"):
        model._check_labels(ys)
    begins_at = bases(model, base, len(X), as_labels(ys))
    at = [0.0] * len(X) if begins_at is None else begins_at.tolist()
    predictions = []
    for row, (x, label, c, b) in enumerate(zip(X, ys, cs, at, strict=True)):
        try:
            if read:
                predictions.append(model.predict_one(x, b))
            model.learn_one(x, label, c, b)
        except RowError as error:
            raise error.at(row) from None
    return [predictions]


def check_mappings(model: RuleModel, X: Any) -> None:
    """Raise the error of any malformed row before one is learned."""
    for row, x in enumerate(X):
        try:
            if not isinstance(x, Mapping):
                raise FeatureError(f"expected a mapping like the first row, got {short(x)}")
            model.check_one(x)
        except InputError as error:
            raise type(error)(f"row {row}: {error}. Nothing of this call was learned") from None
    _require_few_names(model, X)


def _require_few_names(model: RuleModel, X: Any) -> None:
    """Refuse more names than the model may have, before the first is registered."""
    if model.hash_bits is not None or len(X) < 2:
        return  # the names of a single row are counted when it is learned
    most = model.n_names + sum(map(len, X))
    try:
        model._engine.require_few(most)
    except FeatureError:  # an upper bound: names may occur in several rows
        model._engine.require_few(len({*model.names, *(read_item(*item)[0] for x in X for item in x.items())}))


def _answers(model: RuleModel, y: Any, rows: int) -> list[Any]:
    if model.task == "oneclass":
        return [None] * rows
    if model.task == "multilabel":
        return as_label_sets(y, rows)
    return list((as_targets(y) if model.task == "regression" else as_labels(y)).tolist())


def _check(model: RuleModel, batch: Batch) -> None:
    """Raise the error that the loops would raise for a malformed row, before any row is learned."""
    if batch.validated:
        return
    if batch.dense is not None:
        model._engine.check(batch.dense)
    else:
        assert batch.csr is not None
        model._engine.check_csr(*batch.csr, batch.columns, batch.distinct)


def run(
    model: RuleModel,
    batch: Batch,
    y: Array | None,
    c: Array | None,
    read: Read,
    sets: NDArray[np.uint8] | None = None,
    skip: int = 0,
    base: Array | None = None,
) -> Any:
    """Learn; return what `read` makes of the scores, without those of the first `skip` rows."""
    scores = np.zeros((batch.rows, int(model._engine.rows))) if read else None
    run_into(model, batch, y, c, scores, sets, base)
    return None if scores is None or read is None else read(scores[skip:])


def run_into(
    model: RuleModel,
    batch: Batch,
    y: Array | None,
    c: Array | None,
    scores: Array | None,
    sets: NDArray[np.uint8] | None = None,
    base: Array | None = None,
) -> None:
    """Learn; write the scores before each update to `scores`."""
    more = {} if base is None else {"base": base}
    if batch.dense is not None:
        model._engine.learn(batch.dense, y, c, None, sets, scores, **more)
    else:
        assert batch.csr is not None
        model._engine.learn_csr(
            *batch.csr, batch.columns, y, c, None, sets, scores, batch.distinct, batch.named, batch.validated, **more
        )


@contextlib.contextmanager
def judged_by(model: RuleModel, X: Any, y: Any, importance: Any) -> Iterator[None]:
    """Inside this context pocket(ratchet=true) compares weights by their errors on this set of known classes."""
    batch = model._placed(as_batch(X))
    indices = model._indices(as_labels(y))
    if np.any(indices < 0):
        raise LabelError(f"y[{int(np.argmin(indices))}] of the stored set is not one of the classes {model.classes!r}")
    c = as_importance(importance, batch.rows)
    if batch.dense is not None:
        model._engine.keep_set(batch.dense, indices, c)
    else:
        assert batch.csr is not None
        model._engine.keep_set_csr(*batch.csr, batch.columns, indices, c)
    try:
        yield
    finally:
        model._engine.forget_set()


def learn_and_suffer(model: RuleModel, X: Any, y: Any, importance: Any) -> float:
    """Learn a table in order; the mean loss of its rows, each before its own update."""
    batch = model._placed(as_batch(X))
    c = as_importance(importance, batch.rows)
    targets = as_targets(y) if model.task == "regression" else model._indices(as_labels(y))
    scores = np.zeros((batch.rows, int(model._engine.rows)))
    run_into(model, batch, targets, c, scores)
    losses = [_loss_of_scores(model, s, t) for s, t in zip(scores, targets, strict=True)]
    weights = np.ones(batch.rows) if c is None else c
    return float(np.average(losses, weights=weights)) if np.sum(weights) > 0 else 0.0


def _loss_of_scores(model: RuleModel, scores: Array, y: float) -> float:
    """The rule's loss of one example from its scores."""
    rule = model.rule
    if model.task == "regression":
        side = -1.0 if y < scores[0] else 1.0
        target = side * y - model.rule_traits.epsilon
        return rule.suffer(Scalars(side * scores[0], target, 1.0, 0.0, 1.0, 1, 0, side, regression=True))
    if len(scores) == 1:
        return rule.suffer(Scalars(scores[0] if y else -scores[0], 1.0, 1.0, 0.0, 1.0, 1, 0))
    if model.rule_traits.sees_all_scores("multiclass", model.multiclass):
        return rule.suffer_all(scores, int(y))
    rivals = np.delete(scores, int(y))
    return rule.suffer(Scalars(float(scores[int(y)] - np.max(rivals)), 1.0, 1.0, 0.0, 1.0, 1, 0))
