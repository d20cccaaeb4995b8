"""The second-order papers' algorithms in plain NumPy, without onepass. Each yields (μ, Σ) after every round.

They keep Σ⁻¹ (or minimise the paper's own criterion), where onepass keeps Σ: nothing is shared but the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

Gaussians = Iterator[tuple[np.ndarray, np.ndarray]]


def ridge_afresh(stream: Any, d: int, delta: float, forgetting: float = 1.0) -> Gaussians:
    """argmin Σ φ^(t−i) c_i (y_i − w·x_i)² + φ^t δ‖w‖², solved from all examples so far."""
    rows: list[tuple[np.ndarray, float, float]] = []
    for x, y, c in stream:
        rows = [(past, answer, forgetting * weight) for past, answer, weight in rows] + [(np.asarray(x, float), y, c)]
        delta *= forgetting
        A = delta * np.eye(d) + sum(weight * np.outer(past, past) for past, _, weight in rows)
        yield np.linalg.solve(A, sum(weight * answer * past for past, answer, weight in rows)), np.linalg.inv(A)


def kalman(stream: Any, d: int, q: float, r: float, p0: float) -> Gaussians:
    """Kalman 1960, predict and correct, the textbook's five lines; importance divides the noise."""
    w, P = np.zeros(d), p0 * np.eye(d)
    for x, y, c in stream:
        if c > 0:
            x = np.asarray(x, float)
            P = P + q * np.eye(d)
            S = x @ P @ x + r / c
            K = P @ x / S
            w, P = w + K * (y - w @ x), P - np.outer(K, x) @ P
        yield w, P


def arow(stream: Any, d: int, r: float) -> Gaussians:
    """Crammer, Kulesza and Dredze 2009, Fig. 1, by way of Σ⁻¹."""
    mu, precision = np.zeros(d), np.eye(d)
    for x, y, c in stream:
        x = np.asarray(x, float)
        if y * (mu @ x) < 1 and c > 0 and x.any():
            sigma = np.linalg.inv(precision)
            beta = 1 / (x @ sigma @ x + r / c)
            mu = mu + max(0.0, 1 - y * (mu @ x)) * beta * (sigma @ (y * x))
            precision = precision + c / r * np.outer(x, x)
        yield mu, np.linalg.inv(precision)


def arow_diagonal(stream: Any, d: int, r: float, kind: str) -> Gaussians:
    """The same with a diagonal Σ: "drop" keeps the diagonal of the new Σ, "exact" minimises over diagonal ones."""
    mu, sigma = np.zeros(d), np.ones(d)
    for x, y, c in stream:
        x = np.asarray(x, float)
        if y * (mu @ x) < 1 and c > 0 and x.any():
            full = np.diag(sigma)
            beta = 1 / (x @ full @ x + r / c)
            mu = mu + (1 - y * (mu @ x)) * beta * y * (full @ x)
            sigma = (
                np.diag(full - beta * full @ np.outer(x, x) @ full)
                if kind == "drop"
                else 1 / (1 / sigma + c / r * x * x)
            )
        yield mu, np.diag(sigma)


def confidence_weighted(stream: Any, d: int, eta: float, C: float | None = None, square: bool = False) -> Gaussians:
    """Dredze, Crammer and Pereira 2008 / Wang, Zhao and Hoi 2012: the multiplier found by bisection on the paper's
    condition, not by the closed form. α solves  φ√u(α) − m − αv = 0 (CW), is capped by C (SCW-I), or solves
    φ√u − m − αv = α/(2C) (SCW-II), where √u is the deviation after Σ⁻¹ += αφ/√u xxᵀ.
    """
    phi = float(norm.ppf(eta))
    mu, precision = np.zeros(d), np.eye(d)
    for x, y, c in stream:
        x = np.asarray(x, float)
        sigma = np.linalg.inv(precision)
        v, m = x @ sigma @ x, y * (mu @ x)
        if v > 0 and phi * math.sqrt(v) > m and c > 0:

            def root_u(alpha: float, v: float = v) -> float:
                return 0.5 * (-alpha * v * phi + math.sqrt((alpha * v * phi) ** 2 + 4 * v))

            slack = 1 / (2 * c * C) if square and C is not None else 0.0
            low, high = 0.0, 1.0
            while phi * root_u(high) - m - high * v > slack * high:
                high *= 2
            for _ in range(200):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if phi * root_u(middle) - m - middle * v > slack * middle else (low, middle)
            alpha = low if C is None or square else min(c * C, low)
            mu = mu + alpha * y * (sigma @ x)
            precision = precision + alpha * phi / root_u(alpha) * np.outer(x, x)
        yield mu, np.linalg.inv(precision)


