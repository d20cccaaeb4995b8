"""Readouts: which weights predict. The traits of a rule decide which of them it supports."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from ..errors import ParameterError
from .parameters import Parameters, choice, flag, from_text, number
from .rounds import Rule
from .traits import RuleTraits

__all__ = ["READOUTS", "Average", "Last", "Pocket", "Readout", "Voted", "is_ratchet", "make_readout"]


@dataclasses.dataclass(repr=False)
class Readout(Parameters):
    """Which weights predict."""

    family = "readout"
    name: ClassVar[str]


@dataclasses.dataclass(repr=False)
class Last(Readout):
    """The current weights."""

    name = "last"


@dataclasses.dataclass(repr=False)
class Average(Readout):
    """The mean of the weights over rounds `start`, `start` + 1, … (Polyak–Ruppert).

    kind="predictor" averages the weights that each round predicted with, w₁ included; kind="post" those after
    each round's update, as scikit-learn does.
    """

    name = "average"
    kind: str = choice("predictor", "predictor", "post")
    start: int = number(1, at_least=1, integer=True)


@dataclasses.dataclass(repr=False)
class Pocket(Readout):
    """The weights of the longest run of rounds without an update (Gallant 1990).

    With `ratchet` they must also make fewer errors on the whole training set than those in the pocket, so that the
    training error of the pocket never rises. Only `fit` has such a set; a check costs a pass over it.
    """

    name = "pocket"
    ratchet: bool = flag(False)


@dataclasses.dataclass(repr=False)
class Voted(Readout):
    """A vote of all past weight vectors, each with the number of rounds that it lasted (Freund and Schapire 1999).

    Every update is stored; beyond `max_vectors` of them learning stops with `FullError`, a MemoryError.
    """

    name = "voted"
    max_vectors: int = number(10_000, at_least=1, integer=True)


READOUTS: dict[str, type[Readout]] = {"last": Last, "average": Average, "pocket": Pocket, "voted": Voted}


def make_readout(readout: str | Readout, rule: Rule, traits: RuleTraits | None = None) -> Readout:
    """The readout, after checking that the rule supports it; "last" is the rule's own readout."""
    traits = traits or rule.traits
    if readout == "last":
        readout = traits.readout
    made = readout if isinstance(readout, Readout) else from_text(readout, READOUTS, "readout")
    if isinstance(made, Voted) and not traits.additive:
        raise ParameterError(f"readout='voted' sums the updates of a rule that only adds; {rule!r} also shrinks")
    if traits.by_coordinate and not isinstance(made, (Last, Average)):
        raise ParameterError(f"readout={made.name!r} is not defined for {rule!r}; use readout='last' or 'average'")
    if traits.soft_thresholds and not isinstance(made, Last):
        cost = f"O(features) a round under the lazy L1 of {rule!r}"
        raise ParameterError(f"readout={made.name!r} would cost {cost}; use readout='last'")
    if traits.batch_size > 1 and isinstance(made, Pocket):
        raise ParameterError(f"readout='pocket' counts rounds without an update; {rule!r} updates once in several")
    if traits.geometry != 2 and isinstance(made, Average):
        cost = f"O(features) a round in the p-norm geometry of {rule!r}"
        raise ParameterError(f"readout='average' would cost {cost}; use readout='last' or 'pocket', or p=2")
    return made


def is_ratchet(readout: Readout, task: str) -> bool:
    """Does the pocket compare errors on a stored set? Only classification has errors to count."""
    if not (isinstance(readout, Pocket) and readout.ratchet):
        return False
    if task not in ("auto", "binary", "multiclass"):
        raise ParameterError(f"{readout!r} counts wrong labels; task={task!r} has none: use readout='pocket'")
    return True
