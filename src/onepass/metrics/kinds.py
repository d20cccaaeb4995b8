"""The metrics. Each declares the statistic that it reads, and computes its value from it."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from ..scheme.parameters import Parameters, choice, number
from . import scores
from .outcomes import Array, Labels
from .statistics import Confusion, MeanLoss, Moments, Ranks, Seen, Statistic

__all__ = [
    "F1",
    "MAE",
    "MAP",
    "METRICS",
    "NDCG",
    "R2",
    "RMSE",
    "Accuracy",
    "AveragePrecision",
    "BalancedAccuracy",
    "Error",
    "Hamming",
    "Hinge",
    "Kappa",
    "LogLoss",
    "Metric",
    "Precision",
    "QuantileLoss",
    "Recall",
    "RocAuc",
    "SetError",
    "SetF1",
    "TopK",
]


@dataclasses.dataclass(repr=False)
class Metric(Parameters):
    """Base of all metrics: `kind` is the kind of predictions, `needs` what is needed in addition to them."""

    family: ClassVar[str] = "metric"
    name: ClassVar[str] = ""
    kind: ClassVar[str] = "classes"  # or "numbers", "rankings", "sets"
    needs: ClassVar[str] = ""  # "scores" of any kind, "margins" (scores on the scale of the loss), "probabilities"
    higher_is_better: ClassVar[bool] = True
    percent: ClassVar[bool] = False  # shown as a percentage

    def statistic(self) -> Statistic:
        raise NotImplementedError

    def value(self, state: Any, labels: Labels) -> float:
        """The value; NaN where it is not defined, for instance without examples."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The name, with the parameters that differ from the defaults, as `make` parses it."""
        usual = {field.name: field.default for field in dataclasses.fields(self)}
        own = [f"{name}={value}" for name, value in self.get_params().items() if value != usual[name]]
        return self.name + (":" + ",".join(own) if own else "")

    def show(self, value: float) -> str:
        """A value as text."""
        if np.isnan(value):
            return "–"
        return f"{value:.2%}" if self.percent else f"{value:.4g}"


class _Mean(Metric):
    def value(self, state: Any, labels: Labels) -> float:
        return float(state[0] / state[1]) if state[1] > 0 else np.nan


@dataclasses.dataclass(repr=False)
class Error(_Mean):
    """The share of wrong predictions."""

    name, higher_is_better, percent = "error", False, True

    def statistic(self) -> Statistic:
        return MeanLoss(scores.zero_one)


@dataclasses.dataclass(repr=False)
class Accuracy(_Mean):
    """The share of right predictions."""

    name, percent = "accuracy", True

    def statistic(self) -> Statistic:
        return MeanLoss(scores.zero_one)

    def value(self, state: Any, labels: Labels) -> float:
        return 1.0 - super().value(state, labels)


@dataclasses.dataclass(repr=False)
class BalancedAccuracy(Metric):
    """The mean of the recalls of the classes that occurred."""

    name, percent = "balanced_accuracy", True

    def statistic(self) -> Statistic:
        return Confusion()

    def value(self, state: Array, labels: Labels) -> float:
        support = np.sum(state, axis=1)
        return _mean((np.diag(state) / np.where(support > 0, support, 1.0))[support > 0])


@dataclasses.dataclass(repr=False)
class Kappa(Metric):
    """Cohen's κ: (p_agree − p_chance)/(1 − p_chance), chance being that of the same margins."""

    name = "kappa"

    def statistic(self) -> Statistic:
        return Confusion()

    def value(self, state: Array, labels: Labels) -> float:
        total = np.sum(state)
        if total == 0:
            return np.nan
        agree = np.trace(state) / total
        chance = np.sum(np.sum(state, axis=0) * np.sum(state, axis=1)) / (total * total)
        return float((agree - chance) / (1.0 - chance)) if chance < 1.0 else np.nan


