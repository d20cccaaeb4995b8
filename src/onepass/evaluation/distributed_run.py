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
from .examples import CHUNK, as_examples, has_no_label, takes_mappings_only
from .job import DEFAULTS
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
    askers = [Asker(copy.deepcopy(model), needs_of(asked or [], False)) for _ in range(k)]
    runs = [Run(every=every, window_size=window, fading_factor=fading) for _ in range(k)]
    generator = np.random.Generator(np.random.PCG64(whole("seed", seed, least=0)))
    keepers: list[RunRecorder] = []
    rounds: list[Rounds] = []
    seconds = [0.0] * k
    examples = 0

    def flush(j: int) -> None:
        keepers[j].add(rounds[j].take(), seconds[j])
        seconds[j] = 0.0

    for x, y, weight, _, _, base in as_examples(stream, takes_mappings_only(model), askers[0].no_base):
        if has_no_label(y, examples + 1):
            continue
        if not keepers:
            kind = asked[0].kind if asked else answer_kind(model, y, askers[0].model.predict_one(x))
            asked = asked or [metrics_module.make(DEFAULTS[kind])]
            keepers = [RunRecorder(run, asked, progress if j == 0 else None) for j, run in enumerate(runs)]
            rounds = [Rounds(keeper.kind, keeper.labels) for keeper in keepers]
        for j, times in enumerate(_trainings(scheme, k, examples, deterministic, generator).tolist()):
            began = perf_counter()
            if times == 0:
                rounds[j].add(askers[j].answer(x, base), y, weight)
            elif times == 1:
                askers[j].learn(x, y, weight, base)
            elif repeat or not askers[j].takes_weights:
                for _ in range(times):
                    askers[j].learn(x, y, weight, base)
            else:
                askers[j].learn(x, y, times * (1.0 if weight is None else weight), base)
            seconds[j] += perf_counter() - began
            if len(rounds[j]) == min(every, CHUNK):
                flush(j)
        examples += 1
    for j, keeper in enumerate(keepers):
        flush(j)
        keeper.close()
    if not keepers and asked:
        for run in runs:
            RunRecorder(run, asked)
    return Distributed(scheme, runs, examples)


def _trainings(scheme: str, k: int, t: int, deterministic: bool, generator: np.random.Generator) -> Any:
    """How often each copy learns example t; 0 is a test."""
    if scheme == "bootstrap":
        return generator.poisson(1.0, size=k)
    chosen = t % k if deterministic else int(generator.integers(k))
    one = np.arange(k) == chosen
    return (~one if scheme == "cv" else one).astype(np.int64)
