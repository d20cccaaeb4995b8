"""Reductions: each equals its hand-made base learners bit for bit, keeps its theorem, and keeps the promises."""

from __future__ import annotations

import collections
import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import grid
import numpy as np
import pandas as pd
import pytest
from grid import REPRESENTATIONS, csr, dicts, stream
from reduction_grid import (  # noqa: F401 (a fixture is used by being there)
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
    make,
    model_bytes,
    no_waiting_for_the_disk,
    refuses,
    saved,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from test_sklearn import NOT_ONLINE

import onepass
from onepass import LinearClassifier, LinearModel, LinearRegressor, reductions, rules
from onepass.batches import as_batch
from onepass.errors import (
    FeatureError,
    InputError,
    LabelError,
    NumericalError,
    ParameterError,
)
from onepass.reductions import (
    CostSensitive,
    ErrorCorrectingOutputCodes,
    FilterTree,
    ImportanceSampling,
    OneVsAll,
    OneVsOne,
)
from onepass.reductions.codes import CODES, DECODERS, decode, exhaustive, make_code, row_distance
from onepass.reductions.costs import all_pairs_values
from onepass.reductions.examples import count, singles, take
from onepass.reductions.multiclass import pair, tournament
from onepass.reductions.sampling import uniform, uniforms

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


# -- theorems ----------------------------------------------------------------------------------------------------------


def test_the_exhaustive_code_of_dietterich_and_bakiri() -> None:
    """Their table for five classes: 15 columns, 0 written for −1."""
    rows = ["1" * 15, "000000001111111", "000011110000111", "001100110011001", "010101010101010"]
    expected = np.array([[1 if bit == "1" else -1 for bit in row] for row in rows])
    np.testing.assert_array_equal(exhaustive(5), expected)
    for classes in range(2, 9):
        code = exhaustive(classes)
        assert code.shape == (classes, 2 ** (classes - 1) - 1)
        assert row_distance(code) == 2 ** (classes - 2)
        questions = {tuple(column * column[0]) for column in code.T.tolist() for column in [np.array(column)]}
        assert len(questions) == code.shape[1]


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("classes", [2, 3, 5, 8, 20])
def test_drawn_codes(kind: str, classes: int) -> None:
    code = make_code(kind, classes, None, seed=4)
    np.testing.assert_array_equal(code, make_code(kind, classes, None, seed=4))
    assert code.min() == -1 and code.max() == 1 and ((code == 0).any() == (kind == "sparse" and classes > 2))
    assert (code.max(axis=0) == 1).all() and (code.min(axis=0) == -1).all()
    questions = {(column * column[np.flatnonzero(column)[0]]).tobytes() for column in code.T}
    assert len(questions) == code.shape[1]
    for i, j in itertools.combinations(range(classes), 2):
        assert (code[i] * code[j] == -1).any()
    if classes == 20:
        per = 15 if kind == "sparse" else 10
        assert code.shape[1] == math.ceil(per * math.log2(20))
        assert make_code(kind, classes, 30, seed=4).shape == (20, 30)
        assert not np.array_equal(code, make_code(kind, classes, None, seed=5))
    if kind == "dense":
        assert row_distance(code) >= row_distance(make_code("random", classes, None, seed=4))


@pytest.mark.parametrize("decoding", DECODERS)
@pytest.mark.parametrize("kind", ["exhaustive", "dense", "sparse"])
def test_decoding_is_the_nearest_codeword_by_brute_force(kind: str, decoding: str) -> None:
    losses: dict[str, Callable[[float, float], float]] = {
        "hamming": lambda m, f: (1 - m * (1 if f > 0 else -1)) / 2,
        "hinge": lambda m, f: max(0.0, 1 - m * f),
        "linear": lambda m, f: -m * f,
        "squared": lambda m, f: (1 - m * f) ** 2,
        "logistic": lambda m, f: math.log(1 + math.exp(-m * f)),
        "exponential": lambda m, f: math.exp(-m * f),
    }
    code = make_code(kind, 5, None, seed=1)
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(60, code.shape[1])) * 2
    scores[0] = 0.0
    found = decode(code, scores, decoding)
    for row, f in zip(found, scores, strict=True):
        distances = [sum(losses[decoding](int(m), s) for m, s in zip(word, f, strict=True)) for word in code]
        np.testing.assert_allclose(-row, distances, rtol=1e-12, atol=1e-12)
        assert distances[int(np.argmax(row))] <= min(distances) + 1e-9
    one_by_one = np.concatenate([decode(code, f[np.newaxis], decoding) for f in scores])
    np.testing.assert_array_equal(found, one_by_one)


