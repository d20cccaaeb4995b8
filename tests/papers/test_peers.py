"""Round for round the weights of scikit-learn and River, where they implement the same rule.

The marks [P] of the specification.
`ours` is every way to run a rule: `ReferenceLearner` and the estimators.
River's PARegressor is left out on purpose: its loss replaces y by 2y − 1 (00 §16).
"""

from __future__ import annotations

import numpy as np
import pytest
from river import linear_model as river
from sklearn import linear_model as sk

import onepass
from onepass import rules
from onepass.models.reference import ReferenceLearner
from onepass.scheme.readouts import Average

from .streams import random_stream, run, with_constant


def by_core(rule, task, stream, **options):
    return run(ReferenceLearner(rule, task, **options), stream)


def by_estimator(rule, task, stream, **options):
    kind = onepass.LinearRegressor if task == "regression" else onepass.LinearClassifier
    return partial_fits(kind(rule, **options), task, stream)


WAYS = {"core": by_core, "estimator": by_estimator}


@pytest.fixture(params=WAYS)
def ours(request):
    return WAYS[request.param]


def partial_fits(model, task, stream):
    """A model with scikit-learn's methods, one example a call: (coef_, intercept_) after each."""
    classes = {"binary": [-1, 1], "multiclass": [0, 1, 2]}
    rows = []
    for x, y, c in stream:
        known = {"classes": classes[task]} if task in classes else {}
        model.partial_fit([x], [y], sample_weight=[c], **known)
        rows.append(np.append(np.ravel(model.coef_), np.ravel(model.intercept_)))
    return np.array(rows)


def same(a, b, rtol=1e-12):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


# ---- scikit-learn: (its model, our rule, our other options); no tolerance, no shuffling matters here ----

FLAT = {"penalty": None, "shuffle": False, "tol": None}
CONSTANT = {"learning_rate": "constant", "eta0": 0.05}
INVSCALING = {"learning_rate": "invscaling", "eta0": 0.3, "power_t": 0.4}
SHRUNK = {"penalty": "l2", "alpha": 0.05, "shuffle": False, "tol": None}


def classifier(loss="hinge", **options):
    return lambda fit_intercept: sk.SGDClassifier(loss=loss, fit_intercept=fit_intercept, **options)


def regressor(loss="squared_error", **options):
    return lambda fit_intercept: sk.SGDRegressor(loss=loss, fit_intercept=fit_intercept, **options)


CLASSIFIERS = {
    "perceptron": (lambda fit_intercept: sk.Perceptron(fit_intercept=fit_intercept, shuffle=False, tol=None),
                   rules.Perceptron()),
    "perceptron, eta0": (lambda fit_intercept: sk.Perceptron(eta0=0.3, fit_intercept=fit_intercept, tol=None),
                         rules.Perceptron(0.3)),
    "pa1": (classifier(**FLAT, learning_rate="pa1", eta0=0.2), rules.PA1(0.2, importance_mode="scale_step")),
    "pa2": (classifier(**FLAT, learning_rate="pa2", eta0=0.2), rules.PA2(0.2, importance_mode="scale_step")),
    "hinge, constant": (classifier(**FLAT, **CONSTANT), rules.SGD("hinge", "constant", eta=0.05)),
    "hinge, l2": (classifier(**SHRUNK, **CONSTANT), rules.SGD("hinge", "constant", eta=0.05, l2=0.05)),
    "hinge, l2, optimal": (classifier(**SHRUNK, learning_rate="optimal"),
                           rules.SGD("hinge", "optimal(alpha=0.05)", l2=0.05)),
    "log, l2, optimal": (classifier("log_loss", **SHRUNK, learning_rate="optimal"),
                         rules.SGD("logistic", "optimal(alpha=0.05)", l2=0.05)),
    "log, invscaling": (classifier("log_loss", **FLAT, **INVSCALING),
                        rules.SGD("logistic", "inv_scaling(eta=0.3,p=0.4)")),
    "log, constant, l2": (classifier("log_loss", **SHRUNK, **CONSTANT),
                          rules.SGD("logistic", "constant", eta=0.05, l2=0.05)),
    "perceptron loss": (classifier("perceptron", **FLAT, **INVSCALING),
                        rules.SGD("perceptron", "inv_scaling(eta=0.3,p=0.4)")),
    # Unhalved there: twice the step here (00 §5, "Factor ½").
    "squared hinge": (classifier("squared_hinge", **FLAT, **CONSTANT),
                      rules.SGD("squared_hinge", "constant", eta=0.1)),
    "squared hinge, invscaling": (classifier("squared_hinge", **FLAT, **INVSCALING),
                                  rules.SGD("squared_hinge", "inv_scaling(eta=0.6,p=0.4)")),
    "squared, labels": (classifier("squared_error", **FLAT, **CONSTANT),
                        rules.SGD("squared", "constant", eta=0.05)),
}  # fmt: skip
REGRESSORS = {
    "adaline": (regressor(**FLAT, **CONSTANT), rules.Adaline(0.05)),
    "squared, invscaling": (regressor(**FLAT, **INVSCALING),
                            rules.SGD("squared", "inv_scaling(eta=0.3,p=0.4)")),
    # A small α starts with steps on which the squared loss diverges.
    "squared, l2, optimal": (regressor(**{**SHRUNK, "alpha": 2.0}, learning_rate="optimal"),
                             rules.SGD("squared", "optimal(alpha=2)", l2=2.0)),
    "pa1": (regressor("epsilon_insensitive", **FLAT, learning_rate="pa1", eta0=0.2, epsilon=0.3),
            rules.PA1(0.2, epsilon=0.3, importance_mode="scale_step")),
    "pa2": (regressor("epsilon_insensitive", **FLAT, learning_rate="pa2", eta0=0.2, epsilon=0.3),
            rules.PA2(0.2, epsilon=0.3, importance_mode="scale_step")),
    "huber": (regressor("huber", **FLAT, **CONSTANT, epsilon=0.7),
              rules.SGD("huber(delta=0.7)", "constant", eta=0.05)),
    "epsilon insensitive": (regressor("epsilon_insensitive", **SHRUNK, **CONSTANT, epsilon=0.3),
                            rules.SGD("eps_insensitive(epsilon=0.3)", "constant", eta=0.05, l2=0.05)),
    # Unhalved there as well.
    "squared epsilon insensitive": (
        regressor("squared_epsilon_insensitive", **FLAT, **CONSTANT, epsilon=0.3),
        rules.SGD("squared_eps_insensitive(epsilon=0.3)", "constant", eta=0.1)),
}  # fmt: skip
SKLEARN = [("binary", *row) for row in CLASSIFIERS.items()] + [("regression", *row) for row in REGRESSORS.items()]


