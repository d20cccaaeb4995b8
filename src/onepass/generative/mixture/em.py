"""EM for mixtures, by mini-batches (Cappé and Moulines 2009; Liang and Klein 2009) or over a whole table.

The E-step computes the responsibilities r_nk of each row. Their averages are the sufficient statistics s, from which
the M-step computes the parameters. Batch EM replaces the statistics; stepwise EM averages them, s ← (1 − η) s + η ŝ.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin

from ...errors import ParameterError
from ...estimators.minibatch import MiniBatchLearner, MiniBatchState
from ...estimators.stateful import read_seed, rows_of
from ...learner import LearnerTraits
from ...scheme.parameters import choice, number
from ...scheme.rounds import Array

__all__ = ["Mixture", "MixtureOptions", "MixtureState", "check_initial"]

STARVED = 1e-6  # the parameters of a component with a smaller s0 are not updated


@dataclasses.dataclass(repr=False, eq=False)
class MixtureOptions:
    """The options of every mixture, which are described at `GaussianMixture`."""

    n_components: int = number(1, at_least=1, integer=True)
    schedule: str = choice("power", "1/n", "power", "constant", kw_only=True)
    kappa: float = number(0.6, above=0.5, at_most=1, kw_only=True)
    eta: float = number(0.05, above=0, below=1, kw_only=True)
    batch_size: int = number(20, at_least=1, integer=True, kw_only=True)
    burn_in: int = number(20, at_least=0, integer=True, kw_only=True)
    init_size: int | None = number(None, at_least=1, integer=True, kw_only=True)
    revive: float = number(0.0, at_least=0, below=1, kw_only=True)
    means_init: Any = dataclasses.field(default=None, kw_only=True)
    weights_init: Any = dataclasses.field(default=None, kw_only=True)
    mode: str = choice("online", "online", "batch", kw_only=True)
    passes: int = number(1, at_least=1, integer=True, kw_only=True)
    tol: float = number(1e-3, at_least=0, kw_only=True)
    max_iter: int = number(100, at_least=1, integer=True, kw_only=True)
    random_state: Any = dataclasses.field(default=0, kw_only=True)


@dataclasses.dataclass
class MixtureState(MiniBatchState):
    """The parameters, their statistics s, and the log-likelihood of rows before they were learned."""

    weights: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    means: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    s0: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    s1: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    learned: float = 0.0  # the sum of importances of all steps
    likelihood: float = 0.0  # Σ w ln p(x), for each row before it was learned
    last_likelihood: float = 0.0  # the mean over the last mini-batch
    starved: int = 0
    revived: int = 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        K, d = len(self.weights), (self._reader.columns if self.seeded else 0)
        return {**super().shapes(), "weights": (K,), "means": (K, d), "s0": (K,), "s1": (K, d)}


class Mixture(MixtureOptions, DensityMixin, MiniBatchLearner):  # type: ignore[misc]
    """Base of the mixtures. A subclass defines what a component is."""

    traits = LearnerTraits("cluster", frozenset({"predict_proba_one", "anomaly_score_one"}), supervised=False)

    # -- what a subclass defines ---------------------------------------------------------------------------------------

    def _responsibilities(self, state: Any, X: Array) -> tuple[Array, Array]:
        """ln p(x) and the responsibilities of every row. The results of a row do not depend on the other rows."""
        raise NotImplementedError

    def _statistics(self, state: Any, X: Array, R: Array) -> dict[str, Array]:
        """The statistics ŝ by name, without s0: sums over the rows, weighted by R. The sums of R's columns are ŝ0."""
        raise NotImplementedError

    def _update_components(self, state: Any, alive: NDArray[np.bool_]) -> None:
        """The M-step: the parameters of the components that are alive, from the statistics."""
        raise NotImplementedError

    def _to_statistics(self, state: Any) -> None:
        """Set the statistics to those that the parameters follow from."""
        state.s0 = state.weights.copy()
        state.s1 = state.weights[:, np.newaxis] * state.means

    def _start(self, state: Any, X: Array, w: Array, random: np.random.Generator) -> None:
        """Set the initial parameters from the first rows. The weights are already set."""
        raise NotImplementedError

    def _restart(self, state: Any, k: int, x: Array) -> None:
        """Restart component k at the row x."""
        raise NotImplementedError

    def _draw(self, state: Any, k: int, n: int, random: np.random.Generator) -> Array:
        """n random rows of component k."""
        raise NotImplementedError

    def _free_parameters(self, d: int) -> int:
        """The number of free parameters: of the weights and the means."""
        K = int(self.n_components)
        return K - 1 + K * d

    # -- EM ------------------------------------------------------------------------------------------------------------

    def _new_state(self) -> Any:
        state = super()._new_state()
        if self.schedule == "constant" and self.eta >= 0.25 and self.batch_size < 20 * self.n_components:
            warnings.warn(
                f"eta={self.eta:g} with batch_size={self.batch_size} forgets components before their rows occur again; "
                f"use a batch_size of 20 n_components = {20 * self.n_components} or more, or a smaller eta",
                UserWarning,
                stacklevel=3,
            )
        return state

    def _prefix(self) -> int:
        return int(self.init_size or max(10 * self.n_components, 100))

    def _require_start(self, columns: int) -> None:
        K = int(self.n_components)
        weights = check_initial(self.weights_init, "weights_init", (K,))
        if weights is not None and not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
            raise ParameterError(f"weights_init={self.weights_init!r}: expected numbers >= 0, some of them above 0")
        self._given_means(columns)

    def _seed(self, state: Any, X: Array, w: Array) -> None:
        K = int(self.n_components)
        weights = check_initial(self.weights_init, "weights_init", (K,))
        state.weights = np.full(K, 1.0 / K) if weights is None else weights / weights.sum()
        self._start(state, X, w if w.any() else np.ones(len(w)), np.random.default_rng([state.seed, 0]))
        self._to_statistics(state)

    def _given_means(self, columns: int) -> Array | None:
        return check_initial(self.means_init, "means_init", (int(self.n_components), columns))

    @staticmethod
    def _averages(state: Any, alive: NDArray[np.bool_]) -> Array:
        """s1/s0, the mean of each component's rows; without meaning for components that are not alive."""
        return np.asarray(state.s1 / np.where(alive, state.s0, 1.0)[:, np.newaxis])

    @staticmethod
    def _log_weights(state: Any) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(state.weights))

    def _rate(self, step: int) -> float:
        """η of a step, counted from 1. η = 1 would forget all earlier rows, so it is always smaller."""
        if self.schedule == "constant":
            return float(self.eta)
        return 1.0 / (step + 1) if self.schedule == "1/n" else float((step + 2) ** -self.kappa)

    def _step(self, state: Any, X: Array, w: Array) -> None:
        likelihood, R = self._responsibilities(state, X)
        mass = float(w.sum())
        state.last_likelihood = float(w @ likelihood) / mass
        state.likelihood += float(w @ likelihood)
        state.learned += mass
        self._update_statistics(state, X, w, R, self._rate(state.steps))
        if state.learned >= self.burn_in:
            self._maximise(state)
            if self.revive:
                self._revive(state, X, likelihood)

    def _update_statistics(self, state: Any, X: Array, w: Array, R: Array, eta: float) -> None:
        """s ← (1 − η) s + η ŝ."""
        R = R * (w / w.sum())[:, np.newaxis]
        fresh = {"s0": R.sum(axis=0), **self._statistics(state, X, R)}
        for name, value in fresh.items():
            setattr(state, name, value if eta == 1.0 else (1.0 - eta) * getattr(state, name) + eta * value)

    def _maximise(self, state: Any) -> None:
        alive = state.s0 >= STARVED
        state.starved += int((~alive).sum())
        weights = np.where(alive, state.s0, STARVED)
        state.weights = weights / weights.sum()
        self._update_components(state, alive)

    def _revive(self, state: Any, X: Array, likelihood: Array) -> None:
        """Restart a component whose weight fell below `revive` at the row with the lowest likelihood."""
        dead = np.flatnonzero(state.weights < self.revive)
        K = len(state.weights)
        if len(dead) == 0 or len(dead) == K:
            return
        for k, row in zip(dead.tolist(), np.argsort(likelihood, kind="stable").tolist(), strict=False):
            self._restart(state, k, X[row])
            state.weights[k] = 0.5 / K
            state.revived += 1
        state.weights = state.weights / state.weights.sum()
        self._to_statistics(state)

    def _em_step(self, state: Any, X: Array, w: Array) -> float:
        """One step of batch EM. Return the mean log-likelihood before it."""
        likelihood, R = self._responsibilities(state, X)
        self._update_statistics(state, X, w, R, 1.0)
        self._maximise(state)
        return float(w @ likelihood / w.sum())

    # -- learning ------------------------------------------------------------------------------------------------------

    def _parts(self, columns: int) -> int:
        return 2 * int(self.n_components) * columns

    def _fit_passes(self, X: Any, sample_weight: Any) -> None:
        if self.mode != "batch":
            super()._fit_passes(X, sample_weight)
            return
        table = self._validated(X, reset=True)
        weights = self._weights_of(sample_weight, table, whole=True)
        state = self._new_state()
        blocks = list(self._blocks(state, table, weights, True))
        rows, w = (np.concatenate(part) for part in zip(*blocks, strict=True))
        state.widen(rows.shape[1])
        self._seed(state, rows, w)
        state.seeded = True
        self.log_likelihoods_, self.converged_ = [], False
        for _ in range(int(self.max_iter)):
            self.log_likelihoods_.append(self._em_step(state, rows, w))
            if len(self.log_likelihoods_) > 1 and self.log_likelihoods_[-1] - self.log_likelihoods_[-2] < self.tol:
                self.converged_ = True
                break
        # A stream may continue from here, as after mini-batches of these rows.
        state.t, state.learned = len(rows), float(w.sum())
        state.steps = -(-len(rows) // self._batch_size())
        self._state = state

    # -- results ------------------------------------------------------------------------------------------------------

    def _explain(self, X: Any) -> tuple[Array, Array]:
        state = self._fitted()
        if hasattr(self, "n_features_in_"):
            X = self._validated(X, reset=False)
        view = self._view(state)
        parts = [
            self._responsibilities(view, fitting(block, view.means.shape[1]))
            for block, _ in self._blocks(state, X, None, False)
        ]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The component with the largest responsibility for each row. Its number has no meaning outside this model."""
        return np.asarray(np.argmax(self._explain(X)[1], axis=1))

    def predict_proba(self, X: Any) -> Array:
        """The responsibility of each component for each row."""
        return self._explain(X)[1]

    def score_samples(self, X: Any) -> Array:
        """ln p(x) of each row."""
        return self._explain(X)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ln p(x)."""
        return float(self.score_samples(X).mean())

    def anomaly_score(self, X: Any) -> Array:
        """−ln p(x): the larger, the more anomalous the row."""
        return -self.score_samples(X)

    def _explain_one(self, x: Any) -> tuple[float, Array] | None:
        state = self._state
        if state is None or not state.t:
            return None
        view = self._view(state)
        row = self._vector(state, x, False)[np.newaxis]
        likelihood, R = self._responsibilities(view, fitting(row, view.means.shape[1]))
        return float(likelihood[0]), R[0]

    def predict_one(self, x: Any) -> int | None:
        """The component with the largest responsibility. None before the first example."""
        explained = self._explain_one(x)
        return None if explained is None else int(np.argmax(explained[1]))

    def predict_many(self, X: Any) -> Any:
        """The component with the largest responsibility for each row. None before the first example."""
        return self.predict(X) if self.__sklearn_is_fitted__() else [None] * rows_of(X)

    def predict_proba_one(self, x: Any) -> dict[int, float]:
        """The responsibility of each component. Empty before the first example."""
        explained = self._explain_one(x)
        return {} if explained is None else dict(enumerate(explained[1].tolist()))

    def anomaly_score_one(self, x: Any) -> float:
        """−ln p(x). 0 before the first example."""
        explained = self._explain_one(x)
        return 0.0 if explained is None else -explained[0]

    def sample(self, n_samples: int = 1, random_state: Any = 0) -> tuple[Array, NDArray[np.int64]]:
        """Random rows of the mixture, and the component of each."""
        view = self._view(self._fitted())
        random = np.random.default_rng(read_seed(random_state))
        labels = np.sort(random.choice(len(view.weights), size=int(n_samples), p=view.weights))
        counts = np.bincount(labels, minlength=len(view.weights))
        return np.concatenate([self._draw(view, k, int(n), random) for k, n in enumerate(counts)]), labels

    def bic(self, X: Any) -> float:
        """−2 ln L + p ln n on these rows. The smaller the value, the better the number of components."""
        likelihood = self.score_samples(X)
        p = self._free_parameters(self._fitted()._reader.columns)
        return float(-2 * likelihood.sum() + p * np.log(len(likelihood)))

    def aic(self, X: Any) -> float:
        """−2 ln L + 2 p on these rows."""
        p = self._free_parameters(self._fitted()._reader.columns)
        return float(-2 * self.score_samples(X).sum() + 2 * p)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int64]:
        """Learn a table from scratch. Return the component of each row."""
        fitted: Self = self.fit(X, y, sample_weight)
        return fitted.predict(X)

    @property
    def weights_(self) -> Array:
        """π: the fraction of the rows in each component."""
        return np.array(self._view(self._learned()).weights)

    @property
    def log_likelihood_(self) -> float:
        """The mean of ln p(x) over the stream; each row is evaluated before it is learned."""
        view = self._view(self._learned())
        return float(view.likelihood / max(view.learned, 1e-300))

    @property
    def n_starved_(self) -> int:
        """How often a component had too little weight to be updated."""
        return int(self._view(self._learned()).starved)

    @property
    def n_revived_(self) -> int:
        """How often a component was restarted."""
        return int(self._view(self._learned()).revived)


def fitting(X: Array, columns: int) -> Array:
    """Rows cut, or padded with zeros, to the columns of the model."""
    if X.shape[1] >= columns:
        return X[:, :columns]
    return np.pad(X, ((0, 0), (0, columns - X.shape[1])))


def check_initial(value: Any, name: str, shape: tuple[int, ...]) -> Array | None:
    """An array of initial parameters, checked."""
    if value is None:
        return None
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name}={value!r:.40}: expected finite numbers of shape {shape} ({error})") from None
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise ParameterError(f"{name} has shape {array.shape}: expected finite numbers of shape {shape}")
    return array
