"""Learners with a state of their own keep the promises: chunks, resuming, refusals, files, scikit-learn's checks."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import onepass as op
from onepass import _native
from onepass.errors import (
    DamagedFileError,
    FeatureError,
    ForeignFileError,
    InputError,
    LabelError,
    NumericalError,
    ParameterError,
)
from onepass.persistence import store

NAN, INF = float("nan"), float("inf")


LEARNERS: dict[str, Callable[[], Any]] = {
    "GaussianNB": op.GaussianNB,
    "GaussianNB fading": lambda: op.GaussianNB(forgetting=0.97),
    "BernoulliNB": lambda: op.BernoulliNB(binarize=0.5),
    "MultinomialNB": op.MultinomialNB,
    "MultinomialNB fading": lambda: op.MultinomialNB(forgetting=0.9),
    "ComplementNB": lambda: op.ComplementNB(norm=True),
    "CategoricalNB": op.CategoricalNB,
    "LVQClassifier": lambda: op.LVQClassifier(2),
    "LVQClassifier olvq1": lambda: op.LVQClassifier(2, variant="olvq1"),
    "LVQClassifier lvq21": lambda: op.LVQClassifier(2, variant="lvq21"),
    "KNNClassifier": lambda: op.KNNClassifier(3, window=30),
    "KNNClassifier distance": lambda: op.KNNClassifier(3, window=50, weights="distance"),
    "KMeans": lambda: op.KMeans(3, batch_size=7, init_size=20),
    "KMeans sequential": lambda: op.KMeans(3, batch_size=1, decay=0.99),
    "KMeans reassign": lambda: op.KMeans(6, batch_size=5, init_size=8, reassign=True),
    "IncrementalPCA": lambda: op.IncrementalPCA(3, batch_size=9, forgetting=0.9),
    "OjaPCA": lambda: op.OjaPCA(2, batch_size=8),
    "CCIPCA": lambda: op.CCIPCA(3),
    "DictionaryLearning": lambda: op.DictionaryLearning(4, alpha=0.1, batch_size=6),
    "GaussianMixture": lambda: op.GaussianMixture(3, batch_size=7, init_size=20),
    "GaussianMixture full": lambda: op.GaussianMixture(2, covariance="full", schedule="1/n", batch_size=3),
    "GaussianMixture tied": lambda: op.GaussianMixture(2, covariance="tied", schedule="constant", batch_size=9),
    "GaussianMixture spherical": lambda: op.GaussianMixture(3, covariance="spherical", init_size=15, revive=0.05),
    "BernoulliMixture": lambda: op.BernoulliMixture(2, binarize=0.5, batch_size=4, init_size=12),
}
LABELLED = {name for name in LEARNERS if hasattr(LEARNERS[name](), "classes_") or "Classifier" in name or "NB" in name}


def rows(name: str, n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Small counts with zeros, around three centres."""
    generator = np.random.default_rng(5)
    y = generator.integers(0, 3, n)
    rates = np.array([[3.0, 0.3, 1.0, 0.0, 2.0], [0.3, 3.0, 1.0, 1.0, 0.2], [1.0, 1.0, 0.2, 4.0, 1.0]])
    X = generator.poisson(rates[y]).astype(float)
    if "Categorical" not in name and "Bernoulli" not in name and "Multinomial" not in name:
        X = np.where(X > 0, X + generator.random(X.shape), 0.0)  # numbers whose products must be rounded
    return X, np.array(["a", "b", "c"])[y]


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "f64": lambda X: X,
    "csr": sparse.csr_matrix,
    "named": lambda X: [{f"x{j}": v for j, v in enumerate(row) if v} for row in X.tolist()],
}


def saved(model: Any, folder: Path) -> bytes:
    model.save(folder / "now.onepass")
    return (folder / "now.onepass").read_bytes()


def feed(name: str, model: Any, X: Any, y: Any, w: Any) -> None:
    if name in LABELLED:
        model.learn_many(X, y, w)
    else:
        model.learn_many(X, None, w)


def feed_one(name: str, model: Any, x: Any, y: Any, w: float) -> None:
    if name in LABELLED:
        model.learn_one(x, str(y), w)
    else:
        model.learn_one(x, importance=w)


