"""A process that is forked while threads learn and read: what was idle works in the child, what was not says so, and
nothing hangs. Learners in other processes, however these are started."""

from __future__ import annotations

import contextlib
import multiprocessing
import operator
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_concurrency import contents, learn
from test_learner_contract import CASES

import onepass as op
from onepass.checks.streams import streams_for
from onepass.checks.wrappers import WRAPPERS
from onepass.drift import DriftReset
from onepass.errors import ForkedError, InputError

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


def in_child(work: Callable[[], Any]) -> str:
    """What a forked child says of its work; where it hangs, nothing."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            os.write(write, str(work()).encode())
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(pid, 0)
    return said


@contextlib.contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Another thread does some work again and again."""
    stop = threading.Event()

    def again() -> None:
        while not stop.is_set():
            work()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


@contextlib.contextmanager
def in_use(learners: list[Any]) -> Iterator[None]:
    """Another thread is using the learners."""
    held, done = threading.Event(), threading.Event()

    def use() -> None:
        with contextlib.ExitStack() as stack:
            for learner in learners:
                stack.enter_context(learner._lock)
            held.set()
            done.wait(60)

    thread = threading.Thread(target=use)
    thread.start()
    held.wait(60)
    try:
        yield
    finally:
        done.set()
        thread.join(60)


def every_learner() -> list[Any]:
    """A learner of each kind that has learned a little, and what it learns next."""
    made = []
    for case in CASES:
        learner = case.values[0]()
        stream = streams_for(learner.traits)[0]
        learn(learner, stream, 0, 10)
        made.append((learner, stream))
    for kind, wrapper in WRAPPERS.items():
        learner = wrapper.make(op.LinearClassifier())
        stream = streams_for(learner.traits, ("a", "b", "c"))[0] if kind != "Pipeline" else made[0][1]
        learn(learner, stream, 0, 10)
        made.append((learner, stream))
    return made


def test_what_was_idle_goes_on_in_the_child() -> None:
    """Another thread is learning all the while, though something else."""
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    busy, made = op.LinearClassifier(), every_learner()
    busy.learn_many(X[:10], X[:10, 0] > 0)

    def learn_on() -> str:
        for learner, stream in made:
            learn(learner, stream, 10, len(stream))
        return str(hash(b"".join(contents(learner) for learner, _ in made)))

    with meanwhile(lambda: busy.learn_many(X, X[:, 0] > 0)):
        said = [in_child(learn_on) for _ in range(2)]
    assert said == [learn_on()] * 2


def test_what_was_in_use_says_so_in_the_child(record_property: Callable[..., None]) -> None:
    """Learning, predicting, saving, copying: all of it is refused. The parent goes on."""
    made = every_learner()
    refused = []

    def use() -> str:
        for learner, stream in made:
            X = stream.part(0, 3)[0]
            ask = learner.transform_many if learner.traits.answers == "row" else learner.predict_many
            for verb in (lambda: learn(learner, stream, 10, 12), lambda: ask(X), learner.state, learner.copy):  # noqa: B023
                try:
                    verb()
                except ForkedError as error:
                    refused.append(str(error))
        return f"{len(refused)} of {4 * len(made)}: {refused[0]}"

    with in_use([learner for learner, _ in made]):
        said = in_child(use)
    assert said.startswith(
        f"{4 * len(made)} of {4 * len(made)}: another thread was using this learner when the process"
    )
    for learner, stream in made:
        learn(learner, stream, 10, 12)


