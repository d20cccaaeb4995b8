"""Every learner and wrapper: `learn_many` refuses what `learn_one` refuses, and is its loop up to there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.learners import LEARNERS, NESTED
from support.rounds import agree, streams, with_number

from onepass.errors import InputError, OnepassError

ALL = {**LEARNERS, **NESTED}
NAN = float("nan")
ROWS = 5

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


@pytest.mark.full
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


def odd_rows(learner: Any, stream: Any, seen: int) -> Iterator[tuple[str, list[Any], list[Any], list[float]]]:
    """Examples of which one, or its importance or answer, is out of the ordinary."""
    examples = stream.examples[seen : seen + ROWS]
    xs, ys, ones = [x for x, _ in examples], [y for _, y in examples], [1.0] * ROWS
    traits = learner.traits
    for at, value in itertools.product((0, 3), (1e308, 1e200, -1e160, 1e120, NAN)):
        yield f"{value} in row {at}", [*xs[:at], with_number(stream.form, xs[at], value), *xs[at + 1 :]], ys, ones
    for size in (1e50, 1e76, 1e78, 1e99):
        numbers = (1.0, size, -size, size, 1.0)
        yield (
            f"numbers of {size}",
            [with_number(stream.form, x, v) for x, v in zip(xs, numbers, strict=True)],
            ys,
            ones,
        )
    if traits.weighted:
        for at, c in itertools.product((0, 3), (1e308, 1e200, -1.0, NAN, 0.0)):
            yield f"importance {c} of row {at}", xs, ys, [*ones[:at], c, *ones[at + 1 :]]
    if traits.answers == "number":
        for at, y in itertools.product((0, 3), (1e308, 1e200, -1e308)):
            yield f"answer {y} of row {at}", xs, [*ys[:at], y, *ys[at + 1 :]], ones
    if stream.form == "names" and not traits.needs:
        yield "an empty row", [*xs[:2], {}, *xs[3:]], ys, ones
        yield "empty rows", [{}] * ROWS, ys, ones


@pytest.mark.full
@pytest.mark.parametrize("name", ALL)
def test_a_refused_row_leaves_the_rows_before_it_learned(
    name: str, grids_are_whole: bool, record_property: Callable[[str, Any], None]
) -> None:
    found: Counter[str] = Counter()
    number = list(ALL).index(name)
    for learner, stream, seen in cells(name, grids_are_whole):
        for turn, (what, xs, ys, cs) in enumerate(odd_rows(learner, stream, seen)):
            if not grids_are_whole and turn % 2 != number % 2:
                continue
            try:
                found[agree(learner, stream.form, xs, ys, cs)] += 1
            except AssertionError as error:
                raise AssertionError(f"{stream.form}, {seen} rows learned, {what}: {error}") from error
    record_property("cells", sum(found.values()))
    assert sum(found.values()) > found["learned"] or learner.traits.values == "texts", "nothing was refused"


@pytest.mark.parametrize("name", ALL)
def test_rows_without_columns_are_refused(name: str) -> None:
    """One by one and many at once; a mapping may be empty."""
    import scipy.sparse

    learner = ALL[name]()
    if "rows" not in learner.traits.forms or not learner.traits.supervised:
        return
    for x, X in ((np.zeros(0), np.zeros((2, 0))), (scipy.sparse.csr_matrix((1, 0)), scipy.sparse.csr_matrix((2, 0)))):
        y: list[Any] = [1.0, 2.0] if learner.traits.answers in ("number", "rank") else ["a", "b"]
        for many, given in ((False, x), (True, X)):
            if not isinstance(given, np.ndarray) and "csr" not in learner.traits.forms:
                continue
            with pytest.raises(InputError):
                learn(learner, many, given, y)
    with pytest.raises(OnepassError):
        learn(learner, True, np.zeros((0, 3)), [])


def learn(learner: Any, many: bool, given: Any, y: list[Any]) -> None:
    verb = learner.learn_many if many else learner.learn_one
    verb(given, y if many else y[0]) if learner.traits.supervised else verb(given)