@dataclasses.dataclass(repr=False)
class _Retrieval(Metric):
    """average="binary": of the positive class (`positive`, by default the larger of two labels); "macro": the mean over
    the classes; "weighted": that weighted by how often each occurred; "micro": over all decisions together.
    "auto" is binary for two classes and macro for more. 0 where nothing could be counted."""

    average: str = choice("auto", "auto", "binary", "macro", "weighted", "micro")
    positive: Any = None
    percent: ClassVar[bool] = True

    def statistic(self) -> Statistic:
        return Confusion()

    def ratio(self, hit: Array, predicted: Array, occurred: Array) -> Array:
        raise NotImplementedError

    def value(self, state: Array, labels: Labels) -> float:
        hit, predicted, occurred = np.diag(state)[1:], np.sum(state, axis=0)[1:], np.sum(state, axis=1)[1:]
        if not np.any(occurred):
            return np.nan
        average = self.average
        if average == "auto":
            average = "binary" if np.count_nonzero(occurred + predicted) <= 2 else "macro"
        if average == "binary":
            code = labels.positive(self.positive)
            return float(self.ratio(hit, predicted, occurred)[code - 1]) if 0 < code <= len(hit) else 0.0
        if average == "micro":
            return float(self.ratio(*(np.array([np.sum(part)]) for part in (hit, predicted, occurred)))[0])
        there = occurred + predicted > 0
        ratios = self.ratio(hit, predicted, occurred)[there]
        return _mean(ratios) if average == "macro" else float(np.sum(ratios * occurred[there]) / np.sum(occurred))


def _quotient(a: Array, b: Array) -> Array:
    return np.asarray(a / np.where(b > 0, b, 1.0))


class Precision(_Retrieval):
    """The share of examples predicted as the class that are of the class."""

    name = "precision"

    def ratio(self, hit: Array, predicted: Array, occurred: Array) -> Array:
        return _quotient(hit, predicted)


class Recall(_Retrieval):
    """The share of examples of the class that were predicted as the class."""

    name = "recall"

    def ratio(self, hit: Array, predicted: Array, occurred: Array) -> Array:
        return _quotient(hit, occurred)


class F1(_Retrieval):
    """The harmonic mean of precision and recall."""

    name = "f1"

    def ratio(self, hit: Array, predicted: Array, occurred: Array) -> Array:
        return _quotient(2.0 * hit, predicted + occurred)


@dataclasses.dataclass(repr=False)
class LogLoss(_Mean):
    """The mean of −ln p(y)."""

    name, needs, higher_is_better = "log_loss", "probabilities", False

    def statistic(self) -> Statistic:
        return MeanLoss(scores.log)


@dataclasses.dataclass(repr=False)
class Hinge(_Mean):
    """The mean of max(0, 1 − margin), the margin being the true class's score less the best other's."""

    name, needs, higher_is_better = "hinge", "margins", False

    def statistic(self) -> Statistic:
        return MeanLoss(scores.hinge)


@dataclasses.dataclass(repr=False)
class TopK(_Mean):
    """The share of examples whose class is among the `k` of the highest scores (a tie counts against)."""

    name, needs, percent = "top_k", "scores", True
    k: int = number(5, at_least=1, integer=True)

    def statistic(self) -> Statistic:
        return MeanLoss(scores.miss, float(self.k))

    def value(self, state: Any, labels: Labels) -> float:
        return 1.0 - super().value(state, labels)


@dataclasses.dataclass(repr=False)
class _OfRanks(Metric):
    """With two classes, of the positive one; with more, the mean over the classes of one against the rest.

    Exact over a sliding window, and over any period or stream of at most `limit` different scores; beyond, neighbouring
    scores are merged, in O(limit) memory for each class.
    """

    needs: ClassVar[str] = "scores"
    positive: Any = None
    limit: int = number(1 << 14, at_least=16, integer=True)

    def statistic(self) -> Ranks:
        return Ranks(int(self.limit))

    def each(self, state: Seen, labels: Labels, what: str) -> float:
        codes = (
            [labels.positive(self.positive)] if len(labels) <= 2 or self.positive is not None else list(state.tables)
        )
        tables = [table for code in codes if (table := self.statistic().table(state, code)) is not None]
        values = np.array([getattr(table, what)() for table in tables])
        return _mean(values[~np.isnan(values)])


class RocAuc(_OfRanks):
    """The probability that an example of the class scores above one that is not, equal scores counting half.

    `doubt` bounds the error from merging scores: about 1/limit where scores do not drift.
    """

    name = "auc"

    def value(self, state: Any, labels: Labels) -> float:
        return self.each(state, labels, "auc")

    def doubt(self, state: Any, labels: Labels) -> float:
        return self.each(state, labels, "auc_doubt")


class AveragePrecision(_OfRanks):
    """Σ (R_n − R_{n−1}) P_n over the thresholds n: the area under precision against recall, without interpolation."""

    name = "average_precision"

    def value(self, state: Any, labels: Labels) -> float:
        return self.each(state, labels, "average_precision")


@dataclasses.dataclass(repr=False)
class MAP(_Mean):
    """Mean average precision over queries (or over the label sets of examples); those without relevant items are left
    out."""

    name, kind, needs = "map", "rankings", "scores"

    def statistic(self) -> Statistic:
        return MeanLoss(scores.query_average_precision)


