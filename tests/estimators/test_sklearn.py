"""scikit-learn's contract, by scikit-learn's own checks and by use: pipelines, grids, frames, probabilities."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import check_classifiers_train
from support.estimator_checks import NOT_ONLINE, assert_checks_pass

from onepass import LinearClassifier, LinearRegressor, rules
from onepass.errors import ParameterError
from onepass.scheme import losses

# These are minimisers of a weighted sum after every example, or sums, and pass also what is not for online learners.
EXACT = ("rls", "kalman", "parzen")


def rules_for(task: str) -> list[str]:
    """Every rule, and descent on every loss, that is defined for the task."""
    names = [name for name in rules.RULES if name != "sgd"] + [f"sgd:loss={name}" for name in losses.LOSSES]
    return [name for name in names if task in rules.make(name).traits.tasks]


@pytest.mark.full(most=12)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("rule", rules_for("binary"))
def test_classifier_checks(rule):
    assert_all_pass(LinearClassifier(rule))


@pytest.mark.full(most=12)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("rule", rules_for("regression"))
def test_regressor_checks(rule):
    assert_all_pass(LinearRegressor(rule))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("options", [{"readout": "average"}, {"hash_bits": 8}, {"fit_intercept": False}], ids=str)
def test_option_checks(options):
    assert_all_pass(LinearClassifier("pa1", **options))
    assert_all_pass(LinearRegressor("pa1", **options))


def assert_all_pass(estimator) -> None:
    assert_checks_pass(estimator, () if estimator.rule in EXACT else NOT_ONLINE)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("rule", ["perceptron", "pa", "pa1", "pa2", "sgd:loss=hinge", "sgd:loss=logistic", "nlms"])
def test_accuracy_checks_with_the_poor_score_tag_off(rule):
    class Ambitious(LinearClassifier):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.poor_score = False
            return tags

    for readonly in (False, True):
        check_classifiers_train("Ambitious", Ambitious(rule, passes=3), readonly_memmap=readonly)


def test_grid_search_reaches_the_rule():
    X, y = load_breast_cancer(return_X_y=True)
    search = GridSearchCV(LinearClassifier(rules.PA1()), {"rule__C": [1e-9, 0.1]}, cv=3).fit(scale(X), y)
    assert search.best_params_ == {"rule__C": 0.1}
    assert search.best_estimator_.rule.C == 0.1


def test_clone_and_parameters():
    model = LinearClassifier(rules.PA1(C=0.5), readout="average", class_weight={0: 2.0})
    copy = clone(model)
    assert copy.get_params()["rule__C"] == 0.5
    copy.set_params(rule__C=0.25, readout="last")
    assert model.rule.C == 0.5 and copy.rule.C == 0.25
    with pytest.raises(ParameterError, match=r"number > 0"):
        copy.set_params(rule__C=-1)
    assert copy.rule.C == 0.25


def test_real_data_in_a_pipeline():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LinearClassifier("pa1:C=0.1", passes=5, readout="average"))
    assert cross_val_score(pipeline, X, y, cv=5).mean() > 0.95
    X, y = load_diabetes(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LinearRegressor("pa1:C=1", passes=5, readout="average"))
    assert cross_val_score(pipeline, X, y, cv=5).mean() > 0.4


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)], ids=["pandas", "polars"]
)
def test_frames(frame):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)[:, :4]
    names = ["radius", "texture", "perimeter", "area"]
    table = frame(X, columns=names)
    model = LinearClassifier("pa1").fit(table, y)
    assert model.feature_names_in_.tolist() == names
    assert set(model.weights_) == set(names)
    np.testing.assert_array_equal(model.predict(table), LinearClassifier("pa1").fit(X, y).predict(X))
    assert model.predict_one(dict(zip(names, X[0], strict=True))) == model.predict(table)[0]
    with pytest.raises(ValueError, match=r"[Ff]eature names"):
        model.predict(frame(X, columns=names[::-1]))


def test_dtypes_agree():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X).astype(np.float32)
    single = LinearClassifier("pa1").fit(X, y)
    double = LinearClassifier("pa1").fit(X.astype(np.float64), y)
    np.testing.assert_array_equal(single.coef_, double.coef_)
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(LinearClassifier("pa1").fit(wide, y).coef_, double.coef_, rtol=1e-12, atol=1e-12)


def test_probabilities_only_where_the_loss_gives_them():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    assert not hasattr(LinearClassifier("pa1"), "predict_proba")
    p = LinearClassifier("sgd:loss=logistic,eta=0.5").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(
        p[:, 1] > 0.5, LinearClassifier("sgd:loss=logistic,eta=0.5").fit(X, y).predict(X) == 1
    )
    three = LinearClassifier("sgd:loss=logistic").fit(X, np.arange(len(y)) % 3)
    assert three.predict_proba(X).shape == (len(X), 3)
    one = three.predict_proba_one(X[0])
    np.testing.assert_allclose([one[c] for c in three.classes_], three.predict_proba(X)[0], rtol=1e-12)


def test_class_weights():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 2))
    y = (X[:, 0] + generator.normal(size=2000) > 1.5).astype(int)  # about one in seven
    recall = {}
    for name, weight in {"none": None, "balanced": "balanced", "dict": {1: 8.0}}.items():
        model = LinearClassifier("sgd:loss=logistic,eta=0.2", class_weight=weight, readout="average").fit(X, y)
        recall[name] = np.mean(model.predict(X)[y == 1] == 1)
    assert recall["balanced"] > recall["none"] + 0.2
    assert recall["dict"] > recall["none"] + 0.2
    batch = LinearClassifier("pa1", class_weight={1: 8.0}).partial_fit(X, y, classes=[0, 1])
    single = LinearClassifier("pa1", class_weight={1: 8.0}).partial_fit(X[:1], y[:1], classes=[0, 1])
    for x, label in zip(X[1:], y[1:], strict=True):
        single.learn_one(x, int(label))
    np.testing.assert_array_equal(batch.coef_, single.coef_)
    with pytest.raises(ParameterError, match="balanced"):
        LinearClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])


def test_unfitted_pickled_and_shown():
    model = LinearClassifier("pa1")
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])
    assert model.predict_one({"a": 1}) is None
    model.learn_one({"a": 1, "colour": "red"}, "yes")
    model.learn_one({"b": 1}, "no")
    again = pickle.loads(pickle.dumps(model))
    assert again.weights_ == model.weights_ and again.classes_.tolist() == ["no", "yes"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert "LinearClassifier" in model._repr_html_()
