"""The members of an `EnsembleModel`: their weights, and the names and classes that they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scheme.rounds import Array
from .base import LearnerBase
from .linear import LinearModel

__all__ = ["EnsembleMembers", "Members"]


class Members:
    """Stands for a model's rule in messages: the members, the one with the largest weight first."""

    name = "auto"

    def __init__(self, model: EnsembleMembers) -> None:
        self.model = model

    def __repr__(self) -> str:
        return f"Experts({', '.join(f'{name} {w:.2f}' for name, w in self.model.standing()[:3] if w >= 0.005)}, …)"

    def proba(self, task: str) -> bool:
        return False  # shares of votes are not calibrated


class EnsembleMembers(LearnerBase):
    """The properties that an ensemble takes from its members: names and classes of any, weights of the heaviest one."""

    members: list[LinearModel]
    member_weights: Array
    alive: NDArray[np.bool_]
    t: int

    @property
    def first(self) -> LinearModel:
        """A member that still learns; they all know the same names and classes."""
        return self.members[int(np.argmax(self.alive))]

    @property
    def heaviest(self) -> LinearModel:
        return self.members[int(np.argmax(self.member_weights))]

    def standing(self) -> list[tuple[str, float]]:
        """Members and their weights, the heaviest first."""
        names = [f"{m.rule!r}" + ("" if repr(m.readout) == "Last()" else f"@{m.readout!r}") for m in self.members]
        order = np.argsort(-self.member_weights, kind="stable").tolist()
        return [(names[i], float(self.member_weights[i])) for i in order]

    @property
    def classes(self) -> list[Any]:
        return self.first.classes

    @property
    def declared(self) -> bool:
        return self.first.declared

    @property
    def n_features(self) -> int:
        return self.first.n_features

    @property
    def names(self) -> list[str | int]:
        return self.first.names

    @property
    def n_names(self) -> int:
        return self.first.n_names

    @property
    def positional(self) -> bool:
        return self.first.positional

    @property
    def k(self) -> int:
        """Updates of the heaviest member."""
        return self.heaviest.k

    @property
    def started(self) -> bool:
        return self.t > 0 or bool(self.classes)

    def weights(self) -> tuple[Array, Array]:
        """Those of the heaviest member."""
        return self.heaviest.weights()

    def met_weights(self) -> tuple[NDArray[np.intp], Array, Array]:
        return self.heaviest.met_weights()

    def find(self, names: Iterable[str | int]) -> NDArray[np.int64]:
        return self.heaviest.find(names)

    def name_columns(self, names: list[str]) -> None:
        for member in self.members:
            member.name_columns(names)
