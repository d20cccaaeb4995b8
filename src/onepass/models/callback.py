"""The functions that the native loop calls for a rule that is written in Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ..scheme.rounds import Rule, Scalars, Step

__all__ = ["solve", "step"]


def step(rule: Rule) -> Callable[..., tuple[float, ...]]:
    """`rule.step` over plain floats; `slots` is the rule's state, changed in place."""

    def call(
        m: float,
        target: float,
        xx: float,
        ww: float,
        c: float,
        t: float,
        k: float,
        side: float,
        regression: float,
        base: float,
        slots: list[float],
    ) -> tuple[float, ...]:
        state = dict(zip(rule.slots, slots, strict=True))
        s = Scalars(m, target, xx, ww, c, int(t), int(k), side, state, regression != 0, base)
        answer = rule.step(s)
        if not isinstance(answer, Step):
            raise TypeError(f"{type(rule).__name__}.step must return a Step, got {answer!r}")
        slots[:] = [float(s.state[name]) for name in rule.slots]
        return tuple(map(float, dataclasses.astuple(answer)))

    return call


def solve(rule: Rule) -> Callable[..., tuple[Any, ...]]:
    """`rule.solve` over plain floats; the step's `add` is folded into the coefficients."""

    def call(scores: list[float], y: int, *rest: Any) -> tuple[Any, ...]:
        m, target, xx, ww, c, t, k, side, regression, slots = rest
        state = dict(zip(rule.slots, slots, strict=True))
        s = Scalars(m, target, xx, ww, c, int(t), int(k), side, state, regression != 0)
        coefficients, answer = rule.solve(np.array(scores), y, s)
        slots[:] = [float(s.state[name]) for name in rule.slots]
        rest_of_step = (answer.scale, answer.decay, answer.gain, answer.forget, answer.soft, answer.shrink)
        return [float(answer.add * c) for c in coefficients], *map(float, rest_of_step)

    return call
