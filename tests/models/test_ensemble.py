"""ExpertEnsemble: models and their weights, learned in one pass; the five promises; ``--rule auto``."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from support.command import onepass as command
from support.command import write_csv
from support.estimator_checks import assert_checks_pass

import onepass as op
from onepass import datasets, errors, experts, rules
from onepass.models import portfolio
from onepass.models.ensemble import EnsembleModel

SMALL = ["pa1:C=0.1", "pa1:C=1@average", "sgd:loss=logistic", "romma"]
NUMBERS = ["nlms:mu=0.1", "pa1:C=0.1", "sgd:loss=absolute,eta=0.1"]


def stream(task: str, n: int = 240, classes: int = 2):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(n, 4))
    s = X @ (1.0, -1.0, 0.5, 0.0) + 0.5 * generator.normal(size=n)
    if task == "regression":
        return X, 3.0 * s + 10.0
    return X, np.array(["b", "a", "c"])[np.digitize(s, [0.0] if classes == 2 else [-0.5, 0.5])]


def make(task: str, **options) -> EnsembleModel:
    return EnsembleModel(NUMBERS if task == "regression" else SMALL, task, **options)


def state(model: EnsembleModel) -> tuple:
    config, arrays = model.state()
    return config, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("kind", ["dense", "csr", "named"])
@pytest.mark.parametrize(("task", "classes"), [("auto", 2), ("auto", 3), ("regression", 2)])
def test_any_chunks_and_any_stop_give_the_same_bits(kind, task, classes, tmp_path):
    X, y = stream(task, classes=classes)
    if kind == "named":
        rows = [{f"f{j}": float(v) for j, v in enumerate(x)} for x in X]
    said, states = [], []
    for size in (240, 7, 1):
        model, parts = make(task), []
        for start in range(0, 240, size):
            stop = start + size
            part = rows[start:stop] if kind == "named" else X[start:stop]
            part = csr_matrix(part) if kind == "csr" else part
            if size == 1 and kind != "csr":
                parts.append(model.predict_one(part[0]))
                model.learn_one(part[0], y[start].item())
            else:
                parts += list(model.predict_then_learn(part, y[start:stop]))
            if start // size == 20:
                model.save(tmp_path / "m")
                model = EnsembleModel.load(tmp_path / "m")
        said.append(parts)
        states.append(state(model))
    assert states[0] == states[1] == states[2]
    assert list(said[0]) == list(said[1]) == [None if v is None else v for v in said[2]]


def test_the_weights_are_fixed_share():
    """Beside `experts.FixedShare`, fed with the members' mistakes one by one."""
    X, y = stream("auto")
    model = EnsembleModel(SMALL, classes=["a", "b"], alpha=0.01, eta=0.3)
    members = [op.LinearModel(r, classes=["a", "b"], readout=w) for r, w in map(portfolio.read, SMALL)]
    share = experts.FixedShare(4, eta=0.3, alpha=0.01)
    for x, label in zip(X, y.tolist(), strict=True):
        votes = [m.predict_one(x) for m in members]
        mass = {c: sum(w for w, v in zip(share.weights, votes, strict=True) if v == c) for c in ("a", "b")}
        assert model.predict_one(x) == ("b" if mass["b"] > mass["a"] else "a")
        share.learn([float(v != label) for v in votes])
        for m in members:
            m.learn_one(x, label)
        model.learn_one(x, label)
        np.testing.assert_allclose(model.member_weights, share.weights, rtol=1e-9)
    np.testing.assert_allclose(model.losses, share.losses)


def test_the_weights_are_fixed_share_of_numbers():
    X, y = stream("regression")
    model = make("regression")
    said = model.predict_then_learn(X, y)
    late = np.abs(said - y)[120:].mean()
    alone = [np.abs(op.LinearModel(r, "regression").predict_then_learn(X, y) - y)[120:].mean() for r in NUMBERS]
    assert late < 1.1 * min(alone)
    assert model.range.tolist() == [y.min(), y.max()] and model.member_weights.sum() == pytest.approx(1)


@pytest.mark.data
@pytest.mark.parametrize("name", ["sea", "elec2", "phoneme"])
def test_close_to_the_best_member_on_real_streams(name):
    """Without knowing which of the portfolio that is: at most 3% more errors than the best in hindsight."""
    data = datasets.load(name)
    errs_little_more_than_the_best_member(data.shuffled(0) if name == "phoneme" else data)


