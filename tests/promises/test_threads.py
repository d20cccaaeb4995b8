"""Several threads, and what is left when a model is dropped."""

from __future__ import annotations

import ast
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from support import grid
from support.grid import saved, stream

import onepass as op
from onepass.drift import DriftReset
from onepass.estimators.linear import LinearClassifier, LinearRegressor
from onepass.models.base import restore
from onepass.models.linear import LinearModel
from onepass.rules import make as parse_rule
from onepass.scheme.parameters import read_value


def in_threads(*jobs: Any) -> None:
    failures: list[BaseException] = []

    def guarded(job: Any) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not failures, failures


def test_texts_are_read_without_the_interpreters_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python 3.11 `ast.parse` raises SystemError now and then when several threads are in it."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("ast.parse was called")

    monkeypatch.setattr(ast, "parse", refuse)
    assert parse_rule("pa1:C=0.25,epsilon=5") == parse_rule("pa1: 2.5e-1, epsilon=0x5")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1_000", 1000),
        ("-2.5", -2.5),
        (".5", 0.5),
        ("none", None),
        ("(1, 2.5)", (1, 2.5)),
        ("(3)", 3),
        ("'a'", "a"),
        ("nan", "nan"),
    ],
)
def test_texts_stand_for_python_values(text: str, value: Any) -> None:
    read = read_value(text)
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("name", ["pa1", "user-python", "user-c"])
def test_two_models_learn_at_once(name: str) -> None:
    s = stream("multiclass", n=2000)

    def learned() -> LinearClassifier:
        learner = LinearClassifier(grid.make_rule(name))
        for start in range(0, 2000, 50):
            learner.partial_fit(s.X[start : start + 50], s.y[start : start + 50], classes=s.classes)
        return learner

    got: dict[int, bytes] = {}
    in_threads(*(lambda i=i: got.update({i: saved(learned())}) for i in range(3)))
    assert list(got.values()) == [saved(learned())] * 3


HEAD = """
import pickle, threading
import numpy as np
from onepass import _native, rules
from onepass.models.linear import LinearModel
"""
# In processes of their own: a crash takes only itself down.
SHARED = {
    # Every update adds 1 to every weight, so that a snapshot taken between two rounds has all weights equal to t.
    "readers see whole rounds": """
X = np.ones((3000, 10_000))
model = LinearModel(rules.SGD("absolute", "constant", eta=1.0), "regression", fit_intercept=False)
passes, snapshots = [], 0
def write():
    while snapshots < 2 and len(passes) < 100:  # on a busy machine the reader may wait long for its turn
        passes.append(1)
        for start in range(0, 3000, 50):
            model.learn_many(X[start : start + 50], np.full(50, 1e300))
writers = [threading.Thread(target=write) for _ in range(2)]
[w.start() for w in writers]
while any(w.is_alive() for w in writers):
    arrays = pickle.loads(pickle.dumps(model)).state()[1]
    snapshots += 1
    assert set(arrays["v"].ravel().tolist()) <= {arrays["scalars"][_native.saved["linear"].index("t")]}, "torn"
assert model.t == 3000 * len(passes) and snapshots > 1, (model.t, passes, snapshots)
""",
    # New classes move the weights to a wider table while the other thread works on them.
    "classes grow": """
X = np.random.default_rng(0).normal(size=(400, 20_000))
for trial in range(15):
    model = LinearModel("perceptron:beta=1e9")
    model.learn_many(X[:3], ["a", "b", "c"])
    writer = threading.Thread(target=model.learn_many, args=(X, ["a"] * 400))
    writer.start()
    for i in range(20):
        model.learn_many(X[:1], [f"new {i}"])
    writer.join()
    assert (model.t, len(model.classes)) == (423, 23), (model.t, model.classes)
    assert np.isfinite(model.score_many(X[:5])).all()
""",
}


