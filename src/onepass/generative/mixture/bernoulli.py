"""`BernoulliMixture`: rows of zeros and ones around K patterns."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...errors import InputError
from ...estimators.minibatch import widened
from ...scheme.parameters import number
from ...scheme.rounds import Array
from .em import Mixture, MixtureParameters, MixtureState, given

__all__ = ["BernoulliMixture"]


@dataclasses.dataclass(repr=False)
class _Parameters(MixtureParameters):
    p_floor: float = number(1e-3, above=0, below=0.5)
    binarize: float | None = number(None)


@dataclasses.dataclass
class _Patterns(MixtureState):
    floor: float = 1e-3

    def _widen_learned(self, columns: int) -> None:
        if self.seeded:
            self.means, self.s1 = widened(self.means, columns, self.floor), widened(self.s1, columns)


class BernoulliMixture(Mixture):
    """p(x) = Σ_k π_k Π_i μ_ki^x_i (1 − μ_ki)^(1 − x_i), learned by stepwise EM from a stream or batch EM from a table.

    Numbers between 0 and 1 count as fractions of a one. Patterns start at random: equal ones would stay equal.

    Parameters
    ----------
    n_components : K.
    schedule : η_n of step n: "1/n" is 1/(n + 1); "power" is (n + 2)^−kappa; "constant" is eta, which follows change.
    kappa, eta : of the schedule.
    batch_size : rows per step; rows are buffered until there are enough, so chunks do not matter.
    burn_in : rows before the first change of the parameters; the statistics are collected from the start.
    init_size : rows that wait before the first step; max(10 K, 100) by default.
    revive : a component whose weight falls below this restarts at the row with the lowest likelihood; 0 never.
    binarize : a number above it is a one, any other a zero; None takes rows as they are, from 0 to 1.
    p_floor : probabilities stay this far from 0 and 1.
    means_init, weights_init : parameters to start from.
    mode : `fit` by stepwise EM, `passes` times through the table ("online"), or by batch EM ("batch").
    passes : passes of `fit` over its data online.
    tol, max_iter : batch EM ends when the mean log-likelihood grows by less than tol, or after so many steps.
    random_state : of the patterns to start from.
    """

    _Parameters = _Parameters
    _State = _Patterns

    traits = dataclasses.replace(Mixture.traits, values="bits")

    def __init__(
        self,
        n_components: int = 1,
        *,
        schedule: str = "power",
        kappa: float = 0.6,
        eta: float = 0.05,
        batch_size: int = 20,
        burn_in: int = 20,
        init_size: int | None = None,
        revive: float = 0.0,
        binarize: float | None = None,
        p_floor: float = 1e-3,
        means_init: Any = None,
        weights_init: Any = None,
        mode: str = "online",
        passes: int = 1,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.schedule = schedule
        self.kappa = kappa
        self.eta = eta
        self.batch_size = batch_size
        self.burn_in = burn_in
        self.init_size = init_size
        self.revive = revive
        self.binarize = binarize
        self.p_floor = p_floor
        self.means_init = means_init
        self.weights_init = weights_init
        self.mode = mode
        self.passes = passes
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

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
            yield self._ones(block), w

    def _vector(self, state: Any, x: Any, learn: bool, fresh: bool = False) -> Array:
        return self._ones(super()._vector(state, x, learn, fresh))

    def _ones(self, X: Array) -> Array:
        return X if self.binarize is None else (X > self.binarize).astype(np.float64)

    def _start(self, state: _Patterns, X: Array, w: Array, random: np.random.Generator) -> None:
        K, d = int(self.n_components), X.shape[1]
        state.floor = float(self.p_floor)
        means = given(self.means_init, "means_init", (K, d))
        state.means = random.uniform(0.25, 0.75, size=(K, d)) if means is None else means
        state.means = np.clip(state.means, self.p_floor, 1 - self.p_floor)

    def _responsibilities(self, state: _Patterns, X: Array) -> tuple[Array, Array]:
        absent = np.log1p(-state.means)
        odds, constants = np.log(state.means) - absent, absent.sum(axis=1) + self._log_weights(state)
        return _native.responsibilities(np.ascontiguousarray(X), np.zeros(X.shape[1]), odds, None, constants)

    def _statistics(self, state: _Patterns, X: Array, R: Array) -> dict[str, Array]:
        return {"s1": _native.mixture_statistics(np.ascontiguousarray(X), np.zeros(X.shape[1]), R, "none")[0]}

    def _refresh(self, state: _Patterns, alive: NDArray[np.bool_]) -> None:
        mass = np.where(alive, state.s0, 1.0)[:, np.newaxis]
        means = np.clip(state.s1 / mass, self.p_floor, 1 - self.p_floor)
        state.means = np.where(alive[:, np.newaxis], means, state.means)

    def _put(self, state: _Patterns, k: int, x: Array) -> None:
        state.means[k] = np.clip(0.25 + 0.5 * x, self.p_floor, 1 - self.p_floor)

    def _draw(self, state: _Patterns, k: int, n: int, random: np.random.Generator) -> Array:
        return np.asarray(random.random((n, state.means.shape[1])) < state.means[k], dtype=np.float64)

    def _free_parameters(self, d: int) -> int:
        K = int(self.n_components)
        return K - 1 + K * d

    @property
    def means_(self) -> Array:
        """μ: the probability of a one, a row for each component."""
        return np.array(self._view(self._learned()).means)
