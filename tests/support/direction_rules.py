"""Rules for learning from directions: what tests of rankings and of structures share."""

from __future__ import annotations

import dataclasses

from onepass.scheme.rounds import Rule, Scalars, Step

DIRECTION_RULES = [
    "perceptron",
    "perceptron:beta=1,rho=0.5",
    "pa",
    "pa1",
    "pa1:C=0.1",
    "pa2:C=0.5",
    "sgd",
    "sgd:loss=logistic",
    "sgd:loss=squared_hinge,eta=0.05,l2=0.01",
    "sgd:loss=perceptron,schedule=constant,eta=0.1",
    "sgd:loss=ramp",
    "pegasos:lam=0.01",
    "pegasos:lam=0.1,project=true",
    "romma",
    "aromma",
    "fobos:lam1=0.01",
    "ftrl:lam1=0.01",
    "adagrad",
    "adadelta",
    "rmsprop",
    "adam:eta=0.01",
    "arow",
    "nherd",
    "ons:covariance=diagonal",
    "truncated:gravity=0.01,K=2",
    "pocket",
]


@dataclasses.dataclass(repr=False)
class HalfStep(Rule):
    """A user's rule: half of a hard PA step."""

    name = "half_step"
    tasks = ("ranking", "structured")

    def step(self, s: Scalars) -> Step:
        return Step(add=0.5 * self.suffer(s) / s.xx)
