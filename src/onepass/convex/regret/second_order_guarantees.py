"""Regret bounds of rules with a matrix, or with a rate for every weight: RLS, AROW with the full Σ, AdaGrad.

They need the determinant of Σ, or the weights, at every t. Both are computed from `RecordedRounds`, in O(T d²) and O(T
d).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...rules.adaptive import AdaGrad
from ...rules.gaussian import AROW
from ...scheme import losses
from ..sets import Array
from .guarantees import Bounds, Guarantee, RecordedRounds, equal, of_loss, of_mistakes, pull_of

__all__ = ["adagrad", "arow", "least_squares"]

WORK = 2_000_000_000  # the most multiplications that a bound may take
SIZE = f"it is left out where it takes more than {WORK:.0e} multiplications"


def volumes(k: Any, ridge: float, learned: NDArray[np.bool_]) -> Array | None:
    """ln det(I + Σ xxᵀ/ridge) over the rounds that were learned, at every t."""
    T, d = k.X.shape
    if T * d * d > WORK:
        return None
    sigma, total, out = np.eye(d) / ridge, 0.0, np.empty(T)
    for t, x in enumerate(k.X.toarray()):
        if learned[t]:
            z = sigma @ x
            v = float(x @ z)
            sigma -= np.outer(z, z) / (1.0 + v)
            total += np.log1p(v)
        out[t] = total
    return out


def least_squares(rule: Any) -> Guarantee:
    """Σe² = min_u (L(u) + δ‖u‖²) + Σ e²v/(1 + v), and the last sum is at most max e² · ln det(I + XᵀX/δ). With the
    forecast of Vovk, Azoury and Warmuth, max y² replaces max e².
    """
    squared = losses.Squared()
    recursive = rule.traits.formula == "rls"
    vaw = recursive and rule.forecast == "vaw"
    ridge = rule.lam if recursive else rule.lam / rule.sigma0
    plain = rule.forgetting == 1.0 if recursive else rule.covariance == "full"

    def bound(k: RecordedRounds, u: Array, theirs: Array) -> Bounds | None:
        volume = volumes(k, ridge, np.ones(len(k.s), dtype=bool)) if equal(k) else None
        if volume is None:
            return None
        largest = np.maximum.accumulate(np.abs(k.y if vaw else k.y - k.s))
        found = {
            "δ": ridge,
            "‖u‖": float(np.linalg.norm(u)),
            "Y" if vaw else "E": float(largest[-1]),
            "ln det": volume[-1],
        }
        return 0.5 * (ridge * float(u @ u) + largest**2 * volume), found

    return of_loss(
        squared,
        f"the bound is for the whole Σ, nothing forgotten, and examples of importance 1; {SIZE}",
        bound if plain else None,
        f"½(δ‖u‖² + {'Y' if vaw else 'E'}² ln det(I + XᵀX/δ)), {'Y = max |y|' if vaw else 'E = max |y − ŷ|'}",
    )


def arow(rule: AROW) -> Guarantee:
    """Crammer, Kulesza and Dredze (2009): a bound on the mistakes; U are the rounds with a right answer and a margin
    below 1.
    """
    plain = rule.covariance == "full" and rule.sigma0 == 1.0 and not rule.always_update_cov

    def bound(k: RecordedRounds, u: Array, theirs: Array) -> Bounds | None:
        m = k.y * k.s
        learned = m < 1.0
        volume = volumes(k, rule.lam, learned) if equal(k) else None
        if volume is None:
            return None
        narrow = np.cumsum((m > 0.0) & learned)
        spread = rule.lam * float(u @ u) + np.cumsum(np.where(learned, (k.X @ u) ** 2, 0.0))
        found = {"λ": rule.lam, "‖u‖": float(np.linalg.norm(u)), "L(u)": float(theirs.sum()), "|U|": float(narrow[-1]),
                 "ln det": float(volume[-1])}  # fmt: skip
        return np.sqrt(spread) * np.sqrt(volume + narrow) - narrow, found

    return of_mistakes(
        f"the bound is for the whole Σ (covariance=full, sigma0 = 1) and examples of importance 1; {SIZE}",
        bound if plain else None,
        "√(λ‖u‖² + uᵀXu)·√(ln det(I + X/λ) + |U|) − |U|",
    )


def adagrad(rule: AdaGrad) -> Guarantee:
    """Duchi, Hazan and Singer (2011): with D the largest |w_j − u_j| so far. The weights are found from the scores."""
    loss = losses.make(rule.loss)

    def bound(k: RecordedRounds, u: Array, theirs: Array) -> Bounds | None:
        T, d = k.X.shape
        if 10 * T * d > WORK:
            return None
        pull = pull_of(loss, k)
        w, G, D, out = np.zeros(d), np.zeros(d), 0.0, np.empty(T)
        for t, x in enumerate(k.X.toarray()):
            D = max(D, float(np.max(np.abs(w - u))))
            g = -pull[t] * x
            G += g * g
            root = rule.delta + np.sqrt(G)
            w -= np.divide(rule.eta * g, root, out=np.zeros(d), where=root > 0)
            out[t] = D * D / (2.0 * rule.eta) * root.sum() + rule.eta * np.sqrt(G).sum()
        return out, {"‖u‖": float(np.linalg.norm(u)), "D": D, "Σ‖g_j‖": float(np.sqrt(G).sum()), "η": rule.eta}

    known = loss.convex and not rule.eps_inside
    return of_loss(
        loss,
        f"the bound is for a convex loss, without eps_inside; {SIZE}",
        bound if known else None,
        "D²/(2η)·Σ_j(δ + ‖g_j‖) + ηΣ_j‖g_j‖, D = max |w_j − u_j|",
    )
