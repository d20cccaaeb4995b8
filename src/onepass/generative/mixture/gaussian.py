"""`GaussianMixture`: a stream of points around K centres."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...errors import ParameterError
from ...estimators.minibatch import widened
from ...prototypes.seeding import plus_plus
from ...scheme.parameters import Parameters, choice, number
from ...scheme.rounds import Array
from .covariances import COVARIANCES, Covariance
from .em import Mixture, MixtureOptions, MixtureState, check_initial

__all__ = ["GaussianMixture"]


@dataclasses.dataclass(repr=False, eq=False)
class _Options(MixtureOptions):
    covariance: str = choice("diag", "full", "tied", "diag", "spherical", kw_only=True)
    cov_floor: float | None = number(None, above=0, kw_only=True)
    covariances_init: Any = dataclasses.field(default=None, kw_only=True)


@dataclasses.dataclass(repr=False)
class _Parameters(_Options, Parameters):
    """The options, checked."""


@dataclasses.dataclass
class _Gaussians(MixtureState):
    """Means and statistics of x − shift, where shift is the mean of the first rows. Far from 0, s2/s0 − μμᵀ would lose
    digits."""

    covariance: str = "diag"
    floor: float = 1e-6
    shift: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    cov: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    s2: Array = dataclasses.field(default_factory=lambda: np.empty(0))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        K, d = self.means.shape if self.means.ndim == 2 else (0, 0)
        wide = COVARIANCES[self.covariance].shape(K, d) if self.seeded else (0,)
        return {**super().shapes(), "shift": (d,) if self.seeded else (0,), "cov": wide, "s2": wide}

    def _widen_learned(self, columns: int) -> None:
        if not self.seeded:
            return
        self.means, self.s1 = widened(self.means, columns), widened(self.s1, columns)
        self.shift = widened(self.shift, columns)
        kind = COVARIANCES[self.covariance]
        self.cov = kind.widen(self.cov, columns, self.floor)
        self.s2 = kind.s2(self.s0, self.means, self.cov)


@dataclasses.dataclass(repr=False, eq=False)
class GaussianMixture(_Options, Mixture):
    """p(x) = Σ_k π_k N(x; μ_k, Σ_k), learned by stepwise EM from a stream or by batch EM from a table.

    Parameters
    ----------
    n_components : K.
    covariance : "full", "tied" (one for all components), "diag" or "spherical".
    schedule : η_n of step n: "1/n" is 1/(n + 1); "power" is (n + 2)^−kappa; "constant" is eta, which follows drift.
    kappa, eta : parameters of the schedule.
    batch_size : rows per step. Rows are buffered until there are enough, so the result does not depend on chunks.
    burn_in : the number of rows before the first update of the parameters. The statistics are collected from the start.
    init_size : the number of rows to seed from (by k-means++), which are then learned like all others; max(10 K, 100)
        by default.
    revive : a component with a smaller weight restarts at the row with the lowest likelihood; 0 for never.
    cov_floor : the smallest variance in any direction; by default 1e-3 of the mean variance of the first rows, at least
        1e-6.
    means_init, weights_init, covariances_init : initial parameters, instead of seeding.
    mode : how `fit` learns: by stepwise EM in `passes` passes ("online"), or by batch EM ("batch").
    passes : the passes of `fit` over its data online.
    tol, max_iter : batch EM ends when the mean log-likelihood grows by less than tol, or after max_iter steps.
    random_state : the seed of the random numbers.
    """

    _Parameters: ClassVar[type[Parameters]] = _Parameters
    _State: ClassVar[type[MixtureState]] = _Gaussians

    @property
    def _kind(self) -> Covariance:
        return COVARIANCES[self.covariance]

    def _parts(self, columns: int) -> int:
        return super()._parts(columns) + 2 * self._kind.size(int(self.n_components), columns)

    def _new_state(self) -> Any:
        state = super()._new_state()
        state.covariance = self.covariance
        return state

    def _require_start(self, columns: int) -> None:
        super()._require_start(columns)
        K = int(self.n_components)
        cov = check_initial(self.covariances_init, "covariances_init", self._kind.shape(K, columns))
        if cov is not None and not np.all(np.linalg.eigvalsh(self._kind.as_full(cov, K, columns)) > 0):
            raise ParameterError(
                f"covariances_init={self.covariances_init!r}: expected variances above 0 on every axis"
            )

    def _start(self, state: _Gaussians, X: Array, w: Array, random: np.random.Generator) -> None:
        K = int(self.n_components)
        p = w / w.sum()
        state.shift = p @ X
        variance = p @ (X - state.shift) ** 2
        state.floor = float(self.cov_floor or max(1e-3 * variance.mean() if len(variance) else 0.0, 1e-6))
        means = self._given_means(X.shape[1])
        state.means = plus_plus(X, K, w, random) - state.shift if means is None else means - state.shift
        cov = check_initial(self.covariances_init, "covariances_init", self._kind.shape(K, X.shape[1]))
        state.cov = self._kind.initial(K, np.maximum(variance, state.floor)) if cov is None else cov

    def _to_statistics(self, state: _Gaussians) -> None:
        super()._to_statistics(state)
        state.s2 = self._kind.s2(state.weights, state.means, state.cov)

    def _responsibilities(self, state: _Gaussians, X: Array) -> tuple[Array, Array]:
        K, d = state.means.shape
        scales, determinants = self._kind.scales(state.cov, K, d)
        constants = self._log_weights(state) - 0.5 * (determinants + d * np.log(2 * np.pi))
        return _native.responsibilities(np.ascontiguousarray(X), state.shift, state.means, scales, constants)

    def _statistics(self, state: _Gaussians, X: Array, R: Array) -> dict[str, Array]:
        s1, s2 = self._kind.statistics(np.ascontiguousarray(X), state.shift, R)
        return {"s1": s1, "s2": s2}

    def _update_components(self, state: _Gaussians, alive: NDArray[np.bool_]) -> None:
        state.means = np.where(alive[:, np.newaxis], self._averages(state, alive), state.means)
        state.cov = self._kind.updated(state.cov, state.s0, state.means, state.s2, alive, state.floor)

    def _restart(self, state: _Gaussians, k: int, x: Array) -> None:
        state.means[k] = x - state.shift
        self._kind.restart(state.cov, k, state.weights)

    def _draw(self, state: _Gaussians, k: int, n: int, random: np.random.Generator) -> Array:
        noise = random.normal(size=(n, state.means.shape[1]))
        return np.asarray(state.means[k] + state.shift + self._kind.draw(state.cov, k, noise))

    def _free_parameters(self, d: int) -> int:
        return super()._free_parameters(d) + self._kind.free(int(self.n_components), d)

    @property
    def means_(self) -> Array:
        """μ, a row for each component."""
        state = self._view(self._learned())
        return np.asarray(state.means + state.shift)

    @property
    def covariances_(self) -> Array:
        """Σ: by `covariance`, K matrices, one matrix, K rows of variances, or K variances."""
        return np.array(self._view(self._learned()).cov)
