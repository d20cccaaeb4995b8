"""Second-order rules: weights w ~ N(μ, Σ) with larger steps for weights that are less certain (`spread.py`).

these rules read v = φᵀΣφ as xx; w ← w + add·Σφ, Σ⁻¹ ← forget·Σ⁻¹ + gain·φφᵀ. The diagonal of Σ costs O(nnz) a
round and one number a weight; covariance="full" keeps the matrix, O(d²), up to `max_dim` features with the intercept.
With several classes each row has its own Σ (RLS: one for all, as its classes see the same x).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ..scheme import losses
from ..scheme.parameters import choice, flag, number
from ..scheme.rounds import Array, Rule, Scalars, Step
from ..scheme.spread import FORMS, Spread
from ..scheme.traits import RuleTraits
from .adaline import LeastSquares, one_hot

__all__ = ["AROW", "CW", "NHERD", "ONS", "RLS", "SCW1", "SCW2", "Kalman"]

MARGINS = ("binary", "multiclass", "multilabel", "ranking", "structured")
SMALLEST = 1e-300  # below this, v counts as 0 and rules that divide by it make no update


@dataclasses.dataclass(repr=False)
class RLS(LeastSquares):
    """Recursive least squares with forgetting f: w ← w + Γx e/(f/c + v), Γ⁻¹ ← fΓ⁻¹ + c xxᵀ, Γ₀⁻¹ = lam·I.

    c is the importance. After t rounds w minimises Σ f^(t−i) c_i (y_i − w·x_i)² + f^t lam‖w‖²: for f = 1 ridge
    regression, solved exactly, and the mean of Bayesian linear regression. A round in which forgetting would raise a
    variance above `max_gamma` forgets nothing; without this limit, the variance of a direction without examples would
    grow like f^−t. Classes are targets of ±1.

    forecast="vaw" predicts w·x/(1 + v) (Vovk, Azoury and Warmuth): with |y| ≤ Y,
    Σ (y − ŷ)² ≤ min_u Σ (y − u·x)² + lam‖u‖² + Y² ln det(I + XᵀX/lam); for plain predictions clipped to [−Y, Y], 4Y²
    takes the place of Y². y varies around a prediction by noise_variance·(1 + v/f); None estimates the noise as the
    mean of e²/(1/c + v/f).

    `form` says how Γ is kept (`spread.py`): "gain" as above, "joseph" in Joseph's form, "chol" as a Cholesky factor of
    Γ⁻¹, which is more accurate if features are nearly dependent, absent for a long time, or `lam` is tiny.
    """

    name = "rls"
    cost = "O(features²)"
    guarantee = "clipped to the labels' range, Σ e² ≤ the best ridge solution's + 4Y² ln det(I + XᵀX/λ)"
    paper = "Plackett 1950; Vovk 2001; Azoury and Warmuth 2001"
    formula = "rls"
    tasks = ("binary", "multiclass", "regression")
    slots: ClassVar[Mapping[str, float]] = {"squares": 0.0, "rounds": 0.0}
    lam: float = number(1.0, above=0)
    forgetting: float = number(1.0, above=0, at_most=1)
    forecast: str = choice("plain", "plain", "vaw", kw_only=True)
    form: str = choice("gain", *FORMS, kw_only=True)
    max_gamma: float = number(1e12, above=0, kw_only=True)
    noise_variance: float | None = number(None, above=0, kw_only=True)
    max_dim: int = number(4096, at_least=1, integer=True, kw_only=True)

    @property
    def traits(self) -> RuleTraits:
        spread = Spread(
            full=True,
            start=1.0 / self.lam,
            forgets=self.forgetting < 1,
            largest=self.max_gamma,
            vaw=self.forecast == "vaw",
            max_dim=int(self.max_dim),
            form=self.form,
        )
        return super().traits.replace(spread=spread)

    def rate(self, s: Scalars) -> float:
        return s.importance / (self.forgetting + s.importance * s.xx)

    def step(self, s: Scalars) -> Step:
        e = s.target - s.m
        s.state["squares"] = self.forgetting * s.state["squares"] + e * e * self.forgetting * self.rate(s)
        s.state["rounds"] = self.forgetting * s.state["rounds"] + 1.0
        return Step(add=self.rate(s) * e, gain=s.importance, forget=self.forgetting)

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        step = Step(add=1.0, gain=s.importance, forget=self.forgetting)
        return self.rate(s) * (one_hot(scores, y) - scores), step

    def predictive_variance(self, v: float, state: Mapping[str, float]) -> float:
        estimated = state["squares"] / state["rounds"] if state["rounds"] > 0 else 1.0
        noise = estimated if self.noise_variance is None else self.noise_variance
        return noise * (1.0 + v / self.forgetting)

    def native(self) -> Mapping[str, float | str]:
        return {"forgetting": self.forgetting}


@dataclasses.dataclass(repr=False)
class Kalman(Rule):
    """A Kalman filter for weights that drift: θ_t = θ_{t−1} + N(0, q·I), y = x·θ + N(0, r/c), start N(0, p0·I).

    Σ ← Σ + q·I; w ← w + Σx e/(r/c + v), Σ⁻¹ ← Σ⁻¹ + (c/r) xxᵀ. With q = 0 it is AROW regression with lam = r.
    """

    name = "kalman"
    cost = "O(features²)"
    guarantee = "the least mean squared error of all linear filters, for noise as declared"
    paper = "Kalman 1960"
    tasks = ("regression",)
    q: float = number(0.0, at_least=0)
    r: float = number(1.0, above=0)
    p0: float = number(1.0, above=0)
    max_dim: int = number(4096, at_least=1, integer=True, kw_only=True)

    @property
    def traits(self) -> RuleTraits:
        spread = Spread(full=True, start=self.p0, forgets=self.q > 0, drift=self.q, max_dim=int(self.max_dim))
        return super().traits.replace(spread=spread)

    def step(self, s: Scalars) -> Step:
        return Step(add=(s.target - s.m) / (s.xx + self.r / s.importance), gain=s.importance / self.r)

    def suffer(self, s: Scalars) -> float:
        return 0.5 * (s.target - s.m) ** 2

    def predictive_variance(self, v: float, state: Mapping[str, float]) -> float:
        return self.r + v

    def native(self) -> Mapping[str, float | str]:
        return {"lam": self.r, "always_update_cov": 0.0}


@dataclasses.dataclass(repr=False)
class Gaussian(Rule):
    """Base of the rules with an option `covariance`."""

    tasks: ClassVar[Sequence[str]] = MARGINS
    covariance: str = choice("diagonal", "diagonal", "full", kw_only=True)
    max_dim: int = number(4096, at_least=1, integer=True, kw_only=True)

    def start(self) -> float:
        """The variance of a weight that was not updated yet."""
        raise NotImplementedError

    def adds_precisions(self) -> bool:
        return False

    @property
    def traits(self) -> RuleTraits:
        full = self.covariance == "full"
        spread = Spread(full, self.start(), not full and self.adds_precisions(), max_dim=int(self.max_dim))
        return super().traits.replace(spread=spread)


@dataclasses.dataclass(repr=False)
class Confident(Gaussian):
    """Base of the rules that start with the variance `sigma0` for every weight."""

    sigma0: float = number(1.0, above=0, kw_only=True)

    def start(self) -> float:
        return self.sigma0


@dataclasses.dataclass(repr=False)
class AROW(Confident):
    """Adaptive regularisation of weights (Crammer, Kulesza and Dredze 2009): while m < 1, w ← w + (1 − m)Σφ/(v + λ/c),
    Σ⁻¹ ← Σ⁻¹ + (c/λ) φφᵀ, c the importance: the minimiser of ½max(0, 1 − m)² + ½φᵀΣφ + λ KL. In regression every round
    is an update, and with covariance="full" that is ridge regression with strength λ/sigma0, solved exactly.

    diag="drop" keeps the diagonal of the full formula, "exact" is the minimiser among diagonal Σ. `always_update_cov`
    shrinks Σ also where m ≥ 1, as the criterion has it. Mistakes (full, sigma0 = 1), U the rounds with 0 < m < 1, X the
    sum of xxᵀ over updates: ≤ √(λ‖u‖² + uᵀXu)·√(ln det(I + X/λ) + |U|) + Σ max(0, 1 − y u·x) − |U| for any u.
    """

    name = "arow"
    cost = "O(features of the example); covariance=full: O(features²)"
    guarantee = "mistakes ≤ √(r‖u‖² + uᵀXu) √(ln det(I + X/r) + |U|) + Σ ℓ* − |U|, full"
    paper = "Crammer, Kulesza and Dredze 2009"
    formula = "arow"
    tasks = (*MARGINS, "regression")
    lam: float = number(1.0, above=0)
    diag: str = choice("drop", "drop", "exact", kw_only=True)
    always_update_cov: bool = flag(False)

    def adds_precisions(self) -> bool:
        return self.diag == "exact"

    def step(self, s: Scalars) -> Step:
        if s.regression or s.m < s.target:
            return Step(add=(s.target - s.m) / (s.xx + self.lam / s.importance), gain=s.importance / self.lam)
        return Step(gain=s.importance / self.lam if self.always_update_cov else 0.0)

    def suffer(self, s: Scalars) -> float:
        return 0.5 * max(0.0, s.target - s.m) ** 2

    def predictive_variance(self, v: float, state: Mapping[str, float]) -> float:
        return self.lam + v

    def native(self) -> Mapping[str, float | str]:
        return {"lam": self.lam, "always_update_cov": self.always_update_cov}


@dataclasses.dataclass(repr=False)
class ConfidenceWeighted(Confident):
    """Base of CW and SCW: y should be right with probability η, that is m ≥ φ√v with φ = Φ⁻¹(η).

    w ← w + αΣφ, Σ⁻¹ ← Σ⁻¹ + (αφ/√u) φφᵀ, √u the deviation after the update. diag="drop" keeps the diagonal of the full
    formula, "project" that of Σ⁻¹; neither is the exact minimiser, which has no closed form.
    """

    tasks = ("binary", "multiclass", "multilabel", "ranking")
    diag: str = choice("drop", "drop", "project", kw_only=True)

    def adds_precisions(self) -> bool:
        return self.diag == "project"

    def quantile(self) -> float:
        from statistics import NormalDist

        return NormalDist().inv_cdf(self.confidence())

    def confidence(self) -> float:
        raise NotImplementedError

    def alpha(self, m: float, v: float, phi: float, c: float) -> float:
        raise NotImplementedError

    def step(self, s: Scalars) -> Step:
        m, v, phi = s.m, s.xx, self.quantile()
        if v < SMALLEST or m >= phi * math.sqrt(v):
            return Step()
        alpha = self.alpha(m, v, phi, s.importance)
        spread = alpha * v * phi
        root_u = 2.0 * v / (spread + math.sqrt(spread * spread + 4.0 * v))
        return Step(add=alpha, gain=alpha * phi / root_u)


def cw_alpha(m: float, v: float, phi: float) -> float:
    psi, zeta = 1.0 + phi * phi / 2.0, 1.0 + phi * phi
    root = math.sqrt(m * m * phi**4 / 4.0 + v * phi * phi * zeta)
    return max(0.0, (-m * psi + root) / (v * zeta))


@dataclasses.dataclass(repr=False)
class CW(ConfidenceWeighted):
    """Confidence-weighted learning (Dredze, Crammer and Pereira 2008; Crammer, Dredze and Pereira 2008): the least KL
    step to m ≥ φ√v (form="std"), or to m ≥ φv (form="variance"). The constraint is hard: importance has no effect on
    it, and wrong labels do much harm.
    """

    name = "cw"
    cost = "O(features of the example); covariance=full: O(features²)"
    guarantee = "right with probability η on each example it has just seen; noise breaks it"
    paper = "Dredze, Crammer and Pereira 2008; Crammer, Dredze and Pereira 2008"
    eta: float = number(0.7, above=0.5, below=1)
    form: str = choice("std", "std", "variance", kw_only=True)

    def confidence(self) -> float:
        return self.eta

    def alpha(self, m: float, v: float, phi: float, c: float) -> float:
        return cw_alpha(m, v, phi)

    def step(self, s: Scalars) -> Step:
        if self.form == "std":
            return super().step(s)
        m, v, phi = s.m, s.xx, self.quantile()
        if v < SMALLEST or m >= phi * v:
            return Step()
        b = 1.0 + 2.0 * phi * m
        alpha = max(0.0, (-b + math.sqrt(b * b - 8.0 * phi * (m - phi * v))) / (4.0 * phi * v))
        return Step(add=alpha, gain=2.0 * alpha * phi)

    def native(self) -> Mapping[str, float | str]:
        return {"phi": self.quantile(), "by_variance": self.form == "variance", "C": 0.0}


@dataclasses.dataclass(repr=False)
class SCW1(ConfidenceWeighted):
    """SCW-I (Wang, Zhao and Hoi 2012): the price C·max(0, φ√v − m) in place of CW's constraint: α = min(cC, α_CW)."""

    name = "scw1"
    cost = "O(features of the example); covariance=full: O(features²)"
    guarantee = "as cw where C is large; a bounded step where an example is noise"
    paper = "Wang, Zhao and Hoi 2012"
    C: float = number(1.0, above=0)
    eta: float = number(0.75, above=0.5, below=1)

    def confidence(self) -> float:
        return self.eta

    def alpha(self, m: float, v: float, phi: float, c: float) -> float:
        return min(c * self.C, cw_alpha(m, v, phi))

    def native(self) -> Mapping[str, float | str]:
        return {"phi": self.quantile(), "by_variance": 0.0, "C": self.C}


