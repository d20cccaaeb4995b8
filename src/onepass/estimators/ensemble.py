"""`ExpertEnsemble`: rules and parameters chosen online, in the one pass in which they are learned."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if

from ..errors import ParameterError, RowError
from ..learner import LearnerTraits, traits_of
from ..models.base import locked
from ..models.ensemble import EnsembleModel
from ..models.linear import LinearModel
from ..models.options import EnsembleOptions, shared_options
from ..rows.labels import sorted_classes
from ..scheme.rounds import Array, Rule
from .classes import ClassEstimator
from .fit_options import PassOptions
from .tables import as_classifier, as_regressor, read_labels, read_order, read_targets

__all__ = ["ExpertEnsemble"]


def _votes(self: ExpertEnsemble) -> bool:
    if self.task == "regression":
        raise AttributeError("a regression has no decision_function; use predict")
    return True


@dataclasses.dataclass(repr=False, eq=False)
class ExpertEnsemble(ClassEstimator[EnsembleModel], PassOptions, EnsembleOptions):
    """Several models learn the same stream and vote; Fixed Share over their losses gives the weights of the votes.

    Its weighted loss exceeds that of the best member, and of the best sequence of members, by little (see
    `EnsembleModel`): model selection without a second pass or a validation set, at the cost of all members.

    Parameters
    ----------
    members : rules, by name ("pa1:C=0.1", with a readout "pa1:C=0.1@average") or as objects, `LinearClassifier`s or
        `LinearRegressor`s. By default `onepass.models.portfolio`, as in
        ``onepass learn --rule auto``.
    task : "auto", "binary" or "multiclass" for classes; "regression" for numbers.
    eta : how fast losses move the weights (0.1 for classes, 0.5 for numbers).
    alpha : the share of every weight that all members get in each round: 0 follows the best member of the whole
        stream (Hedge), more forgets faster.
    fit_intercept, hash_bits, max_classes, max_features : of members given as rules.
    passes, shuffle, random_state : as in `LinearClassifier`.
    """

    _model_kind = "EnsembleModel"

    def _new_model(self, classes: list[Any] | None = None) -> Any:
        members = None if self.members is None else [_as_member(member) for member in self.members]
        return EnsembleModel(**shared_options(self, EnsembleModel) | {"members": members}, classes=classes)

    @property
    def _regresses(self) -> bool:
        return bool(self.task == "regression")

    # -- the scikit-learn façade ---------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn afresh from a table."""
        with self._all_or_nothing():
            table = self._validated(X, reset=True)
            answers: NDArray[Any] = read_targets(y, table.rows) if self._regresses else read_labels(y, table.rows)
            importance = self._weights_of(sample_weight, table, whole=True)
            model = self._begin() if self._regresses else self._begin_with(sorted_classes(answers))
            passes, order, generator = read_order(self.passes, self.shuffle, self.random_state)
            table.require_finite()
            for _ in range(passes):
                if order == "sequential":
                    model.learn_many(table, answers, importance)
                    continue
                n = table.rows
                at = generator.permutation(n) if order == "shuffle" else generator.randint(n, size=n)
                try:
                    model.learn_many(table.take(at), answers[at], None if importance is None else importance[at])
                except RowError as error:
                    raise error.at(int(at[error.row])) from None
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning, bit for bit as `learn_one` row by row. The first call for classes must declare them."""
        with self._all_or_nothing():
            table = self._validated(X, reset=self._model is None)
            answers: NDArray[Any] = read_targets(y, table.rows) if self._regresses else read_labels(y, table.rows)
            model = (self._model or self._begin()) if self._regresses else self._declare_classes(classes)
            model.learn_many(table, answers, self._weights_of(sample_weight, table))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self._scores(X)[:, 0]) if self._regresses else super().predict(X)

    @available_if(_votes)  # type: ignore[untyped-decorator]
    @locked
    def decision_function(self, X: Any) -> Array:
        """Shares of the votes: for two classes their difference, one per class for more."""
        return super().decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, or R² of a regression."""
        measure = r2_score if self._regresses else accuracy_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def score_one(self, x: Any) -> Any:
        return (self._model or self._new_model()).score_one(x)

    def score_then_learn(self, X: Any, y: Any, importance: Any = None) -> list[tuple[list[Any], Array]]:
        """The shares of votes of each row before learning it, in parts: (classes known then, scores)."""
        with self._learning() as model:
            return model.score_then_learn(X, y, importance)

    # -- what was learned ----------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the scores."""
        if self._regresses:
            raise AttributeError("a regression has no classes")
        return super().classes_

    @property
    def members_(self) -> list[LinearModel]:
        """The models."""
        return list(self._learned().members)

    @property
    def member_weights_(self) -> Array:
        """The weight of each member; 0 for one that was retired because it overflowed."""
        return np.array(self._learned().member_weights)

    @property
    def standing_(self) -> list[tuple[str, float]]:
        """Members and their weights, the heaviest first."""
        return self._learned().standing()

    @property
    def best_(self) -> LinearModel:
        """The member with the largest weight."""
        return self._learned().heaviest

    @property
    def weights_(self) -> dict[Any, Any]:
        """The weights of the features in the member with the largest weight."""
        return self.best_.named_weights()

    def explain_one(self, x: Any, label: Any = None) -> dict[Any, float]:
        """Each feature's contribution to the score of the member with the largest weight."""
        return self.best_.explain_one(x, label)

    def flush(self) -> None:
        for member in [] if self._model is None else self.members_:
            member.flush()

    @property
    def traits(self) -> LearnerTraits:
        verbs = {"score_one", "explain_one", "predict_then_learn", "score_then_learn"}
        return LearnerTraits("number" if self._regresses else "class", frozenset(verbs), ordered=True)

    def predict_then_learn(self, X: Any, y: Any, importance: Any = None) -> Any:
        """For each row the prediction made just before that row is learned: a prequential run in one call."""
        with self._learning() as model:
            return model.predict_then_learn(X, y, importance)

    @classmethod
    def of_model(cls, model: Any) -> Self:
        made = super().of_model(model)
        made.members = None  # what they are the model knows
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return as_regressor(tags) if self._regresses else as_classifier(tags)


def _as_member(member: Any) -> Any:
    """A member as `EnsembleModel` takes it."""
    traits = traits_of(member)
    if isinstance(member, str | Rule):
        return member
    if traits is not None and traits.by_rule and traits.linear and traits.answers in ("class", "number"):
        return member.new_model(member.classes if getattr(member, "declared", False) else None)
    raise ParameterError(
        f"member {member!r:.60}: expected a rule, its name, a LinearClassifier, a LinearRegressor or a LinearModel"
    )