# -- promise 1 ---------------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LEARNERS)
def test_chunks_files_and_pickles(name: str, form: str, tmp_path: Path) -> None:
    X, y = rows(name)
    table = FORMS[form](X)
    w = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], len(X))
    whole = LEARNERS[name]()
    feed(name, whole, table, y, w)
    expected = saved(whole, tmp_path)
    assert whole.t_ == len(X)
    ends = np.unique([*np.random.default_rng(1).integers(1, len(X), 25), len(X)]).tolist()
    chunked, resumed, single = (LEARNERS[name]() for _ in range(3))
    start = 0
    for number, stop in enumerate(ends):
        feed(name, chunked, table[start:stop], y[start:stop], w[start:stop])
        feed(name, resumed, table[start:stop], y[start:stop], w[start:stop])
        if number % 3 == 0:
            saved(resumed, tmp_path)
            resumed = op.load(tmp_path / "now.onepass")
        else:
            resumed = (pickle.loads(pickle.dumps(resumed)), copy.deepcopy(resumed))[number % 3 - 1]
        start = stop
    for i in range(len(X)):
        x = table[i]
        feed_one(name, single, x, y[i], float(w[i]))
        single.predict_one(x) if hasattr(single, "predict_one") else single.transform_one(x)  # changes nothing
    assert saved(chunked, tmp_path) == expected
    assert saved(resumed, tmp_path) == expected
    assert saved(single, tmp_path) == expected
    if form == "f64":
        batch = LEARNERS[name]()
        more = {"classes": ["a", "b", "c"]} if name in LABELLED else {}
        batch.partial_fit(table[:40], y[:40], sample_weight=w[:40], **more)
        batch.partial_fit(table[40:], y[40:], sample_weight=w[40:])
        if name.startswith("KNN"):
            for x in table:  # equal votes go by the order of classes
                assert batch.predict_proba_one(x) == pytest.approx(whole.predict_proba_one(x))
        elif name in LABELLED:
            assert batch.predict(table).tolist() == whole.predict_many(table)
        else:
            ask = "predict_proba" if hasattr(batch, "predict_proba") else "transform"
            answer = getattr(batch, ask)(table)
            theirs = getattr(whole, ask)(table)
            np.testing.assert_array_equal(answer, theirs)


@pytest.mark.parametrize(
    "name", ["GaussianNB", "KMeans", "LVQClassifier", "CCIPCA", "DictionaryLearning", "KNNClassifier"]
)
def test_no_bit_depends_on_the_instruction_set(name: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(60, 37)), generator.choice(["a", "b"], 60)
    best = _native.isa()
    results = set()
    try:
        for isa in _native.isas():
            _native.use_isa(isa)
            model = LEARNERS[name]()
            feed(name, model, X, y, None)
            asked = model.predict_many(X) if name in LABELLED else model.transform_many(X).dense.tolist()
            results.add((saved(model, tmp_path), str(asked)))
    finally:
        _native.use_isa(best)
    assert len(results) == 1


@pytest.mark.parametrize("name", LEARNERS)
def test_order_of_representation(name: str) -> None:
    """Dense, sparse and named rows are the same model, up to rounding."""
    X, y = rows(name)
    models = {form: LEARNERS[name]() for form in FORMS}
    answers = {}
    for form, model in models.items():
        feed(name, model, FORMS[form](X), y, None)
        ask = next(each for each in ("predict_proba", "transform_many", "predict_many") if hasattr(model, each))
        if form == "named" and ask == "predict_proba":
            answers[form] = np.array([list(model.predict_proba_one(x).values()) for x in FORMS[form](X)])
        else:
            said = getattr(model, ask)(FORMS[form](X))
            answers[form] = np.asarray(said.dense if ask == "transform_many" else said)
    numbers = answers["f64"].dtype.kind == "f"
    for form in ("csr", "named"):
        if name == "CategoricalNB" and form == "named":
            continue  # there, what a mapping lacks is left out
        if name.startswith(("OjaPCA", "Dictionary", "GaussianMixture", "BernoulliMixture")) and form == "named":
            continue  # columns come in another order, and start elsewhere
        if numbers:
            np.testing.assert_allclose(np.abs(answers[form]), np.abs(answers["f64"]), rtol=1e-6, atol=1e-8)
        else:
            np.testing.assert_array_equal(answers[form], answers["f64"])


