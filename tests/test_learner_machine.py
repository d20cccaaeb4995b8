"""Every kind of learner under any sequence of calls: learn, refuse, predict, save, load, copy, pickle.

Beside the learner goes a twin, that learned the same rows one by one and knows nothing of what was refused, saved,
copied or asked: whatever happens, both are in the same state.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from support.learners import LEARNERS, NESTED
from support.rounds import answers_of, learn_many, learn_one, reopened, state_of, streams, table_of, with_number

from onepass.errors import OnepassError, RowError

ALL = {**LEARNERS, **NESTED}
NAN = float("nan")
HOW: dict[str, Any] = {
    "derandomize": True,
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "report_multiple_bugs": False,
}


class Machine(RuleBasedStateMachine):
    name = ""  # of the learner

    @initialize(form=st.integers(0, 2))
    def begin(self, form: int) -> None:
        self.learner = ALL[self.name]()
        self.twin = ALL[self.name]()
        forms = streams(self.name, self.learner)
        self.stream = forms[form % len(forms)]
        self.at = 0

    def coming(self, rows: int) -> tuple[list[Any], list[Any]]:
        examples = [self.stream.examples[(self.at + i) % len(self.stream)] for i in range(rows)]
        return [x for x, _ in examples], [y for _, y in examples]

    def same(self) -> None:
        assert state_of(self.learner) == state_of(self.twin)

    @rule()
    def learn(self) -> None:
        [x], [y] = self.coming(1)
        learn_one(self.learner, x, y)
        learn_one(self.twin, x, y)
        self.at += 1
        self.same()

    @rule(rows=st.integers(1, 6), c=st.sampled_from([1.0, 1.0, 0.5, 0.0]))
    def learn_rows(self, rows: int, c: float) -> None:
        xs, ys = self.coming(rows)
        c = c if self.learner.traits.weighted and "sampl" not in self.name.lower() else 1.0
        learn_many(self.learner, table_of(self.stream.form, xs), ys, [c] * rows)
        for x, y in zip(xs, ys, strict=True):
            learn_one(self.twin, x, y, c)
        self.at += rows
        self.same()

    @rule(rows=st.integers(1, 5), data=st.data(), value=st.sampled_from([1e308, 1e200, -1e160, NAN]))
    def an_odd_row(self, rows: int, data: Any, value: float) -> None:
        """The twin learns what comes before it, where that is learned; after it both are the same."""
        xs, ys = self.coming(rows)
        odd = data.draw(st.integers(0, rows - 1))
        xs[odd] = with_number(self.stream.form, xs[odd], value)
        self.refused_or_learned(xs, ys)

    @precondition(lambda self: self.learner.traits.supervised)
    @rule(rows=st.integers(1, 4), data=st.data(), label=st.sampled_from([None, NAN, [], {"a"}, 1j, "\ud800"]))
    def an_odd_label(self, rows: int, data: Any, label: Any) -> None:
        xs, ys = self.coming(rows)
        ys[data.draw(st.integers(0, rows - 1))] = label
        self.refused_or_learned(xs, ys)

    def refused_or_learned(self, xs: list[Any], ys: list[Any]) -> None:
        learned = len(xs)
        try:
            learn_many(self.learner, table_of(self.stream.form, xs), ys, [1.0] * len(xs))
        except RowError as error:
            learned = error.row
        except OnepassError:
            learned = 0
        for x, y in zip(xs[:learned], ys, strict=False):
            learn_one(self.twin, x, y)
        self.same()

    @rule()
    def ask(self) -> None:
        for x in self.coming(2)[0]:
            assert answers_of(self.learner, x) == answers_of(self.twin, x)
        self.same()

    @rule()
    def save_and_load(self) -> None:
        self.learner = reopened(self.learner)
        self.same()

    @rule()
    def copy(self) -> None:
        original, self.learner = self.learner, self.learner.copy()
        before = state_of(original)
        self.learn()
        assert state_of(original) == before, "a copy is not independent"

    @rule()
    def pickled(self) -> None:
        self.learner = pickle.loads(pickle.dumps(self.learner))
        self.same()


@pytest.mark.full
@pytest.mark.parametrize("name", ALL)
def test_any_sequence_of_calls(name: str, grids_are_whole: bool) -> None:
    machine = type("Machine", (Machine,), {"name": name})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60 if grids_are_whole else 3,
            stateful_step_count=30 if grids_are_whole else 10,
            **HOW,
        ),
    )


def test_a_learner_that_keeps_something_of_a_refused_row_is_found() -> None:
    class Leaky(type(ALL["GaussianNB"]())):  # type: ignore[misc]
        def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
            try:
                super().learn_many(X, y, importance)
            except OnepassError:
                super().learn_many(np.zeros((1, 5)), ["a"])
                raise

    # No file can hold a learner of a class of its own: without saving, the state alone tells.
    machine = type("Machine", (Machine,), {"name": "leaky", "save_and_load": None, "pickled": None})
    ALL["leaky"] = Leaky
    try:
        with pytest.raises(AssertionError):
            run_state_machine_as_test(machine, settings=settings(**HOW, max_examples=30, stateful_step_count=20))
    finally:
        del ALL["leaky"]