def test_hamming_decoding_corrects_errors() -> None:
    """⌊(ρ − 1)/2⌋ wrong bases do no harm, wherever they are; one more can."""
    code = exhaustive(5)
    most = (int(row_distance(code)) - 1) // 2
    assert most == 3
    for k, wrong in itertools.product(range(5), itertools.combinations(range(15), most)):
        answers = code[k].astype(float)
        answers[list(wrong)] *= -1
        assert int(np.argmax(decode(code, answers[np.newaxis], "hamming"))) == k
    answers = code[0].astype(float)
    answers[np.flatnonzero(code[0] != code[1])[: most + 1]] *= -1
    assert decode(code, answers[np.newaxis], "hamming")[0, 1] >= decode(code, answers[np.newaxis], "hamming")[0, 0]


@pytest.mark.parametrize(("decoding", "at_zero"), [("hinge", 1.0), ("logistic", math.log(2)), ("exponential", 1.0)])
def test_the_bound_of_allwein_schapire_and_singer(decoding: str, at_zero: float) -> None:
    """errors ≤ Σ losses of the bases at the true codeword / (ρ L(0)), here example by example."""
    rng = np.random.default_rng(3)
    for kind in ("dense", "sparse"):
        code = make_code(kind, 6, None, seed=2)
        y = rng.integers(0, 6, size=4000)
        scores = 1.5 * code[y] + 4 * rng.normal(size=(len(y), code.shape[1])) * rng.random((len(y), 1))
        total = -decode(code, scores, decoding)
        wrong = np.argmin(total, axis=1) != y
        assert 0 < wrong.sum() < len(y) / 2
        own = total[np.arange(len(y)), y]
        assert (own[wrong] >= row_distance(code) * at_zero * (1 - 1e-12)).all()
        if kind == "dense":
            assert (own[~wrong] < row_distance(code) * at_zero).any()  # the bound says something


def test_one_vs_all_errs_only_where_a_base_errs() -> None:
    rng = np.random.default_rng(0)
    for f in rng.normal(size=(300, K)):
        winner = int(np.argmax(f))
        for y in range(K):
            base_errors = sum((f[k] > 0) != (k == y) for k in range(K))
            assert (winner != y) <= base_errors


def test_one_vs_one_elects_who_loses_no_pair() -> None:
    """All 2^6 outcomes among four classes, with scores of any size: an error needs an error in a pair of the truth."""
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(tournament(np.zeros((2, 6)), 4), [[3, 2, 1, 0]] * 2)  # a score of 0 is a no
    for outcome in itertools.product([-1.0, 1.0], repeat=6):
        scores = np.array([outcome]) * rng.exponential(size=6) * 10
        votes = collections.Counter({k: 0 for k in range(4)})
        for j in range(4):
            for i in range(j):
                votes[j if scores[0, pair(i, j)] > 0 else i] += 1
        winner = int(np.argmax(tournament(scores, 4)))
        assert votes[winner] == max(votes.values())
        for y in range(4):
            if votes[y] == 3:
                assert winner == y


def test_cost_regression_regret() -> None:
    """c_ŷ − min c ≤ √(2 Σ (f_k − c_k)²), and nearly attained."""
    rng = np.random.default_rng(1)
    costs = rng.random((20_000, 3))
    predicted = costs + 0.7 * rng.normal(size=costs.shape)
    chosen = costs[np.arange(len(costs)), np.argmin(predicted, axis=1)]
    bound = np.sqrt(2 * ((predicted - costs) ** 2).sum(axis=1))
    ratio = (chosen - costs.min(axis=1)) / bound
    assert 0.9 < ratio.max() <= 1.0


