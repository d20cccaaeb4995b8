"""`KernelModel`: a rule over a kernel expansion f = Σ cᵢ K(xᵢ, ·) within a budget; no scikit-learn.

`RuleModel` handles examples, labels, names and files.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from .. import _native, kernels
from ..errors import DamagedFileError, ParameterError, checked_parts
from ..kernels import Kernel, budgets
from ..kernels.budgets import Budget
from ..persistence import store
from ..rows.batches import Batch
from ..rules import make as make_rule
from ..scheme.parameters import from_config, to_config
from ..scheme.readouts import Readout, make_readout
from ..scheme.rounds import Array, Rule
from . import saved
from .base import array_bytes
from .files import known_parameters, parted, resume
from .option_values import engine_parts, options_from
from .options import ClassOptions, KernelOptions, LimitOptions, ReadoutOptions, option
from .rule_model import RuleModel

__all__ = ["NO_WEIGHTS", "KernelModel"]

TASKS = ("auto", "binary", "multiclass", "regression")
NO_WEIGHTS = "a kernel learner has no weight per feature"


@dataclasses.dataclass(repr=False, eq=False)
class KernelModel(RuleModel, LimitOptions, ClassOptions, ReadoutOptions, KernelOptions):  # type: ignore[misc]  # as `LinearModel`
    """A rule, a kernel, a budget, and the support vectors they have chosen.

    The options are those of `LinearModel` that have a meaning here. `fit_intercept` adds intercept_scaling² to the
    kernel, so that a rule's penalty shrinks the intercept, too.
    """

    counts_unknown = True
    native_hold_out = False

    task: str = option("auto", None)
    _: dataclasses.KW_ONLY
    classes: dataclasses.InitVar[Iterable[Hashable] | None] = None

    def __post_init__(self, classes: Iterable[Hashable] | None) -> None:
        self._engine: _native.KernelEngine
        if self.task not in TASKS:
            raise ParameterError(f"task={self.task!r}: a kernel learner has {', '.join(TASKS)}")
        made = make_rule(self.rule)
        _require(made, self.readout)
        self.kernel: Kernel = copy.deepcopy(kernels.make(self.kernel))
        self.budget: Budget = copy.deepcopy(budgets.make(self.budget))
        self.budget.require(made, self.task, self.kernel)
        super().__post_init__(classes)

    def __repr__(self) -> str:
        return f"KernelModel({self.rule!r}, task={self.task!r}, kernel={self.kernel!r}, budget={self.budget!r})"

    @property
    def estimator_kind(self) -> str:
        return "KernelRegressor" if self.task == "regression" else "KernelClassifier"

    def room_for(self, classes: int) -> None:
        super().room_for(classes)
        if classes > 2 and "multiclass" not in self.budget.tasks:
            raise ParameterError(
                "Only binary classification is supported. The type of the target is multiclass. "
                f"{self.budget!r} is defined for two classes; use another budget, or reductions.OneVsAll"
            )

    # -- what was learned ------------------------------------------------------------------------------------------

    @property
    def n_support(self) -> int:
        """The number of support vectors."""
        return int(self._engine.support)

    @property
    def support(self) -> Any:
        """The support vectors: a table, or a CSR matrix if rows were sparse or named."""
        s = self._engine.state()
        if "support" in s:
            return s["support"]
        import scipy.sparse

        parts = (s["support_data"], s["support_index"], s["support_starts"])
        return scipy.sparse.csr_matrix(parts, shape=(self.n_support, self.n_features))

    @property
    def coefficients(self) -> Array:
        """c, support vectors × outputs."""
        s = self._engine.state()
        return np.asarray(s["coefficients"] * saved.number("kernel", s["scalars"], "scale"))

    @property
    def births(self) -> NDArray[np.int64]:
        """The round in which each support vector was added."""
        return self._engine.state()["births"].astype(np.int64)

    @property
    def kernel_features(self) -> int:
        """The d of γ = 1/d: features of the first example; 0 before it."""
        return int(self._engine.kernel_features)

    def resolved_kernel(self) -> Kernel:
        """The kernel as it is evaluated: γ filled in, the intercept added."""
        return self._at(self.kernel_features) if self.kernel_features else self.kernel

    def _at(self, d: int) -> Kernel:
        kernel = self.kernel.resolved(d)
        return kernel + kernels.Constant(self.intercept_scaling**2) if self.fit_intercept else kernel

    @property
    def explain_one(self) -> NoReturn:
        raise AttributeError(f"{NO_WEIGHTS}; see support and coefficients")

    weights = named_weights = explain_one

    # -- files -----------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        config, arrays = super().state()
        config["kernel"], gram = _kernel_config(self.kernel)
        config["budget"] = to_config(self.budget)
        config["kernel_features"] = self.kernel_features
        if gram is not None:
            arrays["gram"] = gram
        return config, arrays

    @classmethod
    def from_state(
        cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], kernel: Kernel | None = None
    ) -> Self:
        with checked_parts("the model"):
            parts = parted(arrays)
            own = parts[""]
            gram = own.pop("gram", None)
            known = known_parameters()
            classes = store.decode_values(config["classes"])
            _check_numbers(config, own, classes)
            options = options_from(cls, config, known)
            given = from_config(config["kernel"], known) if gram is None else kernels.Precomputed(gram)
            options["kernel"] = kernel or given
            model = cls(**options, classes=None if config["costs"] is None else classes)
            learned = {**own, "kernel_features": int(config["kernel_features"])}
            resume(model, config, classes, store.decode_names(parts["names"]), {**parts, "": learned})
        return model

    def _learned_places(self) -> NDArray[np.intp]:
        return np.unique(self.support.nonzero()[1])

    def __getstate__(self) -> dict[str, Any]:
        config, arrays = super().state()  # the kernel is not converted: pickle can store functions
        config |= {"budget": to_config(self.budget), "kernel_features": self.kernel_features, "kernel": None}
        return {"config": config, "arrays": arrays, "kernel": self.kernel}

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = self.from_state(state["config"], state["arrays"], state["kernel"])
        self.__dict__.update(model.__dict__)
        self._bind()

    # -- internals ----------------------------------------------------------------------------------------------------

    def _table_bytes(self) -> int:
        return array_bytes(self._engine.state())

    def _make_engine(self) -> _native.Engine:
        limit = self.budget.limit()
        return _native.KernelEngine(
            *engine_parts(self),
            self._native_kernel,
            {
                "budget": self.budget.compiled,
                "B": 0 if limit is None else limit,
                "p": self.budget.numbers(self.rule),
                "seed": self.budget.seed_number(),
                "merge_duplicates": getattr(self.budget, "merge_duplicates", False),
                "own_class": self.rule_traits.formula == "parzen",
            },
        )

    def _native_kernel(self, d: int) -> dict[str, Any]:
        return self._at(d).native()

    def _placed(self, batch: Batch, *, learning: bool = False) -> Batch:
        """Convert to the types that the kernel loops read: float64 values, 64-bit indices."""
        placed = super()._placed(batch, learning=learning)
        if placed.dense is not None:
            dense = np.ascontiguousarray(placed.dense, dtype=np.float64)
            return Batch(placed.rows, placed.columns, dense=dense, names=placed.names)
        assert placed.csr is not None
        data, indices, starts = placed.csr
        csr = (
            np.ascontiguousarray(data, dtype=np.float64),
            np.ascontiguousarray(indices, dtype=np.int64),
            np.ascontiguousarray(starts, dtype=np.int64),
        )
        return dataclasses.replace(placed, csr=csr)


delattr(
    KernelModel, "classes"
)  # the default of the constructor's argument; without it the property of `RuleModel` would be the default


def _require(rule: Rule, readout: str | Readout) -> None:
    """Refuse a rule or readout that a kernel expansion does not support, with the reason."""
    traits = rule.traits
    if traits.by_coordinate:
        raise ParameterError(f"{rule!r} moves every weight by its own history; a kernel learner has no weights")
    if traits.soft_thresholds:
        raise ParameterError(f"{rule!r} shrinks single weights, which a kernel learner has none of; use sgd with l2")
    if traits.geometry != 2:
        raise ParameterError(f"{rule!r} has a p-norm geometry; a kernel is an inner product: use p=2")
    if traits.spread is not None:
        raise ParameterError(f"{rule!r} keeps variances of weights, which a kernel learner has none of; use pa2")
    if traits.batch_size > 1:
        raise ParameterError(f"{rule!r}: a kernel learner takes one step a round; use batch_size=1")
    if make_readout(readout, rule).name != "last":
        raise ParameterError(
            f"readout={make_readout(readout, rule).name!r}: a kernel learner predicts with its last expansion, "
            "the others would store as many; use readout='last' (and rule='perceptron' for 'pocket')"
        )


def _kernel_config(kernel: Kernel) -> tuple[Any, Array | None]:
    """The kernel as JSON, and apart from it the matrix of a precomputed kernel."""
    if isinstance(kernel, kernels.Precomputed):
        return None, kernel.gram
    for part in _all_parts(kernel):
        if isinstance(part, (kernels.Call, kernels.Precomputed)):
            reason = "holds a function" if isinstance(part, kernels.Call) else "holds a matrix inside another kernel"
            raise ParameterError(f"{kernel!r} {reason}: no model file can hold it; pickle the model instead")
    return to_config(kernel), None


def _all_parts(kernel: Kernel) -> list[Kernel]:
    return [kernel, *(each for part in kernel.parts() for each in _all_parts(part))]


def _check_numbers(config: Mapping[str, Any], s: dict[str, NDArray[Any]], classes: list[Any]) -> None:
    """Raise `DamagedFileError` if the numbers of a file break what the loops rely on."""
    floats = {key: value for key, value in s.items() if value.dtype == np.float64}
    outputs = len(classes) if config["task"] != "regression" and len(classes) > 2 else 1
    scalars, limit = saved.numbers("kernel", s["scalars"]), (config["budget"]["params"] or {}).get("B")
    counters = [value for name, value in scalars.items() if name not in ("scale", "ww", "Q")]
    for true, what in (
        (all(np.isfinite(value).all() for value in floats.values()), "a number is not finite"),
        (s["coefficients"].ndim == 2 and s["coefficients"].shape[1] == outputs, "coefficients and classes differ"),
        (scalars["scale"] != 0, "the scale is 0"),
        (all(value >= 0 for value in counters), "a counter is below 0"),  # Q, the Forgetron's damage, may be
        (limit is None or len(s["coefficients"]) <= limit, "there are more support vectors than the budget"),
        (len(set(classes)) == len(classes), "a class appears twice"),
        (isinstance(config["declared"], bool), "declared is neither true nor false"),
    ):
        if not true:
            raise DamagedFileError(f"the model's parts do not fit together: {what}; restore it from a backup")
