"""LaSVMClassifier keeps the promises: the same bits however data arrive, nothing malformed learned, files, limits."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from support.estimator_checks import assert_checks_pass
from support.positions import position

import onepass as op
from onepass import LaSVMClassifier, _native, kernels
from onepass.errors import InputError, LabelError, NumericalError, ParameterError
from onepass.persistence import registry

NAN, INF = float("nan"), float("inf")


def saved(model: LaSVMClassifier, folder: Path) -> bytes:
    model.save(folder / "now.onepass")
    return (folder / "now.onepass").read_bytes()


def digits(classes: int, n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(n_class=classes, return_X_y=True)
    return X[:n] / 16, y[:n]


# -- promise 1 ---------------------------------------------------------------------------------------------------------

FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "f64": lambda X: X,
    "f32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "named": lambda X: [{f"x{j}": float(v) for j, v in enumerate(row)} for row in X],
}


def row(X: Any, i: int) -> Any:
    return X[i]


DECLARED = [(form, declared) for form in FORMS for declared in (True, False) if not declared or form != "named"]


@pytest.mark.full
@pytest.mark.parametrize(("form", "declared"), DECLARED)  # partial_fit takes tables
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_chunks_files_and_pickles(form: str, classes: int, multiclass: str, declared: bool, tmp_path: Path) -> None:
    X, y = digits(classes)
    table = FORMS[form](X)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], len(X))
    options: dict[str, Any] = {"C": 5.0, "gamma": 0.05, "multiclass": multiclass}

    def feed(model: LaSVMClassifier, start: int, stop: int) -> None:
        if declared:
            model.partial_fit(table[start:stop], y[start:stop], list(range(classes)), weights[start:stop])
        else:
            model.learn_many(table[start:stop], y[start:stop], weights[start:stop])

    whole = LaSVMClassifier(**options)
    feed(whole, 0, len(X))
    expected = saved(whole, tmp_path)
    assert whole.t_ == len(X) and whole.n_support_ > 5
    generator = np.random.default_rng(1)
    ends = np.unique([*generator.integers(1, len(X), 40), len(X)])
    chunked, resumed, single = (LaSVMClassifier(**options) for _ in range(3))
    start = 0
    for stop in ends.tolist():
        feed(chunked, start, stop)
        feed(resumed, start, stop)
        if stop % 2:
            saved(resumed, tmp_path)
            resumed = op.load(tmp_path / "now.onepass")
        else:
            resumed = pickle.loads(pickle.dumps(resumed))
        start = stop
    assert saved(chunked, tmp_path) == expected
    assert saved(resumed, tmp_path) == expected
    first = 1 if declared else 0
    if declared:
        feed(single, 0, 1)
    for i in range(first, len(X)):
        single.learn_one(row(table, i), y[i], weights[i])
    if form != "f32":  # a single row is float64
        assert saved(single, tmp_path) == expected
    assert single.predict_one(row(table, 3)) == whole.predict_one(row(table, 3))


@pytest.mark.parametrize("kernel", ["rbf:gamma=0.05", "laplacian:gamma=0.05", "polynomial:degree=3,gamma=0.1", "chi2"])
def test_no_bit_depends_on_the_instruction_set_or_the_cache(kernel: str, tmp_path: Path) -> None:
    X, y = digits(5, 300)
    X = X * 0.7123  # numbers whose products must be rounded
    best = _native.isa()
    results, evaluations = set(), []
    try:
        for isa in _native.isas():
            _native.use_isa(isa)
            for cache_mb in (0, 0.05, 256):
                model = LaSVMClassifier(C=10, kernel=kernel, cache_mb=cache_mb, random_state=3, passes=2).fit(X, y)
                model.cache_mb = 1
                model._fitted().cache_mb = 1
                results.add(saved(model, tmp_path))
                evaluations.append(model.kernel_evaluations_)
    finally:
        _native.use_isa(best)
    assert len(results) == 1
    assert evaluations[0] > 1.5 * evaluations[2]  # without room rows are computed again


def test_the_cache_stays_within_its_bytes() -> None:
    X, y = make_moons(600, noise=0.4, random_state=0)
    for cache_mb in (0.02, 0.1, 1.0):
        model = LaSVMClassifier(C=10, gamma=1.0, cache_mb=cache_mb).partial_fit(X[:300], y[:300], classes=[0, 1])
        for start in range(300, 600, 10):
            model.partial_fit(X[start : start + 10], y[start : start + 10])
            assert model.cache_bytes_ <= cache_mb * 2**20
    slots = len(model._fitted().engine.state()["labels"])
    least = LaSVMClassifier(C=10, gamma=1.0, cache_mb=0).fit(X, y)
    assert 0 < least.cache_bytes_ <= 2 * 8 * (1.25 * 600 + 64) and slots > 100  # two rows are needed for a step


def test_fit_does_not_remember_which_rows_it_saw() -> None:
    X, y = make_moons(100, noise=0.3, random_state=0)
    model = LaSVMClassifier(C=1, random_state=0).fit(X, y)
    before = model.t_
    model.partial_fit(X, y)
    assert model.t_ == before + 100
    state = model._fitted().engine.state()
    assert len({x.tobytes() for x in state["x"]}) < len(state["x"])  # a row came a second time, as a new one


def test_finishing_at_any_time() -> None:
    X, y = make_moons(300, noise=0.3, random_state=0)
    model = LaSVMClassifier(C=10, gamma=1.0)
    for start in range(0, 300, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1])
        W = model.objective_[0]
        model.finish_now()
        assert model.delta_[0] <= 1e-3 and model.objective_[0] >= W
    assert np.mean(model.predict(X) == y) > 0.9


def test_more_reprocessing_comes_nearer() -> None:
    X, y = make_moons(300, noise=0.3, random_state=0)
    fits = [
        LaSVMClassifier(C=10, gamma=1.0, finish=False, random_state=0, **options).fit(X, y)
        for options in ({}, {"reprocess_steps": 5}, {"reprocess_until": 0.1})
    ]
    deltas = [model.delta_[0] for model in fits]
    assert deltas[1] < deltas[0] and deltas[2] <= 0.1 < deltas[0]
    assert fits[0].k_ < fits[1].k_ < fits[2].k_ * 2


# -- classes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_classes_grow_in_a_stream(multiclass: str) -> None:
    X, y = digits(6, 600)
    names = np.array(["zero", "one", "two", "three", "four", "five"])
    model = LaSVMClassifier(C=10, gamma=0.05, multiclass=multiclass)
    order = np.argsort(y, kind="stable")  # one class after the other
    for i in order[:50]:
        model.learn_one(X[i], str(names[y[i]]))
    assert model.predict_one(X[order[0]]) == "zero"  # the only class seen
    for i in order[50:]:
        model.learn_one(X[i], str(names[y[i]]))
    assert model.classes_.tolist() == names.tolist()
    scores = model.decision_function(X)
    assert scores.shape == (600, 6) and len(model.intercept_) == (6 if multiclass == "ovr" else 15)
    shuffled = np.random.default_rng(0).permutation(600)
    model.learn_many(X[shuffled], names[y[shuffled]])
    assert np.mean(model.predict(X) == names[y]) > 0.97


def test_a_third_class_mirrors_the_machine_of_two() -> None:
    X, y = digits(3, 200)
    two = LaSVMClassifier(C=10, gamma=0.05)
    two.learn_many(X[y < 2], y[y < 2])
    f = two.decision_function(X)
    three = pickle.loads(pickle.dumps(two))
    three.learn_one(X[y == 2][0], 2, importance=0.0)  # weighs nothing, but the class is there
    scores = three.decision_function(X)
    np.testing.assert_array_equal(scores[:, 1], f)
    np.testing.assert_array_equal(scores[:, 0], -f)
    assert np.all(scores[:, 2] == -1.0)


def test_several_classes_share_vectors_and_rows() -> None:
    X, y = digits(10, 800)
    together = LaSVMClassifier(C=10, gamma=0.05, random_state=0).fit(X, y)
    apart = [LaSVMClassifier(C=10, gamma=0.05, random_state=0).fit(X, y == k) for k in range(10)]
    assert together.kernel_evaluations_ < 0.5 * sum(model.kernel_evaluations_ for model in apart)
    assert together.n_support_ < 0.7 * sum(model.n_support_ for model in apart)
    alone = np.stack([model.decision_function(X) for model in apart], axis=1)
    assert np.mean(np.argmax(alone, axis=1) == together.predict(X)) > 0.995


# -- kernels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in kernels.KERNELS if name not in ("call", "precomputed", "constant")])
def test_every_kernel(name: str, tmp_path: Path) -> None:
    X, y = digits(2, 200)
    model = LaSVMClassifier(C=1.0, kernel=name).fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.97
    K = model._fitted().kernel.block(X, model.support_vectors_)
    np.testing.assert_allclose(model.decision_function(X), K @ model.dual_coef_[0] + model.intercept_[0], atol=1e-9)
    model.save(tmp_path / "m.onepass")
    np.testing.assert_array_equal(op.load(tmp_path / "m.onepass").decision_function(X), model.decision_function(X))
    thin = LaSVMClassifier(C=1.0, kernel=name).partial_fit(sparse.csr_matrix(X), y, classes=[0, 1])
    thick = LaSVMClassifier(C=1.0, kernel=name).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_allclose(thin.decision_function(X), thick.decision_function(X), atol=0.3)
    assert np.mean(thin.predict(sparse.csr_matrix(X)) == thick.predict(X)) > 0.99


def test_a_function_and_a_matrix_as_kernels(tmp_path: Path) -> None:
    X, y = make_moons(80, noise=0.2, random_state=0)
    of_two = LaSVMClassifier(C=5, kernel=lambda a, b: float(np.exp(-np.sum((a - b) ** 2))), random_state=0).fit(X, y)
    of_blocks = LaSVMClassifier(C=5, kernel=kernels.Call(kernels.RBF(1.0).block, blocks=True), random_state=0).fit(X, y)
    gram = LaSVMClassifier(C=5, kernel=kernels.Precomputed(kernels.RBF(1.0).block(X, X)), random_state=0)
    gram.fit(np.arange(80.0)[:, np.newaxis], y)
    f = LaSVMClassifier(C=5, gamma=1.0, random_state=0).fit(X, y).decision_function(X)
    np.testing.assert_allclose(of_two.decision_function(X), f, atol=0.02)
    np.testing.assert_allclose(of_blocks.decision_function(X), f, atol=0.02)
    np.testing.assert_allclose(gram.decision_function(np.arange(80.0)[:, np.newaxis]), f, atol=0.02)
    for model in (of_two, gram):
        with pytest.raises(ParameterError, match="a model file cannot hold"):
            model.save(tmp_path / "m.onepass")
    again = pickle.loads(pickle.dumps(gram))
    np.testing.assert_array_equal(again.dual_coef_, gram.dual_coef_)
    with pytest.raises(InputError, match="whole number, the example's index from 0 to 79"):
        gram.predict([[80.0]])
    with pytest.raises(ZeroDivisionError):
        LaSVMClassifier(kernel=lambda a, b: 1 / 0).fit(X, y)


def assert_same_state(one: LaSVMClassifier, other: LaSVMClassifier) -> None:
    (config, arrays), (other_config, other_arrays) = one._fitted().state(), other._fitted().state()
    assert config == other_config
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name], err_msg=name)


def test_an_indefinite_kernel_is_refused_and_its_row_undone() -> None:
    """tanh of large numbers: some pairs have K(x, x) + K(z, z) < 2 K(x, z), which a step finds out."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 3)), generator.integers(0, 3, 300)
    options: dict[str, Any] = {"kernel": kernels.Sigmoid(gamma=0.8, r=-0.5), "C": 2.0}
    model, clean = LaSVMClassifier(**options), LaSVMClassifier(**options)
    refused = 0
    for i in range(300):
        try:
            model.learn_many(X[i : i + 1], y[i : i + 1])
        except NumericalError as error:
            assert "row 0: the kernel is not positive semi-definite" in str(error)
            refused += 1
        else:
            clean.learn_many(X[i : i + 1], y[i : i + 1])
        assert_same_state(model, clean)
    assert 5 < refused < 200
    with pytest.raises(NumericalError) as caught:
        LaSVMClassifier(**options).learn_many(X, y)
    assert caught.value.row > 0


