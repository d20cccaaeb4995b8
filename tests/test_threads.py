"""Several threads, and what is left when a model is dropped."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import grid
import numpy as np
import pytest
from grid import saved, stream

import onepass as op
from onepass.linear import LinearClassifier, LinearRegressor
from onepass.model import LinearModel


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
        thread.join(20)
        assert not thread.is_alive()
    assert not failures, failures


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
from onepass import rules
from onepass.model import LinearModel
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
    assert set(arrays["v"].ravel().tolist()) <= {arrays["scalars"][5]}, "torn"
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
    gc.freeze()  # what other tests have left is not looked through each time
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
    gc.unfreeze()


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
