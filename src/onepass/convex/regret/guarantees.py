"""Regret bounds of the papers: bounds on the mistakes or the loss of a rule against any u, with the constants of the
stream.

A guarantee is computed from `RecordedRounds`: scores, labels, importances and ‖x‖² of every round. `of(rule, task)`
finds it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...scheme import losses, schedules
from ...scheme.losses import Loss
from ..sets import Array
from .hindsight import values

__all__ = ["Bounds", "Guarantee", "RecordedRounds", "descends", "equal", "is_plain_descent", "of", "pull_of"]


@dataclasses.dataclass
class RecordedRounds:
    """The rounds of a run: x_t (with the constant feature, if there is one), s_t, y_t (±1 for classes), c_t, ‖x_t‖²."""

    X: Any
    s: Array
    y: Array
    c: Array
    xx: Array

    @property
    def squared_radius(self) -> Array:
        """max ‖x‖² so far, for every t."""
        return np.asarray(np.maximum.accumulate(self.xx))


Bounds = tuple[Array, dict[str, float]]
# The first argument is `RecordedRounds`, or `RecordedClassRounds` for several classes.
Bound = Callable[[Any, Array, Array], Bounds | None]


@dataclasses.dataclass
class Guarantee:
    """`ours(rounds)` and `theirs(rounds, s)` are the losses of the learner and of the comparator in each round. The
    comparator minimises `loss`. `bound(rounds, u, theirs)` bounds Σ ours − Σ theirs at every t; it is None if there is
    none.
    """

    what: str
    loss: Loss
    ours: Callable[[Any], Array]
    theirs: Callable[[Any, Array], Array]
    bound: Bound | None
    formula: str = ""
    reason: str = ""


def of(rule: Any, task: str) -> Guarantee:
    """The guarantee of a rule; if no bound is known, only the loss and the reason."""
    formula = rule.traits.formula
    if formula == "perceptron":
        return _perceptron(rule)
    if task == "ranking" or task == "structured":
        return of_loss(losses.Hinge(), f"bounds are for classes or numbers, not for task={task!r}")
    if formula in ("pa", "pa1", "pa2"):
        return _passive_aggressive(rule, task)
    if formula in ("sgd", "adaline"):
        return _descent(rule, *descends(rule), task)
    if formula in ("rls", "arow", "adagrad"):
        return _second_order(rule, task)
    loss = getattr(rule, "loss", None)
    made_loss = losses.make(loss) if isinstance(loss, str | Loss) else None
    if made_loss is None:
        made_loss = losses.Squared() if task == "regression" else losses.Hinge()
    return of_loss(made_loss, f"no bound of {rule.name} is known here")


def descends(rule: Any) -> tuple[Loss, schedules.Schedule]:
    """The loss whose gradient a rule follows, and its step sizes."""
    if rule.traits.formula == "sgd":
        return losses.make(rule.loss), rule._schedule()
    steps = schedules.Constant(rule.rho) if rule.schedule is None else schedules.make(rule.schedule)
    return losses.Squared(), steps


def is_plain_descent(rule: Any) -> bool:
    """Is there one step in each round, without a penalty? The theorem of gradient descent assumes that."""
    return (
        getattr(rule, "l2", 0.0) == 0
        and getattr(rule, "batch_size", 1) == 1
        and getattr(rule, "clock", "rounds") == "rounds"
    )


def _second_order(rule: Any, task: str) -> Guarantee:
    from . import second_order_guarantees as known

    formula = rule.traits.formula
    if formula == "adagrad":
        return known.adagrad(rule)
    return known.arow(rule) if formula == "arow" and task != "regression" else known.least_squares(rule)


def of_loss(loss: Loss, reason: str, bound: Bound | None = None, formula: str = "") -> Guarantee:
    """The guarantee that compares the loss of the learner with that of the comparator."""
    return Guarantee(loss.name, loss, lambda k: k.c * values(loss, k.s, k.y), lambda k, s: k.c * values(loss, s, k.y),
                     bound, formula, reason)  # fmt: skip


def of_mistakes(reason: str, bound: Bound | None, formula: str) -> Guarantee:
    """The guarantee that compares the mistakes of the learner with the hinge loss of the comparator."""
    hinge = losses.Hinge()
    return Guarantee("mistakes against hinge loss", hinge, lambda k: (k.y * k.s <= 0).astype(np.float64),
                     lambda k, s: values(hinge, s, k.y), bound, formula, reason)  # fmt: skip


def equal(k: Any) -> bool:
    return bool(np.all(k.c == 1.0))


def _perceptron(rule: Any) -> Guarantee:
    plain = rule.beta == 0 and not rule.strict and rule.schedule is None

    def bound(k: RecordedRounds, u: Array, theirs: Array) -> Bounds | None:
        if not equal(k):
            return None
        size, L = float(np.linalg.norm(u)), np.cumsum(theirs)
        R = np.sqrt(k.squared_radius)
        return R**2 * size**2 + R * size * np.sqrt(L), {"R": float(R[-1]), "‖u‖": size, "L(u)": float(L[-1])}

    return of_mistakes(
        "the bound is for the plain Perceptron (beta = 0, no schedule) and examples of importance 1",
        bound if plain else None,
        "R²‖u‖² + R‖u‖√L(u)",
    )


def _passive_aggressive(rule: Any, task: str) -> Guarantee:
    regresses = task == "regression"
    first: Loss = losses.EpsInsensitive(rule.epsilon) if regresses else losses.Hinge()
    plain = rule.update_on == "loss" and rule.importance_mode == "loss"
    C = rule.aggressiveness()
    if rule.traits.formula == "pa1":

        def mistakes(k: RecordedRounds, u: Array, theirs: Array) -> Bounds | None:
            if not equal(k) or math.isinf(C):
                return None
            size, L = float(np.linalg.norm(u)), np.cumsum(theirs)
            total = np.maximum(k.squared_radius, 1.0 / C) * (size**2 + 2.0 * C * L)
            return total - L, {"R": float(np.sqrt(k.squared_radius[-1])), "‖u‖": size, "L(u)": float(L[-1]), "C": C}

        if regresses:
            return of_loss(first, "the paper bounds the mistakes of PA-I, and a regression has none")
        return of_mistakes(
            "the bound is for updates on every loss, and examples of importance 1",
            mistakes if plain else None,
            "max(R², 1/C)(‖u‖² + 2C·L(u)) − L(u)",
        )
    # Σℓ²: the comparator minimises half of it
    squared: Loss = losses.SquaredEpsInsensitive(rule.epsilon) if regresses else losses.SquaredHinge()
    slack = 1.0 / (2.0 * C) if rule.traits.formula == "pa2" else 0.0

    def squares(k: RecordedRounds, u: Array, theirs: Array) -> Bounds | None:
        size, L = float(np.linalg.norm(u)), np.cumsum(theirs)
        if not equal(k) or (slack == 0.0 and L[-1] > 0):
            return None
        total = (k.squared_radius + slack) * (size**2 + (L / slack if slack else 0.0))
        found = {"R": float(np.sqrt(k.squared_radius[-1])), "‖u‖": size, "L(u)": float(L[-1])}
        return total - L, found if slack == 0.0 else {**found, "C": C}

    return Guarantee(
        "squared losses",
        squared,
        lambda k: 2.0 * values(squared, k.s, k.y),
        lambda k, s: 2.0 * values(squared, s, k.y),
        squares if plain else None,
        "(R² + 1/(2C))(‖u‖² + 2C·L(u)) − L(u)" if slack else "R²‖u‖²",
        "the bound of PA wants a u without any loss, which this stream does not have; pa1 and pa2 have one for every u"
        if slack == 0.0
        else "the bound is for updates on every loss, and examples of importance 1",
    )


def _descent(rule: Any, loss: Loss, schedule: schedules.Schedule, task: str) -> Guarantee:
    plain = is_plain_descent(rule)

    def bound(k: RecordedRounds, u: Array, theirs: Array) -> Bounds | None:
        t = np.arange(1, len(k.s) + 1)
        eta = np.array([schedule(float(i)) for i in t])
        if np.any(np.diff(eta) > 0):
            return None
        pull = pull_of(loss, k)
        # ‖w_{t+1} − u‖² = ‖w_t − u‖² + 2η p ⟨w_t − u, x⟩ + η² p² ‖x‖²: the distance, from scores alone
        step = 2.0 * eta * pull * (k.s - k.X @ u) + (eta * pull) ** 2 * k.xx
        before = np.concatenate([[float(u @ u)], float(u @ u) + np.cumsum(step)[:-1]])
        D2 = np.maximum.accumulate(np.maximum(before, 0.0))
        G2 = pull**2 * k.xx
        found = {
            "‖u‖": float(np.linalg.norm(u)),
            "G": float(np.sqrt(np.max(G2))),
            "R": float(np.sqrt(k.squared_radius[-1])),
        }
        if isinstance(schedule, schedules.Constant):
            return float(u @ u) / (2.0 * eta) + 0.5 * np.cumsum(eta * G2), found
        return D2 / (2.0 * eta) + 0.5 * np.cumsum(eta * G2), {**found, "D": float(np.sqrt(D2[-1]))}

    constant = isinstance(schedule, schedules.Constant)
    known = plain and loss.convex
    return of_loss(
        loss,
        "the bound is for plain descent on a convex loss (l2 = 0, batch_size = 1) with steps that never grow",
        bound if known else None,
        "‖u‖²/(2η) + (η/2)Σ‖z‖²" if constant else "D²/(2η_T) + ½Σ η_t‖z_t‖², D = max ‖w_t − u‖",
    )


def pull_of(loss: Loss, k: RecordedRounds) -> Array:
    """The weight of x in the step: −c ∂ℓ/∂s, as the rule itself computes it, kinks included."""
    z = k.y * k.s if loss.margin else k.y - k.s
    pull = np.array([loss.pull(float(v)) for v in z])
    return np.asarray(k.c * (k.y * pull if loss.margin else pull))
