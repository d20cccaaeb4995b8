"""Vowpal Wabbit's update: the specification's numbers, VW itself, and what the three switches promise. 02 §9.

Karampatziakis and Langford 2011 (invariant); Ross, Mineiro and Langford 2013 (normalised).
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from onepass import rules
from onepass.errors import ParameterError
from onepass.models.reference import ReferenceLearner
from onepass.rules.vowpal import INVARIANT, logistic_way
from onepass.scheme import losses

from .coordinate_transcriptions import invariant_way
from .streams import Example, R, random_stream
from .transcriptions import GRADIENTS
from .vowpal import progressive
from .ways import WAYS, learn, model_of, same


@pytest.fixture(params=WAYS)
def ways(request):
    return WAYS[request.param]


def test_worked_examples(ways):
    all_on = ways(rules.VW("squared", clip=False), "regression", R, fit_intercept=False)[:, :-1]
    expected = [(0.393469, 0), (0.722322, 0.352223), (0.722322, 0.3121), (0.272704, 0.274669)]
    np.testing.assert_allclose(all_on, expected, atol=6e-7)
    rule = rules.VW("squared", eta=0.1, power=0, adaptive=False, normalized=False, clip=False)
    invariant = ways(rule, "regression", R, fit_intercept=False)[:, :-1]
    expected = [(0.181269, 0), (0.645909, 0.46464), (0.645909, 0.759447), (0.380098, 0.626542)]
    np.testing.assert_allclose(invariant, expected, atol=6e-7)


# ---- VW itself ----

SWITCHES = [s for s in itertools.product([True, False], repeat=3)]


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "quantile"])
@pytest.mark.parametrize("weighted", [False, True])
def test_predicts_what_vw_predicts(loss, weighted):
    """Every combination of switches, P = ½ and not, with and without a constant; VW computes in single precision."""
    task = "regression" if loss == "quantile" else "binary"
    stream = random_stream(np.random.default_rng(11), task, rounds=80, weighted=weighted)
    stream = [e for e in stream if e.c > 0 and np.any(e.x)]  # rows of zeros count for its mean norm, but not here
    for adaptive, normalized, invariant in SWITCHES:
        for power, constant in ((0.5, True), (0.3, False)):
            names = {"adaptive": adaptive, "normalized": normalized, "invariant": invariant}
            flags = " ".join(f"--{name}" for name, on in names.items() if on) or "--sgd"
            flags += f" --loss_function {loss} -l 0.4 --power_t {power}" + ("" if constant else " --noconstant")
            rule = rules.VW(loss, eta=0.4, power=power, **names, vw_compat=True)
            model = model_of(rule, task, fit_intercept=constant)
            ours, seen = [], [0.0]
            for x, y, c in stream:
                low, high = (-50, 50) if loss == "logistic" else (min(seen), max(seen))
                ours.append(np.clip(model.score_one(np.asarray(x, dtype=float)), low, high))
                learn(model, x, y, c)
                seen.append(y)
            # VW takes Lambert's function from an approximation.
            same(progressive(flags, stream), ours, 1e-2 if loss == "logistic" and invariant else 1e-4)


def test_one_against_the_rest_is_vws(ways):
    """Each class's row is the row of a binary learner of that class."""
    stream = random_stream(np.random.default_rng(12), "multiclass", weighted=True)
    for loss in ("logistic", "hinge", "squared"):
        all_rows = ways(rules.VW(loss), "multiclass", stream, classes=3)
        for r in range(3):
            # The label range of a class alone starts at [0, 0]; that of all classes is known.
            one = ways(rules.VW(loss, clip=False), "binary", [Example(x, 1 if y == r else -1, c) for x, y, c in stream])
            if loss == "logistic":
                same(all_rows[:, r], one)
        free = ways(rules.VW(loss, clip=False), "multiclass", stream, classes=3)
        same(free[:, 2], one)


# ---- copies ----


def test_copies_of_all_features_change_no_prediction(ways):
    """With row_power = 1; VW's own exponent does not promise it."""
    stream = random_stream(np.random.default_rng(21), "binary", weighted=True)
    thrice = [Example(np.tile(x, 3), y, c) for x, y, c in stream]
    n = len(stream[0].x)
    for switches in ({}, {"invariant": False}, {"loss": "hinge", "power": 0.3}, {"adaptive": False}):
        copied = ways(rules.VW(**switches, row_power=1), "binary", thrice, fit_intercept=False)[:, : 3 * n]
        same(
            copied.reshape(-1, 3, n).sum(axis=1),
            ways(rules.VW(**switches, row_power=1), "binary", stream, fit_intercept=False)[:, :n],
        )
    copied = ways(rules.VW(), "binary", thrice, fit_intercept=False)[:, : 3 * n]
    alone = ways(rules.VW(), "binary", stream, fit_intercept=False)[:, :n]
    assert np.max(np.abs(copied.reshape(-1, 3, n).sum(axis=1) - alone)) > 0.1


