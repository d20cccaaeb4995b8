"""The base of players: play a point, observe a loss, update."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError, NumericalError, ParameterError
from ...scheme.sizes import require_room
from ..losses import RoundLoss
from ..sets import Array, DecisionSet, Reals, point

__all__ = ["Player"]


class Player:
    """Base of the players. `w` is the point played next; `learn(z)` takes a subgradient of the loss there.

    A refused z leaves the player unchanged. Subclasses define `_begin` and `_move`, which replace arrays and never
    change one in place, and `bounds(u, Z)`: entry t − 1 bounds the regret against u ∈ S after t rounds with the
    subgradients Z[:t]; None if there is no bound.
    """

    name = ""
    matrices = 0  # tables of d × d numbers
    linear = True  # True: the player uses only subgradients of the losses

    def __init__(self, d: int, set: DecisionSet | None = None) -> None:
        if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
            raise ParameterError(f"{type(self).__name__}(d={d!r}): expected a whole number of dimensions >= 1")
        require_room(4 * int(d) + self.matrices * int(d) ** 2, f"{type(self).__name__}(d={d})")
        self.d = int(d)
        self.set = Reals() if set is None else set
        if not isinstance(self.set, DecisionSet):
            raise ParameterError(f"{type(self).__name__}(set={set!r:.60}): expected a set of onepass.convex")
        self.t = 0
        self.w: Array = self.set.start(self.d)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.d}, {self.set!r})"

    def learn(self, z: ArrayLike) -> None:
        """Update after a round whose loss has the subgradient z at `w`."""
        z = point(z, "z")
        if len(z) != self.d:
            raise InputError(f"z has {len(z)} coordinates; expected {self.d}")
        self._attempt(lambda: self._move(z))

    def learn_loss(self, f: RoundLoss) -> None:
        """Update after a round with loss f. Players that are not `linear` need the loss itself."""
        self.learn(f.gradient(self.w))

    def _attempt(self, move: Any) -> None:
        before = dict(vars(self))
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                self.t += 1
                move()
            self._finite(self.w)
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _finite(self, v: Array) -> Array:
        if not np.all(np.isfinite(v)):
            raise NumericalError(f"row 0: the point played after round {self.t} would not be finite; nothing changed")
        return v

    def _move(self, z: Array) -> None:
        raise NotImplementedError

    def bounds(self, u: Array, Z: Array) -> Array | None:
        return None

    def constants(self, u: Array, Z: Array) -> dict[str, float]:
        """The constants of this game that appear in the bound."""
        return {
            "‖u − w₁‖": float(np.linalg.norm(u - self.set.start(self.d))),
            "G": float(np.max(np.linalg.norm(Z, axis=1))),
        }


def positive(owner: str, name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < math.inf:
        raise ParameterError(f"{owner}({name}={value!r}): expected a finite number > 0")
    return float(value)
