"""Nothing changes unnoticed: learners, the command and the documents' rules do what was recorded, to the bit.

The same on every instruction set. What goes through BLAS or libm may differ a little: see `runs.INEXACT_STATE`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

import onepass as op
from golden import commands, documents, learners
from golden.cells import FAMILIES, cells
from golden.cover import cover
from golden.record import AGAIN, COMMANDS, LEARNERS, changes, commands_now, learners_now, printed_now, read
from golden.rule_table import RULES
from onepass import _native, budgets, drift, reductions, rules, transforms
from onepass.compose import continual

USED = _native.isa()
OTHERS = [isa for isa in _native.isas() if isa != USED]


@pytest.fixture
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    _native.use_isa(request.param)
    yield request.param
    _native.use_isa(USED)


def require_recorded(recorded: dict[str, Any], found: dict[str, Any], names: Iterable[str]) -> None:
    wanted = {name: recorded[name] for name in names if name in recorded}
    lines = list(changes(wanted, found))
    assert not lines, "\n".join([f"{len(lines)} of {len(found)} changed", *lines[:10], "", AGAIN])


@pytest.mark.parametrize("family", cells())
def test_learners_do_what_was_recorded(family: str) -> None:
    found = learners_now(cells()[family])
    require_recorded(read(LEARNERS), found, found)


@pytest.mark.parametrize("family", cells())
@pytest.mark.parametrize("instruction_set", OTHERS, indirect=True)
def test_every_instruction_set_gives_the_same(instruction_set: str, family: str) -> None:
    """Every eighth cell with each; settings.py tries them all."""
    found = learners_now(cells()[family][OTHERS.index(instruction_set) :: 8])
    require_recorded(read(LEARNERS), found, found)


@pytest.mark.parametrize("scenario", commands.SCENARIOS)
def test_the_command_prints_and_writes_what_was_recorded(scenario: str) -> None:
    found = commands_now(scenario)
    require_recorded(read(COMMANDS), found, found)


def test_the_documents_code_prints_what_was_recorded() -> None:
    found = printed_now()
    require_recorded(read(COMMANDS), found, found)


def test_each_cell_and_each_command_is_recorded_once() -> None:
    names = [cell.name for family in cells().values() for cell in family]
    assert len(names) == len(set(names)) >= 500
    assert sorted(names) == list(read(LEARNERS)), AGAIN
    lines = [
        f"{scenario}: {number}. {line}"
        for scenario, each in commands.SCENARIOS.items()
        for number, line in enumerate(each, start=1)
    ]
    assert sorted([*lines, *printed_now()]) == list(read(COMMANDS)), AGAIN


def test_every_learner_rule_budget_and_detector_is_in_a_cell() -> None:
    every = [cell for family in cells().values() for cell in family]
    bare = {type(learners.bare(cell)).__name__ for cell in every}
    rooms = (op, reductions, transforms, continual, op.compose)
    public = {name for room in rooms for name in room.__all__ if hasattr(getattr(room, name), "learn_one")} - {
        "Learner",
        "ReferenceLearner",
    }
    assert {"LinearClassifier", "OneVsAll", "Pipeline", "Replay", "DriftReset"} <= public
    assert public <= bare, public - bare
    assert set(rules.RULES) == {text.partition(":")[0] for text in RULES}
    assert set(budgets.BUDGETS) == {cell.budget.partition(":")[0] for cell in every} - {"-"}
    assert set(drift.registry.DETECTORS) == {cell.detector for cell in every} - {"-"}
    assert {cell.rule for cell in every} >= {*RULES, *documents.RULES}


@pytest.mark.parametrize("family", ["structured", "transform", "ensemble", "documents"])
def test_the_cover_has_every_possible_pair(family: str) -> None:
    axes, possible = FAMILIES[family]
    wanted = set()
    for values in itertools.product(*axes.values()):
        choice = dict(zip(axes, values, strict=True))
        if possible(choice):
            wanted |= set(itertools.combinations(choice.items(), 2))
    chosen = cover(axes, possible)
    assert all(map(possible, chosen))
    assert {pair for choice in chosen for pair in itertools.combinations(choice.items(), 2)} == wanted
