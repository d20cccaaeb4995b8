"""Every learner and wrapper: `learn_many` refuses what `learn_one` refuses, and is its loop up to there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.learners import LEARNERS, NESTED
from support.rounds import agree, streams

ALL = {**LEARNERS, **NESTED}
NAN = float("nan")

# What may come in the place of a label: of every type, nested, empty, large, and texts that NumPy would change.
LABELS: list[Any] = [
    None, NAN, float("inf"), -0.0, True, np.True_, 0, 1, 1.0, np.int8(1), np.float32(0.5), np.uint64(2**64 - 1),
    2**53 + 1, 2**53, 2**64, -(2**63), 10**400, "1", "", "a\0", "a ", "a\0b", "\ud800", np.str_("a"), b"a",
    np.bytes_(b"a"), 1j, object, [], (), set(), {}, {"a"}, [1], ("a",), ("a", "b"), ((1,), "b"), ((None,),), (NAN,),
    frozenset({1}), range(3), [()], np.array("a"), np.array(1), np.array([1]), {"a": 0.0, "b": 1.0}, {"a": NAN},
]  # fmt: skip


def learned(name: str, number: int, examples: int) -> tuple[Any, Any]:
    """A learner that has seen some examples, and its stream in one of its forms."""
    learner = ALL[name]()
    forms = streams(name, learner)
    stream = forms[number % len(forms)]
    X, y = stream.part(0, examples) if examples else (None, None)
    if examples:
        learner.learn_many(X, y) if learner.traits.supervised else learner.learn_many(X)
    return learner, stream


def cells(name: str, whole: bool) -> Iterator[tuple[Any, Any, int]]:
    """Learners, their streams and where these go on: with -m full in every form, untrained and trained."""
    number = list(ALL).index(name)
    for form, seen in itertools.product(range(3), (0, 8)) if whole else [(number, (0, 8)[number // 3 % 2])]:
        yield *learned(name, form, seen), seen


@pytest.mark.parametrize("name", ALL)
def test_a_label_is_refused_by_both_or_by_neither(
    name: str, grids_are_whole: bool, record_property: Callable[[str, Any], None]
) -> None:
    found: Counter[str] = Counter()
    number = list(ALL).index(name)
    if not ALL[name]().traits.supervised:
        return
    for learner, stream, seen in cells(name, grids_are_whole):
        examples = stream.examples[seen : seen + 3]
        for label in LABELS if grids_are_whole else LABELS[number % 6 :: 6]:
            for rows in (1, 3):
                ys = [*(y for _, y in examples[: rows - 1]), label]
                found[agree(learner, stream.form, [x for x, _ in examples[:rows]], ys, [1.0] * rows)] += 1
    record_property("cells", sum(found.values()))
    assert found["LabelError"]
