"""Principal components of a stream: `IncrementalPCA`, `OjaPCA`, `CCIPCA`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .. import _native
from ..estimators.minibatch import MiniBatchState, widened
from ..scheme.parameters import Parameters, number
from ..scheme.rounds import Array
from .learned_transform import LearnedTransform

__all__ = ["CCIPCA", "IncrementalPCA", "OjaPCA"]

# The Gram matrix squares singular values: one below this fraction of the largest would lose half its digits.
CONDITION = 1e-4


@dataclasses.dataclass(repr=False)
class _Candid(Parameters):
    n_components: int = number(2, at_least=1, integer=True)
    passes: int = number(1, at_least=1, integer=True)
    amnesic: float = number(2.0, at_least=0)


@dataclasses.dataclass(repr=False)
class _Common(Parameters):
    n_components: int = number(2, at_least=1, integer=True)
    batch_size: int = number(100, at_least=1, integer=True)
    passes: int = number(1, at_least=1, integer=True)


@dataclasses.dataclass(repr=False)
class _Incremental(_Common):
    forgetting: float = number(1.0, above=0, at_most=1)


@dataclasses.dataclass(repr=False)
class _Oja(_Common):
    eta: float = number(1.0, above=0)
    kappa: float = number(0.75, above=0.5, at_most=1)


@dataclasses.dataclass
class _Components(MiniBatchState):
    """`components` are the rows of V, zero if there is no direction yet; `mass` is n, the sum of importances."""

    mass: float = 0.0
    mean: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    square: Array = dataclasses.field(default_factory=lambda: np.empty(0))  # Σ w (x − mean)² of every column
    components: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    values: Array = dataclasses.field(default_factory=lambda: np.empty(0))  # the variance that each component explains

    def shapes(self) -> dict[str, tuple[int, ...]]:
        d, k = (self._reader.columns if self.seeded else 0), len(self.values)
        return {**super().shapes(), "mean": (d,), "square": (d,), "components": (k, d), "values": (k,)}

    def _widen_learned(self, columns: int) -> None:
        if self.seeded:
            self.mean, self.square = widened(self.mean, columns), widened(self.square, columns)
            self.components = widened(self.components, columns)


class _PCA(LearnedTransform):
    """Base: a running mean, k directions, and scores (x − mean)·v."""

    _State = _Components

    n_components: int
    batch_size: int

    def _prefix(self) -> int:
        return self._batch_size()

    def _outputs(self) -> int:
        return int(self.n_components)

    def _parts(self, columns: int) -> int:
        return (int(self.n_components) + 2) * columns

    def _seed(self, state: _Components, X: Array, w: Array) -> None:
        k, d = int(self.n_components), X.shape[1]
        state.mean, state.square = np.zeros(d), np.zeros(d)
        state.components, state.values = np.zeros((k, d)), np.zeros(k)

    def _moments(self, state: _Components, X: Array, w: Array) -> tuple[Array, float, Array]:
        """Add a mini-batch to mean and squares (Chan, Golub, LeVeque); return its mean, its mass and the old mean."""
        mass = float(w.sum())
        mean = (w @ X) / mass
        before, total = state.mean, state.mass + mass
        state.square = state.square + w @ (X - mean) ** 2 + (mean - before) ** 2 * (state.mass * mass / total)
        state.mean = before + (mean - before) * (mass / total)
        state.mass = total
        return mean, mass, before

    def _unit(self, state: _Components) -> Array:
        """The components, scaled to length 1; zero rows stay zero."""
        return state.components

    def _variances(self, state: _Components) -> Array:
        raise NotImplementedError

    def _transformed(self, state: _Components, X: Array) -> Array:
        return _native.inner(X - state.mean, np.ascontiguousarray(self._unit(state)))

    def inverse_transform(self, X: Any) -> Array:
        """Rows of scores transformed back to features."""
        state = self._view(self._fitted())
        return np.asarray(np.asarray(X, dtype=np.float64) @ self._unit(state) + state.mean)

    @property
    def components_(self) -> Array:
        """The directions, a row each of length 1; zero rows where the stream has shown fewer."""
        return np.array(self._unit(self._view(self._learned())))

    @property
    def mean_(self) -> Array:
        """The mean of every feature."""
        return np.array(self._view(self._learned()).mean)

    @property
    def explained_variance_(self) -> Array:
        """The variance along each direction."""
        return np.array(self._variances(self._view(self._learned())))

    @property
    def explained_variance_ratio_(self) -> Array:
        """The part of all variance along each direction."""
        state = self._view(self._learned())
        total = state.square.sum() / max(state.mass - 1.0, 1.0)
        return np.array(self._variances(state) / total if total > 0 else np.zeros(len(state.values)))


class IncrementalPCA(_PCA):
    """The singular vectors of all rows so far, from those of the rows before (Ross, Lim, Lin and Yang 2008).

    A mini-batch of m rows with mean b̄ makes A = [S V; X − b̄; √(nm/(n + m)) (x̄ − b̄)], whose first k singular vectors are
    the new V. With k = d that is exact; with fewer, what falls below the k-th direction is forgotten.

    Parameters
    ----------
    n_components : k.
    batch_size : m; rows are buffered until there are enough, so chunks do not matter.
    forgetting : factor of n (its root of S) before each step; below 1, old rows fade.
    passes : passes of `fit` over its data.
    """

    _Parameters: ClassVar[Any] = _Incremental

    def __init__(
        self, n_components: int = 2, *, batch_size: int = 100, forgetting: float = 1.0, passes: int = 1
    ) -> None:
        self.n_components = n_components
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.passes = passes

    def _take(self, state: _Components, X: Array, w: Array) -> None:
        with one_thread():
            super()._take(state, X, w)

    def _step(self, state: _Components, X: Array, w: Array) -> None:
        if self.forgetting != 1.0:
            state.mass *= self.forgetting
            state.square = state.square * self.forgetting
            state.values = state.values * np.sqrt(self.forgetting)
        n = state.mass
        mean, mass, before = self._moments(state, X, w)
        root = np.ones(len(w)) if np.all(w == 1.0) else np.sqrt(w)
        parts = [(X - mean) * root[:, np.newaxis]]
        if n > 0:
            used = state.values > 0
            shift = np.sqrt(n * mass / (n + mass)) * (before - mean)
            parts = [state.values[used, np.newaxis] * state.components[used], *parts, shift[np.newaxis]]
        A = np.concatenate(parts)
        # The mean, and so the centred rows, have rounding errors of some ulps: anything shorter is not a direction.
        size = np.linalg.norm(A) + np.sqrt(state.mass) * np.linalg.norm(state.mean)
        S, V = leading(A, int(self.n_components), float(np.finfo(np.float64).eps * max(A.shape) * size))
        state.values = np.zeros_like(state.values)
        state.components = np.zeros_like(state.components)
        state.values[: len(S)], state.components[: len(S)] = S, V

    def _variances(self, state: _Components) -> Array:
        return state.values**2 / max(state.mass - 1.0, 1.0)

    @property
    def singular_values_(self) -> Array:
        """S: the length of the centred rows along each direction."""
        return np.array(self._view(self._learned()).values)


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


_thread_limit = threading.RLock()  # the number of BLAS threads is global: one caller at a time may change it
if hasattr(os, "register_at_fork"):  # the thread that holds the lock may not exist in the child process
    os.register_at_fork(after_in_child=_thread_limit._at_fork_reinit)  # type: ignore[attr-defined]


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread: small matrices are faster then, and the bits do not depend on the number of threads."""
    with _thread_limit, _blas().limit(limits=1, user_api="blas"):
        yield


