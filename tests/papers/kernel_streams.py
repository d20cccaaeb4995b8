"""Streams and comparators for kernel learners."""

from __future__ import annotations

import numpy as np

# The spec's X4: exclusive or, for the Gaussian kernel with γ = 1.
X4 = np.array([[0, 0], [1, 1], [0, 1], [1, 0]], dtype=float)
Y4 = np.array([-1, -1, 1, 1])


def noisy_xor(n: int, seed: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    return X, np.where(rng.random(n) < noise, -y, y)


def checkerboard(n: int, seed: int, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """x uniform on [0, 4]², +1 on even squares; exactly a share `noise` of the labels flipped (spec 11 §9)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, (n, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2 == 0, 1, -1)
    flipped = rng.choice(n, round(noise * n), replace=False)
    y[flipped] *= -1
    return X, y


def comparators(gram: np.ndarray, y: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """‖u‖ and u(x_t) of ridge solutions, rescaled."""
    out = []
    for ridge in (0.1, 1.0, 10.0, 100.0):
        a = np.linalg.solve(gram + ridge * np.eye(len(y)), y.astype(float))
        for factor in (0.3, 1.0, 2.0):
            out.append((factor * float(np.sqrt(a @ gram @ a)), factor * gram @ a))
    return out
