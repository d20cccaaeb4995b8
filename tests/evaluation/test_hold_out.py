"""Held-out examples are predicted in their place and leave no trace: in models, in `prequential` and in the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import onepass

import onepass as op
from onepass.errors import InputError, NumericalError
from onepass.models.linear import LinearModel
from onepass.persistence import store

N, NTH = 400, 7
RULES = ["pa1", "sgd:eta=0.5", "arow", "vw", "adagrad:loss=logistic", "fobos:lam1=0.01", "scw1:covariance=full", "adam"]
generator = np.random.default_rng(3)
X = generator.normal(size=(N, 5))
TWO = np.where(X @ [1.0, -2.0, 0.5, 0.0, 1.0] > 0, "yes", "no")
FOUR = np.array(["a", "b", "c", "d"])[np.abs(X[:, :4]).argmax(axis=1)]
NUMBERS = X @ [1.0, -2.0, 0.5, 0.0, 1.0]
HELD = np.arange(1, N + 1) % NTH == 0


def bits(model: Any) -> bytes:
    config, arrays = model.state()
    return store.to_bytes("LinearModel", config, arrays)


def alone(model: Any, rows: Any, y: Any, one: Callable[[int], Any]) -> tuple[list[Any], list[Any]]:
    """One by one: scores of all examples, and the model learns those that are not held out."""
    scores, predictions = [], []
    for i in range(N):
        scores.append(np.atleast_1d(model.score_one(one(i))).tolist())
        predictions.append(model.predict_one(one(i)))
        if not HELD[i]:
            model.learn_one(one(i), y[i].item())
    return scores, predictions


@pytest.mark.parametrize("size", [1, 33, N])
@pytest.mark.parametrize(
    ("rule", "y"),
    [
        pytest.param(rule, y, id=f"{rule}-{name}")
        for rule in RULES
        for name, y in {"two": TWO, "four": FOUR, "numbers": NUMBERS}.items()
        if name != "numbers" or "regression" in op.rules.make(rule).traits.tasks
    ],
)
def test_a_table(rule: str, y: Any, size: int) -> None:
    task = "regression" if y is NUMBERS else "auto"
    expected, model = LinearModel(rule, task), LinearModel(rule, task)
    scores, predictions = alone(expected, X, y, lambda i: X[i])
    found: list[Any] = []
    for at in range(0, N, size):
        here = slice(at, at + size)
        for _, part in model.score_then_learn(X[here], y[here], held=HELD[here]):
            found += part.tolist()
    assert found == scores and bits(model) == bits(expected) and model.t == N - HELD.sum()
    again = LinearModel(rule, task)
    assert list(again.predict_then_learn(X, y, held=HELD)) == predictions and bits(again) == bits(expected)


def write_vw(path: Path) -> None:
    """New names and labels come all along, some with examples that are held out."""
    lines = []
    for i in range(N):
        label = 1 + int(generator.integers(0, 2 + i // 150))
        names = " ".join(f"w{int(j)}:{v:.3f}" for j, v in zip(generator.integers(0, 5 + i // 4, 6), X[i], strict=False))
        lines.append(f"{label} {1 + i % 3} |f {names} only{i % 50}\n")
    path.write_text("".join(lines))


@pytest.mark.parametrize("bits_of_hashes", [None, 8])
@pytest.mark.parametrize("rule", ["pa1", "sgd", "arow", "perceptron@average"])
def test_names_and_classes_of_a_stream(rule: str, bits_of_hashes: int | None, tmp_path: Path) -> None:
    write_vw(tmp_path / "a.vw")
    rule, _, readout = rule.partition("@")

    def new() -> LinearModel:
        return LinearModel(rule, readout=readout or "last", hash_bits=bits_of_hashes)

    [whole] = list(op.stream(tmp_path / "a.vw", hash_bits=bits_of_hashes).batches(N))
    expected, scores = new(), []
    for i in range(N):
        row = whole.X[i : i + 1]
        if HELD[i]:
            scores.append(expected.score_many(row)[0].tolist())
        else:
            scores.append(expected.score_then_learn(row, whole.y[i : i + 1], whole.weight[i : i + 1])[0][1][0].tolist())
    for size in (1, 50, N):
        model, found, at = new(), [], 0
        for chunk in op.stream(tmp_path / "a.vw", hash_bits=bits_of_hashes).batches(size):
            held = HELD[at : at + len(chunk)]
            for _, part in model.score_then_learn(chunk.X, chunk.y, chunk.weight, held=held):
                found += part.tolist()
            at += len(chunk)
        assert found == scores and bits(model) == bits(expected)


@pytest.mark.parametrize("index", [0, 1])
def test_columns_of_svmlight(index: int, tmp_path: Path) -> None:
    rows = [f"{1 + i % 2} " + " ".join(f"{1 + j + i // 20}:{v:.2f}" for j, v in enumerate(X[i])) for i in range(N)]
    (tmp_path / "a.svm").write_text("\n".join(rows) + "\n")
    expected, model = LinearModel("sgd"), LinearModel("sgd")
    for number, chunk in enumerate(op.stream(tmp_path / "a.svm").batches(1)):
        if not HELD[number]:
            expected.learn_many(chunk.X, chunk.y)
    at = 0
    for chunk in op.stream(tmp_path / "a.svm").batches(120):
        model.predict_then_learn(chunk.X, chunk.y, held=HELD[at : at + len(chunk)])
        at += len(chunk)
    assert bits(model) == bits(expected) and model.n_features == expected.n_features


def test_other_learners_predict_between_calls() -> None:
    sets = [[label] for label in FOUR.tolist()]
    kernel = lambda: op.KernelModel("pa1", kernel="rbf:gamma=0.5", budget="oldest:B=20")  # noqa: E731
    for new, rows, y in (
        (kernel, X, TWO),
        (lambda: LinearModel("pa1", "oneclass"), X, NUMBERS),
        (lambda: LinearModel("pa1"), [dict(enumerate(row)) for row in X.tolist()], TWO),
        (lambda: LinearModel("pa1", "multilabel", classes=["a", "b", "c", "d"]), X, sets),
    ):
        expected, model = new(), new()
        said = [None] * N
        for i in range(N):
            said[i] = expected.predict_one(rows[i])
            if not HELD[i]:
                expected.learn_one(rows[i], None if y is NUMBERS else y[i])
        found = model.predict_then_learn(rows, y, held=HELD)
        assert list(found) == said or y is NUMBERS or y is sets
        assert model.t == N - HELD.sum() == expected.t
        assert (
            model.score_many(X if not isinstance(rows, list) else rows).tolist() == expected.score_many(rows).tolist()
        )


def test_refusals_leave_what_came_before() -> None:
    for bad in (7 * 9 - 1, 7 * 9):  # a held-out row, and one that is learned
        rows = X.copy()
        rows[bad, 2] = np.nan
        for model in (LinearModel("pa1"), op.KernelModel("pa1")):
            for held in (HELD, ~HELD):
                with pytest.raises(InputError, match=rf"X\[{bad}, 2\] is NaN"):
                    model.predict_then_learn(rows, TWO, held=held)
                assert model.t == 0
    model = LinearModel("sgd:loss=squared,eta=1e200", "regression")
    rows = X.copy()
    rows[100] = 1e200
    with pytest.raises(NumericalError) as caught:
        model.predict_then_learn(rows, NUMBERS, held=HELD)
    assert caught.value.row <= 100 and model.t == caught.value.row - HELD[: caught.value.row].sum()
    with pytest.raises(InputError, match="held must hold one True or False per row"):
        model.predict_then_learn(X, NUMBERS, held=[True])


def test_an_importance_of_minus_zero_is_zero() -> None:
    zero, minus = LinearModel("sgd"), LinearModel("sgd")
    zero.learn_many(X, TWO, np.zeros(N))
    minus.learn_many(X, TWO, np.full(N, -0.0))
    assert bits(zero) == bits(minus) and zero.t == N
    minus.learn_one(X[0], "yes", -0.0)
    assert minus.t == N + 1


STREAMS: dict[str, Callable[[], Any]] = {
    "table": lambda: [(X, TWO)],
    "pairs": lambda: zip(X, TWO.tolist(), strict=True),
    "mappings": lambda: zip(({str(j): v for j, v in enumerate(row)} for row in X.tolist()), TWO.tolist(), strict=True),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("metrics", [["error"], ["error", "auc"]])
def test_prequential_gives_one_answer_for_any_stream(name: str, metrics: list[str]) -> None:
    model, expected = op.LinearClassifier("sgd"), op.LinearClassifier("sgd")
    run = op.prequential(model, STREAMS[name](), metrics, every=60, holdout=NTH)
    for i in range(N):
        if not HELD[i]:
            expected.learn_one(X[i], TWO[i].item())
    assert model.t_ == expected.t_ and run.examples == N - HELD.sum()
    if name != "mappings":
        assert bits(model._model) == bits(expected._model)
    first = op.prequential(op.LinearClassifier("sgd"), STREAMS["table"](), metrics, every=60, holdout=NTH)
    assert run.holdout == first.holdout and run.curves == first.curves and run.t == first.t
    assert run.holdout["t"] == run.t


def test_the_last_report_has_all_held_out() -> None:
    """The stream ends with a held-out example, behind the last report."""
    rows = [(X[i], TWO[i]) for i in range(8)]
    run = op.prequential(LinearModel("pa1"), rows, "error", every=3, holdout=4)
    model, wrong = LinearModel("pa1"), 0
    for i, (x, y) in enumerate(rows, start=1):
        if i % 4 == 0:
            wrong += model.predict_one(x) != y
        else:
            model.learn_one(x, y)
    assert run.t == [3, 6] and run.holdout["t"] == [6] and run.holdout["error"][-1] == wrong / 2


def test_drift_and_regret_see_what_is_learned() -> None:
    streams = {"table": [(X, TWO)], "pairs": list(zip(X, TWO.tolist(), strict=True))}
    runs = [
        op.prequential(LinearModel("pa1:C=0.1"), stream, "error", holdout=NTH, regret=True, drift="ddm")
        for stream in streams.values()
    ]
    plain = op.prequential(LinearModel("pa1:C=0.1"), [(X[~HELD], TWO[~HELD])], "error", regret=True, drift="ddm")
    for run in runs:
        assert run.marks == plain.marks and run.regret.to_dict() == plain.regret.to_dict()


@pytest.mark.parametrize("rule", ["sgd", "vw", "auto"])
def test_the_command_does_the_same(rule: str, tmp_path: Path) -> None:
    write_vw(tmp_path / "a.vw")
    lines = (tmp_path / "a.vw").read_text().splitlines(keepends=True)
    (tmp_path / "learned.vw").write_text("".join(line for line, held in zip(lines, HELD, strict=True) if not held))
    common = ["--rule", rule, "--task", "multiclass", "--quiet"]
    for name, more in (("a", ["--holdout", NTH, "--json", "a.json", "--every", 50]), ("learned", [])):
        result = onepass("learn", f"{name}.vw", *common, *more, "--save", name, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    one, other = (op.load(tmp_path / name) for name in ("a", "learned"))
    models = [getattr(each, "_model", each) for each in (one, other)]
    for model in models:
        model.extra, model.extra_arrays = {}, {}
    assert bits(models[0]) == bits(models[1])
    if rule == "auto":
        return
    run = json.loads((tmp_path / "a.json").read_text())
    model = LinearModel(rule, "multiclass")
    library = op.prequential(model, op.stream(tmp_path / "a.vw"), "error", every=50, holdout=NTH)
    assert run["holdout"] == library.holdout and run["t"] == library.t == run["holdout"]["t"]