def test_names_that_come_late() -> None:
    """A feature that was never there was 0 all the time."""
    early = [{"a": 1.0 + i % 3, "b": 2.0 * (i % 2)} for i in range(40)]
    late = [{"a": 1.0 + i % 3, "c": 5.0 + i % 2} for i in range(40)]
    for name in LEARNERS:
        model = LEARNERS[name]()
        feed(name, model, early, ["a", "b"] * 20, None)
        feed(name, model, late, ["c", "b"] * 20, None)
        assert model.t_ == 80
        for x in (early[0], late[0], {}, {"never": 3.0}):
            said = model.predict_one(x) if hasattr(model, "predict_one") else model.transform_one(x).tolist()
            assert said is not None
    named = op.MultinomialNB()
    named.learn_many(early + late, ["x"] * 40 + ["y"] * 40)
    assert named.predict_one({"c": 1.0}) == "y" and named.predict_one({"b": 1.0}) == "x"


# -- promise 2 ---------------------------------------------------------------------------------------------------------


def with_value(X: np.ndarray, value: Any) -> np.ndarray:
    X = X[:3].copy().astype(type(value) if isinstance(value, complex) else float)
    X[1, 1] = value
    return X


BAD: dict[str, tuple[Callable[[np.ndarray], Any], Any, type[Exception], str]] = {
    "nan": (lambda X: with_value(X, NAN), None, InputError, r"X\[1, 1\] is NaN; drop or impute"),
    "infinity": (lambda X: with_value(X, INF), None, InputError, r"X\[1, 1\] is infinity"),
    "nan in csr": (lambda X: sparse.csr_matrix(with_value(X, NAN)), None, InputError, r"X\[1, 1\] is NaN"),
    "a column more": (lambda X: np.ones((3, X.shape[1] + 1)), None, InputError, "has 6 features, but"),
    "no rows": (lambda X: X[:0], None, InputError, "no rows|0 sample"),
    "words": (lambda X: X[:3].astype(str), None, InputError, "must hold numbers|strings|numeric"),
    "complex": (lambda X: with_value(X, 1j), None, InputError, "Complex"),
    "negative weight": (lambda X: X[:3], [1, -1, 1], InputError, "finite and >= 0, but entry 1 is -1"),
    "nan weight": (lambda X: X[:3], [1, NAN, 1], InputError, "entry 1 is nan"),
    "few weights": (lambda X: X[:3], [1, 1], InputError, "3 rows, got shape"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("name", LEARNERS)
def test_malformed_input_is_refused_whole(name: str, what: str, tmp_path: Path) -> None:
    X, y = rows(name)
    make, w, error, message = BAD[what]
    bad = make(X)
    labels = y[: bad.shape[0]]
    for verb in ("partial_fit", "learn_many"):
        model = LEARNERS[name]()
        more = {"classes": ["a", "b", "c"]} if name in LABELLED else {}
        if verb == "partial_fit":
            model.partial_fit(X[:30], y[:30], **more)
        else:
            feed(name, model, X[:30], y[:30], None)
        before = saved(model, tmp_path)
        attributes = sorted(vars(model))
        with pytest.raises(error, match=message):
            if verb == "partial_fit":
                model.partial_fit(bad, labels, sample_weight=w)
            else:
                feed(name, model, bad, labels, w)
        assert saved(model, tmp_path) == before
        assert sorted(vars(model)) == attributes
    fresh = LEARNERS[name]()
    if what != "a column more":
        with pytest.raises(error):
            fresh.partial_fit(bad, labels, sample_weight=w, **more)
        assert vars(fresh) == vars(LEARNERS[name]())


@pytest.mark.parametrize("name", LEARNERS)
def test_malformed_examples(name: str, tmp_path: Path) -> None:
    X, y = rows(name)
    model = LEARNERS[name]()
    feed(name, model, X[:30], y[:30], None)
    before = saved(model, tmp_path)
    for x, error in (
        ([1.0, NAN, 0.0, 0.0, 0.0], InputError),
        ([1.0], FeatureError),
        ({"a": 1.0}, FeatureError),
        ("text", InputError),
        (None, InputError),
    ):
        with pytest.raises(error):
            feed_one(name, model, x, "a", 1.0)
        assert saved(model, tmp_path) == before
    for weight in (-1.0, NAN, 1e200):
        with pytest.raises(InputError):
            feed_one(name, model, X[0], "a", weight)
    if name in LABELLED:
        for label, text in ((None, "None"), ([1], "hashable"), (NAN, "nan")):
            with pytest.raises(LabelError, match=text):
                model.learn_one(X[0], label)
        with pytest.raises(LabelError, match="one label per row"):
            model.learn_many(X[:2], "ab")
        with pytest.raises(InputError, match="X has 2 rows, y has 3"):
            model.learn_many(X[:2], ["a", "b", "c"])
    assert saved(model, tmp_path) == before


@pytest.mark.parametrize("name", LEARNERS)
def test_malformed_mappings_admit_no_name(name: str, tmp_path: Path) -> None:
    X, y = rows(name)
    model = LEARNERS[name]()
    feed(name, model, FORMS["named"](X[:30]), y[:30], None)
    before = saved(model, tmp_path)
    bad = {"new": 1.0, "c": NAN}
    for verb in (
        lambda x: feed_one(name, model, x, "new label", 1.0),
        lambda x: feed(name, model, [{"q": 1.0}, x], ["new", "newer"], None),
    ):
        for x in (bad, {"new": 1.0, 1.5: 1.0}, {"new": 1.0, "c": [1]}):
            with pytest.raises(InputError):
                verb(x)
            assert saved(model, tmp_path) == before
    with pytest.raises(FeatureError, match="named features"):
        feed_one(name, model, X[0], "a", 1.0)
    assert saved(model, tmp_path) == before


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "CategoricalNB"])
@pytest.mark.parametrize("form", FORMS)
def test_overflow_is_refused_for_its_row(name: str, form: str, tmp_path: Path) -> None:
    X, y = rows(name)
    X[7, 2] = 1e150
    table = FORMS[form](X)
    model, clean = LEARNERS[name](), LEARNERS[name]()
    with pytest.raises(NumericalError, match=r"row 7: .* The rows before it were learned") as caught:
        feed(name, model, table, y, None)
    assert caught.value.row == 7
    feed(name, clean, table[:7], y[:7], None)
    assert saved(model, tmp_path) == saved(clean, tmp_path)
    with pytest.raises(NumericalError):
        feed_one(name, model, table[7], "a", 1.0)
    assert saved(model, tmp_path) == saved(clean, tmp_path)


