"""Promise 1: the same answer, bit for bit, however the data arrives.

Every way of feeding a stream must end in the same saved bytes: whole, in chunks of any size, one by one, saved and
loaded or pickled anywhere, through the model or through the estimator.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import grid
from support.grid import CELLS, Cell, Stream, saved

import onepass
from onepass import rules
from onepass.models.linear import LinearModel
from onepass.scheme import losses, schedules


def cuts(rng: np.random.Generator, n: int, most: int) -> list[int]:
    """Random ends of chunks, the last of them n."""
    ends = np.cumsum(rng.integers(1, most + 1, size=n))
    return [*ends[ends < n].tolist(), n]


def feed(model: Any, cell: Cell, s: Stream, start: int, stop: int, importance: bool = True) -> None:
    c = s.importance[start:stop] if importance else None
    model.learn_many(cell.form.part(s.X, start, stop), s.y[start:stop], c)


def teach(model: Any, cell: Cell, s: Stream, i: int, importance: bool = True) -> None:
    c = float(s.importance[i]) if importance else 1.0
    model.learn_one(cell.form.row(s.X, i), s.y[i], c)


def whole(model: LinearModel, cell: Cell, s: Stream, rng: np.random.Generator, folder: Path) -> Any:
    feed(model, cell, s, 0, len(s.X))
    return model


def chunks(model: LinearModel, cell: Cell, s: Stream, rng: np.random.Generator, folder: Path) -> Any:
    start = 0
    for stop in cuts(rng, len(s.X), 9):
        feed(model, cell, s, start, stop)
        start = stop
    return model


def one_by_one(model: LinearModel, cell: Cell, s: Stream, rng: np.random.Generator, folder: Path) -> Any:
    for i in range(len(s.X)):
        teach(model, cell, s, i)
    return model


def through_files(model: LinearModel, cell: Cell, s: Stream, rng: np.random.Generator, folder: Path) -> Any:
    start = 0
    for stop in cuts(rng, len(s.X), 25):
        feed(model, cell, s, start, stop)
        model.save(folder / "m.onepass")
        model = LinearModel.load(folder / "m.onepass")
        start = stop
    return model


def through_pickles(model: LinearModel, cell: Cell, s: Stream, rng: np.random.Generator, folder: Path) -> Any:
    """Pickled between single rows and chunks in turn."""
    start = 0
    for stop in cuts(rng, len(s.X), 9):
        if start % 2:
            feed(model, cell, s, start, stop)
        else:
            for i in range(start, stop):
                teach(model, cell, s, i)
        model = pickle.loads(pickle.dumps(model))
        start = stop
    return model


def estimator(model: LinearModel, cell: Cell, s: Stream, rng: np.random.Generator, folder: Path) -> Any:
    """partial_fit in chunks, saved, loaded and pickled in between."""
    learner = cell.estimator()
    start = 0
    for stop in cuts(rng, len(s.X), 25):
        classes = {} if s.classes is None else {"classes": s.classes}
        part = cell.form.part(s.X, start, stop)
        learner.partial_fit(part, s.y[start:stop], sample_weight=s.importance[start:stop], **classes)
        if start == 0:
            learner.save(folder / "e.onepass")
            learner = onepass.load(folder / "e.onepass")
        learner = pickle.loads(pickle.dumps(learner))
        start = stop
    return learner


def fit(model: LinearModel, cell: Cell, s: Stream, rng: np.random.Generator, folder: Path) -> Any:
    return cell.estimator().fit(cell.form.make(s.X), s.y, sample_weight=s.importance)


WAYS: list[Callable[..., Any]] = [chunks, one_by_one, through_files, through_pickles]
OF_TABLES: list[Callable[..., Any]] = [estimator, fit]


@pytest.mark.full(most=300)
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_same_bytes_however_the_data_arrives(cell: Cell, tmp_path: Path) -> None:
    s = cell.stream()
    rng = np.random.default_rng(cell.seed)
    expected = saved(whole(cell.model(s.classes), cell, s, rng, tmp_path))
    ways = [*WAYS, *OF_TABLES] if cell.form.table else WAYS
    differing = [way.__name__ for way in ways if saved(way(cell.model(s.classes), cell, s, rng, tmp_path)) != expected]
    assert not differing


def first_rows(cell: Cell) -> Stream:
    """The stream with its classes appearing one after the other, not in order, the last of them late."""
    s = cell.stream()
    if s.classes is None:
        return s
    y = s.y.copy()
    y[:4] = s.classes[-1]
    y[4] = s.classes[0]
    if len(s.classes) > 2:
        late = y[:25]
        late[np.isin(late, s.classes[1:-1])] = s.classes[0]
        y[20] = s.classes[1]
    return Stream(s.X, y, s.importance, None)


@pytest.mark.full(most=150)
@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.grows], ids=str)
def test_growing_classes_and_features(cell: Cell, tmp_path: Path) -> None:
    """Undeclared classes: the stream's methods, those of the estimator too, agree in their bytes and predictions."""
    s = first_rows(cell)
    task = None if cell.task == "regression" else "auto"
    rng = np.random.default_rng(cell.seed)
    by_one, by_chunk, at_once, resumed = (cell.model(task=task) for _ in range(4))
    predicted = []
    for i in range(len(s.X)):
        predicted.append(by_one.predict_one(cell.form.row(s.X, i)))
        teach(by_one, cell, s, i, importance=False)
    assert by_one.t == len(s.X)

    start = 0
    for stop in cuts(rng, len(s.X), 9):
        feed(by_chunk, cell, s, start, stop, importance=False)
        feed(resumed, cell, s, start, stop, importance=False)
        resumed.save(tmp_path / "m.onepass")
        resumed = LinearModel.load(tmp_path / "m.onepass")
        start = stop
    on_the_way = at_once.predict_then_learn(cell.form.make(s.X), s.y)
    assert list(on_the_way) == predicted
    estimators = by_estimator(cell, s, task, rng, tmp_path / "e.onepass")
    expected = saved(by_one)
    for way, model in {"chunks": by_chunk, "predict_then_learn": at_once, "files": resumed, **estimators}.items():
        assert saved(model) == expected, way


