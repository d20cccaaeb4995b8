"""Continual learning: the measures, the memory, each learner against its formula, and forgetting with its cure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits
from support.estimator_checks import assert_checks_pass
from support.grid import csr, dicts

import onepass
from onepass.compose.continual import (
    AGEM,
    EWC,
    Replay,
    SoftmaxSGD,
    Task,
    TaskMatrix,
    learn_tasks,
    permuted_tasks,
    split_tasks,
)
from onepass.compose.continual.learners import projected
from onepass.compose.continual.memory import Memory
from onepass.errors import InputError, ParameterError

LEARNERS: dict[str, Any] = {
    "plain": lambda: SoftmaxSGD(),
    "kernel": lambda: SoftmaxSGD(kernel="rbf:gamma=0.2", D=40),
    "laplacian": lambda: Replay(kernel="laplacian:gamma=0.2", D=40, memory=20),
    "replay": lambda: Replay(memory=30, replayed=5),
    "agem": lambda: AGEM(memory=30, replayed=8),
    "ewc": lambda: EWC(lam=5.0, samples=20),
}


def stream(n: int = 150, d: int = 5, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, classes)), axis=1)


# -- the spec's numbers ------------------------------------------------------------------------------------------------


def test_the_measures_of_the_spec() -> None:
    R = TaskMatrix(list("abc"), [[0.9, 0.2, 0.1], [0.6, 0.8, 0.1], [0.5, 0.7, 0.9]], [0.1, 0.1, 0.1])  # type: ignore[arg-type]
    assert R.accuracy == pytest.approx(0.7)
    assert R.backward_transfer == pytest.approx(-0.25)
    assert R.forgetting == pytest.approx(0.25)
    assert R.forward_transfer == pytest.approx(0.05)
    assert "accuracy 0.700" in str(R) and '"baseline": [0.1' in R.to_json()
    alone = TaskMatrix(["a"], [[0.5]], [0.1])  # type: ignore[arg-type]
    assert (alone.forgetting, alone.backward_transfer, alone.forward_transfer) == (0.0, 0.0, 0.0)
    with pytest.raises(InputError):
        TaskMatrix(["a"], [[0.5, 1]], [0.1])  # type: ignore[arg-type]


def test_the_projection_of_the_spec() -> None:
    np.testing.assert_allclose(projected(np.array([1.0, -2.0]), np.array([1.0, 1.0])), [1.5, -1.5])
    np.testing.assert_array_equal(projected(np.array([1.0, 2.0]), np.array([1.0, 1.0])), [1.0, 2.0])
    np.testing.assert_array_equal(projected(np.array([1.0, 2.0]), np.zeros(2)), [1.0, 2.0])


def test_the_reservoir_keeps_all_with_the_same_probability() -> None:
    m, n, trials = 10, 60, 1500
    kept = np.zeros(n)
    for seed in range(trials):
        memory = Memory.empty(m, seed)
        for i in range(n):
            memory.offer(np.array([float(i)]), i)
            assert len(memory) == min(i + 1, m)
        kept[memory.codes] += 1
    assert stats.chisquare(kept).pvalue > 1e-3
    drawn = np.zeros(m)
    for offered in range(2000):
        memory.offered = offered
        places = memory.draw(3)
        assert len(set(places.tolist())) == 3
        drawn[places] += 1
    assert stats.chisquare(drawn).pvalue > 1e-3


# -- each learner is its formula ---------------------------------------------------------------------------------------


def gradient(W: np.ndarray, x: np.ndarray, y: int) -> np.ndarray:
    z = np.concatenate([[1.0], x])
    p = np.exp(W @ z) / np.exp(W @ z).sum()
    p[y] -= 1.0
    return np.outer(p, z)


def weights(model: Any) -> np.ndarray:
    return np.column_stack([model.intercept_, model.coef_])


def test_plain_steps_are_those_of_softmax_regression() -> None:
    X, y = stream()
    W = np.zeros((3, 6))
    for x, label in zip(X, y, strict=True):
        W -= 0.05 * gradient(W, x, label)
    model = SoftmaxSGD().partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_allclose(weights(model), W, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", [Replay, AGEM])
def test_replay_and_agem_are_their_formulas(kind: Any) -> None:
    X, y = stream(80)
    model = kind(memory=20, replayed=6)
    W, memory = np.zeros((3, 6)), Memory.empty(20, 0)
    for x, label in zip(X, y, strict=True):
        g = gradient(W, x, label)
        if len(memory):
            past = np.mean([gradient(W, memory.rows[i], memory.codes[i]) for i in memory.draw(6)], axis=0)
            if kind is Replay:
                g = g + past
            elif (g * past).sum() < 0:
                g = g - (g * past).sum() / (past * past).sum() * past
        W = W - 0.05 * g
        memory.offer(x, int(label))
    model.partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_allclose(weights(model), W, atol=1e-12)


def test_ewc_minimises_the_anchored_loss() -> None:
    X, y = stream(60)
    model = EWC(lam=3.0, samples=100)
    model.partial_fit(X, y, classes=[0, 1, 2])
    anchor = weights(model)
    model.end_task()
    F = np.mean([gradient(anchor, *each) ** 2 for each in zip(X, y, strict=True)], axis=0)
    W = anchor.copy()
    Z, labels = stream(60, seed=9)
    for x, label in zip(Z, labels, strict=True):
        half = W - 0.05 * gradient(W, x, label)
        W = (half + 0.05 * 3.0 * F * anchor) / (1 + 0.05 * 3.0 * F)
    model.partial_fit(Z, labels)
    np.testing.assert_allclose(weights(model), W, atol=1e-12)
    wild = EWC(lam=1e9)
    wild.partial_fit(X, y, classes=[0, 1, 2])
    wild.end_task()
    before = weights(wild)
    wild.partial_fit(Z, labels)
    assert np.all(np.isfinite(weights(wild))) and np.abs(weights(wild) - before).max() < 0.2


# -- promises ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("form", ["dense", "csr", "named"])
def test_the_same_bytes_however_the_data_arrives(name: str, form: str, tmp_path: Path) -> None:
    X, y = stream()
    shape: Any = {"dense": X, "csr": csr(X), "named": dicts(X)}[form]
    written = []
    for size in (1, 7, 77):
        model = LEARNERS[name]()
        for start in range(0, 150, size):
            if size == 1:
                model.learn_one(shape[start], int(y[start]))
            else:
                model.learn_many(shape[start : start + size], y[start : start + size].tolist())
            if start + size == 77:
                model.end_task()
                model.save(tmp_path / "m")
                model = onepass.load(tmp_path / "m")
        model.save(tmp_path / "m")
        written.append((tmp_path / "m").read_bytes())
    assert len(set(written)) == 1
    assert np.mean([a == b for a, b in zip(model.predict_many(shape), y.tolist(), strict=True)]) > 0.5


@pytest.mark.full(most=3)
@pytest.mark.parametrize("name", LEARNERS)
def test_scikit_learns_checks(name: str) -> None:
    assert_checks_pass(LEARNERS[name]())


@pytest.mark.parametrize("name", LEARNERS)
def test_bad_input_leaves_a_learner_as_it_was(name: str, tmp_path: Path) -> None:
    X, y = stream()
    model = LEARNERS[name]()
    model.learn_many(X, y.tolist())
    model.save(tmp_path / "before")
    broken = X[:20].copy()
    broken[13, 2] = np.nan
    for call in (
        lambda: model.learn_many(broken, y[:20].tolist()),
        lambda: model.learn_one(broken[13], 0),
        lambda: model.learn_many(X[:20], y[:19].tolist()),
        lambda: model.learn_one(X[0][:3], 0),
    ):
        with pytest.raises(InputError):
            call()
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


@pytest.mark.parametrize(
    "bad",
    [
        lambda: SoftmaxSGD(eta=0),
        lambda: SoftmaxSGD(kernel="linear"),
        lambda: SoftmaxSGD(kernel="rbf:gamma=1", D=3),
        lambda: Replay(memory=0),
        lambda: AGEM(replayed=0),
        lambda: EWC(lam=-1),
        lambda: EWC(gamma=2),
    ],
)
def test_bad_parameters(bad: Any) -> None:
    with pytest.raises(ParameterError, match="expected"):
        bad().learn_one([1.0, 2.0], 0)


def test_tasks_are_made_and_refused() -> None:
    X, y = stream(40, classes=4)
    split = split_tasks(X, y, 2, passes=2)
    assert [task.name for task in split] == ["0 1", "2 3"]
    assert sum(len(task.y) for task in split) == 60 and sum(len(task.y_test) for task in split) == 10
    permuted = permuted_tasks(X, y, 3)
    np.testing.assert_array_equal(np.sort(permuted[1].X_test, axis=1), np.sort(permuted[0].X_test, axis=1))
    assert not np.array_equal(permuted[1].X_test, permuted[0].X_test)
    with pytest.raises(ParameterError):
        learn_tasks(SoftmaxSGD(), [])
    with pytest.raises(ParameterError, match=r"tasks\[1\] is 2: expected a continual.Task"):
        learn_tasks(SoftmaxSGD(), [split[0], 2])
    with pytest.raises(ParameterError, match="size=0"):
        learn_tasks(SoftmaxSGD(), split, size=0)
    with pytest.raises(ParameterError):
        split_tasks(X, y, test=1.5)


# -- forgetting, and its cure ------------------------------------------------------------------------------------------


def test_forgetting_and_its_cure() -> None:
    """Spec 14 §6: replay forgets at most half as much as the plain learner, A-GEM is more accurate than it on both
    kinds of tasks, EWC on permuted columns alone.
    """
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    kinds = {
        "split": (split_tasks(X, y, 2, passes=2), 0.8),
        "permuted": (permuted_tasks(X, y, 4, passes=1), 0.25),
    }
    for kind, (tasks, least) in kinds.items():
        found = {}
        models = {"plain": SoftmaxSGD(), "replay": Replay(), "agem": AGEM()}
        if kind == "permuted":
            models["ewc"] = EWC(lam=5.0)
        for name, model in models.items():
            found[name] = learn_tasks(model, tasks, classes=list(range(10)))
        plain = found["plain"]
        assert plain.forgetting > least * (1.0 if kind == "split" else 0.4)
        assert found["replay"].forgetting <= 0.5 * plain.forgetting
        assert found["agem"].accuracy > plain.accuracy
        if "ewc" in found:
            assert found["ewc"].accuracy > plain.accuracy
        assert isinstance(tasks[0], Task)
