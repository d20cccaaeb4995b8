"""The modes of `fit`: online, incremental until a stopping test succeeds, or batch steps.

- "online": every example `passes` times, one update each; no test.
- "incremental": the same, up to `passes` times, until there is a reason to stop: a pass without an update (rules driven
  by mistakes), weights that no longer change, or an objective that no longer falls.
- "batch": one update a pass, with the steps of all examples at the same weights added up
  (rules whose step is a gradient).
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError, RowError
from ..models.linear import LinearModel
from ..models.rule_model import RuleModel
from ..rows.batches import Batch
from ..scheme.readouts import make_readout
from ..scheme.rounds import Array, Scalars

__all__ = ["Training"]

MODES = ("online", "incremental", "batch")
ORDERS = ("sequential", "shuffle", "random")


@dataclass
class Progress:
    """The best loss of a pass so far, and the number of passes that did not improve it by more than `tol`."""

    tol: float | None
    patience: int
    best: float = math.inf
    waited: int = 0

    def ended(self, loss: float) -> bool:
        if self.tol is None:
            return False
        self.waited = self.waited + 1 if loss > self.best - self.tol else 0
        self.best = min(self.best, loss)
        return self.waited >= self.patience


@dataclass
class Training:
    """The options of `fit`, and afterwards the reason why it stopped."""

    mode: str = "online"
    passes: int = 1
    order: str = "sequential"
    tol: float | None = 1e-3
    tol_w: float | None = 1e-6
    reduction: str = "sum"
    patience: int = 5  # the number of passes without progress beyond tol
    random: Any = None
    passes_made: int = 0
    stopped_by: str = ""
    losses: list[float] = field(default_factory=list)

    def run(self, model: RuleModel, table: Batch, y: NDArray[Any], importance: Array | None) -> None:
        self._check(model)
        if self.order != "sequential":
            table.require_finite()  # before shuffling, while rows have the numbers of the input
        with model.judged_by(table, y, importance) if model.ratchet else contextlib.nullcontext():
            self._passes(model, table, y, importance)

    def _passes(self, model: RuleModel, table: Batch, y: NDArray[Any], importance: Array | None) -> None:
        c = np.ones(table.rows) if importance is None else importance
        compares = self.mode != "online" and self.tol_w is not None and not model.rule_traits.mistake_driven
        progress = Progress(self.tol, self.patience)
        self.stopped_by = "passes"
        for number in range(1, self.passes + 1):
            before, updates = _weights(model) if compares else None, model.k
            order = self._rows(table.rows)
            if self.mode == "batch":
                loss, moved = self._batch_step(model, table, y, c, number)
            else:
                loss = self._pass(model, table, y, importance, order)
                model.flush()
                moved = model.k > updates
            self.passes_made = number
            if self.mode == "online":
                continue
            self.losses.append(loss)
            reason = self._reason_to_stop(model, before, moved, progress)
            if reason:
                self.stopped_by = reason
                return

    def _reason_to_stop(
        self, model: RuleModel, before: tuple[Array, Array] | None, moved: bool, progress: Progress
    ) -> str:
        """The reason to stop after a pass: "no update", "weights" or "objective"; "" if there is none."""
        mistake_driven = model.rule_traits.mistake_driven
        if (self.mode == "batch" or mistake_driven) and not moved:
            return "no update"
        if before is not None and self.tol_w is not None and _has_converged(before, _weights(model), self.tol_w):
            return "weights"
        if not mistake_driven and progress.ended(self.losses[-1]):
            return "objective"
        return ""

    def _check(self, model: RuleModel) -> None:
        if self.mode not in MODES:
            raise ParameterError(f"mode={self.mode!r}: expected one of {', '.join(MODES)}")
        if self.reduction not in ("sum", "mean"):
            raise ParameterError(f"reduction={self.reduction!r}: expected 'sum' or 'mean'")
        for name in ("tol", "tol_w"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and value >= 0):
                raise ParameterError(f"{name}={value!r}: expected None or a number >= 0")
        if (
            self.mode == "incremental"
            and self.tol is not None
            and not (model.rule_traits.mistake_driven or self._measures_loss(model))
        ):
            raise ParameterError("mode='incremental' measures the learner's own loss: use readout='last', or tol=None")
        if self.mode == "batch" and not (model.rule_traits.gradient and model.task in ("auto", "binary", "regression")):
            raise ParameterError(
                f"mode='batch' is for perceptron and adaline, with two classes or in regression, not for {model.rule!r}"
            )

    def _measures_loss(self, model: RuleModel) -> bool:
        """Whether the learner's own loss can be measured during the pass: only if the last weights predict."""
        return type(model.readout) is type(make_readout("last", model.rule))

    def _rows(self, rows: int) -> NDArray[np.intp] | None:
        if self.order == "shuffle":
            return np.asarray(self.random.permutation(rows))
        if self.order == "random":
            return np.asarray(self.random.randint(rows, size=rows))
        return None

    def _pass(
        self, model: RuleModel, table: Batch, y: NDArray[Any], c: Array | None, order: NDArray[np.intp] | None
    ) -> float:
        """One pass of single updates; returns the mean loss, each example's measured before its own update."""
        rows, answers, weights = table, y, c
        if order is not None:
            rows, answers, weights = table.take(order), y[order], None if c is None else c[order]
        try:
            if self.mode == "online" or not self._measures_loss(model):
                model.learn_many(rows, answers, weights)
                return math.nan
            return model.learn_and_suffer(rows, answers, weights)
        except RowError as error:
            if order is None:
                raise
            raise error.at(int(order[error.row])) from None

    def _batch_step(self, model: RuleModel, table: Batch, y: Any, c: Array, number: int) -> tuple[float, bool]:
        """w ← w + Σ (or mean) of the rule's steps, all at the same w; the schedule's clock is the pass."""
        rule, scores = model.rule, model.score_many(table)[:, 0]
        regression = model.task == "regression"
        signs = (
            np.where(y < scores, -1.0, 1.0) if regression else np.where(np.asarray(y) == model.classes[-1], 1.0, -1.0)
        )
        targets = signs * y - model.rule_traits.epsilon if regression else np.ones(table.rows)
        coefficients, loss = np.zeros(table.rows), 0.0
        for i in range(table.rows):
            s = Scalars(
                float(signs[i] * scores[i]), float(targets[i]), 1.0, 0.0, float(c[i]), number, model.k, signs[i]
            )
            loss += float(c[i]) * rule.suffer(s)
            coefficients[i] = rule.step(s).add * signs[i] if c[i] > 0 else 0.0
        share = 1.0 / table.rows if self.reduction == "mean" else 1.0
        cast(LinearModel, model).add_rows(table, share * coefficients)
        return loss / float(np.sum(c)), bool(np.any(coefficients))


def _weights(model: RuleModel) -> tuple[Array, Array]:
    """The last weights; the tests that compare them are for linear models."""
    return cast(LinearModel, model).weights(last=True)


def _has_converged(before: tuple[Array, Array], after: tuple[Array, Array], tol: float) -> bool:
    """‖w_e − w_{e−1}‖ ≤ tol · max(1, ‖w_{e−1}‖)."""
    if before[0].shape != after[0].shape:
        return False
    change = np.sqrt(np.sum((after[0] - before[0]) ** 2) + np.sum((after[1] - before[1]) ** 2))
    length = np.sqrt(np.sum(before[0] ** 2) + np.sum(before[1] ** 2))
    return bool(change <= tol * max(1.0, float(length)))
