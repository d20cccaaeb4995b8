"""Looking back: the rows and scores of a run, kept within a limit, so that its regret can be measured at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batches import as_batch, is_mappings
from ..core import Last
from ..errors import InputError, ParameterError
from ..parameters import Parameters, number
from ..regrets import Regret
from .reading import Rows

__all__ = ["Hindsight", "Lookback"]

RIDGE = 1.0  # of the comparator where the best of all is not found for sure, or infinitely long


@dataclasses.dataclass(repr=False)
class Hindsight(Parameters):
    """How `prequential(regret=…)` looks back.

    radius: compare with the best u of at most this length; by default with the best of all.
    limit: numbers to keep (non-zeros of the rows, 16 bytes each). Beyond, the regret is that of the rows that fit: the
        first ones, of which it is exact.
    """

    family = "hindsight"
    radius: float | None = number(None, above=0)
    limit: int = number(10_000_000, at_least=1, integer=True)


class Lookback:
    """What is kept of a run of a linear model, and `finish`, which looks back on it."""

    def __init__(self, model: Any, how: Hindsight) -> None:
        self.how = how
        self.model = linear_model(model)
        self.regression = self.model.task == "regression"
        self.columns: dict[Any, int] = {}  # of mappings
        self.data: list[NDArray[Any]] = []
        self.indices: list[NDArray[Any]] = []
        self.counts: list[NDArray[Any]] = []
        self.scores: list[NDArray[Any]] = []  # margins for classes
        self.labels: list[Any] = []
        self.weights: list[NDArray[Any]] = []
        self.kept = 0
        self.missed = 0  # rows that came after the limit

    def add(self, rows: Rows, said: Any) -> None:
        """Rows with what was said of them before they were learned: parts (classes, scores), or numbers."""
        self.require_no_base(rows)
        count = rows.size()
        if self.missed:
            self.missed += count
            return
        scores = np.asarray(said, dtype=np.float64) if self.regression else self._margins(rows.y, said)
        data, indices, counts = self._row_arrays(rows.X)
        room = int(np.searchsorted(np.cumsum(counts), self.how.limit - self.kept, side="right"))
        fits = min(count, room)
        self.missed += count - fits
        end = int(np.sum(counts[:fits]))
        self.kept += end
        self.data.append(np.asarray(data[:end], dtype=np.float64))
        self.indices.append(np.asarray(indices[:end]))
        self.counts.append(counts[:fits])
        self.scores.append(scores[:fits])
        self.labels += (rows.y.tolist() if isinstance(rows.y, np.ndarray) else list(rows.y))[:fits]
        self.weights.append((np.ones(count) if rows.weight is None else np.asarray(rows.weight, float))[:fits])
        if not self.regression and len(set(self.labels[-fits:])) > 2:
            self._two(set(self.labels))

    @staticmethod
    def require_no_base(rows: Rows) -> None:
        if rows.base is not None:
            raise InputError(
                "regret compares with fixed weights, whose scores begin at 0: the stream has initial predictions (base)"
            )

    def add_one(self, x: Any, y: Any, weight: float | None, base: float, model: Any) -> None:
        """One example, before the model learns it."""
        X: Any = [x] if isinstance(x, Mapping) else np.atleast_2d(np.asarray(x, dtype=np.float64))
        c = None if weight is None else np.array([weight])
        rows = Rows(X, [y], c, base=np.array([base]) if base else None)
        if self.regression:
            said: Any = np.array([float(model.predict_one(x) or 0.0)])
        else:
            known = getattr(model, "classes", None)
            if known is None:
                known = getattr(model, "classes_", []) if hasattr(model, "t_") else []
            said = [(list(known), np.atleast_2d(np.asarray(model.score_one(x), dtype=np.float64)))]
        self.add(rows, said)

    @staticmethod
    def _two(labels: set[Any]) -> None:
        if len(labels) > 2:
            raise InputError(
                f"regret is measured for two classes or for numbers; this stream has {sorted(map(str, labels))[:5]}… "
                "Evaluate it without regret"
            )

    def _margins(self, y: Any, said: Any) -> NDArray[Any]:
        """m = y·s. While one label is known it is the negative one, and the label that comes next the other."""
        labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
        out, start = [], 0
        for classes, raw in said:
            part = labels[start : start + len(raw)]
            start += len(raw)
            if len(classes) > 2 or (raw.ndim == 2 and raw.shape[1] > 1):
                self._two(set(classes))
            positive = classes[1] if len(classes) > 1 else None
            sign = [(label == positive if positive is not None else label not in classes) for label in part]
            out.append(np.where(sign, 1.0, -1.0) * raw[:, 0])
        return np.concatenate(out) if out else np.empty(0)

    def _row_arrays(self, X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        if is_mappings(X):
            return self._mappings(X)
        batch = as_batch(X)
        if batch.dense is not None:
            full = np.full(batch.rows, batch.columns)
            return batch.dense.ravel(), np.tile(np.arange(batch.columns), batch.rows), full
        assert batch.csr is not None
        data, indices, starts = batch.csr
        return data[starts[0] : starts[-1]], indices[starts[0] : starts[-1]], np.diff(starts)

    def _mappings(self, X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        if self.model.hash_bits is not None:
            raise ParameterError(
                "regret looks back on rows by name, and hash_bits lets names fall together: leave it out"
            )
        data, indices, counts = [], [], []
        for row in X:
            for name, value in row.items():
                key, amount = (f"{name}={value}", 1.0) if isinstance(value, str) else (name, float(value))
                indices.append(self.columns.setdefault(key, len(self.columns)))
                data.append(amount)
            counts.append(len(row))
        return np.array(data), np.array(indices, dtype=np.int64), np.array(counts, dtype=np.int64)

    # -- the look back -------------------------------------------------------------------------------------------------

    def finish(self) -> Regret | None:
        """The regret, or None where nothing was learned."""
        from .. import guarantees

        if not self.labels:
            return None
        looked = self._looked()
        found = guarantees.of(self.model.rule, self.model.task)
        best = self._best(looked, found.loss)
        ours, theirs = found.ours(looked), found.theirs(looked, looked.X @ best.u)
        bound, reason = None, self._no_bound()
        constants: dict[str, float] = {}
        if not reason and found.bound is not None:
            got = found.bound(looked, best.u, theirs)
            if got is not None:
                bound, constants = got
        return Regret.of(
            np.arange(1, len(ours) + 1),
            np.cumsum(ours),
            np.cumsum(theirs),
            bound,
            comparator=best,
            constants=constants,
            who=repr(self.model.rule),
            what=found.what + (f", of the first {len(ours):,} rows: the limit was reached" if self.missed else ""),
            formula=found.formula if bound is not None else "",
            reason="" if bound is not None else reason or found.reason,
        )

    def _no_bound(self) -> str:
        if not isinstance(self.model.readout, Last):
            return f"the bound is of the last weights, not of readout={self.model.readout!r}"
        if self.model.fit_intercept and not self.model.bias_in_norm:
            return "the bound counts the intercept in ‖x‖: bias_in_norm=True"
        return ""

    def _looked(self) -> Any:
        from scipy.sparse import csr_array, hstack

        from ..guarantees import Looked

        indices = np.concatenate(self.indices)
        starts = np.concatenate([[0], np.cumsum(np.concatenate(self.counts))])
        used, indices = np.unique(indices, return_inverse=True)  # a hashed table is mostly empty
        rows = len(starts) - 1
        X: Any = csr_array((np.concatenate(self.data), indices, starts), shape=(rows, max(1, len(used))))
        X.sum_duplicates()
        if self.model.fit_intercept:
            X = hstack([X, csr_array(np.full((rows, 1), self.model.intercept_scaling))], format="csr")
        scores, c = np.concatenate(self.scores), np.concatenate(self.weights)
        xx = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        if self.regression:
            return Looked(X, scores, np.array(self.labels, dtype=np.float64), c, xx)
        self._two(set(self.labels))
        larger = max(set(self.labels), key=lambda label: (str(type(label)), label))
        y = np.array([1.0 if label == larger else -1.0 for label in self.labels])
        return Looked(X, y * scores, y, c, xx)

    def _best(self, looked: Any, loss: Any) -> Any:
        from ..convex.sets import L2Ball
        from ..hindsight import best

        if self.how.radius is not None:
            return best(looked.X, looked.y, loss, L2Ball(self.how.radius), looked.c)
        if loss.name not in ("squared", "logistic", "squared_hinge", "huber", "squared_eps_insensitive"):
            from ..hindsight import EXACT_NUMBERS, EXACT_ROWS

            if looked.X.shape[0] > EXACT_ROWS or looked.X.nnz > EXACT_NUMBERS:
                return best(looked.X, looked.y, loss, None, looked.c, RIDGE)
        found = best(looked.X, looked.y, loss, None, looked.c)
        return found if found.attained else best(looked.X, looked.y, loss, None, looked.c, RIDGE)


def linear_model(model: Any) -> Any:
    """The `LinearModel` behind an estimator; what has none has no fixed vector to be compared with."""
    from ..kernel_model import KernelModel
    from ..model import LinearModel

    made = model if isinstance(model, LinearModel) else None
    if made is None and hasattr(model, "new_model"):
        try:
            made = model.new_model()
        except ParameterError:  # an ensemble, which is many models
            made = None
    if not isinstance(made, LinearModel) or isinstance(made, KernelModel) or made.rule.geometry() != 2:
        raise ParameterError(
            f"regret compares with the best fixed weights: it needs a linear model of ours, not {model!r:.80}"
        )
    if made.task not in ("auto", "binary", "regression"):
        raise ParameterError(f"regret is measured for two classes or numbers, not for task={made.task!r}")
    if getattr(model, "class_weight", None) is not None:
        raise ParameterError("regret takes the stream's own importances: leave class_weight out")
    return made