@pytest.mark.full
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("task", "name", "pair"), SKLEARN, ids=[f"{task}: {name}" for task, name, _ in SKLEARN])
def test_scikit_learn(ours, task, name, pair, weighted, fit_intercept):
    """`sample_weight` is our importance_mode="scale_step"; their PA leaves the intercept out of ‖x‖²."""
    model, rule = pair
    stream = random_stream(np.random.default_rng(len(name)), task, rounds=40, weighted=weighted)
    # It shrinks on weight 0 and on zero vectors too, where we make no update at all (00 §6).
    stream = [e for e in stream if np.any(e.x) and e.c > 0]
    mine = ours(rule, task, stream, fit_intercept=fit_intercept, bias_in_norm=False)
    same(mine, partial_fits(model(fit_intercept), task, stream))


@pytest.mark.parametrize(("kind", "rate"), [(rules.PA1, "pa1"), (rules.PA2, "pa2")])
def test_scikit_learn_with_a_constant_column(ours, kind, rate):
    """00 §4: our intercept counts in ‖x‖², as an explicit constant column does there."""
    stream = random_stream(np.random.default_rng(0), "binary")
    mine = ours(kind(0.2), "binary", stream, fit_intercept=True)
    theirs = partial_fits(classifier(**FLAT, learning_rate=rate, eta0=0.2)(False), "binary", with_constant(stream))
    same(mine, theirs[:, :-1])


AVERAGED = {
    "hinge": (classifier(**FLAT, **CONSTANT), rules.SGD("hinge", "constant", eta=0.05)),
    "hinge, l2": (classifier(**SHRUNK, **CONSTANT), rules.SGD("hinge", "constant", eta=0.05, l2=0.05)),
    "log, optimal": CLASSIFIERS["log, l2, optimal"],
    "pa1": CLASSIFIERS["pa1"],
}


@pytest.mark.parametrize("start", [1, 10])
@pytest.mark.parametrize("name", AVERAGED)
def test_scikit_learn_average(ours, name, start):
    """average=True there is Average(kind="post") here; average=10 starts with the tenth example."""
    model, rule = AVERAGED[name]
    stream = [e for e in random_stream(np.random.default_rng(3), "binary") if np.any(e.x)]
    averaging = {"average": True if start == 1 else start}
    mine = ours(rule, "binary", stream, readout=Average("post", start), fit_intercept=False)
    same(mine, partial_fits(model(False).set_params(**averaging), "binary", stream))
    # With an intercept only as one call: between two, scikit-learn 1.9.1 forgets the intercept that learns
    # (`_fit_binary` stores `_standard_intercept` only until averaging starts).
    mine = ours(rule, "binary", stream, readout=Average("post", start), bias_in_norm=False)
    whole = model(True).set_params(**averaging)
    whole.partial_fit([e.x for e in stream], [e.y for e in stream], classes=[-1, 1])
    same(mine[-1], np.append(whole.coef_, whole.intercept_))


def test_scikit_learn_hinge_at_its_kink():
    """00 §5: at m = 1 exactly scikit-learn still pulls, we do not."""
    model = classifier(**FLAT, learning_rate="constant", eta0=0.5)(False)
    learner = ReferenceLearner(rules.SGD("hinge", "constant", eta=0.5), fit_intercept=False)
    for expected in (([0.5], [0.5]), ([1.0], [1.0]), ([1.5], [1.0])):
        model.partial_fit([[1.0]], [1], classes=[-1, 1])
        learner.learn([1.0], 1)
        same((model.coef_[0], learner.w), expected)


# ---- River ----


def river_rounds(model, stream):
    rows = []
    for x, y, _ in stream:
        model.learn_one(dict(enumerate(x.tolist())), y > 0)
        rows.append([model.weights.get(j, 0.0) for j in range(len(x))] + [model.intercept])
    return np.array(rows)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("rule", "mode"), [(rules.PA(), 0), (rules.PA1(0.2), 1), (rules.PA2(0.2), 2)])
def test_river_pa(ours, rule, mode, fit_intercept):
    for seed in range(3):
        stream = [e for e in random_stream(np.random.default_rng(seed), "binary") if np.any(e.x)]
        theirs = river_rounds(river.PAClassifier(C=0.2, mode=mode, learn_intercept=fit_intercept), stream)
        same(ours(rule, "binary", stream, fit_intercept=fit_intercept, bias_in_norm=False), theirs)


def test_river_perceptron(ours):
    for seed in range(3):
        stream = [e for e in random_stream(np.random.default_rng(seed), "binary") if np.any(e.x)]
        same(ours(rules.Perceptron(), "binary", stream), river_rounds(river.Perceptron(), stream))
