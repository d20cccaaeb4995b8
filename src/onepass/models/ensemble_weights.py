"""The weights of an ensemble's members: Fixed Share over their losses, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scheme.rounds import Array
from .linear import LinearModel

__all__ = ["MemberWeights"]


class MemberWeights:
    """The weights of an `EnsembleModel`. Sums go member by member, so that chunks do not change the bits."""

    task: str
    members: list[LinearModel]
    eta: float
    alpha: float
    member_weights: Array
    losses: Array
    alive: NDArray[np.bool_]
    range: Array  # of the answers so far, in regression
    t: int

    @property
    def classes(self) -> list[Any]:
        raise NotImplementedError

    def _advice(self, scores: list[Array]) -> Array:
        """What members say, rows × members: indices of classes, or numbers within the range so far."""
        if self.task != "regression":
            return np.stack([m.class_indices(s) for m, s in zip(self.members, scores, strict=True)], axis=1)
        table = np.concatenate(scores, axis=1)
        return np.clip(table, *self.range) if self.range[0] <= self.range[1] else table

    def _mix(self, advice: Array, weights: Array, classes: int) -> Array:
        """The weighted advice. Members are added one by one, so that the number of rows does not change the sums."""
        if self.task == "regression":
            out = np.zeros((len(advice), 1))
            for m in range(advice.shape[1]):
                out[:, 0] += np.where(weights[:, m] > 0, weights[:, m] * advice[:, m], 0.0)
            return out
        shares = np.zeros((len(advice), max(2, classes)))
        rows = np.arange(len(advice))
        for m in range(advice.shape[1]):
            shares[rows, advice[:, m].astype(np.intp)] += weights[:, m]  # 0 for retired members
        return shares[:, 1:] - shares[:, :1] if classes <= 2 else shares

    def _weigh(
        self,
        scores: list[Array],
        answers: NDArray[Any],
        c: Array | None,
        ends: NDArray[Any],
        count: int,
        classes: list[Any] | None = None,
    ) -> Array:
        """Mix the members' advice row by row, each with the weights of its time; members that ended early retire."""
        rows = len(answers)
        advice = self._advice([s[:rows] for s in scores])
        if self.task == "regression":
            losses, advice = self._square_losses([s[:rows, 0] for s in scores], answers)
        else:
            known = self.classes if classes is None else classes
            truth = _label_indices(answers, known)
            losses = (advice != truth[:, np.newaxis]).astype(np.float64)
            if len(known) < 2:
                losses[:] = 0.0  # with one class no prediction can be wrong
        if c is not None:
            losses = losses * np.minimum(c, 1.0)[:, np.newaxis]
        heard = (np.arange(rows)[:, np.newaxis] <= ends) & self.alive  # a member still predicts the row that it refuses
        losses = np.where(heard, losses, 0.0)
        factors = np.exp(-self.eta * losses)
        used = np.empty((rows, len(self.members)))
        w, M = self.member_weights, len(self.members)
        retiring = {int(end) for end in ends if end < rows}
        for i in range(rows):
            used[i] = w
            v = w * factors[i]
            if i in retiring:
                v = self._retire(v, ends <= i)
            v = (1.0 - self.alpha) * (v / v.sum())
            w = v + self.alpha / M if self.alive.all() else v + self.alpha * self.alive / self.alive.sum()
        self.member_weights = w
        totals = np.vstack([self.losses, losses])
        self.losses = np.cumsum(totals, axis=0)[-1]
        self.t += rows
        return self._mix(advice, used, count)

    def _retire(self, w: Array, gone: NDArray[np.bool_]) -> Array:
        self.alive = self.alive & ~gone
        w = np.where(self.alive, w, 0.0)
        total = float(w.sum())
        return w / total if total > 0 else self.alive / self.alive.sum()

    def _square_losses(self, raw: list[Array], answers: Array) -> tuple[Array, Array]:
        """((f − y)/B)² with B the width of the answers so far, this one included; advice within the range before it."""
        low = np.minimum.accumulate(np.concatenate([self.range[:1], answers]))
        high = np.maximum.accumulate(np.concatenate([self.range[1:], answers]))
        table = np.stack(raw, axis=1)
        known = low[:-1] <= high[:-1]
        clipped = np.where(known[:, np.newaxis], np.clip(table, low[:-1, np.newaxis], high[:-1, np.newaxis]), table)
        inside = np.clip(table, low[1:, np.newaxis], high[1:, np.newaxis])
        width = np.maximum(high[1:] - low[1:], np.finfo(np.float64).tiny)
        losses = ((inside - answers[:, np.newaxis]) / width[:, np.newaxis]) ** 2
        self.range = np.array([low[-1], high[-1]])
        return losses, clipped


def _label_indices(answers: NDArray[Any], classes: list[Any]) -> NDArray[np.int64]:
    """Indices of labels among the classes; −1 where not known."""
    table = {label: i for i, label in enumerate(classes)}
    return np.array([table.get(label, -1) for label in answers.tolist()], dtype=np.int64)
