"""What tests of several files share as fixtures, and which tests run by default."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pairwise import cover, values_of

# Several workers share the processors; threads of linear algebra beside them would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest.register_assert_rewrite("support.estimator_checks")

# Where tests run in the background of a script, Ctrl-C is ignored, and by every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent


def within(folder: str, *names: str) -> set[str]:
    return {f"{folder}/test_{name}" for name in names}


# `pytest -m quick` runs these files: the promises, the formulas of the papers, the command, the contract of learners.
QUICK = {
    *within("promises", "promise_chunks", "kernel_promises", "native", "bad_input", "overflow", "learner_contract"),
    *within("persistence", "store", "store_writing"),
    *within("cli", "cli_learn", "cli_bad_input"),
    *within("streams", "streams_bad"),
    *within("reductions", "reductions"),
    *within(
        "papers",
        "perceptron",
        "passive_aggressive",
        "gaussian",
        "coordinate",
        "losses",
        "schedules",
        "averaging",
        "kernels",
        "kernel_learners",
        "naive_bayes",
    ),
}


def is_quick(path: Path) -> bool:
    return path.is_relative_to(TESTS) and str(path.relative_to(TESTS).with_suffix("")) in QUICK


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With -m quick the other files are not even imported, unless a test of theirs has the marker."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py" or is_quick(collection_path):
        return None
    return "mark.quick" not in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unless -m names them: of tests marked `full` a cover of their parameters, and no test that needs `data`.

    With -m quick such a cover has every value once, or as few cases as `quick` of the marker says.
    """
    for item in items:
        if is_quick(item.path):
            item.add_marker(pytest.mark.quick)
    left_out: set[pytest.Item] = set()
    if "data" not in named(config):
        left_out.update(item for item in items if item.get_closest_marker("data"))
    if "full" not in named(config) and not covers_are_early(config):
        left_out.update(beyond_covers(items, config.option.markexpr == "quick"))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def named(config: pytest.Config) -> set[str]:
    """The markers that -m names."""
    return set(re.findall(r"\w+", config.option.markexpr))


def covers_are_early(config: pytest.Config) -> bool:
    """Are covers taken before tests are made? Not where some cases are asked for by name: the cover is of these."""
    return not config.option.keyword and not any("[" in str(each) for each in config.args)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Of tens of thousands of cells most are beyond the cover: they cost no time and no memory."""
    yield
    marker, calls = metafunc.definition.get_closest_marker("full"), metafunc._calls
    if marker and calls and "full" not in named(metafunc.config) and covers_are_early(metafunc.config):
        kept = covered(marker, [call.params for call in calls], metafunc.config.option.markexpr == "quick")
        metafunc._calls = [call for at, call in enumerate(calls) if at in kept]


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def beyond_covers(items: list[pytest.Item], quick: bool) -> Iterator[pytest.Item]:
    grids: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("full"):
            grids.setdefault(item.nodeid.split("[")[0], []).append(item)
    for grid in grids.values():
        marker = grid[0].get_closest_marker("full")
        assert marker is not None
        kept = covered(marker, [item.callspec.params for item in grid], quick)  # type: ignore[attr-defined]
        yield from (item for at, item in enumerate(grid) if at not in kept)


def covered(marker: pytest.Mark, cells: list[dict[str, Any]], quick: bool) -> set[int]:
    """The places of the cells that are in the cover."""
    options = dict(marker.kwargs)
    few = options.pop("quick", options.get("most"))
    if quick:
        options |= {"strength": 1, "most": few}
    return set(cover([values_of(cell) for cell in cells], **options))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many cells the tests that count them have tried."""
    reports = (report for name in ("passed", "failed") for report in terminalreporter.stats.get(name, []))
    counts = [value for report in reports for name, value in report.user_properties if name == "cells"]
    if counts:
        terminalreporter.write_line(f"{sum(counts):,} cells of the learners' contract tried")


@pytest.fixture
def grids_are_whole(request: pytest.FixtureRequest) -> bool:
    """For a grid within a test: was it run with -m full?"""
    return "full" in re.findall(r"\w+", request.config.option.markexpr)


def pytest_runtest_setup(item: pytest.Item) -> None:
    folder = os.environ.get("ONEPASS_DATA")
    if item.get_closest_marker("data") and not (folder and Path(folder).is_dir()):
        pytest.fail("tests marked `data` read real sets: set ONEPASS_DATA to the folder that holds them", pytrace=False)


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests without the marker `data` have no sets of an earlier download, and reach no other machine."""
    if request.node.get_closest_marker("data"):
        return
    monkeypatch.setenv("ONEPASS_CACHE", os.devnull)
    resolve = socket.getaddrinfo

    def near(host: Any, *more: Any, **options: Any) -> Any:
        if host not in (None, "", "localhost", "127.0.0.1", "::1"):
            raise OSError(f"tests that reach {host} need the marker `data`")
        return resolve(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", near)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of models are saved: that they survive a power cut is test_store_writing's business."""
    if request.path.stem != "persistence/test_store_writing":
        monkeypatch.setattr("os.fsync", lambda handle: None)


@pytest.fixture
def threads_change_often() -> Iterator[None]:
    """Threads take turns within lines, not every 5 ms: what is not whole shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
