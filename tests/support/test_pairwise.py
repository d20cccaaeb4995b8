"""The covers: every pair is there, and few cells are needed."""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .pairwise import Meeting, Values, cover, meetings, values_of


def met(cells: list[Values], strength: int = 2) -> set[Meeting]:
    return set().union(*(meetings(cell, strength) for cell in cells))


def kept(cells: list[Values], strength: int = 2) -> list[Values]:
    return [cells[at] for at in cover(cells, strength)]


@pytest.mark.parametrize("strength", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(2, 3, 4), (7, 5, 3, 4), (10, 10), (4,)], ids=str)
def test_a_cover_has_every_meeting_of_its_grid_and_few_cells(sizes: tuple[int, ...], strength: int) -> None:
    cells: list[Values] = list(itertools.product(*map(range, sizes)))
    some = kept(cells, strength)
    assert met(some, strength) == met(cells, strength)
    least = 1
    for size in sorted(sizes)[-strength:]:
        least *= size
    assert least <= len(some) <= 2 * least
    assert some == sorted(some)


def test_pairs_that_a_constraint_excludes_are_not_asked_for() -> None:
    cells: list[Values] = [
        (letter, number, flag)
        for letter, number, flag in itertools.product("abc", range(4), (False, True))
        if flag or number < 2
    ]
    assert set(kept(cells)) < set(cells)
    assert met(kept(cells)) == met(cells)


def test_cells_are_taken_apart_and_lists_go_by_their_identity() -> None:
    @dataclasses.dataclass(frozen=True)
    class Cell:
        letter: object
        number: int

    wrong, box = [1, 2], Cell([1.0], 3)
    assert values_of({"cell": Cell("a", 3), "form": "dense", "wrong": wrong}) == ("a", 3, "dense", id(wrong))
    assert values_of({"cell": box}) == (id(box),)


TESTS = Path(__file__).parent.parent
GRID = """
import pytest
@pytest.mark.full
@pytest.mark.parametrize("a", [[1], [2], [3]])
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("c", range(3))
def test_grid(a, b, c): pass

@pytest.mark.full(strength=1, most=4, quick=2)
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", range(5))
def test_seeds(a, b): pass

@pytest.mark.data
def test_data(): pass

def test_plain(): pass
"""
MARKED = """
import pytest
@pytest.mark.quick
def test_marked(): pass

def test_unmarked(): pass
"""


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], {"grid": 10, "seeds": 4, "plain": 1, "marked": 1, "unmarked": 1}),
        (["-m", "full"], {"grid": 27, "seeds": 15}),
        (["-m", "data"], {"data": 1}),
        (["-m", "quick"], {"grid": 3, "seeds": 2, "plain": 1, "marked": 1}),
    ],
    ids=str,
)
def test_what_runs(arguments: list[str], wanted: dict[str, int], tmp_path: Path) -> None:
    """By default, and with the markers that CONTRIBUTING.md names."""
    (tmp_path / "test_some.py").write_text(GRID)
    (tmp_path / "test_marked.py").write_text(MARKED)
    (tmp_path / "test_slow.py").write_text("raise ImportError" if arguments == ["-m", "quick"] else "")
    configured = (TESTS / "conftest.py").read_text()
    (tmp_path / "conftest.py").write_text(configured.replace("QUICK = {", "QUICK = {'test_some',"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    quick\n    data\n    full\n")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=tmp_path, env=env, text=True, capture_output=True, check=True)
    found = Counter(line.split("::test_")[1].split("[")[0] for line in done.stdout.splitlines() if "::" in line)
    assert found == wanted
