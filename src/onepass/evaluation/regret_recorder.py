"""Records the rows and scores of a run, up to a limit, and measures its regret at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..convex.regret.curves import Regret
from ..errors import InputError, ParameterError
from ..rows.batches import as_batch, is_mappings
from ..rows.examples import Examples
from ..scheme.parameters import Parameters, number
from ..scheme.readouts import Last
from .answers import Scored
from .examples import equal_runs
from .run_state import decode, encode

__all__ = ["Hindsight", "RegretRecorder"]

RIDGE = 1.0  # for the comparator, where the best weights may be infinitely long or are not found exactly


@dataclasses.dataclass(repr=False)
class Hindsight(Parameters):
    """How `prequential(regret=…)` measures regret.

    radius: compare with the best u of at most this length; by default with the best of all.
    limit: numbers to keep (non-zeros of the rows, 16 bytes each). Beyond, the regret is that of the rows that fit: the
        first ones, of which it is exact.
    """

    family = "hindsight"
    radius: float | None = number(None, above=0)
    limit: int = number(10_000_000, at_least=1, integer=True)


class RegretRecorder:
    """The rows and scores of a linear model's run; `finish` measures the regret."""

    def __init__(self, model: Any, how: Hindsight) -> None:
        self.how = how
        self.model = linear_model(model)
        self.regression = self.model.task == "regression"
        self.columns: dict[Any, int] = {}  # of mappings
        self.data: list[NDArray[Any]] = []
        self.indices: list[NDArray[Any]] = []
        self.counts: list[NDArray[Any]] = []
        self.scores: list[NDArray[Any]] = []  # of regression
        self.parts: list[tuple[list[Any], NDArray[Any]]] = []  # of classes: those that were known, and their scores
        self.labels: list[Any] = []
        self.weights: list[NDArray[Any]] = []
        self.kept = 0
        self.missed = 0  # rows that came after the limit

    def add(self, rows: Examples, said: Any, held: NDArray[np.bool_] | None = None) -> None:
        """Record rows with their predictions before learning: parts (classes, scores), or numbers.

        Examples that are `held` out are not recorded: they are not learned.
        """
        if held is not None and held.any():
            for start, stop in equal_runs(held):
                if not held[start]:
                    self.add(rows.part(start, stop), _part_of(said, start, stop))
            return
        self.require_no_base(rows)
        count = rows.size()
        if self.missed:
            self.missed += count
            return
        data, indices, counts = self._row_arrays(rows.X)
        widths = 0 if self.regression else np.concatenate([np.full(len(raw), raw.shape[1] - 1) for _, raw in said])
        room = int(np.searchsorted(np.cumsum(counts + widths), self.how.limit - self.kept, side="right"))
        fits = min(count, room)
        self.missed += count - fits
        end = int(np.sum(counts[:fits]))
        self.kept += int(np.sum((counts + widths)[:fits]))
        self.data.append(np.asarray(data[:end], dtype=np.float64))
        self.indices.append(np.asarray(indices[:end]))
        self.counts.append(counts[:fits])
        if self.regression:
            self.scores.append(np.asarray(said, dtype=np.float64)[:fits])
        else:
            starts = np.concatenate([[0], np.cumsum([len(raw) for _, raw in said])]).tolist()
            self.parts += [
                (list(known), raw[: max(0, fits - at)]) for (known, raw), at in zip(said, starts, strict=False)
            ]
        self.labels += (rows.y.tolist() if isinstance(rows.y, np.ndarray) else list(rows.y))[:fits]
        self.weights.append((np.ones(count) if rows.weight is None else np.asarray(rows.weight, float))[:fits])

    @staticmethod
    def require_no_base(rows: Examples) -> None:
        if rows.base is not None:
            raise InputError(
                "the stream has initial predictions (base), but regret compares with fixed weights, whose scores begin "
                "at 0; leave the regret out, or take the third number of the labels out"
            )

    def add_one(self, x: Any, y: Any, weight: float | None, base: float, model: Any) -> None:
        """One example, before the model learns it."""
        X: Any = [x] if isinstance(x, Mapping) else np.atleast_2d(np.asarray(x, dtype=np.float64))
        c = None if weight is None else np.array([weight])
        rows = Examples(X, [y], c, base=np.array([base]) if base else None)
        if self.regression:
            said: Any = np.array([float(model.predict_one(x) or 0.0)])
        else:
            known = getattr(model, "classes", None)
            if known is None:
                known = getattr(model, "classes_", []) if hasattr(model, "t_") else []
            said = [(list(known), np.atleast_2d(np.asarray(model.score_one(x), dtype=np.float64)))]
        self.add(rows, said)

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
                "regret needs a weight for every name, and hash_bits lets names share one: leave hash_bits out"
            )
        data, indices, counts = [], [], []
        for row in X:
            for name, value in row.items():
                key, amount = (f"{name}={value}", 1.0) if isinstance(value, str) else (name, float(value))
                indices.append(self.columns.setdefault(key, len(self.columns)))
                data.append(amount)
            counts.append(len(row))
        return np.array(data), np.array(indices, dtype=np.int64), np.array(counts, dtype=np.int64)

    # -- state -------------------------------------------------------------------------------------------------------

    def state(self, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """What `restore` needs, as JSON; the rows go to `arrays`, under names that begin with regret."""
        columns = {"data": self.data, "indices": self.indices, "counts": self.counts, "weights": self.weights}
        columns["scores"] = self.scores
        there = [name for name, parts in columns.items() if parts]
        arrays |= {f"regret.{name}": np.concatenate(columns[name]) for name in there}
        known: list[list[Any]] = []  # each different list of classes, with the scores of all rows that had it
        tables: list[list[NDArray[Any]]] = []
        for classes, raw in self.parts:
            if not known or known[-1] != classes or tables[-1][-1].shape[1] != raw.shape[1]:
                known.append(classes)
                tables.append([])
            tables[-1].append(raw)
        arrays |= {f"regret.part{i}": np.concatenate(table) for i, table in enumerate(tables)}
        return {
            "there": there,
            "known": encode(known),
            "labels": encode(self.labels),
            "names": encode(list(self.columns)),
            "counts": [self.kept, self.missed],
        }

    def restore(self, content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on where the recorder was whose `state` this is."""
        for name in content["there"]:
            setattr(self, name, [arrays[f"regret.{name}"]])
        self.parts = [(classes, arrays[f"regret.part{i}"]) for i, classes in enumerate(decode(content["known"]))]
        self.labels = decode(content["labels"])
        self.columns = {name: at for at, name in enumerate(decode(content["names"]))}
        self.kept, self.missed = content["counts"]

    # -- the comparison -----------------------------------------------------------------------------------------------

    def finish(self) -> Regret | None:
        """The regret, or None where nothing was learned."""
        from ..convex.regret import class_guarantees, guarantees

        if not self.labels:
            return None
        rounds = self._recorded_rounds()
        if self.regression or len(self._classes()) <= 2:
            found = guarantees.of(self.model.rule, self.model.task)
        else:
            found = class_guarantees.of(self.model.rule, self.model.multiclass, self.model.costs)
        best = self._best(rounds, found.loss)
        ours, theirs = found.ours(rounds), found.theirs(rounds, rounds.X @ best.u.T)
        bound, reason = None, self._no_bound()
        constants: dict[str, float] = {}
        if not reason and found.bound is not None:
            got = found.bound(rounds, best.u, theirs)
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

    def _recorded_rounds(self) -> Any:
        from scipy.sparse import csr_array, hstack

        from ..convex.regret.class_guarantees import RecordedClassRounds
        from ..convex.regret.guarantees import RecordedRounds

        indices = np.concatenate(self.indices)
        starts = np.concatenate([[0], np.cumsum(np.concatenate(self.counts))])
        used, indices = np.unique(indices, return_inverse=True)  # a hashed table is mostly empty
        rows = len(starts) - 1
        X: Any = csr_array((np.concatenate(self.data), indices, starts), shape=(rows, max(1, len(used))))
        X.sum_duplicates()
        if self.model.fit_intercept:
            X = hstack([X, csr_array(np.full((rows, 1), self.model.intercept_scaling))], format="csr")
        c = np.concatenate(self.weights)
        xx = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        if self.regression:
            return RecordedRounds(X, np.concatenate(self.scores), np.array(self.labels, dtype=np.float64), c, xx)
        classes = self._classes()
        codes = np.array([classes.index(label) for label in self.labels], dtype=np.int64)
        if len(classes) > 2:
            return RecordedClassRounds(X, *self._class_scores(classes, codes), codes, c, xx)
        y = np.where(codes == len(classes) - 1, 1.0, -1.0)
        return RecordedRounds(X, y * self._margins(), y, c, xx)

    def _classes(self) -> list[Any]:
        """Those the model knew or the rows had, in order."""
        found = {label for known, _ in self.parts for label in known} | set(self.labels)
        return sorted(found, key=lambda label: (str(type(label)), label))

    def _margins(self) -> NDArray[Any]:
        """m = y·s. While one label is known it is the negative one, and the label that comes next the other."""
        out, start = [], 0
        for known, raw in self.parts:
            labels = self.labels[start : start + len(raw)]
            start += len(raw)
            positive = known[1] if len(known) > 1 else None
            sign = [(label == positive if positive is not None else label not in known) for label in labels]
            out.append(np.where(sign, 1.0, -1.0) * raw[:, 0])
        return np.concatenate(out)

    def _class_scores(self, classes: list[Any], codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The scores of all classes, 0 where they were not met yet, and which the model knew when it learned the row.

        While there is one score s, it is that of the second class to come over the first: (−s/2, s/2).
        """
        came = list(dict.fromkeys([*self.parts[0][0], *self.labels]))
        scores, start = np.zeros((len(codes), len(classes))), 0
        known = np.zeros(scores.shape, dtype=bool)
        for labels, raw in self.parts:
            stop = start + len(raw)
            pair = labels if len(labels) > 1 else came[:2]
            at = [classes.index(label) for label in pair]
            scores[start:stop, at] = raw if raw.shape[1] > 1 else raw * (-0.5, 0.5)
            known[start:stop, at] = True
            start = stop
        known[np.arange(len(codes)), codes] = True  # a new label is registered before its row is learned
        return scores, known

    def _best(self, rounds: Any, loss: Any) -> Any:
        from ..convex.sets import L2Ball, Reals

        solve, exact = self._solver(rounds)
        if self.how.radius is not None:
            return solve(loss, L2Ball(self.how.radius), 0.0)
        smooth = loss.name in ("squared", "logistic", "squared_hinge", "huber", "squared_eps_insensitive")
        if not smooth and not exact:
            return solve(loss, Reals(), RIDGE)
        found = solve(loss, Reals(), 0.0)
        return found if found.attained else solve(loss, Reals(), RIDGE)

    @staticmethod
    def _solver(rounds: Any) -> tuple[Any, bool]:
        """What finds the best of a loss over a set, and whether it does so exactly where the loss has kinks."""
        from ..convex.regret import class_hindsight, hindsight
        from ..convex.regret.class_guarantees import RecordedClassRounds

        X, y, c = rounds.X, rounds.y, rounds.c
        if isinstance(rounds, RecordedClassRounds):
            K = rounds.s.shape[1]
            return (
                lambda loss, set, ridge: class_hindsight.best_rows(X, y, K, loss, set, c, ridge),
                class_hindsight.exact(X, K),
            )
        small = X.shape[0] <= hindsight.EXACT_ROWS and X.nnz <= hindsight.EXACT_NUMBERS
        return (lambda loss, set, ridge: hindsight.best(X, y, loss, set, c, ridge)), small


def _part_of(said: Any, start: int, stop: int) -> Any:
    """The predictions of some of the rows."""
    if not isinstance(said, Scored):
        return said[start:stop]
    parts, at = Scored(), 0
    for known, raw in said:
        if at < stop and at + len(raw) > start:
            parts.append((known, raw[max(0, start - at) : stop - at]))
        at += len(raw)
    return parts


def linear_model(model: Any) -> Any:
    """The `LinearModel` behind an estimator; models without one cannot be compared with fixed weights."""
    from ..learner import traits_of

    traits = traits_of(model)
    fits = traits is not None and traits.linear and traits.by_rule
    made = None if not fits else model if hasattr(model, "options") else model.new_model()
    if made is None or made.rule_traits.geometry != 2:
        raise ParameterError(
            f"regret compares with the best fixed weights: it needs a linear model of ours, not {model!r:.80}"
        )
    if made.task not in ("auto", "binary", "multiclass", "regression"):
        raise ParameterError(f"regret is measured for classes or numbers, not for task={made.task!r}")
    if getattr(model, "class_weight", None) is not None:
        raise ParameterError("regret takes the stream's own importances: leave class_weight out")
    return made
