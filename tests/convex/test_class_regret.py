"""Regret of more than two classes: against the best weight matrix in hindsight, within the bounds of the rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from support.command import onepass as command

import onepass as op
from onepass import errors, rules
from onepass.convex.regret import class_guarantees, class_hindsight, guarantees
from onepass.convex.sets import Box, L2Ball
from onepass.scheme import losses

RULES = [
    "perceptron",
    "pa1:C=0.1",
    "pa2:C=0.1",
    "sgd:loss=hinge",
    "sgd:loss=logistic",
    "sgd:loss=squared_hinge,eta=0.01",
    "sgd:loss=logistic,schedule=constant,eta=0.05",
]
DECLARED = [
    "sgd:loss=squared,schedule=constant,eta=0.005",
    "adaline:rho=0.002",
    "rls:lam=0.5",
    "rls:forecast=vaw",
]


def table(kind, n=160):
    generator = np.random.default_rng(3)
    if kind == "digits":
        X, y = load_digits(return_X_y=True)
        at = np.flatnonzero(y < 3)[:100]
        return X[at][:, 26:38] / 16, y[at]
    X = generator.normal(size=(n, 3))
    noise = {"random": 0.7, "bursts": 0.0, "separable": 0.0}[kind]
    y = (X @ generator.normal(size=(3, 4)) + noise * generator.gumbel(size=(n, 4))).argmax(axis=1)
    if kind == "bursts":
        y[np.arange(n) % 50 < 10] = 0
    return X, y


def regret_of(rule, X, y, classes=None, **options):
    model = op.LinearModel(rule, "multiclass", classes=classes, **options)
    return op.regret(op.prequential(model, list(zip(X, y.tolist(), strict=True)), regret=True))


@pytest.mark.full(most=2)
@pytest.mark.parametrize("stream", ["random", "bursts", "separable", "digits"])
def test_regret_is_within_the_bound_of_the_rule(stream):
    """With classes that come one after the other, and with those that are declared."""
    X, y = table(stream)
    for rule in RULES + DECLARED:
        for classes in (None, sorted(set(y.tolist()))):
            regret = regret_of(rule, X, y, classes)
            if classes is None and rule in DECLARED:
                assert regret.bound is None and "declared" in regret.reason
                continue
            assert regret.bound is not None and regret.holds(), (rule, classes)
            assert len(regret) == len(y) and np.isfinite(regret.bound).all()
            assert regret.comparator.gap <= 2e-3 * max(1.0, regret.comparator.value), (rule, regret.comparator)


class Lowest:
    """An adversary: the true class is the one that scores least."""

    def __init__(self, model, n, d):
        self.model, self.n, self.d = model, n, d

    def __iter__(self):
        generator = np.random.default_rng(5)
        for _ in range(self.n):
            x = generator.normal(size=self.d) if self.d > 1 else np.ones(1)
            yield x, int(np.argmin(self.model.score_one(x)))


@pytest.mark.parametrize("rule", RULES)
def test_an_adaptive_adversary_stays_within_the_bound_too(rule):
    model = op.LinearModel(rule, classes=[0, 1, 2])
    regret = op.regret(op.prequential(model, Lowest(model, 150, 3), regret=True))
    assert regret.holds() and (regret.final > 0 or "mistakes" in regret.what)


def test_a_halved_bound_fails():
    model = op.LinearModel("sgd:loss=hinge,schedule=constant,eta=0.1", classes=[0, 1, 2], fit_intercept=False)
    regret = op.regret(op.prequential(model, Lowest(model, 300, 1), regret=True))
    assert 0.5 * regret.bound[-1] < regret.final <= regret.bound[-1]


def test_the_mistakes_of_the_perceptron_need_the_two_in_its_bound():
    """‖φ‖² = 2‖x‖²: three orthogonal examples of three classes are three mistakes, more than R²‖U‖² + R‖U‖√L."""
    rows = list(zip(np.eye(3), [0, 1, 2], strict=True))
    model = op.LinearModel("perceptron", classes=[0, 1, 2], fit_intercept=False)
    regret = op.regret(op.prequential(model, rows, regret=op.Hindsight(radius=1.5)))
    size, L = np.linalg.norm(regret.comparator.u), regret.best[-1]
    assert regret.loss[-1] == 3 and regret.holds()
    assert regret.bound[-1] == pytest.approx(2 * size**2 + size * np.sqrt(2 * L))
    assert regret.final > size**2 + size * np.sqrt(L)


def test_a_rate_that_is_larger_than_the_bound_says_breaks_it(monkeypatch):
    X, y = table("random")
    modest = class_guarantees.of(rules.SGD("logistic", "constant", 0.1), "rival")
    monkeypatch.setattr(class_guarantees, "of", lambda *_: modest)
    holds = [regret_of(rules.SGD("logistic", "constant", eta), X, y, [0, 1, 2, 3]).holds() for eta in (0.1, 5.0)]
    assert holds == [True, False]


# -- the comparator ----------------------------------------------------------------------------------------------------


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


def test_softmax_is_compared_with_what_scikit_learn_finds():
    X, y = table("random", 200)
    found = class_hindsight.best_rows(with_ones(X), y, 4, "logistic")
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    value = -np.sum(np.log(theirs.predict_proba(X)[np.arange(len(y)), y]))
    assert found.value == pytest.approx(value, rel=1e-6) and found.gap < 1e-3 and found.u.shape == (4, 4)
    assert regret_of("sgd:loss=logistic", X, y).best[-1] == pytest.approx(value, rel=1e-6)


def test_the_hinge_is_compared_with_a_linear_program_of_its_own():
    """Kesler's construction: a row for every example and rival."""
    X, y = table("random", 80)
    D, n, K = with_ones(X), 80, 4
    rows, right = [], []
    for i in range(n):
        for r in range(K):
            if r != y[i]:
                row = np.zeros(K * 4 + n)
                row[4 * r : 4 * r + 4] = D[i]
                row[4 * y[i] : 4 * y[i] + 4] = -D[i]
                row[K * 4 + i] = -1.0
                rows.append(row)
                right.append(-1.0)
    bounds = [(None, None)] * (K * 4) + [(0, None)] * n
    value = linprog(np.append(np.zeros(K * 4), np.ones(n)), A_ub=np.array(rows), b_ub=right, bounds=bounds).fun
    assert class_hindsight.best_rows(csr_matrix(D), y, K, "hinge").value == pytest.approx(value, rel=1e-9)
    regret = regret_of("perceptron", X, y)
    assert regret.best[-1] == pytest.approx(value, rel=1e-9) and regret.comparator.method == "linear program"
    smoothed = class_hindsight.solved(
        class_hindsight.ClassProblem(D, y, K, losses.Hinge(), np.ones(n)), class_hindsight.Reals(), 0.0
    )
    assert smoothed.value - smoothed.gap <= value * (1 + 1e-9) and smoothed.value == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "logistic", "squared"])
