"""`DictionaryLearning`: atoms such that rows are sums of few of them (Mairal, Bach, Ponce and Sapiro 2010)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .. import _native
from ..errors import ParameterError
from ..estimators.minibatch import MiniBatchState, widened
from ..scheme.parameters import Parameters, number
from ..scheme.rounds import Array
from .learned_transform import LearnedTransform

__all__ = ["DictionaryLearning"]


@dataclasses.dataclass(repr=False)
class _Parameters(Parameters):
    n_components: int = number(16, at_least=1, integer=True)
    alpha: float = number(1.0, above=0)
    batch_size: int = number(20, at_least=1, integer=True)
    tol: float = number(1e-6, above=0)
    max_sweeps: int = number(1000, at_least=1, integer=True)
    passes: int = number(1, at_least=1, integer=True)


@dataclasses.dataclass
class _Atoms(MiniBatchState):
    atoms: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))  # D, a row each
    codes: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))  # A = Σ u uᵀ, weighted
    products: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))  # B = Σ u xᵀ, weighted

    def shapes(self) -> dict[str, tuple[int, ...]]:
        K, d = len(self.codes), (self._reader.columns if self.seeded else 0)
        return {**super().shapes(), "atoms": (K, d), "codes": (K, K), "products": (K, d)}

    def _widen_learned(self, columns: int) -> None:
        if self.seeded:
            self.atoms, self.products = widened(self.atoms, columns), widened(self.products, columns)


class DictionaryLearning(LearnedTransform):
    """min ½‖x − Dᵀu‖² + α‖u‖₁ over sparse codes u and atoms D, ‖d_j‖ ≤ 1, in mini-batches.

    Codes by coordinate descent; A ← βA + UᵀU/b, B ← βB + UᵀX/b, where β makes codes of old dictionaries fade; then each
    atom in turn d_j ← d_j + (B_j − A_j D)/A_jj, cut to length 1. An atom that no row uses restarts at a row.

    Parameters
    ----------
    n_components : atoms, K.
    alpha : α, how sparse codes are.
    batch_size : b; rows are buffered until there are enough, so chunks do not matter.
    tol : coordinate descent ends when no coordinate moves by more than this part of the largest.
    max_sweeps : or after so many sweeps.
    dict_init : atoms to start from, an array; by default rows of the first mini-batch.
    passes : passes of `fit` over its data.
    random_state : of the initial and restarted atoms.
    """

    _Parameters = _Parameters
    _State = _Atoms

    def __init__(
        self,
        n_components: int = 16,
        *,
        alpha: float = 1.0,
        batch_size: int = 20,
        tol: float = 1e-6,
        max_sweeps: int = 1000,
        dict_init: Any = None,
        passes: int = 1,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.batch_size = batch_size
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.dict_init = dict_init
        self.passes = passes
        self.random_state = random_state

    def _new_state(self) -> Any:
        if self.dict_init is not None:
            given = np.asarray(self.dict_init, dtype=np.float64)
            if given.ndim != 2 or len(given) != self.n_components or not np.all(np.isfinite(given)):
                raise ParameterError(
                    f"dict_init has shape {given.shape}: expected {self.n_components} rows of finite numbers"
                )
        return super()._new_state()

    def _require_start(self, columns: int) -> None:
        if self.dict_init is not None and np.shape(self.dict_init)[1] != columns:
            raise ParameterError(f"dict_init has {np.shape(self.dict_init)[1]} columns, X has {columns}")

    def _prefix(self) -> int:
        return max(self._batch_size(), int(self.n_components)) if self.dict_init is None else self._batch_size()

    def _outputs(self) -> int:
        return int(self.n_components)

    def _parts(self, columns: int) -> int:
        return int(self.n_components) * (2 * columns + int(self.n_components))

    def _seed(self, state: _Atoms, X: Array, w: Array) -> None:
        K, d = int(self.n_components), X.shape[1]
        if self.dict_init is not None:
            atoms = np.array(self.dict_init, dtype=np.float64)
        else:
            random = np.random.default_rng([state.seed, 0])
            atoms = X[random.permutation(len(X))[np.arange(K) % len(X)]]
            atoms = atoms + 0.01 * spread(X) * random.normal(size=(K, d))
            atoms /= np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), 1e-300)
        state.atoms = np.ascontiguousarray(atoms)
        state.codes, state.products = np.zeros((K, K)), np.zeros((K, d))

    def _step(self, state: _Atoms, X: Array, w: Array) -> None:
        b, t = len(X), state.steps - 1
        U = self._transformed(state, X)
        # Codes of the old dictionary fade: β of Mairal et al., section 3.4.1.
        theta = (t + 1) * b if t < b - 1 else b**2 + t + 1 - b
        beta = (theta + 1 - b) / (theta + 1)
        weighted = U * w[:, np.newaxis]
        state.codes = beta * state.codes + weighted.T @ U / b
        state.products = beta * state.products + weighted.T @ X / b
        self._update(state, X)

    def _update(self, state: _Atoms, X: Array) -> None:
        D, A, B = state.atoms, state.codes, state.products
        for j in range(len(D)):
            if A[j, j] > 1e-6:
                D[j] += (B[j] - A[j] @ D) / A[j, j]
            else:  # no row uses it
                random = np.random.default_rng([state.seed, state.steps, j])
                D[j] = X[random.integers(len(X))] + 0.01 * spread(X) * random.normal(size=X.shape[1])
                A[j], A[:, j], B[j] = 0.0, 0.0, 0.0
            D[j] /= max(1.0, float(np.linalg.norm(D[j])))

    def _transformed(self, state: _Atoms, X: Array) -> Array:
        U = np.empty((len(X), len(state.atoms)))
        gram, along = state.atoms @ state.atoms.T, _native.inner(X, state.atoms)
        _native.lasso(gram, along, float(self.alpha), float(self.tol), int(self.max_sweeps), U)
        return U

    @property
    def components_(self) -> Array:
        """D: the atoms, a row each."""
        return np.array(self._view(self._learned()).atoms)


def spread(X: Array) -> float:
    """The typical distance of numbers, for noise that is small compared with them."""
    return (float(X.std()) if X.size else 0.0) or 1.0
