"""Bandits, which see the reward of the pulled arm only: EXP3, UCB1, Thompson sampling; evaluation on logged pulls.

`choose()` is drawn by `seed` and the number of pulls so far, so calling it twice changes nothing; `learn(arm, reward)`
starts the next round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, ParameterError
from ..scheme.sizes import require_room
from .base import Array, softmax

__all__ = ["EXP3", "UCB", "Bandit", "Replay", "Thompson", "replay"]


class Bandit:
    """Base: K arms, rewards in [0, 1]. `pulls` and `rewards` per arm."""

    name = ""

    def __init__(self, K: int, seed: int = 0) -> None:
        if isinstance(K, bool) or not isinstance(K, int | np.integer) or K < 1:
            raise ParameterError(f"{type(self).__name__}(K={K!r}): expected a whole number of arms >= 1")
        require_room(4 * int(K), f"{type(self).__name__}(K={K})")
        self.K, self.seed, self.t = int(K), seed, 0
        self.pulls: NDArray[np.int64] = np.zeros(self.K, dtype=np.int64)
        self.rewards: Array = np.zeros(self.K)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.K})"

    def choose(self) -> int:
        raise NotImplementedError

    def learn(self, arm: int, reward: float) -> None:
        if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < self.K:
            raise InputError(f"arm={arm!r}: expected a whole number from 0 to {self.K - 1}")
        if not isinstance(reward, int | float | np.number) or not 0 <= reward <= 1:
            raise InputError(f"reward={reward!r}: expected a number from 0 to 1")
        self._learn(int(arm), float(reward))
        self.t += 1
        self.pulls[arm] += 1
        self.rewards[arm] += reward

    def _learn(self, arm: int, reward: float) -> None:
        """Update a subclass's own state."""

    def _draws(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, self.t])


class EXP3(Bandit):
    """Exponential weights on rewards divided by the probability of the pull (Auer, Cesa-Bianchi, Freund, Schapire
    2002).

    p = (1 − γ)w + γ/K, w ∝ exp((γ/K) Σ reward·1[pulled]/p). For any rewards, chosen by an adversary who does not see
    the draw: G* − E[G] ≤ (e − 1)γG* + K ln K/γ, with G* the sum of the rewards of the best arm. With `horizon` N, the γ
    that makes this 2√(e − 1)·√(N K ln K); else 0.1.
    """

    name = "exp3"

    def __init__(self, K: int, gamma: float | None = None, horizon: int | None = None, seed: int = 0) -> None:
        super().__init__(K, seed)
        if gamma is None:
            best = math.sqrt(self.K * math.log(self.K) / ((math.e - 1.0) * horizon)) if horizon and self.K > 1 else 0.1
            gamma = min(1.0, best)
        if isinstance(gamma, bool) or not 0 < gamma <= 1:
            raise ParameterError(f"EXP3(gamma={gamma!r}): expected a number > 0 and <= 1")
        self.gamma = float(gamma)
        self.gains: Array = np.zeros(self.K)  # estimates of the sum of the rewards of every arm

    @property
    def probabilities(self) -> Array:
        return (1.0 - self.gamma) * softmax(self.gamma / self.K * self.gains) + self.gamma / self.K

    def choose(self) -> int:
        return int(
            np.searchsorted(np.cumsum(self.probabilities), self._draws().random(), side="right").clip(0, self.K - 1)
        )

    def _learn(self, arm: int, reward: float) -> None:
        gains = self.gains.copy()
        gains[arm] += reward / self.probabilities[arm]
        self.gains = gains

    def bound(self, best: float) -> float:
        """A bound on the expected regret, if the sum of the rewards of the best arm is `best`."""
        return (math.e - 1.0) * self.gamma * best + self.K * math.log(self.K) / self.gamma


class UCB(Bandit):
    """UCB1: the arm with the largest mean + √(2 ln t/n), each once first (Auer, Cesa-Bianchi, Fischer 2002).

    Independent rewards with means μ: regret ≤ 8 Σ_{Δ>0} ln N/Δ + (1 + π²/3) Σ Δ, Δ = μ* − μ, in expectation.
    """

    name = "ucb"

    def choose(self) -> int:
        if np.any(self.pulls == 0):
            return int(np.argmin(self.pulls))
        return int(np.argmax(self.rewards / self.pulls + np.sqrt(2.0 * math.log(self.t) / self.pulls)))

    @staticmethod
    def bound(means: Any, N: int) -> float:
        gaps = np.max(means) - np.asarray(means, dtype=np.float64)
        wide = gaps[gaps > 0]
        return float(8.0 * math.log(N) * np.sum(1.0 / wide) + (1.0 + math.pi**2 / 3.0) * np.sum(wide))


class Thompson(Bandit):
    """Pulls each arm with the probability that it is the best one, by draws from Beta posteriors (Thompson 1933;
    Agrawal, Goyal 2012).

    A reward strictly between 0 and 1 counts as a win with that probability.
    """

    name = "thompson"

    def __init__(self, K: int, seed: int = 0) -> None:
        super().__init__(K, seed)
        self.wins: Array = np.zeros(self.K)

    def choose(self) -> int:
        return int(np.argmax(self._draws().beta(1.0 + self.wins, 1.0 + self.pulls - self.wins)))

    def _learn(self, arm: int, reward: float) -> None:
        wins = self.wins.copy()
        wins[arm] += np.random.default_rng([self.seed, self.t, 1]).random() < reward
        self.wins = wins


class Replay:
    """The result of `replay`: `value`, the mean reward of the `matched` pulls, with its standard error `error`."""

    def __init__(self, rewards: list[float], logged: int) -> None:
        self.matched, self.logged = len(rewards), logged
        self.value = float(np.mean(rewards)) if rewards else math.nan
        self.error = float(np.std(rewards, ddof=1) / math.sqrt(len(rewards))) if len(rewards) > 1 else math.nan

    def __repr__(self) -> str:
        return f"Replay(value={self.value:.4f} ± {self.error:.4f}, {self.matched:,} of {self.logged:,} pulls matched)"


def replay(policy: Bandit, log: Iterable[tuple[int, float]]) -> Replay:
    """Evaluate a bandit on logged (arm, reward) whose arms were drawn uniformly: pulls that the bandit would not have
    made are skipped, the others are learned. The estimate is unbiased for the policy over as many rounds as matched
    (Li, Chu, Langford, Wang 2011).
    """
    rewards, logged = [], 0
    for arm, reward in log:
        logged += 1
        if policy.choose() == arm:
            policy.learn(arm, reward)
            rewards.append(float(reward))
    return Replay(rewards, logged)
