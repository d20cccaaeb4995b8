"""Promise 3: a damaged or foreign model file never loads, by `onepass.load` and by `LinearModel.load` alike."""

from __future__ import annotations

import contextlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors
from support import grid
from support.grid import dicts, saved, stream
from support.positions import position

import onepass
from onepass.errors import (
    DamagedFileError,
    ForeignFileError,
    ModelFileError,
    NewerFileError,
    ParameterError,
    UnknownTypeError,
)
from onepass.estimators.linear import LinearClassifier
from onepass.models.kernel import KernelModel
from onepass.models.linear import LinearModel
from onepass.persistence import store

LOADERS: list[Callable[[Any], Any]] = [LinearModel.load, onepass.load]


def small(tmp_path: Path) -> bytes:
    """The bytes of a small estimator's file."""
    learner = LinearClassifier("pa1:C=0.5", readout="average")
    learner.learn_one({"a": 1.0, "b": "red"}, "yes")
    learner.learn_one({"a": -1.0}, "no")
    learner.save(tmp_path / "small.onepass")
    return (tmp_path / "small.onepass").read_bytes()


def assert_refused(path: Path, error: Any, message: str | None = None) -> None:
    for load in LOADERS:
        with pytest.raises(error, match=message) as caught:
            load(path)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("Model", [LinearModel, KernelModel])
def test_a_saved_array_of_another_shape_is_named(Model: Any) -> None:
    model = Model("pa1", classes=["a", "b"])
    model.learn_one([1.0, 2.0], "a")
    state = model._engine.state() | {"kernel_features": 2}
    for name in ("scalars", "slots", *(("bias", "v") if Model is LinearModel else ("births", "support"))):
        fresh = Model("pa1", classes=["a", "b"])
        wrong = np.zeros((*state[name].shape[:-1], state[name].shape[-1] + 1))
        with pytest.raises(ModelFileError) as caught:
            fresh._engine.set_state({**state, name: wrong})
        expected, got = (" x ".join(map(str, array.shape)) for array in (state[name], wrong))
        assert str(caught.value) == f"the array '{name}' has the wrong shape: expected {expected}, got {got}"


@pytest.mark.full(most=1)
@pytest.mark.parametrize("bit", [0, 3, 7])
def test_every_byte_flipped(tmp_path: Path, bit: int) -> None:
    data = small(tmp_path)
    path = tmp_path / "flipped.onepass"
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :])
        assert_refused(path, ModelFileError, "flipped.onepass: ")
    assert saved(onepass.load(tmp_path / "small.onepass")) == saved(LinearModel.load(tmp_path / "small.onepass"))


def test_every_prefix_and_what_is_appended(tmp_path: Path) -> None:
    data = small(tmp_path)
    path = tmp_path / "cut.onepass"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert_refused(path, ModelFileError, "cut.onepass: ")
    path.write_bytes(data + b"\0")
    assert_refused(path, DamagedFileError, "truncated or altered.*restore a copy, or train and save again")


def test_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    for data in (
        b"",
        b"{}",
        b"label,x\n1,2\n",
        pickle.dumps(LinearClassifier()),
        save_tensors({"v": np.zeros(3)}),
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        bytes(1000),
        json.dumps({"format": "onepass"}).encode(),
    ):
        path.write_bytes(data)
        assert_refused(path, ForeignFileError, "expected a onepass model file")
    assert_refused(tmp_path, ForeignFileError, "directory")
    for load in LOADERS:
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nowhere")


def test_a_newer_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = LinearClassifier().partial_fit([[1.0]], [0], classes=[0, 1])
    monkeypatch.setattr(store, "FORMAT_VERSION", store.FORMAT_VERSION + 1)
    learner.save(tmp_path / "newer.onepass")
    monkeypatch.undo()
    assert_refused(tmp_path / "newer.onepass", NewerFileError, "newer onepass.*upgrade onepass")


def test_another_kind_of_model(tmp_path: Path) -> None:
    store.write(tmp_path / "other.onepass", "forest", {}, {})
    assert_refused(tmp_path / "other.onepass", (ForeignFileError, ParameterError), "kind 'forest'")


