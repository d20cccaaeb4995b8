"""Distributed prequential evaluation (Bifet, de Francisci Morales, Read, Holmes and Pfahringer 2015): k copies of a
learner go through the stream in order, so that one pass gives a mean and a spread.

cv          an example tests one copy and trains the others
split       it trains one copy and tests the others
bootstrap   each copy draws a weight q from Poisson(1): q = 0 tests it, q > 0 trains it with importance q
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from .. import metrics as metrics_module
from ..charts.text import text_table
from ..errors import ParameterError
from ..metrics import Metric
from ..metrics.meters import factor, whole
from .answers import Asker, Rounds, answer_kind, needs_of
from .driver import DEFAULTS
from .examples import CHUNK, as_examples, has_no_label, takes_mappings_only
from .recorder import Progress, RunRecorder
from .run import Run

__all__ = ["Distributed", "distributed"]

SCHEMES = ("cv", "split", "bootstrap")


@dataclasses.dataclass
class Distributed:
    """A run for each copy; `mean` and `std` are those of the copies' cumulative metrics (std with k − 1)."""

    scheme: str
    runs: list[Run]
    examples: int = 0

    @property
    def metrics(self) -> list[str]:
        return self.runs[0].metrics

    @property
    def mean(self) -> dict[str, float]:
        return {metric: float(np.mean(self._values(metric))) for metric in self.metrics}

    @property
    def std(self) -> dict[str, float]:
        return {metric: float(np.std(self._values(metric), ddof=1)) for metric in self.metrics}

    def _values(self, metric: str) -> list[float]:
        """Copies that were tested at all."""
        values = [run.values[metric] for run in self.runs if not math.isnan(run.values.get(metric, math.nan))]
        return values if len(values) > 1 else [math.nan, math.nan]

    def __repr__(self) -> str:
        parts = (
            f"{m}={self.runs[0].show(self.mean[m], m)} ± {self.runs[0].show(self.std[m], m)}" for m in self.metrics
        )
        return f"Distributed({self.scheme}, {len(self.runs)} copies, {self.examples:,} examples: {', '.join(parts)})"

    def table(self) -> str:
        cells = [["copy", *self.metrics, "tested on"]]
        for i, run in enumerate(self.runs):
            cells.append([str(i), *(run.show(run.values[m], m) for m in self.metrics), f"{run.examples:,}"])
        for name, values in (("mean", self.mean), ("std", self.std)):
            cells.append([name, *(self.runs[0].show(values[m], m) for m in self.metrics), ""])
        return text_table(cells, left=1)

    __str__ = table


def distributed(
    model: Any,
    stream: Iterable[Any],
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    scheme: str = "cv",
    copies: int = 10,
    deterministic: bool = False,
    repeat: bool = False,
    seed: int = 0,
    every: int = 1000,
    window: int = 1000,
    fading: float = 0.999,
    progress: Progress | None = None,
) -> Distributed:
    """Evaluate `copies` copies of the model in one pass; see the module.

    deterministic: example t belongs to copy t mod k ("cv" and "split"), rather than to one drawn from `seed`.
    repeat: in "bootstrap", learn q times rather than with importance q (always so where the model takes no weights).
    `progress` is called with the first copy's run.
    """
    if scheme not in SCHEMES:
        raise ParameterError(f"scheme={scheme!r}: expected one of {', '.join(SCHEMES)}")
    k = whole("copies", copies, least=2)
    every, window, fading = whole("every", every), whole("window", window), factor("fading", fading)
    asked = None if metrics is None else metrics_module.make_all(metrics)
    needs = needs_of(asked or [], False)
    tested = []
    for _ in range(k):
        run = Run(every=every, window_size=window, fading_factor=fading)
        tested.append(_Copy(copy.deepcopy(model), needs, run, repeat))
    generator = np.random.Generator(np.random.PCG64(whole("seed", seed, least=0)))
    examples = 0
    for x, y, weight, _, _, base in as_examples(stream, takes_mappings_only(model), tested[0].asker.no_base):
        if has_no_label(y, examples + 1):
            continue
        if not examples:
            asked = asked or [
                metrics_module.make(DEFAULTS[answer_kind(model, y, tested[0].asker.model.predict_one(x))])
            ]
            tested[0].begin(asked, progress)
            for each in tested[1:]:
                each.begin(asked)
        trainings = _trainings(scheme, k, examples, deterministic, generator).tolist()
        for each, times in zip(tested, trainings, strict=True):
            each.take(x, y, weight, base, times)
        examples += 1
    for each in tested:
        each.close(asked or [])
    return Distributed(scheme, [each.run for each in tested], examples)


class _Copy:
    """One copy of the learner, and the run of the examples on which it is tested."""

    def __init__(self, model: Any, needs: list[str], run: Run, repeat: bool) -> None:
        self.asker, self.run = Asker(model, needs), run
        self.repeat = repeat or not self.asker.takes_weights
        self.seconds = 0.0
        self.recorder: RunRecorder | None = None

    def begin(self, metrics: Sequence[Metric], progress: Progress | None = None) -> None:
        self.recorder = RunRecorder(self.run, metrics, progress)
        self.rounds = Rounds(self.recorder.kind, self.recorder.labels)

    def take(self, x: Any, y: Any, weight: float | None, base: float, times: int) -> None:
        """Learn an example so many times; a test where it is 0."""
        began = perf_counter()
        if times == 0:
            self.rounds.add(self.asker.answer(x, base), y, weight)
        elif times == 1 or self.repeat:
            for _ in range(times):
                self.asker.learn(x, y, weight, base)
        else:
            self.asker.learn(x, y, times * (1.0 if weight is None else weight), base)
        self.seconds += perf_counter() - began
        if len(self.rounds) == min(self.run.every, CHUNK):
            self._flush()

    def _flush(self) -> None:
        assert self.recorder is not None
        self.recorder.add(self.rounds.take(), self.seconds)
        self.seconds = 0.0

    def close(self, metrics: Sequence[Metric]) -> None:
        if self.recorder is not None:
            self._flush()
            self.recorder.close()
        elif metrics:
            RunRecorder(self.run, metrics)  # an empty run still names its metrics


def _trainings(scheme: str, k: int, t: int, deterministic: bool, generator: np.random.Generator) -> Any:
    """How often each copy learns example t; 0 is a test."""
    if scheme == "bootstrap":
        return generator.poisson(1.0, size=k)
    chosen = t % k if deterministic else int(generator.integers(k))
    one = np.arange(k) == chosen
    return (~one if scheme == "cv" else one).astype(np.int64)
