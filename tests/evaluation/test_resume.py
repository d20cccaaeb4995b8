"""A prequential run that was stopped after any chunk and resumed ends with the bits of one that never stopped."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass as op
from onepass import datasets
from onepass.errors import DamagedFileError, ForeignFileError, ParameterError
from onepass.evaluation.run_state import RunState, decode, encode
from onepass.models.linear import LinearModel
from onepass.persistence import store

N = 600
generator = np.random.default_rng(8)
X = generator.normal(size=(N, 4))
W = np.where(np.arange(N)[:, None] < 300, [1.0, -2.0, 0.5, 0.0], [-1.0, 2.0, 0.5, 1.0])  # a drift in the middle
Y = np.where((X * W).sum(axis=1) > 0, "yes", "no")
NAMED = [{"t": float(i), **{f"x{j}": v for j, v in enumerate(row)}} for i, row in enumerate(X.tolist())]
PAIRS = list(zip(NAMED, Y.tolist(), strict=True))
GAPS = [(x, None if i % 11 == 0 else y) for i, (x, y) in enumerate(PAIRS)]


def chunks(start: int) -> Any:
    return [(X[at : at + 50], Y[at : at + 50]) for at in range(start, N, 50)]


def events(start: int) -> Any:
    """Labels 7 examples late; some examples have none."""
    stream: list[Any] = []
    for i, (x, _) in enumerate(PAIRS):
        stream.append(("x", f"e{i}", x, 1.0 + i % 2))
        if i >= 7 and i % 5:
            stream.append(("y", f"e{i - 7}", PAIRS[i - 7][1]))
    return stream[start:]


CASES: dict[str, tuple[Callable[[int], Any], dict[str, Any]]] = {
    "chunks": (chunks, {}),
    "drift": (chunks, {"drift": "adwin:delta=0.05"}),
    "regret": (chunks, {"regret": True}),
    "regret of names": (lambda start: PAIRS[start:], {"regret": True, "drift": "ddm"}),
    "hold-out": (chunks, {"holdout": 7, "metrics": ["error", "auc"]}),
    "hold-out, one by one": (lambda start: PAIRS[start:], {"holdout": 7}),
    "a fixed set": (chunks, {"holdout": (X[:30], Y[:30]), "holdout_every": 90}),
    "no label": (lambda start: GAPS[start:], {"calibration": True, "metrics": ["error", "log_loss"]}),
    "late": (lambda start: PAIRS[start:], {"delay": 40, "drift": "adwin:delta=0.05"}),
    "late chunks": (chunks, {"delay": 40}),
    "late in time": (lambda start: GAPS[start:], {"delay": 33.5, "time": "t", "metrics": ["error", "auc"]}),
    "later by a date": (
        lambda start: PAIRS[start:],
        {"delay": datetime.timedelta(hours=9), "time": lambda x: datetime.datetime(2024, 1, 1) + x["t"] * hour},
    ),
    "dropped": (lambda start: PAIRS[start:], {"delay": 50, "max_pending": 20}),
    "events": (events, {"drift": "adwin:delta=0.05"}),
}
hour = datetime.timedelta(hours=1)


def bits(model: LinearModel) -> bytes:
    return store.to_bytes("LinearModel", *model.state())


def content(run: op.Run) -> Any:
    out = run.content(times=False)
    if out["at_label"] is not None:
        out["at_label"] |= {"seconds": 0.0, "throughput": []}
    return out


def evaluate(model: LinearModel, stream: Any, how: dict[str, Any], **more: Any) -> op.Run:
    how = {"every": 70, "window": 90, **how}
    return op.prequential(model, stream, how.pop("metrics", "error"), **how, **more)


@pytest.mark.parametrize("name", CASES)
def test_a_run_stopped_anywhere_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    stream, how = CASES[name]
    expected = LinearModel("sgd:loss=logistic")
    whole = evaluate(expected, stream(0), how)
    assert whole.marks or name not in ("drift", "late")
    model, saved = LinearModel("sgd:loss=logistic"), []

    def checkpoint(state: RunState) -> None:
        saved.append((state.rows, json.dumps(state.config), state.arrays, model.state()))

    assert content(evaluate(model, stream(0), how, checkpoint=checkpoint, checkpoint_every=45)) == content(whole)
    assert len(saved) >= 10 and bits(model) == bits(expected)
    for rows, config, arrays, learned in [saved[0], saved[len(saved) // 2], saved[-1]]:
        RunState(rows, json.loads(config), arrays).save(tmp_path / "run")
        model = LinearModel.from_state(*learned)
        start = rows // 50 * 50 if stream is chunks else rows
        rest = stream(start)
        if stream is chunks and rows > start:
            rest = [(X[rows : start + 50], Y[rows : start + 50]), *rest[1:]]
        run = evaluate(model, rest, how, resume=RunState.load(tmp_path / "run"))
        assert content(run) == content(whole) and bits(model) == bits(expected)


class Stop(Exception):
    """As a crash would."""


def test_a_run_is_stopped_twice() -> None:
    expected, model = LinearModel("pa1"), LinearModel("pa1")
    whole = evaluate(expected, PAIRS, {"delay": 20})
    state: RunState | None = None
    for stop in (1, 333, N + 1):

        def checkpoint(now: RunState, stop: int = stop) -> None:
            nonlocal state
            if now.rows >= stop:
                state = now
                raise Stop

        rest = PAIRS[0 if state is None else state.rows :]
        try:
            run = evaluate(model, rest, {"delay": 20}, checkpoint=checkpoint, resume=state)
        except Stop:
            model = LinearModel.from_state(*model.state())
    assert content(run) == content(whole) and bits(model) == bits(expected)


def test_other_arguments_than_those_of_the_run_are_refused(tmp_path: Path) -> None:
    states: list[RunState] = []
    how: dict[str, Any] = {"drift": "ddm", "holdout": 9}
    evaluate(LinearModel("pa1"), chunks(0), how, checkpoint=states.append)
    for other, words in (
        ({"drift": None}, "drift was"),
        ({"drift": "adwin"}, "drift was"),
        ({"every": 71}, "every was 70 in that run, and is 71 now"),
        ({"window": 5}, "window was"),
        ({"metrics": "kappa"}, "metrics was"),
        ({"regret": True}, "regret was False"),
        ({"holdout": None}, "holdout was 9"),
        ({"delay": 3}, "had a delay"),
    ):
        model = LinearModel("pa1")
        with pytest.raises(ParameterError, match=words):
            evaluate(model, chunks(0), {**how, **other}, resume=states[0])
        assert model.t == 0
    with pytest.raises(ParameterError, match="expected a RunState"):
        evaluate(LinearModel("pa1"), chunks(0), how, resume={})  # type: ignore[arg-type]
    LinearModel("pa1").save(tmp_path / "m")
    with pytest.raises(ForeignFileError, match="holds a LinearModel, not a run"):
        RunState.load(tmp_path / "m")


def test_rankings_within_a_query() -> None:
    rows = [(X[i : i + 25], np.arange(25.0) % 3, np.arange(i, i + 25) // 20) for i in range(0, N, 25)]

    class Chunk:
        def __init__(self, X: Any, y: Any, query: Any) -> None:
            self.X, self.y, self.query = X, y, query

    stream = [Chunk(*row) for row in rows]
    expected, model = op.Ranker(), op.Ranker()
    whole = op.prequential(expected, stream, every=5)
    saved: list[Any] = []
    op.prequential(model, stream, every=5, checkpoint_every=25,
                   checkpoint=lambda state: saved.append((state, model.copy())))  # fmt: skip
    state, learned = saved[4]
    run = op.prequential(learned, stream[state.rows // 25 :], every=5, resume=state)
    assert run.curves == whole.curves and run.unit == "queries" and np.array_equal(learned.coef_, expected.coef_)


VALUES = [
    None, True, 3, -(10**30), 0.1, float("inf"), "é", ("a", 1, (2.5,)), [1, [None]], {"a": 1.0, 2: "b"}, {3, 4},
    frozenset({"x"}), datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 2, 3, 4, 5, 6), hour, np.float32(0.1),
    np.datetime64("2024-01-01T01"), np.str_("ü"), np.arange(6, dtype=np.int8).reshape(2, 3),
    np.array([0.1, np.nan, -0.0, np.inf]), np.array(["a", None, 2], dtype=object),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        assert back.dtype == value.dtype and back.shape == value.shape and repr(back) == repr(value)
    else:
        assert back == value


def test_what_no_state_can_hold_is_said() -> None:
    assert np.isnan(decode(encode(float("nan"))))
    with pytest.raises(ParameterError, match="a complex: expected numbers"):
        encode(1j)
    with pytest.raises(DamagedFileError, match="which this onepass does not know"):
        decode({"code": []})


@pytest.mark.parametrize("hash_bits", [None, 10])
def test_late_labels_of_a_file(hash_bits: int | None, tmp_path: Path) -> None:
    lines = [f"{1 if y == 'yes' else -1} |f " + " ".join(f"{k}:{v}" for k, v in x.items()) for x, y in PAIRS]
    (tmp_path / "a.vw").write_text("\n".join(lines) + "\n")
    stream = op.stream(tmp_path / "a.vw", hash_bits=hash_bits)
    expected, model = LinearModel("sgd", hash_bits=hash_bits), LinearModel("sgd", hash_bits=hash_bits)
    whole = op.prequential(expected, stream, delay=30)
    saved: list[Any] = []
    op.prequential(model, stream, delay=30, checkpoint_every=100,
                   checkpoint=lambda state: saved.append((state, model.copy())))  # fmt: skip
    state, learned = saved[2]
    rest = itertools.islice(single_rows(stream), state.rows, None)
    run = op.prequential(learned, rest, delay=30, resume=state)
    assert content(run) == {**content(whole), "settings": content(run)["settings"]}
    assert learned.t == expected.t


def single_rows(stream: Any) -> Any:
    for chunk in stream.batches(1):
        yield chunk.X[0:1], chunk.y[0].item()


def test_state_is_small() -> None:
    """Ids of a long stream are kept as one column."""
    states: list[RunState] = []
    op.prequential(LinearModel("pa1"), datasets.SEA(5000), delay=10, checkpoint=states.append, checkpoint_every=4900)
    assert len(json.dumps(states[-1].config)) < 200_000
