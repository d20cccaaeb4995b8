"""Mini-batch descent (pseudo-online): specification 00 §11. All gradients of a batch at the same w, one step."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

import onepass
from onepass import rules
from onepass.errors import NumericalError, ParameterError
from onepass.estimators.linear import LinearClassifier, LinearRegressor
from onepass.models.linear import LinearModel
from onepass.models.reference import ReferenceLearner
from onepass.persistence import store

from . import transcriptions
from .streams import A, random_stream, run, with_constant
from .transcriptions import GRADIENTS
from .ways import WAYS, by_model, learn, model_of, same, weights_of


def descent(stream, d, gradient, eta, b, lam=0.0, reduction="mean", clock="rounds", spare_last=False):
    """w ← max(0, 1 − ηλ)w − η·(mean or sum of c∂ℓ x over the batch, each at w); no gradient, no shrinking."""
    w, steps, updates, G, rounds, any_round = np.zeros(d), 0, 0, np.zeros(d), 0, False
    for x, y, c in stream:
        if not transcriptions.skip(x, c):
            G = G + c * gradient(y, float(w @ x)) * np.asarray(x)
            any_round = True
        rounds += 1
        if rounds == b:
            rate = eta(steps + 1 if clock == "rounds" else updates + 1)
            shrunk = max(0.0, 1 - rate * lam) * w if any_round else w
            if spare_last:
                shrunk = np.append(shrunk[:-1], w[-1])
            updates += bool(np.any(G))
            w, G = shrunk - rate * G / (b if reduction == "mean" else 1), np.zeros(d)
            steps, rounds, any_round = steps + 1, 0, False
        yield w


@pytest.mark.parametrize("way", WAYS)
def test_worked_numbers(way):
    """A, hinge, η = 0.5, b = 2: means ((1,2)+(−2,1))/2 and ((1,−1)+0)/2 (the fourth has m = 1.25); the fifth waits."""
    rows = WAYS[way](rules.SGD("hinge", "constant", 0.5, batch_size=2), "binary", A, fit_intercept=False)[:, :2]
    np.testing.assert_allclose(rows, [(0, 0), (-0.25, 0.75), (-0.25, 0.75), (0.25, 0.75), (0.25, 0.75)], atol=1e-12)


LOSSES = {"hinge": "binary", "logistic": "binary", "squared_hinge": "binary", "squared": "regression"}


@pytest.mark.full
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("clock", ["rounds", "updates"])
@pytest.mark.parametrize("loss", LOSSES)
def test_equals_transcription(loss, clock, reduction, way):
    for b in (2, 5, 7):
        for lam in (0.0, 0.3):
            stream = random_stream(np.random.default_rng(b), LOSSES[loss], 61, weighted=True)
            rule = rules.SGD(loss, "inv_sqrt", 0.1, lam, clock=clock, batch_size=b, reduction=reduction)
            expected = descent(
                with_constant(stream), 5, GRADIENTS[loss], lambda t: 0.1 / math.sqrt(t), b, lam, reduction, clock, True
            )
            same(WAYS[way](rule, LOSSES[loss], stream), list(expected), 1e-11)


@pytest.mark.parametrize("way", WAYS)
def test_the_average_is_over_rounds(way):
    stream = random_stream(np.random.default_rng(0), "binary", 60)
    vectors = list(descent(with_constant(stream), 5, GRADIENTS["hinge"], lambda t: 0.1 / math.sqrt(t), 4))
    for kind in ("predictor", "post"):
        rows = WAYS[way]("sgd:batch_size=4", "binary", stream, readout=f"average(kind={kind})")
        same(rows, list(transcriptions.average(vectors, kind)), 1e-11)


@pytest.mark.parametrize("rule", ["sgd:l2=0.1", "sgd:loss=logistic", "fobos:lam1=0.05", "truncated:gravity=0.1,K=3"])
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_a_batch_of_one_is_the_online_rule_bit_for_bit(rule, task):
    stream = random_stream(np.random.default_rng(1), task, weighted=True)
    online, batched = (by_model(r, task, stream, classes=3) for r in (rule, f"{rule},batch_size=1"))
    assert online.tobytes() == batched.tobytes()
    assert by_model(f"{rule},batch_size=2", task, stream, classes=3).tobytes() != online.tobytes()


@pytest.mark.parametrize("b", [2, 5])
def test_softmax_over_classes(b):
    stream = random_stream(np.random.default_rng(2), "multiclass", 60)
    W, rows = np.zeros((3, 5)), []
    for start in range(0, 60, b):
        G = np.zeros_like(W)
        for x, y, _ in with_constant(stream)[start : start + b]:
            e = np.exp(W @ x)
            G += np.outer((np.arange(3) == y) - e / e.sum(), x)
        rows += [W] * (b - 1)
        W = W + 0.2 / b * G
        rows.append(W)
    rule = rules.SGD("logistic", "constant", 0.2, batch_size=b)
    for way in WAYS.values():
        same(way(rule, "multiclass", stream, classes=3), rows, 1e-11)


def test_the_whole_set_as_one_batch_is_gradient_descent():
    stream = random_stream(np.random.default_rng(3), "regression", 30)
    X, y = np.array([e.x for e in stream]), np.array([e.y for e in stream])
    rule = rules.SGD("squared", "constant", 0.01, batch_size=30, reduction="sum")
    model = LinearRegressor(rule, fit_intercept=False, passes=4).fit(X, y)
    w = np.zeros(4)
    for _ in range(4):
        w = w + 0.01 * (y - X @ w) @ X
    np.testing.assert_allclose(model.coef_, w, rtol=1e-12)


# ---- batches that are not full ----


def saved(model):
    return store.to_bytes("linear", *model.state())


def test_a_half_full_batch_survives_files_and_chunks():
    stream = random_stream(np.random.default_rng(4), "binary", 50)
    X, y = np.array([e.x for e in stream]), [e.y for e in stream]
    whole = model_of("sgd:batch_size=16,l2=0.1")
    whole.learn_many(X, y)
    resumed = model_of("sgd:batch_size=16,l2=0.1")
    for i in range(50):
        resumed.learn_one(X[i], y[i])
        resumed = LinearModel.from_state(*store.from_bytes(saved(resumed), "memory")[1:])
    assert saved(resumed) == saved(whole)
    assert len(whole.state()[1]["batch_ends"]) == 2  # 50 = 3·16 + 2
    before = whole.weights()[0].copy()
    whole.flush()
    resumed.flush()
    assert saved(resumed) == saved(whole)
    assert not np.array_equal(whole.weights()[0], before)
    again = saved(whole)
    whole.flush()  # nothing waits any more
    assert saved(whole) == again


def test_flush_equals_the_core_and_fit_flushes_every_pass():
    stream = random_stream(np.random.default_rng(5), "binary", 23)
    learner, model = ReferenceLearner("sgd:batch_size=10"), model_of("sgd:batch_size=10")
    for _ in range(3):
        for x, y, c in stream:
            learner.learn(x, y, c)
            learn(model, x, y, c)
        learner.flush()
        model.flush()
        same(weights_of(model), np.append(learner.w, learner.intercept))
    fitted = LinearClassifier("sgd:batch_size=10", passes=3).fit(np.array([e.x for e in stream]), [e.y for e in stream])
    np.testing.assert_array_equal(np.append(fitted.coef_, fitted.intercept_), weights_of(model))
    assert fitted.k_ == learner.k == model.k == 9


def test_classes_that_come_within_a_batch():
    """The waiting updates of two classes become rows as the weights do; the flip of two classes turns them."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(12, 3)), [5, 5, 2, 5, 9, 2, 9, 5, 2, 9, 5, 2]
    model, ours = LinearModel("sgd:batch_size=6,eta=0.3"), np.zeros((1, 4))
    model.learn_many(X[:4], y[:4])  # 5, then 2 < 5: flipped
    pending = sum(np.append(x, 1.0) * (1 if label == 5 else -1) for x, label in zip(X[1:4], y[1:4], strict=True))
    pending = pending + np.append(X[0], 1.0)  # the first, alone, was class 0 and was flipped with it
    model.learn_one(X[4], 9)
    model.flush()
    assert model.classes == [2, 5, 9]
    rows = np.array([-pending / 2, pending / 2, np.zeros(4)])
    rows[2] += np.append(X[4], 1.0)
    rows[0] -= np.append(X[4], 1.0)
    same(weights_of(model), 0.3 * rows / 5 + ours)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_malformed_rows_leave_the_batch_as_it_was(form):
    stream = random_stream(np.random.default_rng(7), "binary", 20)
    X, y = np.array([e.x for e in stream]), [e.y for e in stream]
    model = model_of("sgd:batch_size=8")
    model.learn_many(form(X[:11]), y[:11])
    before = saved(model)
    bad = X[11:].copy()
    bad[5, 2] = np.nan
    with pytest.raises(onepass.errors.InputError, match=r"X\[5, 2\] is NaN"):
        model.learn_many(form(bad), y[11:])
    assert saved(model) == before


