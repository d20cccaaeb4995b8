"""What tests of several files share as fixtures, and which tests run by default."""

from __future__ import annotations

import os
import re
import signal
import socket
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

QUICK = {
    "test_pairwise",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unless -m names them: of tests marked `full` a cover of their parameters, and no test that needs `data`.

    With -m quick such a cover has every value once.
    """
    for item in items:
        if item.path.stem in QUICK:
            item.add_marker(pytest.mark.quick)
    named = set(re.findall(r"\w+", config.option.markexpr))
    left_out: set[pytest.Item] = set()
    if "data" not in named:
        left_out.update(item for item in items if item.get_closest_marker("data"))
    if "full" not in named:
        left_out.update(beyond_covers(items, config.option.markexpr == "quick"))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def beyond_covers(items: list[pytest.Item], quick: bool) -> Iterator[pytest.Item]:
    grids: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("full"):
            grids.setdefault(item.nodeid.split("[")[0], []).append(item)
    for grid in grids.values():
        options = dict(grid[0].get_closest_marker("full").kwargs)
        if quick:
            options["strength"] = 1
        calls = [item.callspec for item in grid]  # type: ignore[attr-defined]
        kept = set(cover([values_of(call.params) for call in calls], **options))
        yield from (item for at, item in enumerate(grid) if at not in kept)


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
    if request.path.stem != "test_store_writing":
        monkeypatch.setattr("os.fsync", lambda handle: None)