def test_a_rule_this_program_does_not_know(tmp_path: Path) -> None:
    """A user's rule is looked up by name among those defined; nothing is imported for it."""
    program = """
import dataclasses, sys
from onepass import Rule, Step, LinearClassifier
from onepass.transforms import StandardScaler
@dataclasses.dataclass(repr=False)
class Mine(Rule):
    tasks = ("binary",)
    def step(self, s): return Step(add=0.5)
learner = LinearClassifier(Mine())
learner.learn_one({"a": 1.0}, 1)
learner.save(sys.argv[1])
(StandardScaler() | learner).save(sys.argv[2])
"""
    alone, inside = tmp_path / "mine.onepass", tmp_path / "inside.onepass"
    subprocess.run([sys.executable, "-c", program, alone, inside], check=True)
    assert_refused(alone, UnknownTypeError, r"type 'rule:.*Mine' is not known here; expected one of")
    with pytest.raises(UnknownTypeError, match=r"type 'rule:.*Mine' is not known here; expected one of"):
        onepass.load(inside)


# -- whole files whose parts disagree: their checksum is right, so only a forger or a bug writes them


def put(array: str, at: int, value: float) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(config: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[array].flat[at] = value

    return change


def names(*given: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda config, arrays: arrays.update({f"names.{k}": v for k, v in store.encode_names(given).items()})


def config(**change: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda config, arrays: config.update(change)


def arrays(**change: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda config, arrays: arrays.update(change)


FORGED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "fewer classes than rows": config(classes=[10, 20]),
    "more classes than rows": config(classes=[10, 20, 30, 40, 50]),
    "no classes": config(classes=[]),
    "a class twice": config(classes=[10, 20, 30, 10]),
    "classes of no kind": config(classes=[{"object": 1}]),
    "binary with four classes": config(task="binary"),
    "regression with four rows": config(task="regression"),
    "no such task": config(task="poetry"),
    "rule of another family": config(rule={"type": "loss:Hinge", "params": {}}),
    "rule without its parameter": config(rule={"type": "rule:PA1", "params": {"Q": 1}}),
    "rule outside its range": config(rule={"type": "rule:PA1", "params": {"C": -1}}),
    "rule None": config(rule=None),
    "readout of another family": config(readout={"type": "rule:PA1", "params": {}}),
    "huge hash table": config(hash_bits=30),
    "small hash table": config(hash_bits=2),
    "other number of features": config(features=20),
    "declared in words": config(declared="yes"),
    "extra a list": config(extra=[1]),
    "a key missing": lambda config, arrays: config.pop("fit_intercept"),
    "weights of one dimension": arrays(v=np.zeros(19)),
    "weights too wide": arrays(v=np.zeros((19, 40))),
    "weights too long": arrays(v=np.zeros((20, 4))),
    "weights of float32": arrays(v=np.zeros((19, 4), np.float32)),
    "weights missing": lambda config, arrays: arrays.pop("v"),
    "sums too short": arrays(z=np.zeros((3, 4))),
    "bias too short": arrays(bias=np.zeros(1)),
    "slots of no rule": arrays(slots=np.zeros(3)),
    "an unknown array": arrays(**{"foo.bar": np.zeros(3)}),
    "nan weight": put("v", 5, np.nan),
    "infinite bias": put("bias", 0, np.inf),
    "scale 0": put("scalars", position("linear", "scale"), 0.0),
    "scale nan": put("scalars", position("linear", "scale"), np.nan),
    "negative t": put("scalars", position("linear", "t"), -3.0),
    "half a round": put("scalars", position("linear", "t"), 3.5),
    "too few names": names("f0"),
    "too many names": names(*(f"f{i}" for i in range(300))),
}


@pytest.mark.parametrize("form", ["f64", "named", "hashed"])
@pytest.mark.parametrize("what", FORGED)
def test_parts_that_disagree(what: str, form: str, tmp_path: Path) -> None:
    s = stream("multiclass")
    model = LinearModel(readout="average", hash_bits=6 if form == "hashed" else None)
    model.learn_many(s.X if form == "f64" else dicts(s.X), s.y)
    config, arrays = model.state()
    arrays = {key: value.copy() for key, value in arrays.items()}
    before = store.to_bytes("LinearModel", config, arrays)
    FORGED[what](config, arrays)
    forged = store.to_bytes("LinearModel", config, arrays)
    assert forged != before
    (tmp_path / "forged.onepass").write_bytes(forged)
    assert_refused(tmp_path / "forged.onepass", (ModelFileError, ParameterError))


@pytest.mark.parametrize(
    "change",
    [
        {"params": lambda params: params | {"colour": "red"}},
        {"params": lambda params: 5},
        {"params": lambda params: {}},
        {"params": lambda params: {name: value for name, value in params.items() if name != "rule"}},
        {"params": lambda params: params | {"rule": {"type": "rule:Evil", "params": {}}}},
        {"params": lambda params: params | {"rule": {"type": "rule:PA1", "params": {"C": -1.0}}}},
        {"params": lambda params: params | {"rule": {"learner": "os.system", "params": {}}}},
        {"params": lambda params: params | {"class_weight": {"keys": [1, 2], "values": [1.0]}}},
        {"fitted": lambda fitted: {"class_dtype": "zzz"}},
        {"fitted": lambda fitted: None},
    ],
)
def test_an_estimator_that_cannot_be_made(change: dict[str, Any], tmp_path: Path) -> None:
    learner = LinearClassifier()
    learner.learn_one({"a": 1.0}, "x")
    config, arrays = learner.state()
    config |= {part: forge(dict(config[part])) for part, forge in change.items()}
    store.write(tmp_path / "m.onepass", "LinearClassifier", config, arrays)
    with pytest.raises((ModelFileError, ParameterError)):
        onepass.load(tmp_path / "m.onepass")
    assert saved(LinearModel.load(tmp_path / "m.onepass")) == saved(learner)


@pytest.mark.parametrize("kind", ["os.system", "KernelClassifier", "LinearModel", "Pipeline", "linear"])
def test_an_estimator_under_another_kind(kind: str, tmp_path: Path) -> None:
    learner = LinearClassifier()
    learner.learn_one({"a": 1.0}, "x")
    store.write(tmp_path / "m.onepass", kind, *learner.state())
    assert_refused(tmp_path / "m.onepass", (ModelFileError, ParameterError))


@pytest.mark.parametrize("learned", [None, 5, {}, [], "all"])
def test_an_estimator_without_its_model(learned: Any, tmp_path: Path) -> None:
    learner = LinearClassifier()
    learner.learn_one({"a": 1.0}, "x")
    config, arrays = learner.state()
    store.write(tmp_path / "m.onepass", "LinearClassifier", {**config, "learned": learned}, arrays)
    assert_refused(tmp_path / "m.onepass", DamagedFileError)


def test_an_estimator_that_has_learned_nothing_has_no_model(tmp_path: Path) -> None:
    LinearClassifier("pa2").save(tmp_path / "m.onepass")
    assert onepass.load(tmp_path / "m.onepass").rule == "pa2"
    with pytest.raises(ParameterError, match="LinearClassifier that has learned nothing"):
        LinearModel.load(tmp_path / "m.onepass")


def test_loading_leaves_an_existing_model_alone(tmp_path: Path) -> None:
    learner = grid.Cell("pa1", "binary", "f64", "last").estimator()
    s = stream("binary")
    learner.fit(s.X, s.y)
    before = saved(learner)
    (tmp_path / "bad.onepass").write_bytes(small(tmp_path)[:-3])
    for load in (*LOADERS, type(learner._model).load):
        with pytest.raises(DamagedFileError):
            load(tmp_path / "bad.onepass")
    assert saved(learner) == before


# -- whatever a forged state raises inside is told as a damaged file

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.arange(30) % 3
COSTS = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
JUNK = [None, -1, 10**30, "x", [], [[]], {"a": 1}, {"array": [1], "dtype": "O"}, {"tuple": 5}]


def model_of(estimator: Any) -> Any:
    estimator.learn_many(X, Y)
    return estimator._model


MODELS: dict[str, Callable[[], Any]] = {
    "linear": lambda: model_of(LinearClassifier("arow", hash_bits=4)),
    "linear with costs": lambda: model_of(LinearClassifier(costs=COSTS).partial_fit(X, Y, classes=[0, 1, 2])),
    "full covariance": lambda: model_of(LinearClassifier("arow:covariance=full")),
    "kernel": lambda: model_of(onepass.KernelClassifier(budget="oldest:B=5")),
    "lasvm": lambda: model_of(onepass.LaSVMClassifier()),
    "ensemble": lambda: model_of(onepass.ExpertEnsemble(["pa1", "arow"])),
    "estimator": lambda: LinearClassifier(class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X, Y),
    "reduction": lambda: onepass.reductions.OneVsAll(onepass.GaussianNB()).fit(X, Y),
    "pipeline": lambda: (onepass.transforms.StandardScaler() | onepass.KernelClassifier()).fit(X, Y),
}


def places(config: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a configuration."""
    inside = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    return [*([at] if at else []), *(place for key, value in inside for place in places(value, (*at, key)))]


@pytest.mark.parametrize("name", MODELS)
def test_a_forged_state_raises_nothing_but_a_file_error(name: str) -> None:
    learner = MODELS[name]()
    _, config, arrays = store.from_bytes(store.to_bytes("any", *learner.state()), "state")
    refused = 0
    for place in places(config):
        for junk in JUNK:
            forged = pickle.loads(pickle.dumps(config))
            at = forged
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = junk
            try:
                type(learner).from_state(forged, arrays)
            except (ModelFileError, UnknownTypeError):
                refused += 1
    assert refused > len(places(config))
    for key, array in arrays.items():
        for other in (None, array[:-1], np.zeros((2, 2, 2)), np.full(array.shape, np.nan)):
            with contextlib.suppress(ModelFileError):
                parts = {**arrays, key: other} if other is not None else {k: v for k, v in arrays.items() if k != key}
                type(learner).from_state(config, parts)


# -- what `save` wrote always loads

GRAM = X @ X.T
INDICES = np.arange(30.0)[:, np.newaxis]
SAVED: dict[str, Callable[[], Any]] = {
    "costs": lambda: LinearClassifier(costs=COSTS).fit(X, Y),
    "costs as an array": lambda: LinearClassifier(costs=np.array(COSTS, dtype=float)).fit(X, Y),
    "costs of a kernel learner": lambda: onepass.KernelClassifier(costs=COSTS).fit(X, Y),
    "parameters that were changed": lambda: LinearClassifier().fit(X, Y).set_params(rule="poetry"),
    "a matrix": lambda: onepass.KernelClassifier(kernel=onepass.kernels.Precomputed(GRAM)).fit(INDICES, Y),
    "a matrix and nothing learned": lambda: onepass.KernelClassifier(kernel=onepass.kernels.Precomputed(GRAM)),
    "a matrix inside": lambda: onepass.drift.DriftReset(
        onepass.KernelClassifier(kernel=onepass.kernels.Precomputed(GRAM))
    ).fit(INDICES, Y),
}


@pytest.mark.parametrize("what", SAVED)
def test_what_was_saved_loads(what: str, tmp_path: Path) -> None:
    learner = SAVED[what]()
    learner.save(tmp_path / "m.onepass")
    again = onepass.load(tmp_path / "m.onepass")
    assert store.to_bytes("any", *again.state()) == store.to_bytes("any", *learner.state())
    assert repr(again.get_params()) == repr(learner.get_params())


def test_a_model_with_costs_becomes_an_estimator_with_costs(tmp_path: Path) -> None:
    model = LinearModel(classes=[0, 1, 2], costs=COSTS)
    model.learn_many(X, Y)
    model.save(tmp_path / "m.onepass")
    assert onepass.load(tmp_path / "m.onepass").costs.tolist() == COSTS
