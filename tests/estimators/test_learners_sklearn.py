"""Own-state learners as scikit-learn's estimators, and as steps of pipelines."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.estimator_checks import assert_checks_pass
from test_learners import FORMS, LABELLED, LEARNERS, rows, saved

import onepass as op
from onepass.transforms import StandardScaler

# -- scikit-learn ------------------------------------------------------------------------------------------------------

ORDER = {
    f"check_sample_weight_equivalence_on_{kind}_data": "seeding, or rows in order: a row twice is not a weight of two"
    for kind in ("dense", "sparse")
}
EXPECTED: dict[str, dict[str, str]] = {
    "CategoricalNB": {
        **{
            f"check_sample_weight_equivalence_on_{kind}_data": "its rows are no categories"
            for kind in ("dense", "sparse")
        },
        "check_classifiers_one_label_sample_weights": "its rows are no categories",
    },
    **{name: ORDER for name in ("KMeans", "LVQClassifier", "KNNClassifier", "CCIPCA", "DictionaryLearning")},
    **{
        name: {
            f"check_estimator_sparse_{kind}": "it expects the probabilities of 4 classes"
            for kind in ("array", "matrix")
        }
        for name in ("GaussianMixture", "BernoulliMixture")
    },
}
CHECKED = {
    **{name: make for name, make in LEARNERS.items() if " " not in name},
    "GaussianMixture full": lambda: op.GaussianMixture(covariance="full"),
    "BernoulliMixture": lambda: op.BernoulliMixture(binarize=0.0),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", CHECKED)
def test_scikit_learns_checks(name: str) -> None:
    kind = type(CHECKED[name]())
    estimator = kind(binarize=0.0) if kind is op.BernoulliMixture else kind()
    expected = EXPECTED.get(kind.__name__, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_checks_pass(estimator, expected, least=45)


def test_unfitted_and_frames() -> None:
    X, y = rows("")
    frame = pd.DataFrame(X, columns=list("abcde"))
    for name, make in LEARNERS.items():
        Z, y = rows(name)
        frame = pd.DataFrame(Z, columns=list("abcde"))
        model = make()
        with pytest.raises(AttributeError, match="not learned anything"):
            _ = model.t_
        with pytest.raises(NotFittedError):
            (model.predict if hasattr(model, "predict") else model.transform)(Z)
        model.fit(frame, y)
        one = dict(zip("abcde", Z[0].tolist(), strict=True))
        if hasattr(model, "predict_one"):
            assert model.predict_one(one) == model.predict(frame[:1])[0]
        else:
            np.testing.assert_allclose(model.transform_one(one), model.transform(frame[:1])[0], atol=1e-12)
        assert clone(model).get_params().keys() == model.get_params().keys()


# -- pipelines ---------------------------------------------------------------------------------------------------------

STEPS = {name: make for name, make in LEARNERS.items() if name not in LABELLED and "Mixture" not in name}


@pytest.mark.parametrize("form", ["f64", "named"])
@pytest.mark.parametrize("name", STEPS)
def test_as_a_step_of_a_pipeline(name: str, form: str, tmp_path: Path) -> None:
    X, y = rows(name)
    table = FORMS[form](X)
    whole, single, chunked = (StandardScaler() | STEPS[name]() | op.LinearClassifier("pa1") for _ in range(3))
    whole.learn_many(table, y.tolist())
    for i in range(len(X)):
        before = single.predict_one(table[i])
        assert single.predict_one(table[i]) == before
        single.learn_one(table[i], str(y[i]))
    for start in range(0, len(X), 13):
        chunked.learn_many(table[start : start + 13], y[start : start + 13].tolist())
        chunked.save(tmp_path / "p.onepass")
        chunked = op.load(tmp_path / "p.onepass")
    assert saved(whole, tmp_path) == saved(single, tmp_path)
    np.testing.assert_array_equal(whole.steps[-1][1].coef_, chunked.steps[-1][1].coef_)
    assert saved(whole.steps[1][1], tmp_path) == saved(chunked.steps[1][1], tmp_path)
    saved(whole, tmp_path)
    assert whole.predict_one(table[0]) == op.load(tmp_path / "now.onepass").predict_one(table[0])
    run = STEPS[name]() | op.LinearClassifier("pa1")
    said = run.predict_then_learn(table, y.tolist())
    again = STEPS[name]() | op.LinearClassifier("pa1")
    for i in range(len(X)):
        assert again.predict_one(table[i]) == said[i]
        again.learn_one(table[i], str(y[i]))


def test_at_the_end_of_a_pipeline(tmp_path: Path) -> None:
    X, y = rows("GaussianNB")
    for model in (op.GaussianNB(), op.KNNClassifier(3), op.LVQClassifier(), op.GaussianMixture(2)):
        chain = StandardScaler() | op.IncrementalPCA(3, batch_size=10) | model
        chain.learn_many(X, y.tolist())
        saved(chain, tmp_path)
        assert op.load(tmp_path / "now.onepass").predict_one(X[0]) == chain.predict_one(X[0])
    fitted = (StandardScaler() | op.IncrementalPCA(3) | op.GaussianNB()).fit(X, y)
    assert np.mean(fitted.predict(X) == y) > 0.7


def test_prequential() -> None:
    X, y = rows("GaussianNB", 300)
    for model in (op.GaussianNB(), op.MultinomialNB(), op.KNNClassifier(), op.LVQClassifier()):
        run = op.prequential(model, zip(FORMS["named"](X), y.tolist(), strict=True))
        assert run.examples == 300 and run.value < 0.45
    run = op.prequential(op.GaussianNB(), zip(X, y.tolist(), strict=True), metrics=["error", "log_loss"])
    assert run.value < 0.3


def test_more_neighbours_than_there_are_examples_take_no_room():
    X, y = np.eye(3), ["a", "b", "b"]
    few, many = op.KNNClassifier(3).fit(X, y), op.KNNClassifier(2**50).fit(X, y)
    np.testing.assert_array_equal(many.predict_proba(X), few.predict_proba(X))