def test_row_power_is_the_exponent_of_kappa(ways):
    """VW's is 1 − P; and of the normalisation: without, it has no meaning."""
    stream = random_stream(np.random.default_rng(22), "binary", weighted=True)
    same(ways(rules.VW(power=0.3, row_power=0.7), "binary", stream), ways(rules.VW(power=0.3), "binary", stream))
    with pytest.raises(ParameterError, match="row_power is an exponent of `normalized`"):
        rules.VW(normalized=False, row_power=0.75)


# ---- the steps that stop in the limit ----


@pytest.mark.parametrize("loss", [loss for loss in GRADIENTS if losses.make(loss).name in INVARIANT])
def test_the_way_is_the_limit_of_small_steps(loss):
    rule, twice = rules.VW(loss), 2.0 if loss == "squared" else 1.0
    pairs = ((1.0, 0.3), (-1.0, 0.4)) if losses.make(loss).margin else ((2.0, -0.5), (0.1, 1.9), (0.5, 0.2))
    for y, p in pairs:
        if rule.pull_of(p, y) == 0:
            continue
        for h, q in ((0.2, 0.5), (1.5, 2.0), (1e-6, 3.0)):
            slow = invariant_way(lambda s, y=y: -twice * GRADIENTS[loss](y, s), p, h, q, 20_000)
            assert rule.way(p, y, h, q) == pytest.approx(slow, rel=3e-4, abs=h / 20_000), (y, p, h, q)


def time_to_go(m, way):
    """dm/dt = 1/(1 + e^m), integrated: the time that the way from m to m + way takes."""
    return way + np.exp(m) * np.expm1(way)


def test_the_way_of_logistic_loss():
    for m, hq in itertools.product(
        (-50.0, -7.0, -1.0, 0.0, 0.4, 3.0, 20.0), (1e-6, 1e-4, 0.1, 0.9, 1.0, 1.1, 6.0, 1e3)
    ):
        assert time_to_go(m, logistic_way(m, hq)) == pytest.approx(hq, rel=1e-13), (m, hq)


def test_the_way_from_far_away():
    assert logistic_way(60.0, 2.0) == pytest.approx(2.0 * np.exp(-60.0), rel=1e-12)
    assert logistic_way(800.0, 2.0) == pytest.approx(0.0, abs=1e-300)
    assert logistic_way(-1000.0, 20.0) == 20.0
    assert np.exp(logistic_way(-3.0, 1e200) - 3.0) == pytest.approx(1e200, rel=1e-12)
    model = model_of(rules.VW("logistic", eta=1.0, **PLAIN), "binary", fit_intercept=False)
    for base, c in ((360.0, 1.0), (744.0, 1.0), (-1000.0, 20.0)):
        before = model.score_one([1.0])
        model.learn_one([1.0], 1, c, base)
        moved = model.score_one([1.0]) - before
        assert moved == pytest.approx(logistic_way(before + base, c), abs=1e-14), base


def test_models_go_that_way(ways):
    rng = np.random.default_rng(18)
    stream = [Example(np.array([1.0]), int(rng.choice((-1, 1))), c) for c in 10 ** rng.uniform(-4, 3, 200)]
    weights = ways(rules.VW("logistic", eta=1.0, **PLAIN), "binary", stream, fit_intercept=False)[:, 0]
    before = np.concatenate([[0.0], weights[:-1]])
    y, c = (np.array([getattr(example, name) for example in stream]) for name in "yc")
    np.testing.assert_allclose(time_to_go(y * before, y * (weights - before)), c, rtol=1e-9)
    assert (abs(before) > 3).any() and (c < 1).any() and (c > 1 + np.exp(y * before)).any()


