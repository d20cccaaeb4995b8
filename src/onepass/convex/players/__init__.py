"""Players of online convex optimisation, by name in `PLAYERS`."""

from __future__ import annotations

from .adaptive import ONS, AdaGrad, CoinBetting
from .base import Player
from .descent import OGD
from .leaders import FTL, FTRL, RDA, DualAveraging, EntropicFTRL
from .mirror import EG, EGPlusMinus, MirrorDescent, PNorm

__all__ = [
    "EG",
    "FTL",
    "FTRL",
    "OGD",
    "ONS",
    "PLAYERS",
    "RDA",
    "AdaGrad",
    "CoinBetting",
    "DualAveraging",
    "EGPlusMinus",
    "EntropicFTRL",
    "MirrorDescent",
    "PNorm",
    "Player",
]

PLAYERS: dict[str, type[Player]] = {
    kind.name: kind
    for kind in (OGD, FTL, FTRL, EntropicFTRL, DualAveraging, RDA, EG, EGPlusMinus, PNorm, AdaGrad, ONS, CoinBetting)
}
