"""Options that ask for more memory than there is: every whole number of every learner, set to 2^31 and to 2^40."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from support.refusal import refusal
from support.store_files import run_python

from onepass import maps, reductions, transforms
from onepass.errors import LabelError, ParameterError

# Runs in a process of its own, whose memory is limited. What an option asks for is there, or refused by its name.
TRIED = """
import dataclasses, inspect, itertools, resource, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from sklearn.exceptions import NotFittedError
from support.learners import LEARNERS
import onepass as op
from onepass import budgets, convex, datasets, drift, experts, maps, reductions, transforms
from onepass.persistence import registry
from onepass.datasets.generators import Synthetic
from onepass.errors import OnepassError
from onepass.learner import traits_of

ROWS = 6
X = np.random.default_rng(0).random((ROWS, 4))
ANSWERS = {"class": ["a", "b"] * 3, "number": [0.5 * i for i in range(ROWS)], "labels": [["a"], ["b"]] * 3}
UNBOUNDED = ("passes", "max_iter", "max_sweeps")  # how often, not how much: `fit` would take them at their word


def whole(function):
    for name, option in inspect.signature(function).parameters.items():
        number = isinstance(option.default, int) and not isinstance(option.default, bool)
        if number or ("int" in str(option.annotation) and "bool" not in str(option.annotation)):
            yield name


def use(learner, option):
    traits = traits_of(learner)
    y = ANSWERS.get(traits.answers)
    table = X if "rows" in traits.forms else [{"a": float(i), **dict.fromkeys(traits.needs, 1.0)} for i in range(ROWS)]
    if traits.values == "texts":
        table = [{"text": "so it goes"}] * ROWS
    for verb, row in (("predict_one", table[0]), ("transform_one", table[0]), ("transform_many", table)):
        try:
            getattr(learner, verb, id)(row)
        except NotFittedError:
            pass
    given = {"rank": (np.arange(6.0), [0] * 3 + [1] * 3)}.get(traits.answers, () if y is None else (y,))
    learner.learn_many(table, *given)
    getattr(learner, "predict_one" if y else "transform_one", id)(table[0])
    learner.state()
    if hasattr(learner, "fit") and option not in UNBOUNDED:
        learner.fit(table, *given)


def of_learner(make, option, value):
    learner = make()
    given = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    use(type(learner)(**{**given, option: value}), option)


def of_kernel(budget):
    rule = {"ALD": "adaline", "KRLS": "rls", "Forgetron": "perceptron"}.get(type(budget).__name__, "pa1")
    op.KernelClassifier(rule, budget=budget).partial_fit(X, [0, 1] * 3, classes=[0, 1])


def fields(kinds):
    for kind in kinds:
        if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
            yield from ((kind, field.name) for field in dataclasses.fields(kind) if field.metadata.get("integer"))


def cases(value):
    for name, make in LEARNERS.items():
        for option in whole(registry.class_of(name.split("-")[0])):
            if name != "StructuredLearner":
                yield name, option, lambda: of_learner(make, option, value)
    for kind in (getattr(experts, name) for name in experts.__all__):
        if inspect.isclass(kind) and (option := {"M", "K"} & set(inspect.signature(kind).parameters)):
            yield kind.__name__, option.pop(), lambda: kind(value)
    for kind in (getattr(convex, name) for name in convex.__all__):
        if inspect.isclass(kind) and next(iter(inspect.signature(kind).parameters), "") == "d":
            more = {"T": 9} if "T" in inspect.signature(kind).parameters else {}
            yield kind.__name__, "d", lambda: kind(value, **more)
    for kind, option in fields(getattr(budgets, name) for name in budgets.__all__):
        yield kind.__name__, option, lambda: of_kernel(kind(**{option: value}))
    for kind, option in fields(vars(datasets).values()):
        if issubclass(kind, Synthetic):
            yield kind.__name__, option, lambda: next(iter(kind(**{"n": 5000, option: value}).chunks(1000)))
    for kind, option in fields(vars(drift).values()):
        yield kind.__name__, option, lambda: [kind(**{option: value}).update(z) for z in (0.0, 1.0) * 50]
    yield "RandomFourier", "D", lambda: maps.RandomFourier(D=value).fit(X).transform(X)
    yield "HistogramMap", "order", lambda: maps.HistogramMap(order=value).fit(X).transform(X)
    yield "Nystrom", "n_landmarks", lambda: maps.Nystrom(n_landmarks=value).fit(X).transform(X)
    codes = reductions.ErrorCorrectingOutputCodes
    yield "codes", "bits", lambda: codes(classes=range(99), bits=value).learn_one([1.0], 0)


op.LinearClassifier().fit(X, [0, 1] * 3)
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
tried = refused = 0
for value in (2**31, 2**40):
    for name, option, run in cases(value):
        tried += 1
        try:
            run()
        except OnepassError as error:
            refused += 1
            if f"{option}=" not in str(error) and " is not defined for " not in str(error):
                print(f"{name}: {option}={value} is not named: {error}")
        except BaseException as error:
            print(f"{name}: {option}={value}: {type(error).__name__}: {str(error)[:200]}")
print(tried > 350, refused > 150)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS is heeded on Linux")
def test_options_that_ask_for_too_much(request: pytest.FixtureRequest) -> None:
    said = run_python(TRIED, request.path.parent.parent, ONEPASS_MAX_MEMORY="2G").stdout.splitlines()
    assert said == ["True True"]


def test_classes_and_products_that_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for make, limit in (
        (lambda: reductions.CostSensitive("pa1", method="all_pairs", classes=list(range(400))), "79,800 base learners"),
        (lambda: reductions.CostSensitive("nlms", method="oaa", classes=list(range(50_001))), "50,001 base learners"),
        (lambda: reductions.FilterTree("pa1", classes=list(range(50_002))), "50,001 base learners"),
    ):
        learner = make()
        refusal(LabelError, f"would take {limit} of", learner, "learn_one", [1.0], 0)
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "8M")
    codes = reductions.ErrorCorrectingOutputCodes("pa1", classes=list(range(2_000)))
    refusal(ParameterError, "the codewords of 2,000 classes", codes, "learn_one", [1.0], 0)
    products = transforms.PolynomialFeatures(100)
    for x in (np.ones(50), {f"x{i}": 1.0 for i in range(50)}):
        with pytest.raises(ParameterError, match=r"1 rows of \d+ products by PolynomialFeatures\(degree=100\)"):
            products.transform_one(x)
    assert transforms.PolynomialFeatures(3, interaction_only=True).fit(np.ones((2, 2))).n_output_features_ == 3


def test_tables_that_feature_maps_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "2M")
    X = np.random.default_rng(0).random((400, 2))
    for feature_map in (maps.RandomFourier(D=1000), maps.HistogramMap("intersection", order=1000)):
        fitted = feature_map.fit(X)
        fitted.transform(X[:2])
        with pytest.raises(ParameterError, match=r"400 rows of .*=1000\) would take .* transform fewer rows"):
            fitted.transform(X)
    with pytest.raises(ParameterError, match=r"Nystrom of 400 landmarks would take .*n_landmarks"):
        maps.Nystrom(n_landmarks=1000).fit(X)
    with pytest.raises(ParameterError, match="the names of 2\\^18 columns would take"):
        transforms.FeatureHasher(18).fit(X).get_feature_names_out()
