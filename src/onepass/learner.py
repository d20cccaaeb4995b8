"""`Learner`: the contract of everything that learns. `LearnerTraits`: what a learner says about itself, as data.

Models, estimators, transforms, pipelines, reductions and drift wrappers keep this contract. A wrapper asks `traits`,
never the class. `onepass.check_learner(learner)` tests the whole contract.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol, Self, runtime_checkable

from numpy.typing import NDArray

__all__ = ["ANSWERS", "FORMS", "VALUES", "VERBS", "Learner", "LearnerTraits", "State", "traits_of"]

# What a file holds of a learner: a configuration that JSON can hold, and arrays.
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]

# What `predict_one` answers; a transform answers with a row (`transform_one`).
ANSWERS = ("class", "number", "labels", "outlier", "rank", "structure", "cluster", "row")

# What rows may hold: any finite numbers, whole numbers from 0, only 0 and 1, or texts.
VALUES = ("numbers", "counts", "bits", "texts")

# In which forms rows may come: vectors and tables, sparse (CSR) rows, mappings of names to values.
FORMS = ("rows", "csr", "names")

# Verbs beyond learn and predict: a learner has those that it declares.
VERBS = (
    "score_one",
    "predict_proba_one",
    "predict_interval",
    "anomaly_score_one",
    "transform_one",
    "explain_one",
    "predict_then_learn",
    "score_then_learn",
)


@dataclasses.dataclass(frozen=True)
class LearnerTraits:
    """What a learner can do.

    `by_rule`: it is, or makes by `new_model(classes)`, one `RuleModel`: a rule over linear or kernel weights.
    `linear`: that model has a weight for each feature.
    `ordered`: `fit` goes through its data as `passes`, `shuffle` and `random_state` say.
    `weighted`: `learn_one` takes an importance.
    `binary`: a classifier that can tell two classes apart, as the base of a reduction must.
    `values`, `forms`: what rows may hold, and in which forms they may come. `needs`: names that every row must have.
    """

    answers: str
    verbs: frozenset[str] = frozenset()
    supervised: bool = True
    by_rule: bool = False
    linear: bool = False
    ordered: bool = False
    weighted: bool = True
    binary: bool = True
    values: str = "numbers"
    forms: tuple[str, ...] = FORMS
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, given, known in (
            ("answers", {self.answers}, ANSWERS),
            ("verbs", self.verbs, VERBS),
            ("values", {self.values}, VALUES),
            ("forms", self.forms, FORMS),
        ):
            if not set(given) <= set(known):
                raise ValueError(f"LearnerTraits({name}={given!r}): expected some of {', '.join(known)}")


@runtime_checkable
class Learner(Protocol):
    """What every learner offers. Prediction changes nothing; a refused call leaves the learner as it was.

    A transform has `transform_one` and `transform_many` in place of the two predictions, and learns without y.
    """

    @property
    def traits(self) -> LearnerTraits: ...

    @property
    def nbytes(self) -> int:
        """Bytes of what was learned, as held in memory."""
        ...

    def learn_one(self, x: Any, /, *more: Any) -> None: ...

    def learn_many(self, X: Any, /, *more: Any) -> None:
        """Bit for bit the loop of `learn_one`."""
        ...

    def state(self) -> State:
        """Everything, learned or not; `from_state` resumes bit for bit."""
        ...

    @classmethod
    def from_state(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The learner that `state` described; raises `DamagedFileError` where the parts do not fit together."""
        ...

    def copy(self) -> Self:
        """An independent learner in the same state."""
        ...

    def save(self, path: Any) -> None:
        """Write a file that `onepass.load` opens."""
        ...


def traits_of(learner: Any) -> LearnerTraits | None:
    """The traits of a learner of ours; None for any other object."""
    traits = getattr(learner, "traits", None)
    return traits if isinstance(traits, LearnerTraits) else None
