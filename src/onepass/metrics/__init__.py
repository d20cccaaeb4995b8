"""Metrics over streams: each in four views, cumulative, since the last report, over a sliding window, fading.

>>> from onepass import metrics
>>> round(metrics.evaluate("f1", [0, 1, 1, 0], [0, 1, 0, 0]), 3)
0.667
>>> meter = metrics.Meter("accuracy", window=3)
>>> for y, said in zip("aabb", "abbb"):
...     meter.add_one(y, said)
>>> meter.value, round(meter.window, 3)  # over all, and over the last three
(0.75, 0.667)
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ParameterError
from ..scheme.parameters import from_text
from . import kinds
from .kinds import *  # noqa: F403
from .kinds import METRICS, Metric
from .meters import VIEWS, Meter, Recorder, evaluate
from .outcomes import Labels, Outcomes
from .tables import calibration, per_class

__all__ = [
    "VIEWS",
    "Labels",
    "Meter",
    "Outcomes",
    "Recorder",
    "calibration",
    "evaluate",
    "make",
    "make_all",
    "per_class",
]
__all__ += kinds.__all__


def make(metric: str | Metric) -> Metric:
    """A metric from its name, ``"f1"`` or ``"f1:average=micro"``."""
    if isinstance(metric, Metric):
        return metric
    return from_text(metric, METRICS, "metric")


def make_all(metrics: str | Metric | Sequence[str | Metric]) -> list[Metric]:
    """One or several metrics, which must be different and for the same kind of answers."""
    given = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    made = [make(metric) for metric in given]
    if not made:
        raise ParameterError("metrics: expected at least one metric")
    if len({metric.label for metric in made}) < len(made):
        raise ParameterError(f"metrics: each may be given once, got {', '.join(metric.label for metric in made)}")
    kinds = {metric.kind for metric in made}
    if len(kinds) > 1:
        each = ", ".join(f"{metric.label} is for {metric.kind}" for metric in made)
        raise ParameterError(f"metrics must be for the same kind of answers, but {each}")
    return made
