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


# ---- the rest of the first-order family ----


def mira(stream: Stream, d: int, beta: float = 0.0, cap: float = 1.0, w: Any = None, *, on_tie: bool = True) -> Vectors:
    """Crammer and Singer 2003, two classes: w ← w + clip((β − m)/‖x‖², 0, c·cap) y x; m = 0 takes the whole step."""
    w = np.zeros(d) if w is None else np.asarray(w, dtype=float)
    for x, y, c in stream:
        if not skip(x, c):
            x = np.asarray(x)
            m = y * w.dot(x)
            alpha = c * cap if m == 0 and beta == 0 and on_tie else np.clip((beta - m) / x.dot(x), 0, c * cap)
            w = w + alpha * y * x
        yield w


def onto_simplex(z: np.ndarray, total: float) -> np.ndarray:
    """Michelot 1986: drop the coordinates that the projection onto the plane makes negative, until none is."""
    active = np.full(len(z), True)
    while True:
        theta = (z[active].sum() - total) / active.sum()
        keep = active & (z > theta)
        if keep.sum() == active.sum():
            return np.where(active, z - theta, 0.0)
        active = keep


def mira_multiclass(
    stream: Stream, classes: int, d: int, cap: float = 1.0, W: Any = None, *, on_tie: bool = True
) -> Vectors:
    """Specification 01 §12.4: min Σ‖W_i + τ_i x‖² with τ_i ≤ C[i = y] and Σ τ = 0; a tie takes the uniform step."""
    W = np.zeros((classes, d)) if W is None else np.asarray(W, dtype=float)
    for x, y, c in stream:
        if not skip(x, c):
            s, C, e = W @ x, c * cap, np.eye(classes)[y]
            E = [r for r in range(classes) if r != y and s[r] >= s[y]]
            if E and on_tie and max(s[E]) == s[y]:
                tau = C * e
                tau[E] = -C / len(E)
            else:
                tau = C * e - onto_simplex(C * e + s / np.dot(x, x), C)
            W = W + np.outer(tau, x)
        yield W


def romma(stream: Stream, d: int, *, aggressive: bool = False) -> Vectors:
    """Li and Long 2002, from the two constraints: solve the 2 × 2 system of those that are active."""
    w = np.zeros(d)
    for x, y, c in stream:
        m = y * w.dot(x)
        if not skip(x, c) and (m < 1 if aggressive else m <= 0):
            alone = y * x / np.dot(x, x)
            if alone.dot(w) >= w.dot(w):  # the old constraint holds by itself, or w = 0
                w = alone
            else:
                rows = np.array([w, y * x])
                w = np.linalg.solve(rows @ rows.T, [w.dot(w), 1.0]) @ rows
        yield w


def alma(
    stream: Stream, d: int, alpha: float = 0.9, B: float | None = None, C: float = math.sqrt(2),
    *, normalize: bool = True, strict: bool = False,
) -> Vectors:  # fmt: skip
    """Gentile 2001, Fig. 1, p = 2: γ_k = B/√k, η_k = C/√k; correct below (1 − α)γ_k, then into the unit ball."""
    w, k = np.zeros(d), 1
    B = math.sqrt(8) / alpha if B is None else B
    for x, y, c in stream:
        if not skip(x, c):
            unit = np.asarray(x) / np.linalg.norm(x) if normalize else np.asarray(x)
            m, threshold = y * w.dot(unit), (1 - alpha) * B / math.sqrt(k)
            if m < threshold or (m == threshold and not strict):
                w = w + C / math.sqrt(k) * y * unit
                w = w / max(1.0, float(np.linalg.norm(w)))
                k += 1
        yield w


