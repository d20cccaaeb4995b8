"""The scheme, in readable Python: task → rule → weights → readout.

Every round: a task turns the example into a direction φ and a target; a rule looks at a few scalars and
answers with a `Step`; the weights move, w ← scale·w + add·φ; a readout says which weights predict.

`rounds.py` defines rules and tasks, `readouts.py` the readouts. The learner here is the reference that the native loops
are tested against, and the place to see what happens:

>>> import onepass as op
>>> learner = op.ReferenceLearner("pa", fit_intercept=False)
>>> for x, y in [((1, 2), +1), ((2, -1), -1)]:
...     _ = learner.learn(x, y)
>>> print(learner.trace())
t  x       y   score  loss  add  scale  w
1  (1,2)   1   0      1     0.2  1      (0.2,0.4)
2  (2,-1)  -1  0      1     0.2  1      (-0.2,0.6)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import rules
from ..errors import FeatureError, FullError, InputError, NumericalError, ParameterError
from ..scheme import geometry, tasks
from ..scheme.readouts import Readout, Voted, is_ratchet, make_readout
from ..scheme.rounds import (
    PASSIVE,
    ZERO_NORM,
    Array,
    Direction,
    Rule,
    Scalars,
    Seen,
    Step,
    Task,
    calibrates,
    require_norm,
    require_start,
)
from ..scheme.spread import Covariance
from .reference_readouts import ReadoutMemory
from .reference_round import Record, Round

__all__ = ["Record", "ReferenceLearner"]


class ReferenceLearner:
    """One learner, round by round, keeping a record of each."""

    def __init__(
        self,
        rule: str | Rule,
        task: str | Task = "binary",
        *,
        classes: int = 2,
        multiclass: str = "rival",
        costs: ArrayLike | None = None,
        threshold: str = "uncalibrated",
        radius: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        bias_in_norm: bool = True,
        readout: str | Readout = "last",
        examples: Sequence[tuple[Any, Any, float]] = (),
        w: ArrayLike | None = None,
    ) -> None:

        self.rule = rules.make(rule)
        self.traits = self.rule.traits
        self.rule.require_multiclass(multiclass)
        self.multiclass = multiclass
        self.task: Task = tasks.make(task, classes, multiclass, costs, radius)
        self.rule.require(self.task.name)
        if costs is not None:
            self.rule.require_costs(self.task.name, multiclass, classes)
        self.calibrated = calibrates(threshold, self.rule, self.task.name)
        if w is None:
            require_start(self.rule)
        self.readout = make_readout(readout, self.rule)
        ratchet = is_ratchet(self.readout, self.task.name)
        self.examples = list(examples)  # x, y, importance: what the ratchet judges by
        if ratchet and not self.examples:
            raise ParameterError(f"{self.readout!r} judges weights on a stored set: give examples=")
        self.memory = ReadoutMemory(self.readout, self._errors if ratchet else None)
        self.intercept_scaling = float(intercept_scaling) if fit_intercept else 0.0
        self.bias_in_norm = bias_in_norm
        require_norm(self.rule, fit_intercept, bias_in_norm)
        self._covariance: Covariance | None = None  # known with the first example, if the rule has one
        self.t = self.k = self.mistakes = self.skipped_zero = 0
        self.cumulative_loss = self.sum_weight = 0.0
        self.state = dict(self.rule.slots)
        self.records: list[Record] = []
        self._p = self.traits.geometry
        self._theta: Array | None = None  # what steps add to; w itself unless p ≠ 2
        if w is not None:
            given = self._with_intercept(np.array(w, dtype=np.float64))
            self._theta = geometry.link(given, self._p / (self._p - 1.0))
        self._batch: list[Array] = []  # add·φ of the rounds that will share a step, those without one left out
        self._batch_step: Step | None = None  # what else that step does
        self._batch_rounds = self._steps = 0
        self.planes: dict[str, Array] = {}  # what the rule keeps beside the weights, in their shape

    @property
    def w(self) -> Array:
        """The weights that predict: a vector, or one row per class."""
        return self._shaped(self._predicting()[:, :-1])

    @property
    def _w(self) -> Array | None:
        """The current weights, the intercept's as the last column."""
        return None if self._theta is None else self._linked(self._theta)

    @property
    def intercept(self) -> Any:
        column = self._predicting()[:, -1] * self.intercept_scaling
        return float(column[0]) if len(column) == 1 else column

    def score(self, x: Any, base: float = 0.0) -> Any:
        """Scores of the predicting weights, which begin at `base`; changes nothing."""
        self._require_base(base)
        if self._w is None:
            return _plain(base + np.zeros(self.task.shape(1)[0]))
        if self.memory.voters:
            ballots = [(base + self.task.scores(w, self._augment(x)), rounds) for w, rounds in self.memory.voters]
            if len(ballots[0][0]) == 1:
                return float(sum(rounds if s[0] > 0 else -rounds for s, rounds in ballots))
            counts = [(int(np.argmax(s)), rounds) for s, rounds in ballots]
            return np.array([sum(c for best, c in counts if best == r) for r in range(len(ballots[0][0]))], dtype=float)
        scores = self.task.scores(self._predicting(), self._augment(x))
        if self._covariance and self._covariance.spread.vaw:
            scores = scores / (1.0 + self._covariance.variance(self._augment(x)[np.newaxis]))
        return _plain(base + scores)

    def variance(self, x: Any) -> Any:
        """xᵀΣx: how unsure the score is; one per class row where each has its Σ."""
        ax = self._augment(x)
        covariance = self._covariance or self._start_covariance(self.task.shape(_width(ax)))
        if covariance is None:
            raise ParameterError(f"{self.rule!r} keeps no variances; use a second-order rule such as arow or rls")
        phi = np.broadcast_to(ax, (len(covariance.table), len(ax)))
        return _plain(np.sum(phi * covariance.through(phi), axis=1))

    def predict(self, x: Any, base: float = 0.0) -> Any:
        if self.memory.voters or base:
            votes = np.atleast_1d(self.score(x, base))
            if self.task.name == "regression":
                return float(votes[0])
            return (1 if votes[0] > 0 else -1) if len(votes) == 1 else int(np.argmax(votes))
        w = np.zeros(self.task.shape(_width(self._augment(x)))) if self._w is None else self._predicting()
        return self.task.predict(w, self._augment(x))

    def learn(self, x: Any, y: Any, importance: float = 1.0, base: float = 0.0) -> Record:
        """Observe the example, call the rule, update the weights, commit. An exception leaves the learner unchanged.

        base: the example's initial prediction (binary and regression). Its score is base + ⟨w, x⟩.
        """
        if not (math.isfinite(importance) and importance >= 0):
            raise InputError(f"importance must be a finite number >= 0, got {importance!r}")
        self._require_base(base)
        now = self._observe(x, y, importance, base)
        now.loss = self._loss_of(now)
        if not now.passive:
            now.step, now.phi = self._call_rule(now)
        self._update(now)
        self._require_finite(now)
        return self._commit(now)

    # -- the steps of a round ------------------------------------------------------------------------------------------

    def _observe(self, x: Any, y: Any, importance: float, base: float) -> Round:
        """Predict and reveal: the scores of x, the direction φ of the task, and the scalars that the rule will see."""
        ax = self._augment(x)
        theta = self._theta if self._theta is not None else np.zeros(self.task.shape(_width(ax)))
        w = self._linked(theta)
        scores = self.task.scores(w, ax)
        regression = self.task.name == "regression"
        direction = self.task.direction(w, ax, y - base if regression else y, self.rule)
        phi = direction.phi
        if self._theta is None:
            w = theta = np.zeros_like(phi)  # where x is not a row, the width is known only now
        begin = 0.0  # base, from the side that φ is on
        if base:
            scores = scores + base
            begin = (direction.side if regression else float(y)) * base
        scalars = self._scalars(direction, theta, w, begin)
        scalars.importance = importance
        now = Round(x, y, importance, base, ax, theta, w, scores, scalars, phi)
        now.all_scores = self.traits.sees_all_scores(self.task.name, self.multiclass)
        now.covariance = self._covariance or self._start_covariance(phi.shape)
        if now.covariance:
            self._multiply_by_sigma(now, now.covariance)
        if self.calibrated or self.traits.one_vs_rest:
            scalars.xx = self._row_norm(ax)  # also where all labels are in, or none: each has its side
        forgets = now.covariance is not None and now.covariance.spread.forgets
        now.zero = scalars.xx < ZERO_NORM and not (forgets or self.traits.dense_update)
        now.passive = importance == 0 or now.zero
        return now

    def _scalars(self, direction: Direction, theta: Array, w: Array, begin: float) -> Scalars:
        """What the rule sees of an example of importance 1 whose score begins at `begin`."""
        phi, regression = direction.phi, self.task.name == "regression"
        return Scalars(
            m=(float(np.sum(w * phi)) if direction.m is None else direction.m) + begin,
            target=direction.target + (begin if regression else 0.0),
            xx=self._norm(phi if self.bias_in_norm else phi[:, :-1]),
            ww=self._norm(theta),
            importance=1.0,
            t=(self.t if self.traits.batch_size == 1 else self._steps) + 1,
            k=self.k,
            side=direction.side,
            state=dict(self.state),
            regression=regression,
            base=begin,
        )

    def _multiply_by_sigma(self, now: Round, covariance: Covariance) -> None:
        """Gaussian weights move along Σφ, and the rule sees φᵀΣφ in place of ‖φ‖²."""
        now.direction = now.ax[np.newaxis] if now.all_scores else now.phi
        now.phi = covariance.through(now.direction)
        now.scalars.xx = float(np.sum(now.direction * now.phi))
        if now.scalars.xx < 0:
            raise NumericalError(f"round {self.t + 1}: φᵀΣφ = {now.scalars.xx} < 0; Σ is no longer positive definite")

    def _loss_of(self, now: Round) -> float:
        """Suffer: the rule's loss before the update."""
        if now.all_scores:
            loss = self.rule.suffer_all(now.scores, int(now.y))
        else:
            loss = self.rule.suffer(now.scalars)
        if self.calibrated:
            loss = sum(self.rule.suffer(side) for _, side in self._sides(now))
        return loss

    def _call_rule(self, now: Round) -> tuple[Step, Array]:
        """The rule's step, and the direction that it goes along: φ, or a combination of x over the rows of classes."""
        if self.calibrated:
            step, coefficients = PASSIVE, np.zeros(len(now.scores))
            for label, side in self._sides(now):
                answer = self.rule.step(side)
                coefficients[label] = answer.add if label in now.y else -answer.add
                step = dataclasses.replace(answer, add=1.0)
            along = now.ax
        elif now.all_scores:
            xx = now.scalars.xx if now.covariance else self._row_norm(now.ax)
            coefficients, step = self.rule.solve(now.scores, int(now.y), dataclasses.replace(now.scalars, xx=xx))
            along = now.phi[0] if now.covariance else now.ax
        else:
            return self.rule.step(now.scalars), now.phi
        if not np.any(coefficients):
            step = dataclasses.replace(step, add=0.0)  # nothing to add: a passive round
        return step, np.outer(coefficients, along)

    def _update(self, now: Round) -> None:
        """w ← scale·w + add·φ, at once or when the mini-batch is full; and what else the rule keeps."""
        now.batch, now.batch_step = self._batch, self._batch_step
        if not now.passive:
            now.batch, now.batch_step = [*self._batch, now.step.add * now.phi], now.step
        rounds = self._batch_rounds + 1
        now.full = rounds == self.traits.batch_size
        now.after = self._moved(now.theta, now.batch, now.batch_step, rounds) if now.full else now.theta
        now.updated = now.full and any(bool(np.any(part)) for part in now.batch)
        if self.traits.by_coordinate:
            self._update_coordinates(now)
        if now.covariance and not (now.passive or now.step.passive):
            assert now.direction is not None
            now.table = now.covariance.updated(now.direction, now.step.gain, now.step.forget)

    def _update_coordinates(self, now: Round) -> None:
        """The update of a rule that moves each coordinate by its own history, its planes."""
        before, now.planes = self._planes_of(now.theta), self._planes_of(now.theta)
        if not now.passive:
            seen = Seen(now.ax, now.scores, self._labels(now.y, len(now.scores)), now.step.add * now.phi)
            with np.errstate(over="ignore", invalid="ignore"):
                now.after = self.rule.moved(now.theta, seen, now.planes, now.scalars)
        same = all(np.array_equal(before[name], plane) for name, plane in now.planes.items())
        now.updated = not (same and np.array_equal(now.after, now.theta))

    def _require_finite(self, now: Round) -> None:
        finite = all(np.all(np.isfinite(plane)) for plane in now.planes.values())
        if not finite:
            raise NumericalError(f"round {self.t + 1}: the update of {self.rule!r} overflows")
        numbers = (now.after, now.scores, now.scalars.xx)
        if not (now.step.finite and all(np.all(np.isfinite(number)) for number in numbers)):
            raise NumericalError(f"round {self.t + 1}: the update of {self.rule!r} overflows; scale the features down")
        if (
            isinstance(self.readout, Voted)
            and not now.step.passive
            and len(self.memory.voters) > self.readout.max_vectors
        ):
            raise FullError(f"round {self.t + 1}: the voted readout already keeps max_vectors updates")

    def _commit(self, now: Round) -> Record:
        """Nothing was refused: the round becomes part of the learner."""
        after = self._linked(now.after)
        shown, score, prediction = (
            self._shaped(after[:, :-1]),
            self.score(now.x, now.base),
            self.predict(now.x, now.base),
        )
        record = Record(self.t + 1, now.x, now.y, score, prediction, now.loss, now.step, now.updated, shown)
        self.memory.remember(self.t + 1, now.w, after, not now.step.passive, now.passive)
        self._theta, self._covariance, self.planes = now.after, now.covariance, now.planes
        if now.covariance and now.table is not None:
            now.covariance.table = now.table
        self._batch, self._batch_step = ([], None) if now.full else (now.batch, now.batch_step)
        self._batch_rounds = 0 if now.full else self._batch_rounds + 1
        self._steps += now.full
        self.state = now.scalars.state
        self.t += 1
        self.k += record.updated
        self.mistakes += _differs(prediction, now.y)
        self.skipped_zero += now.zero
        self.cumulative_loss += now.importance * now.loss
        self.sum_weight += now.importance
        self.records.append(record)
        return record

    # -- what the steps are made of ------------------------------------------------------------------------------------

    def _require_base(self, base: float) -> None:
        if not math.isfinite(base):
            raise InputError(f"base must be a finite number, got {base!r}")
        if base and self.task.name not in ("binary", "regression"):
            raise InputError(
                f"base={base!r} is an initial prediction, but {self.task.name} has no one score to add it to"
            )

    def flush(self) -> None:
        """Take the step of a batch that is not full; its mean is over the rounds there are."""
        if self._theta is None or self._batch_rounds == 0:
            return
        moved = self._moved(self._theta, self._batch, self._batch_step, self._batch_rounds)
        self.k += any(bool(np.any(part)) for part in self._batch)
        self._theta, self._batch, self._batch_step, self._batch_rounds = moved, [], None, 0
        self._steps += 1

    def _moved(self, theta: Array, parts: list[Array], step: Step | None, rounds: int) -> Array:
        """θ after a step: the sum or mean of the rounds' own additions, then what else it does."""
        if step is None:
            return theta
        share = 1.0 / rounds if self.traits.reduction == "mean" else 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            moved = step.scale * theta
            moved[:, :-1] *= step.decay
            for part in parts:
                moved += share * part
            features = moved[:, :-1]
            softened = np.sign(features) * np.maximum(0.0, np.abs(features) - step.soft)
            moved[:, :-1] = step.shrink * np.where(np.abs(features) <= self.traits.soft_limit, softened, features)
            if self.traits.ball < math.inf:
                moved *= self.traits.ball / max(self.traits.ball, math.sqrt(self._norm(moved)))
        return moved

    def _planes_of(self, w: Array) -> dict[str, Array]:
        """The planes beside weights like w, to be changed: as they are, or at their start."""
        if self.planes:
            return {name: plane.copy() for name, plane in self.planes.items()}
        d = w.shape[1]
        shapes = {p.name: (d, d) if p.square else (w.shape[:1] if p.of_row else w.shape) for p in self.traits.planes}
        return {p.name: np.full(shapes[p.name], p.start) for p in self.traits.planes}

    def _labels(self, y: Any, rows: int) -> Array:
        """What each row of weights should say."""
        if not self.traits.one_vs_rest:
            return np.empty(0)
        if self.task.name in ("multiclass", "multilabel"):
            return np.where(
                np.isin(np.arange(rows), list(y) if self.task.name == "multilabel" else [int(y)]), 1.0, -1.0
            )
        return np.array([float(y)])

    def _sides(self, now: Round) -> list[tuple[int, Scalars]]:
        """The lowest-scoring label in y, which should be above 0, and the highest-scoring outside, below."""
        scores, s = now.scores, now.scalars
        inside = np.isin(np.arange(len(scores)), list(now.y))
        out = []
        if np.any(inside):
            lowest = int(np.argmin(np.where(inside, scores, np.inf)))
            out.append((lowest, dataclasses.replace(s, m=float(scores[lowest]), state=s.state)))
        if not np.all(inside):
            highest = int(np.argmax(np.where(inside, -np.inf, scores)))
            out.append((highest, dataclasses.replace(s, m=-float(scores[highest]), state=s.state)))
        return out

    def trace(self) -> str:
        """The rounds so far as a table, as a student would write them."""
        rows = [("t", "x", "y", "score", "loss", "add", "scale", "w")]
        for r in self.records:
            cells = (r.t, r.x, r.y, r.score, r.loss, r.step.add, r.step.scale * r.step.decay, r.w)
            rows.append(tuple(_show(cell) for cell in cells))  # type: ignore[arg-type]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    def _augment(self, x: Any) -> Any:
        """x with the constant feature appended; tasks whose inputs are not rows see them as they are."""
        if self.task.name == "structured":
            return x
        if not isinstance(x, (Sequence, np.ndarray)) or (len(x) and not np.isscalar(x[0])):
            return x
        row = np.append(np.asarray(x, dtype=np.float64), self.intercept_scaling)
        if not np.all(np.isfinite(row)):
            raise InputError(f"x must hold finite numbers, got {x!r}")
        if self._w is not None and len(row) != self._w.shape[1]:
            raise FeatureError(f"expected {self._w.shape[1] - 1} features, got {len(row) - 1}")
        return row

    def _with_intercept(self, w: Array) -> Array:
        w = np.atleast_2d(w)
        return np.hstack([w, np.zeros((len(w), 1))])

    def _start_covariance(self, shape: tuple[int, ...]) -> Covariance | None:
        spread = self.traits.spread
        if spread is None:
            return None
        shared = self.traits.sees_all_scores(self.task.name, self.multiclass)
        return Covariance(spread, *shape, shared=shared, intercept=self.intercept_scaling != 0)

    def _linked(self, theta: Array) -> Array:
        return theta if self._p == 2 else geometry.link(theta, self._p)

    def _norm(self, x: Array) -> float:
        """‖x‖², in the rule's geometry."""
        return float(np.sum(x * x)) if self._p == 2 else geometry.p_norm(x, self._p) ** 2

    def _row_norm(self, ax: Array) -> float:
        return self._norm(ax if self.bias_in_norm else ax[:-1])

    def _predicting(self) -> Array:
        return np.zeros(self.task.shape(1)) if self._w is None else self.memory.weights(self._w)

    def _errors(self, w: Array) -> float:
        """The importance of the stored examples that w gets wrong."""
        return sum(c for x, y, c in self.examples if self.task.predict(w, self._augment(x)) != y)

    def _shaped(self, w: Array) -> Array:
        return w[0] if len(w) == 1 else w


def _width(ax: Any) -> int:
    return len(ax) if isinstance(ax, np.ndarray) else 0


def _plain(scores: Array) -> Any:
    return float(scores[0]) if len(scores) == 1 else scores


def _differs(prediction: Any, y: Any) -> bool:
    return bool(np.any(np.asarray(prediction) != np.asarray(y)))


def _show(value: Any) -> str:
    """A number as people write it; what is 0 but for rounding is 0."""
    if isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return "(" + ",".join(_show(item) for item in value) + ")"
    return f"{value if abs(value) > 1e-12 else 0.0:.6g}" if isinstance(value, float) else str(value)