def test_an_update_that_leads_too_far_is_refused_for_its_row():
    model = model_of("sgd:loss=squared,schedule=constant,eta=1,batch_size=4", "regression")
    model.learn_many(np.ones((5, 2)), [1.0, 2.0, 3.0, 4.0, 5.0])
    rows, y = np.array([[1.0, 1.0], [1e140, 0.0], [1.0, 2.0]]), [1.0, 1e150, 2.0]
    with pytest.raises(NumericalError, match="row 1") as caught:
        model.learn_many(rows, y)
    assert caught.value.row == 1
    assert model.t == 6
    model.learn_many(rows[2:], y[2:])
    model.flush()
    assert np.all(np.isfinite(model.weights()[0]))


def test_the_pocket_is_refused():
    for make in (ReferenceLearner, LinearModel):
        with pytest.raises(ParameterError, match="counts rounds without an update"):
            make("sgd:batch_size=2", readout="pocket")


def test_ranking_and_structure():
    stream = random_stream(np.random.default_rng(8), "ranking", 40)
    rule = rules.SGD("hinge", batch_size=4)
    same(by_model(rule, "ranking", stream), run(ReferenceLearner(rule, "ranking", fit_intercept=False), stream), 1e-11)
    ranker = onepass.Ranker(rule).fit(np.array([e.x[0] for e in stream]), np.arange(40) % 2, qid=np.arange(40) // 4)
    assert ranker._model.state()[1]["batch_scalars"][0] == 0  # fit leaves nothing waiting