def _lengths(rows: Array) -> Array:
    """The norms of rows, also where their squares overflow."""
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
    if not np.all(np.isfinite(lengths)):
        largest = np.maximum(np.abs(rows).max(axis=1), 1e-300)
        with np.errstate(over="ignore"):
            lengths = largest * np.linalg.norm(rows / largest[:, np.newaxis], axis=1)
    return np.asarray(lengths)


def leading(A: Array, k: int, noise: float) -> tuple[Array, Array]:
    """The largest k singular values above `noise` and their right singular vectors, each one's largest entry positive.

    They are computed from the smaller Gram matrix, which is much faster, if the k-th value is accurate there; otherwise
    by SVD.
    """
    rows, columns = A.shape
    k = min(k, rows, columns)
    if k == 0:
        return np.empty(0), np.empty((0, columns))
    wide = columns > rows
    squares, Q = np.linalg.eigh(A @ A.T if wide else A.T @ A)
    squares, Q = squares[::-1][:k], Q[:, ::-1][:, :k]
    if squares[-1] > CONDITION**2 * squares[0] > 0:
        S = np.sqrt(squares)
        V = (A.T @ Q / S).T if wide else np.ascontiguousarray(Q.T)
    else:
        _, S, V = np.linalg.svd(A, full_matrices=False)
        S, V = S[:k], V[:k]
    S, V = S[S > noise], V[S > noise]
    sign = np.sign(V[np.arange(len(S)), np.argmax(np.abs(V), axis=1)])
    return S, V * np.where(sign == 0, 1.0, sign)[:, np.newaxis]


