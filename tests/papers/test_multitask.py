"""The multitask Perceptron of Cavallanti, Cesa-Bianchi and Gentile 2010, as features for any rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onepass
from onepass.errors import InputError, ParameterError
from onepass.transforms import TaskFeatures


def streams(tasks: int = 4, n: int = 400, d: int = 6, seed: int = 0) -> list[tuple[int, np.ndarray, int]]:
    """(task, x, y): hyperplanes that lie around a common one."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=d) + 0.3 * rng.normal(size=(tasks, d))
    out = []
    for _ in range(n):
        k, x = int(rng.integers(tasks)), rng.normal(size=d)
        out.append((k, x, int(np.sign(u[k] @ x)) or 1))
    return out


def named(k: int, x: np.ndarray) -> dict[str, Any]:
    return {"task": f"t{k}", **{f"x{j}": value for j, value in enumerate(x.tolist())}}


def score(pipeline: Any, x: Any) -> float:
    (_, transform), (_, model) = pipeline.steps
    return float(model.score_one(transform.transform_one(x)))


@pytest.mark.parametrize("b", [1.0, 4.0, 20.0])
def test_it_is_the_papers_perceptron(b: float) -> None:
    """Update of all tasks: w_j ← w_j + y A⁻¹_ij x, A⁻¹ = ((b + K) on the diagonal, b elsewhere) / ((1 + b)K)."""
    K, d = 4, 6
    inverse = (np.full((K, K), b) + K * np.eye(K)) / ((1 + b) * K)
    w = np.zeros((K, d))
    model = TaskFeatures(share=b / (b + K)) | onepass.LinearClassifier("perceptron", fit_intercept=False)
    scale = inverse[0, 0]  # ours keeps the norm of x: the diagonal is 1
    mistakes = 0
    for k, x, y in streams():
        assert score(model, named(k, x)) * scale == pytest.approx(w[k] @ x, abs=1e-9)
        model.learn_one(named(k, x), y)
        if y * (w[k] @ x) <= 0:
            w += y * inverse[:, [k]] * x
            mistakes += 1
    assert 20 < mistakes < 200


def test_tasks_that_are_alike_learn_from_each_other() -> None:
    errors = {}
    for share in (0.0, 0.7, 1.0):
        model = TaskFeatures(share=share) | onepass.LinearClassifier("pa1", fit_intercept=False)
        wrong = 0
        for k, x, y in streams(tasks=12, n=1500, d=10):
            wrong += model.predict_one(named(k, x)) != y
            model.learn_one(named(k, x), y)
        errors[share] = wrong / 1500
    assert errors[0.7] < errors[0.0] and errors[0.7] < errors[1.0]


def test_tables_give_the_same_scores() -> None:
    rows = streams(n=200)
    X = np.array([[k, *x] for k, x, _ in rows])
    y = np.array([label for *_, label in rows])
    table = TaskFeatures(0, tasks=[0, 1, 2, 3]) | onepass.LinearClassifier("pa1")
    mappings = TaskFeatures() | onepass.LinearClassifier("pa1")
    table.learn_many(X, y)
    mappings.learn_many([named(k, x) for k, x, _ in rows], y.tolist())
    for k, x, _ in rows[:20]:
        assert score(table, np.array([k, *x])) == pytest.approx(score(mappings, named(k, x)), abs=1e-9)


def test_what_is_refused() -> None:
    model = TaskFeatures() | onepass.LinearClassifier("pa1")
    with pytest.raises(InputError, match="must say its task"):
        model.learn_one({"a": 1.0}, 1)
    with pytest.raises(InputError, match=r"needs dense rows and tasks"):
        TaskFeatures(0).transform_many(np.ones((2, 3)))
    with pytest.raises(InputError, match="row 1: task 7"):
        TaskFeatures(0, tasks=[1, 2]).transform_many(np.array([[1.0, 2.0], [7.0, 2.0]]))
    with pytest.raises(InputError, match="number of a column"):
        TaskFeatures(5, tasks=[1]).transform_many(np.ones((2, 3)))
    for bad in ({"share": 2}, {"share": True}, {"tasks": "ab"}):
        with pytest.raises(ParameterError, match="expected"):
            TaskFeatures(**bad).transform_one({"task": 1, "a": 2.0})  # type: ignore[arg-type]
