"""`learn_many` against the loop of `learn_one`, on examples of which some are refused.

Malformed input is refused for the whole call. Where the update of a well-formed row overflows, the rows before it are
learned, and the error says which row it is. Whatever is refused, the learner can be saved, and predicts as it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass.checks.learners import _bytes as state_of
from onepass.checks.learners import _reopened as reopened
from onepass.checks.streams import LearnerStream, streams_for
from onepass.errors import OnepassError, RowError

REDUCED = ("One", "Error", "Cost", "Filter", "one-vs", "costs", "expansion", "tree")


def streams(name: str, learner: Any) -> list[LearnerStream]:
    """Small streams in every form that the learner takes; with three labels for what makes two of many."""
    three = learner.traits.answers == "class" and any(part in name for part in REDUCED)
    return streams_for(learner.traits, ("a", "b", "c") if three else ("a", "b"))


def learn_one(learner: Any, x: Any, y: Any, c: float = 1.0) -> None:
    more = {} if c == 1.0 else {"importance": c}
    learner.learn_one(x, y, **more) if learner.traits.supervised else learner.learn_one(x, **more)


def learn_many(learner: Any, X: Any, y: Any, c: Sequence[float]) -> None:
    more = {} if all(weight == 1.0 for weight in c) else {"importance": np.array(c)}
    learner.learn_many(X, y, **more) if learner.traits.supervised else learner.learn_many(X, **more)


def table_of(form: str, xs: list[Any]) -> Any:
    """Rows as one table, in their form."""
    if form == "rows":
        return np.array(xs)
    if form == "csr":
        import scipy.sparse

        return scipy.sparse.csr_matrix(scipy.sparse.vstack(xs))
    return xs


def with_number(form: str, x: Any, value: float) -> Any:
    """The row with this number in it; a mapping gets a new name with it too, which a refusal must not register."""
    if form == "rows":
        x = np.array(x)
        x[1] = value
        return x
    if form == "csr":
        x = x.tolil()
        x[0, 1] = value
        return x.tocsr()
    return {**x, "f1": value, "fresh": value}


def answers_of(learner: Any, x: Any) -> str:
    """What it says of a row."""
    verb = "transform_one" if learner.traits.answers == "row" else "predict_one"
    try:
        said = getattr(learner, verb)(x)
    except OnepassError as error:
        return f"{type(error).__name__}: {error}"
    if isinstance(said, np.ndarray):
        return repr(said.tolist())
    return repr(said.toarray().tolist()) if hasattr(said, "toarray") else repr(said)


def is_whole(learner: Any, state: bytes, x: Any) -> None:
    """What it has learned can be saved and opened, and says the same."""
    again = reopened(learner)
    assert state_of(again) == state, "it reopens in another state"
    assert answers_of(again, x) == answers_of(learner, x), "it reopens with other predictions"


def agree(learner: Any, form: str, xs: list[Any], ys: list[Any], cs: Sequence[float]) -> str:
    """`learn_many` of these does as the loop of `learn_one`: what both did. `learner` stays as it is."""
    one, before, many = learner.copy(), learner.copy(), learner.copy()  # `before` is asked for nothing
    refused, at = None, len(xs)
    for row, (x, y, c) in enumerate(zip(xs, ys, cs, strict=True)):
        answers_of(one, x)
        try:
            learn_one(one, x, y, c)
        except Exception as error:
            refused, at = error, row
            break
        learn_one(before, x, y, c)
    after = state_of(one)
    if refused is not None:
        assert isinstance(refused, OnepassError), f"learn_one raises {type(refused).__name__}: {refused}"
        assert after == state_of(before), f"learn_one refused a row, but changed ({refused})"
        probe = xs[0] if at else xs[at]
        said = answers_of(before, probe)
        assert answers_of(one, probe) == said, f"learn_one refused a row, but predicts otherwise ({refused})"
    got = None
    try:
        learn_many(many, table_of(form, xs), ys if learner.traits.supervised else None, cs)
    except Exception as error:
        got = error
        assert isinstance(error, OnepassError), f"learn_many raises {type(error).__name__}: {error}"
    assert type(got) is type(refused), f"learn_one {told(refused)}, learn_many {told(got)}"
    if got is None or isinstance(got, RowError):
        assert state_of(many) == after, f"learn_many differs from the loop of learn_one; it {told(got)}"
    else:
        is_whole(one, after, xs[0])
        after = state_of(learner)
        assert state_of(many) == after, f"learn_many refused the call, but changed ({got})"
    if isinstance(got, RowError):
        assert isinstance(refused, RowError)
        assert (got.row, refused.row) == (at, 0), f"row {at} was refused, not {got.row}; alone row 0, not {refused.row}"
        assert f"row {at}" in str(got), f"the message does not name row {at}: {got}"
        assert ("rows before it were learned" in str(got)) == (at > 0), f"not so in row {at}: {got}"
    is_whole(many, after, xs[0])
    return type(refused).__name__ if refused is not None else "learned"


def told(error: Exception | None) -> str:
    return "learned all" if error is None else f"raised {type(error).__name__}: {error}"
