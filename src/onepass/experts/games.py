"""Games with experts: `play` against given losses; a `Panel` of functions, models or columns of predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, ParameterError
from ..scheme.sizes import require_room
from .base import Array, Experts
from .hedge import FixedShare

if TYPE_CHECKING:
    from ..convex.regret.curves import Regret

__all__ = ["ExpertGame", "Heaviest", "HeaviestHalf", "OppositeLabel", "Panel", "RandomLosses", "play"]

Losses = Callable[[int, Array], ArrayLike]


class RandomLosses:
    """Independent losses: that of expert m is 1 with probability `means`[m] (by default 0.5), else 0."""

    def __init__(self, M: int, means: ArrayLike = 0.5, seed: int = 0) -> None:
        require_room(4 * M, f"RandomLosses(M={M})")
        self.generator = np.random.default_rng(seed)
        self.means = np.broadcast_to(np.asarray(means, dtype=np.float64), M)

    def __call__(self, n: int, weights: Array) -> Array:
        return np.asarray(self.generator.random(len(self.means)) < self.means, dtype=np.float64)


class HeaviestHalf:
    """Loss 1 for the ⌊M/2⌋ heaviest experts by rank (ties: the first), 0 for the others."""

    def __call__(self, n: int, weights: Array) -> Array:
        c = np.zeros(len(weights))
        c[np.argsort(-weights, kind="stable")[: max(1, len(weights) // 2)]] = 1.0
        return c


class Heaviest:
    """Loss 1 for the heaviest expert (ties: the first)."""

    def __call__(self, n: int, weights: Array) -> Array:
        c = np.zeros(len(weights))
        c[int(np.argmax(weights))] = 1.0
        return c


class OppositeLabel:
    """Two constant experts, 0 and 1, and an answer that is the opposite of what is predicted.

    Against a randomised algorithm, it sees the probability p, not the draw: 1 iff p < ½.
    """

    advice = (0, 1)

    def answer(self, prediction: float) -> int:
        return 1 if prediction < 0.5 else 0

    def against(self, algorithm: Experts, N: int) -> None:
        for _ in range(N):
            algorithm.learn(self.advice, self.answer(algorithm.predict(self.advice)))


@dataclasses.dataclass(eq=False)
class ExpertGame:
    """The record of a game: `losses`, rounds × experts; `own`, the loss of the algorithm in each round; `weights`,
    rounds × experts.
    """

    algorithm: Experts
    losses: Array
    own: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.own)

    def regret(self, sequence: ArrayLike | None = None) -> Regret:
        """The regret against the best expert, or against a `sequence` with an expert for every round."""
        from ..convex.regret.curves import Regret
        from ..convex.regret.hindsight import Comparator

        t = np.arange(1, len(self) + 1)
        totals = np.sum(self.losses, axis=0)
        if sequence is None:
            best = int(np.argmin(totals))
            theirs = np.cumsum(self.losses[:, best])
            # The bound is against the best expert of each prefix, whose loss is at most that of the best expert of all
            # rounds.
            lowest = np.min(np.cumsum(self.losses, axis=0), axis=1)
            bounds = np.asarray(self.algorithm.bound(t, lowest), dtype=np.float64)
            noise = 2.0 * np.finfo(np.float64).eps * len(self) * float(np.max(np.sum(np.abs(self.losses), axis=0)))
            who = Comparator(
                np.eye(self.algorithm.M)[best], float(totals[best]), noise, "the least sum", set=f"expert {best}"
            )
        else:
            followed = np.asarray(sequence, dtype=np.int64)
            if followed.shape != (len(self),):
                raise InputError(
                    f"sequence: expected an expert for each of {len(self)} rounds, got shape {followed.shape}"
                )
            theirs = np.cumsum(self.losses[np.arange(len(self)), followed])
            switches = int(np.sum(np.diff(followed) != 0))
            who = None
            bounds = np.full(len(t), np.inf)
            if isinstance(self.algorithm, FixedShare):  # only FixedShare has a bound for sequences
                bounds = np.asarray(self.algorithm.bound(t, theirs, switches), dtype=np.float64)
        return Regret.of(
            t,
            np.cumsum(self.own),
            theirs,
            bounds if np.all(np.isfinite(bounds)) else None,
            comparator=who,
            who=repr(self.algorithm),
            against="a sequence of experts" if sequence is not None else "",
        )


def play(algorithm: Experts, losses: Losses | ArrayLike, N: int | None = None) -> ExpertGame:
    """N rounds of losses: a function of (round, weights), which may be an adversary, or a table, rounds × experts.

    >>> from onepass import experts
    >>> game = experts.play(experts.Hedge(2, horizon=100), experts.Heaviest(), 100)
    >>> regret = game.regret()
    >>> bool(0 < regret.final <= regret.bound[-1])
    True
    """
    if callable(losses):
        if N is None:
            raise ParameterError("play(…, N): how many rounds?")
        rounds = N
    else:
        table = np.asarray(losses, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != algorithm.M:
            raise InputError(f"losses: expected rounds × {algorithm.M} experts, got shape {table.shape}")
        rounds = len(table) if N is None else N
    recorded, own = np.empty((rounds, algorithm.M)), np.empty(rounds)
    weights = np.empty((rounds, algorithm.M))
    for n in range(rounds):
        weights[n] = algorithm.weights
        recorded[n] = losses(n + 1, weights[n]) if callable(losses) else table[n]
        before = algorithm.loss
        algorithm.learn(recorded[n])
        own[n] = algorithm.loss - before
    return ExpertGame(algorithm, recorded, own, weights)


class Panel:
    """Experts of any kind: functions of x, models with `predict_one`, or columns of a table of predictions.

    >>> from onepass import experts
    >>> panel = experts.Panel([lambda x: 0, lambda x: 1, lambda x: int(x["a"] > 0)])
    >>> panel.advice({"a": 2.0})
    [0, 1, 1]
    """

    def __init__(self, members: Sequence[Any] | Any) -> None:
        self.table = None
        if hasattr(members, "shape") and len(members.shape) == 2:
            self.table = np.asarray(members)
            self.M = int(self.table.shape[1])
            return
        self.members = list(members)
        for member in self.members:
            if not callable(member) and not hasattr(member, "predict_one"):
                raise ParameterError(f"expert {member!r:.60}: expected a function of x, or an object with predict_one")
        self.M = len(self.members)

    def advice(self, x: Any) -> list[Any]:
        """The prediction of each expert for x; for a table, row x."""
        if self.table is not None:
            return list(self.table[x].tolist())
        return [member.predict_one(x) if hasattr(member, "predict_one") else member(x) for member in self.members]

    def learn(self, x: Any, y: Any) -> None:
        """Let the experts that can learn do so."""
        if self.table is None:
            for member in self.members:
                if hasattr(member, "learn_one"):
                    member.learn_one(x, y)

    def follow(self, algorithm: Experts, stream: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Predict, reveal, learn: the algorithm's predictions for every (x, y)."""
        if algorithm.M != self.M:
            raise ParameterError(f"{algorithm!r} listens to {algorithm.M} experts; the panel has {self.M}")
        predicted = []
        for x, y in stream:
            advice = self.advice(x)
            predicted.append(algorithm.predict(advice))
            algorithm.learn(advice, y)
            self.learn(x, y)
        return predicted
