"""The scheme: task → rule → weights → readout.

In every round, a task turns the example into a direction φ and a target; a rule reads a few scalars and returns a
`Step`; the weights are updated, w ← scale·w + add·φ; a readout says which weights predict. `rounds` defines rules and
tasks, `readouts` the readouts. `onepass.ReferenceLearner` runs the scheme in readable Python.
"""

from __future__ import annotations

from .readouts import READOUTS, Average, Last, Pocket, Readout, Voted, is_ratchet, make_readout
from .rounds import (
    PASSIVE,
    THRESHOLDS,
    ZERO_NORM,
    Array,
    Direction,
    Rule,
    Scalars,
    Seen,
    Step,
    Task,
    calibrates,
    require_norm,
    require_start,
)
from .traits import DIRECTIONS, Plane, RuleTraits

__all__ = [
    "DIRECTIONS",
    "PASSIVE",
    "READOUTS",
    "THRESHOLDS",
    "ZERO_NORM",
    "Array",
    "Average",
    "Direction",
    "Last",
    "Plane",
    "Pocket",
    "Readout",
    "Rule",
    "RuleTraits",
    "Scalars",
    "Seen",
    "Step",
    "Task",
    "Voted",
    "calibrates",
    "is_ratchet",
    "make_readout",
    "require_norm",
    "require_start",
]
