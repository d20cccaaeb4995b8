"""Initial predictions (VW's base) through all of the library: every rule, every way in, and where there is no place."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import grid
from support.command import onepass
from support.grid import RULES, saved

import onepass as op
from onepass import LinearModel, reductions, transforms
from onepass.errors import InputError, LineError, NumericalError
from onepass.models.reference import ReferenceLearner

ONE_ROW = [(name, task) for name, (_, tasks) in RULES.items() for task in tasks if task != "multiclass"]


def bases(n: int, seed: int = 0) -> np.ndarray:
    """A third of them 0."""
    rng = np.random.default_rng([seed, n])
    return np.round(rng.normal(size=n), 3) * (rng.random(n) > 1 / 3)


# -- every rule -------------------------------------------------------------------------------------------------------


BEGINNING = [
    (name, task, readout, turn)
    for name, task in ONE_ROW
    for readout in ("last", "average", "pocket", "voted")
    for turn in range(1 if name in grid.READS_WW else 2)
    if grid.tried(name, readout)
]


@pytest.mark.full
@pytest.mark.parametrize(("name", "task", "readout", "turn"), BEGINNING)
def test_native_and_core_begin_at_the_base(name: str, task: str, readout: str, turn: int) -> None:
    s, b = grid.stream(task, n=60), bases(60)
    y = s.y if task == "regression" else 2 * np.searchsorted(s.classes, s.y) - 1
    rule, options = grid.make_rule(name), grid.OPTIONS[turn]
    model = LinearModel(rule, task, classes=s.classes, readout=readout, **options)
    learner = ReferenceLearner(rule, task, readout=readout, **options)
    model.learn_many(s.X, s.y, s.importance, b)
    for x, label, c, begin in zip(s.X, y, s.importance, b, strict=True):
        learner.learn(x, label, float(c), float(begin))
    tolerance = grid.TOLERANCE.get(name, 1e-10)
    expected = [learner.score(x, float(begin)) for x, begin in zip(s.X, b, strict=True)]
    if rule.traits.clips and task == "regression":
        expected = np.clip(expected, learner.state["low"], learner.state["high"]).tolist()
    np.testing.assert_allclose(model.weights()[0][0], learner.w, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(model.score_many(s.X, b)[:, 0], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [name for name, task in ONE_ROW if task == "regression"])
def test_numbers_from_a_base_are_what_is_left_of_them(name: str) -> None:
    """Of y only y − base is to be learned: losses of residuals know no other difference."""
    s, b = grid.stream("regression", n=80, seed=3), bases(80)
    rule = grid.make_rule(name)
    if rule.traits.clips:
        rule = dataclasses.replace(rule, clip=False)
    begun, rest = (LinearModel(rule, "regression") for _ in range(2))
    ours = begun.predict_then_learn(s.X, s.y, s.importance, b)
    theirs = rest.predict_then_learn(s.X, s.y - b, s.importance)
    np.testing.assert_allclose(ours - b, theirs, rtol=1e-8, atol=1e-8)
    assert np.abs(theirs - LinearModel(rule, "regression").predict_then_learn(s.X, s.y, s.importance)).max() > 1e-3


# -- promise 1 --------------------------------------------------------------------------------------------------------


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("form", ["f64", "csr32", "named"])
@pytest.mark.parametrize(("name", "task"), ONE_ROW)
def test_the_same_bytes_however_the_rows_arrive(name: str, task: str, form: str, tmp_path: Path) -> None:
    s, b = grid.stream(task), bases(40)
    readout = "average" if grid.tried(name, "average") else "last"
    cell = grid.Cell(name, task, form, readout)
    whole, cut, single = (cell.model(s.classes) for _ in range(3))
    said = list(whole.predict_then_learn(cell.form.make(s.X), s.y, s.importance, b))
    ends, start, parts = [3, 4, 17, 40], 0, []
    for end in ends:
        rows = cell.form.part(s.X, start, end)
        parts += list(cut.predict_then_learn(rows, s.y[start:end], s.importance[start:end], b[start:end]))
        cut.save(tmp_path / "m")
        cut, start = LinearModel.load(tmp_path / "m"), end
    one_by_one = []
    for i in range(40):
        x = cell.form.row(s.X, i)
        one_by_one.append(single.predict_one(x, b[i]))
        single.learn_one(x, s.y[i], s.importance[i], b[i])
    assert said == parts == one_by_one
    assert saved(whole) == saved(cut) == saved(single)


def test_classes_may_come_as_long_as_both_are_there_before_a_base() -> None:
    X, y = np.random.default_rng(1).normal(size=(9, 3)), np.array([7, 7, 3, 7, 3, 3, 7, 3, 7])
    b = np.array([0, 0, 0.5, -1, 2, 0, 0.25, 1, -0.5])
    grown, declared, single = LinearModel("pa1"), LinearModel("pa1", classes=[3, 7]), LinearModel("pa1")
    said = grown.predict_then_learn(X, y, None, b)
    declared.learn_many(X, y, None, b)
    for x, label, begin in zip(X, y.tolist(), b, strict=True):
        single.learn_one(x, label, base=begin)
    assert said[3:] == LinearModel("pa1", classes=[3, 7]).predict_then_learn(X, y, None, b).tolist()[3:]
    assert np.array_equal(grown.weights()[0], declared.weights()[0]) and saved(grown) == saved(single)


# -- promise 2 --------------------------------------------------------------------------------------------------------


def refused(model: LinearModel, learn: Any, kind: type[Exception], words: str) -> None:
    before = saved(model)
    with pytest.raises(kind, match=words):
        learn()
    assert saved(model) == before


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_a_base_that_is_no_number_changes_nothing(task: str) -> None:
    s = grid.stream(task)
    model = LinearModel("pa1", task, classes=s.classes)
    model.learn_many(s.X, s.y)
    rows: list[Any] = grid.dicts(s.X[:2])
    named = LinearModel("pa1", task, classes=s.classes)
    named.learn_many(rows, s.y[:2])
    for bad in (np.nan, np.inf, -np.inf, "abc", None, [1.0]):
        refused(model, lambda bad=bad: model.learn_one(s.X[0], s.y[0], 1.0, bad), InputError, "base must be a finite")
        refused(model, lambda bad=bad: model.score_one(s.X[0], bad), InputError, "base must be a finite")
    for bad in ([0.5, np.nan], [np.inf, 0.0]):
        refused(model, lambda bad=bad: model.learn_many(s.X[:2], s.y[:2], None, bad), InputError, "base must be finite")
        refused(named, lambda bad=bad: named.learn_many(rows, s.y[:2], None, bad), InputError, "base must be finite")
        refused(model, lambda bad=bad: model.predict_many(s.X[:2], bad), InputError, "base must be finite")
    for bad in ([0.5], [[0.5, 0.5]], ["x", "y"]):
        refused(model, lambda bad=bad: model.learn_many(s.X[:2], s.y[:2], None, bad), InputError, "one number per row")


def test_a_base_that_overflows_is_refused_for_its_row() -> None:
    model = LinearModel("pa", "regression", fit_intercept=False)
    model.learn_one([1.0, 0.0], 1.5e308)
    refused(model, lambda: model.learn_one([1.0, 0.0], 0.0, 1.0, 1.5e308), NumericalError, "row 0")  # the score
    model = LinearModel("pa", "binary", classes=[-1, 1], fit_intercept=False)
    after = LinearModel("pa", "binary", classes=[-1, 1], fit_intercept=False)
    after.learn_one([1.0, 0.0], 1)
    with pytest.raises(NumericalError, match="row 1"):  # the step
        model.learn_many(np.array([[1.0, 0.0], [0.0, 1e-3], [1.0, 1.0]]), [1, 1, 1], None, [0.0, -1e308, 0.0])
    assert saved(model) == saved(after)


def test_where_an_initial_prediction_has_no_meaning() -> None:
    X = np.eye(3)
    several = LinearModel("pa1", classes=["a", "b", "c"])
    several.learn_many(X, ["a", "b", "c"])
    refused(several, lambda: several.learn_many(X, ["a", "b", "c"], None, [0, 0.5, 0]), InputError, r"base\[1\]=0.5 is")
    refused(several, lambda: several.learn_one(X[0], "a", 1.0, 0.5), InputError, "more than two classes")
    refused(several, lambda: several.predict_many(X, [0, 0, 0.5]), InputError, r"base\[2\]=0.5 is an initial")
    growing = LinearModel("pa1", classes=None)
    growing.learn_many(X[:2], [1, 2])
    # Not even the rows before the third class, which alone would be learned.
    refused(growing, lambda: growing.learn_many(X, [1, 3, 2], None, [0.5, 0, 0.25]), InputError, r"base\[2\]=0.25 is")
    refused(growing, lambda: growing.learn_one(X[0], 3, 1.0, 0.5), InputError, "more than two classes")
    growing.learn_many(X, [1, 2, 3], None, [0.5, 0.5, 0])  # as long as there are two
    unknown = LinearModel("pa1")
    refused(unknown, lambda: unknown.learn_one(X[0], 1, 1.0, 0.5), InputError, "only one has come yet")
    refused(unknown, lambda: unknown.learn_many(X, [1, 1, 0], None, [0.5, 0, 0]), InputError, "only one has come yet")
    for task, words in (("oneclass", "a distance"), ("multilabel", "every label")):
        model = LinearModel("pa1", task)
        y: Any = None if task == "oneclass" else [[1], [2], [1, 2]]
        model.learn_many(X, y)
        refused(model, lambda m=model, y=y: m.learn_many(X, y, None, 0.5), InputError, words)
        refused(model, lambda m=model, y=y: m.learn_one(X[0], y and y[0], 1.0, 0.5), InputError, words)
        refused(model, lambda m=model: m.score_many(X, [0.5, 0, 0]), InputError, words)
    kernel = op.KernelModel("pa1", "binary", classes=[-1, 1])
    kernel.learn_many(X, [1, -1, 1])
    for learn in (
        lambda: kernel.learn_many(X, [1, -1, 1], None, 0.5),
        lambda: kernel.learn_one(X[0], 1, 1.0, 0.5),
        lambda: kernel.predict_many(X, 0.5),
        lambda: kernel.score_one(X[0], 0.5),
    ):
        before = kernel.n_support, kernel.t
        with pytest.raises(InputError, match="a kernel learner begins at 0"):
            learn()
        assert (kernel.n_support, kernel.t) == before
    ratchet = LinearModel("perceptron", "binary", classes=[-1, 1], readout="pocket(ratchet=true)")
    with ratchet.judged_by(X, [1, -1, 1]), pytest.raises(InputError, match="the ratchet judges"):
        ratchet.learn_many(X, [1, -1, 1], None, 0.5)


# -- streams ----------------------------------------------------------------------------------------------------------


def write(path: Path, n: int = 400, task: str = "binary") -> tuple[list[dict[str, float]], list[Any], Any, Any]:
    """A VW file; its rows, labels, importances and bases."""
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(n, 5)), 3)
    b, c = bases(n), rng.choice([0.5, 1.0, 2.0], size=n)
    score = X @ [1.0, -2.0, 0.5, 0.0, 1.5] + b
    y = np.where(score > 0, 1, -1) if task == "binary" else np.round(score, 3)
    rows = [{f"f{j}": float(v) for j, v in enumerate(row)} for row in X]
    with open(path, "w") as file:
        for row, label, weight, begin in zip(rows, y.tolist(), c, b, strict=True):
            file.write(f"{label} {weight} {begin} | " + " ".join(f"{k}:{v}" for k, v in row.items()) + "\n")
    return rows, y.tolist(), c, b


@pytest.mark.parametrize(("task", "rule"), [("binary", "vw:loss=logistic"), ("regression", "pa1")])
def test_prequential_takes_the_bases_of_a_stream(task: str, rule: str, tmp_path: Path) -> None:
    rows, y, c, b = write(tmp_path / "a.vw", task=task)
    classes = [-1, 1] if task == "binary" else None
    alone = LinearModel(rule, task, classes=classes)
    expected = []
    for x, label, weight, begin in zip(rows, y, c, b, strict=True):
        expected.append(alone.predict_one(x, begin))
        alone.learn_one(x, label, weight, begin)
    metric = "mae" if task == "regression" else "error"

    def went(stream: Any, **how: Any) -> tuple[Any, LinearModel]:
        model = LinearModel(rule, task, classes=classes)
        said: list[Any] = []
        run = op.prequential(model, stream, metric, on_predictions=lambda X, p: said.extend(p), **how)
        return (run, said), model

    (run, said), model = went(op.stream(tmp_path / "a.vw"), every=57)
    assert said == expected and saved(model) == saved(alone)
    loss = np.abs(np.array(said) - y) if task == "regression" else np.array(said) != np.array(y)
    assert run.value == pytest.approx(np.average(loss, weights=c))
    (_, late), model = went(op.stream(tmp_path / "a.vw"), delay=3)
    assert late[:4] != expected[:4] or task == "binary"
    again = LinearModel(rule, task, classes=classes)
    for i in range(len(y) + 3):
        if i < len(y):
            assert late[i] == again.predict_one(rows[i], b[i])
        if i >= 3:
            again.learn_one(rows[i - 3], y[i - 3], c[i - 3], b[i - 3])
    assert saved(model) == saved(again)
    (run, _), model = went(op.stream(tmp_path / "a.vw"), holdout=5)
    kept = LinearModel(rule, task, classes=classes)
    losses, weights = [], []
    for i, (x, label, weight, begin) in enumerate(zip(rows, y, c, b, strict=True)):
        if i % 5 == 4:
            losses.append(
                abs(kept.predict_one(x, begin) - label) if task == "regression" else kept.predict_one(x, begin) != label
            )
            weights.append(weight)
        else:
            kept.learn_one(x, label, weight, begin)
    assert run.holdout[metric][-1] == pytest.approx(np.average(losses, weights=weights))
    spread = op.distributed(LinearModel(rule, task, classes=classes), op.stream(tmp_path / "a.vw"), metric, copies=2)
    assert spread.examples == len(y)


def test_learners_without_a_place_for_it_say_so(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n-1 | b\n1 1 0.5 | b\n")
    for model in (
        reductions.OneVsAll("pa1"),
        op.ExpertEnsemble(),
        op.GaussianNB(),
        transforms.StandardScaler() | op.LinearClassifier(),
    ):
        with pytest.raises(InputError, match=r"example 3 has an initial prediction \(0.5.*does not use"):
            op.prequential(model, op.stream(path))
    with pytest.raises(InputError, match="a kernel learner begins at 0"):
        op.prequential(op.KernelClassifier(), op.stream(path))
    with pytest.raises(InputError, match="whose scores begin at 0"):
        op.prequential(LinearModel("pa1"), op.stream(path), regret=True)
    assert op.prequential(op.LinearClassifier(), op.stream(path)).examples == 3


@pytest.mark.parametrize("line", ["1 1 nan | a", "1 1 inf | a", "1 1 abc | a", "1 1 1e999 | a"])
def test_a_base_that_is_no_number_is_a_bad_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text(f"1 | a\n{line}\n-1 | b\n")
    with pytest.raises(LineError, match=r"a.vw:2:5: the initial prediction"):
        list(op.stream(tmp_path / "a.vw").batches())
    assert sum(map(len, op.stream(tmp_path / "a.vw", on_error="skip").batches())) == 2


# -- the command ------------------------------------------------------------------------------------------------------


def predicted(path: Path) -> list[float]:
    return [float(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("task", "rule"), [("binary", "arow"), ("regression", "vw:loss=squared")])
def test_the_command_learns_and_predicts_from_bases(task: str, rule: str, tmp_path: Path) -> None:
    rows, y, c, b = write(tmp_path / "a.vw", task=task)
    done = onepass("learn", "a.vw", "--rule", rule, "--task", task.replace("binary", "classification"), "--save", "m",
                   "--predictions", "p", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    model = LinearModel(rule, "auto" if task == "binary" else task, classes=[-1, 1] if task == "binary" else None)
    expected = []
    for x, label, weight, begin in zip(rows, y, c, b, strict=True):
        expected.append(model.predict_one(x, begin))
        model.learn_one(x, label, weight, begin)
    known = [(p, e) for p, e in zip((tmp_path / "p").read_text().splitlines(), expected, strict=True) if p]
    np.testing.assert_allclose([float(p) for p, _ in known], [e for _, e in known], rtol=1e-5, atol=1e-9)
    learned = LinearModel.load(tmp_path / "m")
    learned.extra_arrays = {}  # of the run
    assert saved(learned) == saved(model)
    done = onepass("predict", "m", "a.vw", "-o", "q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(predicted(tmp_path / "q"), model.predict_many(rows, b), rtol=1e-5)
    done = onepass("compare", "a.vw", "--rules", f"{rule},pa1", "--task", task.replace("binary", "classification"),
                   "--save-best", "best", "--quiet", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    best = LinearModel.load(tmp_path / "best")
    again = LinearModel(best.rule, best.task, classes=best.classes or None)
    again.learn_many(rows, y, c, b)
    assert saved(best) == saved(again)


def test_a_run_with_bases_resumes_bit_for_bit(tmp_path: Path) -> None:
    write(tmp_path / "whole.vw")
    lines = (tmp_path / "whole.vw").read_text().splitlines(keepends=True)
    broken = [*lines[:151], "oops\n", *lines[151:]]
    for name, content, code in (("a", lines, 0), ("b", broken, 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "s.vw").write_text("".join(content))
        done = onepass("learn", "s.vw", "--rule", "pa1", "--every", 10, "--save", "m", cwd=tmp_path / name)
        assert done.returncode == code, done.stderr
    assert LinearModel.load(tmp_path / "b" / "m").t == 151
    (tmp_path / "b" / "s.vw").write_text("".join(lines))
    assert onepass("learn", "--resume", "m", cwd=tmp_path / "b").returncode == 0
    assert (tmp_path / "a" / "m").read_bytes() == (tmp_path / "b" / "m").read_bytes()


@pytest.mark.parametrize(
    ("content", "flags", "words"),
    [
        ("1 | a\n2 | b\n3 1 0.5 | c\n", [], "example 3 has an initial prediction (0.5"),
        ("1 | a\n-1 1 0.5 | b\n", ["--rule", "auto"], "an ensemble of rules begins at 0"),
        ("1 | a\n-1 1 0.5 | b\n", ["--kernel", "rbf"], "example 2 has an initial prediction (0.5"),
        ("1 | a\n-1 1 0.5 | b\n", ["--task", "one-class"], "a distance begins at 0"),
        ("1 | a\n-1 1 0.5 | b\n", ["--regret"], "initial predictions"),
        ("1 1 0.5 | a\n1 | b\n", [], "only one has come yet"),
    ],
)
def test_what_the_command_says_where_there_is_no_place(
    content: str, flags: list[str], words: str, tmp_path: Path
) -> None:
    (tmp_path / "a.vw").write_text(content)
    done = onepass("learn", "a.vw", *flags, "--progress", "none", cwd=tmp_path)
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr


def test_a_label_that_is_only_predicted_brings_no_class(tmp_path: Path) -> None:
    (tmp_path / "learn.vw").write_text("1 1 0.5 | a\n-1 1 -0.5 | b\n" * 5)
    (tmp_path / "new.vw").write_text("5 1 0.5 't| a\n")
    onepass("learn", "learn.vw", "--save", "m.onepass", cwd=tmp_path)
    assert onepass("predict", "m.onepass", "new.vw", cwd=tmp_path).returncode == 0
