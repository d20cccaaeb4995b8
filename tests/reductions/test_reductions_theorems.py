"""Reductions keep their theorems: codes, regrets, consistency, what sampling keeps."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.reduction_grid import (
    Counts,
    K,
    integrated,
)

from onepass.reductions import FilterTree, ImportanceSampling
from onepass.reductions.codes import CODES, DECODERS, decode, exhaustive, make_code, row_distance
from onepass.reductions.costs import all_pairs_values
from onepass.reductions.multiclass import pair, tournament
from onepass.reductions.sampling import uniform, uniforms


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