@dataclasses.dataclass(repr=False)
class NDCG(_Mean):
    """Normalised discounted cumulative gain of the first `k` over queries; gain="linear" or "exponential" (2^y − 1)."""

    name, kind, needs = "ndcg", "rankings", "scores"
    k: int | None = number(None, at_least=1, integer=True)
    gain: str = choice("linear", "linear", "exponential")

    def statistic(self) -> Statistic:
        loss = scores.query_ndcg if self.gain == "linear" else scores.query_ndcg_exponential
        return MeanLoss(loss, np.inf if self.k is None else float(self.k))


@dataclasses.dataclass(repr=False)
class Hamming(_Mean):
    """The share of wrong decisions whether a label is in an example's set, over all labels seen."""

    name, kind, higher_is_better, percent = "hamming", "sets", False, True

    def statistic(self) -> Statistic:
        return MeanLoss(scores.set_difference)

    def value(self, state: Any, labels: Labels) -> float:
        return super().value(state, labels) / max(len(labels), 1)


@dataclasses.dataclass(repr=False)
class SetError(_Mean):
    """The share of examples whose set was not predicted exactly."""

    name, kind, higher_is_better, percent = "set_error", "sets", False, True

    def statistic(self) -> Statistic:
        return MeanLoss(scores.set_unequal)


@dataclasses.dataclass(repr=False)
class SetF1(_Mean):
    """The mean over examples of 2|T ∩ P|/(|T| + |P|), T the labels and P those predicted."""

    name, kind = "set_f1", "sets"

    def statistic(self) -> Statistic:
        return MeanLoss(scores.set_f1)


@dataclasses.dataclass(repr=False)
class MAE(_Mean):
    """The mean of |y − ŷ|."""

    name, kind, higher_is_better = "mae", "numbers", False

    def statistic(self) -> Statistic:
        return MeanLoss(scores.absolute)


@dataclasses.dataclass(repr=False)
class RMSE(_Mean):
    """The root of the mean of (y − ŷ)²."""

    name, kind, higher_is_better = "rmse", "numbers", False

    def statistic(self) -> Statistic:
        return MeanLoss(scores.squared)

    def value(self, state: Any, labels: Labels) -> float:
        return float(np.sqrt(super().value(state, labels)))


@dataclasses.dataclass(repr=False)
class R2(Metric):
    """1 − Σ (y − ŷ)²/Σ (y − mean)²: 0 is as good as the mean of the same examples, 1 is perfect."""

    name, kind = "r2", "numbers"

    def statistic(self) -> Statistic:
        return Moments()

    def value(self, state: Array, labels: Labels) -> float:
        return float(1.0 - state[3] / state[2]) if state[2] > 0 else np.nan


@dataclasses.dataclass(repr=False)
class QuantileLoss(_Mean):
    """The mean pinball loss: q·r for r = y − ŷ ≥ 0, (q − 1)·r below."""

    name, kind, higher_is_better = "quantile", "numbers", False
    q: float = number(0.5, above=0, below=1)

    def statistic(self) -> Statistic:
        return MeanLoss(scores.pinball, float(self.q))


@dataclasses.dataclass(repr=False)
class Above(_Mean):
    """The share of ŷ > y. One-class: y is 0 and ŷ = ‖x − w‖ − radius, so the share of rows outside."""

    name, kind, higher_is_better, percent = "above", "numbers", False, True

    def statistic(self) -> Statistic:
        return MeanLoss(scores.above)


@dataclasses.dataclass(repr=False)
class Excess(_Mean):
    """The mean of max(0, ŷ − y). One-class: the mean loss max(0, ‖x − w‖ − radius)."""

    name, kind, higher_is_better = "excess", "numbers", False

    def statistic(self) -> Statistic:
        return MeanLoss(scores.excess)


def _mean(values: Array) -> float:
    return float(np.mean(values)) if len(values) else np.nan


_ALL: tuple[type[Metric], ...] = (
    Error,
    Accuracy,
    BalancedAccuracy,
    Kappa,
    Precision,
    Recall,
    F1,
    LogLoss,
    RocAuc,
    AveragePrecision,
    Hinge,
    TopK,
    MAP,
    NDCG,
    Hamming,
    SetError,
    SetF1,
    MAE,
    RMSE,
    R2,
    QuantileLoss,
    Above,
    Excess,
)

METRICS: dict[str, type[Metric]] = {metric.name: metric for metric in _ALL}
