"""A numeric solver of small quadratic problems: the oracle for rules that claim to solve one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize


def quadratic(point: Any, weight: Any, linear: Any, G: Any, h: Any) -> np.ndarray:
    """argmin Σ ½ weight·(v − point)² + linear·v subject to G v ≥ h, by SLSQP (good for about six digits)."""
    point, weight, linear = (np.asarray(a, dtype=float) for a in (point, weight, linear))
    G, h = np.asarray(G, dtype=float), np.asarray(h, dtype=float)
    found = minimize(
        lambda v: 0.5 * np.sum(weight * (v - point) ** 2) + linear @ v,
        point,
        jac=lambda v: weight * (v - point) + linear,
        constraints=[{"type": "ineq", "fun": lambda v: G @ v - h, "jac": lambda v: G}],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.status in (0, 8), found.message  # 8: no digit left to gain
    assert np.all(G @ found.x - h >= -1e-7)
    return found.x
