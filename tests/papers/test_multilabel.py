"""Multilabel Passive-Aggressive: Crammer et al. 2006, §8. Specification 01 §14."""

from __future__ import annotations

import numpy as np
import pytest

import onepass
from onepass import rules
from onepass.errors import ParameterError
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner
from onepass.persistence import store

from . import transcriptions
from .bounds import Played, assert_within, pa_bounds
from .solvers import quadratic
from .streams import Example, importances, inputs, run, with_constant
from .ways import WAYS, by_core, by_model, same

WORKED = [Example((1, 0), {0}), Example((0, 1), {1, 2}), Example((1, 1), {0, 1}), Example((-1, 0), {2})]
FINAL = [(0.55, -0.05), (0, 0.3), (-0.55, -0.25)]


@pytest.mark.parametrize("way", WAYS)
def test_worked_numbers(way):
    rows = WAYS[way](rules.PA1(0.3), "multilabel", WORKED, classes=3, fit_intercept=False)
    np.testing.assert_allclose(rows[-1, :, :2], FINAL, atol=1e-6)


def test_worked_steps():
    learner = ReferenceLearner(rules.PA1(0.3), "multilabel", classes=3, fit_intercept=False)
    run(learner, WORKED)
    np.testing.assert_allclose([r.step.add for r in learner.records], [0.3, 0.3, 0.25, 0.3], atol=1e-6)
    np.testing.assert_allclose([r.loss for r in learner.records[2:]], [1, 1.05], atol=1e-6)
    estimator = onepass.MultilabelClassifier(rules.PA1(0.3), fit_intercept=False)
    estimator.fit([e.x for e in WORKED], [[int(i in e.y) for i in range(3)] for e in WORKED])
    np.testing.assert_allclose(estimator.coef_, FINAL, atol=1e-6)


def label_stream(rng, rounds=60, d=4, K=4, weighted=False, noise=0.5):
    """Some sets are empty, some full: nothing to order."""
    X, C, U = inputs(rng, rounds, d), importances(rng, rounds, weighted), rng.normal(size=(K, d))
    S = X @ U.T + noise * rng.normal(size=(rounds, K))
    sets = [set(np.flatnonzero(s > 0).tolist()) for s in S]
    sets[5], sets[9] = set(), set(range(K))
    return [Example(x, Y, float(c)) for x, Y, c in zip(X, sets, C, strict=True)]


