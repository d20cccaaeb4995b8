"""Reductions: each equals its hand-made base learners bit for bit; parameters, composition, others' learners."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from support import grid
from support.grid import REPRESENTATIONS, dicts
from support.reduction_grid import (
    CODE,
    LABELS,
    NAN,
    REDUCTIONS,
    RULE,
    STREAM,
    C,
    Counts,
    K,
    binary,
    costs_for,
    integrated,
    make,
    model_bytes,
    refuses,
    saved,
)

import onepass
from onepass import LinearClassifier, LinearModel, LinearRegressor, rules
from onepass.errors import InputError, LabelError, ParameterError
from onepass.reductions import (
    CostSensitive,
    ErrorCorrectingOutputCodes,
    FilterTree,
    ImportanceSampling,
    OneVsAll,
    OneVsOne,
)
from onepass.reductions.multiclass import pair
from onepass.reductions.sampling import uniform

# -- each is what its base learners are --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", REPRESENTATIONS)
def test_one_vs_all_is_its_hand_made_learners(form: str) -> None:
    shape = REPRESENTATIONS[form]
    ova = OneVsAll(LinearClassifier(RULE, **dict(shape.options)), classes=LABELS)
    ova.learn_many(shape.make(STREAM.X), STREAM.y, C)
    assert list(ova.learners_) == LABELS
    scores = []
    for label, learner in ova.learners_.items():
        hand = binary(**dict(shape.options))
        hand.learn_many(shape.make(STREAM.X), STREAM.y == label, C)
        assert model_bytes(learner) == model_bytes(hand)
        scores.append(hand.score_many(shape.make(STREAM.X))[:, 0])
    expected = np.array(LABELS)[np.argmax(scores, axis=0)]
    np.testing.assert_array_equal(ova.predict_many(shape.make(STREAM.X)), expected)


@pytest.mark.parametrize("form", REPRESENTATIONS)
def test_one_vs_one_is_its_hand_made_learners(form: str) -> None:
    shape = REPRESENTATIONS[form]
    ovo = OneVsOne(LinearClassifier(RULE, **dict(shape.options)), classes=LABELS)
    ovo.learn_many(shape.make(STREAM.X), STREAM.y, C)
    assert set(ovo.learners_) == set(itertools.combinations(LABELS, 2))
    votes = np.zeros((len(STREAM.X), K))
    for (i, j), learner in ovo.learners_.items():
        hand = binary(**dict(shape.options))
        those = np.isin(STREAM.y, (i, j))
        hand.learn_many(shape.make(STREAM.X[those]), STREAM.y[those] == j, C[those])
        assert model_bytes(learner) == model_bytes(hand)
        won = hand.score_many(shape.make(STREAM.X))[:, 0] > 0
        votes[:, LABELS.index(j)] += won
        votes[:, LABELS.index(i)] += ~won
    predicted = ovo.predict_many(shape.make(STREAM.X))
    at = [LABELS.index(label) for label in predicted]
    np.testing.assert_array_equal(votes[np.arange(len(at)), at], votes.max(axis=1))


@pytest.mark.parametrize("code", ["exhaustive", "random", "dense", "sparse", CODE])
def test_output_codes_are_their_hand_made_learners(code: Any) -> None:
    model = ErrorCorrectingOutputCodes(RULE, code=code, classes=LABELS, seed=3)
    model.learn_many(STREAM.X, STREAM.y, C)
    numbers = np.array([LABELS.index(label) for label in STREAM.y])
    scores = np.zeros((len(numbers), model.code_.shape[1]))
    for b, learner in enumerate(model.learners_):
        bit = model.code_[numbers, b]
        hand = LinearModel(RULE, classes=[False, True])
        hand.learn_many(STREAM.X[bit != 0], bit[bit != 0] > 0, C[bit != 0])
        hand.set_columns(STREAM.X.shape[1])
        assert model_bytes(learner) == model_bytes(hand)
        scores[:, b] = hand.score_many(STREAM.X)[:, 0]
    nearest = [
        min(range(K), key=lambda k: sum(max(0.0, 1 - m * f) for m, f in zip(model.code_[k], row, strict=True)))
        for row in scores
    ]
    assert model.predict_many(STREAM.X).tolist() == [LABELS[k] for k in nearest]


def test_cost_regression_is_its_hand_made_learners() -> None:
    costs = costs_for(STREAM.y)
    for row in (3, 8, 9):
        del costs[row][30]
    model = CostSensitive(LinearRegressor("nlms"), classes=LABELS)
    model.learn_many(STREAM.X, costs, C)
    scores = []
    for label, learner in zip(LABELS, model.learners_, strict=True):
        hand = LinearModel("nlms", "regression")
        those = [row for row, each in enumerate(costs) if label in each]
        hand.learn_many(STREAM.X[those], [costs[row][label] for row in those], C[those])
        assert model_bytes(learner) == model_bytes(hand)
        scores.append(hand.predict_many(STREAM.X))
    cheapest = np.array(LABELS)[np.argmin(scores, axis=0)]
    np.testing.assert_array_equal(model.predict_many(STREAM.X), cheapest)
    np.testing.assert_array_equal(-model.decision_function(STREAM.X), np.array(scores).T)


def test_all_pairs_is_its_hand_made_learners() -> None:
    costs = costs_for(STREAM.y)
    model = CostSensitive(RULE, method="all_pairs", classes=LABELS)
    model.learn_many(STREAM.X, costs, C)
    values = [integrated(list(each.values())) for each in costs]
    for j in range(K):
        for i in range(j):
            hand = binary()
            for x, v, c in zip(STREAM.X, values, C, strict=True):
                if v[i] != v[j]:
                    hand.learn_one(x, v[j] < v[i], abs(v[i] - v[j]) * c)
            assert model_bytes(model.learners_[pair(i, j)]) == model_bytes(hand)


def test_expansion_is_its_hand_made_learner() -> None:
    costs = costs_for(STREAM.y)
    model = CostSensitive(RULE, method="expansion", classes=LABELS)
    model.learn_many(STREAM.X, costs, C)
    hand = LinearModel(RULE, classes=LABELS)
    for x, each, c in zip(STREAM.X, costs, C, strict=True):
        for label, cost in each.items():
            if cost < max(each.values()):
                hand.learn_one(x, label, (max(each.values()) - cost) * c)
    assert model_bytes(model.learners_[0]) == model_bytes(hand)
    np.testing.assert_array_equal(model.predict_many(STREAM.X), hand.predict_many(STREAM.X))


def test_filter_tree_is_its_hand_made_learners() -> None:
    """Four labels: two semi-finals and a final, each base taught with what reaches it."""
    costs = costs_for(STREAM.y)
    model = FilterTree(RULE, classes=LABELS)
    model.learn_many(STREAM.X, costs, C)
    left, right, final = (binary() for _ in range(3))
    assert model.tree_ == [(~0, ~1), (~2, ~3), (0, 1)]
    for x, each, c in zip(STREAM.X, costs, C, strict=True):
        winners = []
        for node, (a, b) in ((left, LABELS[:2]), (right, LABELS[2:])):
            winners.append(b if node.score_one(x) > 0 else a)
            if each[a] != each[b]:
                node.learn_one(x, each[b] < each[a], abs(each[a] - each[b]) * c)
        a, b = (each[label] for label in winners)
        if a != b:
            final.learn_one(x, b < a, abs(a - b) * c)
    for learner, hand in zip(model.learners_, (left, right, final), strict=True):
        assert model_bytes(learner) == model_bytes(hand)
    for x in STREAM.X:
        half, labels = (right, LABELS[2:]) if final.score_one(x) > 0 else (left, LABELS[:2])
        assert model.predict_one(x) == labels[half.score_one(x) > 0]


def test_sampling_is_its_hand_made_learners() -> None:
    model = ImportanceSampling(RULE, c_max=2.5, samples=2, seed=11, classes=LABELS)
    model.learn_many(STREAM.X, STREAM.y, C)
    for s, learner in enumerate(model.learners_):
        hand = LinearModel(RULE, classes=LABELS)
        for t, (x, y, c) in enumerate(zip(STREAM.X, STREAM.y, C, strict=True)):
            if uniform(11, s, t) < c / 2.5:
                hand.learn_one(x, y)
        assert 0 < hand.t < len(C)
        assert model_bytes(learner) == model_bytes(hand)
    assert model.learners_[0].t != model.learners_[1].t


@pytest.mark.parametrize("name", ["ova", "ovo"])
@pytest.mark.parametrize("form", ["f64", "csr32", "named"])
def test_a_class_that_comes_late_is_as_if_it_had_been_declared(name: str, form: str) -> None:
    shape = REPRESENTATIONS[form]
    order = list(dict.fromkeys(STREAM.y.tolist()))
    y = STREAM.y.copy()
    y[:20][y[:20] == order[-1]] = order[0]  # the last class comes in the middle
    declared, grown = make(name, classes=order), make(name)
    for model in (declared, grown):
        model.learn_many(shape.make(STREAM.X), y, C)
    assert grown.classes_.tolist() == order
    learners = [model._core.learners for model in (declared, grown)]
    assert len(learners[0]) == len(learners[1])
    for one, other in zip(*learners, strict=True):
        assert model_bytes(one.model) == model_bytes(other.model)


# -- parameters and composition ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OneVsAll(3), r"OneVsAll\(base=3\): expected a rule"),
        (OneVsAll("nothing"), "not a rule"),
        (OneVsAll(LinearRegressor()), "OneVsAll needs a classifier of two classes as its base, got LinearRegressor"),
        (OneVsAll(LinearModel("pa1", "regression")), "got LinearModel"),
        (OneVsAll(LinearClassifier(class_weight={1: 2.0})), "class_weight"),
        (OneVsAll(LinearClassifier(costs=[[0, 1], [2, 0]])), "costs means nothing there"),
        (OneVsAll(onepass.OneClass()), "needs a classifier"),
        (OneVsAll(onepass.Ranker()), "needs a classifier"),
        (OneVsAll(OneVsOne()), "OneVsAll needs a learner of two classes.*OneVsOne is a reduction of many.*the base of"),
        (FilterTree(OneVsAll(), classes=[1, 2]), "FilterTree needs a learner of two classes"),
        (CostSensitive(LinearClassifier()), "CostSensitive needs a regressor"),
        (CostSensitive(OneVsAll()), "CostSensitive needs a regressor.*OneVsAll"),
        (CostSensitive(OneVsAll(), method="all_pairs"), "two classes"),
        (CostSensitive(method="guess"), "method='guess': expected one of oaa, all_pairs, expansion"),
        (CostSensitive(LinearRegressor(), method="all_pairs"), "got LinearRegressor"),
        (CostSensitive(rules.Pegasos()), "regression"),
        (OneVsAll(ImportanceSampling(LinearRegressor())), "got LinearRegressor"),
        (ImportanceSampling(c_max=0), "c_max=0: expected"),
        (ImportanceSampling(samples=0), "samples=0: expected"),
        (ImportanceSampling(seed=-1), "seed=-1: expected"),
        (ErrorCorrectingOutputCodes(classes=[1, 2, 3], code="best"), "code='best': expected one of 'exhaustive'"),
        (ErrorCorrectingOutputCodes(classes=[1, 2, 3], decoding="guess"), "decoding='guess'"),
        (ErrorCorrectingOutputCodes(classes=[1, 2, 3], bits=0), "bits=0"),
        (ErrorCorrectingOutputCodes(classes=[1, 2, 3], bits=4), "bits=4: 3 classes take from 2 to 3 different columns"),
        (ErrorCorrectingOutputCodes(classes=range(9), bits=3), "bits=3: 9 classes take from 4 to 255"),
        (ErrorCorrectingOutputCodes(classes=range(13), code="exhaustive"), "at most 12 classes, got 13"),
        (ErrorCorrectingOutputCodes(classes=[1, 2, 3], code="exhaustive", bits=5), "this code has 3 columns"),
        (ErrorCorrectingOutputCodes(classes=[1, 2], code=[[1, 2], [1, 1]]), "of -1, 0 and 1"),
        (ErrorCorrectingOutputCodes(classes=[1, 2], code=[[1, 1], [1, -1]]), "every column needs"),
        (ErrorCorrectingOutputCodes(classes=[1, 2], code=[[1], [-1], [1]]), "3 rows; expected one for each of the 2"),
        (ErrorCorrectingOutputCodes(classes=[1, 2, 3], code=[[1], [-1], [1]]), "never opposed"),
        (ErrorCorrectingOutputCodes(classes=[1, 2, 3], seed=1.5), "seed=1.5"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_wrong_parameters(model: Any, message: str) -> None:
    for call in (lambda: model.learn_one({"a": 1.0}, 1), lambda: model.fit(np.eye(3)[[0, 1, 2]], [1, 2, 3])):
        with pytest.raises(ParameterError, match=message):
            if call.__code__.co_names[0] == "learn_one" or model.get_params()["classes"] is None:
                call()
            else:
                model.learn_one({"a": 1.0}, 1)


@pytest.mark.parametrize("kind", [FilterTree, ErrorCorrectingOutputCodes])
def test_classes_must_be_declared(kind: Any) -> None:
    for call in (
        lambda: kind().learn_one({"a": 1.0}, "x"),
        lambda: kind().predict_one({"a": 1.0}),
        lambda: kind().learn_many(np.eye(2), ["x", "y"]),
    ):
        with pytest.raises(LabelError, match=rf"{kind.__name__} needs at least 2 classes.*{kind.__name__}\(classes=\["):
            call()
    with pytest.raises(LabelError, match=r"needs at least 2 classes.*got 1 class"):
        kind().fit(np.eye(2), ["x", "x"])
    with pytest.raises(LabelError, match="distinct"):
        kind(classes=["x", "x", "y"]).learn_one({"a": 1.0}, "x")
    with pytest.raises(LabelError, match="list of labels"):
        kind(classes="xyz").learn_one({"a": 1.0}, "x")
    assert kind(classes=["x", "y"]).predict_one({"a": 1.0}) == "x"


def test_first_partial_fit_wants_classes() -> None:
    for name in REDUCTIONS:
        with pytest.raises(LabelError, match="classes must be given in the first call"):
            make(name).partial_fit(STREAM.X, STREAM.y)
        model = make(name).partial_fit(STREAM.X, STREAM.y, classes=LABELS)
        with pytest.raises(LabelError, match="differ from the first call"):
            model.partial_fit(STREAM.X, STREAM.y, classes=[1, 2])
        declared = make(name, LABELS).partial_fit(STREAM.X, STREAM.y)
        assert saved(declared) == saved(model)
        with pytest.raises(LabelError, match="differ from the constructor"):
            make(name, LABELS).partial_fit(STREAM.X, STREAM.y, classes=[1, 2])


def test_a_rule_that_knows_two_classes_serves_reductions_of_many() -> None:
    grid_rule = grid.BinaryOnly()
    with pytest.raises(ParameterError):
        LinearClassifier(grid_rule).fit(STREAM.X, STREAM.y)
    assert OneVsAll(grid_rule).fit(STREAM.X, STREAM.y).score(STREAM.X, STREAM.y) > 0.5
    model = CostSensitive(grid_rule, method="expansion")
    model.learn_many(dicts(STREAM.X[:2]), ["x", "y"])
    refuses(model, ParameterError, "multiclass", lambda: model.learn_many(dicts(STREAM.X[:2]), ["x", "z"]))
    refuses(model, ParameterError, "multiclass", lambda: model.learn_one({"f1": 1.0}, {"x": 1.0, "z": 0.0, "y": 0.5}))


def test_the_base_is_not_touched() -> None:
    base = LinearClassifier("pa1").fit(STREAM.X, STREAM.y)
    before = grid.saved(base)
    model = OneVsAll(base).fit(STREAM.X, STREAM.y)
    assert model.base is base and grid.saved(base) == before
    base.set_params(rule="perceptron")
    model.learn_one(STREAM.X[0], 10)
    assert all(learner.rule == rules.PA1() for learner in model.learners_.values())


# -- River and other stream learners -----------------------------------------------------------------------------------


def test_river_learners_as_bases() -> None:
    from river import linear_model, naive_bayes

    data = load_iris()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    order = np.random.default_rng(0).permutation(len(X))
    names = np.array(data.target_names)[data.target]
    rows = [dict(zip("abcd", row.tolist(), strict=True)) for row in X[order]]
    y = names[order].tolist()
    classes = sorted(set(y))
    for model, least in (
        (OneVsAll(linear_model.LogisticRegression()), 0.7),
        (OneVsAll(naive_bayes.GaussianNB()), 0.8),
        (OneVsOne(linear_model.Perceptron()), 0.8),
        (OneVsOne(linear_model.PAClassifier()), 0.8),
        (ErrorCorrectingOutputCodes(linear_model.PAClassifier(), code="exhaustive", classes=classes), 0.6),
        (FilterTree(linear_model.LogisticRegression(), classes=classes), 0.7),
        (FilterTree(naive_bayes.GaussianNB(), classes=classes), 0.7),
        (FilterTree(ImportanceSampling(naive_bayes.GaussianNB(), c_max=3.0), classes=classes), 0.7),
        (CostSensitive(linear_model.LinearRegression()), 0.7),
        (CostSensitive(naive_bayes.GaussianNB(), method="expansion"), 0.8),
        (ImportanceSampling(naive_bayes.GaussianNB(), c_max=1.0), 0.8),
    ):
        for x, label in zip(rows, y, strict=True):
            model.learn_one(x, label)
        accuracy = np.mean([model.predict_one(x) == label for x, label in zip(rows, y, strict=True)])
        assert accuracy > least, (type(model).__name__, accuracy)
        table = clone(model).fit(X[order], y)
        assert table.score(X[order], y) == pytest.approx(accuracy, abs=0.01)
        with pytest.raises(InputError, match="nan"):
            model.learn_one({"a": NAN}, y[0])
        with pytest.raises(ParameterError, match="model file"):
            model.save("nowhere")


def test_river_learners_without_importance() -> None:
    from river import linear_model, naive_bayes

    tree = FilterTree(naive_bayes.GaussianNB(), classes=["x", "y", "z"])
    tree.learn_one({"a": 1.0}, {"x": 0.0, "y": 1.0, "z": 1.0})
    before = [dict(learner.class_counts) for learner in tree.learners_]
    tree.learn_one({"a": 1.0}, "y", 0.0)  # legal, and without effect
    tree.learn_many([{"a": 1.0}], ["z"], [0.0])
    assert [learner.class_counts for learner in tree.learners_] == before and tree.t_ == 3
    for y, c in (({"x": 0.0, "y": 0.5, "z": 1.0}, 1.0), ("x", 2.0)):
        with pytest.raises(InputError, match=r"takes no importance.*ImportanceSampling\(base, c_max=…\)"):
            tree.learn_one({"a": 1.0}, y, c)
    with pytest.raises(InputError, match="takes no importance"):
        OneVsAll(linear_model.PAClassifier()).learn_many([{"a": 1.0}] * 2, ["x", "y"], [1.0, 2.0])
    with pytest.raises(ParameterError, match="needs a classifier"):
        OneVsAll(linear_model.LinearRegression()).learn_one({"a": 1.0}, "x")
    weighted = OneVsAll(linear_model.LogisticRegression())
    weighted.learn_one({"a": 1.0}, "x", 2.0)
    plain = OneVsAll(linear_model.LogisticRegression())
    plain.learn_one({"a": 1.0}, "x")
    assert weighted.learners_["x"].weights["a"] == pytest.approx(2 * plain.learners_["x"].weights["a"])


def test_a_foreign_learner_that_raises_in_the_middle_is_undone() -> None:
    class Fragile(Counts):
        def learn_one(self, x: Any, y: bool, importance: float = 1.0) -> None:
            super().learn_one(x, y, importance)
            if x["a"] == 3.0:
                raise ArithmeticError("three")

    model = OneVsAll(Fragile(), classes=["x", "y"])
    model.learn_many([{"a": 1.0}, {"a": 2.0}], ["x", "y"])
    before = [dict(learner.weight) for learner in model.learners_.values()]
    with pytest.raises(ArithmeticError, match="three"):
        model.learn_many([{"a": 1.0}, {"a": 3.0}], ["x", "y"])
    assert [learner.weight for learner in model.learners_.values()] == before and model.t_ == 2


def test_prequential() -> None:
    data = load_digits()
    pairs = [(x, int(y)) for x, y in zip(data.data[:600] / 16, data.target[:600], strict=True)]
    run = onepass.prequential(OneVsAll("pa1:C=0.1"), pairs, every=200)
    assert run.metric == "error" and run.value < 0.35
