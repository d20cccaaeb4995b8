"""What would take more memory than was asked for is refused by us: a ledger of such requests, under RLIMIT_AS."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.command import onepass
from support.learners import LEARNERS
from support.store_files import run_python

import onepass as op
from onepass.errors import FeatureError, FullError, LabelError, ModelFileError, OnepassError, ParameterError
from onepass.estimators.labelled import LabelledLearner
from onepass.estimators.stateful import StatefulEstimator
from onepass.models.lasvm import LasvmModel
from onepass.persistence import registry, store
from onepass.rows import labels

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS is heeded on Linux")

LEDGER = """
import resource, sys
import numpy as np, scipy.sparse as sp
import onepass as op
from onepass import _native, continual, reductions
from onepass.persistence import registry, store
from onepass.errors import OnepassError

op.LinearClassifier().fit(np.eye(2), [0, 1])
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
far = sp.csr_matrix(([1.0], ([0], [300_000_000])), shape=(1, 300_000_001))


def made(kind):
    return registry.class_of(kind)()


def forged(**change):
    def run():
        model = op.LinearModel("arow")
        model.learn_many(np.eye(3), [0, 1, 0])
        config, arrays = model.state()
        arrays = {name: array.copy() for name, array in arrays.items()}
        arrays["scalars"][_native.saved["linear"].index("columns")] = change.pop("columns", 3)
        store.write(sys.argv[1], "LinearModel", {**config, **change}, arrays)
        op.load(sys.argv[1])
    return run


cases = {
    f"{kind}, index 300,000,000": lambda kind=kind: made(kind).learn_many(far, ["a"])
    for kind in ("LinearModel", "LinearClassifier", "KernelModel", "KernelClassifier", "GaussianNB", "MultinomialNB",
                 "BernoulliNB", "ComplementNB", "KNNClassifier", "LVQClassifier", "SoftmaxSGD")
} | {
    f"{kind}, index 300,000,000 and no label": lambda kind=kind: made(kind).learn_many(far)
    for kind in ("KMeans", "CCIPCA", "OjaPCA", "IncrementalPCA", "DictionaryLearning", "GaussianMixture")
} | {
    "features = 2**27": forged(features=2**27, columns=2.0**27),
    "features = 2**27, columns = 3": forged(features=2**27),
    "features = 2**40": forged(features=2**40, columns=2.0**40),
    "hash_bits=30": lambda: op.LinearModel("arow", hash_bits=30),
    "one against one, 5,000 classes": lambda: reductions.OneVsOne("pa1", classes=range(5000)).learn_one([1.0], 0),
}
for name, run in cases.items():
    try:
        run()
        print(f"{name}: was not refused")
    except OnepassError as error:
        assert len(str(error)) > 20
    except BaseException as error:
        print(f"{name}: {type(error).__name__}: {str(error)[:200]}")
