"""Online convex optimisation: sets, losses, players, adversaries, and `play`, which runs a player against an adversary.

>>> from onepass import convex
>>> game = convex.play(convex.OGD(3, convex.L2Ball(), eta="theory"), convex.Outward(3), 500)
>>> regret = game.regret()
>>> bool(0 < regret.final <= regret.bound[-1])
True
"""

from __future__ import annotations

from .adversaries import (
    Adversary,
    Alternating,
    DriftingTarget,
    Examples,
    HeavyHalf,
    NoiseBursts,
    OppositeLabel,
    Outward,
    RandomLinear,
    RotatingHyperplane,
)
from .intersections import Intersection
from .losses import Linear, Prediction, Quadratic, Regularized, RoundLoss
from .play import Game, play
from .players import (
    EG,
    FTL,
    FTRL,
    OGD,
    ONS,
    PLAYERS,
    RDA,
    AdaGrad,
    CoinBetting,
    DualAveraging,
    EGPlusMinus,
    EntropicFTRL,
    MirrorDescent,
    Player,
    PNorm,
)
from .sets import Box, DecisionSet, Halfspace, L1Ball, L2Ball, Reals, Simplex
from .steps import Anytime, Constant, Doubling, Horizon, Observed, StepSize, StronglyConvex

__all__ = [
    "EG",
    "FTL",
    "FTRL",
    "OGD",
    "ONS",
    "PLAYERS",
    "RDA",
    "AdaGrad",
    "Adversary",
    "Alternating",
    "Anytime",
    "Box",
    "CoinBetting",
    "Constant",
    "DecisionSet",
    "Doubling",
    "DriftingTarget",
    "DualAveraging",
    "EGPlusMinus",
    "EntropicFTRL",
    "Examples",
    "Game",
    "Halfspace",
    "HeavyHalf",
    "Horizon",
    "Intersection",
    "L1Ball",
    "L2Ball",
    "Linear",
    "MirrorDescent",
    "NoiseBursts",
    "Observed",
    "OppositeLabel",
    "Outward",
    "PNorm",
    "Player",
    "Prediction",
    "Quadratic",
    "RandomLinear",
    "Reals",
    "Regularized",
    "RotatingHyperplane",
    "RoundLoss",
    "Simplex",
    "StepSize",
    "StronglyConvex",
    "play",
]