PARAMETERS: list[tuple[Any, dict[str, Any], str]] = [
    (op.GaussianNB, {"var_smoothing": -1}, r"GaussianNB\(var_smoothing=-1\): expected"),
    (op.GaussianNB, {"forgetting": 0}, "forgetting=0"),
    (op.GaussianNB, {"fit_prior": 1}, "fit_prior=1"),
    (op.GaussianNB, {"class_prior": [0.5, 0.6]}, "class_prior=.* together make 1"),
    (op.MultinomialNB, {"alpha": 0}, "alpha=0"),
    (op.BernoulliNB, {"binarize": -1}, "binarize=-1"),
    (op.ComplementNB, {"norm": 2}, "norm=2"),
    (op.CategoricalNB, {"alpha": NAN}, "alpha=nan"),
    (op.LVQClassifier, {"variant": "lvq3"}, "expected one of 'lvq1', 'olvq1', 'lvq21'"),
    (op.LVQClassifier, {"eta": 1}, "eta=1"),
    (op.LVQClassifier, {"window": 0}, "window=0"),
    (op.LVQClassifier, {"prototypes_per_class": 0}, "prototypes_per_class=0"),
    (op.KNNClassifier, {"n_neighbors": 0.5}, "n_neighbors=0.5"),
    (op.KNNClassifier, {"window": 0}, "window=0"),
    (op.KNNClassifier, {"weights": "far"}, "weights='far'"),
    (op.KMeans, {"n_clusters": 0}, "n_clusters=0"),
    (op.KMeans, {"batch_size": 0}, "batch_size=0"),
    (op.KMeans, {"decay": 1.5}, "decay=1.5"),
    (op.KMeans, {"reassign": "yes"}, "reassign='yes'"),
    (op.KMeans, {"init_size": -1}, "init_size=-1"),
    (op.KMeans, {"passes": 0}, "passes=0"),
    (op.KMeans, {"random_state": "x"}, "random_state='x'"),
    (op.IncrementalPCA, {"n_components": None}, "n_components=None"),
    (op.IncrementalPCA, {"forgetting": 2}, "forgetting=2"),
    (op.OjaPCA, {"eta": 0}, "eta=0"),
    (op.OjaPCA, {"kappa": 0.5}, "kappa=0.5"),
    (op.CCIPCA, {"amnesic": -1}, "amnesic=-1"),
    (op.DictionaryLearning, {"alpha": 0}, "alpha=0"),
    (op.DictionaryLearning, {"tol": 0}, "tol=0"),
    (op.DictionaryLearning, {"max_sweeps": 0}, "max_sweeps=0"),
    (op.DictionaryLearning, {"dict_init": np.ones((3, 5))}, "expected 16 rows"),
    (op.GaussianMixture, {"covariance": "round"}, "covariance='round'"),
    (op.GaussianMixture, {"schedule": "fast"}, "schedule='fast'"),
    (op.GaussianMixture, {"kappa": 0.5}, "kappa=0.5"),
    (op.GaussianMixture, {"eta": 1}, "eta=1"),
    (op.GaussianMixture, {"burn_in": -1}, "burn_in=-1"),
    (op.GaussianMixture, {"revive": 1}, "revive=1"),
    (op.GaussianMixture, {"cov_floor": 0}, "cov_floor=0"),
    (op.GaussianMixture, {"mode": "both"}, "mode='both'"),
    (op.GaussianMixture, {"tol": -1}, "tol=-1"),
    (op.GaussianMixture, {"max_iter": 0}, "max_iter=0"),
    (op.GaussianMixture, {"means_init": [[1.0]]}, "means_init has shape"),
    (op.BernoulliMixture, {"p_floor": 0.5}, "p_floor=0.5"),
    (op.BernoulliMixture, {"binarize": "x"}, "binarize='x'"),
]