def test_a_radius_bounds_the_matrix_as_scipy_has_it(name):
    X, y = table("random", 60)
    D, K, n = with_ones(X), 4, 60
    found = class_hindsight.best_rows(D, y, K, name, L2Ball(0.8))
    assert np.linalg.norm(found.u) <= 0.8 * (1 + 1e-9)

    def total(u):
        S = D @ u.reshape(K, -1).T
        if name == "squared":
            return 0.5 * np.sum((np.where(np.arange(K) == y[:, None], 1.0, -1.0) - S) ** 2)
        if name == "logistic":
            return float(np.sum(np.log(np.exp(S).sum(axis=1)) - S[np.arange(n), y]))
        S = S - S[np.arange(n), y][:, None] + (np.arange(K) != y[:, None])
        over = np.maximum(0.0, S.max(axis=1))
        return float(np.sum(over if name == "hinge" else 0.5 * over**2))

    assert found.value == pytest.approx(total(found.u.ravel()), rel=1e-9)
    ball = {"type": "ineq", "fun": lambda u: 0.64 - u @ u, "jac": lambda u: -2 * u}
    theirs = minimize(total, found.u.ravel() * 0.5, method="SLSQP", constraints=[ball], options={"maxiter": 500})
    inside = total(L2Ball(0.8).project(theirs.x))  # SLSQP's own point is outside, by a tolerance
    assert found.value - found.gap <= inside
    assert found.gap <= 1e-5 * found.value


def test_what_there_is_no_best_of_is_said():
    X, y = table("random", 20)
    with pytest.raises(errors.ParameterError, match="ramp"):
        class_hindsight.best_rows(X, y, 4, "ramp")
    with pytest.raises(errors.ParameterError, match="L2Ball"):
        class_hindsight.best_rows(X, y, 4, "logistic", Box())
    with pytest.raises(errors.InputError, match="from 0 to 2"):
        class_hindsight.best_rows(X, y, 3, "logistic")
    with pytest.raises(errors.ParameterError, match="ramp"):
        regret_of("sgd:loss=ramp", X, y)


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["pa1", "sgd:loss=logistic", "perceptron"])
@pytest.mark.parametrize("declared", [False, True])
def test_every_way_through_a_stream_gives_the_same_regret(rule, declared):
    """One by one, in chunks, as CSR, as mappings; the labels in any order of appearance."""
    X, y = table("random", 90)
    words = np.array(["d", "a", "c", "b"])[y]
    classes = ["a", "b", "c", "d"] if declared else None
    streams = [
        list(zip(X, words.tolist(), strict=True)),
        [(X[:40], words[:40]), (X[40:], words[40:])],
        [(csr_matrix(X[:7]), words[:7]), (csr_matrix(X[7:]), words[7:])],
        [({f"f{j}": v for j, v in enumerate(x)}, w) for x, w in zip(X.tolist(), words.tolist(), strict=True)],
    ]
    runs = [op.prequential(op.LinearModel(rule, classes=classes), iter(s), regret=True) for s in streams]
    for run in runs[1:]:
        np.testing.assert_allclose(op.regret(run).loss, op.regret(runs[0]).loss, rtol=1e-9)
        assert op.regret(run).bound[-1] == pytest.approx(op.regret(runs[0]).bound[-1], rel=1e-4)


