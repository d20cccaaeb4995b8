"""`LasvmModel`: the native machines with labels, names and files; no scikit-learn.

Two classes are one machine. More are K machines of one class against the rest, or K(K − 1)/2 of one against one; all
share the stored vectors and the kernel rows among them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import _native, kernels
from ..errors import DamagedFileError, FeatureError, InputError, LabelError, ParameterError, RowError, checked_parts
from ..learner import LearnerTraits, State
from ..persistence import store
from ..rows.batches import Batch, Rows, as_batch, as_importance, as_rows, to_row
from ..rows.labels import not_hashable, plain, require_few, require_label
from ..rows.named import NamedColumns, as_frame
from ..scheme import sizes
from ..scheme.parameters import check_fields, config_name, from_config, to_config
from ..scheme.rounds import Array
from ..scheme.sizes import MOST_LEARNERS
from .base import LearnerBase, array_bytes
from .columns import require_same_names
from .lasvm_options import LasvmOptions
from .option_values import options_config, options_from
from .votes import with_sums

__all__ = ["LasvmModel"]


class Machines(LearnerBase):
    """Which machine separates which classes."""

    kernel: kernels.Kernel
    multiclass: str
    classes: list[Any]

    def layout(self) -> list[tuple[int, int]]:
        """(class of y = +1, class of y = −1) of the machines; −1 is all others."""
        K = len(self.classes)
        if K <= 2:
            return [(1, 0)]
        return [(k, -1) for k in range(K)] if self.multiclass == "ovr" else list(self.pairs())

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The machines of one against one: (j, i), i < j, in the order in which classes join."""
        return ((j, i) for j in range(len(self.classes)) for i in range(j))


