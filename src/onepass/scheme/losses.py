"""Losses: their value and their pull, the derivative that moves the score.

A *margin* loss is a function of m = y·s. Its pull is −dℓ/dm: the weight of φ = y·x in a gradient step.
A *residual* loss is a function of r = y − s. Its pull is dℓ/dr = −∂ℓ/∂s: the weight of x.
`name` selects the same formula in `native/core/losses.hpp`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from .. import _native
from ..errors import ParameterError
from .compiled import compiled_name
from .parameters import Parameters, from_text, number

__all__ = [
    "Absolute",
    "EpsInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Perceptron",
    "Quantile",
    "Ramp",
    "Squared",
    "SquaredEpsInsensitive",
    "SquaredHinge",
    "Tukey",
    "make",
    "sigmoid",
]


def sigmoid(z: float) -> float:
    """1/(1 + e^{−z}), never exponentiating a positive number."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@dataclasses.dataclass(repr=False)
class Loss(Parameters):
    """Base of the losses. `margin` says which argument `value` and `pull` take: m or r.

    `convex`: regret bounds are given for convex losses only.
    """

    family = "loss"
    name: ClassVar[str]
    margin: ClassVar[bool]
    convex: ClassVar[bool] = True
    compiled: ClassVar[str] = ""  # the `Loss` of native/core/losses.hpp with its name and its formula

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.compiled = compiled_name(cls, _native.enums["Loss"])

    def value(self, z: float) -> float:
        raise NotImplementedError

    def pull(self, z: float) -> float:
        raise NotImplementedError

    @property
    def parameter(self) -> float:
        """The one parameter of the formula (0 where there is none)."""
        return next((float(v) for v in self.get_params().values()), 0.0)

    def native(self) -> dict[str, float | str]:
        """What a compiled formula reads of its loss."""
        if not self.compiled:
            raise ParameterError(f"{self!r} has no compiled formula; write a rule whose `step` calls its `pull`")
        return {"loss": self.compiled, "loss_parameter": self.parameter}


@dataclasses.dataclass(repr=False)
class Perceptron(Loss):
    """max(0, β − m). At m = β the pull is 1, so that learning starts from w = 0."""

    name, margin = "perceptron", True
    beta: float = number(0.0, at_least=0)

    def value(self, z: float) -> float:
        return max(0.0, self.beta - z)

    def pull(self, z: float) -> float:
        return 1.0 if z <= self.beta else 0.0


@dataclasses.dataclass(repr=False)
class Hinge(Loss):
    """max(0, 1 − m)."""

    name, margin = "hinge", True

    def value(self, z: float) -> float:
        return max(0.0, 1.0 - z)

    def pull(self, z: float) -> float:
        return 1.0 if z < 1.0 else 0.0


@dataclasses.dataclass(repr=False)
class SquaredHinge(Loss):
    """½ max(0, 1 − m)²."""

    name, margin = "squared_hinge", True

    def value(self, z: float) -> float:
        return 0.5 * max(0.0, 1.0 - z) ** 2

    def pull(self, z: float) -> float:
        return max(0.0, 1.0 - z)


@dataclasses.dataclass(repr=False)
class Logistic(Loss):
    """ln(1 + e^{−m}); with more than two classes, softmax cross-entropy."""

    name, margin = "logistic", True

    def value(self, z: float) -> float:
        return max(0.0, -z) + math.log1p(math.exp(-abs(z)))

    def pull(self, z: float) -> float:
        return sigmoid(-z)


@dataclasses.dataclass(repr=False)
class Ramp(Loss):
    """min(1, max(0, 1 − m)): bounded, not convex; examples far on the wrong side have no gradient."""

    name, margin, convex = "ramp", True, False

    def value(self, z: float) -> float:
        return min(1.0, max(0.0, 1.0 - z))

    def pull(self, z: float) -> float:
        # Any value in [0, 1] is a generalised gradient at m = 0. With 0, learning would never start from w = 0.
        return 1.0 if 0.0 <= z < 1.0 else 0.0