@pytest.mark.parametrize("stream", [
    datasets.SEA(5000, seed=1),
    datasets.SEA(5000, seed=2, noise=0.1),
    datasets.RotatingHyperplane(5000, d=5, seed=1),
    datasets.Agrawal(5000, seed=1),
    datasets.LED(5000, seed=1),
    datasets.Switch(datasets.SEA(5000, thresholds=(8,)), datasets.SEA(5000, thresholds=(9.5,)), width=200),
], ids=["SEA", "noise", "hyperplane", "Agrawal", "LED", "switch"])  # fmt: skip
def test_close_to_the_best_member_on_generated_streams(stream):
    errs_little_more_than_the_best_member(stream)


def errs_little_more_than_the_best_member(stream):
    X, y = next(iter(stream.chunks(5000)))
    model = EnsembleModel()
    wrong = np.sum(np.asarray(model.predict_then_learn(X, y)) != np.asarray(y))
    bound = experts.FixedShare(len(model.members), eta=0.1, alpha=0.001).bound(len(y), 0)
    assert model.losses.min() <= wrong <= 1.03 * model.losses.min() + 5 or wrong < model.losses.min()
    assert wrong <= 2 * (model.losses.min() + bound)


@pytest.mark.parametrize("task", ["auto", "regression"])
def test_the_portfolio_takes_columns_as_they_come(task):
    """Columns from hundredths to thousands, as tables have them: rules that do not scale them err ten times as much."""
    generator = np.random.default_rng(0)
    scale = 10.0 ** generator.integers(-2, 4, size=12)
    X = generator.normal(size=(3000, 12)) * scale
    s = X @ (generator.normal(size=12) / scale)
    y = s + 20.0 if task == "regression" else (s > 0).astype(int)
    model = EnsembleModel(task=task, classes=None if task == "regression" else [0, 1])
    wrong = np.abs(model.predict_then_learn(X, y) - y)
    assert np.mean(wrong[1000:]) < (1.0 if task == "regression" else 0.05)


def test_a_member_that_overflows_is_retired_and_the_others_go_on():
    X = np.array([[1.0, 2.0], [-1.0, 0.5]] * 30)
    y = np.array([1e150, -1e150] * 30)
    wild = "sgd:loss=squared,schedule=constant,eta=1000"
    model = EnsembleModel(["nlms:mu=0.1", wild], "regression")
    model.learn_many(X, y)
    assert model.alive.tolist() == [True, False] and model.member_weights.tolist() == [1.0, 0.0] and model.t == 60
    one, said = EnsembleModel(["nlms:mu=0.1", wild], "regression"), []
    for x, target in zip(X, y, strict=True):
        said.append(one.predict_one(x))
        one.learn_one(x, target)
    assert state(one) == state(model)
    again = EnsembleModel(["nlms:mu=0.1", wild], "regression")
    assert again.predict_then_learn(X, y).tolist() == said  # before the retirement too
    before = state(model)
    with pytest.raises(errors.NumericalError) as refused:
        model.learn_many(np.array([[1e200, 1e200]]), np.array([1.0]))
    assert refused.value.row == 0 and state(model)[1]["weights"] == before[1]["weights"] and model.t == 60


@pytest.mark.parametrize("bad", [
    lambda m, X, y: m.learn_many(np.where(X == X[3, 1], np.nan, X), y),
    lambda m, X, y: m.learn_many(X, y[:-1]),
    lambda m, X, y: m.learn_many(X[:, :2], y),
    lambda m, X, y: m.learn_many(X[:0], y[:0]),
    lambda m, X, y: m.learn_many(X, y, np.full(len(y), -1.0)),
    lambda m, X, y: m.learn_one([1.0, float("inf"), 0.0, 0.0], "a"),
    lambda m, X, y: m.learn_one("nonsense", "a"),
    lambda m, X, y: m.learn_many(X, [None] * len(y)),
    lambda m, X, y: m.learn_one({"x": 1.0}, "a"),
])  # fmt: skip
def test_malformed_input_changes_nothing(bad):
    X, y = stream("auto")
    model = make("auto")
    model.learn_many(X, y)
    before = state(model)
    with pytest.raises((errors.InputError, errors.ParameterError)):
        bad(model, X, y)
    assert state(model) == before


@pytest.mark.parametrize("options", [
    {"members": []}, {"members": [3]}, {"members": ["nothing"]}, {"alpha": 1.0}, {"eta": 0}, {"task": "ranking"},
    {"members": [op.LinearModel("pa1", "regression")]}, {"members": [op.KernelModel("pa1")]},
])  # fmt: skip
def test_wrong_parameters_are_refused(options):
    with pytest.raises(errors.ParameterError):
        EnsembleModel(**options)


