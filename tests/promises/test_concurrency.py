"""One learner in several threads: one learns, one saves and copies, two predict. Every file loads and holds what some
moment's learner had learned; every prediction is one that some moment's learner gives."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_learner_contract import CASES
from test_threads import in_threads

import onepass as op
from onepass import _native
from onepass.checks.streams import LearnerStream, streams_for
from onepass.checks.wrappers import WRAPPERS, labels_for
from onepass.persistence import registry, store

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk", "threads_change_often")

PROBES, CHUNK = 5, 6
# About parameters, not about what is learned.
PARAMETERS = {"traits", "get_params", "set_params", "get_metadata_routing", "set_output"}
# scikit-learn's, made of two verbs that hold it, one after the other.
TWO_VERBS = {"fit_predict", "fit_transform", "score"}


def contents(learner: Any) -> bytes:
    return store.to_bytes("check", *learner.state())


def answers(learner: Any, stream: LearnerStream) -> bytes:
    """What it makes of the first rows, in one call."""
    X = stream.part(0, PROBES)[0]
    many = learner.transform_many(X) if learner.traits.answers == "row" else learner.predict_many(X)
    if hasattr(many, "csr"):
        names = None if many.table is None else list(many.table.names(0, many.columns))
        many = repr((many.csr, many.dense, names))
    many = many.toarray() if hasattr(many, "toarray") else many
    return pickle.dumps(many.tolist() if isinstance(many, np.ndarray) else many)


def learn(learner: Any, stream: LearnerStream, start: int, stop: int) -> None:
    """One row by `learn_one`, more by `learn_many`."""
    X, y = stream.part(start, stop)
    more = (y,) if learner.traits.supervised else ()
    if stop - start > 1:
        learner.learn_many(X, *more)
    else:
        x, y = stream.examples[start]
        learner.learn_one(x, *((y,) if learner.traits.supervised else ()))


def moments(learner: Any, stream: LearnerStream) -> tuple[set[bytes], set[bytes]]:
    """The contents and the answers after each number of rows."""
    one = learner.copy()
    files, said = {contents(one)}, {answers(one, stream)}
    for row in range(len(stream)):
        learn(one, stream, row, row + 1)
        files.add(contents(one))
        said.add(answers(one, stream))
    return files, said


def share(learner: Any, stream: LearnerStream, path: Path, rounds: int) -> int:
    """How many files, copies and predictions were seen; all of them are of some moment."""
    files, said = moments(learner, stream)
    seen = 0
    for _ in range(rounds):
        one, begin, done = learner.copy(), threading.Barrier(4), threading.Event()

        def write(one: Any = one, begin: Any = begin, done: Any = done) -> None:
            begin.wait(30)
            try:
                for start in range(0, len(stream) // 2):
                    learn(one, stream, start, start + 1)
                for start in range(len(stream) // 2, len(stream), CHUNK):
                    learn(one, stream, start, min(start + CHUNK, len(stream)))
            finally:
                done.set()

        def while_it_learns(look: Callable[[], None], begin: Any = begin, done: Any = done) -> None:
            nonlocal seen
            begin.wait(30)
            while True:
                last = done.is_set()
                look()
                seen += 1
                if last:
                    return

        def save(one: Any = one) -> None:
            one.save(path)
            loaded = op.load(path)
            if registry.kind_of(one) == registry.kind_of(loaded):
                assert contents(loaded) in files, "the file holds what the learner never was"
            assert contents(pickle.loads(pickle.dumps(one))) in files, "the pickle holds what the learner never was"
            assert contents(one.copy()) in files, "the copy holds what the learner never was"
            assert contents(one) in files, "the state is one that the learner never had"

        def predict(one: Any = one) -> None:
            assert answers(one, stream) in said, "no moment's learner answers so"
            assert one.nbytes >= 0

        in_threads(write, *(lambda look=look: while_it_learns(look) for look in (save, predict, predict)))
        assert contents(one) in files
    return seen


@pytest.mark.parametrize("make", CASES)
def test_a_state_is_of_one_moment_and_stays_so(make: Callable[[], Any]) -> None:
    """It shares no array with the learner, and nothing of its configuration."""
    learner = make()
    for stream in streams_for(learner.traits):
        one, half = learner.copy(), len(stream) // 2
        learn(one, stream, 0, half)
        state = one.state()
        before = store.to_bytes("check", *state)
        for start in range(half):  # one by one first: chunks may put a new state in the place of the old one
            learn(one, stream, start, start + 1)
        learn(one, stream, half, len(stream))
        assert store.to_bytes("check", *state) == before


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_public_verb_holds_the_lock(kind: str) -> None:
    of = registry.class_of(kind)
    missing = []
    for name in dir(of):
        found = inspect.getattr_static(of, name)
        verb = getattr(found, "fn", found)  # of `available_if`
        verb = verb.fget if isinstance(verb, property) else verb
        if name.startswith("_") or not callable(verb) or isinstance(verb, type) or name in PARAMETERS:
            continue
        ours = inspect.unwrap(verb).__module__.startswith("onepass")
        assert ours or name in TWO_VERBS or name.startswith("set_"), name
        while not isinstance(verb, _native.LockedFunction) and hasattr(verb, "__wrapped__"):
            verb = verb.__wrapped__
        if ours and not isinstance(verb, _native.LockedFunction) and not hasattr(verb, "__unlocked__"):
            missing.append(name)
    assert not missing


@pytest.mark.full(strength=1)
@pytest.mark.parametrize("form", ["rows", "names"])
@pytest.mark.parametrize("make", CASES)
def test_a_learner_is_shared(
    make: Callable[[], Any], form: str, tmp_path: Path, grids_are_whole: bool, record_property: Callable[..., None]
) -> None:
    learner = make()
    for stream in streams_for(learner.traits):
        if stream.form == form or form not in learner.traits.forms:
            record_property("observations", share(learner, stream, tmp_path / "m", 20 if grids_are_whole else 2))
            return


PAIRS = [
    pytest.param(case.values[0], kind, id=f"{case.id}-{kind}")
    for case in CASES
    for kind in WRAPPERS
    if WRAPPERS[kind].takes(case.values[0]().traits)
]


@pytest.mark.full(strength=1)
@pytest.mark.parametrize(("make", "kind"), PAIRS)
def test_a_wrapper_is_shared(
    make: Callable[[], Any], kind: str, tmp_path: Path, grids_are_whole: bool, record_property: Callable[..., None]
) -> None:
    learner = make()
    wrapped = WRAPPERS[kind].make(learner)
    traits = dataclasses.replace(wrapped.traits, values=learner.traits.values)
    stream = streams_for(traits, labels_for(kind))[0]
    record_property("observations", share(wrapped, stream, tmp_path / "m", 20 if grids_are_whole else 1))
