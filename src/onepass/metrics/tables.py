"""Results that are more than a number: the per-class table and the calibration curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from .outcomes import OTHER, Array, Labels
from .statistics import Bins, Confusion

__all__ = ["BINS", "CONFUSION", "calibration", "per_class"]

CONFUSION = Confusion()
BINS = Bins()


def per_class(state: Array, labels: Labels) -> list[dict[str, Any]]:
    """For each class: how often it occurred and was said, precision, recall, F1; labels in order where they sort."""
    hit, said, so = np.diag(state), np.sum(state, axis=0), np.sum(state, axis=1)
    codes = [code for code in range(1, len(state)) if said[code] + so[code] > 0]
    try:
        codes.sort(key=lambda code: labels.values[code])
    except TypeError:
        codes.sort(key=lambda code: str(labels.values[code]))
    rows = []
    for code in codes:
        label = labels.values[code]
        rows.append(
            {
                "label": "(no label)" if label is OTHER else label,
                "support": float(so[code]),
                "predicted": float(said[code]),
                "precision": float(hit[code] / said[code]) if said[code] else 0.0,
                "recall": float(hit[code] / so[code]) if so[code] else 0.0,
                "f1": float(2.0 * hit[code] / (said[code] + so[code])),
            }
        )
    return rows


def calibration(state: dict[str, Array], labels: Labels) -> dict[str, Any]:
    """The calibration curve: for each bin that was used, its weight, the mean p and how often it was so.

    `of` is the class whose probability this is, or None for that of the most probable class (three classes and more).
    """
    code = labels.positive() if len(labels) == 2 else 0
    table = state.get(str(code) if code else "top")
    if table is None:
        return {"of": None, "weight": [], "predicted": [], "observed": []}
    used = table[0] > 0
    weight, p, so = table[:, used]
    return {
        "of": labels.values[code] if code else None,
        "weight": weight.tolist(),
        "predicted": (p / weight).tolist(),
        "observed": (so / weight).tolist(),
    }
