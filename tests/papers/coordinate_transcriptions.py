"""Rules by coordinates as their papers have them: plain numbers, one weight at a time.

Each takes the gradients of a stream one after the other: a dict from coordinate to g_j, only those that are not 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable


class AdaGrad:
    """Duchi, Hazan and Singer 2011, Figure 1 (primal-dual update with ψ = δ‖·‖² + diagonal, no regulariser)."""

    def __init__(self, eta: float, delta: float = 0.0) -> None:
        self.w: dict[int, float] = defaultdict(float)
        self.s: dict[int, list[float]] = defaultdict(list)  # all past gradients, as the paper's g_{1:t,i}
        self.eta, self.delta = eta, delta

    def learn(self, g: dict[int, float]) -> None:
        for j, gj in g.items():
            self.s[j].append(gj)
            norm = math.sqrt(math.fsum(value * value for value in self.s[j]))
            if self.delta + norm > 0:
                self.w[j] -= self.eta * gj / (self.delta + norm)


class AdaDelta:
    """Zeiler 2012, Algorithm 1; with `everywhere` for all coordinates 0 … d − 1 in every round."""

    def __init__(self, rho: float, eps: float, everywhere: int = 0) -> None:
        self.w: dict[int, float] = defaultdict(float)
        self.E: dict[int, float] = defaultdict(float)
        self.D: dict[int, float] = defaultdict(float)
        self.rho, self.eps, self.everywhere = rho, eps, everywhere

    def learn(self, g: dict[int, float]) -> None:
        for j in range(self.everywhere) if self.everywhere else g:
            gj = g.get(j, 0.0)
            self.E[j] = self.rho * self.E[j] + (1 - self.rho) * gj**2
            rms_dx, rms_g = math.sqrt(self.D[j] + self.eps), math.sqrt(self.E[j] + self.eps)
            dx = -rms_dx / rms_g * gj
            self.D[j] = self.rho * self.D[j] + (1 - self.rho) * dx**2
            self.w[j] += dx


class RMSProp:
    """Tieleman and Hinton 2012: divide the gradient by a running average of its recent magnitude."""

    def __init__(self, eta: float, rho: float, eps: float, everywhere: int = 0) -> None:
        self.w: dict[int, float] = defaultdict(float)
        self.mean_square: dict[int, float] = defaultdict(float)
        self.eta, self.rho, self.eps, self.everywhere = eta, rho, eps, everywhere

    def learn(self, g: dict[int, float]) -> None:
        for j in range(self.everywhere) if self.everywhere else g:
            gj = g.get(j, 0.0)
            self.mean_square[j] = self.rho * self.mean_square[j] + (1 - self.rho) * gj**2
            self.w[j] -= self.eta * gj / math.sqrt(self.mean_square[j] + self.eps)


class Adam:
    """Kingma and Ba 2015, Algorithm 1, over all coordinates; or only those with a gradient."""

    def __init__(self, eta: float, b1: float, b2: float, eps: float, everywhere: int = 0) -> None:
        self.w: dict[int, float] = defaultdict(float)
        self.m: dict[int, float] = defaultdict(float)
        self.v: dict[int, float] = defaultdict(float)
        self.eta, self.b1, self.b2, self.eps, self.everywhere = eta, b1, b2, eps, everywhere
        self.t = 0

    def learn(self, g: dict[int, float]) -> None:
        self.t += 1
        for j in range(self.everywhere) if self.everywhere else g:
            gj = g.get(j, 0.0)
            self.m[j] = self.b1 * self.m[j] + (1 - self.b1) * gj
            self.v[j] = self.b2 * self.v[j] + (1 - self.b2) * gj**2
            m_hat, v_hat = self.m[j] / (1 - self.b1**self.t), self.v[j] / (1 - self.b2**self.t)
            self.w[j] -= self.eta * m_hat / (math.sqrt(v_hat) + self.eps)


class FTRL:
    """McMahan et al. 2013, Algorithm 1: w from z and n before each prediction. `spared` is not penalised."""

    def __init__(self, alpha: float, beta: float, lam1: float, lam2: float, spared: int | None = None) -> None:
        self.z: dict[int, float] = defaultdict(float)
        self.n: dict[int, float] = defaultdict(float)
        self.alpha, self.beta, self.lam1, self.lam2, self.spared = alpha, beta, lam1, lam2, spared

    @property
    def w(self) -> dict[int, float]:
        return {j: self.weight(j) for j in self.z}

    def weight(self, j: int) -> float:
        lam1, lam2 = (0.0, 0.0) if j == self.spared else (self.lam1, self.lam2)
        if abs(self.z[j]) <= lam1:
            return 0.0
        sign = 1.0 if self.z[j] > 0 else -1.0
        return -(((self.beta + math.sqrt(self.n[j])) / self.alpha + lam2) ** -1) * (self.z[j] - sign * lam1)

    def learn(self, g: dict[int, float]) -> None:
        for j, gj in g.items():
            sigma = (math.sqrt(self.n[j] + gj**2) - math.sqrt(self.n[j])) / self.alpha
            self.z[j] += gj - sigma * self.weight(j)
            self.n[j] += gj**2


def invariant_way(pull: Callable[[float], float], p: float, h: float, q: float, steps: int = 200_000) -> float:
    """The way over q of many small steps on one example (Karampatziakis and Langford 2011, equation 1), by Euler."""
    start = p
    for _ in range(steps):
        p += h / steps * q * pull(p)
    return (p - start) / q
