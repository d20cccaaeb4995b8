"""Short transcriptions of the papers' algorithms, in plain NumPy and without onepass: the tests' oracle.

Each takes a stream of (x, y, c), c the importance, and yields w after every round. A zero vector and c = 0
are rounds without an update (specification 00 §6); `skip` is that test, written once. x already holds the
constant feature where there is one: it is then the last coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

Stream = Iterable[tuple[Any, Any, float]]
Vectors = Iterator[np.ndarray]


def skip(x: np.ndarray, c: float) -> bool:
    return c == 0 or not np.any(x)


def perceptron(stream: Stream, d: int, rho: Callable[[int], float], beta: float = 0.0, strict: bool = False) -> Vectors:
    """Rosenblatt 1958; with margin β: Krauth and Mézard 1987. If y w·x ≤ β: w ← w + ρ y x."""
    w = np.zeros(d)
    for t, (x, y, c) in enumerate(stream, 1):
        m = y * w.dot(x)
        if not skip(x, c) and (m < beta or (m == beta and not strict)):
            w = w + c * rho(t) * y * np.asarray(x)
        yield w


def lms(stream: Stream, d: int, rho: Callable[[int], float]) -> Vectors:
    """Widrow and Hoff 1960: w ← w + ρ (y − w·x) x."""
    w = np.zeros(d)
    for t, (x, y, c) in enumerate(stream, 1):
        w = w + c * rho(t) * (y - w.dot(x)) * np.asarray(x)
        yield w


def nlms(stream: Stream, d: int, mu: float, eps: float) -> Vectors:
    """Nagumo and Noda 1967 (Haykin, ch. 6): w ← w + μ c e x/(ε + c‖x‖²)."""
    w = np.zeros(d)
    for x, y, c in stream:
        if not skip(x, c):
            w = w + mu * c * (y - w.dot(x)) * x / (eps + c * x.dot(x))
        yield w


def pa_tau(variant: str, loss: float, xx: float, C: float, c: float, scale_step: bool = False) -> float:
    """Crammer et al. 2006, Fig. 1: the three step sizes; c multiplies C, or with `scale_step` the step."""
    if scale_step:
        return c * pa_tau(variant, loss, xx, C, 1.0)
    if variant == "PA":
        return loss / xx
    if variant == "PA-I":
        return min(c * C, loss / xx)
    return loss / (xx + 1 / (2 * c * C))


def pa_classification(
    stream: Stream, d: int, variant: str, C: float = 1.0, *, mistakes_only: bool = False,
    scale_step: bool = False, bias_in_norm: bool = True,
) -> Vectors:  # fmt: skip
    """Crammer et al. 2006, Fig. 1: ℓ = max(0, 1 − y w·x), w ← w + τ y x."""
    w = np.zeros(d)
    for x, y, c in stream:
        normed = x if bias_in_norm else x[:-1]
        loss = max(0.0, 1 - y * w.dot(x))
        if not skip(normed, c) and loss > 0 and not (mistakes_only and y * w.dot(x) > 0):
            w = w + pa_tau(variant, loss, normed.dot(normed), C, c, scale_step) * y * x
        yield w


def pa_regression(
    stream: Stream, d: int, variant: str, C: float = 1.0, *, epsilon: float, scale_step: bool = False
) -> Vectors:
    """Crammer et al. 2006, Fig. 2: ℓ = max(0, |y − w·x| − ε), w ← w + sign(y − w·x) τ x."""
    w = np.zeros(d)
    for x, y, c in stream:
        r = y - w.dot(x)
        if not skip(x, c) and abs(r) > epsilon:
            w = w + np.sign(r) * pa_tau(variant, abs(r) - epsilon, x.dot(x), C, c, scale_step) * x
        yield w


def pa_ranking(stream: Stream, d: int, variant: str, C: float = 1.0) -> Vectors:
    """PAMIR (Grangier and Bengio 2008): PA-I on z = x_p − x_n; here with the two other steps as well."""
    w = np.zeros(d)
    for (p, n), _, c in stream:
        z = np.asarray(p) - np.asarray(n)
        if not skip(z, c):
            w = w + pa_tau(variant, max(0.0, 1 - w.dot(z)), z.dot(z), C, c) * z
        yield w


def runner_up(scores: np.ndarray, y: int) -> int:
    return max((r for r in range(len(scores)) if r != y), key=lambda r: (scores[r], -r))


def pa_multiclass(stream: Stream, classes: int, d: int, variant: str, C: float = 1.0) -> Vectors:
    """Specification 01 §13.1 (Crammer et al. 2006, §8, with the best rival): ‖Φ(y) − Φ(r)‖² = 2‖x‖²."""
    W = np.zeros((classes, d))
    for x, y, c in stream:
        r = runner_up(W @ x, y)
        loss = max(0.0, 1 - (W[y] - W[r]).dot(x))
        if not skip(x, c) and loss > 0:
            tau = pa_tau(variant, loss, 2 * x.dot(x), C, c)
            W = W.copy()
            W[y] += tau * x
            W[r] -= tau * x
        yield W


def multiclass_perceptron(stream: Stream, classes: int, d: int, beta: float = 0.0) -> Vectors:
    """Crammer and Singer 2003, the "max" member: +x for y, −x for the best rival, when s_y − s_r ≤ β."""
    W = np.zeros((classes, d))
    for x, y, c in stream:
        r = runner_up(W @ x, y)
        if not skip(x, c) and (W[y] - W[r]).dot(x) <= beta:
            W = W.copy()
            W[y] += c * x
            W[r] -= c * x
        yield W


def sgd(
    stream: Stream, d: int, gradient: Callable[[float, float], float], eta: Callable[[int], float],
    lam: float = 0.0, *, clock: str = "rounds", spare_last: bool = False,
) -> Vectors:  # fmt: skip
    """Specification 01 §18.1: w ← max(0, 1 − ηλ) w − η c ∂ℓ(y, s) x. The last coordinate may be spared."""
    w, updates = np.zeros(d), 0
    for t, (x, y, c) in enumerate(stream, 1):
        if not skip(x, c):
            step = eta(t if clock == "rounds" else updates + 1)
            g = c * gradient(y, w.dot(x))
            shrink = np.full(d, max(0.0, 1 - step * lam))
            if spare_last:
                shrink[-1] = 1.0
            w = shrink * w - step * g * x
            updates += g != 0
        yield w


def softmax_regression(stream: Stream, classes: int, d: int, eta: Callable[[int], float], lam: float = 0.0) -> Vectors:
    """SGD on −s_y + ln Σ exp s_r: W_r ← (1 − ηλ) W_r − η c (softmax(s)_r − [r = y]) x."""
    W = np.zeros((classes, d))
    for t, (x, y, c) in enumerate(stream, 1):
        if not skip(x, c):
            p = np.exp(W @ x)
            W = (1 - eta(t) * lam) * W - eta(t) * c * np.outer(p / p.sum() - np.eye(classes)[y], x)
        yield W


def one_against_all_lms(stream: Stream, classes: int, d: int, rate: Callable[[int, float, float], float]) -> Vectors:
    """LMS in every row with targets ±1; `rate(t, ‖x‖², c)` multiplies the residuals."""
    W = np.zeros((classes, d))
    for t, (x, y, c) in enumerate(stream, 1):
        if not skip(x, c):
            W = W + rate(t, x.dot(x), c) * np.outer(2 * np.eye(classes)[y] - 1 - W @ x, x)
        yield W


def pegasos(stream: Stream, d: int, lam: float, project: bool = False) -> Vectors:
    """Shalev-Shwartz et al. 2011, Fig. 1, one example a round; the optional line is the projection."""
    w = np.zeros(d)
    for t, (x, y, c) in enumerate(stream, 1):
        if not skip(x, c):
            eta = 1 / (lam * t)
            w = (1 - eta * lam) * w + (eta * c * y * x if y * w.dot(x) < 1 else 0)
            if project and np.any(w):
                w = min(1.0, 1 / math.sqrt(lam) / np.linalg.norm(w)) * w
        yield w


def average(vectors: Iterable[np.ndarray], kind: str, start: int = 1) -> Vectors:
    """Polyak–Ruppert mean over rounds start, start + 1, … of w before ("predictor") or after the update."""
    W = list(vectors)
    used = W if kind == "post" else [np.zeros_like(W[0]), *W[:-1]]
    for t in range(1, len(W) + 1):
        yield W[t - 1] if t < start else np.mean(used[start - 1 : t], axis=0)


# 00 §5: ∂ℓ/∂s as a function of (y, s), with the kink values of the table.
# Ramp at m = 0 has −y in place of the table's 0, from which no learner starts at w = 0 (any value between is
# a generalised gradient); `test_losses.py` says so too.
GRADIENTS: dict[str, Callable[[float, float], float]] = {
    "perceptron": lambda y, s: -y if y * s <= 0 else 0.0,
    "perceptron(beta=0.5)": lambda y, s: -y if y * s <= 0.5 else 0.0,
    "hinge": lambda y, s: -y if y * s < 1 else 0.0,
    "squared_hinge": lambda y, s: -y * max(0.0, 1 - y * s),
    "logistic": lambda y, s: -y / (1 + math.exp(y * s)),
    "ramp": lambda y, s: -y if 0 <= y * s < 1 else 0.0,
    "squared": lambda y, s: s - y,
    "absolute": lambda y, s: -np.sign(y - s),
    "eps_insensitive": lambda y, s: -np.sign(y - s) if abs(y - s) > 0.1 else 0.0,
    "squared_eps_insensitive(epsilon=0.3)": lambda y, s: -np.sign(y - s) * max(0.0, abs(y - s) - 0.3),
    "quantile(tau=0.8)": lambda y, s: -0.8 if y > s else (0.2 if y < s else 0.0),
    "huber(delta=0.7)": lambda y, s: -np.clip(y - s, -0.7, 0.7),
    "tukey(eta=2)": lambda y, s: -(y - s) * (1 - (y - s) ** 2 / 4) ** 2 if abs(y - s) <= 2 else 0.0,
}

# 00 §9: η_t.
SCHEDULES: dict[str, Callable[[int], float]] = {
    "constant(eta=0.3)": lambda t: 0.3,
    "inv_t(eta=2)": lambda t: 2 / t,
    "inv_sqrt(eta=0.5)": lambda t: 0.5 / t**0.5,
    "inv_scaling(eta=0.4,p=0.7,t0=3)": lambda t: 0.4 / (t + 3) ** 0.7,
    "optimal(alpha=0.05)": lambda t: 1 / (0.05 * (0.05 ** (-3 / 4) + t - 1)),
    "geometric(eta=0.6,gamma=0.9,eta_min=0.05)": lambda t: max(0.05, 0.6 * 0.9 ** (t - 1)),
    "step_decay(eta=0.6,gamma=0.5,every=7)": lambda t: 0.6 * 0.5 ** ((t - 1) // 7),
}