@dataclasses.dataclass(repr=False)
class Squared(Loss):
    """½ r²."""

    name, margin = "squared", False

    def value(self, z: float) -> float:
        return 0.5 * z * z

    def pull(self, z: float) -> float:
        return z


@dataclasses.dataclass(repr=False)
class Absolute(Loss):
    """|r|."""

    name, margin = "absolute", False

    def value(self, z: float) -> float:
        return abs(z)

    def pull(self, z: float) -> float:
        return _sign(z)


@dataclasses.dataclass(repr=False)
class EpsInsensitive(Loss):
    """max(0, |r| − ε)."""

    name, margin = "eps_insensitive", False
    epsilon: float = number(0.1, at_least=0)

    def value(self, z: float) -> float:
        return max(0.0, abs(z) - self.epsilon)

    def pull(self, z: float) -> float:
        return _sign(z) if abs(z) > self.epsilon else 0.0


@dataclasses.dataclass(repr=False)
class SquaredEpsInsensitive(Loss):
    """½ max(0, |r| − ε)²."""

    name, margin = "squared_eps_insensitive", False
    epsilon: float = number(0.1, at_least=0)

    def value(self, z: float) -> float:
        return 0.5 * max(0.0, abs(z) - self.epsilon) ** 2

    def pull(self, z: float) -> float:
        return _sign(z) * max(0.0, abs(z) - self.epsilon)


@dataclasses.dataclass(repr=False)
class Quantile(Loss):
    """τ r for r ≥ 0, (τ − 1) r below: its minimiser is the τ-quantile."""

    name, margin = "quantile", False
    tau: float = number(0.5, above=0, below=1)

    def value(self, z: float) -> float:
        return self.tau * z if z >= 0 else (self.tau - 1.0) * z

    def pull(self, z: float) -> float:
        return self.tau if z > 0 else (self.tau - 1.0 if z < 0 else 0.0)


@dataclasses.dataclass(repr=False)
class Huber(Loss):
    """½ r² up to |r| = δ, linear beyond."""

    name, margin = "huber", False
    delta: float = number(1.0, above=0)

    def value(self, z: float) -> float:
        return 0.5 * z * z if abs(z) <= self.delta else self.delta * (abs(z) - 0.5 * self.delta)

    def pull(self, z: float) -> float:
        return min(self.delta, max(-self.delta, z))


@dataclasses.dataclass(repr=False)
class Tukey(Loss):
    """Tukey's biweight: (η²/6)(1 − (1 − r²/η²)³), flat beyond η; bounded, not convex."""

    name, margin, convex = "tukey", False, False
    eta: float = number(4.685, above=0)  # 95% efficiency under unit Gaussian noise

    def value(self, z: float) -> float:
        top = self.eta * self.eta / 6.0
        return top * (1.0 - (1.0 - (z / self.eta) ** 2) ** 3) if abs(z) <= self.eta else top

    def pull(self, z: float) -> float:
        return z * (1.0 - (z / self.eta) ** 2) ** 2 if abs(z) <= self.eta else 0.0


def _sign(z: float) -> float:
    return 1.0 if z > 0 else (-1.0 if z < 0 else 0.0)


LOSSES: dict[str, type[Loss]] = {
    kind.name: kind
    for kind in (
        Perceptron,
        Hinge,
        SquaredHinge,
        Logistic,
        Ramp,
        Squared,
        Absolute,
        EpsInsensitive,
        SquaredEpsInsensitive,
        Quantile,
        Huber,
        Tukey,
    )
}
# "softmax" is what the logistic loss becomes with more than two classes.
_NAMES = {**LOSSES, "softmax": Logistic}


def make(loss: str | Loss) -> Loss:
    """A loss from its name (``"hinge"``, ``"huber(delta=2)"``) or the loss itself."""
    return loss if isinstance(loss, Loss) else from_text(loss, _NAMES, "loss")
