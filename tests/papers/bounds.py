"""The guarantees of the Passive-Aggressive paper, for every task, and the slack that a test allows them.

Crammer et al. 2006: Lemma 1 ("basic"), Theorem 2 ("realizable"), Theorem 3 ("unit norm"), Theorem 4 (PA-I),
Theorem 5 (PA-II). All compare the learner with any fixed u of losses ℓ*; nothing is assumed of the stream.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from onepass.models.reference import ReferenceLearner

SLACK = 1e-9  # relative; some bounds are attained (specification 00 §7.1)


@dataclasses.dataclass
class Played:
    """What a run gave: per round ℓ, τ and whether it was a mistake; and ‖φ‖², however the task makes φ."""

    loss: np.ndarray
    tau: np.ndarray
    xx: np.ndarray
    mistake: np.ndarray

    @classmethod
    def of(cls, learner: ReferenceLearner, xx: np.ndarray, mistake: np.ndarray | None = None) -> Played:
        loss = np.array([r.loss for r in learner.records])
        return cls(
            loss,
            np.array([r.step.add for r in learner.records]),
            xx,
            loss >= 1 if mistake is None else mistake,
        )


def pa_bounds(name: str, C: float, p: Played, star: np.ndarray, uu: float) -> Iterator[tuple[str, float, float]]:
    """(theorem, measured, bound) for rule `name` against a u with losses `star` and ‖u‖² = `uu`."""
    R2 = float(p.xx.max())
    squares = float(np.sum(p.loss**2))
    yield "basic", float(np.sum(p.tau * (2 * p.loss - p.tau * p.xx - 2 * star))), uu
    if name == "pa" and not star.any():
        yield "realizable", squares, R2 * uu
    if name == "pa" and np.allclose(p.xx, 1.0, rtol=0, atol=1e-12):
        yield "unit norm", squares, (uu**0.5 + 2 * float(np.sum(star**2)) ** 0.5) ** 2
    if name == "pa1":
        yield "PA-I", float(p.mistake.sum()), max(R2, 1 / C) * (uu + 2 * C * float(star.sum()))
    if name == "pa2":
        yield "PA-II", squares, (R2 + 1 / (2 * C)) * (uu + 2 * C * float(np.sum(star**2)))


def assert_within(measured: float, bound: float, what: str) -> None:
    assert measured <= bound + SLACK * max(1.0, abs(bound)), f"{what}: {measured} > {bound}"
