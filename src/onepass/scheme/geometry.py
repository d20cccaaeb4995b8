"""The p-norm geometry: a rule adds to θ and predicts with w, its image under a link.

θ = f(w) = ∇½‖w‖_q², w = f⁻¹(θ) = ∇½‖θ‖_p², 1/p + 1/q = 1 (Grove, Littlestone and Schuurmans 2001). For p = 2 both are
the same vector.
"""

from __future__ import annotations

import math

import numpy as np

from .rounds import Array

__all__ = ["link", "p_norm"]


def p_norm(x: Array, p: float) -> float:
    """(Σ|x_j|^p)^(1/p), scaled by the largest |x_j|, so that no power overflows and none that matters underflows."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * math.pow(float(np.sum((np.abs(x) / largest) ** p)), 1.0 / p)


def link(theta: Array, p: float) -> Array:
    """w_j = ‖θ‖_p sign(θ_j) (|θ_j|/‖θ‖_p)^(p−1), whose q-norm is ‖θ‖_p. `link(w, q)` leads back."""
    norm = p_norm(theta, p)
    if p == 2 or norm == 0:
        return theta
    return np.asarray(norm * np.sign(theta) * (np.abs(theta) / norm) ** (p - 1.0))
