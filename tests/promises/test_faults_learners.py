"""Learners with a state of their own: a refused call leaves whole rows, probabilities are numbers, steps are finite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.reopening import reopened, saved

import onepass as op
from onepass import kernels
from onepass.compose import continual
from onepass.errors import NumericalError, OnepassError, ParameterError
from onepass.transforms import StandardScaler

NAN = float("nan")

LABELLED: dict[str, Callable[[], Any]] = {
    "GaussianNB": op.GaussianNB,
    "GaussianNB fading": lambda: op.GaussianNB(forgetting=0.97),
    "BernoulliNB": lambda: op.BernoulliNB(binarize=0.5),
    "MultinomialNB": op.MultinomialNB,
    "ComplementNB": lambda: op.ComplementNB(norm=True),
    "CategoricalNB": op.CategoricalNB,
    "LVQClassifier": lambda: op.LVQClassifier(2),
    "LVQClassifier lvq21": lambda: op.LVQClassifier(2, variant="lvq21"),
    "KNNClassifier": lambda: op.KNNClassifier(3, window=30),
    "SoftmaxSGD": continual.SoftmaxSGD,
    "Replay": lambda: continual.Replay(memory=5, replayed=2),
    "AGEM": lambda: continual.AGEM(memory=5, replayed=2),
    "EWC": lambda: continual.EWC(samples=4),
    "Replay kernel": lambda: continual.Replay(memory=5, replayed=2, kernel=kernels.RBF(gamma=0.5), D=6),
}
UNLABELLED: dict[str, Callable[[], Any]] = {
    "KMeans": lambda: op.KMeans(2, batch_size=2, init_size=4),
    "KMeans sequential": lambda: op.KMeans(2, batch_size=1, init_size=3),
    "IncrementalPCA": lambda: op.IncrementalPCA(2, batch_size=3),
    "OjaPCA": lambda: op.OjaPCA(2, batch_size=2),
    "CCIPCA": lambda: op.CCIPCA(2),
    "DictionaryLearning": lambda: op.DictionaryLearning(3, alpha=0.1, batch_size=2),
    "GaussianMixture": lambda: op.GaussianMixture(2, batch_size=2, init_size=4),
    "GaussianMixture full": lambda: op.GaussianMixture(2, covariance="full", batch_size=2, init_size=4),
    "BernoulliMixture": lambda: op.BernoulliMixture(2, batch_size=2, init_size=4),
}
LEARNERS = {**LABELLED, **UNLABELLED}

FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": lambda X: X,
    "csr": sparse.csr_matrix,
    "named": lambda X: [{f"x{j}": v for j, v in enumerate(row) if v} for row in X.tolist()],
}


def feed(name: str, model: Any, X: Any, y: Any, importance: Any = None) -> None:
    model.learn_many(X, y if name in LABELLED else None, importance)


def rows(n: int = 9, d: int = 3) -> tuple[np.ndarray, list[str]]:
    """Zeros and ones, so that every learner takes them; every third row brings a label that is new."""
    X = np.random.default_rng(3).integers(0, 2, (n, d)).astype(float)
    return X, [f"label {i // 3}" for i in range(n)]


# -- refused calls -----------------------------------------------------------------------------------------------------


def with_nan(X: np.ndarray, y: list[Any], form: str) -> tuple[Any, Any, Any]:
    X[5, 1] = NAN
    return FORMS[form](X), y, None


def too_large(X: np.ndarray, y: list[Any], form: str) -> tuple[Any, Any, Any]:
    X[5, 1] = 1e200
    return FORMS[form](X), y, None


def nan_after_too_large(X: np.ndarray, y: list[Any], form: str) -> tuple[Any, Any, Any]:
    X[4, 1], X[6, 2] = 1e200, NAN
    return FORMS[form](X), y, None


def nan_beside_too_large(X: np.ndarray, y: list[Any], form: str) -> tuple[Any, Any, Any]:
    X[4, 1], X[4, 2] = 1e200, NAN
    return FORMS[form](X), y, None


def bad_label(X: np.ndarray, y: list[Any], form: str) -> tuple[Any, Any, Any]:
    return FORMS[form](X), [*y[:5], NAN, *y[6:]], None


def wrong_width(X: np.ndarray, y: list[Any], form: str) -> tuple[Any, Any, Any]:
    if form == "named":
        return [*FORMS[form](X)[:5], [1.0, 0.0, 1.0], *FORMS[form](X)[6:]], y, None
    return FORMS[form](np.pad(X, ((0, 0), (0, 1)))), y, None


def negative_importance(X: np.ndarray, y: list[Any], form: str) -> tuple[Any, Any, Any]:
    return FORMS[form](X), y, np.where(np.arange(len(X)) == 5, -1.0, 1.0)


REFUSALS = [
    with_nan,
    too_large,
    nan_after_too_large,
    nan_beside_too_large,
    bad_label,
    wrong_width,
    negative_importance,
]


@pytest.mark.full
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "learned"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.__name__)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_refused_call_leaves_the_rows_before_the_refused_one(
    name: str, refusal: Any, form: str, fresh: bool, tmp_path: Path
) -> None:
    if (refusal is bad_label and name in UNLABELLED) or (refusal is too_large and form == "named" and "Cat" in name):
        return  # they take no labels; any value is a category
    model, clean = LEARNERS[name](), LEARNERS[name]()
    X, y = rows()
    if not fresh:
        for each in (model, clean):
            feed(name, each, FORMS[form](X[:2]), ["first", "label 0"])
    elif refusal is wrong_width and form != "named":
        return  # any width will do
    given, labels, importance = refusal(X.copy(), y, form)
    with pytest.raises(OnepassError) as caught:
        feed(name, model, given, labels, importance)
    learned = getattr(caught.value, "row", 0)
    if learned:
        feed(name, clean, given[:learned], labels[:learned])
    if learned or not fresh:
        assert saved(model, tmp_path) == saved(clean, tmp_path)
        reopened(model, tmp_path)
    else:
        assert not model.__sklearn_is_fitted__()
    assert (type(caught.value) is NumericalError) == bool(learned)
    for each in (model, clean):
        feed(name, each, FORMS[form](X), y)
    assert saved(model, tmp_path) == saved(clean, tmp_path)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_table_whose_first_row_is_refused_settles_no_shape(name: str) -> None:
    X, y = rows()
    model = LEARNERS[name]()
    wide = np.full((2, 5), 1e200)
    options = {"classes": sorted(set(y))} if name in LABELLED else {}
    with pytest.raises(OnepassError):
        model.partial_fit(wide, y[:2], **options)
    model.partial_fit(X, y, **options)
    assert model.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("name", [name for name in LEARNERS if "Categorical" not in name and "Bernoulli" not in name])
def test_a_refused_fit_keeps_the_rows_before_the_refused_one(name: str, tmp_path: Path) -> None:
    X, y = rows()
    model = LEARNERS[name]().fit(np.pad(X, ((0, 0), (0, 2))), y)
    X[5, 1] = 1e200
    with pytest.raises(NumericalError) as caught:
        model.fit(X, y)
    assert (caught.value.row, model.t_, model.n_features_in_) == (5, 5, 3)
    assert reopened(model, tmp_path).t_ == 5


@pytest.mark.parametrize("form", FORMS)
def test_a_number_out_of_range_is_refused_before_anything_is_learned(form: str, tmp_path: Path) -> None:
    X, _ = rows()
    for fresh in (True, False):
        model = UNLABELLED["BernoulliMixture"]()
        if not fresh:
            model.learn_many(FORMS[form](X))
        before = None if fresh else saved(model, tmp_path)
        wide = np.eye(6)  # each row brings a name
        wide[4, 5] = 1.5
        columns = wide if form == "named" else wide[:, 3:]
        with pytest.raises(OnepassError, match=r"from 0 to 1, got 1\.5"):
            model.learn_many(FORMS[form](columns))
        assert model.__sklearn_is_fitted__() != fresh
        assert fresh or saved(model, tmp_path) == before
    with pytest.raises(OnepassError, match=r"from 0 to 1, got 7"):
        UNLABELLED["BernoulliMixture"]().learn_one({"new": 7.0})


STARTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "means": (op.GaussianMixture, {"n_components": 2, "means_init": [[0.0, 1.0], [1.0, 0.0]]}),
    "covariances": (op.GaussianMixture, {"n_components": 1, "covariances_init": [[1.0, 2.0]]}),
    "patterns": (op.BernoulliMixture, {"n_components": 2, "means_init": [[0.2, 0.8], [0.5, 0.4]]}),
    "atoms": (op.DictionaryLearning, {"n_components": 2, "dict_init": [[0.0, 1.0], [1.0, 0.0]]}),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_that_does_not_fit_the_rows_is_refused_and_changes_nothing(name: str, tmp_path: Path) -> None:
    kind, options = STARTS[name]
    size = "batch_size" if kind is op.DictionaryLearning else "init_size"
    X = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    model = kind(**options, **{size: 3})
    with pytest.raises(ParameterError, match="init"):
        model.learn_many(X)
    with pytest.raises(ParameterError, match="init"):
        model.learn_one(X[0])
    assert not model.__sklearn_is_fitted__()
    named = FORMS["named"](X)
    model.learn_many(named[:2])
    before = saved(model, tmp_path)
    for call in (lambda: model.learn_one(named[2]), lambda: model.learn_many(named[2:])):  # a third name
        with pytest.raises(ParameterError, match="init"):
            call()
        assert saved(model, tmp_path) == before
        reopened(model, tmp_path)
    model.learn_one(named[3])
    assert reopened(model, tmp_path).t_ == 3


@pytest.mark.parametrize(
    ("covariance", "given"),
    [
        ("diag", [[1.0, -1.0]]),
        ("spherical", [0.0]),
        ("tied", [[1.0, 2.0], [2.0, 1.0]]),
        ("full", [[[1.0, 2.0], [2.0, 1.0]]]),
    ],
)
def test_a_mixture_refuses_covariances_that_are_not_positive(covariance: str, given: Any) -> None:
    model = op.GaussianMixture(1, covariance=covariance, covariances_init=given, init_size=2)
    with pytest.raises(ParameterError, match=r"covariances_init.* above 0"):
        model.learn_many(np.eye(2))
    assert not model.__sklearn_is_fitted__()


def test_a_mixture_refuses_weights_that_are_no_distribution() -> None:
    for weights in ([-1.0, 2.0], [0.0, 0.0]):
        with pytest.raises(ParameterError, match="weights_init"):
            op.GaussianMixture(2, weights_init=weights).learn_many(np.eye(3))


# -- first examples and examples without numbers -----------------------------------------------------------------------


def test_neighbours_may_begin_with_a_row_of_zeros(tmp_path: Path) -> None:
    for x in ({"a": 0.0}, {}):
        model = op.KNNClassifier(3)
        model.learn_one(x, "zero")
        assert model.predict_one({"a": 1.0}) == "zero"
        model = reopened(model, tmp_path)
        model.learn_one({"a": 1.0}, "one")
        assert model.predict_proba_one({"a": 0.2}) == {"zero": 0.5, "one": 0.5}
        both = op.KNNClassifier(3)
        both.learn_many([x, {"a": 1.0}], ["zero", "one"])
        assert saved(both, tmp_path) == saved(model, tmp_path)
    pipeline = StandardScaler() | op.KNNClassifier(1)
    pipeline.learn_one({"a": 3.0}, 0)
    assert pipeline.predict_one({"a": 3.0}) == 0


@pytest.mark.parametrize("name", LEARNERS)
def test_an_empty_mapping_is_a_row_of_zeros(name: str, tmp_path: Path) -> None:
    model, zeros = LEARNERS[name](), LEARNERS[name]()
    y = ["a", "b", "a"]
    feed(name, model, [{}, {"x": 1.0}, {}], y)
    feed(name, zeros, [{"x": 0.0}, {"x": 1.0}, {"x": 0.0}], y)
    if "Categorical" not in name:  # there a feature that is missing is not 0
        assert saved(model, tmp_path) == saved(zeros, tmp_path)
    assert reopened(model, tmp_path).predict_one({}) == model.predict_one({}) if name in LABELLED else True


PROBABLE = {name: make for name, make in LEARNERS.items() if hasattr(make(), "predict_proba_one")}
PROBABLE |= {
    "GaussianNB unsmoothed": lambda: op.GaussianNB(var_smoothing=0.0),
    "ComplementNB plain": op.ComplementNB,
    "BernoulliNB sharp": lambda: op.BernoulliNB(alpha=1e-300),
    "MultinomialNB sharp": lambda: op.MultinomialNB(alpha=1e-300),
    "GaussianMixture tied": lambda: op.GaussianMixture(2, covariance="tied", batch_size=2, init_size=4),
    "GaussianMixture spherical": lambda: op.GaussianMixture(2, covariance="spherical", batch_size=2, init_size=4),
}
STREAMS: dict[str, tuple[list[list[float]], str]] = {
    "one example": ([[1.0, 0.0]], "a"),
    "one feature": ([[1.0], [0.0], [1.0]], "aba"),
    "one class": ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "aaa"),
    "constant": ([[1.0, 0.0]] * 5, "abaab"),
    "zeros": ([[0.0, 0.0]] * 5, "abaab"),
    "constant in each class": ([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], "abab"),
}


@pytest.mark.parametrize("importance", [1.0, 0.0, 0.1, 1e6])
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", PROBABLE)
def test_probabilities_are_finite_and_add_up_to_one(name: str, stream: str, importance: float) -> None:
    X, y = STREAMS[stream]
    width = len(X[0])
    for form in (np.array, lambda row: dict(zip("uv", row, strict=False))):
        model = PROBABLE[name]()
        for x, label in zip(X, y, strict=True):
            model.learn_one(form(x), label, importance=importance)
        for x in (X[0], [0.0] * width, [1.0] * width, [1e90] * width):
            if ("Categorical" in name or "Bernoulli" in name) and x[0] > 1:
                continue
            single = model.predict_proba_one(form(x))
            assert sum(single.values()) == pytest.approx(1.0), (x, single)
            if form is np.array and x[0] <= 1:  # where rounding does not decide
                assert model.predict_proba(np.array([x]))[0] == pytest.approx(list(single.values()))


# -- steps that overflow -----------------------------------------------------------------------------------------------


CONTINUAL = [continual.SoftmaxSGD, continual.Replay, continual.AGEM, continual.EWC]


@pytest.mark.parametrize("kind", CONTINUAL)
def test_a_step_that_overflows_is_refused_for_its_row(kind: Any, tmp_path: Path) -> None:
    model, clean = (kind(eta=1e250) for _ in range(2))
    X = [{"u": 1.0}, {"v": 1e-9}, {"u": 1.0, "w": 1e99}, {"z": 1.0}]
    with pytest.raises(NumericalError, match="row 2: the step overflows") as caught:
        model.learn_many(X, ["a", "b", "c", "d"])
    assert (caught.value.row, list(model.classes_)) == (2, ["a", "b"])
    with pytest.raises(NumericalError, match="row 0: the step overflows"):
        model.learn_one(X[2], "c")
    clean.learn_many(X[:2], ["a", "b"])
    assert saved(reopened(model, tmp_path), tmp_path) == saved(clean, tmp_path)
    for each in (model, clean):
        each.learn_one(X[3], "d")
    assert saved(model, tmp_path) == saved(clean, tmp_path)


def test_an_anchor_of_huge_features_does_not_overflow(tmp_path: Path) -> None:
    model = continual.EWC()
    model.learn_many(np.full((4, 2), 1e99), ["a", "b", "a", "b"], np.full(4, 1e99))
    model.end_task()
    before = model.coef_
    model.learn_many(np.ones((4, 2)), ["a", "b", "a", "b"])
    assert np.allclose(reopened(model, tmp_path).coef_, before)


def test_importances_that_differ_by_all_that_numbers_can(tmp_path: Path) -> None:
    """With `forgetting` later rows weigh more instead of earlier ones less, which must not overflow either."""
    X = np.random.default_rng(1).choice([-1e100, 1e100, 1.0, 0.0], (60, 3))
    w = np.random.default_rng(2).choice([0.0, 1e-300, 1.0, 1e100], 60)
    for model in (op.GaussianNB(forgetting=0.5), op.MultinomialNB(forgetting=0.5)):
        model.learn_many(np.abs(X), list("abc" * 20), w)
        again = reopened(model, tmp_path)
        assert np.allclose(again.predict_proba(np.abs(X)).sum(axis=1), 1.0)
    for covariance in ("full", "tied"):
        mixture = op.GaussianMixture(
            3, covariance=covariance, batch_size=3, init_size=6, burn_in=3, revive=0.2, schedule="constant", eta=0.2
        )
        for row in range(60):
            mixture.learn_one(X[row] * 10.0 ** -(row * 5 % 162), importance=w[row])
        assert np.isfinite(reopened(mixture, tmp_path).score_samples(X)).all()
    oja = op.OjaPCA(2, batch_size=2)
    oja.learn_many(np.array([[1e-20, 0.0], [0.0, 2e-20], [1e90, 1e89], [1e90, 2e88]]), importance=[1, 1, 1e-300, 0])
    assert np.linalg.norm(reopened(oja, tmp_path).components_, axis=1) == pytest.approx(1.0)


def test_a_row_that_weighs_nothing_leaves_the_inertia(tmp_path: Path) -> None:
    X, w = np.array([[0.0], [4.0], [1.0], [9.0]]), np.array([1.0, 1.0, 1.0, 0.0])
    whole, single = (op.KMeans(2, batch_size=1, init_size=2) for _ in range(2))
    whole.learn_many(X, importance=w)
    for x, importance in zip(X, w, strict=True):
        single.learn_one(x, importance=importance)
    assert whole.inertia_ > 0.0
    assert saved(whole, tmp_path) == saved(single, tmp_path)