@dataclasses.dataclass(repr=False)
class SCW2(ConfidenceWeighted):
    """SCW-II (Wang, Zhao and Hoi 2012): the price is C·max(0, φ√v − m)²; C → ∞ gives CW, as in SCW-I."""

    name = "scw2"
    cost = "O(features of the example); covariance=full: O(features²)"
    guarantee = "as scw1, with squared losses"
    paper = "Wang, Zhao and Hoi 2012"
    C: float = number(1.0, above=0)
    eta: float = number(0.9, above=0.5, below=1)

    def confidence(self) -> float:
        return self.eta

    def alpha(self, m: float, v: float, phi: float, c: float) -> float:
        n, pp = v + 1.0 / (2.0 * c * self.C), phi * phi
        root = phi * math.sqrt(pp * m * m * v * v + 4.0 * n * v * (n + v * pp))
        return max(0.0, (-(2.0 * m * n + pp * m * v) + root) / (2.0 * (n * n + n * v * pp)))

    def native(self) -> Mapping[str, float | str]:
        return {"phi": self.quantile(), "by_variance": 0.0, "C": self.C}


@dataclasses.dataclass(repr=False)
class NHERD(Confident):
    """Gaussian herding (Crammer and Lee 2010): N(μ, Σ) as a whole is transformed by the linear map of PA-II.

    While m < 1: w ← w + (1 − m)Σφ/(v + 1/(cC)), Σ⁻¹ ← Σ⁻¹ + (2cC + (cC)²v) φφᵀ. diag="drop" keeps the diagonal of the
    full formula, "project" that of Σ⁻¹.
    """

    name = "nherd"
    cost = "O(features of the example); covariance=full: O(features²)"
    guarantee = "a mistake bound as AROW's"
    paper = "Crammer and Lee 2010"
    C: float = number(1.0, above=0)
    diag: str = choice("drop", "drop", "project", kw_only=True)

    def adds_precisions(self) -> bool:
        return self.diag == "project"

    def step(self, s: Scalars) -> Step:
        if s.m >= s.target:
            return Step()
        C = s.importance * self.C
        return Step(add=(s.target - s.m) / (s.xx + 1.0 / C), gain=2.0 * C + C * C * s.xx)

    def suffer(self, s: Scalars) -> float:
        return 0.5 * max(0.0, s.target - s.m) ** 2

    def native(self) -> Mapping[str, float | str]:
        return {"C": self.C}


