"""Cost-sensitive and structured Passive-Aggressive: Crammer et al. 2006, §9 and §10. Specification 01 §15."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from onepass import rules
from onepass.models.reference import ReferenceLearner
from onepass.scheme.tasks import Structured

from .bounds import Played, assert_within, pa_bounds
from .streams import Example, M
from .transcriptions import pa_tau


class Enumerated:
    """A decoder over a listed set of answers, by enumeration; the lowest answer among equals."""

    answers: list

    def score(self, w, x, y):
        return sum(w.get(name, 0.0) * value for name, value in self.features(x, y).items())

    def decode(self, w, x):
        return max(self.answers, key=lambda r: self.score(w, x, r))

    def loss_augmented(self, w, x, y):
        return max(self.answers, key=lambda r: self.score(w, x, r) + self.cost(y, r) ** 0.5)


class Blocks(Enumerated):
    """Labels 0..2, x in the block of its label, cost |i − j|²: the example of the specification."""

    answers = [0, 1, 2]  # noqa: RUF012

    def features(self, x, y):
        return {(y, j): float(value) for j, value in enumerate(x)}

    def cost(self, y, r):
        return float((y - r) ** 2)


class Tagger(Enumerated):
    """A tag 0 or 1 for each of three words: emission and transition features, cost the Hamming distance."""

    answers = list(itertools.product((0, 1), repeat=3))  # noqa: RUF012
    PAIRS = tuple(itertools.product((0, 1), repeat=2))

    def features(self, x, y):
        named: dict = {}
        for word, tag in zip(x, y, strict=True):
            named[word, tag] = named.get((word, tag), 0.0) + 1.0
        for pair in itertools.pairwise(y):
            named[pair] = named.get(pair, 0.0) + 1.0
        return named

    def cost(self, y, r):
        return float(sum(a != b for a, b in zip(y, r, strict=True)))


def learner_of(rule, decoder):
    return ReferenceLearner(rule, Structured(decoder, dimension=60), fit_intercept=False)


def named_weights(learner):
    return learner.task.weights(np.atleast_2d(learner.w))


def test_worked_numbers():
    """M with max_loss and hard PA; the fifth round has no loss."""
    learner = learner_of(rules.PA(), Blocks())
    for example in M:
        learner.learn(*example)
    np.testing.assert_allclose([r.loss for r in learner.records], [2, 1, 0.5, 1.25, 0], atol=1e-6)
    np.testing.assert_allclose([r.step.add for r in learner.records], [1, 0.5, 0.125, 0.3125, 0], atol=1e-6)
    w = named_weights(learner)
    W = [[w[label, j] for j in (0, 1)] for label in (0, 1, 2)]
    np.testing.assert_allclose(W, [(0.8125, -0.6875), (0.3125, 0.8125), (-1.125, -0.125)], atol=1e-6)


def test_unit_cost_is_multiclass_pa():
    """01 §15: with cost 1 for every wrong label, max_loss is §13.1."""

    class Unit(Blocks):
        def cost(self, y, r):
            return float(y != r)

    for rule in (rules.PA(), rules.PA1(0.1), rules.PA2(0.5)):
        structured, rows = (
            learner_of(rule, Unit()),
            ReferenceLearner(rule, "multiclass", classes=3, fit_intercept=False),
        )
        for x, y, c in M * 3:
            structured.learn(x, y, c)
            rows.learn(x, y, c)
            w = named_weights(structured)
            W = [[w.get((label, j), 0.0) for j in (0, 1)] for label in (0, 1, 2)]
            np.testing.assert_allclose(W, rows.w, rtol=1e-12, atol=1e-12)


def sentences(rng, rounds):
    return [tuple(rng.choice(list("abcd"), size=3).tolist()) for _ in range(rounds)]


def transcription(stream, decoder, variant, C):
    """01 §15 with a dictionary for w: ℓ = √cost − w·Δ for the loss-augmented answer, w ← w + τ Δ."""
    w: dict = {}
    for x, y, c in stream:
        r = decoder.loss_augmented(w, x, y)
        delta = dict(decoder.features(x, y))
        for name, value in decoder.features(x, r).items():
            delta[name] = delta.get(name, 0.0) - value
        xx = sum(value**2 for value in delta.values())
        loss = decoder.cost(y, r) ** 0.5 - sum(w.get(name, 0.0) * value for name, value in delta.items())
        if xx > 0 and loss > 0 and c > 0:
            tau = pa_tau(variant, loss, xx, C, c)
            w = w | {name: w.get(name, 0.0) + tau * value for name, value in delta.items()}
        yield w


@pytest.mark.parametrize(("rule", "variant"), [(rules.PA(), "PA"), (rules.PA1(0.2), "PA-I"), (rules.PA2(0.2), "PA-II")])
def test_equals_transcription(rule, variant):
    rng = np.random.default_rng(0)
    decoder, learner = Tagger(), learner_of(rule, Tagger())
    answers = [decoder.answers[i] for i in rng.integers(8, size=50)]
    stream = [
        Example(x, y, float(c)) for x, y, c in zip(sentences(rng, 50), answers, rng.exponential(size=50), strict=True)
    ]
    for example, w in zip(stream, transcription(stream, decoder, variant, 0.2), strict=True):
        learner.learn(*example)
        mine = named_weights(learner)
        assert all(mine.get(name, 0.0) == pytest.approx(value, rel=1e-12, abs=1e-12) for name, value in w.items())


def play(learner, decoder, pool, rounds, choose):
    """Show `choose(w, pool)` each round; the examples, ‖Δ‖², and cost(y, ŷ) of the plain prediction."""
    shown, squares, costs = [], [], []
    for _ in range(rounds):
        w = named_weights(learner) if learner.t else {}
        x, y, _c = choose(w, pool)
        r = decoder.loss_augmented(w, x, y)
        difference = Counter(decoder.features(x, y))
        difference.subtract(decoder.features(x, r))
        shown.append(Example(x, y))
        squares.append(sum(value**2 for value in difference.values()))
        costs.append(decoder.cost(y, decoder.decode(w, x)))
        learner.learn(x, y)
    return shown, np.array(squares), np.array(costs)


def worst(decoder):
    """The adversary that picks the example of the largest loss."""

    def loss(w, x, y):
        return max(decoder.score(w, x, r) + decoder.cost(y, r) ** 0.5 for r in decoder.answers) - decoder.score(w, x, y)

    return lambda w, pool: max(pool, key=lambda example: loss(w, example.x, example.y))


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("adversarial", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_realizable_bound(adversarial, seed):
    """Σ cost(y, ŷ) ≤ Σ ℓ² ≤ R²‖u‖² if u·Δ ≥ √cost for every answer."""
    rng = np.random.default_rng(seed)
    decoder, learner = Tagger(), learner_of(rules.PA(), Tagger())
    u = {name: float(rng.normal()) for name in itertools.chain(itertools.product("abcd", (0, 1)), decoder.PAIRS)}

    def margin(x, y):  # the smallest share of √cost that u gives
        others = (r for r in decoder.answers if r != y)
        return min((decoder.score(u, x, y) - decoder.score(u, x, r)) / decoder.cost(y, r) ** 0.5 for r in others)

    pool = [Example(x, decoder.decode(u, x)) for x in itertools.product("abcd", repeat=3)]
    pool = [e for e in pool if margin(e.x, e.y) > 0.1]
    uu = sum(value**2 for value in u.values()) / min(margin(e.x, e.y) for e in pool) ** 2
    choose = worst(decoder) if adversarial else lambda w, pool: pool[rng.integers(len(pool))]
    _, squares, costs = play(learner, decoder, pool, 80, choose)
    losses = np.array([r.loss for r in learner.records])
    assert_within(costs.sum(), np.sum(losses**2), "cost")
    assert_within(np.sum(losses**2), squares.max() * uu, "structured PA")
    if adversarial:  # it bites: more than the first round's 3
        assert np.sum(losses**2) > 4.5
        assert costs.sum() >= 3


@pytest.mark.parametrize(("name", "C"), [("pa", 1.0), ("pa1", 0.1), ("pa2", 0.1)])
@pytest.mark.parametrize("adversarial", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_without_a_perfect_answer(name, C, adversarial, seed):
    """Crammer et al. 2006, §9: the guarantees hold for any u, here on contradictory labels."""
    rng = np.random.default_rng(seed)
    decoder = Blocks()
    learner = learner_of(rules.RULES[name]() if name == "pa" else rules.RULES[name](C), decoder)
    pool = [Example(tuple(x), y) for x in rng.normal(size=(10, 2)) + 0.5 for y in decoder.answers]
    choose = worst(decoder) if adversarial else lambda w, pool: pool[rng.integers(len(pool))]
    stream, squares, costs = play(learner, decoder, pool, 100, choose)
    assert np.count_nonzero(costs) > 40  # it bites
    played = Played.of(learner, squares, mistake=costs > 0)
    for U in (np.zeros((3, 2)), *rng.normal(size=(4, 3, 2))):
        star = np.array([max(abs(y - r) - (U[y] - U[r]) @ x for r in decoder.answers) for x, y, _ in stream])
        for what, measured, bound in pa_bounds(name, C, played, star, float(np.sum(U * U))):
            assert_within(measured, bound, what)


def test_words_are_an_input():
    """A sequence of words, or a string, is an input like any other; it is not a row of numbers."""
    learner = learner_of(rules.PA1(), Tagger())
    for x in (["a", "b", "c"], "abc", ("a", "b", "c")):
        learner.learn(x, (0, 1, 0))
    assert learner.t == 3
