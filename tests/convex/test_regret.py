"""Regret of runs: measured against exact comparators, within the bounds of the rules, bounded in memory, shown
everywhere.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from support.command import onepass as command
from support.command import write_csv

import onepass as op
from onepass import convex, datasets, errors, rules
from onepass.convex.regret import curves, guarantees, hindsight

RULES = [
    "perceptron",
    "pa1:C=0.1",
    "pa2:C=0.1",
    "sgd:loss=hinge",
    "sgd:loss=logistic",
    "sgd:loss=squared_hinge,eta=0.01",
    "sgd:loss=squared,schedule=constant,eta=0.005",
    "sgd:loss=logistic,schedule=constant,eta=0.05",
    "adaline:rho=0.005",
    "adagrad:loss=logistic,eta=0.5",
    "adagrad:loss=hinge,eta=0.1",
    "arow:covariance=full",
    "arow:covariance=full,lam=0.1",
    "rls",
    "rls:lam=0.1,forecast=vaw",
]


def examples(kind: str, n: int = 250) -> list[tuple[np.ndarray, int]]:
    generator = np.random.default_rng(3)
    X = generator.normal(size=(n, 4))
    if kind == "real":
        X, y = next(iter(datasets.load("phoneme").shuffled(1).chunks(n)))
        return list(zip(np.asarray(X, dtype=float), np.asarray(y).tolist(), strict=True))
    noise = {"random": 1.0, "separable": 0.0, "bursts": 0.0}[kind]
    y = X @ (1.0, -2.0, 0.5, 0.0) + 0.2 + noise * generator.normal(size=n) > 0
    if kind == "separable":
        X[:, 0] += np.where(y, 1.0, -1.0)
        y = X[:, 0] + X @ (0, -2.0, 0.5, 0) > 0
    if kind == "bursts":
        y ^= np.arange(n) % 50 < 10
    return list(zip(X, y.astype(int).tolist(), strict=True))


@pytest.mark.parametrize("stream", ["random", "bursts", pytest.param("real", marks=pytest.mark.data), "separable"])
def test_regret_is_within_the_bound_of_the_rule(stream):
    rows = examples(stream)
    for rule in RULES:
        run = op.prequential(op.LinearClassifier(rule), iter(rows), regret=True)
        regret = op.regret(run)
        assert regret.bound is not None and regret.holds(), (rule, stream)
        assert len(regret) == len(rows) == run.examples
        assert np.isfinite(regret.bound).all() and regret.comparator.gap <= 1e-3 * max(1.0, regret.comparator.value)
        np.testing.assert_allclose(np.cumsum(regret.per_round), regret.regret)
        np.testing.assert_allclose(regret.average * regret.t, regret.regret)


class Opposite:
    """An adversary: examples whose label the model gets wrong."""

    def __init__(self, model, n):
        self.model, self.n = model, n

    def __iter__(self):
        generator = np.random.default_rng(5)
        for _ in range(self.n):
            x = generator.normal(size=3)
            yield x, 0 if (self.model.predict_one(x) or 0) == 1 else 1


@pytest.mark.parametrize("rule", RULES[:6])
def test_an_adaptive_adversary_stays_within_the_bound_too(rule):
    model = op.LinearModel(rule, classes=[0, 1])
    regret = op.regret(op.prequential(model, Opposite(model, 200), regret=True))
    assert regret.holds() and (regret.final > 0 or "mistakes" in regret.what)


def test_a_halved_bound_fails():
    """The measured regret of constant-step descent exceeds half of its bound."""
    model = op.LinearModel("sgd:loss=absolute,schedule=constant,eta=0.1", "regression", fit_intercept=False)
    rows = [(np.array([1.0]), 1.0 if i % 2 else -1.0) for i in range(400)]
    regret = op.regret(op.prequential(model, rows, regret=True))
    assert 0.5 * regret.bound[-1] < regret.final <= regret.bound[-1]


@pytest.mark.parametrize(
    "rule", ["rls:lam=0.5", "rls:forecast=vaw", "arow:covariance=full,sigma0=2", "adagrad:loss=squared"]
)
def test_second_order_rules_on_numbers_are_within_their_bounds(rule):
    generator = np.random.default_rng(4)
    X = generator.normal(size=(200, 4))
    y = X @ (1.0, -2.0, 0.5, 0.0) + generator.normal(size=200)
    regret = op.regret(op.prequential(op.LinearRegressor(rule), zip(X, y.tolist(), strict=True), regret=True))
    assert regret.bound is not None and regret.holds() and 0 < regret.final


def test_the_identity_behind_the_bound_of_rls():
    """Σ e²/(1 + v) is the least of Σ(y − u·x)² + δ‖u‖²: the excess is Σ e²v/(1 + v), which E² ln det bounds."""
    generator = np.random.default_rng(6)
    X, y, ridge = generator.normal(size=(60, 3)), generator.normal(size=60), 0.7
    model = op.LinearModel(f"rls:lam={ridge}", "regression", fit_intercept=False)
    total, gamma = 0.0, np.eye(3) / ridge
    for x, answer in zip(X, y.tolist(), strict=True):
        z = gamma @ x
        total += (answer - model.predict_one(x)) ** 2 / (1.0 + x @ z)
        gamma -= np.outer(z, z) / (1.0 + x @ z)
        model.learn_one(x, answer)
    u = np.linalg.solve(X.T @ X + ridge * np.eye(3), X.T @ y)
    assert total == pytest.approx(np.sum((y - X @ u) ** 2) + ridge * u @ u, rel=1e-10)


def test_a_step_that_is_larger_than_the_bound_says_breaks_it(monkeypatch):
    """Descent with η = 5, judged by the bound of η = 0.1."""
    rows, modest = examples("random"), guarantees.of(rules.SGD("hinge", "constant", 0.1), "binary")
    monkeypatch.setattr(guarantees, "of", lambda rule, task: modest)
    holds = [
        op.regret(op.prequential(op.LinearModel(rules.SGD("hinge", "constant", eta)), iter(rows), regret=True)).holds()
        for eta in (0.1, 5.0)
    ]
    assert holds == [True, False]


def test_the_comparator_of_the_hinge_is_the_linear_program():
    rows = examples("random", 150)
    run = op.prequential(op.LinearClassifier("perceptron"), iter(rows), regret=True)
    X = np.array([np.append(x, 1.0) for x, _ in rows])
    y = np.array([1.0 if label else -1.0 for _, label in rows])
    n = len(y)
    found = linprog(
        np.append(np.zeros(5), np.ones(n)),
        A_ub=np.hstack([-y[:, None] * X, -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * 5 + [(0, None)] * n,
    )
    assert op.regret(run).best[-1] == pytest.approx(found.fun, rel=1e-9)
    mistakes = sum(m <= 0 for m in _margins(rows))
    assert op.regret(run).loss[-1] == mistakes


def _margins(rows):
    model = op.LinearModel("perceptron", classes=[0, 1])
    for x, label in rows:
        yield (1 if label else -1) * model.score_one(x)
        model.learn_one(x, label)


def test_squared_loss_is_compared_with_least_squares():
    generator = np.random.default_rng(6)
    X = generator.normal(size=(120, 3))
    y = X @ (1.0, 2.0, -1.0) + generator.normal(size=120)
    run = op.prequential(op.LinearRegressor("adaline:rho=0.01"), zip(X, y, strict=True), regret=True)
    u = np.linalg.lstsq(np.column_stack([X, np.ones(120)]), y, rcond=None)[0]
    theirs = 0.5 * np.sum((y - np.column_stack([X, np.ones(120)]) @ u) ** 2)
    assert op.regret(run).best[-1] == pytest.approx(theirs, rel=1e-9) and op.regret(run).holds()


@pytest.mark.parametrize("rule", ["pa1", "sgd:loss=logistic", "perceptron"])
def test_every_way_through_a_stream_gives_the_same_regret(rule):
    """One by one, in chunks, as CSR, as mappings; with labels that are known from the start, or not."""
    rows = examples("random", 200)
    X, y = np.array([x for x, _ in rows]), np.array([label for _, label in rows])
    words = np.array(["no", "yes"])[y]
    named = [({f"f{j}": v for j, v in enumerate(x)}, w) for x, w in zip(X.tolist(), words.tolist(), strict=True)]
    streams = [
        rows,
        [(X[:70], y[:70]), (X[70:], y[70:])],
        [(csr_matrix(X[:70]), y[:70]), (csr_matrix(X[70:]), y[70:])],
        [(X[i : i + 1], words[i : i + 1]) for i in range(200)],
        named,
        [(x, 1 - label) for x, label in rows],  # whose first label may be the larger one
    ]
    finals = [op.regret(op.prequential(op.LinearModel(rule), iter(s), regret=True)) for s in streams]
    for other in finals[1:]:
        assert other.final == pytest.approx(finals[0].final, rel=1e-6)
        assert other.bound[-1] == pytest.approx(finals[0].bound[-1], rel=1e-4)


def test_memory_is_bounded_and_said():
    rows = examples("random", 300)
    run = op.prequential(op.LinearClassifier("pa1"), iter(rows), regret=op.Hindsight(limit=4 * 120 + 3))
    regret = op.regret(run)
    assert len(regret) == 120 and "first 120 rows" in regret.what and run.examples == 300
    whole = op.regret(op.prequential(op.LinearClassifier("pa1"), iter(rows[:120]), regret=True))
    np.testing.assert_array_equal(regret.regret, whole.regret)
    chunked = [(np.array([x for x, _ in rows]), np.array([label for _, label in rows]))]
    again = op.regret(op.prequential(op.LinearClassifier("pa1"), chunked, regret=op.Hindsight(limit=4 * 120 + 3)))
    assert len(again) == 120 and again.final == pytest.approx(whole.final)


def test_a_radius_bounds_the_comparator():
    run = op.prequential(op.LinearClassifier("pa1"), iter(examples("random")), regret=op.Hindsight(radius=0.5))
    comparator = op.regret(run).comparator
    assert np.linalg.norm(comparator.u) <= 0.5 * (1 + 1e-9) and "L2Ball" in comparator.set


def test_large_problems_have_a_ridge_and_a_gap(monkeypatch):
    monkeypatch.setattr(hindsight, "EXACT_ROWS", 10)
    regret = op.regret(op.prequential(op.LinearClassifier("pa1"), iter(examples("random")), regret=True))
    c = regret.comparator
    assert 0 < c.gap < 0.02 * c.value and "its length" in c.method and regret.holds()


def test_runs_carry_their_regret_through_files_and_reports(tmp_path):
    run = op.prequential(op.LinearClassifier("sgd:loss=logistic"), iter(examples("random")), regret=True)
    again = op.Run.from_json(run.to_json())
    assert op.regret(again).final == pytest.approx(op.regret(run).final)
    assert op.regret(again).holds() and op.regret(again).rows() == op.regret(run).rows()
    run.to_html(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "<h2>Regret</h2>" in text and "best in Reals()" in text and "bound" in text
    assert op.regret(run).svg().count("<path") >= 2
    with pytest.raises(errors.InputError, match="regret=True"):
        op.regret(op.prequential(op.LinearClassifier(), iter(examples("random", 20))))


@pytest.mark.parametrize(("model", "options", "word"), [
    (op.LinearClassifier(), {"regret": 3}, "regret=3"),
    (op.LinearClassifier(), {"delay": 5}, "delay"),
    (op.KernelClassifier(), {}, "linear model"),
    (op.ExpertEnsemble(), {}, "linear model"),
    (op.LinearClassifier("alma:p=4"), {}, "linear model"),
    (op.LinearClassifier(class_weight={0: 2.0, 1: 1.0}), {}, "class_weight"),
    (op.MultilabelClassifier(), {}, "classes or numbers"),
])  # fmt: skip
def test_what_regret_cannot_look_back_on_is_refused_before_anything_is_learned(model, options, word):
    with pytest.raises(errors.ParameterError, match=word):
        op.prequential(model, iter(examples("random", 5)), **{"regret": True, **options})


def test_rules_without_a_bound_say_why():
    for rule, word in (("romma", "romma"), ("pa", "without any loss"), ("sgd:loss=hinge,l2=0.1", "plain descent")):
        regret = op.regret(op.prequential(op.LinearClassifier(rule), iter(examples("random", 100)), regret=True))
        assert regret.bound is None and word in regret.reason and word in str(regret)
        with pytest.raises(errors.ParameterError, match="no bound"):
            regret.holds()
    average = op.prequential(op.LinearClassifier("pa1", readout="average"), iter(examples("random", 100)), regret=True)
    assert "readout" in op.regret(average).reason
    assert guarantees.of(rules.make("sgd:loss=ramp"), "binary").bound is None


def test_regret_of_games_and_of_nothing():
    game = convex.play(convex.FTRL(2, convex.L2Ball()), convex.Outward(2), 50)
    assert isinstance(op.regret(game), curves.Regret) and op.regret(game).final == game.regret().final
    with pytest.raises(errors.ParameterError, match="expected a Run"):
        op.regret(3)


def test_the_command_measures_regret(tmp_path):
    write_csv(tmp_path / "mail.csv", 300)
    result = command(
        "learn", "mail.csv", "--label", "spam", "--regret", "--report", "r.html", "--save", "m", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "regret" in result.stdout and "bound" in result.stdout and "‖u‖" in result.stdout
    assert "<h2>Regret</h2>" in (tmp_path / "r.html").read_text()
    for more in (["--follow"], ["--holdout", "5"], ["--resume", "m"]):
        refused = command("learn", "mail.csv", "--label", "spam", "--regret", *more, cwd=tmp_path)
        assert refused.returncode == 2 and "--regret" in refused.stderr


def test_averaged_iterates_are_better_on_average():
    """Online-to-batch (spec 03 §8): the excess risk of the averaged point falls with T, in the mean over seeds."""
    risks = {}
    for rounds in (100, 400):
        risk = []
        for seed in range(12):
            generator = np.random.default_rng(seed)
            X = generator.normal(size=(rounds, 3))
            y = X @ (0.5, -0.3, 0.2) + generator.normal(size=rounds)
            game = convex.play(
                convex.OGD(3, convex.L2Ball(), eta="theory"), convex.Examples(zip(X, y, strict=True), "squared"), rounds
            )
            average = game.points.mean(axis=0)
            risk.append(0.5 * float(np.sum((average - (0.5, -0.3, 0.2)) ** 2)))
        risks[rounds] = np.mean(risk)
    assert risks[400] < risks[100] < math.inf