@pytest.mark.parametrize("what", SHARED)
def test_one_model_in_many_threads(what: str) -> None:
    run = subprocess.run([sys.executable, "-c", HEAD + SHARED[what]], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr[-2000:]


@pytest.mark.parametrize("name", ["pa1", "user-python", "user-c"])
def test_models_are_collected(name: str) -> None:
    """A model's engine calls back into the model: a circle that the collector must see through."""
    s = stream("binary")
    for make in (LinearModel, LinearClassifier, LinearRegressor):
        learner = make(grid.make_rule(name))
        learner.learn_many(s.X, s.y if make is not LinearRegressor else s.X[:, 0])
        copy = pickle.loads(pickle.dumps(learner))
        model = learner if isinstance(learner, LinearModel) else learner._model
        watched = [weakref.ref(learner), weakref.ref(copy), weakref.ref(model), weakref.ref(model.rule)]
        if name == "user-c":
            watched.pop()  # the one C rule is kept by its maker
        del learner, copy, model
        gc.collect()
        assert [ref() for ref in watched] == [None] * len(watched)


def test_a_new_name_that_stands_twice_is_one_feature_whoever_meets_it_meanwhile(tmp_path: Path) -> None:
    """Between the two, another thread may have given the name its column."""
    g = np.random.default_rng(0)
    path = tmp_path / "twice.vw"
    with path.open("w") as file:
        for row in range(700):
            names = " ".join(f"w{n}" for n in g.integers(10**7, size=150))
            file.write(f"{row % 2} | {names} {names}\n")
    made = set()
    for threads in (1, 2, 4, 2, 4):
        for block_size in (1 << 14, 1 << 17):
            model = LinearModel("pa1", "binary")
            for chunk in op.stream(path, threads=threads, block_size=block_size).batches():
                assert np.diff(chunk.X.indptr).max() <= 150
                model.learn_many(chunk.X, chunk.y)
            made.add(saved(model))
    assert len(made) == 1


# -- the lock of a learner ---------------------------------------------------------------------------------------------


def test_ctrl_c_reaches_who_waits_for_a_learner() -> None:
    learner = op.LinearClassifier()
    learner.learn_one([1.0], "a")
    held, done = threading.Event(), threading.Event()

    def use() -> None:
        with learner._lock:
            held.set()
            done.wait(30)

    user = threading.Thread(target=use)
    user.start()
    held.wait(30)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            learner.learn_many(np.ones((3, 1)), ["a"] * 3)
        assert time.monotonic() - began < 10
        assert user.is_alive()
    finally:
        done.set()
        user.join(30)
    assert learner.t_ == 1
    learner.learn_one([1.0], "a")
    assert learner.t_ == 2


def test_who_waits_has_its_turn() -> None:
    """However eagerly others learn: the first to wait is the next."""
    X = np.random.default_rng(0).normal(size=(3000, 20))
    learner = op.LinearClassifier()
    asked, enough = 0, threading.Event()

    def write() -> None:
        while not enough.wait(0):
            learner.learn_many(X, X[:, 0] > 0)

    def read() -> None:
        nonlocal asked
        try:
            for _ in range(20):
                learner.predict_one(X[0])
                asked += 1
        finally:
            enough.set()

    in_threads(write, write, read)
    assert asked == 20


def test_copies_have_locks_of_their_own() -> None:
    """Or a copy would wait for its original; and an estimator and the model in it have one together."""
    learner = op.LinearClassifier()
    learner.learn_one([1.0], "a")
    twins = [learner.copy(), pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner), clone(learner)]
    twins.append(type(learner).from_state(*learner.state()))
    twins.append(type(learner).of_model(learner._model.copy()))
    for twin in twins:
        twin.learn_one([1.0], "a")
        assert twin._model is not None and twin._lock is twin._model._lock is twin._model._engine.lock
    assert len({id(each._lock) for each in (learner, *twins)}) == len(twins) + 1


@pytest.mark.parametrize("make", [LinearModel, op.KernelModel])
def test_a_model_and_its_engine_have_one_lock(make: Any) -> None:
    model = make()
    model.learn_one([1.0], "a")
    for each in (model, model.copy(), pickle.loads(pickle.dumps(model)), make.from_state(*model.state()), clone(model)):
        assert each._lock is each._engine.lock


def test_a_copy_has_no_more_attributes_than_its_original() -> None:
    for learner in (op.LinearClassifier(), op.GaussianNB(), DriftReset()):
        for twin in (learner.copy(), pickle.loads(pickle.dumps(learner))):
            assert vars(twin).keys() == vars(learner).keys()


def test_a_model_and_the_estimator_made_of_it_share_their_lock() -> None:
    model = LinearModel()
    model.learn_one([1.0], "a")
    assert op.LinearClassifier.of_model(model)._lock is model._lock


@pytest.mark.usefixtures("threads_change_often")
def test_a_refused_call_hides_nothing_from_others() -> None:
    """A refusal sets the attributes back; who looks meanwhile finds all of them."""
    X = np.eye(3)
    learner = op.LinearClassifier().fit(X, ["a", "b", "a"])

    done = threading.Event()

    def refused() -> None:
        with pytest.raises(ValueError):
            learner.fit(np.full((3, 3), np.nan), ["a", "b", "a"])
        before = dict(vars(learner))
        while not done.is_set():
            restore(learner, before)  # what such a call ends with

    def look() -> None:
        try:
            for _ in range(20_000):
                assert learner.rule == "pa1" and learner.predict_one(X[0]) in ("a", "b")
        finally:
            done.set()

    in_threads(refused, look)


def test_a_thread_that_outlives_the_program_is_not_complained_of() -> None:
    program = """
import threading, onepass
begun = threading.Event()
def serve(learner):
    learner.learn_one([1.0], "a")
    begun.set()
    threading.Event().wait()
threading.Thread(target=serve, args=(onepass.GaussianNB(),), daemon=True).start()
begun.wait()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
