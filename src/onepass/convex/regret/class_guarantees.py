"""Regret bounds of rules with a row of weights for each of K > 2 classes: `guarantees` for matrices.

A round adds a_t·φ_t to W. The matrix φ_t has x in the row of the true class and −x in the row of the rival, so ‖φ‖² =
2‖x‖². If classes are not declared, a model begins with one vector w for the first two of them, which is the matrix with
rows −w/2 and w/2. Its steps are half as long (`RecordedClassRounds.rate`), and the bounds include the cost of that.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...rules.gaussian import RLS
from ...scheme import losses, schedules
from ...scheme.losses import Loss
from ..sets import Array
from .class_hindsight import RIVALS, class_values
from .guarantees import Bounds, Guarantee, descends, equal, is_plain_descent
from .second_order_guarantees import SIZE, volumes

__all__ = ["RecordedClassRounds", "of"]


@dataclasses.dataclass
class RecordedClassRounds:
    """The rounds of a run: the scores of all classes (0 for classes that did not occur before), which classes the model
    knew when it learned the example, y_t as the index of a class, c_t, ‖x_t‖².
    """

    X: Any
    s: Array
    known: NDArray[np.bool_]
    y: NDArray[np.int64]
    c: Array
    xx: Array

    @property
    def squared_radius(self) -> Array:
        """max ‖x‖² so far, for every t."""
        return np.asarray(np.maximum.accumulate(self.xx))

    @property
    def rate(self) -> Array:
        """The length of the steps: ½ while there was one vector for two classes, then 1."""
        return np.where(self.known.sum(axis=1) > 2, 1.0, 0.5)

    @property
    def known_scores(self) -> Array:
        """The scores of the classes that the model knew, and −∞ for the others."""
        return np.where(self.known, self.s, -np.inf)

    @property
    def margins(self) -> Array:
        at, S = np.arange(len(self.y)), self.known_scores
        right = S[at, self.y].copy()
        S[at, self.y] = -np.inf
        return np.asarray(right - S.max(axis=1))


Bound = Callable[[RecordedClassRounds, Array, Array], Bounds | None]
ONE_BY_ONE = "while two classes were known"
DECLARED = "for classes that are declared before the first example: LinearModel(…, classes=[…])"


def of(rule: Any, multiclass: str, costs: Any = None) -> Guarantee:
    """The guarantee of a rule; if no bound is known, only the loss and the reason."""
    if costs is not None:
        return of_loss(losses.Hinge(), "the bounds are for mistakes that cost the same")
    formula = rule.traits.formula
    if formula == "perceptron":
        return _perceptron(rule, multiclass)
    if formula in ("pa", "pa1", "pa2"):
        return _passive_aggressive(rule, multiclass)
    if formula in ("sgd", "adaline"):
        return _descent(rule, *descends(rule), multiclass)
    if formula == "rls":
        return _least_squares(rule)
    loss = getattr(rule, "loss", None)
    made_loss = losses.make(loss) if isinstance(loss, str | Loss) else None
    if made_loss is None or made_loss.name not in (*RIVALS, "logistic", "squared"):
        made_loss = losses.Squared() if formula in ("adaline", "nlms") else losses.Hinge()
    return of_loss(made_loss, f"no bound of {rule.name} for more than two classes is known here")


def of_loss(loss: Loss, reason: str, bound: Bound | None = None, formula: str = "", times: float = 1.0) -> Guarantee:
    """The guarantee that compares losses: that of the learner over the classes known in the round, that of the
    comparator over all classes.
    """

    def ours(k: RecordedClassRounds) -> Array:
        scores = k.s if loss.name == "squared" else k.known_scores  # a class that is not known yet scores 0
        return times * k.c * class_values(loss, scores, k.y)

    def theirs(k: RecordedClassRounds, s: Array) -> Array:
        return times * k.c * class_values(loss, s, k.y)

    name = {"logistic": "softmax cross-entropy", "squared": "squared loss of every class"}.get(loss.name, loss.name)
    return Guarantee(name if times == 1.0 else "squared losses", loss, ours, theirs, bound, formula, reason)


def of_mistakes(reason: str, bound: Bound | None, formula: str) -> Guarantee:
    """The guarantee that compares the mistakes of the learner with the hinge loss of the comparator."""
    hinge = losses.Hinge()
    return Guarantee("mistakes against hinge loss", hinge, lambda k: (k.margins <= 0).astype(np.float64),
                     lambda k, s: class_values(hinge, s, k.y), bound, formula, reason)  # fmt: skip


def _extra(k: RecordedClassRounds) -> Array:
    """Half of the mistakes that were made while steps had half the length."""
    return np.cumsum(0.5 * ((k.rate < 1.0) & (k.margins <= 0)))


def _constants(k: RecordedClassRounds, u: Array, theirs: Array, **more: float) -> dict[str, float]:
    found = {"R": float(np.sqrt(k.squared_radius[-1])), "‖U‖": float(np.linalg.norm(u)), "L(U)": float(theirs.sum())}
    extra = float(_extra(k)[-1])
    return {**found, **more, **({f"½ mistakes {ONE_BY_ONE}": extra} if extra else {})}


def _perceptron(rule: Any, multiclass: str) -> Guarantee:
    """Crammer and Singer (2003), in the form of a matrix U of any length: Σa ≤ L + ‖U‖√(2Σa²‖x‖²) over the mistakes."""
    plain = rule.beta == 0 and not rule.strict and rule.schedule is None and multiclass in RIVAL_SHARES

    def bound(k: RecordedClassRounds, u: Array, theirs: Array) -> Bounds | None:
        if not equal(k):
            return None
        reach = 2.0 * k.squared_radius * float(np.sum(u * u))
        return reach + np.sqrt(reach * np.cumsum(theirs)) + _extra(k), _constants(k, u, theirs)

    return of_mistakes(
        "the bound is for the plain Perceptron (beta = 0, no schedule) and examples of importance 1",
        bound if plain else None,
        "2R²‖U‖² + R‖U‖√(2L(U))",
    )


RIVAL_SHARES = ("rival", "uniform", "proportional")  # ‖φ‖² is at most 2‖x‖² in each mistake


def _passive_aggressive(rule: Any, multiclass: str) -> Guarantee:
    """Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), §5, §8: the bounds for two classes, with 2R² in place
    of R².
    """
    plain = rule.update_on == "loss" and rule.importance_mode == "loss" and multiclass == "rival"
    reason = "the bound is for updates on every loss against the best rival, and examples of importance 1"
    C = rule.aggressiveness()
    if rule.traits.formula == "pa1":

        def mistakes(k: RecordedClassRounds, u: Array, theirs: Array) -> Bounds | None:
            if not equal(k) or math.isinf(C):
                return None
            L = np.cumsum(theirs)
            total = np.maximum(2.0 * k.squared_radius, 1.0 / C) * (float(np.sum(u * u)) + 2.0 * C * L)
            return total - L + _extra(k), _constants(k, u, theirs, C=C)

        return of_mistakes(reason, mistakes if plain else None, "max(2R², 1/C)(‖U‖² + 2C·L(U)) − L(U)")
    soft = rule.traits.formula == "pa2"

    def squares(k: RecordedClassRounds, u: Array, theirs: Array) -> Bounds | None:
        L = np.cumsum(theirs)
        if not equal(k) or (not soft and L[-1] > 0):
            return None
        # A step of half the length equals a step with C/2.
        slack = np.where(np.minimum.accumulate(k.rate) < 1.0, 1.0 / C, 1.0 / (2.0 * C)) if soft else 0.0
        total = (2.0 * k.squared_radius + slack) * (float(np.sum(u * u)) + (2.0 * C * L if soft else 0.0))
        return total - L, _constants(k, u, theirs, **({"C": C} if soft else {}))

    return of_loss(
        losses.SquaredHinge(),
        reason
        if soft
        else "the bound of PA wants a U without any loss, which this stream does not have; pa1 and pa2 "
        "have one for every U",
        squares if plain else None,
        "(2R² + 1/(2C))(‖U‖² + 2C·L(U)) − L(U)" if soft else "2R²‖U‖²",
        times=2.0,
    )


def _pulls(loss: Loss, k: RecordedClassRounds) -> Array:
    """The weight of x in the step of every class row, without the factor η."""
    at = np.arange(len(k.y))
    if loss.name == "logistic":
        e = np.exp(k.known_scores - k.known_scores.max(axis=1, keepdims=True))
        return np.asarray(
            k.c[:, np.newaxis] * ((np.arange(k.s.shape[1]) == k.y[:, np.newaxis]) - e / e.sum(axis=1)[:, np.newaxis])
        )
    if loss.name == "squared":
        return np.asarray(
            k.c[:, np.newaxis] * (np.where(np.arange(k.s.shape[1]) == k.y[:, np.newaxis], 1.0, -1.0) - k.s)
        )
    S = k.known_scores
    S[at, k.y] = -np.inf
    pull = k.c * np.array([loss.pull(float(m)) for m in k.margins])
    out = np.zeros_like(k.s)
    out[at, S.argmax(axis=1)] = -pull
    out[at, k.y] = pull
    return out


def _descent(rule: Any, loss: Loss, schedule: schedules.Schedule, multiclass: str) -> Guarantee:
    """Zinkevich (2003): Σ⟨g, W − U⟩ = Σ(‖W_t − U‖² − ‖W_{t+1} − U‖²)/(2η_t) + ½Ση_t‖g_t‖², the steps as they were.

    The loss over the known classes is at most the loss over all classes, so the bound also holds while new classes
    occur. It does not hold then for the squared loss, which counts every row.
    """
    plain = is_plain_descent(rule) and multiclass == "rival"

    def bound(k: RecordedClassRounds, u: Array, theirs: Array) -> Bounds | None:
        if loss.name == "squared" and not np.all(k.known):
            return None
        eta = k.rate * np.array([schedule(float(t)) for t in range(1, len(k.y) + 1)])
        pulls = _pulls(loss, k)
        G2 = np.sum(pulls**2, axis=1) * k.xx
        # The distance from U follows from scores alone, as in guarantees.py.
        step = 2.0 * eta * np.sum(pulls * (k.s - k.X @ u.T), axis=1) + eta**2 * G2
        before = float(np.sum(u * u)) + np.concatenate([[0.0], np.cumsum(step)[:-1]])
        D2 = np.maximum.accumulate(np.maximum(before, 0.0))
        found = {"‖U‖": float(np.linalg.norm(u)), "G": float(np.sqrt(np.max(G2))),
                 "R": float(np.sqrt(k.squared_radius[-1]))}  # fmt: skip
        spent = 0.5 * np.cumsum(eta * G2)
        if np.all(eta == eta[0]):
            return float(np.sum(u * u)) / (2.0 * eta) + spent, found
        grown = np.cumsum(np.maximum(0.0, np.diff(1.0 / eta, prepend=0.0)))  # 1/η_T if the steps never grow
        return 0.5 * D2 * grown + spent, {**found, "D": float(np.sqrt(D2[-1]))}

    constant = isinstance(schedule, schedules.Constant)
    return of_loss(
        loss,
        f"the bound is for plain descent on a convex loss (l2 = 0, batch_size = 1); of the squared loss, {DECLARED}",
        bound if plain and loss.name in (*RIVALS, "logistic", "squared") else None,
        "‖U‖²/(2η) + (η/2)Σ‖G‖²" if constant else "D²/(2η_T) + ½Σ η_t‖G_t‖², D = max ‖W_t − U‖",
    )


def _least_squares(rule: RLS) -> Guarantee:
    """K least squares that share Σ (second_order_guarantees.py): E² is the largest Σ_r e_r² of a round."""
    vaw = rule.forecast == "vaw"

    def bound(k: RecordedClassRounds, u: Array, theirs: Array) -> Bounds | None:
        if not equal(k) or not np.all(k.known):
            return None
        volume = volumes(k, rule.lam, np.ones(len(k.y), dtype=bool))
        if volume is None:
            return None
        errors = np.full(len(k.y), float(k.s.shape[1])) if vaw else np.sum(_pulls(losses.Squared(), k) ** 2, axis=1)
        largest = np.maximum.accumulate(errors)
        found = {"δ": rule.lam, "‖U‖": float(np.linalg.norm(u)), "ln det": float(volume[-1])}
        if not vaw:
            found["E"] = float(np.sqrt(largest[-1]))
        return 0.5 * (rule.lam * float(np.sum(u * u)) + largest * volume), found

    return of_loss(
        losses.Squared(),
        f"the bound is for nothing forgotten, examples of importance 1, and {DECLARED}; {SIZE}",
        bound if rule.forgetting == 1.0 else None,
        f"½(δ‖U‖² + {'K' if vaw else 'E²'} ln det(I + XᵀX/δ))" + ("" if vaw else ", E² = max Σ_r (y_r − ŷ_r)²"),
    )