VARIANTS = [(rules.PA(), "PA"), (rules.PA1(0.2), "PA-I"), (rules.PA2(0.2), "PA-II")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rule", "variant"), VARIANTS)
def test_equals_transcription(rule, variant, weighted, intercept, way):
    for seed in range(4):
        stream = label_stream(np.random.default_rng(seed), weighted=weighted)
        expected = list(transcriptions.pa_multilabel(with_constant(stream, float(intercept)), 4, 5, variant, 0.2))
        same(WAYS[way](rule, "multilabel", stream, classes=4, fit_intercept=intercept), expected)


@pytest.mark.parametrize("way", WAYS)
def test_sets_of_one_are_the_multiclass_rule(way):
    """The lowest in a set of one is the class; the highest outside its best rival."""
    rng = np.random.default_rng(1)
    plain = [Example(x, int(y), 1.0) for x, y in zip(inputs(rng, 60, 4), rng.integers(3, size=60), strict=True)]
    sets = [e._replace(y={e.y}) for e in plain]
    for rule in (rules.PA1(0.3), rules.Perceptron(), rules.SGD("hinge")):
        one = WAYS[way](rule, "multiclass", plain, classes=3)
        same(WAYS[way](rule, "multilabel", sets, classes=3), one)


@pytest.mark.parametrize("rule", ["perceptron:beta=0.3", "mira", "romma", "alma", "shifting", "pegasos", "sgd"])
def test_other_rules_agree_in_both_ways(rule):
    stream = label_stream(np.random.default_rng(2), 40, noise=0.0)
    core, model = (run_by(rule, "multilabel", stream, classes=4) for run_by in (by_core, by_model))
    same(core, model, 1e-8)


@pytest.mark.parametrize(("rule", "variant"), VARIANTS)
def test_is_the_minimiser(rule, variant):
    """min ½‖V − W‖² (+ Cξ, Cξ²) s.t. the weakest pair at W is apart by 1 − ξ."""
    rng, C = np.random.default_rng(0), 0.2
    for _ in range(15):
        W, x, Y = rng.normal(size=(4, 3)), rng.normal(size=3), {0, 2}
        s = W @ x
        r, q = min(Y, key=lambda i: s[i]), max({1, 3}, key=lambda i: s[i])
        learner = ReferenceLearner(rule, "multilabel", classes=4, fit_intercept=False, w=W)
        learner.learn(x, Y)
        pair = np.zeros((4, 3))
        pair[r], pair[q] = x, -x
        weight, linear = np.ones(13), np.zeros(13)
        weight[-1], linear[-1] = {"PA": (1, 0), "PA-I": (0, C), "PA-II": (2 * C, 0)}[variant]
        G = [np.append(pair.ravel(), variant != "PA"), np.eye(13)[-1]]
        V = quadratic(np.append(W.ravel(), 0.0), weight, linear, G, [1.0, 0.0])[:-1]
        np.testing.assert_allclose(learner.w.ravel(), V, atol=2e-6)


def hinge(U, x, Y):
    s, inside = U @ x, np.isin(np.arange(len(U)), list(Y))
    return max(0.0, 1 - (s[inside].min() - s[~inside].max())) if 0 < inside.sum() < len(U) else 0.0


@pytest.mark.parametrize(("name", "C"), [("pa", 1.0), ("pa1", 0.1), ("pa2", 0.1)])
@pytest.mark.parametrize("seed", range(3))
def test_bounds(name, C, seed):
    """Those of the binary rule with ‖φ‖² = 2‖x‖²; realizable for PA where U orders every set."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(4, 4))
    X = rng.normal(size=(200, 4))
    clear = [Example(x, set(np.flatnonzero(U @ x > 0).tolist())) for x in X if np.min(np.abs(U @ x)) > 0.1]
    clear = [e for e in clear if 0 < len(e.y) < 4]
    noisy = [e for e in label_stream(rng, 150, noise=2.0) if np.any(e.x) and 0 < len(e.y) < 4]
    fits = 5 * U * (1 + 1e-12)
    for stream in (clear, noisy):
        learner = ReferenceLearner(
            rules.RULES[name]() if name == "pa" else rules.RULES[name](C),
            "multilabel",
            classes=4,
            fit_intercept=False,
        )
        run(learner, stream)
        played = Played.of(learner, np.array([2 * e.x @ e.x for e in stream]))
        seen = set()
        for V in (0 * U, U, fits, rng.normal(size=U.shape)):
            star = np.array([hinge(V, e.x, e.y) for e in stream])
            for what, measured, bound in pa_bounds(name, C, played, star, float(np.sum(V * V))):
                assert_within(measured, bound, what)
                seen.add(what)
        if name == "pa" and stream is clear:
            assert "realizable" in seen


def test_nothing_to_order_is_passive_and_prediction_is_above_zero():
    for make in (by_core, by_model):
        rows = make(rules.PA(), "multilabel", [Example((1, 2), set()), Example((1, 2), {0, 1, 2})], classes=3)
        assert not rows.any()
    learner = ReferenceLearner(rules.PA(), "multilabel", classes=3)
    model = onepass.MultilabelClassifier("pa")
    model.fit([e.x for e in WORKED], [[int(i in e.y) for i in range(3)] for e in WORKED])
    run(learner, WORKED)
    for x in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.5)):
        assert learner.predict(x) == set(np.flatnonzero(np.asarray(learner.score(x)) > 0))
        np.testing.assert_array_equal(model.predict([x])[0], np.asarray(learner.score(x)) > 0)


# ---- calibrated: the virtual label at 0 ----


def calibrated(stream, K, d, variant, C):
    """The lowest in should reach 1, the highest out −1: two binary rounds on rows of their own, at the same W."""
    W = np.zeros((K, d))
    for x, Y, c in stream:
        x = np.asarray(x, dtype=float)
        if not transcriptions.skip(x, c):
            s, step = W @ x, np.zeros(K)
            for labels, y, pick in ((Y, 1, min), (set(range(K)) - Y, -1, max)):
                if labels:
                    r = pick(sorted(labels), key=lambda i, s=s: s[i])
                    step[r] = y * transcriptions.pa_tau(variant, max(0.0, 1 - y * s[r]), float(x @ x), C, c)
            W = W + np.outer(step, x)
        yield W


@pytest.mark.parametrize("way", WAYS)
def test_worked_calibrated(way):
    """PA-I, C = 0.3: (1,0),{0}: row 0 up, row 1 down by 0.3. (0,1),{1,2}: row 1 up, row 0 down. (1,1),{0,1}: all of
    s = (0, 0, 0): row 0 up, row 2 down. (−1,0),{2}: s₂ = 0.3, up by 0.3; of 0 and 1 (−0.6, 0.3) row 1, down.
    """
    options = {"classes": 3, "fit_intercept": False, "threshold": "calibrated"}
    rows = WAYS[way](rules.PA1(0.3), "multilabel", WORKED, **options)
    np.testing.assert_allclose(rows[-1, :, :2], [(0.6, 0), (0, 0.3), (-0.6, -0.3)], atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rule", "variant"), VARIANTS)
def test_calibrated_equals_transcription(rule, variant, weighted, intercept, way):
    for seed in range(4):
        stream = label_stream(np.random.default_rng(seed), weighted=weighted)
        expected = list(calibrated(with_constant(stream, float(intercept)), 4, 5, variant, 0.2))
        options = {"classes": 4, "fit_intercept": intercept, "threshold": "calibrated"}
        same(WAYS[way](rule, "multilabel", stream, **options), expected)


CAN = [
    "perceptron:beta=0.3",
    "mira:beta=0.5",
    "pegasos",
    "sgd:l2=0.1",
    "sgd:loss=logistic,batch_size=4",
    "fobos:lam1=0.01",
]


@pytest.mark.parametrize("rule", CAN)
def test_other_rules_calibrate_alike_in_both_ways(rule):
    stream = label_stream(np.random.default_rng(2), 40, noise=0.2)
    core, model = (
        run_by(rule, "multilabel", stream, classes=4, threshold="calibrated") for run_by in (by_core, by_model)
    )
    same(core, model, 1e-9)
    assert not np.allclose(core, by_core(rule, "multilabel", stream, classes=4))


@pytest.mark.parametrize("rule", ["romma", "alma", "alma:p=4", "shifting", "pegasos:project=true"])
def test_rules_that_shrink_by_the_margin_cannot(rule):
    for make in (ReferenceLearner, LinearModel):
        with pytest.raises(ParameterError, match=r"threshold='calibrated' adds two steps.*use 'uncalibrated'"):
            make(rule, "multilabel", threshold="calibrated")
        assert not make(rule, "multilabel").calibrated
        with pytest.raises(ParameterError, match="expected one of uncalibrated, calibrated"):
            make("pa", "multilabel", threshold="zero")


def test_calibrated_chunks_files_and_growing_labels_give_the_same_bytes(tmp_path):
    stream = label_stream(np.random.default_rng(3), 80)
    X, sets = np.array([e.x for e in stream]), [sorted(e.y) for e in stream]
    for readout in ("last", "average", "pocket"):
        one, many = (LinearModel("pa1:C=0.1", "multilabel", readout=readout, threshold="calibrated") for _ in range(2))
        for i in range(80):
            one.learn_one(X[i], sets[i])
            if i == 30:
                one.save(tmp_path / "m")
                one = LinearModel.load(tmp_path / "m")
        for start in range(0, 80, 13):
            many.learn_many(X[start : start + 13], sets[start : start + 13])
        assert store.to_bytes("linear", *one.state()) == store.to_bytes("linear", *many.state())
        assert one.calibrated


def test_calibrated_cut_is_near_the_truth():
    """Sets of one of five labels: uncalibrated scores sum to 0, so that some are always above; calibrated need not."""
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(5, 6))
    y = rng.integers(5, size=1500)
    X, Y = centres[y] + rng.normal(size=(1500, 6)), np.eye(5, dtype=int)[y]
    wrong = {}
    for threshold in ("calibrated", "uncalibrated"):
        model = onepass.MultilabelClassifier("pa1:C=0.1", readout="average", threshold=threshold)
        model.partial_fit(X[:1000], Y[:1000])
        wrong[threshold] = float(np.mean(model.predict(X[1000:]) != Y[1000:]))
    assert wrong["calibrated"] < 0.05 < 0.15 < wrong["uncalibrated"]
