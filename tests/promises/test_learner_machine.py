"""Every kind of learner under any sequence of calls: learn, refuse, predict, save, load, copy, pickle.

Beside the learner goes a twin, that learned the same rows one by one and knows nothing of what was refused, saved,
copied or asked: whatever happens, both are in the same state.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from support.learners import LEARNERS, NESTED
from support.rounds import answers_of, learn_many, learn_one, reopened, state_of, streams, table_of, with_number

from onepass import continual, transforms
from onepass.errors import OnepassError, RowError

ALL = {
    **LEARNERS,
    **NESTED,
    # Their rows and weights have limits; only with such rates does a step overflow that nobody saw coming.
    "softmax of large steps": lambda: continual.SoftmaxSGD(eta=1e150),
    "replay of large steps": lambda: continual.Replay(eta=1e150),
    "products of large steps": lambda: transforms.PolynomialFeatures(1) | continual.SoftmaxSGD(eta=1e150),
    "scaled large steps": lambda: transforms.MinMaxScaler() | continual.SoftmaxSGD(eta=1e150),
}
NAN = float("nan")
ODD = [1e308, 1e200, -1e160, NAN]
LARGE = [1e100, 1e153]  # whose squares are numbers
LABELS = [None, NAN, [], {"a"}, 1j, "\ud800"]
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
        self.at = self.turn = 0

    def coming(self, rows: int) -> tuple[list[Any], list[Any]]:
        examples = [self.stream.examples[(self.at + i) % len(self.stream)] for i in range(rows)]
        return [x for x, _ in examples], [y for _, y in examples]

    def weighted(self) -> bool:
        return self.learner.traits.weighted and "sampl" not in self.name.lower()

    def same(self) -> None:
        assert state_of(self.learner) == state_of(self.twin)

    @rule()
    def learn(self) -> None:
        [x], [y] = self.coming(1)
        try:
            learn_one(self.learner, x, y)
        except RowError:
            self.twin_refuses(x, y, 1.0)
        else:
            learn_one(self.twin, x, y)
        self.at += 1
        self.same()

    @rule(rows=st.integers(1, 6), c=st.sampled_from([1.0, 1.0, 0.5, 0.0]))
    def learn_rows(self, rows: int, c: float) -> None:
        self.refused_or_learned(*self.coming(rows), [c if self.weighted() else 1.0] * rows)
        self.at += rows

    @rule(rows=st.integers(1, 5), odd=st.integers(0, 4), value=st.sampled_from(ODD))
    def an_odd_row(self, rows: int, odd: int, value: float) -> None:
        """The twin learns what comes before it, where that is learned; after it both are the same."""
        xs, ys = self.coming(rows)
        xs[odd % rows] = with_number(self.stream.form, xs[odd % rows], value)
        self.refused_or_learned(xs, ys)

    @rule(rows=st.integers(1, 5), odd=st.integers(0, 4), value=st.sampled_from(LARGE), c=st.sampled_from([1e308, 1e60]))
    def a_large_step(self, rows: int, odd: int, value: float, c: float) -> None:
        """A row that is no larger than rows may be, and still cannot be learned."""
        xs, ys = self.coming(rows)
        xs[odd % rows] = with_number(self.stream.form, xs[odd % rows], value)
        if self.learner.traits.answers == "number":
            ys[odd % rows] = -value
        self.refused_or_learned(xs, ys, [c if row == odd % rows and self.weighted() else 1.0 for row in range(rows)])

    @precondition(lambda self: self.learner.traits.supervised)
    @rule(rows=st.integers(1, 4), odd=st.integers(0, 3), label=st.sampled_from(LABELS))
    def an_odd_label(self, rows: int, odd: int, label: Any) -> None:
        xs, ys = self.coming(rows)
        xs[odd % rows] = with_number(self.stream.form, xs[odd % rows], 0.25)  # and a name that nobody has seen
        ys[odd % rows] = label
        self.refused_or_learned(xs, ys)

    def refused_or_learned(self, xs: list[Any], ys: list[Any], cs: list[float] | None = None) -> None:
        """The twin learns as many rows as the learner says, and refuses the one that the learner names."""
        cs, X = cs or [1.0] * len(xs), table_of(self.stream.form, xs)
        self.turn += 1
        asked = self.turn % 2 > 0 and "predict_then_learn" in self.learner.traits.verbs
        try:
            if asked:
                self.learner.predict_then_learn(X, ys, importance=None if set(cs) == {1.0} else np.array(cs))
            else:
                learn_many(self.learner, X, ys, cs)
        except RowError as error:
            for x, y, c in zip(xs[: error.row], ys, cs, strict=False):
                learn_one(self.twin, x, y, c)
            if not (asked and "Error" in answers_of(self.twin, xs[error.row])):
                self.twin_refuses(xs[error.row], ys[error.row], cs[error.row])
        except OnepassError:
            pass
        else:
            for x, y, c in zip(xs, ys, cs, strict=True):
                learn_one(self.twin, x, y, c)
        self.same()

    def twin_refuses(self, x: Any, y: Any, c: float) -> None:
        with pytest.raises(OnepassError):
            learn_one(self.twin.copy(), x, y, c)  # the twin itself hears of nothing that is refused

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


def machine_of(name: str) -> type[Machine]:
    return type("Machine", (Machine,), {"name": name})


@pytest.mark.full(most=8)
@pytest.mark.parametrize("name", ALL)
def test_any_sequence_of_calls(name: str, grids_are_whole: bool) -> None:
    examples, steps = (60, 30) if grids_are_whole else (5, 12)
    how = settings(max_examples=examples, stateful_step_count=steps, **HOW)
    run_state_machine_as_test(machine_of(name), settings=how)


CALLS: list[Callable[[Machine], None]] = [
    lambda machine: machine.learn_rows(3, 0.5),
    lambda machine: machine.an_odd_row(3, 2, 1e308),
    lambda machine: machine.an_odd_row(4, 2, 1e200),
    lambda machine: machine.an_odd_row(2, 1, NAN),
    lambda machine: machine.learner.traits.supervised and machine.an_odd_label(3, 1, LABELS[machine.at % len(LABELS)]),
    lambda machine: machine.a_large_step(3, 2, 1e153, 1e308),
    lambda machine: machine.a_large_step(1, 0, 1e100, 1e60),
    lambda machine: machine.a_large_step(3, 1, 1e100, 1e60),
    lambda machine: machine.a_large_step(2, 1, 1e100, 1e60),
    Machine.save_and_load,
    Machine.pickled,
    Machine.copy,
    Machine.ask,
]


@pytest.mark.parametrize("name", ALL)
def test_every_call_in_every_form(name: str) -> None:
    """What chance does not come to in a few examples: a row that overflows behind others, in mappings too."""
    for form in range(len(streams(name, ALL[name]()))):
        machine = machine_of(name)()
        machine.begin(form)
        for call in random.Random(f"{name} {form}").sample(CALLS, len(CALLS)):
            call(machine)


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
