"""What ``--rule auto`` and `ExpertEnsemble()` choose from, when nothing is said: rules and parameters, as text.

A member is a rule, and after @ its readout. The lists come from measurements over twelve sets
(`onepass reproduce portfolio`): no member is best everywhere, and every one was, or was nearly, somewhere.
To add a rule, add a line; a member costs a pass of its rule.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CLASSIFIERS", "REGRESSORS", "read"]

CLASSIFIERS = (
    "pa1:C=0.01",
    "pa1:C=1",
    "pa1:C=0.1@average",
    "pa1:C=1@average",
    "perceptron@average",
    "romma",
    "alma",
    "nlms:mu=0.1",
    "sgd:loss=hinge,schedule=inv_sqrt,eta=0.1",
    "sgd:loss=logistic,schedule=inv_sqrt,eta=0.01",
    "sgd:loss=logistic,schedule=inv_sqrt,eta=1",
    "sgd:loss=logistic,schedule=constant,eta=0.1",
)
REGRESSORS = (
    "nlms:mu=0.01",
    "nlms:mu=0.1",
    "nlms:mu=1",
    "pa1:C=0.01",
    "pa1:C=0.1",
    "pa1:C=1",
    "pa1:C=0.1@average",
    "sgd:loss=absolute,schedule=inv_sqrt,eta=0.01",
    "sgd:loss=absolute,schedule=inv_sqrt,eta=1",
)


def read(member: str) -> tuple[str, Any]:
    """A member's rule and readout."""
    rule, _, readout = member.partition("@")
    return rule, readout or "last"
