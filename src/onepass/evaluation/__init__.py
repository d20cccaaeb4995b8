"""Prequential evaluation (progressive validation): every example is first predicted, then learned.

>>> from onepass import datasets, evaluation
>>> class Majority:
...     def __init__(self): self.counts = {}
...     def predict_one(self, x): return max(self.counts, key=self.counts.get, default=None)
...     def learn_one(self, x, y): self.counts[y] = self.counts.get(y, 0) + 1
>>> run = evaluation.prequential(Majority(), datasets.SEA(4000, noise=0), ["error", "kappa"], every=1000)
>>> run.t
[1000, 2000, 3000, 4000]
>>> sorted(run.values)
['error', 'kappa']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import lazily_loaded

if TYPE_CHECKING:
    from .answers import StreamModel
    from .delays import DelayedStream, PendingLabels
    from .distributed_run import Distributed, distributed
    from .protocol import Chunked, prequential
    from .regret_recorder import Hindsight
    from .run import Run
    from .run_state import RunState

__all__ = [
    "Chunked",
    "DelayedStream",
    "Distributed",
    "Hindsight",
    "PendingLabels",
    "Run",
    "RunState",
    "StreamModel",
    "distributed",
    "prequential",
]

__getattr__ = lazily_loaded(
    __name__,
    {
        "Chunked": "protocol",
        "DelayedStream": "delays",
        "Distributed": "distributed_run",
        "Hindsight": "regret_recorder",
        "PendingLabels": "delays",
        "Run": "run",
        "RunState": "run_state",
        "StreamModel": "answers",
        "distributed": "distributed_run",
        "prequential": "protocol",
    },
)
