"""`LinearModel`: a rule over one weight for each feature; no scikit-learn."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..learner import LearnerTraits
from ..rows.batches import Batch
from ..scheme.rounds import Array
from . import files, scoring, weights
from .option_values import engine_parts
from .options import ClassOptions, LimitOptions, LinearOptions, OneClassOptions, ThresholdOptions, option
from .rule_model import RuleModel

__all__ = ["LinearModel"]

ESTIMATORS = {
    "multilabel": "MultilabelClassifier",
    "oneclass": "OneClass",
    "ranking": "Ranker",
    "regression": "LinearRegressor",
    "structured": "StructuredLearner",
}


@dataclasses.dataclass(repr=False, eq=False)
class LinearModel(  # type: ignore[misc]  # its options are objects, not names, once they are checked
    RuleModel, LimitOptions, OneClassOptions, ThresholdOptions, ClassOptions, LinearOptions
):
    """A rule, its weights, its feature names and its labels.

    task="auto" classifies and grows with the classes that appear; "binary" and "multiclass" do the same but fix the
    kind; "regression" predicts a number; "ranking" and "structured" learn directions (`learn_direction`).
    fit_intercept="auto" is True where an intercept does not cancel.

    Classes that are not declared are registered when they first appear, at most `max_classes`. The default is a
    million, of which a hundred may be fractions: more of those look like measurements, and are refused.

    There are at most `max_features` features that are not hashed; the default is ONEPASS_MAX_FEATURES in the
    environment, or 2²⁶. A row with more is refused, so that one wrong index does not take all memory.

    If there is one score (two classes, or a number), `base` is an initial prediction: the score of the example is
    base + ⟨w, x⟩, in predictions and in learning. With two classes a positive base favours the second.
    """

    task: str = option("auto", None)
    _: dataclasses.KW_ONLY
    classes: dataclasses.InitVar[Iterable[Hashable] | None] = None

    def __repr__(self) -> str:
        return f"LinearModel({self.rule!r}, task={self.task!r})"

    @property
    def traits(self) -> LearnerTraits:
        base = super().traits
        verbs = base.verbs | {"explain_one"}
        return LearnerTraits(base.answers, verbs, supervised=base.supervised, by_rule=True, linear=True)

    @property
    def estimator_kind(self) -> str:
        return ESTIMATORS.get(self.task, "LinearClassifier")

    # -- weights ---------------------------------------------------------------------------------------------------

    def weights(self, *, last: bool = False) -> tuple[Array, Array]:
        """The predicting weights (rows × features) and intercepts (rows); with `last`, the current ones."""
        return weights.weights(self, last)

    def met_weights(self, *, last: bool = False) -> tuple[NDArray[np.intp], Array, Array]:
        """The features whose weights have changed, these weights as in `weights`, and the intercepts.

        For large hash tables, most of which is empty.
        """
        return weights.met_weights(self, last)

    def weights_at(self, indices: NDArray[np.int64]) -> Array:
        """The predicting weights of some features of a one-row model: cost in proportion to their number."""
        return weights.weights_at(self, indices)

    def named_weights(self) -> dict[Any, Any]:
        """name → weight; with more than two classes label → name → weight. Positions or hashes where unnamed."""
        return weights.named_weights(self)

    def explain_one(self, x: Any, label: Hashable | None = None) -> dict[Any, float]:
        """Each feature's contribution to the score, largest first; the intercept under "intercept".

        With more than two classes, the score of `label` (by default the predicted one).
        """
        return weights.explain_one(self, x, label)

    def add_rows(self, batch: Batch, coefficients: Array) -> None:
        """w ← w + Σ coefficients_i x_i in one step (batch learning); one-row models."""
        weights.add_rows(self, batch, coefficients)

    def distances(self, X: Any) -> Array:
        """One-class: ‖x − w‖ of every row."""
        return scoring.distances(self, X)

    # -- internals ----------------------------------------------------------------------------------------------------

    def _table_bytes(self) -> int:
        return int(self._engine.table_bytes)

    def _make_engine(self) -> _native.Engine:
        return _native.Engine(*engine_parts(self))

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        return files.from_state(cls, config, arrays)

    def _learned_places(self) -> NDArray[np.intp]:
        places, w, _ = self.met_weights(last=True)
        return places[w.any(axis=0)]


delattr(
    LinearModel, "classes"
)  # the default of the constructor's argument; without it the property of `RuleModel` would be the default
