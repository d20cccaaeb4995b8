"""Learners for tasks in sequence: plain SGD, experience replay, A-GEM, elastic weight consolidation."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import DamagedFileError, NumericalError, ParameterError
from ...estimators.labelled import LabelledLearner, LabelledState
from ...estimators.minibatch import widened
from ...estimators.stateful import LARGEST
from ...scheme.parameters import Parameters, number
from ...scheme.rounds import Array
from .memory import Memory

__all__ = ["AGEM", "EWC", "Replay", "SoftmaxSGD"]


@dataclasses.dataclass(repr=False)
class _Parameters(Parameters):
    eta: float = number(0.05, above=0)
    D: int = number(500, at_least=2, integer=True)
    passes: int = number(1, at_least=1, integer=True)

    def validate(self) -> None:
        if int(self.D) % 2:
            raise ParameterError(f"_Parameters(D={self.D!r}): expected an even number")


@dataclasses.dataclass(repr=False)
class _WithMemory(_Parameters):
    memory: int = number(200, at_least=1, integer=True)
    replayed: int = number(10, at_least=1, integer=True)


@dataclasses.dataclass(repr=False)
class _WithAnchor(_Parameters):
    lam: float = number(10.0, at_least=0)
    gamma: float = number(1.0, at_least=0, at_most=1)
    samples: int = number(200, at_least=1, integer=True)


@dataclasses.dataclass
class _Weights(LabelledState):
    """A row of weights for each class; column 0 is the intercept's. Rows stored for replay have no such column."""

    W: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 1)))
    memory: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    memory_codes: NDArray[np.int64] = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.int64))
    offered: int = 0
    # Not in files, since it can be computed again: frequencies, scaled frequencies, the features of `memory`.
    _omega: Array = dataclasses.field(default_factory=lambda: np.empty((0, 0)))
    _scaled: tuple[int, Array] = (-1, np.empty((0, 0)))
    _past: tuple[int, Array] = (-1, np.empty((0, 0)))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        stored = len(self.memory_codes)
        if self.memory_codes.dtype != np.int64 or not 0 <= stored <= self.offered:
            raise ValueError("the memory holds more examples than were offered")
        if stored and not 0 <= self.memory_codes.min() <= self.memory_codes.max() < len(self.W):
            raise ValueError("the memory has codes without a class")
        if self.W.ndim != 2 or len(self.W) > len(self.classes) or self.W.shape[1] < 1:
            raise ValueError("there are weights without a class")
        if self.memory.ndim != 2 or self.memory.shape[1] > self._reader.columns:
            raise ValueError("the memory has more columns than were learned")
        return {"W": self.W.shape, "memory": (stored, self.memory.shape[1]), "memory_codes": (stored,)}

    def resize(self, classes: int, columns: int) -> None:
        self.W = _grown(self.W, classes, columns)

    def tables(self) -> dict[str, Array]:
        """All arrays that `resize` makes larger."""
        return {"W": self.W}


@dataclasses.dataclass
class _Anchored(_Weights):
    F: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 1)))
    anchor: Array = dataclasses.field(default_factory=lambda: np.zeros((0, 1)))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {**super().shapes(), "F": self.W.shape, "anchor": self.W.shape}

    def resize(self, classes: int, columns: int) -> None:
        super().resize(classes, columns)
        self.F, self.anchor = _grown(self.F, classes, columns), _grown(self.anchor, classes, columns)

    def tables(self) -> dict[str, Array]:
        return {"W": self.W, "F": self.F, "anchor": self.anchor}


def _grown(table: Array, rows: int, columns: int) -> Array:
    if table.shape[1] < columns:
        table = widened(table, columns)
    return np.pad(table, [(0, rows - len(table)), (0, 0)]) if len(table) < rows else table