@pytest.mark.parametrize(("kind", "options", "message"), PARAMETERS, ids=str)
def test_parameters_out_of_range(kind: Any, options: dict[str, Any], message: str) -> None:
    X, y = rows(kind.__name__)
    model = kind(**options)
    with pytest.raises(ParameterError, match=message):
        model.fit((X > 1).astype(float) if kind is op.BernoulliMixture else X, y)
    assert sorted(vars(model)) == sorted(vars(kind(**options)))


def test_every_parameter_is_tried() -> None:
    """Each has a value that is refused; those shared by a family once."""
    tried = {name for _, options, _ in PARAMETERS for name in options}
    for make in LEARNERS.values():
        assert set(make().get_params(deep=False)) - tried <= {"weights_init", "covariances_init"}


# -- promise 3 ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_a_file_whose_parts_do_not_fit_is_refused(name: str, tmp_path: Path) -> None:
    X, y = rows(name)
    model = LEARNERS[name]()
    feed(name, model, X, y, None)
    model.save(tmp_path / "m.onepass")
    again = op.load(tmp_path / "m.onepass")
    assert type(again) is type(model) and again.get_params() == model.get_params()
    kind, config, arrays = store.read(tmp_path / "m.onepass")
    assert kind == type(model).__name__
    changes: list[tuple[Any, Any]] = []
    for array in arrays:
        changes.append((config, {key: value for key, value in arrays.items() if key != array}))
        if arrays[array].size:
            changes.append((config, {**arrays, array: arrays[array][..., :-1]}))
        if arrays[array].dtype == np.float64 and arrays[array].size:
            changes.append(
                (
                    config,
                    {
                        **arrays,
                        array: np.where(
                            np.arange(arrays[array].size).reshape(arrays[array].shape) == 0, NAN, arrays[array]
                        ),
                    },
                )
            )
    for key in config:
        changes += [({**config, key: value}, arrays) for value in (None, 7, "x", [])]
    for key in config["learned"]:
        changes.append(({**config, "learned": {k: v for k, v in config["learned"].items() if k != key}}, arrays))
    for number, (numbers, parts) in enumerate(changes):
        store.write(tmp_path / "bad.onepass", kind, numbers, parts)
        with pytest.raises((DamagedFileError, ParameterError)):
            assert op.load(tmp_path / "bad.onepass") is None, f"change {number}"
    store.write(tmp_path / "bad.onepass", "Oracle", config, arrays)
    with pytest.raises(ForeignFileError, match="a learner of kind 'Oracle'"):
        op.load(tmp_path / "bad.onepass")
    store.write(tmp_path / "bad.onepass", "stateful", config, arrays)
    with pytest.raises(ForeignFileError, match=r"unreleased version of onepass.*learn and save the model again"):
        op.load(tmp_path / "bad.onepass")
