"""How `check_learner` makes each wrapper of the registry, and which learners the wrapper takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..learner import LearnerTraits

__all__ = ["WRAPPERS", "Wrapper", "labels_for"]

THREE = ("a", "b", "c")


@dataclasses.dataclass(frozen=True)
class Wrapper:
    make: Callable[[Any], Any]
    takes: Callable[[LearnerTraits], bool]


def _in_pipeline(learner: Any) -> Any:
    from .. import transforms
    from ..estimators.linear import LinearClassifier

    if "transform_one" in learner.traits.verbs:
        return transforms.Pipeline.of(learner, LinearClassifier())
    scales = learner.traits.values == "numbers"  # scaled numbers are not whole numbers any more
    first = transforms.StandardScaler(with_mean=False) if scales else transforms.PolynomialFeatures(1)
    return transforms.Pipeline.of(first, learner)


def _predicts(traits: LearnerTraits) -> bool:
    return traits.supervised and traits.answers in ("class", "number")


def _divides(traits: LearnerTraits) -> bool:
    return traits.supervised and traits.answers == "class" and traits.binary


def _reduction(name: str, **options: Any) -> Callable[[Any], Any]:
    def make(learner: Any) -> Any:
        from .. import reductions

        return getattr(reductions, name)(learner, **options)

    return make


def _cost_sensitive(learner: Any) -> Any:
    from .. import reductions

    method = "oaa" if learner.traits.answers == "number" else "all_pairs"
    return reductions.CostSensitive(learner, method=method, classes=list(THREE))


def _drift(name: str, **options: Any) -> Callable[[Any], Any]:
    def make(learner: Any) -> Any:
        from .. import drift

        return getattr(drift, name)(learner, **options)

    return make


WRAPPERS: dict[str, Wrapper] = {
    "Pipeline": Wrapper(_in_pipeline, lambda traits: traits.answers != "structure"),
    "OneVsAll": Wrapper(_reduction("OneVsAll"), _divides),
    "OneVsOne": Wrapper(_reduction("OneVsOne"), _divides),
    "ErrorCorrectingOutputCodes": Wrapper(_reduction("ErrorCorrectingOutputCodes", classes=list(THREE)), _divides),
    "CostSensitive": Wrapper(_cost_sensitive, lambda traits: _predicts(traits) and traits.binary),
    "FilterTree": Wrapper(_reduction("FilterTree", classes=list(THREE)), _divides),
    "ImportanceSampling": Wrapper(_reduction("ImportanceSampling"), _predicts),
    "DriftReset": Wrapper(_drift("DriftReset"), _predicts),
    "DriftAdapt": Wrapper(_drift("DriftAdapt"), _predicts),
    "DriftFade": Wrapper(_drift("DriftFade", learners=3), _predicts),
    "DriftWindow": Wrapper(_drift("DriftWindow", window=20), _predicts),
}


def labels_for(kind: str) -> tuple[str, ...]:
    """The labels of the stream on which a wrapper is checked: three for wrappers that reduce several classes to two."""
    return ("a", "b") if kind == "Pipeline" or kind.startswith("Drift") or kind == "ImportanceSampling" else THREE