def test_damaged_and_foreign_files_never_load(tmp_path):
    X, y = stream("auto", 40)
    estimator = op.ExpertEnsemble(SMALL[:2]).fit(X, y)
    estimator.save(tmp_path / "m")
    data = (tmp_path / "m").read_bytes()
    for at in range(0, len(data), max(1, len(data) // 300)):
        (tmp_path / "bad").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(errors.ModelFileError):
            op.load(tmp_path / "bad")
    op.LinearModel("pa1", classes=[0, 1]).save(tmp_path / "linear")
    with pytest.raises(errors.ParameterError, match="holds a LinearModel; expected EnsembleModel"):
        EnsembleModel.load(tmp_path / "linear")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("task", ["auto", "regression"])
def test_scikit_learns_checks(task):
    estimator = op.ExpertEnsemble(NUMBERS if task == "regression" else SMALL, task=task)
    assert_checks_pass(estimator)


def test_the_estimator_saves_itself_and_what_it_learned(tmp_path):
    X, y = stream("auto")
    made = op.ExpertEnsemble([rules.PA1(C=0.5), "romma", op.LinearClassifier("pa2", readout="average")], alpha=0.01)
    made.partial_fit(X[:100], y[:100], classes=["a", "b"])
    made.save(tmp_path / "m")
    again = op.load(tmp_path / "m")
    assert again.alpha == 0.01 and repr(again.members[0]) == "PA1(C=0.5)"
    for estimator in (made, again):
        estimator.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(made.member_weights_, again.member_weights_)
    np.testing.assert_array_equal(made.predict(X), again.predict(X))
    assert clone(made).fit(X, y).score(X, y) > 0.85
    assert made.standing_[0][1] == made.member_weights_.max() and made.best_ in made.members_
    assert set(made.weights_) and made.explain_one(X[0])
    run = op.prequential(op.ExpertEnsemble(), datasets.SEA(1500, seed=1), ["error", "auc"])
    assert run.values["error"] < 0.25 and run.values["auc"] > 0.7
    names = op.ExpertEnsemble(SMALL)
    names.learn_one({"a": 1.0, "b": 2.0}, "x"), names.learn_one({"a": -1.0}, "y")
    assert names.predict_one({"a": 2.0}) == "x" and sorted(names.classes_.tolist()) == ["x", "y"]


def test_rule_auto_of_the_command(tmp_path):
    write_csv(tmp_path / "mail.csv", 300)
    auto = ("learn", "mail.csv", "--label", "spam", "--rule", "auto", "--save")
    result = command(*auto, "m", cwd=tmp_path)
    assert result.returncode == 0 and "Experts(" in result.stdout, result.stderr
    assert command(*auto, "n", "--checkpoint-every", "100", "--quiet", cwd=tmp_path).returncode == 0
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()
    assert command("inspect", "m", cwd=tmp_path).stdout.count("%") == len(portfolio.CLASSIFIERS)
    assert command("predict", "m", "mail.csv", "-o", "p", cwd=tmp_path).returncode == 0
    assert isinstance(op.load(tmp_path / "m"), op.ExpertEnsemble)
    compared = command("compare", "mail.csv", "--label", "spam", "--rules", "auto,pa1", cwd=tmp_path)
    assert compared.returncode == 0 and "auto" in compared.stdout
    for option in (["--l2", "0.1"], ["--regret"]):
        refused = command(*auto, "m", *option, cwd=tmp_path)
        assert refused.returncode == 2 and option[0] in refused.stderr and "0x" not in refused.stderr


def test_models_say_what_they_are():
    assert repr(EnsembleModel(SMALL)) == (
        "EnsembleModel([PA1(C=0.1), PA1(C=1)@Average(), SGD(loss='logistic'), … 4 members], task='auto')"
    )
    assert repr(op.LinearModel("pa1", "regression")) == "LinearModel(PA1(), task='regression')"
    assert repr(op.KernelModel("pa1", kernel="linear", budget="oldest:B=3")) == (
        "KernelModel(PA1(), task='auto', kernel=Linear(), budget=Oldest(B=3))"
    )


@pytest.mark.parametrize("task", ["auto", "regression"])
def test_every_member_of_the_portfolio_is_known(task):
    names = portfolio.REGRESSORS if task == "regression" else portfolio.CLASSIFIERS
    assert len(set(names)) == len(names)
    for name in names:
        rule, readout = portfolio.read(name)
        op.LinearModel(rule, task, readout=readout)