def integrated(costs: list[float]) -> list[float]:
    """v_k = ∫₀^{c_k} dL / #{j: c_j ≤ L}, costs counted from the least: a sum over the steps of the integrand."""
    least = min(costs)
    steps = sorted({cost - least for cost in costs})
    out = []
    for cost in costs:
        area = 0.0
        for low, high in itertools.pairwise(steps):
            if high <= cost - least:
                area += (high - low) / sum(other - least <= low for other in costs)
        out.append(area)
    return out


def test_weighted_all_pairs_costs_at_most_twice() -> None:
    """The theorem of Beygelzimer et al. 2005, for every outcome of the six pairs of four labels."""
    rng = np.random.default_rng(0)
    tight = 0.0
    for trial in range(30):
        costs = rng.choice([0.0, 0.5, 1.0, 3.0], size=4) if trial % 2 else rng.exponential(size=4)
        v = all_pairs_values(costs[np.newaxis])[0]
        np.testing.assert_allclose(v, integrated(costs.tolist()), rtol=1e-12, atol=1e-12)
        for outcome in itertools.product([False, True], repeat=6):
            weight = 0.0
            for j in range(4):
                for i in range(j):
                    if outcome[pair(i, j)] != (v[j] < v[i]):
                        weight += abs(v[i] - v[j])
            scores = np.where(outcome, 1.0, -1.0)[np.newaxis]
            regret = costs[int(np.argmax(tournament(scores, 4)))] - costs.min()
            assert regret <= 2 * weight + 1e-12
            tight = max(tight, regret / weight if weight else 0.0)
    assert tight > 1.0  # so that the factor is needed


class Says:
    """Always the same answer."""

    def __init__(self, answer: bool = False) -> None:
        self.answer = answer
        self.asked = 0

    def learn_one(self, x: Any, y: bool, importance: float = 1.0) -> None: ...

    def predict_one(self, x: Any) -> bool:
        self.asked += 1
        return self.answer


@pytest.mark.parametrize("labels", [2, 3, 4, 5, 6])
def test_filter_tree_regret(labels: int) -> None:
    """Regret of the costs ≤ Σ over nodes of importance-weighted regret, for every way the bases may decide.

    Given x the costs have some distribution, of which only the means μ matter: at a node with winners l and r the
    weighted regret of deciding for l is max(0, μ_l − μ_r).
    """
    rng = np.random.default_rng(labels)
    tree = FilterTree(Says(), classes=range(labels))
    core = tree._new_core()
    bound_used = False
    for means in rng.random((20, labels)):
        for decisions in itertools.product([False, True], repeat=labels - 1):
            regret = 0.0
            winners: list[int] = []
            for learner, right, children in zip(core.learners, decisions, core.nodes, strict=True):
                learner.learner.answer = right
                left, other = (~child if child < 0 else winners[child] for child in children)
                winners.append(other if right else left)
                regret += max(0.0, (means[other] - means[left]) * (1 if right else -1))
            chosen = core.predict({})
            assert chosen == winners[-1]
            assert means[chosen] - means.min() <= regret + 1e-12
            bound_used = bound_used or means[chosen] - means.min() > 0.5 * regret > 0
    assert bound_used


def test_filter_tree_is_consistent_where_a_tree_of_halves_is_not() -> None:
    """P(a) = P(b) = 0.3, P(c) = 0.4: two thirds of the mass is in the half {a, b}, yet c is the best answer."""
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], p=[0.3, 0.3, 0.4], size=3000)
    assert np.isin(y, ["a", "b"]).mean() > 0.5
    tree = FilterTree(Counts(), classes=["a", "b", "c"])
    tree.learn_many([{}] * len(y), y)
    assert tree.tree_ == [(~0, ~1), (0, ~2)]  # a against b, and the winner against c
    assert tree.predict_one({}) == "c"
    costs = [{label: float(label != truth) for label in "abc"} for truth in y]
    again = FilterTree(Counts(), classes=["a", "b", "c"])
    again.learn_many([{}] * len(y), costs)
    assert [one.weight for one in again.learners_] == [one.weight for one in tree.learners_]