@pytest.mark.parametrize("name", ["pa1", "arow"])
def test_a_fork_in_the_middle_of_a_batch_does_not_hang(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    y = np.where(X[:, 0] > 0, "a", "b")
    for learner in (op.LinearClassifier(name), DriftReset(op.LinearClassifier(name)), op.GaussianNB()):
        learner.learn_many(X[:50], y[:50])

        def use(learner: Any = learner) -> str:
            learner.learn_one(X[0], "a")
            return "learned" if contents(learner.copy()) == contents(learner) else "torn"

        with meanwhile(lambda learner=learner: learner.learn_many(X, y)):  # type: ignore[misc]
            said = {in_child(use).partition(":")[0] for _ in range(5)}
        assert said <= {"ForkedError", "learned"}, said
        assert use() == "learned"


def test_who_forks_while_using_a_learner_goes_on_using_it() -> None:
    learner = op.LinearClassifier()
    learner.learn_one([1.0], "a")
    with learner._lock:
        assert in_child(lambda: learner.predict_one([1.0])) == "a"


def test_a_copy_of_before_the_fork_works() -> None:
    learner = op.LinearClassifier()
    learner.learn_one([1.0], "a")
    with in_use([learner]):
        pass
    twin = learner.copy()
    with in_use([learner]):
        assert in_child(lambda: twin.predict_one([1.0])) == "a"


# -- streams -----------------------------------------------------------------------------------------------------------


def written(format: str, path: Path, rows: int = 3000) -> Path:
    lines = {
        "vw": lambda i: f"{i % 2} | a:{i} w{i} w{i + 1}",
        "csv": lambda i: f"{i},{i % 7},{i % 2}",
        "jsonl": lambda i: f'{{"a": {i}, "y": {i % 2}}}',
    }[format]
    head = ["a,b,y"] if format == "csv" else []
    path.write_text("\n".join([*head, *map(lines, range(rows))]) + "\n")
    return path


def opened(path: Path, **options: Any) -> Any:
    return op.stream(path, block_size=1 << 12, **({} if path.suffix == ".vw" else {"label": "y"}), **options)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("format", ["vw", "csv", "jsonl", "cached"])
def test_a_stream_that_was_begun_ends_with_an_error_in_the_child(format: str, threads: int, tmp_path: Path) -> None:
    path = written("vw" if format == "cached" else format, tmp_path / f"rows.{format.replace('cached', 'vw')}")
    options = {"threads": threads} | ({"cache": tmp_path / "cache"} if format == "cached" else {})
    whole = sum(len(y) for _, y in opened(path, **options).chunks(100))
    for cache in (True, False):  # a cache that is read, and one that is written
        if not cache:
            (tmp_path / "cache").unlink(missing_ok=True)
        chunks = opened(path, **options).chunks(100)
        rows = len(next(chunks)[1])
        said = in_child(lambda chunks=chunks: sum(len(y) for _, y in chunks))
        assert said.startswith(f"{InputError.__name__}: a stream that was begun does not go on in a forked process")
        assert in_child(lambda: sum(len(y) for _, y in opened(path, threads=threads).chunks(100))) == str(whole)
        assert rows + sum(len(y) for _, y in chunks) == whole
    assert sum(len(y) for _, y in opened(path, **options).chunks(100)) == whole


def test_a_parser_without_its_threads_is_refused_in_the_child() -> None:
    parser = op._native.Parser("vw", -1, 0, False, None, 2, False, 1 << 20)
    block = bytearray(b"1 | a\n" + bytes(op._native.PADDING))
    refused = "RuntimeError: the threads of this parser do not exist in a forked process"
    assert in_child(lambda: parser.submit(block, 0, 6, None)) == refused
    parser.submit(block, 0, 6, None)
    assert in_child(parser.take) == refused
    assert len(parser.take()) == 1


def test_a_fork_while_another_thread_reads_does_not_hang(tmp_path: Path) -> None:
    path = written("vw", tmp_path / "rows.vw", rows=20_000)

    def count() -> int:
        return sum(len(y) for _, y in opened(path, threads=2).chunks(1000))

    with meanwhile(lambda: str(count())):  # type: ignore[arg-type, return-value]
        assert {in_child(count) for _ in range(6)} == {"20000"}


# -- other processes ---------------------------------------------------------------------------------------------------


@pytest.mark.full(most=1)
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_learner_goes_to_a_process_however_that_is_started(method: str) -> None:
    learner = DriftReset(op.LinearClassifier())
    learner.learn_many(np.eye(3), ["a", "b", "c"])
    with multiprocessing.get_context(method).Pool(1) as pool:
        said = pool.map(operator.methodcaller("predict_many", np.eye(3)), [learner])
    assert [each.tolist() for each in said] == [learner.predict_many(np.eye(3)).tolist()]


@pytest.mark.full(most=1)
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_learner_goes_through_joblib(backend: str) -> None:
    import joblib

    learner = op.LinearClassifier()
    learner.learn_many(np.eye(3), ["a", "b", "c"])
    jobs = [joblib.delayed(operator.methodcaller("predict_many", np.eye(3)))(learner) for _ in range(3)]
    said = joblib.Parallel(2, backend=backend)(jobs)
    assert [each.tolist() for each in said] == [learner.predict_many(np.eye(3)).tolist()] * 3
