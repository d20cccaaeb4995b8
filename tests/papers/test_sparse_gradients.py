"""FOBOS (Duchi and Singer 2009) and the truncated gradient (Langford, Li and Zhang 2009).

Specification 01 §18.2, §18.3 and 00 §13: the native loop lets absent features wait; the transcriptions do not.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from sklearn import linear_model as sk

import onepass
from onepass import rules
from onepass.errors import ParameterError
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner
from onepass.scheme import losses

from . import transcriptions
from .bounds import assert_within
from .streams import A, Example, comparators, opposite, play, random_stream, run, with_constant
from .transcriptions import GRADIENTS, SCHEDULES
from .ways import WAYS, same

WORKED = {
    "fobos": (
        rules.FOBOS("hinge", "inv_sqrt", eta=0.5, lam1=0.2),
        [(0.4, 0.9), (-0.236396, 1.182843), (0, 0.836433), (0.2, 1.036433), (0.155279, 0.991711)],
    ),
    "truncated": (
        rules.TruncatedGradient("hinge", "constant", eta=0.25, gravity=0.2, K=2, threshold=0.6),
        [(0.25, 0.5), (-0.15, 0.75), (0.1, 0.5), (0.25, 0.75), (0.25, 0.75)],
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WORKED)
def test_worked_numbers(name, way):
    rule, w = WORKED[name]
    rows = WAYS[way](rule, "binary", A, fit_intercept=False)
    np.testing.assert_allclose(rows[:, :2], w, atol=1e-6)


RULES = {
    "l1": (rules.FOBOS, transcriptions.fobos, {"lam1": 0.05}),
    "l2": (rules.FOBOS, transcriptions.fobos, {"lam2": 0.3}),
    "elastic net": (rules.FOBOS, transcriptions.fobos, {"lam1": 0.03, "lam2": 0.2}),
    "gravity": (rules.TruncatedGradient, transcriptions.truncated_gradient, {"gravity": 0.05, "K": 3}),
    "gravity, θ": (
        rules.TruncatedGradient,
        transcriptions.truncated_gradient,
        {"gravity": 0.1, "K": 2, "theta": 0.2},
    ),
}


def made(name, loss, schedule):
    kind, _, options = RULES[name]
    return kind(loss, schedule, **{{"theta": "threshold"}.get(key, key): value for key, value in options.items()})


def expected_of(name, stream, d, loss, schedule, **more):
    _, transcription, options = RULES[name]
    return list(transcription(stream, d, GRADIENTS[loss], SCHEDULES[schedule], **options, **more))


LOSSES = [("hinge", "binary"), ("logistic", "binary"), ("squared", "regression"), ("huber(delta=0.7)", "regression")]


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("schedule", ["constant(eta=0.3)", "inv_sqrt(eta=0.5)", "inv_t(eta=2)"])
@pytest.mark.parametrize(("loss", "task"), LOSSES)
@pytest.mark.parametrize("name", RULES)
def test_equals_transcription(name, loss, task, schedule, weighted, way):
    """The intercept, the last coordinate, is spared."""
    for seed in range(2):
        stream = random_stream(np.random.default_rng(seed), task, weighted=weighted)
        # A third of the length: a constant η = 0.3 would diverge on the squared loss.
        stream = [Example(np.asarray(x) / 3, y, c) for x, y, c in stream]
        expected = expected_of(name, with_constant(stream), 5, loss, schedule, spare_last=True)
        same(WAYS[way](made(name, loss, schedule), task, stream), expected)


def sparse_stream(rng, rounds, d, density=0.05):
    X = rng.normal(size=(rounds, d)) * (rng.random((rounds, d)) < density)
    y = np.where(X @ rng.normal(size=d) + 0.1 * rng.normal(size=rounds) > 0, 1, -1)
    return [Example(x, int(v), float(c)) for x, v, c in zip(X, y, rng.exponential(size=rounds), strict=True)]


@pytest.mark.parametrize("schedule", ["constant(eta=0.3)", "inv_sqrt(eta=0.5)", "inv_scaling(eta=0.4,p=0.7,t0=3)"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_lazy_equals_eager(name, intercept, loss, schedule):
    """Features that stay away for long: a table, CSR, rows, and names that come when they come."""
    rng, d = np.random.default_rng(3), 60
    stream = sparse_stream(rng, 400, d)
    expected = expected_of(name, with_constant(stream, float(intercept)), d + 1, loss, schedule, spare_last=True)[-1]
    X, y, c = np.array([e.x for e in stream]), [e.y for e in stream], [e.c for e in stream]
    dense, sparse, rows, names = (
        LinearModel(made(name, loss, schedule), classes=[-1, 1], fit_intercept=intercept) for _ in range(4)
    )
    dense.learn_many(X, y, c)
    sparse.learn_many(scipy.sparse.csr_matrix(X), y, c)
    for row, label, weight in zip(X, y, c, strict=True):
        rows.learn_one(row, label, weight)
        names.learn_one({f"x{j}": row[j] for j in np.flatnonzero(row)}, label, weight)
    for model in (dense, sparse, rows):
        w, b = model.weights()
        same(np.append(w, b), expected if intercept else np.append(expected[:-1], 0.0))
    table = names.named_weights()
    same([table.get(f"x{j}", 0.0) for j in range(d)], expected[:-1])
    # what predicts is the flushed weight too
    same([names.score_one({f"x{j}": 1.0}) - names.weights()[1][0] for j in range(d)], expected[:-1])
    zero = expected[:-1] == 0
    if "lam1" in RULES[name][2]:
        assert zero.any()  # there is something to see
    assert np.all(dense.weights()[0][0][zero] == 0)  # zeros are zeros
    assert np.all(sparse.weights()[0][0][zero] == 0)


def test_an_untouched_weight_decays_to_zero_and_stays_there():
    """soft(soft(v, a), b) = soft(v, a + b): after enough rounds elsewhere exactly 0, and prediction sees it."""
    model = LinearModel(rules.FOBOS("hinge", "constant", eta=0.5, lam1=0.01), classes=[-1, 1], fit_intercept=False)
    model.learn_one({"a": 1.0}, 1)
    assert model.score_one({"a": 1.0}) == pytest.approx(0.495)
    for t in range(1, 120):
        model.learn_one({"b": 1.0}, 1 if t % 2 else -1)
        assert model.score_one({"a": 1.0}) == pytest.approx(max(0.0, 0.495 - 0.005 * t), abs=1e-12)
    assert model.score_one({"a": 1.0}) == 0.0
    assert "a" not in model.named_weights()


def test_a_long_elastic_net_does_not_underflow():
    """00 §13: the product of the shrinking factors is flushed before it vanishes."""
    stream = sparse_stream(np.random.default_rng(0), 3000, 20, 0.1)
    rule = rules.FOBOS("hinge", "constant", eta=0.9, lam1=0.001, lam2=0.9)
    expected = list(transcriptions.fobos(stream, 20, GRADIENTS["hinge"], lambda t: 0.9, 0.001, 0.9))[-1]
    model = LinearModel(rule, classes=[-1, 1], fit_intercept=False)
    model.learn_many(np.array([e.x for e in stream]), [e.y for e in stream], [e.c for e in stream])
    same(model.weights()[0][0], expected)


@pytest.mark.parametrize("rule", [rules.FOBOS("hinge", lam1=5.0), rules.TruncatedGradient("hinge", gravity=5.0, K=1)])
@pytest.mark.parametrize("way", WAYS)
def test_the_intercept_is_not_penalised(rule, way):
    """A penalty that keeps every weight at 0 leaves the intercept to learn."""
    stream = [Example(x, 1) for x in np.random.default_rng(0).normal(size=(30, 3))]
    rows = WAYS[way](rule, "binary", stream)
    assert not rows[:, :-1].any()
    assert rows[-1, -1] > 0.9


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("schedule", ["constant", "inv_sqrt"])
def test_truncation_every_round_is_fobos(schedule, way):
    """01 §18.3: θ = ∞ and K = 1."""
    stream = random_stream(np.random.default_rng(1), "binary", weighted=True)
    truncated = rules.TruncatedGradient("hinge", schedule, eta=0.4, gravity=0.1, threshold=math.inf, K=1)
    fobos = rules.FOBOS("hinge", schedule, eta=0.4, lam1=0.1)
    same(*(WAYS[way](rule, "binary", stream) for rule in (truncated, fobos)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [rules.FOBOS, rules.TruncatedGradient])
def test_without_penalty_it_is_sgd(kind, way):
    stream = random_stream(np.random.default_rng(2), "binary", weighted=True)
    same(*(WAYS[way](rule("logistic", "inv_sqrt", eta=0.5), "binary", stream) for rule in (kind, rules.SGD)))


def test_scikit_learn_l1():
    """01 §18.2: penalty="l1" there, one example a call, is FOBOS."""
    stream = [e for e in random_stream(np.random.default_rng(4), "binary", noise=0.3) if np.any(e.x)]
    theirs = sk.SGDClassifier(
        loss="hinge", penalty="l1", alpha=0.05, learning_rate="constant", eta0=0.2, shuffle=False, tol=None
    )
    ours = onepass.LinearClassifier(rules.FOBOS("hinge", "constant", eta=0.2, lam1=0.05))
    for x, y, _ in stream:
        for model in (theirs, ours):
            model.partial_fit([x], [y], classes=[-1, 1])
        same(np.append(ours.coef_, ours.intercept_), np.append(theirs.coef_, theirs.intercept_))
    assert np.any(theirs.coef_)


@pytest.mark.parametrize("way", WAYS)
def test_multiclass_and_ranking(way):
    """More rows: the penalty acts on every one of them, every round."""
    stream = random_stream(np.random.default_rng(6), "multiclass")
    options = {"classes": 3, "fit_intercept": False}
    rule = rules.FOBOS("logistic", "constant", eta=0.3, lam1=0.02, lam2=0.1)
    rows = WAYS[way](rule, "multiclass", stream, **options)[:, :, :-1]
    W = np.zeros((3, 4))
    for (x, y, _), after in zip(stream, rows, strict=True):
        if np.any(x):
            p = np.exp(W @ x)
            half = W - 0.3 * np.outer(p / p.sum() - np.eye(3)[y], x)
            W = np.sign(half) * np.maximum(0, np.abs(half) - 0.3 * 0.02) / (1 + 0.3 * 0.1)
        np.testing.assert_allclose(after, W, rtol=1e-12, atol=1e-12)


# ---- regret ----


def elastic(w, lam1, lam2):
    return lam1 * np.abs(w).sum() + lam2 / 2 * w @ w


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("eta", [0.02, 0.2, 1.0])
@pytest.mark.parametrize(("lam1", "lam2"), [(0.1, 0.0), (0.0, 0.1), (0.05, 0.05)])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("seed", range(2))
def test_regret_bound(loss, lam1, lam2, eta, seed):
    """Σ[ℓ_t(w_t) + Ω(w_{t+1})] − Σ[ℓ_t(u) + Ω(u)] ≤ ‖u‖²/(2η) + (η/2) Σ‖g_t‖², w₁ = 0."""
    rng = np.random.default_rng(seed)
    rule = rules.FOBOS(loss, "constant", eta=eta, lam1=lam1, lam2=lam2)
    random, adversary = (ReferenceLearner(rule, fit_intercept=False) for _ in range(2))
    noisy = [e for e in random_stream(rng, "binary", 120, noise=1.0) if np.any(e.x)]
    run(random, noisy)
    shown = play(adversary, rng.normal(size=(120, 4)) + 0.5, opposite)
    assert adversary.mistakes >= 119
    value = losses.make(loss).value
    for stream, learner in ((noisy, random), (shown, adversary)):
        X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
        g = np.array([GRADIENTS[loss](e.y, r.score) for e, r in zip(stream, learner.records, strict=True)])
        mine = sum(r.loss + elastic(r.w, lam1, lam2) for r in learner.records)
        for u in comparators(rng, X, y):
            theirs = sum(value(m) for m in y * (X @ u)) + len(y) * elastic(u, lam1, lam2)
            bound = u @ u / (2 * eta) + eta / 2 * np.sum(g**2 * np.sum(X * X, axis=1))
            assert_within(mine - theirs, bound, "FOBOS regret")


@pytest.mark.parametrize("readout", ["average", "pocket", "voted"])
def test_other_readouts_are_refused(readout):
    for make in (ReferenceLearner, LinearModel):
        with pytest.raises(ParameterError, match="readout"):
            make(rules.FOBOS(lam1=0.1), readout=readout)
