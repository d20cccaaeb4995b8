"""The promises for kernel learners: any chunks, any resume, nothing malformed, no damaged file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from support import grid, kernel_grid
from support.estimator_checks import assert_checks_pass
from support.kernel_grid import FORM_CELLS, KernelCell, saved

import onepass
from onepass import _native, budgets, kernels
from onepass.errors import (
    DamagedFileError,
    FeatureError,
    InputError,
    LabelError,
    ModelFileError,
    NumericalError,
    ParameterError,
)
from onepass.estimators.kernel import KernelClassifier, KernelRegressor
from onepass.models.kernel import KernelModel


def feed(model: Any, cell: KernelCell, s: grid.Stream, start: int, stop: int) -> None:
    model.learn_many(cell.form.part(s.X, start, stop), s.y[start:stop], s.importance[start:stop])


def whole(cell: KernelCell) -> bytes:
    s = grid.stream(cell.task)
    model = cell.model(s.classes)
    feed(model, cell, s, 0, len(s.y))
    assert model.k > 0
    return saved(model)


@pytest.mark.full
@pytest.mark.parametrize("cell", FORM_CELLS, ids=str)
def test_chunks_and_single_rows(cell: KernelCell) -> None:
    s = grid.stream(cell.task)
    rng = np.random.default_rng(cell.seed)
    chunked, single = cell.model(s.classes), cell.model(s.classes)
    start = 0
    while start < len(s.y):
        stop = min(len(s.y), start + int(rng.integers(1, 12)))
        feed(chunked, cell, s, start, stop)
        start = stop
    for i in range(len(s.y)):
        single.learn_one(cell.form.row(s.X, i), s.y[i].item(), float(s.importance[i]))
    wanted = whole(cell)
    assert saved(chunked) == wanted
    assert saved(single) == wanted


@pytest.mark.full
@pytest.mark.parametrize("cell", FORM_CELLS, ids=str)
def test_saved_pickled_and_resumed_anywhere(cell: KernelCell, tmp_path: Path) -> None:
    s = grid.stream(cell.task)
    rng = np.random.default_rng(cell.seed + 1)
    cut = int(rng.integers(0, len(s.y)))
    model = cell.model(s.classes)
    if cut:
        feed(model, cell, s, 0, cut)
    model.save(tmp_path / "m")
    loaded, copied = KernelModel.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))
    wanted = whole(cell)
    for resumed in (loaded, copied):
        assert saved(resumed) == saved(model)
    for resumed in (loaded, copied, model):
        feed(resumed, cell, s, cut, len(s.y))
        assert saved(resumed) == wanted


GROWING = [cell for cell in FORM_CELLS if cell.task != "regression" and cell.grows and cell.representation != "hashed"]


@pytest.mark.full
@pytest.mark.parametrize("cell", GROWING, ids=str)
def test_classes_that_grow(cell: KernelCell) -> None:
    s = grid.stream(cell.task)
    at_once, single = cell.model(), cell.model()
    feed(at_once, cell, s, 0, len(s.y))
    for i in range(len(s.y)):
        single.learn_one(cell.form.row(s.X, i), s.y[i].item(), float(s.importance[i]))
    assert saved(single) == saved(at_once)
    assert sorted(single.classes) == sorted(grid.LABELS[cell.task])


@pytest.mark.full
@pytest.mark.parametrize("cell", [c for c in FORM_CELLS if c.form.table], ids=str)
def test_estimator_is_the_model(cell: KernelCell, tmp_path: Path) -> None:
    s = grid.stream(cell.task)
    fitted, partial = cell.estimator(), cell.estimator()
    X = cell.form.make(s.X)
    fitted.fit(X, s.y, sample_weight=s.importance)
    classes = {} if s.classes is None else {"classes": s.classes}
    for start in range(0, 40, 8):
        part = cell.form.part(s.X, start, start + 8)
        partial.partial_fit(part, s.y[start : start + 8], sample_weight=s.importance[start : start + 8], **classes)
    assert saved(fitted) == saved(partial) == whole(cell)
    fitted.save(tmp_path / "m")
    loaded = onepass.load(tmp_path / "m")
    assert type(loaded) is type(fitted)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.get_params()["kernel"] == fitted.kernel


@pytest.mark.full
@pytest.mark.parametrize("cell", [c for c in kernel_grid.CELLS if c.rule != "user-c"], ids=str)
def test_instruction_sets_give_the_same_bits(cell: KernelCell) -> None:
    used = _native.isa()
    try:
        results = set()
        for isa in _native.isas():
            _native.use_isa(isa)
            results.add(whole(cell))
        assert len(results) == 1
    finally:
        _native.use_isa(used)


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "laplacian", "sigmoid", "cosine"])
@pytest.mark.parametrize("representation", ["f64", "csr32", "named"])
def test_other_kernels_keep_the_promise(kernel: str, representation: str) -> None:
    s = grid.stream("multiclass")
    form = kernel_grid.FORMS[representation]
    models = [KernelModel("pa1", kernel=kernel, budget="bpann:B=5", classes=s.classes) for _ in range(2)]
    models[0].learn_many(form.make(s.X), s.y)
    for i in range(len(s.y)):
        models[1].learn_one(form.row(s.X, i), s.y[i].item())
    assert saved(models[0]) == saved(models[1])


@pytest.mark.parametrize("kernel", ["intersection", "chi2", "chi2_exp", "laplacian:gamma=0.1", "rbf:gamma=0.1"])
def test_representations_agree(kernel: str) -> None:
    s = grid.stream("binary")
    X = np.abs(s.X)
    scores = []
    for form in (kernel_grid.FORMS[name] for name in ("f64", "csr64", "named")):
        model = KernelModel("pa1", kernel=kernel, classes=s.classes)
        model.learn_many(form.make(X), s.y)
        scores.append(model.score_many(form.make(X)))
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-12)


def test_a_sparse_row_without_features_is_merged_as_zeros() -> None:
    X = np.vstack([np.zeros(3), np.random.default_rng(0).uniform(0, 0.3, size=(7, 3))])
    y = np.array([1, 1, 1, 1, 1, 1, 1, 0])
    dense, sparse = (KernelClassifier("pa1:C=0.1", kernel="rbf:gamma=0.5", budget="merge:B=2") for _ in range(2))
    dense.fit(X, y)
    sparse.fit(scipy.sparse.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), rtol=1e-12)


def test_names_that_are_new_in_a_prediction_still_count() -> None:
    model = KernelModel("perceptron", kernel=kernels.RBF(0.5))
    model.learn_one({"a": 1.0}, "no")
    model.learn_one({"a": -1.0}, "yes")
    near, far = model.score_one({"a": -1.0}), model.score_one({"a": -1.0, "b": 3.0})
    assert far == pytest.approx(near * np.exp(-0.5 * 9))
    assert model.names == ["a"]


def test_frames_and_mappings_meet() -> None:
    s = grid.stream("binary")
    columns = [f"f{j}" for j in range(grid.FEATURES)]
    model = KernelClassifier("pa1", kernel=kernels.RBF(0.1)).fit(pd.DataFrame(s.X, columns=columns), s.y)
    row = dict(zip(columns, s.X[3], strict=True))
    table = KernelClassifier("pa1", kernel=kernels.RBF(0.1)).fit(s.X, s.y)
    assert model._model.score_one(row) == table._model.score_one(s.X[3])
    model.learn_one(row, "yes")
    table.learn_one(s.X[3], "yes")
    np.testing.assert_array_equal(model.dual_coef_, table.dual_coef_)
    before = model._model.score_one(row)
    assert model._model.score_one({**row, "new": 10.0}) == pytest.approx(before * np.exp(-0.1 * 100), rel=1e-12)
    assert saved(model) != saved(table)  # names
    model.learn_one({**row, "new": 10.0}, "no")
    assert model._model.names[-1] == "new"
    assert model.support_vectors_.shape == (model.n_support_, grid.FEATURES + 1)
    assert saved(pickle.loads(pickle.dumps(model._model))) == saved(model)


# -- nothing malformed -------------------------------------------------------------------------------------------------


def broken(X: np.ndarray, value: float) -> np.ndarray:
    out = X.copy()
    out[5, 2] = value
    return out


@pytest.mark.full
@pytest.mark.parametrize("budget", list(kernel_grid.BUDGETS))
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("form", ["f64", "csr32", "csr64"])
def test_a_malformed_batch_changes_nothing(budget: str, value: float, form: str) -> None:
    rule = (kernel_grid.BUDGETS[budget][1] or ["pa1"])[0]
    cell = KernelCell(rule, kernel_grid.KERNEL_RULES[rule][0], budget, form)
    s = grid.stream(cell.task)
    model = cell.model(s.classes)
    with pytest.raises(InputError, match="finite"):
        model.learn_many(cell.form.make(broken(s.X, value)), s.y)
    assert saved(model) == saved(cell.model(s.classes))
    feed(model, cell, s, 0, 20)
    before = saved(model)
    with pytest.raises(InputError, match="finite"):
        model.learn_many(cell.form.make(broken(s.X, value)), s.y)
    with pytest.raises(InputError):
        model.learn_one(cell.form.row(broken(s.X, value), 5), s.y[5].item())
    with pytest.raises((InputError, LabelError)):
        model.learn_many(cell.form.make(s.X), s.y, np.full(40, -1.0))
    with pytest.raises(FeatureError):
        model.learn_many(cell.form.make(s.X[:, :5]), s.y)
    with pytest.raises(FeatureError):
        model.learn_one({"a": 1.0}, s.y[0].item())
    assert saved(model) == before


def test_a_table_may_be_hashed() -> None:
    s = grid.stream("binary")
    hashed = KernelModel("pa1", kernel=kernels.RBF(0.1), hash_bits=6, classes=s.classes)
    plain = KernelModel("pa1", kernel=kernels.RBF(0.1), classes=s.classes)
    for model in (hashed, plain):
        model.learn_many(s.X, s.y)
    np.testing.assert_allclose(hashed.coefficients, plain.coefficients, atol=1e-12)


def test_a_refused_label_changes_nothing() -> None:
    model = KernelModel("pa1", kernel=kernels.RBF(0.5))
    for x, y in (([0.0, 1.0], "b"), ([1.0, 0.0], "a")):
        model.learn_one(x, y)
    before = saved(model)
    for wrong in ([np.nan, 1.0], [1.0], {"a": 1.0}):
        with pytest.raises(InputError):
            model.learn_one(wrong, "c")
    with pytest.raises(LabelError):
        model.learn_one([1.0, 1.0], None)
    with pytest.raises(LabelError):
        model.learn_one([1.0, 1.0], [1])
    assert saved(model) == before
    assert model.classes == ["a", "b"]


def test_histograms_must_not_be_negative() -> None:
    model = KernelModel("pa1", kernel="chi2")
    with pytest.raises(InputError, match=r">= 0, but X\[1\] holds -1.0* at feature 0"):
        model.learn_many([[1.0, 2.0], [-1.0, 0.0]], [0, 1])
    assert model.t == 0
    model.learn_one({"a": 1.0}, 0)
    with pytest.raises(InputError, match=">= 0"):
        model.learn_one({"b": -1.0}, 0)
    assert model.names == ["a"]


def test_overflow_is_refused_for_its_row() -> None:
    model = KernelModel("pa1", "binary", kernel="polynomial:degree=9", classes=[0, 1])
    X = np.array([[1.0], [2.0], [1e40], [3.0]])
    with pytest.raises(NumericalError) as caught:
        model.learn_many(X, [0, 1, 0, 1])
    assert caught.value.row == 2
    assert model.t == 2
    other = KernelModel("pa1", "binary", kernel="polynomial:degree=9", classes=[0, 1])
    other.learn_many(X[:2], [0, 1])
    assert saved(model) == saved(other)
    limited = KernelModel("pa1", "binary", kernel="linear", budget="bpap:B=2", classes=[0, 1])
    with pytest.raises(NumericalError):
        limited.learn_one([1e-120], 1)
    assert limited.n_support == 0


def test_precomputed() -> None:
    s = grid.stream("binary")
    gram = kernels.RBF(0.1).block(s.X, s.X)
    at = np.arange(len(s.y), dtype=float)[:, None]
    by_place = KernelClassifier("pa1", kernel=kernels.Precomputed(gram), budget="bpann:B=8").fit(at, s.y)
    by_row = KernelClassifier("pa1", kernel=kernels.RBF(0.1), budget="bpann:B=8").fit(s.X, s.y)
    np.testing.assert_allclose(by_place.dual_coef_, by_row.dual_coef_, atol=1e-12)
    for wrong in ([[40.0]], [[-1.0]], [[0.5]], [[1.0, 2.0]]):
        with pytest.raises(InputError):
            by_place.predict(wrong)
    both = KernelClassifier("pa1", kernel=kernels.Precomputed(gram) + kernels.Precomputed(np.eye(3)))
    with pytest.raises(InputError, match="from 0 to 2, its place in the matrix"):
        both.fit(at, s.y)


def test_precomputed_is_saved_with_its_matrix(tmp_path: Path) -> None:
    gram = kernels.RBF(0.1).block(grid.stream("binary").X, grid.stream("binary").X)
    at = np.arange(40, dtype=float)[:, None]
    model = KernelClassifier("pa1", kernel=kernels.Precomputed(gram)).fit(at, grid.stream("binary").y)
    model.save(tmp_path / "m")
    loaded = onepass.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.decision_function(at), model.decision_function(at))
    assert loaded.kernel == model.kernel


def similar(x: np.ndarray, z: np.ndarray) -> float:
    return float(np.exp(-0.1 * np.sum((x - z) ** 2)))


def broken_similar(x: np.ndarray, z: np.ndarray) -> float:
    raise ZeroDivisionError("in the user's kernel")


def test_a_function_is_a_kernel() -> None:
    s = grid.stream("binary")
    ours = KernelClassifier("pa1", kernel=kernels.RBF(0.1), budget="bpap:B=8").fit(s.X, s.y)
    theirs = KernelClassifier("pa1", kernel=similar, budget="bpap:B=8").fit(s.X, s.y)
    np.testing.assert_allclose(theirs.dual_coef_, ours.dual_coef_, atol=1e-9)
    with pytest.raises(ParameterError, match="pickle"):
        theirs.save("nowhere")
    copied = pickle.loads(pickle.dumps(theirs))
    np.testing.assert_array_equal(copied.decision_function(s.X), theirs.decision_function(s.X))
    model = KernelModel("pa1", kernel=broken_similar)
    with pytest.raises(ZeroDivisionError):
        model.learn_one(s.X[0], 1)
    assert model.t == 0 and model.n_support == 0
    with pytest.raises(ParameterError, match="mappings"):
        KernelModel("pa1", kernel=similar).learn_one({"a": 1.0}, 1)
    with pytest.raises(InputError, match="below 0"):
        KernelModel("pa1", kernel=lambda x, z: -1.0).learn_one([1.0], 1)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("representation", ["f64", "csr32"])
def test_parts_that_do_not_fit_are_refused(representation: str) -> None:
    cell = KernelCell("pa1", "multiclass", "bpap", representation)
    s = grid.stream(cell.task)
    model = cell.model(s.classes)
    feed(model, cell, s, 0, 40)
    config, arrays = model.state()
    assert saved(KernelModel.from_state(config, arrays)) == saved(model)
    tried = 0
    for name, value in arrays.items():
        if name.startswith("names.") or name == "random":
            continue
        changes = [value[:-1] if value.ndim and len(value) else None]
        if value.dtype == np.float64 and value.size:
            wrong = value.copy()
            wrong.flat[0] = np.nan
            changes.append(wrong)
        for change in changes:
            if change is None or not value.size:
                continue
            with pytest.raises(ModelFileError):
                KernelModel.from_state(config, {**arrays, name: change})
            tried += 1
    assert tried > 6
    with pytest.raises(DamagedFileError, match="more support vectors"):
        small = {**config["budget"], "params": {**config["budget"]["params"], "B": 2}}
        KernelModel.from_state({**config, "budget": small}, arrays)


def test_vectors_with_an_infinite_kernel_value_are_refused() -> None:
    # The diagonal of their Gram matrix is finite, but nothing can make the matrix positive definite.
    model = KernelModel("perceptron", kernel="chi2", budget="projectron:B=20")
    X = np.random.default_rng(0).uniform(size=(30, 4))
    model.learn_many(X, np.where(X[:, 0] > X[:, 1], 1, 0))
    config, arrays = model.state()
    assert len(arrays["support"]) > 1
    with pytest.raises(ModelFileError, match=r"K\(x, z\)"):
        KernelModel.from_state(config, {**arrays, "support": 1e200 * arrays["support"]})


def test_a_damaged_file_never_loads(tmp_path: Path) -> None:
    s = grid.stream("binary")
    KernelClassifier("perceptron", kernel="rbf", budget="forgetron:B=3").fit(s.X, s.y).save(tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    for at in range(0, len(data), 37):
        (tmp_path / "n").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ValueError):
            onepass.load(tmp_path / "n")


# -- scikit-learn ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "estimator",
    [
        KernelClassifier(),
        KernelClassifier(budget="bpann:B=10"),
        KernelClassifier("perceptron", kernel="polynomial", budget="forgetron:B=10"),
        KernelClassifier(fit_intercept=True, hash_bits=6),
        KernelRegressor(),
        KernelRegressor(kernel="linear", budget="bpap:B=10"),
    ],
    ids=repr,
)
def test_scikit_learn_checks(estimator: Any) -> None:
    assert_checks_pass(estimator)


def test_grid_search_reaches_kernel_and_budget() -> None:
    from sklearn.model_selection import GridSearchCV

    s = grid.stream("binary", n=60)
    model = KernelClassifier(kernel=kernels.RBF(1.0), budget=budgets.BPAS(5))
    search = GridSearchCV(model, {"kernel__gamma": [1e-9, 0.1], "budget__B": [2, 20]}, cv=2).fit(s.X, s.y)
    assert search.best_estimator_.kernel.gamma in (1e-9, 0.1)
    assert search.best_estimator_.n_support_ <= search.best_params_["budget__B"]
