"""Vowpal Wabbit's update: adaptive, normalised, importance-invariant."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..errors import ParameterError
from ..scheme import losses
from ..scheme.parameters import flag, number
from ..scheme.rounds import Array, Scalars, Seen, Step
from ..scheme.traits import Plane, RuleTraits
from .coordinate import CoordinateRule

__all__ = ["VW"]

# The losses that `VW.way` and native/loops/vowpal.hpp have a closed form for.
INVARIANT = (
    "hinge",
    "squared_hinge",
    "logistic",
    "ramp",
    "squared",
    "absolute",
    "eps_insensitive",
    "squared_eps_insensitive",
    "quantile",
    "huber",
)
SMALL = 1e-6  # below this the limit of infinitely many steps equals one step to twelve digits


@dataclasses.dataclass(repr=False)
class VW(CoordinateRule):
    """Vowpal Wabbit's gradient step, its three switches on by default.

    `adaptive` (Duchi, Hazan and Singer 2011): G_j ← G_j + c ℓ′² x_j², rate G_j^{−P}, P = `power`.
    `normalized` (Ross, Mineiro and Langford 2013): N_j = max |x_j|, rate (N_j²)^{P−1} (N_j^{−2} without `adaptive`);
    a new maximum shrinks w_j; all times κ = (Σ c/Σ c Σ_j x_j²/N_j²)^{1−P}. Rescaling a feature from the start then
    changes no prediction. `row_power` is another exponent of κ: with 1, copies of all features change no prediction
    either, so that examples with many features learn no faster than those with few (ours, not VW's).
    `invariant` (Karampatziakis and Langford 2011): an example of importance c changes the score as infinitely many
    steps of infinitely small importance would, and so never beyond its label.

    The score is read `clip`ped to the labels so far (logistic: ±50), and so are predictions in regression. The squared
    loss is (y − s)² here, as in VW. Several classes, and label sets, are one against the rest. `vw_compat` takes VW's
    own exponents for normalized without adaptive at P ≠ ½. Tukey's and the Perceptron's loss have no invariant form.
    """

    name = "vw"
    guarantee = "an importance in parts is the same as at once; the scale of a feature does not matter"
    paper = "Karampatziakis and Langford 2011; Ross, Mineiro and Langford 2013"
    tasks = ("binary", "multiclass", "multilabel", "regression")
    slots: ClassVar[Mapping[str, float]] = {"t": 0.0, "low": 0.0, "high": 0.0}
    eta: float = number(0.5, above=0)
    power: float = number(0.5, at_least=0, at_most=1)
    adaptive: bool = flag(True)
    normalized: bool = flag(True)
    invariant: bool = flag(True)
    clip: bool = flag(True)
    vw_compat: bool = flag(False)
    row_power: float | None = number(None, at_least=0, at_most=1)  # the exponent of κ; VW's own unless given

    def validate(self) -> None:
        super().validate()
        if self.row_power is not None and not self.normalized:
            raise ParameterError(f"{self!r}: row_power is an exponent of `normalized`, which is off; leave one out")
        if self.invariant and losses.make(self.loss).name not in INVARIANT:
            raise ParameterError(f"{self!r}: this loss has no invariant form; add invariant=False")

    @property
    def traits(self) -> RuleTraits:
        planes = [Plane("G")] if self.adaptive else []
        if self.normalized:
            planes += [Plane("N"), Plane("norms", of_row=True), Plane("total", of_row=True)]
        return super().traits.replace(
            multiclass=("rival",),
            solves=("rival",),
            one_vs_rest=True,
            probabilities=("binary",) if losses.make(self.loss).name == "logistic" else (),
            clips=self.clip,
            planes=tuple(planes),
            coordinates="vowpal",
        )

    def tasks_of(self, loss: losses.Loss) -> tuple[str, ...]:
        if loss.name == "squared":
            return tuple(self.tasks)
        return ("binary", "multiclass", "multilabel") if loss.margin else ("regression",)

    def shared_power(self) -> bool:
        """Does κ have the exponents of the adaptive case? For P ≠ ½ VW uses them without `adaptive`, too."""
        return self.adaptive or (self.vw_compat and self.power != 0.5)

    def kappa_power(self) -> float:
        if self.row_power is not None:
            return self.row_power
        return 1.0 - self.power if self.shared_power() else 1.0

    def own(self) -> Mapping[str, float]:
        fields = ("eta", "power", "adaptive", "normalized", "invariant", "clip", "vw_compat")
        return {**{name: float(getattr(self, name)) for name in fields}, "kappa_power": self.kappa_power()}

    def suffer_all(self, scores: Array, y: int) -> float:
        labels = np.where(np.arange(len(scores)) == y, 1.0, -1.0)
        return sum(self.loss_of(float(p), label) for p, label in zip(scores, labels, strict=True))

    def loss_of(self, p: float, y: float) -> float:
        loss = losses.make(self.loss)
        twice = 2.0 if loss.name == "squared" else 1.0
        return loss.value(y * p) if loss.margin else twice * loss.value(y - p)

    def pull_of(self, p: float, y: float) -> float:
        """−∂ℓ/∂p."""
        loss = losses.make(self.loss)
        twice = 2.0 if loss.name == "squared" else 1.0
        return y * loss.pull(y * p) if loss.margin else twice * loss.pull(y - p)

    def step(self, s: Scalars) -> Step:
        return Step(add=1.0)  # `moved` decides what changes, row by row

    def solve(self, scores: Array, y: int, s: Scalars) -> tuple[Array, Step]:
        return np.ones(len(scores)), Step(add=1.0)

    def moved(self, w: Array, seen: Seen, planes: dict[str, Array], s: Scalars) -> Array:
        low, high = min(s.state["low"], *seen.labels), max(s.state["high"], *seen.labels)
        s.state.update(t=s.state["t"] + s.importance, low=low, high=high)
        if losses.make(self.loss).name == "logistic":
            low, high = -50.0, 50.0
        out = w.copy()
        for r, (score, y) in enumerate(zip(seen.scores, seen.labels, strict=True)):
            p = min(high, max(low, float(score))) if self.clip else float(score)
            if self.pull_of(p, y) != 0.0:
                out[r] = self._row(w[r], seen.x, p, y, {name: plane[r] for name, plane in planes.items()}, planes, r, s)
        return out

    def _row(
        self, w: Array, x: Array, p: float, y: float, of: dict[str, Any], planes: dict[str, Array], r: int, s: Scalars
    ) -> Array:
        """One row of weights after learning y from its score p; `of` are its planes."""
        P, c, at = self.power, s.importance, x != 0
        shared = self.shared_power()
        pull, w, x2 = self.pull_of(p, y), w.copy(), x[at] ** 2
        rate = np.ones_like(x2)
        if self.adaptive:
            of["G"][at] += c * (pull * pull) * x2
            G = of["G"][at]
            rate = np.where(G > 0, np.where(G > 0, G, 1.0) ** -P, 0.0)
        kappa = 1.0
        if self.normalized:
            N, size = of["N"][at], np.abs(x[at])
            grown = (size > N) & (N > 0)
            down = np.where(grown, N / size, 1.0)
            w[at] *= down ** (2.0 * (1.0 - P)) if shared else down * down
            of["N"][at] = N = np.maximum(N, size)
            rate = rate * ((N * N) ** (P - 1.0) if shared else 1.0 / (N * N))
            planes["norms"][r] += c * float(np.sum(x2 / (N * N)))
            planes["total"][r] += c
            ratio = float(planes["total"][r] / planes["norms"][r])
            kappa = ratio ** self.kappa_power()
        h = self.eta * c
        if not self.adaptive:
            h *= (s.state["t"] + (0.0 if self.normalized else 1.0)) ** -P
        q = kappa * float(np.sum(x2 * rate))
        b = self.way(p, y, h, q) if self.invariant else h * pull
        w[at] += b * kappa * rate * x[at]
        return w

    def way(self, p: float, y: float, h: float, q: float) -> float:
        """The change of the score, divided by q, after infinitely many steps that add up to h: dp/dh = q·pull(p)."""
        loss = losses.make(self.loss)
        side, r, m = (-1.0 if y < p else 1.0), abs(y - p), y * p
        beyond = r - loss.parameter

        def decay(way: float, rate: float) -> float:
            return way * rate * h if h * q * rate < SMALL else way * (1.0 - math.exp(-rate * h * q)) / q

        def up_to(step: float, way: float) -> float:
            return way / q if step * q > way else step

        match loss.name:
            case "hinge" | "ramp":
                return y * up_to(h, 1.0 - m)
            case "squared_hinge":
                return y * decay(1.0 - m, 1.0)
            case "logistic":
                return y * (h * losses.sigmoid(-m) if h * q < SMALL else logistic_way(m, h * q) / q)
            case "squared":
                return side * decay(r, 2.0)
            case "absolute":
                return side * up_to(h, r)
            case "eps_insensitive":
                return side * up_to(h, beyond)
            case "squared_eps_insensitive":
                return side * decay(beyond, 1.0)
            case "quantile":
                return side * up_to((loss.parameter if side > 0 else 1.0 - loss.parameter) * h, r)
            case "huber":
                delta = loss.parameter
                if beyond <= 0:
                    return side * decay(r, 1.0)
                straight = beyond / (delta * q)  # the h at which the quadratic part of the loss begins
                if h <= straight:
                    return side * delta * h
                return side * (beyond + delta * (1.0 - math.exp(-(h - straight) * q))) / q
        raise AssertionError(loss.name)


def logistic_way(m: float, hq: float) -> float:
    """ln ω − m, where ω + ln ω = m + e^m + hq: the change of the margin m under the logistic loss after the time hq.

    Lambert's W without its exponentials, by steps of Fritsch, Shafer and Crowley (1973), each of which leaves about the
    fourth power of the error before it. A short time begins at ω = e^m, where the error is hq itself.
    """
    start = math.exp(min(m, 700.0))
    if m > 40.0:  # ω = e^m, up to hq
        return math.log1p(hq / (1.0 + start))
    Z = hq + m + start
    if Z < -40.0:  # nothing holds it yet
        return hq
    if Z > 1e150:
        return math.log(Z - math.log(Z)) - m
    risen, way, error = 0.0, 0.0, hq
    if hq > 1.0 + start:
        e = math.log(Z) if Z > 1 else math.exp(Z)
        omega = Z - e + e / Z if Z > 1 else e / (1.0 + e)
        risen, way = omega - start, math.log(omega) - m
        error = hq - risen - way
    for _ in range(5):
        omega = start + risen
        t = 1.0 + omega
        u = 2.0 * t * (t + error * (2.0 / 3.0))
        grown = error / t * (u - error) / (u - 2.0 * error)
        way += math.log1p(grown)
        if abs(error) <= 1e-4:
            break
        risen += omega * grown
        error = hq - risen - way
    return way
