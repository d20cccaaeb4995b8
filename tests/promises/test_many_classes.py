"""Memory with many classes: as far as features come, within a limit that is said; classes that come one by one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.command import environment, onepass
from support.grid import saved

import onepass as op
from onepass.errors import FeatureError, LabelError, ParameterError
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel

MB = 1 << 20


def write_rows(path: Path, rows: int, label: object) -> Path:
    """Rows of 30 words; `label(row)` says what stands before them."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for row in range(rows):
            words = " ".join(f"w{j}" for j in rng.integers(0, 5000, 30))
            file.write(f"{label(row)} | {words}\n")  # type: ignore[operator]
    return path


def limited(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", size)


# -- a large table that is mostly empty ----------------------------------------------------------------------------


def measured(*args: object) -> tuple[subprocess.CompletedProcess[str], int]:
    """A command, and the most memory that it had."""
    code = "import resource, subprocess, sys; r = subprocess.run(sys.argv[1:]); " + (
        "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024); sys.exit(r.returncode)"
    )
    command = [sys.executable, "-c", code, sys.executable, "-m", "onepass", *map(str, args)]
    result = subprocess.run(command, env=environment(), text=True, capture_output=True, timeout=300)
    return result, int(result.stdout.split()[-1])


def test_a_thousand_classes_take_what_the_features_met_take(tmp_path: Path) -> None:
    stream = write_rows(tmp_path / "a.vw", 100, lambda row: 1 + row * 7 % 1000)
    learn = ["learn", stream, "--oaa", 1000, "-b", 18, "--save", tmp_path / "m"]
    result, peak = measured(*learn)
    assert result.returncode == 0, result.stderr
    assert "memory: up to 6.3 GB of weights (262,144 features × 1,000 classes)" in result.stderr
    assert peak < 400 * MB  # the table alone has 6,000
    assert (tmp_path / "m").stat().st_size < 100 * MB
    result, peak = measured("learn", "--resume", tmp_path / "m", stream, "--quiet")
    assert result.returncode == 0 and peak < 500 * MB, result.stderr
    result, peak = measured("inspect", tmp_path / "m")
    assert result.returncode == 0 and peak < 500 * MB, result.stderr


READOUTS = {  # rules that have them
    "last": ["vw", "adagrad", "ftrl:lam1=0.1", "pa1", "fobos:lam1=0.01", "arow"],
    "average": ["vw", "adagrad", "ftrl:lam1=0.1", "pa1", "arow"],
    "pocket": ["pa1", "arow"],
}


@pytest.mark.parametrize(("rule", "readout"), [(rule, readout) for readout in READOUTS for rule in READOUTS[readout]])
def test_wide_tables_are_learned_saved_and_loaded_to_the_same_bits(rule: str, readout: str, tmp_path: Path) -> None:
    """600 classes of one feature fill a page: walks visit features that were met alone."""
    wide = LinearModel(rule, hash_bits=10, readout=readout, classes=range(600))
    rng = np.random.default_rng(1)
    values = rng.normal(size=(120, 8)).tolist()
    rows = [{f"w{j}": v for j, v in zip(rng.integers(0, 300, 8), row, strict=True)} for row in values]
    labels = rng.integers(0, 40, 120).tolist()
    wide.learn_many(rows[:60], labels[:60])
    wide.save(tmp_path / "m")
    again = LinearModel.load(tmp_path / "m")
    for model in (wide, again):
        model.learn_many(rows[60:], labels[60:])
    assert saved(again) == saved(wide)
    places, w, intercept = wide.met_weights()
    whole, constant = wide.weights()
    scattered = np.zeros_like(whole)
    scattered[:, places] = w
    assert np.array_equal(scattered, whole) and np.array_equal(intercept, constant)


def test_a_large_hash_table_without_planes_is_saved_without_its_empty_part(tmp_path: Path) -> None:
    model = LinearModel("pa1", hash_bits=20)
    rng = np.random.default_rng(0)
    for label in rng.integers(0, 5, 50).tolist():
        model.learn_one({f"w{j}": 1.0 for j in rng.integers(0, 1000, 9)}, label)
    model.save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < MB
    again = LinearModel.load(tmp_path / "m")
    again.save(tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()
    assert np.array_equal(again.weights()[0], model.weights()[0])


# -- a limit -------------------------------------------------------------------------------------------------------


def test_a_table_beyond_the_limit_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, "100M")
    said = (
        r"1048576 features x 1000 classes of PA1.* would take 8.39 GB, but the limit is 105 MB; use fewer .*hash_bits"
    )
    with pytest.raises(ParameterError, match=said):
        LinearModel("pa1", hash_bits=20, classes=range(1000))
    with pytest.raises(ParameterError, match=r"16777216 features of PA1.* would take 134 MB"):
        LinearModel("pa1", hash_bits=24)
    LinearModel("pa1", hash_bits=20, classes=range(8))
    limited(monkeypatch, "9G")
    LinearModel("pa1", hash_bits=20, classes=range(1000))
    limited(monkeypatch, "much")
    with pytest.raises(ParameterError, match="ONEPASS_MAX_MEMORY=much: expected bytes"):
        LinearModel("pa1", hash_bits=20)


def test_a_class_beyond_the_limit_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, "20M")
    for task, one in (("auto", lambda k: k), ("multilabel", lambda k: [k])):
        model = LinearModel("pa1", task, hash_bits=16)
        for k in range(24):
            model.learn_one({f"w{k}": 1.0}, one(k))
        before = saved(model)
        with pytest.raises(LabelError, match=r"65536 features x .* classes .* would take"):
            for k in range(24, 100):
                model.learn_one({f"w{k}": 1.0}, one(k))
                before = saved(model)
        assert saved(model) == before and len(model.classes) == model.t < 100
        rows = [{"w": 1.0}] * 100
        with pytest.raises(LabelError, match="would take"):
            model.learn_many(rows, [one(k) for k in range(100)])
        assert saved(model) == before
        model.learn_many(rows[:24], [one(k) for k in range(24)])