@dataclasses.dataclass(repr=False, eq=False)
class LasvmModel(Machines, LasvmOptions):  # type: ignore[misc]  # its kernel is an object once it is checked
    """Learns rows or mappings in the order in which they come; every arrival is new.

    `classes` declares the labels, and no other is then taken; without it they grow, in the order of appearance.
    """

    traits = LearnerTraits("class", frozenset({"score_one"}))
    estimator_kind = "LaSVMClassifier"

    _: dataclasses.KW_ONLY
    classes: dataclasses.InitVar[Sequence[Any] | None] = None

    def __post_init__(self, classes: Sequence[Any] | None) -> None:
        self.kernel = kernels.make(self.kernel)
        check_fields("LasvmModel", self)
        self.declared = classes is not None
        self.classes: list[Any] = []
        self.columns = 0
        self.names: NamedColumns | None = None  # where mappings came first
        self.frame: list[Any] | None = None  # what the columns were called where a frame came first
        self._index: dict[Any, int] = {}
        self._engine: _native.LasvmEngine | None = None
        self._sparse = False
        for label in classes or ():
            self._register(plain(label))

    def options(self) -> dict[str, Any]:
        """The constructor's parameters."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.options(), classes=self.classes if self.declared else None)

    @property
    def nbytes(self) -> int:
        """Bytes of stored vectors, coefficients, and of the kernel rows in the cache."""
        return 0 if self._engine is None else array_bytes(self._engine.state()) + int(self._engine.cache_bytes)

    @property
    def positional(self) -> bool:
        """Were rows, not names, learned?"""
        return self._engine is not None and self.names is None

    @property
    def n_features(self) -> int:
        return self.columns if self.names is None else len(self.names)

    # -- learning ----------------------------------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        return self._engine is not None and self._engine.t > 0

    @property
    def t(self) -> int:
        return 0 if self._engine is None else self._engine.t

    @property
    def engine(self) -> _native.LasvmEngine:
        assert self._engine is not None, "begin() first"
        return self._engine

    def begin(self, columns: int, sparse: bool) -> None:
        """Fix the number of features, and γ = 1/d with it."""
        if self._engine is None:
            self.columns, self._sparse = columns, sparse and not wants_dense(self.kernel)
            self._engine = self._make(self.kernel.resolved(columns))

    def _make(self, kernel: kernels.Kernel) -> _native.LasvmEngine:
        self.kernel = kernel
        engine = _native.LasvmEngine(kernel.native(), self._sparse, self.columns, self._native_options(kernel))
        for positive, negative in self.layout():
            engine.add_machine(positive, negative)
        return engine

    def _native_options(self, kernel: kernels.Kernel) -> dict[str, Any]:
        until = math.inf if self.reprocess_until is None else float(self.reprocess_until)
        return {
            "C": float(self.C),
            "tau": float(self.tau),
            "cache_bytes": int(self.cache_mb * 2**20),
            "reprocess_steps": int(self.reprocess_steps),
            "reprocess_until": until,
            "may_be_indefinite": not kernel.definite(),
        }

    def learn_one(self, x: Any, y: Any, importance: float = 1.0) -> None:
        rows: Any = [x] if isinstance(x, Mapping) else as_batch(_one_row(x))
        self.learn_many(rows, [y], [importance])

    def learn_many(self, X: Any, y: Any, importance: Any = None) -> None:
        """Learn rows in order. Malformed input refuses the whole call; a row that overflows refuses the rest."""
        X = self._rows(X)
        named = isinstance(X, list)
        batch, fresh, new_by_row = self._read_mappings(X) if named else (self.table(X), [], [])
        labels = self._labels(y, batch.rows)
        weights = as_importance(importance, batch.rows)
        weights = np.ones(batch.rows) if weights is None else weights
        self.require_finite_bounds(weights)
        if batch.rows == 0:
            raise InputError("X has no rows: there is nothing to learn")
        if named:
            self.names = self.names or NamedColumns()
            self.names.register(fresh)
        if self._engine is None:
            sizes.require_few(batch.columns, None)
            self.frame = batch.names
        # γ = 1/d must not depend on the chunk: a name's column counts where the first example has it.
        self.begin(len(self.names) - len(fresh) + new_by_row[0] if self.names else batch.columns, batch.csr is not None)
        table = self.fitting(batch)
        for start, stop, undo in self._runs(labels):
            rows, t = _native_rows(table.part(start, stop)), self.t
            try:
                self.engine.learn(rows, self.codes(labels[start:stop]), weights[start:stop])
            except BaseException as error:  # KeyboardInterrupt too: the rows before it are learned
                done = self.t - t
                if done == 0 and undo is not None:
                    undo()
                if self.names is not None:
                    row = start + done
                    self.names.truncate(len(self.names) - len(fresh) + (new_by_row[row - 1] if row else 0))
                if isinstance(error, RowError):
                    raise error.at(start + done) from None
                raise

    def _runs(self, labels: list[Any]) -> Iterator[tuple[int, int, Callable[[], None] | None]]:
        """Stretches between the arrivals of new classes: each is registered just before its first example.

        The third undoes that, for the case that the example is refused.
        """
        start, undo = 0, None
        for row, label in enumerate(labels):
            if label not in self._index:
                if row > start:
                    yield start, row, undo
                start, undo = row, self._add_class(label)
        yield start, len(labels), undo

    def _add_class(self, label: Any) -> Callable[[], None]:
        """Make a new class's machines. What undoes it takes these away alone: many classes may come."""
        engine, before = self.engine, len(self.classes)
        if splits := before == 2 and self.multiclass == "ovr":
            undo = functools.partial(self.__setstate__, self.__getstate__())
            engine.split()
        fresh = [] if before < 2 else [(before, i) for i in range(before)]
        if fresh and self.multiclass == "ovr":
            fresh = [(before, -1)]
        self._register(label)
        for positive, negative in fresh:
            engine.add_machine(positive, negative)
            engine.collect(engine.machines - 1)
        return undo if splits else functools.partial(self._remove_class, label, len(fresh))

    def _remove_class(self, label: Any, machines: int) -> None:
        """Undo `_add_class` of the class that came last."""
        self.engine.drop_machines(machines)
        self.classes.remove(label)
        del self._index[label]

    def _register(self, label: Any) -> None:
        self._index[label] = len(self.classes)
        self.classes.append(label)

    def _labels(self, y: Any, rows: int) -> list[Any]:
        if isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
            raise LabelError(f"y must hold one label per row, got {y!r:.80}")
        if isinstance(y, np.ndarray) and y.ndim != 1:
            raise LabelError(f"y must hold one label per row, got shape {y.shape}")
        labels = [plain(label) for label in y]
        if len(labels) != rows:
            raise InputError(f"X has {rows} rows, y has {len(labels)}")
        known = self._index
        for row, label in enumerate(labels):
            try:
                if label in known:
                    continue
            except TypeError:
                raise not_hashable(label, row) from None
            if self.declared:
                raise LabelError(f"y[{row}] is {label!r}, which is not one of the classes {self.classes!r}")
            require_label(label)
            require_few(label, known, None, self.t + row + 1)
            known = known if len(known) > len(self._index) else dict(known)
            known[label] = len(known)
        classes = len(known)
        machines = classes if self.multiclass == "ovr" else classes * (classes - 1) // 2
        if machines > MOST_LEARNERS:
            raise LabelError(
                f"{classes:,} classes would take {machines:,} machines, but the limit is {MOST_LEARNERS:,}; use "
                "multiclass='ovr' or a linear learner. Nothing of this call was learned"
            )
        return labels

    def codes(self, labels: Sequence[Any]) -> NDArray[np.int64]:
        return np.fromiter((self._index[label] for label in labels), dtype=np.int64, count=len(labels))

    def require_finite_bounds(self, weights: Array) -> None:
        if len(weights) and not math.isfinite(float(weights.max()) * self.C):
            raise InputError(f"importance {weights.max():g} times C={self.C:g} overflows; make either smaller")

    # -- rows --------------------------------------------------------------------------------------------------------

    def _rows(self, X: Any) -> Rows:
        """Rows in any shape; mappings as rows of the frame that was learned first, if one was."""
        rows = as_rows(X)
        return as_frame(rows, self.frame) if isinstance(rows, list) and self.frame is not None else rows

    def table(self, batch: Batch) -> Batch:
        """Rows of numbers, checked against what was learned: finite, as many columns, ≥ 0 where the kernel wants it."""
        if self.names is not None:
            raise FeatureError("this model has learned named features; give mappings of names to numbers")
        if self._engine is not None and batch.columns != self.columns:
            raise FeatureError(
                f"X has {batch.columns} features, but this model has learned rows of {self.columns} features"
            )
        require_same_names(batch.names, self.frame)
        batch.require_finite()
        require_domain(self.kernel, batch)
        return batch

    def fitting(self, batch: Batch) -> Batch:
        """The rows as the engine stores them, dense or sparse."""
        if not self._sparse:
            return batch if batch.csr is None else Batch(batch.rows, batch.columns, dense=batch.filled(0, batch.rows))
        if batch.csr is None:
            import scipy.sparse

            batch = as_batch(scipy.sparse.csr_matrix(np.asarray(batch.dense)))
        data, indices, starts = batch.merged().stored
        csr = (data.astype(np.float64), indices.astype(np.int64), starts.astype(np.int64))
        return Batch(batch.rows, batch.columns, csr=csr)

    def _read_mappings(self, X: Sequence[Any]) -> tuple[Batch, list[str | int], list[int]]:
        if self._engine is not None and self.names is None:
            raise FeatureError(f"this model has learned rows of {self.columns} numbers; give rows, not mappings")
        out = (self.names or NamedColumns()).read(X)
        require_domain(self.kernel, out[0])
        return out

    # -- prediction --------------------------------------------------------------------------------------------------

    def machine_scores(self, X: Any, *, counted: bool = False) -> Array:
        """f of every machine for every row. `counted` adds the kernel values to `kernel_evaluations`."""
        rows = self._rows(X)
        table = self._read_mappings(rows)[0] if isinstance(rows, list) else self.table(rows)
        if self._engine is None:
            return np.zeros((table.rows, len(self.layout())))
        out = np.empty((table.rows, self._engine.machines))
        self._engine.score(_native_rows(self.fitting(table)), out, counted)
        return out

    def scores(self, X: Any) -> Array:
        """Scores as `decision_function` gives them: one column for up to two classes, else one for each class."""
        f = self.machine_scores(X)
        if f.shape[1] == 1 or self.multiclass == "ovr":
            return f
        K = len(self.classes)
        votes, sums = np.zeros((len(f), K)), np.zeros((len(f), K))
        for column, (j, i) in enumerate(self.pairs()):
            score = f[:, column]
            votes[np.arange(len(f)), np.where(score > 0, j, i)] += 1
            sums[:, j] += score
            sums[:, i] -= score
        return with_sums(votes, sums)

    def class_indices(self, scores: Array) -> NDArray[np.int64]:
        if scores.shape[1] == 1:
            return np.asarray((scores[:, 0] > 0) & (len(self.classes) > 1), dtype=np.int64)
        return np.asarray(np.argmax(scores, axis=1), dtype=np.int64)

    def predict_many(self, X: Any) -> list[Any]:
        if not self.classes:
            rows = as_rows(X)
            return [None] * (len(rows) if isinstance(rows, list) else self.table(rows).rows)
        return [self.classes[i] for i in self.class_indices(self.scores(X))]

    def score_one(self, x: Any) -> Any:
        scores = self.scores([x] if isinstance(x, Mapping) else as_batch(_one_row(x)))[0]
        return float(scores[0]) if len(scores) == 1 else scores.tolist()

    def predict_one(self, x: Any) -> Any:
        return self.predict_many([x] if isinstance(x, Mapping) else as_batch(_one_row(x)))[0]

    # -- files -------------------------------------------------------------------------------------------------------

    def expansion(self) -> tuple[Any, Array]:
        """The support vectors, an array or a CSR matrix, and α, a row for each machine."""
        state = self.engine.state()
        used = np.flatnonzero(np.any(state["alpha"] != 0, axis=0))
        if not self._sparse:
            return state["x"][used], state["alpha"][:, used]
        import scipy.sparse

        csr = (state["x"], state["index"].astype(np.int64), state["starts"].astype(np.int64))
        columns = self.columns if self.names is None else len(self.names)
        return scipy.sparse.csr_matrix(csr, shape=(len(state["starts"]) - 1, columns))[used], state["alpha"][:, used]

    def state(self) -> State:
        """Everything, as a configuration that JSON can hold, and arrays; `from_state` resumes bit for bit."""
        return self._state(kernel_config(self.kernel))

    def _state(self, kernel: Any) -> State:
        arrays = {} if self._engine is None else dict(self._engine.state())
        for name in ("labels", "index", "starts"):
            if name in arrays:
                arrays[name] = arrays[name].astype(np.int64)
        names = self.frame if self.names is None else list(self.names)
        if names is not None:
            arrays |= {f"names.{key}": value for key, value in store.encode_names(names).items()}
        config = {
            "kernel": kernel,
            "options": options_config(self),
            "classes": store.encode_values(self.classes),
            "declared": self.declared,
            "columns": self.columns,
            "sparse": self._sparse,
            "t": self.t,
        }
        return config | ({} if self.frame is None else {"framed": True}), arrays

    @classmethod
    def from_state(
        cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], kernel: kernels.Kernel | None = None
    ) -> Self:
        """The model that `state` described; `kernel` where no file could hold it."""
        with checked_parts("the model"):
            kernel = kernel_from(config["kernel"]) if kernel is None else kernel
            options = options_from(cls, config["options"], {})
            model = cls(kernel=kernel, classes=store.decode_values(config["classes"]), **options)
            model._set_columns(config, arrays)
            if arrays:  # otherwise nothing was learned
                model._engine = model._restored_engine(config["t"], arrays)
        return model

    def _set_columns(self, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """What a file says of columns, names and classes, after checking it."""
        if not isinstance(config["declared"], bool) or not isinstance(config["sparse"], bool):
            raise TypeError("declared and sparse must be true or false")
        for name in ("columns", "t"):
            if type(config[name]) is not int or not 0 <= config[name] <= 2**53:
                raise TypeError(f"{name} must be a whole number >= 0")
        self.declared, self.columns, self._sparse = config["declared"], config["columns"], config["sparse"]
        names = {key[6:]: value for key, value in arrays.items() if key.startswith("names.")}
        decoded = store.decode_names(names) if names else None
        if config.get("framed", False):
            self.frame = decoded
            if decoded is None or len(set(decoded)) != self.columns:
                raise TypeError("as many names as columns were expected")
        elif decoded is not None:
            self.names = NamedColumns(decoded)

    def _restored_engine(self, t: int, arrays: Mapping[str, NDArray[Any]]) -> _native.LasvmEngine:
        """The native engine with the support vectors of a file."""
        kernel = self.kernel
        sizes.require_few(self.n_features, None)
        if self._sparse and wants_dense(kernel):
            raise TypeError("the kernel takes vectors, and the rows are sparse")
        engine = _native.LasvmEngine(kernel.native(), self._sparse, self.columns, self._native_options(kernel))
        numbers = {key: np.ascontiguousarray(value, dtype=np.float64) for key, value in arrays.items()}
        rows: Any = numbers["x"]
        if self._sparse:
            rows = (rows, *(np.ascontiguousarray(arrays[key], dtype=np.int64) for key in ("index", "starts")))
            if np.any(rows[1] >= self.n_features):
                raise IndexError("a stored vector has a feature beyond all features")
        require_domain(kernel, Batch(len(rows[0]), 1, csr=rows) if self._sparse else as_batch(rows))
        engine.set_state({**numbers, "rows": rows})
        engine.t = t
        if engine.layout() != self.layout():
            raise KeyError("the machines are not those of the classes")
        return engine

    def __getstate__(self) -> dict[str, Any]:
        if self._engine is None:
            return dict(self.__dict__)
        return {"kernel": self.kernel, "state": self._state(None)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "state" in state:
            config, arrays = state["state"]
            state = self.from_state(config, arrays, state["kernel"]).__dict__
        self.__dict__.update(state)


def kernel_config(kernel: kernels.Kernel) -> Any:
    """A kernel as JSON."""
    if wants_dense(kernel):
        raise ParameterError(
            f"a model file cannot hold {kernel!r}, a matrix or a function; use another kernel, or pickle"
        )
    return to_config(kernel)


def kernel_from(config: Any) -> kernels.Kernel:
    kernel = from_config(config, {config_name(kind): kind for kind in kernels.KERNELS.values()})
    if not isinstance(kernel, kernels.Kernel):
        raise DamagedFileError(f"expected a kernel, got {kernel!r}")
    return kernel


def wants_dense(kernel: kernels.Kernel) -> bool:
    """Are its rows always vectors?"""
    return isinstance(kernel, (kernels.Call, kernels.Precomputed)) or any(map(wants_dense, kernel.parts()))


def require_domain(kernel: kernels.Kernel, batch: Batch) -> None:
    """Refuse numbers that a kernel is not defined for."""
    data = batch.dense if batch.csr is None else batch.csr[0]
    assert data is not None
    if isinstance(kernel, (kernels.HistogramIntersection, kernels.Chi2, kernels.Chi2Exp)) and np.any(data < 0):
        raise InputError(
            f"{kernel!r} wants numbers >= 0, got {data.min():g}; shift the features, or use another kernel"
        )
    if isinstance(kernel, kernels.Precomputed):
        size = len(kernel.gram)
        dense = batch.dense if batch.dense is not None else np.full((1, 1), -1.0)
        if dense.shape[1] != 1 or np.any((dense < 0) | (dense >= size) | (dense != np.floor(dense))):
            raise InputError(f"{kernel!r} wants rows of one whole number, the example's index from 0 to {size - 1}")
    for part in kernel.parts():
        require_domain(part, batch)


def _native_rows(table: Batch) -> Any:
    return table.dense if table.csr is None else table.csr


def _one_row(x: Any) -> Any:
    """A single row, as a table of one."""
    row = to_row(x)
    if isinstance(row, tuple):
        import scipy.sparse

        index, values, columns = row
        return scipy.sparse.csr_matrix((values, index, [0, len(index)]), shape=(1, columns))
    return np.asarray(row)[np.newaxis]
