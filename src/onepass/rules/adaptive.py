"""Steps adapted to each weight's own gradients: AdaGrad, AdaDelta, RMSProp, Adam."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..scheme.parameters import choice, flag, number
from ..scheme.rounds import Array, Scalars, Seen, Step
from ..scheme.traits import Plane, RuleTraits
from .coordinate import CoordinateRule

__all__ = ["AdaDelta", "AdaGrad", "AdaGradFull", "Adam", "RMSProp"]


@dataclasses.dataclass(repr=False)
class AdaGrad(CoordinateRule):
    """G_j ← G_j + g_j²; w_j ← w_j − η g_j/(δ + √G_j) (Duchi, Hazan and Singer 2011, diagonal).

    δ = `delta`, and 0/0 is 0; `eps_inside` takes √(G_j + δ) instead, as River does. On a box of half-width b with δ = 0
    the regret is at most (D²/(2η) + η) Σ_j √(Σ_t g_{t,j}²), D = 2b.
    """

    name = "adagrad"
    guarantee = "regret ≤ (D²/(2η) + η) Σ_j √(Σ_t g_j²), D the width of a box"
    paper = "Duchi, Hazan and Singer 2011"
    formula = "adagrad"
    eta: float = number(0.1, above=0)
    delta: float = number(1e-8, at_least=0)
    eps_inside: bool = flag(False)

    @property
    def traits(self) -> RuleTraits:
        return super().traits.replace(planes=(Plane("G"),), coordinates="adagrad")

    def move(self, w: Array, g: Array, planes: dict[str, Array], spared: Any, s: Scalars) -> Array:
        planes["G"] = planes["G"] + g * g
        root = np.sqrt(planes["G"] + self.delta) if self.eps_inside else self.delta + np.sqrt(planes["G"])
        return np.asarray(w - np.divide(self.eta * g, root, out=np.zeros_like(g), where=root > 0))


@dataclasses.dataclass(repr=False)
class AdaDelta(CoordinateRule):
    """E ← ρE + (1 − ρ)g²; Δ = −√(D + ε)/√(E + ε)·g; D ← ρD + (1 − ρ)Δ²; w ← w + lr·Δ, each per weight (Zeiler 2012).

    absent="lazy" leaves weights without a gradient as they are; with "exact" their E and D fade by ρ in every round,
    which is computed when the feature occurs next.
    """

    name = "adadelta"
    paper = "Zeiler 2012"
    rho: float = number(0.95, above=0, below=1)
    eps: float = number(1e-6, above=0)
    lr: float = number(1.0, above=0)
    absent: str = choice("lazy", "lazy", "exact", kw_only=True)

    @property
    def traits(self) -> RuleTraits:
        exact = self.absent == "exact"
        planes = (Plane("E"), Plane("D"), *([Plane("met")] if exact else []))
        return super().traits.replace(planes=planes, coordinates="adadelta_exact" if exact else "adadelta")

    def move(self, w: Array, g: Array, planes: dict[str, Array], spared: Any, s: Scalars) -> Array:
        fade = _faded(self.rho, planes, s)
        E = self.rho * (fade * planes["E"]) + (1.0 - self.rho) * (g * g)
        before = fade * planes["D"]
        delta = -(np.sqrt(before + self.eps) / np.sqrt(E + self.eps)) * g
        planes["E"], planes["D"] = E, self.rho * before + (1.0 - self.rho) * (delta * delta)
        return np.asarray(w + self.lr * delta)


@dataclasses.dataclass(repr=False)
class RMSProp(CoordinateRule):
    """E_j ← ρE_j + (1 − ρ)g_j²; w_j ← w_j − η g_j/√(E_j + ε) (Tieleman and Hinton 2012, lecture 6.5).

    `absent` as in AdaDelta.
    """

    name = "rmsprop"
    paper = "Tieleman and Hinton 2012"
    eta: float = number(0.01, above=0)
    rho: float = number(0.9, above=0, below=1)
    eps: float = number(1e-8, above=0)
    absent: str = choice("lazy", "lazy", "exact", kw_only=True)

    @property
    def traits(self) -> RuleTraits:
        exact = self.absent == "exact"
        planes = (Plane("E"), *([Plane("met")] if exact else []))
        return super().traits.replace(planes=planes, coordinates="rmsprop_exact" if exact else "rmsprop")

    def move(self, w: Array, g: Array, planes: dict[str, Array], spared: Any, s: Scalars) -> Array:
        planes["E"] = self.rho * (_faded(self.rho, planes, s) * planes["E"]) + (1.0 - self.rho) * (g * g)
        return np.asarray(w - self.eta * g / np.sqrt(planes["E"] + self.eps))


@dataclasses.dataclass(repr=False)
class Adam(CoordinateRule):
    """m ← β₁m + (1 − β₁)g; v ← β₂v + (1 − β₂)g²; w ← w − η (m/(1 − β₁ᵗ))/(√(v/(1 − β₂ᵗ)) + ε) (Kingma and Ba 2015).

    t counts the rounds with an importance above 0. absent="dense" is the paper's: every weight moves in every round, at
    a cost of all features a round. "lazy" moves only the weights that have a gradient, which is another algorithm with
    a cost of O(nnz). There is no regret bound (Reddi, Kale and Kumar 2018).
    """

    name = "adam"
    cost = "O(all features); absent=lazy: O(features of the example)"
    guarantee = "none: there are convex streams on which it does not converge"
    paper = "Kingma and Ba 2015; Reddi, Kale and Kumar 2018"
    eta: float = number(0.001, above=0)
    beta1: float = number(0.9, at_least=0, below=1)
    beta2: float = number(0.999, at_least=0, below=1)
    eps: float = number(1e-8, above=0)
    absent: str = choice("dense", "dense", "lazy", kw_only=True)

    @property
    def traits(self) -> RuleTraits:
        planes, dense = (Plane("m", odd=True), Plane("v")), self.absent == "dense"
        formula = "adam" if dense else "adam_lazy"
        return super().traits.replace(planes=planes, dense_update=dense, coordinates=formula)

    def move(self, w: Array, g: Array, planes: dict[str, Array], spared: Any, s: Scalars) -> Array:
        t = s.state["rounds"]
        planes["m"] = self.beta1 * planes["m"] + (1.0 - self.beta1) * g
        planes["v"] = self.beta2 * planes["v"] + (1.0 - self.beta2) * (g * g)
        root = np.sqrt(planes["v"] / (1.0 - self.beta2**t)) + self.eps
        return np.asarray(w - self.eta * (planes["m"] / (1.0 - self.beta1**t)) / root)


def _faded(rho: float, planes: dict[str, Array], s: Scalars) -> Any:
    """ρ to the power of the number of rounds since the last update of each weight; 1 if that is not counted."""
    if "met" not in planes:
        return 1.0
    absent = s.state["rounds"] - planes["met"] - 1.0
    planes["met"] = np.full_like(planes["met"], s.state["rounds"])
    return rho**absent


@dataclasses.dataclass(repr=False)
class AdaGradFull(CoordinateRule):
    """G ← G + g gᵀ; w ← w − η (δI + G^{1/2})⁻¹ g: AdaGrad with the whole matrix, O(d³) a round.

    For `ReferenceLearner`, one row of weights and at most `max_dim` coordinates; models learn with `AdaGrad`.
    """

    name = "adagrad_full"
    tasks = ("binary", "regression")
    eta: float = number(0.1, above=0)
    delta: float = number(1e-3, above=0)
    max_dim: int = number(256, at_least=1, integer=True)

    @property
    def traits(self) -> RuleTraits:
        base = super().traits
        tasks = tuple(task for task in base.tasks if task in self.tasks)
        return base.replace(tasks=tasks, planes=(Plane("G", square=True),))

    def moved(self, w: Array, seen: Seen, planes: dict[str, Array], s: Scalars) -> Array:
        d = w.shape[1]
        if d > self.max_dim:
            raise ParameterError(f"{self!r} takes at most {self.max_dim} coordinates, got {d}; use AdaGrad")
        g = -seen.pull[0]
        planes["G"] += np.outer(g, g)
        values, vectors = np.linalg.eigh(planes["G"])
        root = self.delta + np.sqrt(np.maximum(0.0, values))
        return np.asarray(w - self.eta * (vectors @ ((vectors.T @ g) / root))[np.newaxis])

    def step(self, s: Scalars) -> Step:
        return Step(add=s.importance * self.pull(s))
