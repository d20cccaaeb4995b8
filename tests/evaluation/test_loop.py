"""The prequential loop that the library and the command share: stopped anywhere and read back, it ends the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import onepass as op
from onepass import metrics
from onepass.evaluation.answers import Asker, needs_of
from onepass.evaluation.loop import Loop
from onepass.evaluation.model_loop import ModelLoop
from onepass.evaluation.run import Run
from onepass.models.linear import LinearModel
from onepass.rows.examples import Examples

METRICS = ["error", "auc", "f1:average=macro"]
generator = np.random.default_rng(5)
X = generator.normal(size=(600, 4))
Y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + generator.normal(size=600) > 0, "yes", "no").tolist()


def begin(model: Any, held_out: bool) -> Loop:
    made = metrics.make_all(METRICS)
    loop = Loop(Asker(model, needs_of(made, False)))
    loop.begin(Run(every=70, window_size=50), made, holds_out=held_out)
    return loop


def go_on(loop: Loop, start: int, stop: int, nth: int) -> None:
    for at in range(start, stop, 20):
        here = slice(at, min(at + 20, stop))
        held = loop.held_out_of_next(here.stop - at, nth)
        rows = Examples(X[here], Y[here])
        loop.record(loop.judge(rows, loop.predict_then_learn(rows, held)), 0.0, held)
        loop.examples += rows.size()


@pytest.mark.parametrize("nth", [0, 7])
@pytest.mark.parametrize("stop", [0, 100, 333])
def test_a_loop_that_is_read_back_ends_as_one_that_never_stopped(stop: int, nth: int) -> None:
    whole = begin(op.LinearClassifier("pa1:C=0.1"), nth > 0)
    go_on(whole, 0, len(X), nth)
    first = begin(model := op.LinearClassifier("pa1:C=0.1"), nth > 0)
    go_on(first, 0, stop, nth)
    arrays: dict[str, Any] = {}
    content = json.loads(json.dumps(first.state(arrays)))
    second = Loop(Asker(model, needs_of(metrics.make_all(METRICS), False)))
    second.restore(content, arrays)
    go_on(second, stop, len(X), nth)
    for loop in (whole, second):
        loop.close()
    assert second.examples == whole.examples == len(X)
    assert second.recording.run.content(times=False) == whole.recording.run.content(times=False)
    if nth:
        assert second.held_out is not None and whole.held_out is not None
        assert second.held_out.run.content(times=False) == whole.held_out.run.content(times=False)
        assert second.held_out.labels is second.labels


def test_the_command_s_loop_gives_the_figures_of_prequential() -> None:
    """Both go through `Loop`; one over a model, one over an estimator."""
    made = metrics.make_all(METRICS)
    loop = ModelLoop(LinearModel("pa1:C=0.1"), needs_of(made, False))
    loop.begin(Run(every=70, window_size=50), made)
    for at in range(0, len(X), 33):
        outcomes, said = loop.learn(Examples(X[at : at + 33], np.array(Y[at : at + 33], dtype=object)))
        assert len(said()) == len(outcomes)
        loop.record(outcomes, 0.0)
    loop.recording.close()
    model = op.LinearClassifier("pa1:C=0.1")
    run = op.prequential(model, [(X, Y)], METRICS, every=70, window=50)
    assert loop.recording.run.curves == run.curves and loop.recording.run.t == run.t
