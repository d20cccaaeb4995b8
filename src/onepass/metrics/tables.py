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
    """For each class: how often it occurred and was predicted, precision, recall, F1; labels sorted where possible."""
    hit, predicted, occurred = np.diag(state), np.sum(state, axis=0), np.sum(state, axis=1)
    codes = [code for code in range(1, len(state)) if predicted[code] + occurred[code] > 0]
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
                "support": float(occurred[code]),
                "predicted": float(predicted[code]),
                "precision": float(hit[code] / predicted[code]) if predicted[code] else 0.0,
                "recall": float(hit[code] / occurred[code]) if occurred[code] else 0.0,
                "f1": float(2.0 * hit[code] / (predicted[code] + occurred[code])),
            }
        )
    return rows


def calibration(state: dict[str, Array], labels: Labels) -> dict[str, Any]:
    """The calibration curve: for each bin with examples, its weight, the mean p and the frequency of the class.

    `of` is the class whose probability this is, or None for that of the most probable class (three classes and more).
    """
    code = labels.positive() if len(labels) == 2 else 0
    table = state.get(str(code) if code else "top")
    if table is None:
        return {"of": None, "weight": [], "predicted": [], "observed": []}
    used = table[0] > 0
    weight, p, observed = table[:, used]
    return {
        "of": labels.values[code] if code else None,
        "weight": weight.tolist(),
        "predicted": (p / weight).tolist(),
        "observed": (observed / weight).tolist(),
    }
