"""LASVM against its transcription, its worked numbers, its invariants, and the batch solution it converges to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from onepass import LaSVMClassifier, _native, kernels

from .lasvm import LaSVM

LINE = np.array([[-2.0], [-1.0], [1.0], [3.0]])
LINE_CLASSES = np.array([0, 0, 1, 1])


def engine(kernel: kernels.Kernel, d: int, **options: Any) -> _native.LasvmEngine:
    """One machine, class 1 against class 0."""
    defaults = {"C": 1.0, "tau": 1e-3, "cache_bytes": 2**28, "reprocess_steps": 1, "reprocess_until": math.inf}
    made = _native.LasvmEngine(kernel.native(), False, d, {**defaults, "may_be_indefinite": False, **options})
    made.add_machine(1, 0)
    return made


def learn(machine: _native.LasvmEngine, X: np.ndarray, classes: np.ndarray, order: Any, **options: Any) -> None:
    machine.learn(X, classes.astype(np.int64), np.ones(len(X)), np.array(order, dtype=np.int64), True, **options)


def by_example(machine: _native.LasvmEngine, X: np.ndarray) -> tuple[list[int], np.ndarray, np.ndarray]:
    """S in the order of slots, α and g by example. The rows of X must differ."""
    state = machine.state()
    known = {row.tobytes(): i for i, row in enumerate(X)}
    alpha, gradient = np.zeros(len(X)), np.zeros(len(X))
    S = []
    for slot in np.flatnonzero(state["lower"][0] < state["upper"][0]):
        k = known[state["x"][slot].tobytes()]
        S.append(k)
        alpha[k], gradient[k] = state["alpha"][0, slot], state["gradient"][0, slot]
    return S, alpha, gradient


# -- worked numbers ----------------------------------------------------------------------------------------------------

# after: S, α by example, b, W (specification 12 §7; examples from 0)
HAND = [
    ("reprocess", None, {0, 3}, {0: -0.08, 3: 0.08}, -0.2, 0.08),
    ("process", 1, {0, 1, 3}, {1: -0.08, 3: 0.08}, -0.2, 0.1088),
    ("reprocess", None, {1, 3}, {1: -0.125, 3: 0.125}, -0.5, 0.125),
    ("process", 2, {1, 2, 3}, {1: -0.125, 2: 0.125}, -0.5, 0.21875),
    ("reprocess", None, {1, 2}, {1: -0.5, 2: 0.5}, 0.0, 0.5),
]


def test_worked_numbers_of_the_transcription() -> None:
    machine = LaSVM(LINE @ LINE.T, 2 * LINE_CLASSES - 1, C=10, tau=1e-6)
    machine.seed([0, 3])
    for verb, k, S, alpha, b, W in HAND:
        machine.reprocess() if k is None else machine.process(k)
        assert set(machine.S) == S, verb
        np.testing.assert_allclose(machine.alpha, [alpha.get(i, 0) for i in range(4)], atol=1e-12)
        assert machine.b == pytest.approx(b) and machine.objective() == pytest.approx(W)
    assert machine.delta == 0


def test_worked_numbers() -> None:
    machine = engine(kernels.Linear(), 1, C=10.0, tau=1e-6, reprocess_steps=0)  # `learn` is then PROCESS alone
    learn(machine, LINE, LINE_CLASSES, [0, 3], seeding=True)
    for verb, k, S, alpha, b, W in HAND:
        if k is None:
            machine.reprocess(0)
        else:
            learn(machine, LINE, LINE_CLASSES, [k])
        held, got, _ = by_example(machine, LINE)
        assert set(held) == S, verb
        np.testing.assert_allclose(got, [alpha.get(i, 0) for i in range(4)], atol=1e-12)
        assert machine.biases() == [pytest.approx(b)] and machine.objectives() == [pytest.approx(W)]
    assert machine.deltas() == [0.0]


def test_one_pass_over_the_line_is_the_maximum_margin() -> None:
    model = LaSVMClassifier(C=10, kernel="linear", tau=1e-6).fit(LINE, LINE_CLASSES)
    np.testing.assert_allclose(model.decision_function(LINE), LINE[:, 0], atol=1e-9)
    assert model.n_support_ == 2
    np.testing.assert_allclose(model.objective_, [0.5])


# -- the transcription, round by round ---------------------------------------------------------------------------------


class Watched(LaSVM):
    """Notes rounds in which rounding decides: a step that ends inside its bounds leaves g_i = g_j."""

    tied = False

    def pair(self) -> tuple[int | None, int | None]:
        for candidates, sign in ((self.can_rise(), 1), (self.can_fall(), -1)):
            best = sorted((sign * self.g[s] for s in candidates), reverse=True)[:2]
            self.tied |= len(best) == 2 and best[0] - best[1] < 1e-9
        return super().pair()


@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Linear(), kernels.Polynomial(3, 0.5, 1.0)], ids=repr)
@pytest.mark.parametrize("C", [0.5, 100.0])
def test_every_round_is_the_transcriptions(kernel: kernels.Kernel, C: float) -> None:
    X, classes = make_moons(150, noise=0.25, random_state=3)
    K, y = kernel.block(X, X), 2 * classes - 1
    machine = engine(kernel, 2, C=C)
    order = np.random.default_rng(1).permutation(150)
    learn(machine, X, classes, order[:10], seeding=True)
    compared = 0
    for k in [*order, *order]:
        oracle = Watched(K, y, C)
        oracle.S, oracle.alpha, oracle.g = by_example(machine, X)
        oracle.b, oracle.delta = machine.biases()[0], machine.deltas()[0]
        oracle.learn([k])
        learn(machine, X, classes, [k])
        if oracle.tied:
            continue
        S, alpha, gradient = by_example(machine, X)
        assert set(S) == set(oracle.S)
        np.testing.assert_allclose(alpha, oracle.alpha, atol=1e-9 * C)
        np.testing.assert_allclose(gradient[S], oracle.g[S], atol=1e-8)
        assert machine.biases()[0] == pytest.approx(oracle.b, abs=1e-8)
        assert machine.deltas()[0] == pytest.approx(oracle.delta, abs=1e-8)
        compared += 1
    assert compared > 60


# -- invariants (specification 12 §7) ----------------------------------------------------------------------------------


def check_invariants(machine: _native.LasvmEngine, kernel: kernels.Kernel, C: float) -> float:
    """Σα = 0, bounds, gradients as their definition; returns W."""
    state = machine.state()
    alpha, lower, upper = state["alpha"][0], state["lower"][0], state["upper"][0]
    held = lower < upper
    assert abs(alpha.sum()) <= 1e-9 * max(1, C * held.sum())
    assert np.all((lower <= alpha) & (alpha <= upper)) and not np.any(alpha[~held])
    X, y = state["x"][held], np.sign(lower + upper)[held]
    K = kernel.block(X, X)
    np.testing.assert_allclose(state["gradient"][0, held], y - K @ alpha[held], atol=1e-8 * max(1, C))
    W = float(alpha[held] @ y - alpha[held] @ K @ alpha[held] / 2)
    assert machine.objectives()[0] == pytest.approx(W, rel=1e-9, abs=1e-8 * max(1, C))
    return W


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 3.0]))),
    st.sampled_from([kernels.RBF(0.7), kernels.Linear(), kernels.Polynomial(2), kernels.Laplacian(0.5)]),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.booleans(),
)
def test_invariants_on_any_stream(
    stream: list[tuple[int, int, bool, float]], kernel: kernels.Kernel, C: float, finishing: bool
) -> None:
    """Grid points with duplicates, of one label or of both, weights and zero weights among them."""
    machine = engine(kernel, 2, C=C)
    before = 0.0
    for a, b, positive, weight in stream:
        machine.learn(np.array([[a, b]], dtype=float), np.array([int(positive)]), np.array([weight]))
        W = check_invariants(machine, kernel, 3 * C)
        assert W >= before - 1e-9 * max(1, abs(before)), "W must never decrease"
        before = W
    if finishing:
        machine.finish()
        assert check_invariants(machine, kernel, 3 * C) >= before - 1e-9 * max(1, abs(before))


def test_the_duality_gap_is_never_negative_and_closes() -> None:
    X, y = make_moons(200, noise=0.3, random_state=0)
    C, kernel, sign = 5.0, kernels.RBF(1.0), 2 * y - 1
    model = LaSVMClassifier(C=C, kernel=kernel, tau=1e-5)
    for stop in range(20, 201, 20):
        model.partial_fit(X[stop - 20 : stop], y[stop - 20 : stop], classes=[0, 1])
        alpha, vectors = model.dual_coef_[0], model.support_vectors_
        norm = alpha @ kernel.block(vectors, vectors) @ alpha / 2
        hinge = np.maximum(0, 1 - sign[:stop] * model.decision_function(X[:stop])).sum()
        assert norm + C * hinge - model.objective_[0] >= -1e-8
    model = LaSVMClassifier(C=C, kernel=kernel, tau=1e-5, passes=20, random_state=0).fit(X, y)
    alpha, vectors = model.dual_coef_[0], model.support_vectors_
    norm = alpha @ kernel.block(vectors, vectors) @ alpha / 2
    gap = norm + C * np.maximum(0, 1 - sign * model.decision_function(X)).sum() - model.objective_[0]
    assert 0 <= gap < 1e-3 * model.objective_[0]


# -- convergence -------------------------------------------------------------------------------------------------------


def batch(X: np.ndarray, y: np.ndarray, C: float, gamma: float, weights: Any = None) -> tuple[SVC, float]:
    """The batch solution, and its W."""
    svc = SVC(C=C, gamma=gamma, tol=1e-6).fit(X, y, weights)
    alpha, S = svc.dual_coef_[0], svc.support_
    K = rbf_kernel(X[S], gamma=gamma)
    return svc, float(alpha @ (2 * y[S] - 1) - alpha @ K @ alpha / 2)


MOONS = [(300, 1.0, 1.0, 0.3, 0.95), (300, 10.0, 2.0, 0.2, 0.85), (400, 100.0, 0.5, 0.25, 0.5)]


@pytest.mark.parametrize(("n", "C", "gamma", "noise", "after_one"), MOONS)
def test_converges_to_the_batch_solution(n: int, C: float, gamma: float, noise: float, after_one: float) -> None:
    X, y = make_moons(n, noise=noise, random_state=0)
    svc, best = batch(X, y, C, gamma)
    f = svc.decision_function(X)
    ratios = []
    for passes, tau, near in ((1, 1e-3, math.inf), (2, 1e-3, math.inf), (30, 1e-3, 0.02), (60, 1e-5, 1e-3)):
        model = LaSVMClassifier(C=C, gamma=gamma, tau=tau, passes=passes, finish=passes > 2, random_state=0).fit(X, y)
        ratios.append(model.objective_[0] / best)
        assert ratios[-1] <= 1 + 1e-9
        difference = np.abs(model.decision_function(X) - f)
        assert difference.max() <= near
        if passes > 2:
            assert ratios[-1] >= 1 - 1e-5
            assert np.all((model.predict(X) == svc.predict(X)) | (np.abs(f) < 0.02))
            assert abs(model.n_support_ - len(svc.support_)) <= 0.05 * len(svc.support_)
    assert after_one <= ratios[0] <= ratios[1] <= ratios[2]


def test_importances_multiply_the_bound() -> None:
    X, y = make_moons(200, noise=0.3, random_state=1)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 4.0], 200)
    svc, _ = batch(X, y, 2.0, 1.0, weights)
    options: dict[str, Any] = {"C": 2.0, "gamma": 1.0, "tau": 1e-5, "passes": 40, "random_state": 0}
    model = LaSVMClassifier(**options).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-3)
    weighted = LaSVMClassifier(**options, class_weight={1: 3.0}).fit(X, y)
    svc = SVC(C=2.0, gamma=1.0, tol=1e-6, class_weight={1: 3.0}).fit(X, y)
    np.testing.assert_allclose(weighted.decision_function(X), svc.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_machines_of_several_classes_converge_each_to_its_own_batch_solution(multiclass: str) -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16, y[:400]
    model = LaSVMClassifier(C=10, gamma=0.05, tau=1e-5, passes=15, multiclass=multiclass, random_state=0).fit(X, y)
    f = model._fitted().machine_scores(X)
    svc = SVC(C=10, gamma=0.05, tol=1e-6, decision_function_shape="ovo")
    if multiclass == "ovr":
        expected = OneVsRestClassifier(svc).fit(X, y).decision_function(X)
    else:  # scikit-learn's pairs are (i, j) with i positive, in the order of i
        of_pair = {pair: -column for pair, column in zip(
            [(i, j) for i in range(10) for j in range(i + 1, 10)], svc.fit(X, y).decision_function(X).T, strict=True
        )}  # fmt: skip
        expected = np.stack([of_pair[i, j] for j, i in model._fitted().pairs()], axis=1)
    np.testing.assert_allclose(f, expected, atol=2e-3)
    assert np.mean(model.predict(X) == y) == 1.0


# -- the digits experiment (specification 12 §7) -----------------------------------------------------------------------


def test_digits_experiment() -> None:
    """Ten problems of one digit against the rest: error, support vectors and W of one and two passes, and selection."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16, y[order]
    train, test = slice(0, 1200), slice(1200, None)
    figures: dict[str, list[tuple[float, float, float]]] = {}
    for digit in range(10):
        target = (y == digit).astype(int)
        svc, best = batch(X[train], target[train], 100.0, 0.05)
        error = np.mean(svc.predict(X[test]) != target[test])
        figures.setdefault("batch", []).append((error, len(svc.support_), 1.0))
        ways: dict[str, dict[str, Any]] = {"x1": {}, "x2": {"passes": 2}}
        ways |= {way: {"selection": way, "max_examples": 250} for way in ("gradient", "active", "autoactive")}
        for name, options in ways.items():
            model = LaSVMClassifier(C=100, gamma=0.05, random_state=digit, **options).fit(X[train], target[train])
            error = np.mean(model.predict(X[test]) != target[test])
            figures.setdefault(name, []).append((error, model.n_support_, model.objective_[0] / best))
            if "max_examples" in options:
                assert (model.t_, model.stopped_by_) == (250, "max_examples")
    mean = {name: np.mean(rows, axis=0) for name, rows in figures.items()}
    assert mean["batch"][1] == pytest.approx(69, abs=8)
    assert mean["x1"][0] <= mean["batch"][0] + 0.003
    assert 0.75 <= mean["x1"][1] / mean["batch"][1] <= 1.05
    assert mean["x2"][2] >= 0.998
    for way in ("gradient", "active", "autoactive"):
        assert mean[way][0] <= mean["batch"][0] + 0.003, way


