"""Naive Bayes in any chunks against scikit-learn's on the whole, and against counts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import naive_bayes as theirs
from support.extras import require_extra

import onepass as op

PAIRS: dict[str, tuple[Any, Any]] = {
    "gaussian": (op.GaussianNB, theirs.GaussianNB),
    "bernoulli": (lambda: op.BernoulliNB(0.5, binarize=1.0), lambda: theirs.BernoulliNB(alpha=0.5, binarize=1.0)),
    "multinomial": (lambda: op.MultinomialNB(0.3), lambda: theirs.MultinomialNB(alpha=0.3)),
    "uniform": (lambda: op.MultinomialNB(fit_prior=False), lambda: theirs.MultinomialNB(fit_prior=False)),
    "complement": (op.ComplementNB, theirs.ComplementNB),
    "normed": (lambda: op.ComplementNB(norm=True), lambda: theirs.ComplementNB(norm=True)),
    "categorical": (lambda: op.CategoricalNB(0.7), lambda: theirs.CategoricalNB(alpha=0.7)),
    "prior": (
        lambda: op.BernoulliNB(class_prior=[0.2, 0.3, 0.5]),
        lambda: theirs.BernoulliNB(class_prior=[0.2, 0.3, 0.5]),
    ),
}


def counts(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(4)
    y = generator.integers(0, 3, n)
    X = generator.poisson(generator.random((3, 9))[y] * 3).astype(float)
    return X, y, generator.choice([0.5, 1.0, 3.0], n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_any_chunking_is_scikit_learns_on_the_whole(name: str, weighted: bool) -> None:
    X, y, w = counts()
    weights = w if weighted else None
    ours, reference = PAIRS[name]
    whole = reference().fit(X, y, sample_weight=weights)
    forms = [np.asarray, sparse.csr_matrix] if name != "categorical" else [np.asarray]
    for form in forms:
        model = ours()
        start = 0
        for stop in np.unique([*np.random.default_rng(1).integers(1, 400, 17), 400]).tolist():
            part = None if weights is None else weights[start:stop]
            model.partial_fit(form(X[start:stop]), y[start:stop], classes=[0, 1, 2], sample_weight=part)
            start = stop
        table = form(X)
        np.testing.assert_allclose(
            model.predict_joint_log_proba(table), whole.predict_joint_log_proba(X), atol=1e-9, rtol=1e-9
        )
        np.testing.assert_allclose(model.predict_proba(table), whole.predict_proba(X), atol=1e-10)
        np.testing.assert_array_equal(model.predict(table), whole.predict(X))
        one = [list(model.predict_proba_one(X[i]).values()) for i in range(40)]
        np.testing.assert_allclose(one, whole.predict_proba(X[:40]), atol=1e-10)
    np.testing.assert_allclose(model.class_count_, whole.class_count_, rtol=1e-12)
    if hasattr(model, "theta_"):
        np.testing.assert_allclose(model.theta_, whole.theta_, rtol=1e-12)
        np.testing.assert_allclose(model.var_, whole.var_, rtol=1e-8)  # its smoothing ignores weights
    if name == "multinomial":
        np.testing.assert_allclose(model.feature_log_prob_, whole.feature_log_prob_, rtol=1e-12)
        np.testing.assert_allclose(model.feature_count_, whole.feature_count_, rtol=1e-12)


def test_gaussian_far_from_zero() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 4)) + 1e8
    y = generator.integers(0, 2, 300)
    X[y == 1] += 3.0
    model = op.GaussianNB(0.0).fit(X, y)
    np.testing.assert_allclose(model.var_, [X[y == c].var(axis=0) for c in (0, 1)], rtol=1e-6)
    assert np.mean(model.predict(X) == y) > 0.95


def test_named_counts_by_hand() -> None:
    """θ = (N + 1)/(ΣN + d), d the words seen so far."""
    model = op.MultinomialNB()
    assert model.predict_one({"free": 1}) is None and model.predict_proba_one({"free": 1}) == {}
    model.learn_one({"free": 2, "money": 1}, "spam")
    model.learn_one({"meeting": 1}, "ham")
    # spam: (2+1)/(3+3), (1+1)/6, 1/6; ham: 1/(1+3), 1/4, 2/4. Priors ½.
    p, q = (3 / 6) * (2 / 6), (1 / 4) * (1 / 4)
    assert model.predict_proba_one({"free": 1, "money": 1})["spam"] == pytest.approx(p / (p + q))
    p, q = p * (1 / 6) ** 2, q * (1 / 4) ** 2  # a word never seen is one seen 0 times
    assert model.predict_proba_one({"free": 1, "money": 1, "unknown": 2})["spam"] == pytest.approx(p / (p + q))
    model.learn_one({"new word": 1}, "ham")  # d is 4 now
    p, q = (1 / 3) * 3 / 7, (2 / 3) * 1 / 6
    assert model.predict_proba_one({"free": 1})["spam"] == pytest.approx(p / (p + q))
    model.learn_one({"sport": 3}, "other")
    assert model.classes_.tolist() == ["spam", "ham", "other"]


def test_named_rows_are_the_dense_model() -> None:
    X, y, w = counts()
    named = [{j: v for j, v in enumerate(row) if v} for row in X.tolist()]
    for name in ("gaussian", "bernoulli", "multinomial", "complement", "normed"):
        ours, reference = PAIRS[name]
        model = ours()
        for x, label, weight in zip(named, y.tolist(), w.tolist(), strict=True):
            model.learn_one(x, label, weight)
        order = [model.classes_.tolist().index(c) for c in (0, 1, 2)]
        said = np.array([list(model.predict_proba_one(x).values()) for x in named])[:, order]
        np.testing.assert_allclose(said, reference().fit(X, y, sample_weight=w).predict_proba(X), atol=1e-9)


def test_categories_by_name() -> None:
    model = op.CategoricalNB()
    for x, label in (({"sky": "blue", "wind": 1}, "out"), ({"sky": "grey"}, "in"), ({"sky": "blue", "wind": 2}, "out")):
        model.learn_one(x, label)
    # P(blue | out) = (2+1)/(2+2), P(blue | in) = 1/(1+2); priors 2/3, 1/3.
    p, q = 2 / 3 * 3 / 4, 1 / 3 * 1 / 3
    assert model.predict_proba_one({"sky": "blue"})["out"] == pytest.approx(p / (p + q))
    assert model.predict_one({"sky": "black"}) == "out"  # a value never seen came 0 times
    assert model.predict_one({"moon": "full"}) == "out"  # a feature never seen says nothing
    table = op.CategoricalNB().fit([[0, 2], [1, 0]], [0, 1])
    assert [len(c[0]) for c in table.category_count_] == [2, 3]
    assert table.predict([[5, 5]]).shape == (1,)


@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "multinomial", "complement"])
def test_forgetting_is_multiplying_all_counts(name: str) -> None:
    """λ before each example: the same as weights λ^(n − i)."""
    X, y, _ = counts(150)
    make = {
        "gaussian": op.GaussianNB,
        "bernoulli": op.BernoulliNB,
        "multinomial": op.MultinomialNB,
        "complement": op.ComplementNB,
    }
    fading = make[name](forgetting=0.8).fit(X, y)
    weighted = make[name]().fit(X, y, sample_weight=0.8 ** np.arange(149, -1, -1.0))
    np.testing.assert_allclose(
        fading.predict_joint_log_proba(X), weighted.predict_joint_log_proba(X), rtol=1e-8, atol=1e-8
    )
    np.testing.assert_allclose(fading.class_count_, weighted.class_count_, rtol=1e-10)
    long = make[name](forgetting=0.5)  # its unit leaves the range of doubles many times over
    for _ in range(20):
        long.learn_many(X, y)
    assert np.all(np.isfinite(long.predict_proba(X))) and long.class_count_.sum() == pytest.approx(2.0)
    for x, table in zip(X[:5], long.predict_proba(X[:5]), strict=True):
        np.testing.assert_allclose(list(long.predict_proba_one(x).values()), table, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["MultinomialNB", "ComplementNB"])
def test_words_that_grow_are_answered_as_by_river(name: str) -> None:
    """Each row is predicted before it is learned; most bring words that no class has seen."""
    peer = getattr(require_extra("river.naive_bayes"), name)()
    model = getattr(op, name)()
    random = np.random.default_rng(0)
    for _ in range(150):
        label = int(random.integers(3))
        words, counts = np.unique((random.zipf(1.4, 12) * 3 + label) % 500, return_counts=True)
        x = {f"w{word}": int(count) for word, count in zip(words, counts, strict=True)}
        assert model.predict_one(x) == peer.predict_one(x)
        model.learn_one(x, label)
        peer.learn_one(x, label)