class OjaPCA(_PCA):
    """A step along the mini-batch's covariance, then orthonormal directions again (Oja 1982; Oja and Karhunen 1985).

    V ← orth(V + η_t C V), C the covariance of the mini-batch around the running mean, η_t = eta k/(trace t^kappa): the
    trace of all variances makes eta independent of units. O(dk) of memory.

    Parameters
    ----------
    n_components : k.
    batch_size : rows per step; rows are buffered until there are enough, so chunks do not matter.
    eta, kappa : of the rate η_t at step t.
    passes : passes of `fit` over its data.
    random_state : of the directions to start from.
    """

    _Parameters: ClassVar[Any] = _Oja

    def __init__(
        self,
        n_components: int = 2,
        *,
        batch_size: int = 100,
        eta: float = 1.0,
        kappa: float = 0.75,
        passes: int = 1,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.batch_size = batch_size
        self.eta = eta
        self.kappa = kappa
        self.passes = passes
        self.random_state = random_state

    def _step(self, state: _Components, X: Array, w: Array) -> None:
        d, k = X.shape[1], min(int(self.n_components), X.shape[1])
        _, mass, _ = self._moments(state, X, w)
        trace = state.square.sum() / state.mass
        V = state.components[:k].T
        if not V.all(axis=0).any() and not V.any():
            V = np.linalg.qr(np.random.default_rng([state.seed, 0]).normal(size=(d, k)))[0]
        centred = X - state.mean
        rate = self.eta * k / (max(trace, 1e-300) * state.steps**self.kappa)
        along = centred @ V
        with np.errstate(over="ignore", invalid="ignore"):
            step = (rate / mass) * (centred.T @ (w[:, np.newaxis] * along))
        if np.all(np.isfinite(step)):
            V = V + step
        else:  # V is negligible compared with such a step: only the step's direction counts
            step = centred.T @ ((w / mass)[:, np.newaxis] * along)
            V = step / np.abs(step).max() if step.any() else V
        Q, R = np.linalg.qr(V)
        Q = Q * np.where(np.diag(R) < 0, -1.0, 1.0)  # keep the sign of each direction
        variance = (w @ along**2) / mass
        fade = 1.0 / state.steps**self.kappa
        state.values[:k] = (1.0 - fade) * state.values[:k] + fade * variance
        state.components = np.zeros_like(state.components)
        state.components[:k] = Q.T

    def _variances(self, state: _Components) -> Array:
        return state.values


class CCIPCA(_PCA):
    """Candid covariance-free incremental PCA (Weng, Zhang and Hwang 2003): one pass, O(dk) an example, no rate to tune.

    v_1 ← (n − 1 − l)/n v_1 + (1 + l)/n u (u·v_1)/‖v_1‖ with u = x − mean; what v_1 explains is subtracted from u, and
    so on. ‖v_i‖ is the variance along its direction. l, the amnesic parameter, gives later rows more weight.

    Parameters
    ----------
    n_components : k.
    amnesic : l; 0 weighs all rows alike, the paper uses 2 to 4.
    passes : passes of `fit` over its data.
    """

    _Parameters: ClassVar[Any] = _Candid

    def __init__(self, n_components: int = 2, *, amnesic: float = 2.0, passes: int = 1) -> None:
        self.n_components = n_components
        self.amnesic = amnesic
        self.passes = passes

    def _batch_size(self) -> int:
        return 1

    def _take(self, state: _Components, X: Array, w: Array) -> None:
        arrays = (state.mean, state.square, state.components)
        state.mass = _native.ccipca_learn(X, w, *arrays, float(self.amnesic), state.mass)
        state.steps += len(X)

    def _unit(self, state: _Components) -> Array:
        length = _lengths(state.components)[:, np.newaxis]
        return np.asarray(state.components / np.where(length > 0, length, 1.0))

    def _variances(self, state: _Components) -> Array:
        return _lengths(state.components)