def alma_p(
    stream: Stream, d: int, p: float, alpha: float = 0.9, B: float | None = None, C: float = math.sqrt(2),
    *, normalize: bool = True, strict: bool = False,
) -> Vectors:  # fmt: skip
    """Gentile 2001, Fig. 1: γ_k = B√(p−1)/√k, η_k = C/(√(p−1)√k), w' = f⁻¹(f(w) + η y x̂), w'/max(1, ‖w'‖_q)."""
    q = p / (p - 1)

    def f(w: np.ndarray, q: float) -> np.ndarray:
        norm = np.sum(np.abs(w) ** q) ** (1 / q)
        return np.sign(w) * np.abs(w) ** (q - 1) / norm ** (q - 2) if norm > 0 else np.zeros_like(w)

    w, k = np.zeros(d), 1
    B = math.sqrt(8) / alpha if B is None else B
    for x, y, c in stream:
        if not skip(x, c):
            unit = np.asarray(x) / np.sum(np.abs(x) ** p) ** (1 / p) if normalize else np.asarray(x)
            m, threshold = y * w.dot(unit), (1 - alpha) * B * math.sqrt(p - 1) / math.sqrt(k)
            if m < threshold or (m == threshold and not strict):
                w = f(f(w, q) + C / math.sqrt(p - 1) / math.sqrt(k) * y * unit, p)  # f for p is the inverse of f for q
                w = w / max(1.0, float(np.sum(np.abs(w) ** q) ** (1 / q)))
                k += 1
        yield w


def shifting(stream: Stream, d: int, lam: float, decay: str = "harmonic") -> Vectors:
    """Cavallanti, Cesa-Bianchi and Gentile 2007: on mistake k = 0, 1, …, w ← (1 − λ_k) w + y x."""
    w, k = np.zeros(d), 0
    for x, y, c in stream:
        if not skip(x, c) and y * w.dot(x) <= 0:
            share = lam if decay == "constant" or lam == 0 else lam / (lam + k)
            w = (1 - share) * w + y * np.asarray(x)
            k += 1
        yield w


def ultraconservative(stream: Stream, classes: int, d: int, kind: str, rho: float = 1.0) -> Vectors:
    """Crammer and Singer 2003: +ρx for y, −ρx shared among the error set {r ≠ y : s_r ≥ s_y}."""
    W = np.zeros((classes, d))
    for x, y, c in stream:
        s = W @ x
        E = [r for r in range(classes) if r != y and s[r] >= s[y]]
        if E and not skip(x, c):
            share = np.zeros(classes)
            total = sum(s[r] - s[y] for r in E)
            for r in E:
                if kind == "max":
                    share[r] = float(r == runner_up(s, y))
                else:
                    share[r] = (s[r] - s[y]) / total if kind == "proportional" and total > 0 else 1 / len(E)
            W = W + c * rho * np.outer(np.eye(classes)[y] - share, x)
        yield W


def pa_all_constraints(stream: Stream, classes: int, d: int, variant: str, C: float = 1.0) -> Vectors:
    """Specification 01 §13.2: τ_r = max(0, q_r − κS), S = Σ τ: drop the rivals that S makes negative, until none is."""
    W = np.zeros((classes, d))
    for x, y, c in stream:
        if not skip(x, c):
            s, xx = W @ x, np.dot(x, x)
            q = (1 - s[y] + s) / xx
            kappa = 1 + 1 / (2 * c * C * xx) if variant == "PA-II" else 1.0
            active = (np.arange(classes) != y) & (q > 0)
            while True:
                S = q[active].sum() / (1 + active.sum() * kappa)
                keep = active & (q > kappa * S)
                if keep.sum() == active.sum():
                    break
                active = keep
            tau = np.where(active, q - kappa * S, 0.0)
            if variant == "PA-I" and c * C < S:
                tau = np.zeros(classes)
                others = np.arange(classes) != y
                tau[others] = onto_simplex(q[others], c * C)
            W = W + np.outer(np.eye(classes)[y] * tau.sum() - tau, x)
        yield W


def fobos(
    stream: Stream, d: int, gradient: Callable[[float, float], float], eta: Callable[[int], float],
    lam1: float = 0.0, lam2: float = 0.0, *, spare_last: bool = False,
) -> Vectors:  # fmt: skip
    """Duchi and Singer 2009: a gradient step, then the proximal map of λ₁‖w‖₁ + (λ₂/2)‖w‖², on every coordinate."""
    w = np.zeros(d)
    for t, (x, y, c) in enumerate(stream, 1):
        if not skip(x, c):
            half = w - eta(t) * c * gradient(y, w.dot(x)) * np.asarray(x)
            w = np.sign(half) * np.maximum(0.0, np.abs(half) - eta(t) * lam1) / (1 + eta(t) * lam2)
            if spare_last:
                w[-1] = half[-1]
        yield w


