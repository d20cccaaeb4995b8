"""`prequential`: predict, reveal, learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from .. import metrics as metrics_module
from ..drift.base import Detector
from ..drift.registry import make_detector
from ..errors import ParameterError
from ..metrics import Metric
from ..metrics.meters import factor, whole
from .answers import Asker, StreamModel, needs_of
from .driver import Driver
from .holdout import Holdout
from .loop import Loop
from .recorder import Progress
from .regret_recorder import Hindsight, RegretRecorder
from .run import Run
from .run_state import RunState

__all__ = ["Chunked", "prequential"]


class Chunked(Protocol):
    """A stream that can also be had as arrays."""

    def chunks(self, size: int, /) -> Iterable[tuple[Any, Any]]: ...


def prequential(
    model: StreamModel,
    stream: Iterable[Any] | Chunked,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    every: int = 1000,
    window: int = 1000,
    fading: float = 0.999,
    delay: Any = 0,
    time: Callable[[Any], Any] | str | None = None,
    max_pending: int = 1_000_000,
    holdout: Any = None,
    holdout_every: int | None = None,
    calibration: bool | None = None,
    regret: bool | Hindsight = False,
    drift: Detector | str | None = None,
    on_predictions: Callable[[Any, Any], object] | None = None,
    progress: Progress | None = None,
    checkpoint: Callable[[RunState], object] | None = None,
    checkpoint_every: int = 1,
    resume: RunState | None = None,
) -> Run:
    """Predict, reveal, learn, for every example of `stream`; report each `every` examples and at the end.

    `stream` yields (x, y) or (x, y, weight), or chunks, or has `batches(size)` or `chunks(size)`. Models that have
    `predict_then_learn(X, y)` (and `score_then_learn` where a metric needs scores) take whole chunks, with the same
    results. Weights count in learning and in every metric. Rows without a label (None, NaN) are predicted and counted
    in `unlabelled`, but not learned.

    metrics: names such as "error", "auc", "f1:average=macro" (see `onepass.metrics`); by default "error" for classes,
        "mae" for numbers, "ndcg" for queries.
    window, fading: the sliding window and the forgetting factor of those views.
    delay: 0; or after how many examples, or how much time (see `DelayedStream`), a label is revealed. The run then has
        the metrics of the predictions as they were made, and in `at_label` those of fresh ones just before learning.
        The stream may also be of events ("x", id, x) and ("y", id, y). At most `max_pending` examples wait; the oldest
        is dropped and counted.
    holdout: n: every n-th labelled example, counted from 1, is predicted and judged, and never learned; or a set (X, y)
        or list of (x, y), judged every `holdout_every` examples (by default `every`). Results in `run.holdout`.
    calibration: keep the calibration curve; by default where a metric asks for probabilities anyway.
    regret: True, or a `Hindsight`: keep the rows (the first that fit within its `limit` of numbers) and at the end
        compare with the best fixed weights of the rule's loss: `run.regret`. For linear models, of classes or numbers.
    drift: a detector of `onepass.drift` or its name, fed with the losses (0 or 1 of a label, |y − ŷ| of a number). Its
        alarms become `run.marks`, as do those of a model with `drifts_`.
    on_predictions: called with (rows, predictions), in order; progress: with the run, every few thousand examples.
    checkpoint: called with a `RunState` after a chunk, at least `checkpoint_every` examples after the call before.
    resume: such a state, with the model of that moment, the stream from its `rows` on, and the same other arguments.
    Memory: one row for each report, the last `window` examples' answers, and with `regret` the rows.
    """
    run = Run(every=whole("every", every), window_size=whole("window", window), fading_factor=factor("fading", fading))
    asked = None if metrics is None else metrics_module.make_all(metrics)
    calibration = _probable(asked) if calibration is None else calibration
    loop = _loop(model, asked, calibration, _regret_recorder(model, regret, delay, time), drift)
    if resume is not None:
        run, asked = _resumed(loop, run, asked, resume)
    driver = Driver(loop, run, asked, Holdout(holdout, holdout_every, model, run), calibrate=calibration,
                    progress=progress, on_predictions=on_predictions, checkpoint=checkpoint,
                    checkpoint_every=whole("checkpoint_every", checkpoint_every))  # fmt: skip
    if resume is not None:
        driver.restore(resume)
    return _finished(driver, _settings(model, stream, delay, time, holdout), stream, delay, time, max_pending)


def _finished(driver: Driver, settings: dict[str, str], stream: Any, delay: Any, time: Any, max_pending: int) -> Run:
    """The run, after the whole stream."""
    loop, run = driver.loop, driver.run
    run.settings = settings
    try:
        driver.go(stream, delay, time, max_pending)
    except Exception as error:
        error.add_note(f"prequential: {loop.examples} examples were through before this")
        raise
    if loop.regret is not None:
        run.regret = loop.regret.finish()
    return run


def _resumed(loop: Loop, run: Run, asked: list[Metric] | None, state: RunState) -> tuple[Run, list[Metric] | None]:
    """The run of a state, and its metrics; what was asked for must be the same."""
    if not isinstance(state, RunState):
        raise ParameterError(f"resume={state!r:.60}: expected a RunState, as checkpoint= gets them")
    kept = state.config["loop"]
    detector = None if loop.drift is None else repr(loop.drift)
    settings: list[tuple[str, Any, Any]] = [
        ("drift", kept.get("drift", {}).get("detector"), detector),
        ("regret", "regret" in kept, loop.regret is not None),
    ]
    _require_same(settings)
    loop.restore(kept, state.arrays)
    if loop.recorder is None:
        return run, asked
    before = loop.recorder.run
    names = before.metrics if asked is None else [metric.label for metric in asked]
    settings = [
        ("every", before.every, run.every),
        ("window", before.window_size, run.window_size),
        ("fading", before.fading_factor, run.fading_factor),
        ("metrics", before.metrics, names),
    ]
    _require_same(settings)
    return before, [metrics_module.make(name) for name in before.metrics]


def _probable(metrics: list[Metric] | None) -> bool:
    """Does a metric ask for probabilities?"""
    return any(metric.needs == "probabilities" for metric in metrics or [])


def _require_same(settings: list[tuple[str, Any, Any]]) -> None:
    for name, then, now in settings:
        if then != now:
            raise ParameterError(f"resume: {name} was {then!r} in that run, and is {now!r} now; give the same")


def _loop(model: Any, metrics: list[Metric] | None, calibrate: bool, regret: RegretRecorder | None, drift: Any) -> Loop:
    needs = needs_of(metrics or [], calibrate)
    if regret is not None and not regret.regression:
        needs.append("margins")
    return Loop(Asker(model, needs), regret=regret, drift=None if drift is None else make_detector(drift))


def _regret_recorder(model: Any, regret: bool | Hindsight, delay: Any, time: Any) -> RegretRecorder | None:
    if not isinstance(regret, bool | Hindsight):
        raise ParameterError(f"regret={regret!r:.60}: expected True, False or a Hindsight")
    if regret is False:
        return None
    if delay or time is not None:
        raise ParameterError("regret is measured for labels that come at once: leave delay out")
    return RegretRecorder(model, Hindsight() if regret is True else regret)


def _settings(model: Any, stream: Any, delay: Any, time: Any, holdout: Any) -> dict[str, str]:
    settings = {"model": " ".join(repr(model).split())[:300], "stream": _stream_name(stream)}
    if delay or time is not None:
        settings["delay"] = f"{delay}" + (" examples" if isinstance(delay, int) and time is None else "")
    if holdout is not None:
        settings["holdout"] = f"every {holdout}th example" if isinstance(holdout, int) else "a fixed set"
    return settings


def _stream_name(stream: Any) -> str:
    if isinstance(stream, list | tuple | dict):
        return type(stream).__name__
    text = repr(stream)
    return type(stream).__name__ if len(text) > 200 or " at 0x" in text else text
