"""What the readouts of `ReferenceLearner` remember of the weights there were: their sum, the pocket, the voters."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..scheme.readouts import Average, Pocket, Readout, Voted
from ..scheme.rounds import Array

__all__ = ["ReadoutMemory"]


class ReadoutMemory:
    """`errors` says how much weights err on a stored set, by which the ratchet judges them; None without a ratchet."""

    def __init__(self, readout: Readout, errors: Callable[[Array], float] | None) -> None:
        self.readout = readout
        self.errors = errors
        self.sum: Array | None = None  # of the weights that the average covers
        self.summed = 0
        self.pocket: Array | None = None
        self.run = self.best_run = 0  # rounds without an update: now, and of the weights in the pocket
        self.in_pocket = False
        self.pocket_errors = math.inf
        self.voters: list[tuple[Array, int]] = []  # weights there have been, and the rounds they stood

    def weights(self, current: Array) -> Array:
        """The weights that predict, where it is not a vote."""
        if self.pocket is not None:
            return self.pocket
        return current if self.sum is None else self.sum / self.summed

    def remember(self, t: int, before: Array, after: Array, updated: bool, passive: bool) -> None:
        """Round t went from the weights `before` to those `after`; in a passive round the rule was not asked."""
        if isinstance(self.readout, Average) and t >= self.readout.start:
            used = before if self.readout.kind == "predictor" else after
            self.sum = used.copy() if self.sum is None else self.sum + used
            self.summed += 1
        if isinstance(self.readout, Pocket) and not passive:
            self._fill_pocket(before, updated)
        if isinstance(self.readout, Voted) and not passive:
            if not self.voters:
                self.voters.append((before, 0))
            standing, rounds = self.voters[-1]
            if updated:
                self.voters.append((after, 1))
            else:
                self.voters[-1] = (standing, rounds + 1)

    def _fill_pocket(self, before: Array, updated: bool) -> None:
        self.run = 0 if updated else self.run + 1
        self.in_pocket &= not updated
        if self.run > self.best_run and (self.in_pocket or self._is_better(before)):
            self.best_run, self.pocket, self.in_pocket = self.run, before, True

    def _is_better(self, w: Array) -> bool:
        """Without a ratchet any longer run is; with it, only weights that err less than those in the pocket."""
        if self.errors is None:
            return True
        errors = self.errors(w)
        if errors >= self.pocket_errors:
            return False
        self.pocket_errors = errors
        return True
