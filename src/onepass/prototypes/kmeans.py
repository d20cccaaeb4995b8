"""`KMeans`: centres that move with the stream, one example or one mini-batch at a time."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin

from .. import _native
from ..estimators.minibatch import MiniBatchState, widened
from ..estimators.stateful import rows_of
from ..learner import LearnerTraits
from ..scheme.parameters import Parameters, flag, number
from ..scheme.rounds import Array
from ..transforms.learned_transform import LearnedTransform
from .seeding import plus_plus, squared_distances

__all__ = ["KMeans"]

SMALL, PATIENCE = 0.01, 10  # a centre is moved after 10 mini-batches with less than 1% of the largest count


@dataclasses.dataclass(repr=False)
class _Parameters(Parameters):
    n_clusters: int = number(8, at_least=1, integer=True)
    batch_size: int = number(100, at_least=1, integer=True)
    decay: float = number(1.0, above=0, at_most=1)
    reassign: bool = flag(False)
    init_size: int | None = number(None, at_least=1, integer=True)
    passes: int = number(1, at_least=1, integer=True)


@dataclasses.dataclass
class _Centers(MiniBatchState):
    centers: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    counts: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    idle: Array = dataclasses.field(default_factory=lambda: np.empty(0))
    inertia: float = 0.0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        K = len(self.counts)
        columns = self._reader.columns if self.seeded else 0
        return {**super().shapes(), "centers": (K, columns), "counts": (K,), "idle": (K,)}

    def _widen_learned(self, columns: int) -> None:
        if self.seeded:
            self.centers = widened(self.centers, columns)


class KMeans(ClusterMixin, LearnedTransform):  # type: ignore[misc]
    """Mini-batch k-means (Sculley 2010); with `batch_size=1`, MacQueen's sequential k-means (1967).

    Each row of a mini-batch is assigned to its nearest centre; the centres do not move meanwhile. Then v_k += the
    number of rows of k, and c_k += Σ (x − c_k)/v_k. With `decay=1` a centre is the mean of all its rows so far. The
    first `init_size` rows seed the centres by k-means++ and are then learned like all others.

    Parameters
    ----------
    n_clusters : K.
    batch_size : rows per step. Rows are buffered until there are enough, so the result does not depend on chunks.
    decay : every v_k is multiplied by it before a step; below 1, the centres follow a stream that drifts.
    reassign : whether a centre that has almost no rows is moved to a row.
    init_size : the number of rows to seed from; max(3 batch_size, 10 K) by default.
    passes : passes of `fit` over its data.
    random_state : the seed of the random numbers.
    """

    _Parameters = _Parameters
    _State = _Centers

    traits = LearnerTraits("cluster", frozenset({"transform_one"}), supervised=False)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        batch_size: int = 100,
        decay: float = 1.0,
        reassign: bool = False,
        init_size: int | None = None,
        passes: int = 1,
        random_state: Any = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.batch_size = batch_size
        self.decay = decay
        self.reassign = reassign
        self.init_size = init_size
        self.passes = passes
        self.random_state = random_state

    def _parts(self, columns: int) -> int:
        return int(self.n_clusters) * columns

    def _prefix(self) -> int:
        return int(self.init_size or max(3 * self.batch_size, 10 * self.n_clusters))

    def _outputs(self) -> int:
        return int(self.n_clusters)

    def _seed(self, state: _Centers, X: Array, w: Array) -> None:
        K = int(self.n_clusters)
        state.centers = plus_plus(X, K, w, np.random.default_rng([state.seed, 0]))
        state.counts, state.idle = np.zeros(K), np.zeros(K)

    def _take(self, state: _Centers, X: Array, w: Array) -> None:
        if self.reassign:
            super()._take(state, X, w)
            return
        self._step(state, X, w)  # any number of mini-batches in one call
        state.steps += -(-len(X) // self._batch_size())

    def _step(self, state: _Centers, X: Array, w: Array) -> None:
        arrays = (state.centers, state.counts)
        inertia = _native.kmeans_steps(X, w, self._batch_size(), float(self.decay), *arrays)
        if inertia >= 0.0:
            state.inertia = inertia
        if self.reassign:
            self._reassign(state, X, w)

    def _reassign(self, state: _Centers, X: Array, w: Array) -> None:
        small = state.counts < SMALL * state.counts.max()
        state.idle = np.where(small, state.idle + 1, 0.0)
        moved = np.flatnonzero(state.idle >= PATIENCE)
        if len(moved) == 0:
            return
        random = np.random.default_rng([state.seed, state.steps])
        state.centers[moved] = X[random.choice(len(X), size=len(moved), p=w / w.sum())]
        state.counts[moved] = state.counts[~small].min()
        state.idle[moved] = 0.0

    def _transformed(self, state: _Centers, X: Array) -> Array:
        return np.sqrt(squared_distances(X, state.centers))

    # -- clusters ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a table from scratch. y is ignored."""
        super().fit(X, y, sample_weight)
        self.labels_ = self.predict(X)
        return self

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The index of the nearest centre of each row."""
        state = self._fitted()
        if hasattr(self, "n_features_in_"):
            X = self._validated(X, reset=False)
        return self._nearest(state, X)[0]

    def _nearest(self, state: _Centers, X: Any) -> tuple[NDArray[np.int32], Array]:
        view = self._view(state)
        at, distance = [], []
        for block, _ in self._blocks(state, X, None, False):
            rows = np.ascontiguousarray(block[:, : view.centers.shape[1]])
            if rows.shape[1] < view.centers.shape[1]:
                rows = widened(rows, view.centers.shape[1])
            index, squared = _native.nearest(rows, view.centers)
            at.append(index.astype(np.int32))
            distance.append(squared)
        return np.concatenate(at), np.concatenate(distance)

    def predict_one(self, x: Any) -> int | None:
        """The index of the nearest centre. None before the first example."""
        state = self._state
        if state is None or not state.t:
            return None
        view = self._view(state)
        row = self._vector(state, x, False)
        if len(row) != view.centers.shape[1]:
            row = row[: view.centers.shape[1]]
            row = np.concatenate([row, np.zeros(view.centers.shape[1] - len(row))])
        return _native.nearest_one(row, view.centers)

    def predict_many(self, X: Any) -> Any:
        """The index of the nearest centre of each row. None before the first example."""
        return self._nearest(self._fitted(), X)[0] if self.__sklearn_is_fitted__() else [None] * rows_of(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centre."""
        return -float(self._nearest(self._fitted(), self._validated(X, reset=False))[1].sum())

    @property
    def cluster_centers_(self) -> Array:
        """The centres, one in each row."""
        return np.array(self._view(self._learned()).centers)

    @property
    def counts_(self) -> Array:
        """v: the sum of the importances of each centre's rows."""
        return np.array(self._view(self._learned()).counts)

    @property
    def inertia_(self) -> float:
        """Σ w ‖x − c‖² of the last mini-batch, before its step."""
        return float(self._view(self._learned()).inertia)
