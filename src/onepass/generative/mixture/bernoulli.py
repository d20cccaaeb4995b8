"""`BernoulliMixture`: rows of zeros and ones around K patterns."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...errors import InputError
from ...estimators.minibatch import widened
from ...scheme.parameters import Parameters, number
from ...scheme.rounds import Array
from .em import Mixture, MixtureOptions, MixtureState

__all__ = ["BernoulliMixture"]


@dataclasses.dataclass(repr=False, eq=False)
class _Options(MixtureOptions):
    p_floor: float = number(1e-3, above=0, below=0.5, kw_only=True)
    binarize: float | None = number(None, kw_only=True)


@dataclasses.dataclass(repr=False)
class _Parameters(_Options, Parameters):
    """The options, checked."""


@dataclasses.dataclass
class _Patterns(MixtureState):
    floor: float = 1e-3

    def _widen_learned(self, columns: int) -> None:
        if self.seeded:
            self.means, self.s1 = widened(self.means, columns, self.floor), widened(self.s1, columns)


@dataclasses.dataclass(repr=False, eq=False)
class BernoulliMixture(_Options, Mixture):
    """p(x) = Σ_k π_k Π_i μ_ki^x_i (1 − μ_ki)^(1 − x_i), learned by stepwise EM from a stream or batch EM from a table.

    Numbers between 0 and 1 count as fractions of a one. The initial patterns are random, because equal ones would stay
    equal.

    Parameters
    ----------
    binarize : a number above it is a one, any other a zero; None takes rows as they are, from 0 to 1.
    p_floor : probabilities stay this far from 0 and 1.
    n_components, schedule, kappa, eta, batch_size, burn_in, revive, mode, passes, tol, max_iter : as in
        `GaussianMixture`.
    init_size : how many rows are buffered before the first step; max(10 K, 100) by default.
    means_init, weights_init : initial parameters.
    random_state : the seed of the random numbers.
    """

    _Parameters: ClassVar[type[Parameters]] = _Parameters
    _State: ClassVar[type[MixtureState]] = _Patterns

    traits = dataclasses.replace(Mixture.traits, values="bits")

    @property
    def _bounded(self) -> bool:  # type: ignore[override]
        return self.binarize is None

    def _require_domain(self, values: Array) -> None:
        if self._bounded and values.size and (values.min() < 0 or values.max() > 1):
            bad = values[(values < 0) | (values > 1)][0]
            raise InputError(
                f"BernoulliMixture needs numbers from 0 to 1, got {bad:g}; give binarize= a threshold. "
                "Nothing of this call was learned"
            )

    def _blocks(self, state: Any, X: Any, weights: Array | None, learn: bool) -> Any:
        for block, w in super()._blocks(state, X, weights, learn):
            yield self._binarized(block), w

    def _vector(self, state: Any, x: Any, learn: bool, fresh: bool = False) -> Array:
        return self._binarized(super()._vector(state, x, learn, fresh))

    def _binarized(self, X: Array) -> Array:
        return X if self.binarize is None else (X > self.binarize).astype(np.float64)

    def _start(self, state: _Patterns, X: Array, w: Array, random: np.random.Generator) -> None:
        state.floor = float(self.p_floor)
        means = self._given_means(X.shape[1])
        if means is None:
            means = random.uniform(0.25, 0.75, size=(int(self.n_components), X.shape[1]))
        state.means = self._clipped(means)

    def _clipped(self, means: Array) -> Array:
        return np.clip(means, self.p_floor, 1 - self.p_floor)

    def _responsibilities(self, state: _Patterns, X: Array) -> tuple[Array, Array]:
        absent = np.log1p(-state.means)
        odds, constants = np.log(state.means) - absent, absent.sum(axis=1) + self._log_weights(state)
        return _native.responsibilities(np.ascontiguousarray(X), np.zeros(X.shape[1]), odds, None, constants)

    def _statistics(self, state: _Patterns, X: Array, R: Array) -> dict[str, Array]:
        return {"s1": _native.mixture_statistics(np.ascontiguousarray(X), np.zeros(X.shape[1]), R, "none")[0]}

    def _update_components(self, state: _Patterns, alive: NDArray[np.bool_]) -> None:
        means = self._clipped(self._averages(state, alive))
        state.means = np.where(alive[:, np.newaxis], means, state.means)

    def _restart(self, state: _Patterns, k: int, x: Array) -> None:
        state.means[k] = self._clipped(0.25 + 0.5 * x)

    def _draw(self, state: _Patterns, k: int, n: int, random: np.random.Generator) -> Array:
        return np.asarray(random.random((n, state.means.shape[1])) < state.means[k], dtype=np.float64)

    @property
    def means_(self) -> Array:
        """μ: the probabilities of a one, a row for each component."""
        return np.array(self._view(self._learned()).means)