# -- edges -------------------------------------------------------------------------------------------------------------


def test_one_class_only_is_predicted_without_a_step() -> None:
    X = np.random.default_rng(0).normal(size=(1200, 2))
    for label in ("only", "other"):
        model = LaSVMClassifier().fit(X, [label] * len(X))
        assert set(model.predict(X)) == {label} and model.k_ == 0 and model.n_support_ == 0
    stream = LaSVMClassifier().partial_fit(X, np.ones(len(X)), classes=[0, 1])
    assert set(stream.predict(X)) == {1} and np.isinf(stream.delta_[0])
    # What is collected until the other class comes has an end.
    assert stream._fitted().engine.state()["labels"].shape == (1000,)
    stream.partial_fit(X[:1] + 5, [0])
    assert stream.predict(X[:1] + 5).tolist() == [0] and stream.k_ > 0


def test_duplicates_with_opposite_labels_go_to_the_bound() -> None:
    machine = engine(kernels.RBF(1.0), 1, C=2.0)
    X = np.array([[0.5], [0.5]])
    machine.learn(X, np.array([0, 1]), np.ones(2))
    state = machine.state()
    assert sorted(state["alpha"][0].tolist()) == [-2.0, 2.0]
    check_invariants(machine, kernels.RBF(1.0), 2.0)
    model = LaSVMClassifier(C=2.0).fit(np.repeat(X, 20, axis=0), [0, 1] * 20)
    assert np.isfinite(model.decision_function(X)).all()


def test_gradients_are_recomputed_after_ten_thousand_steps() -> None:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(4000, 2)), generator.integers(0, 2, 4000)
    machine = engine(kernels.RBF(2.0), 2, C=1e6, reprocess_steps=3)
    machine.learn(X, y, np.ones(4000))
    assert machine.steps() > 10_000
    check_invariants(machine, kernels.RBF(2.0), 1.0)