def test_features_beyond_the_limit_leave_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, "8M")
    model = LinearModel("pa1", classes=range(1000))
    model.learn_one({"a": 1.0}, 3)
    before = saved(model)
    with pytest.raises(FeatureError, match=r"2001 features x 1000 classes .* would take 16 MB"):
        model.learn_one({f"b{j}": 1.0 for j in range(2000)}, 4)
    with pytest.raises(FeatureError, match="would take"):
        model.learn_many([{f"b{j}": 1.0 for j in range(2000)}], [4])
    assert saved(model) == before
    positions = LinearModel("pa1", classes=range(1000))
    with pytest.raises(FeatureError, match="would take"):
        positions.learn_many(np.ones((2, 2000)), [1, 2])
    assert positions.n_features == 0


def test_the_command_says_what_would_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, "1G")
    stream = write_rows(tmp_path / "a.vw", 10, lambda row: 1 + row)
    result = onepass("learn", stream, "--oaa", 1000, "-b", 18)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert "262144 features x 1000 classes" in result.stderr
    assert "would take 6.29 GB, but the limit is 1.07 GB" in result.stderr


# -- classes that come one by one ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["one by one", "batch", "kernel"])
def test_new_classes_cost_little_more_than_declared_ones(how: str) -> None:
    """A row costs as much as there are classes. To register a class must not cost a copy of all of them."""
    code = f"""
import json, time
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel
labels = [f"label{{k}}" for k in range(4_000)]
seconds = []
for classes in (labels, None):
    if {how!r} == "kernel":
        model = KernelModel("perceptron", budget="oldest:B=2", classes=classes)
    else:
        model = LinearModel("perceptron", classes=classes)
    began = time.process_time()
    if {how!r} == "one by one":
        for label in labels:
            model.learn_one({{"a": 1.0}}, label)
    else:
        model.learn_many([[1.0]] * len(labels), labels)
    seconds.append(time.process_time() - began)
    assert len(model.classes) == len(labels)
print(json.dumps(seconds))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment(), text=True, capture_output=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    declared, new = json.loads(result.stdout)
    assert new < 4 * declared + 0.1, f"{new:.2f} s with new classes, {declared:.2f} s with declared ones"


@pytest.mark.parametrize(
    "rule", ["pa1", "vw:loss=logistic", "ftrl:lam1=0.1", "fobos:lam1=0.01", "arow", "arow:covariance=full"]
)
@pytest.mark.parametrize("known", [0, 1, 2, 3, 7, 8, 9, 15, 16, 24, 31])
def test_a_refused_row_takes_its_class_with_it(rule: str, known: int) -> None:
    """However many classes there are, and whatever letting one more in would reshape."""
    models = [LinearModel(rule) for _ in range(2)]
    rng = np.random.default_rng(0)
    rows = [{f"w{j}": float(v) for j, v in enumerate(rng.normal(size=4))} for _ in range(3 * known + 1)]
    labels = [f"{9 - k % 10}{k % max(known, 1)}" for k in range(max(known, 1))] * 3
    for x, label in zip(rows, labels[: 3 * known], strict=False):
        for model in models:
            model.learn_one(x, label)
    refused, other = models
    with pytest.raises(ArithmeticError):
        refused.learn_one({"w0": 1e200, "w1": 1e200}, "00new")
    assert saved(refused) == saved(other)
    with pytest.raises(ArithmeticError):
        refused.learn_many(np.full((1, 4), 1e200) if not known else [{"w0": 1e200}], ["00new"])
    if known:
        assert saved(refused) == saved(other)
        for model in models:
            model.learn_one(rows[-1], "00new")
        assert saved(refused) == saved(other)


# -- too many classes ----------------------------------------------------------------------------------------------


def test_continuous_labels_are_told_from_classes(tmp_path: Path) -> None:
    stream = write_rows(tmp_path / "a.vw", 3000, lambda row: f"{np.sin(row):.6f}")
    result = onepass("learn", stream, "--loss_function", "hinge", "-b", 18)
    assert result.returncode == 1 and len(result.stderr.splitlines()[-1:]) == 1
    said = result.stderr.splitlines()[-1]
    assert "the labels look continuous (101 distinct values that are not whole numbers in 10" in said
    assert "--task regression or --loss_function squared" in said
    few = write_rows(tmp_path / "b.vw", 300, lambda row: f"{row % 40 / 2}")
    assert onepass("learn", few, "--loss_function", "hinge", "-b", 18, "--quiet").returncode == 0
    told = onepass("learn", stream, "--loss_function", "hinge", "-b", 12, "--max-classes", 50)
    assert told.returncode == 1 and "would be class 51, but max_classes is 50" in told.stderr


@pytest.mark.parametrize("make", [LinearModel, KernelModel, op.LinearClassifier, op.KernelClassifier])
def test_the_library_refuses_the_hundred_and_first_number_that_is_not_whole(make: type) -> None:
    model = make("perceptron")
    for k in range(100):
        model.learn_one({"a": 1.0}, k + 0.5)
    with pytest.raises(LabelError, match=r"look continuous \(101 distinct values .* in 101 rows\): use a regression"):
        model.learn_one({"a": 1.0}, 0.25)
    model.learn_one({"a": 1.0}, 7)  # whole numbers and words may follow
    model.learn_one({"a": 1.0}, 7.5)
    assert len(model.classes_ if hasattr(model, "classes_") else model.classes) == 101


def test_max_classes() -> None:
    model = LinearModel("pa1", max_classes=3)
    model.learn_many(np.eye(3), ["a", "b", "c"])
    before = saved(model)
    with pytest.raises(LabelError, match=r"y\[1\]: label 'd' would be class 4, but max_classes is 3; raise it"):
        model.learn_many(np.eye(3), ["a", "d", "c"])
    with pytest.raises(LabelError, match="label 'd' would be class 4"):
        model.learn_one(np.ones(3), "d")
    assert saved(model) == before
    again = LinearModel.from_state(*model.state())
    assert again.max_classes == 3 and again.new_model().max_classes == 3
    many = LinearModel("pa1", max_classes=500)
    many.learn_many(np.ones((300, 1)), np.arange(300) + 0.5)  # as asked: they are classes
    assert len(many.classes) == 300
    declared = LinearModel("pa1", classes=np.arange(300) + 0.5)
    declared.learn_many(np.ones((300, 1)), np.arange(300) + 0.5)
    for wrong in (0, -1, 2.5, True, "3"):
        with pytest.raises(ParameterError, match="max_classes="):
            LinearModel("pa1", max_classes=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="4 classes are declared"):
        LinearModel("pa1", classes="abcd", max_classes=3)


def test_a_hundred_thousand_classes_of_few_features() -> None:
    model = LinearModel("perceptron", classes=range(100_000))
    model.learn_many(np.eye(3), [0, 50_000, 99_999])
    assert model.predict_one(np.array([0.0, 1.0, 0.0])) == 50_000