def cw_variance(stream: Any, d: int, eta: float) -> Gaussians:
    """Dredze, Crammer and Pereira 2008, constraint y μ·x ≥ φ xᵀΣx, its multiplier by bisection."""
    phi = float(norm.ppf(eta))
    mu, precision = np.zeros(d), np.eye(d)
    for x, y, c in stream:
        x = np.asarray(x, float)
        sigma = np.linalg.inv(precision)
        v, m = x @ sigma @ x, y * (mu @ x)
        if v > 0 and phi * v > m and c > 0:
            low, high = 0.0, 1.0
            while m + high * v < phi * v / (1 + 2 * high * phi * v):
                high *= 2
            for _ in range(200):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if m + middle * v < phi * v / (1 + 2 * middle * phi * v) else (low, middle)
            mu = mu + low * y * (sigma @ x)
            precision = precision + 2 * low * phi * np.outer(x, x)
        yield mu, np.linalg.inv(precision)


def nherd(stream: Any, d: int, C: float) -> Gaussians:
    """Crammer and Lee 2010: every vector w of the herd goes to A(w − μ) + μ', A = I − Σx xᵀ C/(1 + C v), so that
    Σ' = A Σ Aᵀ; the mean takes PA-II's step in the metric Σ.
    """
    mu, sigma = np.zeros(d), np.eye(d)
    for x, y, c in stream:
        x = np.asarray(x, float)
        if y * (mu @ x) < 1 and c > 0 and x.any():
            v, C_now = x @ sigma @ x, c * C
            mu = mu + y * (1 - y * (mu @ x)) / (v + 1 / C_now) * (sigma @ x)
            A = np.eye(d) - np.outer(sigma @ x, x) * C_now / (1 + C_now * v)
            sigma = A @ sigma @ A.T
        yield mu, sigma


def ons(stream: Any, d: int, gamma: float, eps: float, slope: Any) -> Gaussians:
    """Hazan, Agarwal and Kale 2007, Fig. 2, on the whole space; slope(score, y) is ∂ℓ/∂s."""
    w, A = np.zeros(d), eps * np.eye(d)
    for x, y, c in stream:
        g = c * slope(w @ np.asarray(x, float), y) * np.asarray(x, float)
        A = A + np.outer(g, g)
        w = w - np.linalg.solve(A, g) / gamma
        yield w, np.linalg.inv(A)


def kl(mu: np.ndarray, sigma: np.ndarray, mu0: np.ndarray, sigma0: np.ndarray) -> float:
    """KL(N(μ, Σ) ‖ N(μ₀, Σ₀))."""
    inverse = np.linalg.inv(sigma0)
    quadratic = float((mu - mu0) @ inverse @ (mu - mu0))
    logs = np.linalg.slogdet(sigma0)[1] - np.linalg.slogdet(sigma)[1]
    return 0.5 * (float(logs) + float(np.trace(inverse @ sigma)) + quadratic - len(mu))


def least(criterion: Any, mu0: np.ndarray, sigma0: np.ndarray, diagonal: bool) -> tuple[np.ndarray, np.ndarray]:
    """The (μ, Σ) of least criterion(μ, Σ), numerically: Σ = LLᵀ, or exp of a diagonal."""
    d = len(mu0)
    lower = np.tril_indices(d)

    def unpack(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if diagonal:
            return p[:d], np.diag(np.exp(p[d:]))
        L = np.zeros((d, d))
        L[lower] = p[d:]
        return p[:d], L @ L.T

    start = np.log(np.diag(sigma0)) if diagonal else np.linalg.cholesky(sigma0)[lower]
    found = minimize(lambda p: criterion(*unpack(p)), np.concatenate([mu0, start]), tol=1e-14, options={"gtol": 1e-10})
    return unpack(found.x)