class SoftmaxSGD(LabelledLearner):
    """Multinomial logistic regression by gradient steps, one example at a time: W ← W − η (p − e_y) zᵀ.

    It stores no examples: on tasks in sequence it shows catastrophic forgetting.

    Parameters
    ----------
    eta : η.
    kernel : None for linear learning, or "rbf:gamma=…", "laplacian:gamma=…": z is then the random Fourier map of x.
    D : the length of that map.
    passes : passes of `fit` over its data.
    random_state : seed of the map and of all draws.
    """

    _Parameters: ClassVar[type[Parameters]] = _Parameters
    _State: ClassVar[type[_Weights]] = _Weights

    def __init__(
        self, *, eta: float = 0.05, kernel: Any = None, D: int = 500, passes: int = 1, random_state: Any = 0
    ) -> None:
        self.eta = eta
        self.kernel = kernel
        self.D = D
        self.passes = passes
        self.random_state = random_state

    def _new_state(self) -> Any:
        if self.kernel is not None:
            kernel = kernels.make(self.kernel)
            if not isinstance(kernel, kernels.RBF | kernels.Laplacian):
                raise ParameterError(f"kernel={self.kernel!r}: expected None, rbf or laplacian")
        return super()._new_state()

    def _from_config(self, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
        state = super()._from_config(config, arrays)
        if self._features(state, np.zeros((1, state._reader.columns))).shape[1] < state.W.shape[1]:
            raise DamagedFileError("there are weights without a feature")
        return state

    # -- learning ------------------------------------------------------------------------------------------------------

    def _numbers(self, columns: int, classes: int) -> int:
        of_map = 0 if self.kernel is None else int(self.D) // 2 * columns * 2
        features = columns if self.kernel is None else int(self.D)
        return (features + 1) * classes * len(self._State().tables()) + of_map

    def _absorb(self, state: Any, X: Array, codes: NDArray[np.int64], w: Array) -> None:
        for row, (x, code, weight) in enumerate(zip(X, codes.tolist(), w.tolist(), strict=True)):
            z = self._features(state, x[np.newaxis])[0]  # row by row: a product of matrices would round otherwise
            before = state.tables()
            # Classes that first appear later in the same call are not known yet.
            state.resize(len(state.classes) if state.declared else max(len(state.W), code + 1), len(z))
            if not weight:
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                W = self._updated(state, x, z, code, weight)
            if not np.all(np.isfinite(W)):
                vars(state).update(before)
                raise overflowing(row)
            state.W = W
            self._store(state, x, z, code)

    def _updated(self, state: Any, x: Array, z: Array, code: int, weight: float) -> Array:
        """The weights after a step; changes nothing."""
        W: Array = state.W
        return W - self.eta * weight * self._gradient(W, z[np.newaxis], np.array([code]))

    def _store(self, state: Any, x: Array, z: Array, code: int) -> None:
        """Store an example that was learned."""

    @staticmethod
    def _gradient(W: Array, Z: Array, codes: NDArray[np.int64]) -> Array:
        """The gradient of the mean loss −ln p_y."""
        P = _softmax(Z @ W.T)
        P[np.arange(len(codes)), codes] -= 1.0
        return np.asarray(P.T @ Z) / len(codes)

    def _features(self, state: Any, X: Array) -> Array:
        """1 and x, or 1 and the map of x."""
        if self.kernel is None:
            return np.concatenate([np.ones((len(X), 1)), X], axis=1)
        omega = self._frequencies(state, X.shape[1])
        angles = X @ omega
        scale = np.sqrt(2.0 / int(self.D))
        return np.concatenate([np.ones((len(X), 1)), scale * np.cos(angles), scale * np.sin(angles)], axis=1)

    def _frequencies(self, state: Any, d: int) -> Array:
        """ω, a column for each pair of features; a new name adds a row and changes none."""
        if state._scaled[0] == d:
            return np.asarray(state._scaled[1])
        kernel = kernels.make(self.kernel).resolved(d)
        gamma = float(getattr(kernel, "gamma", None) or 0.0)
        normal, pairs = isinstance(kernel, kernels.RBF), int(self.D) // 2
        if len(state._omega) < d:
            draws = [np.random.Generator(np.random.PCG64([int(state.seed), j])) for j in range(len(state._omega), d)]
            rows = [each.standard_normal(pairs) if normal else each.standard_cauchy(pairs) for each in draws]
            state._omega = np.concatenate([state._omega.reshape(-1, pairs), np.array(rows)])
        scaled = (np.sqrt(2.0 * gamma) if normal else gamma) * state._omega[:d]
        state._scaled = (d, scaled)
        return np.asarray(scaled)

    @property
    def _risky(self) -> bool:
        state = self._state
        return state is not None and state.W.size > 0 and not np.abs(state.W).max() <= LARGEST

    # -- answers -------------------------------------------------------------------------------------------------------

    def _scores(self, state: Any, X: Array) -> Array:
        Z = self._features(state, X)
        W = state.W
        columns = min(Z.shape[1], W.shape[1])  # names without weights, or missing in the rows, count 0
        scores = Z[:, :columns] @ W[:, :columns].T
        return np.pad(scores, [(0, 0), (0, len(state.classes) - len(W))])

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, a row for each row of X."""
        return _softmax(self._table_scores(X))

    @property
    def coef_(self) -> Array:
        """A row of weights for each class."""
        return np.array(self._learned().W[:, 1:])

    @property
    def intercept_(self) -> Array:
        return np.array(self._learned().W[:, 0])

    def end_task(self) -> None:
        """Tell the learner that a task is over and another begins."""

    def _memory(self, state: Any, room: int) -> Memory:
        return Memory(room, int(state.seed), state.memory, state.memory_codes, state.offered)

    @staticmethod
    def _offer(state: Any, memory: Memory, x: Array, code: int) -> int | None:
        place = memory.offer(x, code)
        state.memory, state.memory_codes, state.offered = memory.rows, memory.codes, memory.offered
        return place


class _MemoryLearner(SoftmaxSGD):
    """Stores a reservoir sample of past examples."""

    _Parameters = _WithMemory

    def __init__(
        self,
        *,
        memory: int = 200,
        replayed: int = 10,
        eta: float = 0.05,
        kernel: Any = None,
        D: int = 500,
        passes: int = 1,
        random_state: Any = 0,
    ) -> None:
        super().__init__(eta=eta, kernel=kernel, D=D, passes=passes, random_state=random_state)
        self.memory = memory
        self.replayed = replayed

    def _updated(self, state: Any, x: Array, z: Array, code: int, weight: float) -> Array:
        memory = self._memory(state, int(self.memory))
        gradient = weight * self._gradient(state.W, z[np.newaxis], np.array([code]))
        if len(memory):
            places = memory.draw(int(self.replayed))
            features = self._stored_features(state, len(x))
            past = self._gradient(state.W, features[places], memory.codes[places])
            gradient = self._with_past(gradient, past)
        return np.asarray(state.W - self.eta * gradient)

    def _store(self, state: Any, x: Array, z: Array, code: int) -> None:
        place = self._offer(state, self._memory(state, int(self.memory)), x, code)
        if place is not None and state._past[0] == len(x):
            if place < len(state._past[1]):
                state._past[1][place] = z
            else:
                state._past = (-1, np.empty((0, 0)))  # too large to store: computed again at the next use

    def _stored_features(self, state: Any, d: int) -> Array:
        """The features of all stored examples, computed row by row as when they came; with room for as many again."""
        if state._past[0] != d or len(state._past[1]) < len(state.memory):
            rows = widened(state.memory, d) if state.memory.shape[1] < d else state.memory
            each = [self._features(state, row[np.newaxis])[0] for row in rows]
            room = min(int(self.memory), 2 * len(each) + 16)
            features = np.zeros((max(room, len(each)), len(each[0])))  # `memory` may be smaller than it was
            features[: len(each)] = each
            state._past = (d, features)
        return np.asarray(state._past[1])

    def _with_past(self, gradient: Array, past: Array) -> Array:
        raise NotImplementedError


class Replay(_MemoryLearner):
    """Experience replay: each step is that of the new example and of `replayed` from a reservoir of `memory`.

    The loss is that of the new example plus the mean of the others'. (Chaudhry et al. 2019, "Tiny episodic memories".)

    Parameters
    ----------
    memory : how many examples are stored.
    replayed : how many of them each step learns again.
    eta, kernel, D, passes, random_state : see `SoftmaxSGD`.
    """

    def _with_past(self, gradient: Array, past: Array) -> Array:
        return gradient + past


class AGEM(_MemoryLearner):
    """Averaged gradient episodic memory: no step may raise the loss of stored examples, to first order.

    With g of the new example and g_ref of the stored ones: where ⟨g, g_ref⟩ < 0, g ← g − ⟨g, g_ref⟩/‖g_ref‖² g_ref.
    (Chaudhry, Ranzato, Rohrbach and Elhoseiny 2019.)

    Parameters
    ----------
    memory : how many examples are stored.
    replayed : how many of them g_ref is computed from.
    eta, kernel, D, passes, random_state : see `SoftmaxSGD`.
    """

    def __init__(
        self,
        *,
        memory: int = 200,
        replayed: int = 64,
        eta: float = 0.05,
        kernel: Any = None,
        D: int = 500,
        passes: int = 1,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            memory=memory, replayed=replayed, eta=eta, kernel=kernel, D=D, passes=passes, random_state=random_state
        )

    def _with_past(self, gradient: Array, past: Array) -> Array:
        return projected(gradient, past)


def projected(gradient: Array, reference: Array) -> Array:
    """The nearest direction whose inner product with the reference is not negative."""
    against = float(np.vdot(gradient, reference))
    size = float(np.vdot(reference, reference))
    return gradient - against / size * reference if against < 0.0 < size else gradient


class EWC(SoftmaxSGD):
    """Elastic weight consolidation: weights that matter for earlier tasks are pulled back to their values after these.

    The loss gets λ/2 Σ F_i (W_i − W*_i)²; F is the mean squared gradient of ln p(y|x) of single examples at W*, the
    weights at the end of a task: call `end_task()` there. F ← γF + F_new (Kirkpatrick et al. 2017; online form Schwarz
    et al. 2018). The penalty's part of a step is taken implicitly, so that no λ makes the weights diverge. On tasks
    that share one output layer for different classes it does not help: the weights of absent classes are not protected.

    Parameters
    ----------
    lam : λ. It depends on the scale of the gradients: tune it on an order of tasks that is not evaluated.
    gamma : γ.
    samples : of how many examples of a task F is taken.
    eta, kernel, D, passes, random_state : see `SoftmaxSGD`.
    """

    _Parameters = _WithAnchor
    _State = _Anchored

    def __init__(
        self,
        *,
        lam: float = 10.0,
        gamma: float = 1.0,
        samples: int = 200,
        eta: float = 0.05,
        kernel: Any = None,
        D: int = 500,
        passes: int = 1,
        random_state: Any = 0,
    ) -> None:
        super().__init__(eta=eta, kernel=kernel, D=D, passes=passes, random_state=random_state)
        self.lam = lam
        self.gamma = gamma
        self.samples = samples

    def _updated(self, state: Any, x: Array, z: Array, code: int, weight: float) -> Array:
        W = super()._updated(state, x, z, code, weight)
        pull = self.eta * self.lam * state.F
        return np.asarray(W + pull / (1.0 + pull) * (state.anchor - W))

    def _store(self, state: Any, x: Array, z: Array, code: int) -> None:
        self._offer(state, self._memory(state, int(self.samples)), x, code)

    def end_task(self) -> None:
        """Anchor each weight at its current value, with the Fisher information of this task as its strength."""
        state = self._state
        if state is None or not len(state.memory_codes):
            return
        Z = self._features(state, widened(state.memory, max(state._reader.columns, state.memory.shape[1])))
        F = np.zeros_like(state.W)
        for z, code in zip(Z, state.memory_codes.tolist(), strict=True):
            F += self._gradient(state.W, z[np.newaxis], np.array([code])) ** 2
        state.F = self.gamma * state.F + F / len(Z)
        state.anchor = state.W.copy()
        state.memory, state.memory_codes, state.offered = np.empty((0, 0)), np.empty(0, dtype=np.int64), 0


def overflowing(row: int) -> NumericalError:
    """The error for a row whose step overflows; the rows before it are learned."""
    return NumericalError(
        f"row {row}: the step overflows; scale the features down or choose a smaller eta",
        row,
    )


def _softmax(scores: Array) -> Array:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))
