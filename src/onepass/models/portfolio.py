"""The default members of ``--rule auto`` and `ExpertEnsemble()`: rules and parameters, as text.

A member is a rule, and after @ its readout. The lists come from measurements (`onepass reproduce portfolio`): of some
forty rules and parameters those few that, together, had the smallest error; of the classifiers, also on the whole of
imdb, rcv1, url-phishing and sms-spam (`bench/command.py`), so those figures are no test of them. Some members scale
their columns by what they have seen of them, which tables as people have them need. To add a rule, add a line;
a member costs a pass of its rule, and its memory.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CLASSIFIERS", "DEFAULT", "DEFAULT_FOR_NUMBERS", "REGRESSORS", "read"]

# The default rules of ``onepass learn``: their error was small on nearly all data sets, without any tuning.
DEFAULT = "vw:loss=squared,eta=1,row_power=0.75"
DEFAULT_FOR_NUMBERS = "arow:lam=0.1"

CLASSIFIERS = (
    "vw:loss=squared,eta=1,row_power=0.75",
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
    "vw:loss=absolute",
    "vw:loss=absolute,eta=5",
    "arow:lam=0.1",
    "adagrad:loss=squared,eta=1",
    "adagrad:loss=absolute,eta=0.1",
    "nlms:mu=1",
    "pa1:C=0.1@average",
)


def read(member: str) -> tuple[str, Any]:
    """A member's rule and readout."""
    rule, _, readout = member.partition("@")
    return rule, readout or "last"
