"""Drift: detect that the distribution of a stream has changed, and react to it.

A detector takes numbers one by one (losses, values of a sensor) and reports when their distribution has changed:

==============  ===========================================================  ==============
detector        what it compares                                             memory
==============  ===========================================================  ==============
ADWIN           the means of old and new numbers, at every cut of a window   O(log n)
DDM             the error rate with its least so far                         O(1)
EDDM            the mean distance between errors with its greatest so far    O(1)
HDDMA           the mean of all errors with that of the best prefix          O(1)
HDDMW           fading means before and after the best cut                   O(1)
KSWIN           the newest numbers with some before them, as distributions   `window`
PageHinkley     each number with the mean so far, summed up                  O(1)
==============  ===========================================================  ==============

`DriftReset` and `DriftAdapt` are learners that react to a detector; `DriftWindow` and `DriftFade` forget without one.
Importing this module does not import scikit-learn; using one of these four does.

>>> from onepass.drift import ADWIN
>>> detector = ADWIN()
>>> detector.update_many([0.0] * 500 + [1.0] * 100).tolist()
[511, 543]
"""

from __future__ import annotations

from typing import Any

from ..persistence.registry import class_of
from .adwin import ADWIN
from .base import Detector
from .error_rate import DDM, EDDM
from .hoeffding import HDDMA, HDDMW
from .kswin import KSWIN
from .page_hinkley import PageHinkley
from .registry import DETECTORS, make_detector

_LEARNERS = ("DriftAdapt", "DriftFade", "DriftReset", "DriftWindow")

__all__ = [
    "ADWIN",
    "DDM",
    "DETECTORS",
    "EDDM",
    "HDDMA",
    "HDDMW",
    "KSWIN",
    "Detector",
    "PageHinkley",
    "make_detector",
]


def __getattr__(name: str) -> Any:
    """Load `drift.DriftReset` and the other wrappers from `onepass.compose` by the registry."""
    if name not in _LEARNERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return class_of(name)


def __dir__() -> list[str]:
    return [*__all__, *_LEARNERS]