def test_the_losses_are_those_that_the_rule_suffers():
    """Scores before every update, classes only as they come: the mistakes are those of the predictions."""
    X, y = table("random")
    model = op.LinearModel("perceptron")
    wrong = 0
    for x, label in zip(X, y.tolist(), strict=True):
        scores = dict(zip(model.classes, np.atleast_1d(model.score_one(x)), strict=False))
        if len(model.classes) == 2:
            scores = dict(
                zip(model.classes, (-scores[model.classes[0]] / 2, scores[model.classes[0]] / 2), strict=True)
            )
        right = scores.get(label, 0.0)
        others = [s for other, s in scores.items() if other != label] if len(scores) > 1 else [right]
        wrong += right <= max(others) if model.classes else 1
        model.learn_one(x, label)
    assert regret_of("perceptron", X, y).loss[-1] == wrong


def test_classes_that_come_later_are_rows_of_a_matrix_from_the_first():
    """One vector w for two classes is (−w/2, w/2): its losses are those of the binary rule, and the distance from U
    that the bound reads off the scores is that of the weights."""
    X, y = table("random", 60)
    y = np.where(np.arange(60) < 30, y % 2, y)
    regret = regret_of("sgd:loss=logistic", X, y)
    U, model = regret.comparator.u, op.LinearModel("sgd:loss=logistic")
    far, binary = [np.linalg.norm(U)], []
    for x, label in zip(X, y.tolist(), strict=True):
        pair = model.classes if len(model.classes) > 1 else [y[0], 1 - y[0]]
        if len(binary) < 30:
            s = float(model.score_one(x)) if model.classes else 0.0
            binary.append(np.log1p(np.exp(-s if label == pair[1] else s)))
        model.learn_one(x, label)
        rows = np.column_stack(model.weights())
        W = np.zeros_like(U)
        known = model.classes if len(model.classes) > 1 else pair
        W[known] = rows if len(rows) > 1 else np.vstack([-rows, rows]) / 2
        far.append(np.linalg.norm(W - U))
    np.testing.assert_allclose(regret.loss[:30], np.cumsum(binary), rtol=1e-9)
    assert regret.constants["D"] == pytest.approx(max(far[:-1]), rel=1e-9)


def test_memory_counts_the_scores():
    X, y = table("random", 60)
    model = op.LinearModel("pa1", classes=[0, 1, 2, 3])
    run = op.prequential(model, list(zip(X, y.tolist(), strict=True)), regret=op.Hindsight(limit=6 * 20 + 5))
    assert len(op.regret(run)) == 20 and "first 20 rows" in op.regret(run).what


def test_rules_without_a_bound_say_why():
    X, y = table("random", 60)
    for rule, options, word in [
        ("arow", {}, "arow"),
        ("mira", {"multiclass": "mira"}, "mira"),
        ("pa1", {"multiclass": "all"}, "best rival"),
        ("pa", {}, "without any loss"),
        ("sgd:loss=hinge,l2=0.1", {}, "plain descent"),
        ("pa1", {"costs": 1 - np.eye(4), "classes": [0, 1, 2, 3]}, "cost the same"),
        ("perceptron", {"readout": "average"}, "readout"),
    ]:
        regret = regret_of(rule, X, y, **options)
        assert regret.bound is None and word in regret.reason and word in str(regret)
    assert regret_of("perceptron", X, y, multiclass="uniform").holds()
    assert (
        guarantees.of(rules.make("perceptron"), "binary").formula
        != class_guarantees.of(rules.Perceptron(), "rival").formula
    )


def test_the_command_measures_the_regret_of_several_classes(tmp_path):
    X, y = table("random", 120)
    lines = ["a,b,c,y"] + [",".join(f"{v:.4f}" for v in x) + f",k{label}" for x, label in zip(X, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    result = command("learn", "t.csv", "--label", "y", "--rule", "sgd:loss=logistic", "--regret", "--report", "r.html",
                     cwd=tmp_path)  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "softmax" in result.stdout and "‖U‖" in result.stdout
    assert "<h2>Regret</h2>" in (tmp_path / "r.html").read_text()
