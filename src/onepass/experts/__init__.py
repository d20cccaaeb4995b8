"""Prediction with expert advice: algorithms that do nearly as well as the best of M experts in hindsight.

>>> from onepass import experts
>>> hedge = experts.Hedge(4, eta=0.5)
>>> hedge.predict([1, 1, 0, 0])
0.5
>>> hedge.learn([1, 1, 0, 0], 0)
>>> hedge.weights.round(5).tolist()
[0.18877, 0.18877, 0.31123, 0.31123]
"""

from __future__ import annotations

from .bandits import EXP3, UCB, Bandit, Replay, Thompson, replay
from .base import Experts
from .games import ExpertGame, Heaviest, HeaviestHalf, OppositeLabel, Panel, RandomLosses, play
from .hedge import AdaHedge, FixedShare, FollowPerturbedLeader, Hedge
from .numbers import ExponentialWeights, LogMixture
from .votes import Consistent, Halving, WeightedMajority

__all__ = [
    "ALGORITHMS",
    "BANDITS",
    "EXP3",
    "UCB",
    "AdaHedge",
    "Bandit",
    "Consistent",
    "ExpertGame",
    "Experts",
    "ExponentialWeights",
    "FixedShare",
    "FollowPerturbedLeader",
    "Halving",
    "Heaviest",
    "HeaviestHalf",
    "Hedge",
    "LogMixture",
    "OppositeLabel",
    "Panel",
    "RandomLosses",
    "Replay",
    "Thompson",
    "WeightedMajority",
    "play",
    "replay",
]

ALGORITHMS: dict[str, type[Experts]] = {
    kind.name: kind
    for kind in (
        Consistent,
        Halving,
        WeightedMajority,
        Hedge,
        AdaHedge,
        ExponentialWeights,
        LogMixture,
        FixedShare,
        FollowPerturbedLeader,
    )
}
BANDITS: dict[str, type[Bandit]] = {kind.name: kind for kind in (EXP3, UCB, Thompson)}
