"""The table of step sizes, specification 00 §9, and the conditions of Robbins and Monro 1951."""

from __future__ import annotations

import math

import pytest

from onepass.scheme import schedules

from .transcriptions import SCHEDULES

ROBBINS_MONRO = {
    "constant": (True, False),
    "inv_t": (True, True),
    "inv_sqrt": (True, False),
    "inv_scaling(p=0.5)": (True, False),
    "inv_scaling(p=0.6)": (True, True),
    "inv_scaling(p=1)": (True, True),
    "inv_scaling(p=1.5)": (False, True),
    "inv_scaling(p=0)": (True, False),
    "optimal": (True, True),
    "geometric": (False, True),
    "geometric(eta_min=0.01)": (True, False),
    "step_decay": (False, True),
}


def test_the_tables_are_complete():
    assert {schedules.make(name).name for name in SCHEDULES} == set(schedules.SCHEDULES)
    assert {schedules.make(name).name for name in ROBBINS_MONRO} == set(schedules.SCHEDULES)


@pytest.mark.parametrize("name", SCHEDULES)
def test_step_sizes(name):
    schedule = schedules.make(name)
    for t in (*range(1, 60), 1000, 10**6):
        assert schedule(t) == pytest.approx(SCHEDULES[name](t), rel=1e-13)


DEFAULTS = [
    ("constant", 0.1),
    ("inv_t", 0.01),
    ("inv_sqrt", 0.1 / math.sqrt(10)),
    ("inv_scaling", 0.1 / math.sqrt(10)),
    ("geometric", 0.1 * 0.999**9),
    ("step_decay", 0.1),
]


@pytest.mark.parametrize(("name", "tenth"), DEFAULTS)
def test_defaults(name, tenth):
    """η₀ = 0.1, p = ½, t₀ = 0, γ = 0.999, η_min = 0."""
    assert schedules.make(name)(10) == pytest.approx(tenth, rel=1e-13)


@pytest.mark.parametrize("name", ROBBINS_MONRO)
def test_robbins_monro(name):
    assert schedules.check_robbins_monro(name) == ROBBINS_MONRO[name]


@pytest.mark.parametrize("name", [n for n in ROBBINS_MONRO if n != "optimal"])
def test_robbins_monro_by_summing(name):
    """Σ η over t in (T, 2T] stays away from 0 iff the sum diverges; likewise T Σ η² grows or shrinks."""
    eta, (diverges, squares_converge) = schedules.make(name), ROBBINS_MONRO[name]
    early, late = (sum(eta(t) for t in range(T + 1, 2 * T + 1)) for T in (2**14, 2**17))
    assert (late >= 0.99 * early) == diverges
    early, late = (sum(eta(t) ** 2 for t in range(T + 1, 2 * T + 1)) for T in (2**14, 2**17))
    assert (late < 0.99 * early) == squares_converge