def by_estimator(cell: Cell, s: Stream, task: str | None, rng: np.random.Generator, path: Path) -> dict[str, Any]:
    """The stream's methods of an estimator: rows and chunks in turn, with files in between; and at once."""
    in_turn, at_once = cell.estimator(task), cell.estimator(task)
    at_once.learn_many(cell.form.make(s.X), s.y)
    start = 0
    for number, stop in enumerate(cuts(rng, len(s.X), 9)):
        if number % 2:
            feed(in_turn, cell, s, start, stop, importance=False)
        else:
            for i in range(start, stop):
                teach(in_turn, cell, s, i, importance=False)
        if number % 3 == 0:
            in_turn.save(path)
            in_turn = onepass.load(path)
        start = stop
    return {"estimator in turn": in_turn, "estimator at once": at_once}


@pytest.mark.parametrize("index", ["csr32", "csr64"])
@pytest.mark.parametrize("task", grid.TASKS)
def test_learn_one_takes_the_rows_of_a_sparse_matrix(task: str, index: str) -> None:
    """partial_fit(X, y) is the loop of learn_one(X[i], y[i]) for a CSR matrix too, bit for bit."""
    cell = Cell("pa1", task, index, "average")
    s = cell.stream()
    at_once, by_one = cell.model(s.classes), cell.model(s.classes)
    at_once.learn_many(cell.form.make(s.X), s.y)
    scores = at_once.score_many(cell.form.make(s.X))
    for i in range(len(s.X)):
        row = cell.form.row(s.X, i)
        by_one.learn_one(row, s.y[i])
        assert np.array_equal(np.atleast_1d(at_once.score_one(row)), scores[i])
    assert saved(by_one) == saved(at_once)


def test_the_grid_holds_every_rule_loss_and_schedule() -> None:
    made = [grid.make_rule(name) for name in grid.RULES]
    assert {rule.name for rule in made} >= set(rules.RULES) - grid.ELSEWHERE
    sgd = [rule for rule in made if isinstance(rule, rules.SGD)]
    assert {losses.make(rule.loss).name for rule in sgd} == set(losses.LOSSES)
    assert {rule._schedule().name for rule in sgd} == set(schedules.SCHEDULES)
    assert {rule.l2 > 0 for rule in sgd} == {True, False}


def test_different_streams_give_different_bytes() -> None:
    """The comparison above can fail: one importance changed, one bit of one value, one label."""
    s = grid.stream("binary")
    models = []
    for change in ("none", "value", "label", "importance", "order"):
        X, y, c = s.X.copy(), s.y.copy(), s.importance.copy()
        if change == "value":
            X[-2, 0] = np.nextafter(X[-2, 0] + 1.0, 9.0)
        elif change == "label":
            y[5] = "yes" if y[5] == "no" else "no"
        elif change == "importance":
            c[7] += 0.01
        elif change == "order":
            X[[3, 4]], y[[3, 4]], c[[3, 4]] = X[[4, 3]], y[[4, 3]], c[[4, 3]]
        model = LinearModel("adaline", classes=s.classes)
        model.learn_many(X, y, c)
        models.append(saved(model))
    assert len(set(models)) == len(models)