# -- scikit-learn ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "options", [{}, {"multiclass": "ovo", "passes": 2}, {"selection": "active"}, {"kernel": "linear"}], ids=str
)
def test_scikit_learns_checks(options: dict[str, Any]) -> None:
    assert_checks_pass(LaSVMClassifier(**options))


def test_use_as_an_estimator() -> None:
    X, y = digits(10, 500)
    search = GridSearchCV(LaSVMClassifier(C=10, random_state=0), {"gamma": [1e-6, 0.05], "C": [10]}, cv=3).fit(X, y)
    assert search.best_params_["gamma"] == 0.05 and search.best_score_ > 0.9
    frame = pd.DataFrame(X, columns=[f"p{j}" for j in range(X.shape[1])])
    model = LaSVMClassifier(C=10, random_state=0).fit(frame, y)
    assert model.feature_names_in_[0] == "p0"
    with pytest.raises(InputError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(NotFittedError):
        LaSVMClassifier().predict(X)
    with pytest.raises(AttributeError, match="not learned"):
        _ = LaSVMClassifier().n_support_
    assert LaSVMClassifier().predict_one(X[0]) is None
    with pytest.raises(LabelError, match=re.escape("classes must be given in the first call")):
        LaSVMClassifier().partial_fit(X, y)


def test_stopping_early() -> None:
    X, y = make_moons(500, noise=0.3, random_state=0)
    for options, reason in (
        ({"max_examples": 60}, "max_examples"),
        ({"max_support": 20}, "max_support"),
        ({"max_seconds": 1e-9}, "max_seconds"),
        ({}, "passes"),
    ):
        for selection in ("random", "active"):
            model = LaSVMClassifier(selection=selection, random_state=0, finish=False, **options).fit(X, y)
            assert model.stopped_by_ == reason
            if reason == "max_examples":
                assert model.t_ == 60
            if reason == "max_support":
                assert 20 <= model.n_support_ <= 21 and model.t_ < 500


def test_unfinished_business_is_said() -> None:
    X, y = make_moons(400, noise=0.5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="machines violate by more than tau=1e-12"):
        LaSVMClassifier(C=1e6, gamma=5.0, tau=1e-12, random_state=0).fit(X[:60], y[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LaSVMClassifier(C=1.0, random_state=0).fit(X, y)


def test_prequential_over_named_features() -> None:
    X, y = digits(3, 300)
    run = op.prequential(LaSVMClassifier(C=5.0), zip(FORMS["named"](X), y.tolist(), strict=True))
    assert run.examples == 300 and run.value < 0.1


def test_of_one_class_every_row_is_of_that_class():
    model = op.LaSVMClassifier()
    model.learn_one([1.0, 2.0], "a")
    config, arrays = model.state()
    arrays["machines"][0, position("machine", "bias")] = 1.0  # a score above 0
    model = registry.made(registry.kind_of(model), config, arrays)
    assert model.score_one([1.0, 2.0]) > 0
    assert model.predict_one([1.0, 2.0]) == "a" and list(model.predict_many([[1.0, 2.0]])) == ["a"]


def test_steps_end_where_nothing_moves():
    X, y = digits(3)
    few, many = (op.LaSVMClassifier(reprocess_steps=steps, finish=False) for steps in (1000, 2**50))
    for model in (few, many):
        model.partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_array_equal(many.decision_function(X), few.decision_function(X))