@pytest.mark.parametrize("labels", [2, 3, 5, 16, 33, 100])
def test_filter_tree_asks_log_k_bases(labels: int) -> None:
    tree = FilterTree(Says(), classes=range(labels))
    tree.learn_one({}, 0)
    core = tree._core
    assert len(core.nodes) == labels - 1
    for learner in core.learners:
        learner.learner.asked, learner.learner.answer = 0, True
    assert tree.predict_one({}) == labels - 1
    assert sum(learner.learner.asked for learner in core.learners) <= math.ceil(math.log2(labels))
    assert max(len(path) for path in core.paths) == math.ceil(math.log2(labels))
    leaves = sorted(~child for node in core.nodes for child in node if child < 0)
    assert leaves == list(range(labels))


def test_draws() -> None:
    """One by one as at once, uniform, and different for each seed and stream."""
    u = uniforms(7, 2, 0, 50_000)
    assert u[:100].tolist() == [uniform(7, 2, t) for t in range(100)]
    np.testing.assert_array_equal(u[30:90], uniforms(7, 2, 30, 60))
    assert uniforms(2**64 - 1, 0, 0, 3).tolist() == [uniform(2**64 - 1, 0, t) for t in range(3)]
    assert 0 <= u.min() and u.max() < 1
    counts = np.histogram(u, bins=50, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 100  # χ² of 49 degrees: 100 is beyond the 0.9999 quantile
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.02
    for other in (uniforms(8, 2, 0, 50_000), uniforms(7, 3, 0, 50_000)):
        assert abs(np.corrcoef(u, other)[0, 1]) < 0.02


def test_what_is_kept_is_distributed_in_proportion_to_importance() -> None:
    """Zadrozny's theorem: E_D[c·1(h ≠ y)] = E_D[c]·E_D̂[1(h ≠ y)], within four standard errors."""
    rng = np.random.default_rng(0)
    n = 20_000
    y = np.where(rng.random(n) < 0.8, "common", "rare")
    c = np.where(y == "rare", 5.0, 0.5)
    x = [{"a": float(v)} for v in rng.normal(size=n)]

    class Keeps:
        kept: collections.Counter[str]

        def __init__(self) -> None:
            self.kept = collections.Counter()

        def learn_one(self, x: Any, y: str) -> None:  # takes no importance
            self.kept[y] += 1

        def predict_one(self, x: Any) -> Any:
            return max(self.kept, key=self.kept.__getitem__, default=None)

    model = ImportanceSampling(Keeps(), c_max=5.0, seed=1)
    model.learn_many(x, y, c)
    kept = model.learners_[0].kept
    total = sum(kept.values())
    expected = c[y == "rare"].sum() / c.sum()
    assert abs(kept["rare"] / total - expected) < 4 * math.sqrt(expected * (1 - expected) / total)
    assert kept["rare"] == (y == "rare").sum()  # c = c_max is always kept
    assert model.predict_one({"a": 0.0}) == "rare" != collections.Counter(y.tolist()).most_common(1)[0][0]


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


# -- scikit-learn ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "model",
    [
        OneVsAll(LinearClassifier("pa1")),
        OneVsOne(LinearClassifier("pa1")),
        ErrorCorrectingOutputCodes(LinearClassifier("pa1")),
        CostSensitive(),
        CostSensitive(method="all_pairs"),
        CostSensitive(OneVsAll(), method="expansion"),
        FilterTree(),
        ImportanceSampling(c_max=10),
        ImportanceSampling(LinearRegressor("pa1"), c_max=10),
    ],
    ids=str,
)
def test_scikit_learns_checks(model: Any) -> None:
    results = check_estimator(model, expected_failed_checks=NOT_ONLINE, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert len(results) > 50


def test_pipelines_grids_and_passes() -> None:
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    for kind in (OneVsAll, OneVsOne, ErrorCorrectingOutputCodes, FilterTree):
        base = LinearClassifier(rules.PA1(C=0.1), passes=5, shuffle=True, random_state=0)
        pipe = make_pipeline(StandardScaler(), kind(base))
        assert pipe.fit(X, names).score(X, names) > 0.85, kind
        again = clone(pipe).fit(X, names)
        assert saved(again[-1]) == saved(pipe[-1]) and pipe[-1].t_ == 5 * len(X)
        assert pipe[-1].classes_.tolist() == ["setosa", "versicolor", "virginica"]
    search = GridSearchCV(OneVsAll(LinearClassifier(rules.PA1())), {"base__rule__C": [1e3, 0.01]}, cv=3)
    assert search.fit(StandardScaler().fit_transform(X), y).best_params_ == {"base__rule__C": 0.01}


def test_what_a_fit_takes_from_its_base() -> None:
    for option, message in (({"mode": "batch"}, "online"), ({"passes": 0}, "passes=0"), ({"shuffle": 3}, "shuffle=3")):
        with pytest.raises(ParameterError, match=message):
            OneVsAll(LinearClassifier("perceptron", **option)).fit(STREAM.X, STREAM.y)
    drawn = OneVsAll(LinearClassifier(RULE, passes=2, shuffle="random", random_state=4)).fit(STREAM.X, STREAM.y)
    random = np.random.RandomState(4)
    hand = OneVsAll(RULE, classes=LABELS)
    for _ in range(2):
        order = random.randint(len(C), size=len(C))
        hand.learn_many(STREAM.X[order], STREAM.y[order])
    assert saved(hand) == saved(drawn)


def test_shuffled_fit_names_the_row_as_it_was_given() -> None:
    X = STREAM.X.copy()
    X[31] = 1e200
    base = LinearClassifier("pa1", shuffle=True, random_state=3)
    with pytest.raises(NumericalError, match="row 31:") as caught:
        OneVsAll(base).fit(X, STREAM.y)
    assert caught.value.row == 31


def test_tables_of_costs() -> None:
    """Columns follow the classes; without classes they are numbered."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    true = X @ rng.normal(size=(5, 3))
    for model in (CostSensitive("nlms"), CostSensitive(method="all_pairs"), FilterTree()):
        numbered = clone(model).fit(X, true)
        assert numbered.classes_.tolist() == [0, 1, 2]
        named = clone(model).partial_fit(X, true, classes=["c", "a", "b"])
        assert named.classes_.tolist() == ["c", "a", "b"]
        np.testing.assert_array_equal(named.predict(X), named.classes_[numbered.predict(X)])
        by_name = clone(model).fit(X, [dict(zip("cab", row, strict=True)) for row in true.tolist()])
        assert by_name.classes_.tolist() == ["a", "b", "c"]
        framed = clone(model).fit(X, pd.DataFrame(true))
        assert saved(framed) == saved(numbered)
    cheap = true[np.arange(400), CostSensitive("nlms:mu=0.1").fit(X, true).predict(X)].mean()
    assert cheap < true.mean(axis=0).min()


def test_scores() -> None:
    two = OneVsAll().fit(STREAM.X, STREAM.y > 20)
    scores = two.decision_function(STREAM.X)
    assert scores.shape == (len(STREAM.X),)
    np.testing.assert_array_equal(scores > 0, two.predict(STREAM.X))
    many = OneVsOne().fit(STREAM.X, STREAM.y)
    table = many.decision_function(STREAM.X)
    assert list(many.score_one(STREAM.X[3])) == LABELS
    assert list(many.score_one(STREAM.X[3]).values()) == table[3].tolist()
    assert OneVsAll().score_one({"a": 1.0}) == {}
    assert not hasattr(CostSensitive(method="expansion"), "decision_function") and not hasattr(
        FilterTree(), "score_one"
    )
    with pytest.raises(NotFittedError):
        OneVsAll().predict(STREAM.X)
    with pytest.raises(AttributeError):
        _ = OneVsAll().classes_


def test_regression_by_sampling() -> None:
    s = stream("regression")
    model = ImportanceSampling(LinearRegressor("nlms"), c_max=2.5, samples=4)
    for x, y, c in zip(s.X, s.y, s.importance, strict=True):
        model.learn_one(x, y, float(c))
    again = ImportanceSampling(LinearRegressor("nlms"), c_max=2.5, samples=4)
    again.partial_fit(s.X, s.y, sample_weight=s.importance)
    assert saved(again) == saved(model)
    mean = np.mean([learner.predict_many(s.X) for learner in model.learners_], axis=0)
    np.testing.assert_allclose(model.predict(s.X), mean, rtol=1e-12)
    assert model.predict_one(s.X[0]) == model.predict_many(s.X)[0]
    assert model.score(s.X, s.y) > 0
    for bad in (NAN, "1", None, [1.0], True):
        refuses(model, LabelError, "y must", lambda b=bad: model.learn_one(s.X[0], b))


def test_frames_name_their_columns() -> None:
    frame = pd.DataFrame(STREAM.X[:, :3], columns=["a", "b", "c"])
    for name in REDUCTIONS:
        model = make(name, LABELS)
        model.learn_many(frame, STREAM.y, C)
        assert model.predict_one(frame.iloc[0].to_dict()) == model.predict_many(frame)[0]
        model.learn_one({"a": 1.0, "new": 2.0}, 10)
        refuses(model, FeatureError, "column 0", lambda m=model: m.learn_many(frame[["b", "a", "c"]], STREAM.y))
        model.learn_many(frame, STREAM.y, C)


@pytest.mark.parametrize("name", ["ova", "ovo", "oaa", "all_pairs", "expansion"])
def test_a_class_that_comes_after_a_frame_knows_its_columns(name: str) -> None:
    frame = pd.DataFrame(STREAM.X[:, :3], columns=["a", "b", "c"])
    model = make(name)
    model.learn_many(frame[:2], [10, 20])
    model.learn_one({"c": 1.0, "new": 2.0}, 30)
    model.learn_many(frame, STREAM.y)
    assert model.predict_one(frame.iloc[0].to_dict()) == model.predict_many(frame)[0]


def test_rows_of_sparse_arrays_and_hashed_frames() -> None:
    frame = pd.DataFrame(STREAM.X[:, :3], columns=["a", "b", "c"])
    for name in REDUCTIONS:
        by_array, by_row = make(name, LABELS), make(name, LABELS)
        by_array.learn_many(sparse.csr_array(STREAM.X), STREAM.y, C)
        for i in range(len(C)):
            x = sparse.coo_array(STREAM.X[i]) if i % 2 else sparse.lil_matrix(STREAM.X[i : i + 1])
            by_row.learn_one(x, STREAM.y[i], C[i])
        assert saved(by_array) == saved(by_row)
        assert by_row.predict_one(sparse.coo_array(STREAM.X[3])) == by_array.predict_many(STREAM.X)[3]
        hashed, whole = make(name, LABELS, hash_bits=6), make(name, LABELS, hash_bits=6)
        hashed.learn_many(frame[:9], STREAM.y[:9])
        hashed.learn_many(frame[9:], STREAM.y[9:])
        whole.learn_many(frame, STREAM.y)
        assert saved(hashed) == saved(whole)
        row = frame.iloc[4].to_dict()
        assert hashed.predict_one(row) == hashed.predict_many(frame)[4]


def test_rows_that_are_taken() -> None:
    at = np.array([2, 0, 0, 3])
    for X in (STREAM.X[:4], csr(STREAM.X[:4]), csr(STREAM.X[:4], np.int64)):
        for those in (at, np.arange(4), np.array([1, 3]), np.array([], dtype=int)):
            found = take(as_batch(X), those)
            assert np.array_equal([x.tolist() for x in singles(found)], STREAM.X[those]) or not len(those)
            assert count(found) == len(those)
    assert take(["a", "b", "c", "d"], at) == ["c", "a", "a", "d"]


def test_importing_does_not_bring_scikit_learn() -> None:
    known = "print('sklearn' in sys.modules)"
    code = f"import sys, onepass.reductions as r; {known}; r.OneVsAll; {known}"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.split() == ["False", "True"]
    assert dir(reductions) == sorted(reductions.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = reductions.nothing
