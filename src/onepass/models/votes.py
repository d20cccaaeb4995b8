"""Votes between pairs of classes, with the sums of scores as tie-breakers."""

from __future__ import annotations

import numpy as np

from ..scheme.rounds import Array

__all__ = ["with_sums"]

LARGEST = 1e300  # three of them are no overflow


def with_sums(votes: Array, sums: Array) -> Array:
    """Add less than half a vote for the sum of scores, which then decides between equal votes."""
    if not np.all(np.abs(sums) <= LARGEST):  # of weights that have diverged
        sums = np.clip(np.nan_to_num(sums), -LARGEST, LARGEST)
    return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))
