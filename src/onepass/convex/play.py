"""`play`: a player against an adversary, and the record of the game."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, ParameterError
from .adversaries import Adversary
from .losses import Linear, Prediction, Quadratic, Regularized, RoundLoss
from .players import RDA, Player
from .sets import Array, DecisionSet, Reals

if TYPE_CHECKING:
    from ..scheme.losses import Loss
    from .regret.curves import Regret
    from .regret.hindsight import Comparator

__all__ = ["Game", "play"]


@dataclasses.dataclass(eq=False)
class Game:
    """The record of a game: for each round a row of `points` (w_t) and `gradients` (z_t ∈ ∂f_t(w_t)), and a loss.

    It stores T × d numbers twice: games are experiments, not streams.
    """

    player: Player
    functions: list[RoundLoss]
    points: Array
    gradients: Array
    losses: Array

    def __len__(self) -> int:
        return len(self.losses)

    def best(self, set: DecisionSet | None = None) -> Comparator:
        """The best fixed point of the player's set (or another) in hindsight."""
        from .regret import hindsight

        set = self.player.set if set is None else set
        kinds = {type(f) for f in self.functions}
        if kinds == {Linear}:
            return hindsight.best_linear(self.gradients, set)
        if kinds == {Quadratic}:
            return hindsight.best_quadratic(np.array([f.z for f in self.functions]), set)  # type: ignore[attr-defined]
        inner, ridge = self.functions, 0.0
        if kinds == {Regularized}:
            ridge = sum(f.lam for f in self.functions)  # type: ignore[attr-defined]
            inner = [f.f for f in self.functions]  # type: ignore[attr-defined]
        X, y, c, loss = _predictions(inner)
        if not ridge:
            return hindsight.best(X, y, loss, set, c)
        if not isinstance(set, Reals):
            raise ParameterError(f"the best point of losses with a penalty is found in all of R^d, not in {set!r}")
        return hindsight.best_penalised(X, y, loss, c, ridge)

    def regret(self, u: Any = None) -> Regret:
        """The regret against u, by default the best point in hindsight, and the player's bound."""
        from .regret.curves import Regret

        comparator = self.best() if u is None else None
        at = np.asarray(u, dtype=np.float64) if comparator is None else comparator.u
        theirs = np.array([f.value(at) for f in self.functions])
        ours = self.losses
        if isinstance(self.player, RDA):  # the bound of RDA is for the losses with λ‖w‖₁ added
            ours = ours + self.player.lam * np.sum(np.abs(self.points), axis=1)
            theirs = theirs + self.player.lam * float(np.sum(np.abs(at)))
        bounds = self.player.bounds(at, self.gradients)
        return Regret.of(
            np.arange(1, len(self) + 1),
            np.cumsum(ours),
            np.cumsum(theirs),
            bounds,
            comparator=comparator,
            constants=self.player.constants(at, self.gradients),
            who=repr(self.player),
            against="" if comparator is not None else "a given point",
        )


def _predictions(functions: list[RoundLoss]) -> tuple[Array, Array, Array, Loss]:
    """X, y and importances of rounds that all have the same loss of predictions, and that loss."""
    first = functions[0]
    rounds = [f for f in functions if isinstance(f, Prediction)]
    if not isinstance(first, Prediction) or len(rounds) < len(functions) or any(f.loss != first.loss for f in rounds):
        raise InputError(
            "the best point is found for rounds of one kind: linear, quadratic, or one loss of predictions"
        )
    X, y, c = (np.array([getattr(f, name) for f in rounds]) for name in ("x", "y", "importance"))
    return X, y, c, first.loss


def play(player: Player, adversary: Adversary, T: int) -> Game:
    """T rounds: the player plays w, the adversary answers with a loss f_t, the player learns from it.

    >>> from onepass import convex
    >>> game = convex.play(convex.FTL(1, convex.Box()), convex.Alternating(), 100)
    >>> game.regret().final
    99.5
    >>> round(convex.play(convex.FTRL(1, convex.Box(), eta=0.1), convex.Alternating(), 100).regret().final, 6)
    5.45
    """
    if isinstance(T, bool) or not isinstance(T, int | np.integer) or T < 1:
        raise ParameterError(f"play(T={T!r}): expected a whole number of rounds >= 1")
    points, gradients, losses = np.empty((T, player.d)), np.empty((T, player.d)), np.empty(T)
    functions: list[RoundLoss] = []
    for t in range(T):
        w = player.w
        f = adversary(t + 1, w)
        if f.dimension not in (None, player.d):
            raise InputError(f"round {t + 1}: the loss has {f.dimension} dimensions, the player {player.d}")
        points[t], losses[t] = w, f.value(w)
        gradients[t] = f.gradient(w)
        functions.append(f)
        if player.linear:
            player.learn(gradients[t])
        else:
            player.learn_loss(f)
    return Game(player, functions, points, gradients, losses)
