"""A pairwise cover: few combinations of the values of several axes in which every possible pair occurs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

Choice = dict[str, str]
Pair = frozenset[tuple[str, str]]


def cover(axes: Mapping[str, Sequence[str]], possible: Callable[[Choice], bool]) -> list[Choice]:
    """Choices of a value for every axis, greedily, until each pair that some possible choice has is in one of them.

    `possible` judges partial choices too: it must not refuse for a value that is not there yet. The result depends on
    nothing but the arguments.
    """
    uncovered = dict.fromkeys(pairs(axes))
    used: dict[tuple[str, str], int] = {}
    chosen: list[Choice] = []
    while uncovered:
        first = next(iter(uncovered))
        choice = _completed(dict(sorted(first)), axes, possible, uncovered, used)
        if choice is None:
            del uncovered[first]  # no possible choice has it
            continue
        chosen.append({axis: choice[axis] for axis in axes})
        for pair in itertools.combinations(choice.items(), 2):
            uncovered.pop(frozenset(pair), None)
        for item in choice.items():
            used[item] = used.get(item, 0) + 1
    return chosen


def pairs(axes: Mapping[str, Sequence[str]]) -> list[Pair]:
    return [
        frozenset([(a, left), (b, right)])
        for a, b in itertools.combinations(axes, 2)
        for left in axes[a]
        for right in axes[b]
    ]


def _completed(
    choice: Choice,
    axes: Mapping[str, Sequence[str]],
    possible: Callable[[Choice], bool],
    uncovered: Mapping[Pair, None],
    used: Mapping[tuple[str, str], int],
) -> Choice | None:
    """The choice with a value for every axis: of those that are possible, the one that covers most, used least."""
    if not possible(choice):
        return None
    open_axes = [axis for axis in axes if axis not in choice]
    if not open_axes:
        return choice
    axis = open_axes[0]

    def merit(value: str) -> tuple[int, int]:
        gain = sum(frozenset([(axis, value), item]) in uncovered for item in choice.items())
        return -gain, used.get((axis, value), 0)

    for value in sorted(axes[axis], key=merit):
        found = _completed({**choice, axis: value}, axes, possible, uncovered, used)
        if found is not None:
            return found
    return None
