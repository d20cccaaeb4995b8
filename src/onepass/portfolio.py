"""What ``--rule auto`` and `ExpertEnsemble()` choose from, when nothing is said: rules and parameters, as text.

A member is a rule, and after @ its readout. The lists come from measurements over twelve sets
(`onepass reproduce portfolio`): of some forty rules, those whose vote together erred least on the first 12,000 rows.
To add a rule, add a line; a member costs a pass of its rule.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CLASSIFIERS", "REGRESSORS", "read"]

CLASSIFIERS = (
    "vw:loss=squared",
    "vw:loss=logistic,eta=2",
    "arow",
    "arow:lam=10@average",
    "scw1:C=0.1",
    "adagrad:loss=logistic,eta=0.01",
    "adagrad:loss=logistic,eta=1",
    "ftrl:alpha=1",
    "alma",
    "romma",
)
REGRESSORS = (
    "arow",
    "arow:lam=100",
    "vw:loss=squared",
    "vw:loss=absolute,eta=2",
    "adagrad:loss=absolute",
    "nlms:mu=0.01",
    "nlms:mu=0.1",
    "nlms:mu=1",
    "pa1:C=0.1",
    "pa1:C=1",
    "pa1:C=0.1@average",
)


def read(member: str) -> tuple[str, Any]:
    """A member's rule and readout."""
    rule, _, readout = member.partition("@")
    return rule, readout or "last"