def test_a_sure_prediction_hardly_moves(ways):
    """Of Z and ω, both near e^30, nothing may be left over: the step is e^−30, not their rounding."""
    assert rules.VW("logistic").way(30.0, 1.0, 0.5, 1.0) == pytest.approx(0.5 * np.exp(-30.0), abs=2e-14)
    surely = [Example(np.array([1.0]), 1, c) for c in (1e13, 1.0, 1.0, 1.0)]  # the first leads to a score of about 30
    weights = ways(rules.VW("logistic", **PLAIN), "binary", surely, fit_intercept=False)[:, 0]
    assert weights[0] > 29
    np.testing.assert_allclose(weights, weights[0], rtol=1e-13)


PLAIN = {"power": 0.0, "adaptive": False, "normalized": False, "clip": False}


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic", "quantile(tau=0.3)", "huber", "squared_hinge"])
def test_an_importance_in_two_parts_is_the_same(loss, ways):
    regress = not losses.make(loss).margin and loss != "squared"
    stream = random_stream(np.random.default_rng(13), "regression" if regress else "binary", weighted=True)
    task, rule = "regression" if regress else "binary", rules.VW(loss, eta=0.3, **PLAIN)
    halves = [Example(x, y, c * part) for x, y, c in stream for part in (0.3, 0.7)]
    same(ways(rule, task, halves)[1::2], ways(rule, task, stream), 1e-10)


def test_never_beyond_the_label():
    for loss in ("squared", "quantile", "hinge"):
        learner = ReferenceLearner(rules.VW(loss, eta=1e3, **PLAIN), "binary" if loss == "hinge" else "regression")
        for x, y, c in random_stream(np.random.default_rng(14), "binary", weighted=True):
            before = learner.score(x)
            learner.learn(x, y, c)
            low, high = sorted((before, float(y)))
            assert low - 1e-9 <= learner.score(x) <= high + 1e-9


def test_invariant_hinge_is_pa1(ways):
    stream = random_stream(np.random.default_rng(15), "binary", weighted=True)
    same(ways(rules.VW("hinge", eta=0.2, **PLAIN), "binary", stream), ways(rules.PA1(C=0.2), "binary", stream), 1e-11)


@pytest.mark.parametrize("power", [0.5, 0.3])
@pytest.mark.parametrize("adaptive", [True, False])
def test_the_scale_of_features_does_not_matter(adaptive, power):
    stream = random_stream(np.random.default_rng(16), "regression")
    scale = np.array([1e-3, 7.0, 250.0, 1.0])
    rule = rules.VW("squared", power=power, adaptive=adaptive)
    one, other = ReferenceLearner(rule, "regression"), ReferenceLearner(rule, "regression")
    for x, y, c in stream:
        assert other.score(x * scale) == pytest.approx(one.score(x), rel=1e-8, abs=1e-8)
        one.learn(x, y, c)
        other.learn(x * scale, y, c)
    plain = ReferenceLearner(rules.VW("squared", power=power, adaptive=adaptive, normalized=False), "regression")
    for x, y, c in stream:
        plain.learn(x * scale, y, c)
    assert plain.score(stream[0].x * scale) != pytest.approx(one.score(stream[0].x), rel=1e-2)  # the switch does it


def test_predictions_stay_within_the_labels():
    model = model_of(rules.VW("squared"), "regression")
    assert model.predict_one([5.0, 1.0]) == 0.0
    for x, y, _ in random_stream(np.random.default_rng(17), "regression", d=2):
        model.learn_one(x, y)
    low, high = model.predict_one([1e3, 1e3]), model.predict_one([-1e3, -1e3])
    assert {low, high} == {
        model.predict_many(np.array([[1e4, 1e4]]))[0],
        model.predict_many(np.array([[-1e4, -1e4]]))[0],
    }
    assert abs(model_of(rules.VW("squared", clip=False), "regression").predict_one([1.0])) == 0.0


def test_progressive_predictions_are_clipped_by_what_was_known_then():
    X = np.array([[1.0], [1.0], [1.0], [-9.0]])
    y = np.array([1.0, 5.0, 50.0, -3.0])
    batch, single = model_of(rules.VW("squared"), "regression"), model_of(rules.VW("squared"), "regression")
    before = []
    for row, label in zip(X, y, strict=True):
        before.append(single.predict_one(row))
        single.learn_one(row, label)
    assert batch.predict_then_learn(X, y).tolist() == before
    assert before[1] <= 1.0 and before[3] == 0.0


@pytest.mark.parametrize("loss", ["tukey", "perceptron"])
def test_losses_without_an_invariant_form(loss):
    with pytest.raises(ParameterError, match="invariant=False"):
        rules.VW(loss)
    rules.VW(loss, invariant=False)