print(len(cases), "cases")
"""


@linux
def test_what_is_refused_is_refused_by_us(tmp_path: Path) -> None:
    said = run_python(LEDGER, tmp_path / "forged.onepass", ONEPASS_MAX_MEMORY="2G").stdout.splitlines()
    assert said == ["22 cases"]


def forged(tmp_path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    model = op.LinearModel("arow")
    model.learn_many(np.eye(3), [0, 1, 0])
    config, arrays = model.state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(config, arrays)
    store.write(tmp_path / "forged.onepass", "LinearModel", config, arrays)
    return tmp_path / "forged.onepass"


def test_the_features_of_a_file_are_what_its_rows_had(tmp_path: Path) -> None:
    path = forged(tmp_path, lambda config, arrays: config.update(features=1000))
    with pytest.raises(ModelFileError, match="columns of its rows are not the features"):
        op.load(path)


def test_a_large_hash_table_with_few_weights_loads(tmp_path: Path) -> None:
    model = op.LinearModel("pa1", hash_bits=22)
    model.learn_one({"a": 1.0}, "x")
    model.learn_one({"b": 1.0}, "y")
    model.save(tmp_path / "m.onepass")
    assert (tmp_path / "m.onepass").stat().st_size < 5000
    assert op.load(tmp_path / "m.onepass").predict_one({"b": 1.0}) == "y"


@pytest.mark.parametrize("make", [op.LinearModel, op.KernelModel])
def test_max_features(make: Callable[..., Any], tmp_path: Path) -> None:
    model = make("pa1", max_features=3)
    model.learn_many([{"a": 1.0, "b": 1.0}, {"c": 2.0}], ["x", "y"])
    before = store.to_bytes("any", *model.state())
    for learn in (
        lambda: model.learn_one({"d": 1.0}, "x"),
        lambda: model.learn_many([{"a": 1.0}, {"d": 1.0}], ["x", "y"]),
    ):
        with pytest.raises(FeatureError, match=r"4 features, but max_features is 3; hash them \(hash_bits"):
            learn()
        assert store.to_bytes("any", *model.state()) == before
    rows = make("pa1", max_features=3)
    for X in (np.ones((2, 4)), scipy.sparse.csr_matrix(np.ones((2, 4)))):
        with pytest.raises(FeatureError, match="4 features, but max_features is 3"):
            rows.learn_many(X, ["x", "y"])
    with pytest.raises(FeatureError, match="4 features, but max_features is 3"):
        rows.learn_one([1.0, 2.0, 3.0, 4.0], "x")
    model.save(tmp_path / "m.onepass")
    again = op.load(tmp_path / "m.onepass")._model
    assert again.max_features == 3 and again.new_model().max_features == 3
    with pytest.raises(FeatureError, match="max_features is 3"):
        again.learn_one({"d": 1.0}, "x")
    make("pa1", hash_bits=4, max_features=3).learn_one({"a": 1.0}, "x")  # of hashed ones the table says how many
    for wrong in (0, True, 1.5, "7"):
        with pytest.raises(ParameterError, match="max_features="):
            make("pa1", max_features=wrong)


def test_max_features_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEPASS_MAX_FEATURES", "70000")
    wide = scipy.sparse.csr_matrix(([1.0], ([0], [70_000])), shape=(1, 70_001))
    for make in (op.LinearClassifier, op.KernelClassifier, op.GaussianNB):
        with pytest.raises(FeatureError, match="70001 features, but max_features is 70000"):
            make().partial_fit(wide, [0], classes=[0, 1])
    monkeypatch.setenv("ONEPASS_MAX_FEATURES", "many")
    with pytest.raises(ParameterError, match="ONEPASS_MAX_FEATURES=many: expected a whole number"):
        op.LinearModel().learn_many(wide, ["a"])


def test_max_features_in_the_command(tmp_path: Path) -> None:
    (tmp_path / "s.svm").write_text("1 1:1 2:1\n-1 300000000:1\n")
    told = onepass("learn", tmp_path / "s.svm")
    assert told.returncode == 1 and "features, but max_features is 67108864" in told.stderr
    (tmp_path / "s.svm").write_text("1 1:1 2:1\n-1 9:1\n")
    told = onepass("learn", tmp_path / "s.svm", "--max-features", 8)
    assert told.returncode == 1 and "but max_features is 8; hash them" in told.stderr
    assert onepass("learn", tmp_path / "s.svm", "--max-features", 20).returncode == 0


def test_classes_that_would_take_too_many_learners() -> None:
    one = op.reductions.OneVsOne("pa1")
    with pytest.raises(LabelError, match=r"400 classes would take [\d,]+ base learners of OneVsOne, but the limit is"):
        one.learn_many(np.ones((400, 1)), list(range(400)))
    svm = op.LaSVMClassifier(multiclass="ovo")
    with pytest.raises(LabelError, match="400 classes would take 79,800 machines, but the limit is 50,000"):
        svm.partial_fit(np.ones((400, 1)), list(range(400)), classes=list(range(400)))


BAD_LASVM: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "columns": lambda config, arrays: config.update(columns=-1),
    "t": lambda config, arrays: config.update(t=-1),
    "columns of nothing learned": lambda config, arrays: (arrays.clear(), config.update(columns=-1)),
} | {
    f"{name} of {value}": lambda config, arrays, name=name, value=value: arrays[name].flat.__setitem__(0, value)
    for name in ("x", "weights", "machines", "alpha", "gradient", "lower", "upper")
    for value in (np.nan, np.inf)
}


@pytest.mark.parametrize("what", BAD_LASVM)
def test_a_lasvm_file_with_impossible_numbers(what: str, tmp_path: Path) -> None:
    model = LasvmModel()
    model.learn_many(np.random.default_rng(0).normal(size=(20, 3)), [0, 1] * 10)
    config, arrays = model.state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    BAD_LASVM[what](config, arrays)
    store.write(tmp_path / "m.onepass", "LasvmModel", config, arrays)
    with pytest.raises(ModelFileError):
        op.load(tmp_path / "m.onepass")
    with pytest.raises(OnepassError):
        LasvmModel.from_state(config, arrays)


OWN_STATE = [name for name in LEARNERS if issubclass(registry.class_of(name.split("-")[0]), StatefulEstimator)]
GROWING = [name for name in OWN_STATE if issubclass(registry.class_of(name.split("-")[0]), LabelledLearner)]
GROWING += ["OneVsAll", "OneVsOne", "LaSVMClassifier", "LinearModel", "KernelModel"]
WIDE = 60_000  # columns: for three classes, more than the limit


def state_of(learner: Any) -> bytes:
    return store.to_bytes("any", *learner.state())


@pytest.mark.parametrize("kind", OWN_STATE)
def test_tables_of_own_state_have_a_limit(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "1100K")
    labels = ["a", "b", "c"]
    for X in (np.zeros((3, WIDE)), scipy.sparse.csr_matrix((3, WIDE))):
        learner = LEARNERS[kind]()
        with pytest.raises(OnepassError, match=r"would take .*B, but the limit is 1.13 MB; .*ONEPASS_MAX_MEMORY="):
            learner.learn_many(X, labels)
        learner.learn_many(np.zeros((3, 2)), labels)  # as if nothing had come before
    learner = LEARNERS[kind]()
    for label in labels:
        learner.learn_one({"x": 1.0, "y": 0.0}, label)
    before = state_of(learner)
    wide = {f"f{i}": 1.0 for i in range(WIDE)}
    for learn in (lambda: learner.learn_one(wide, "d"), lambda: learner.learn_many([wide], ["d"])):
        with pytest.raises(OnepassError, match=r"would take .*, but the limit is"):
            learn()
        assert state_of(learner) == before
    learner.learn_one({"x": 0.0, "z": 1.0}, "d")


@pytest.mark.parametrize("kind", GROWING)
def test_labels_that_grow_have_a_limit(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = LEARNERS[kind]()
    monkeypatch.setattr(labels, "MOST_FRACTIONS", 12)
    for k in range(12):
        learner.learn_one([1.0], k + 0.5)
    before = state_of(learner)
    for learn in (lambda: learner.learn_one([1.0], 12.5), lambda: learner.learn_many([[1.0], [1.0]], [0.5, 12.5])):
        with pytest.raises(LabelError, match="look continuous \\(13 distinct"):
            learn()
        assert state_of(learner) == before
    whole = LEARNERS[kind]()
    with pytest.raises(LabelError, match="look continuous"):
        whole.learn_many(np.ones((20, 1)), [k + 0.5 for k in range(20)])
    monkeypatch.setattr(labels, "MOST_CLASSES", 4)
    with pytest.raises(LabelError, match="class 5, but max_classes is 4"):
        whole.learn_many(np.ones((5, 1)), list("abcde"))
    whole.learn_many(np.ones((4, 1)), list("abcd"))
    with pytest.raises(LabelError, match="class 5, but max_classes is 4"):
        whole.learn_one([1.0], "e")


def test_stored_vectors_of_lasvm_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEPASS_MAX_MEMORY", "1100K")
    X = np.random.default_rng(0).normal(size=(12, 20_000))  # 160 KB each
    model = LasvmModel()
    with pytest.raises(FullError, match="one more stored vector would take more memory than the limit") as told:
        model.learn_many(X, [0, 1] * 6)
    assert told.value.row == model.t == 7
    before = state_of(model)
    with pytest.raises(FullError, match="row 0"):
        model.learn_one(X[8], "new")
    assert state_of(model) == before


def test_the_columns_of_lasvm_have_a_limit() -> None:
    rows = scipy.sparse.csr_matrix((np.ones(2), np.array([0, 2**40]), np.array([0, 1, 2])), shape=(2, 2**41))
    model = LasvmModel()
    before = state_of(model)
    with pytest.raises(FeatureError, match="2199023255552 features, but max_features is"):
        model.learn_many(rows, [0, 1])
    assert state_of(model) == before


def test_a_large_mini_batch_takes_the_room_of_the_rows_that_wait() -> None:
    tracemalloc.start()
    op.KMeans(2, batch_size=2**20).learn_one(np.ones(16), None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def test_a_column_beyond_32_bits_is_named() -> None:
    far = scipy.sparse.csr_matrix(
        (np.ones(1), np.array([2**31 + 5]), np.array([0, 1], dtype=np.int64)), shape=(1, 2**31 + 6)
    )
    with pytest.raises(
        FeatureError, match="column index 2147483653 in row 0, but a linear model has at most 2147483647"
    ):
        op.LinearModel("pa1", max_features=3 * 2**30).learn_many(far, [1])
