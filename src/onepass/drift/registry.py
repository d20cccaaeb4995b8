"""The detectors by name."""

from __future__ import annotations

from typing import Any

from ..errors import ParameterError
from ..scheme.parameters import from_text
from .adwin import ADWIN
from .base import Detector
from .error_rate import DDM, EDDM
from .hoeffding import HDDMA, HDDMW
from .kswin import KSWIN
from .page_hinkley import PageHinkley

__all__ = ["DETECTORS", "make_detector"]

DETECTORS: dict[str, type[Detector]] = {
    kind.name: kind for kind in (ADWIN, DDM, EDDM, HDDMA, HDDMW, KSWIN, PageHinkley)
}


def make_detector(given: Any) -> Detector:
    """A new detector like the one given, or of that name: "adwin", "ddm:drift_level=2.5"."""
    if isinstance(given, Detector):
        return given.fresh()
    if not isinstance(given, str):
        raise ParameterError(f"detector={given!r:.80}: expected a detector or one of {', '.join(sorted(DETECTORS))}")
    return from_text(given, DETECTORS, "detector")
