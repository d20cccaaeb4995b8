"""The table of losses, specification 00 §5: values, pulls (−∂ℓ along the score), kinks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.scheme import losses

from .transcriptions import GRADIENTS

# value as a function of m (margin losses) or r (residual losses), and the points where it has a kink
MARGIN = {
    "perceptron": (lambda m: max(0, -m), [0]),
    "perceptron(beta=0.5)": (lambda m: max(0, 0.5 - m), [0.5]),
    "hinge": (lambda m: max(0, 1 - m), [1]),
    "squared_hinge": (lambda m: max(0, 1 - m) ** 2 / 2, []),
    "logistic": (lambda m: math.log(1 + math.exp(-m)), []),
    "ramp": (lambda m: min(1, max(0, 1 - m)), [0, 1]),
}
RESIDUAL = {
    "squared": (lambda r: r * r / 2, []),
    "absolute": (abs, [0]),
    "eps_insensitive": (lambda r: max(0, abs(r) - 0.1), [-0.1, 0.1]),
    "squared_eps_insensitive(epsilon=0.3)": (lambda r: max(0, abs(r) - 0.3) ** 2 / 2, []),
    "quantile(tau=0.8)": (lambda r: 0.8 * r if r >= 0 else -0.2 * r, [0]),
    "huber(delta=0.7)": (lambda r: r * r / 2 if abs(r) <= 0.7 else 0.7 * (abs(r) - 0.35), []),
    "tukey(eta=2)": (lambda r: 4 / 6 * (1 - (1 - r * r / 4) ** 3) if abs(r) <= 2 else 4 / 6, []),
}
TABLE = MARGIN | RESIDUAL
GRID = np.linspace(-4.03, 4.03, 404)


def test_the_table_is_complete():
    assert {losses.make(name).name for name in TABLE} == set(losses.LOSSES)
    assert set(GRADIENTS) == set(TABLE)
    assert all(losses.make(name).margin == (name in MARGIN) for name in TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_value(name):
    loss, (value, _) = losses.make(name), TABLE[name]
    np.testing.assert_allclose([loss.value(z) for z in GRID], [value(z) for z in GRID], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", TABLE)
def test_pull_is_the_derivative(name):
    """−dℓ/dm for margin losses, dℓ/dr for residual losses, by central differences away from kinks."""
    loss, (_, kinks) = losses.make(name), TABLE[name]
    h, sign = 1e-5, -1 if loss.margin else 1
    for z in GRID:
        if all(abs(z - kink) > 2 * h for kink in kinks):
            slope = (loss.value(z + h) - loss.value(z - h)) / (2 * h)
            # Where the second derivative jumps (squared hinge, Huber) the difference is off by h/2.
            assert loss.pull(z) == pytest.approx(sign * slope, abs=h)


@pytest.mark.parametrize("name", TABLE)
def test_pull_is_minus_the_gradient_in_the_score(name):
    """The pull times y (margin) or times 1 (residual) is −∂ℓ/∂s of the table, kinks included."""
    loss = losses.make(name)
    for y in (-1.0, 1.0):
        for s in (*GRID, *(y * k if loss.margin else y - k for k in TABLE[name][1])):
            pull = y * loss.pull(y * s) if loss.margin else loss.pull(y - s)
            assert pull == pytest.approx(-GRADIENTS[name](y, s), rel=1e-12, abs=1e-14)


KINKS = [
    ("perceptron", 0.0, 1.0),  # the non-strict rule
    ("hinge", 1.0, 0.0),
    ("absolute", 0.0, 0.0),
    ("eps_insensitive", 0.1, 0.0),
    ("eps_insensitive", -0.1, 0.0),
    ("quantile(tau=0.8)", 0.0, 0.0),
    ("ramp", 1.0, 0.0),
    ("ramp", 0.0, 1.0),  # not the table's 0, from which no learner starts at w = 0: see losses.py
]


@pytest.mark.parametrize(("name", "z", "pull"), KINKS)
def test_kinks(name, z, pull):
    assert losses.make(name).pull(z) == pull


CONVEX = [name for name in TABLE if not name.startswith(("ramp", "tukey"))]


@settings(deadline=None)
@given(name=st.sampled_from(CONVEX), a=st.floats(-50, 50), b=st.floats(-50, 50))
def test_convex_losses_lie_above_their_tangents(name, a, b):
    """ℓ(b) ≥ ℓ(a) + ℓ'(a)(b − a), at kinks too: the pull is a subgradient everywhere."""
    loss = losses.make(name)
    slope = -loss.pull(a) if loss.margin else loss.pull(a)
    assert loss.value(b) >= loss.value(a) + slope * (b - a) - 1e-9


LIPSCHITZ = {"perceptron": 1, "hinge": 1, "logistic": 1, "absolute": 1, "eps_insensitive": 1, "ramp": 1,
             "quantile(tau=0.8)": 0.8, "huber(delta=0.7)": 0.7}  # fmt: skip


@pytest.mark.parametrize("name", LIPSCHITZ)
def test_lipschitz_constant(name):
    assert max(abs(losses.make(name).pull(z)) for z in GRID) <= LIPSCHITZ[name]


def test_logistic_never_overflows():
    loss = losses.Logistic()
    assert (loss.value(-1e300), loss.value(1e300)) == (1e300, 0.0)
    assert (loss.pull(-1e300), loss.pull(1e300)) == (1.0, 0.0)
    assert loss.pull(40.0) == pytest.approx(math.exp(-40), rel=1e-12)