@dataclasses.dataclass(repr=False)
class ONS(Gaussian):
    """Online Newton step (Hazan, Agarwal and Kale 2007): A ← A + ggᵀ, w ← w − A⁻¹g/γ, A₀ = ε·I; Σ is A⁻¹.

    g is the gradient of a loss, times the importance. Full by default, as in the paper; covariance="diagonal" keeps the
    diagonal of A and steps by the joint formula, A⁻¹g/(γ(1 + gᵀA⁻¹g)) with the A before the round.

    Where losses are α-exp-concave, ‖g‖ ≤ G and ‖w_t − u‖ ≤ D, with γ ≤ ½min(1/(4GD), α) the regret against u is at most
    (1/2γ) ln(det A/ε^d) + γεD²/2 (`from_constants`). The weights are not restricted to a set; for that see
    `onepass.convex`.
    """

    name = "ons"
    cost = "O(features²); covariance=diagonal: O(features of the example)"
    guarantee = "regret ≤ (1/(2γ))(ln(det A/ε^d) + 1) for exp-concave losses on a set"
    paper = "Hazan, Agarwal and Kale 2007"
    tasks = (*MARGINS, "regression")
    loss: str | losses.Loss = "logistic"
    gamma: float = number(0.5, above=0)
    eps: float = number(1.0, above=0)
    covariance: str = choice("full", "diagonal", "full", kw_only=True)

    @classmethod
    def from_constants(cls, G: float, D: float, alpha: float, **params: object) -> ONS:
        """γ and ε of the guarantee: gradients up to G, distances up to D, exp-concavity α."""
        gamma = 0.5 * min(1.0 / (4.0 * G * D), alpha)
        return cls(gamma=gamma, eps=1.0 / (gamma * gamma * D * D), **params)  # type: ignore[arg-type]

    def validate(self) -> None:
        losses.make(self.loss)

    @property
    def traits(self) -> RuleTraits:
        loss = losses.make(self.loss)
        tasks = MARGINS if loss.margin else ("regression",)
        return super().traits.replace(
            tasks=("binary", "regression") if loss.name == "squared" else tasks,
            probabilities=("binary",) if loss.name == "logistic" else (),
        )

    def start(self) -> float:
        return 1.0 / self.eps

    def adds_precisions(self) -> bool:
        return True

    def step(self, s: Scalars) -> Step:
        loss = losses.make(self.loss)
        pull = loss.pull(s.m + (1.0 - s.target)) if loss.margin else s.side * loss.pull(s.residual)
        pull *= s.importance
        return Step(add=pull / (self.gamma * (1.0 + pull * pull * s.xx)), gain=pull * pull)

    def suffer(self, s: Scalars) -> float:
        loss = losses.make(self.loss)
        return loss.value(s.m + (1.0 - s.target)) if loss.margin else loss.value(s.residual)

    def native(self) -> Mapping[str, float | str]:
        return {**losses.make(self.loss).native(), "gamma": self.gamma}