def truncated_gradient(
    stream: Stream, d: int, gradient: Callable[[float, float], float], eta: Callable[[int], float],
    gravity: float, theta: float = math.inf, K: int = 10, *, spare_last: bool = False,
) -> Vectors:  # fmt: skip
    """Langford, Li and Zhang 2009, (5): every K-th round T₁(w_j; a = Kηg₀, θ)."""

    def truncate(v: float, a: float) -> float:
        if 0 <= v <= theta:
            return max(0.0, v - a)
        return min(0.0, v + a) if -theta <= v < 0 else v

    w = np.zeros(d)
    for t, (x, y, c) in enumerate(stream, 1):
        if not skip(x, c):
            half = w - eta(t) * c * gradient(y, w.dot(x)) * np.asarray(x)
            w = np.array([truncate(v, K * eta(t) * gravity) for v in half]) if t % K == 0 else half
            if spare_last:
                w[-1] = half[-1]
        yield w


def pa_multilabel(stream: Stream, classes: int, d: int, variant: str, C: float = 1.0) -> Vectors:
    """Crammer et al. 2006, §8 (specification 01 §14): the weakest label in Y against the strongest outside."""
    W = np.zeros((classes, d))
    for x, Y, c in stream:
        inside, outside = sorted(Y), [i for i in range(classes) if i not in Y]
        if not skip(x, c) and inside and outside:
            s = W @ x
            r, q = min(inside, key=lambda i: (s[i], i)), min(outside, key=lambda i: (-s[i], i))
            loss = max(0.0, 1 - (s[r] - s[q]))
            if loss > 0:
                W = W + pa_tau(variant, loss, 2 * np.dot(x, x), C, c) * np.outer(
                    np.eye(classes)[r] - np.eye(classes)[q], x
                )
        yield W


def pa_uniclass(stream: Stream, d: int, variant: str, C: float = 1.0, *, epsilon: float = 1.0) -> Vectors:
    """Crammer et al. 2006, §6: w moves towards x by τ where ‖x − w‖ > ε."""
    w = np.zeros(d)
    for x, _, c in stream:
        distance = float(np.linalg.norm(x - w))
        if c > 0 and distance > epsilon:
            w = w + pa_tau(variant, distance - epsilon, 1.0, C, c) * (x - w) / distance
        yield w


def mroc(stream: Stream, d: int, beta: float, mu: float, min_slope: float = 0.0) -> Vectors:
    """Specification 01 §16: ascent on σ(β w·z), z = x_p − x_n; slopes below `min_slope` are skipped."""
    w = np.zeros(d)
    for (p, n), _, c in stream:
        z = np.asarray(p, dtype=float) - np.asarray(n, dtype=float)
        S = 1 / (1 + math.exp(-beta * w.dot(z)))
        if not skip(z, c) and beta * S * (1 - S) >= min_slope:
            w = w + c * mu * beta * S * (1 - S) * z
        yield w


def pa_costs(stream: Stream, costs: Any, d: int, variant: str, C: float = 1.0) -> Vectors:
    """Crammer et al. 2006, §7 (specification 01 §15), "max_loss": r maximises s_r − s_y + √cost(y, r)."""
    roots = np.sqrt(np.asarray(costs, dtype=float))
    W = np.zeros((len(roots), d))
    for x, y, c in stream:
        s = W @ x
        r = runner_up(s + roots[y], y)
        loss = s[r] - s[y] + roots[y, r]
        if not skip(x, c) and loss > 0:
            W = W + pa_tau(variant, loss, 2 * np.dot(x, x), C, c) * np.outer(np.eye(len(W))[y] - np.eye(len(W))[r], x)
        yield W
