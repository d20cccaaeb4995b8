"""Naive Bayes over counts: `MultinomialNB`, `ComplementNB`, `BernoulliNB`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...scheme.parameters import Parameters, flag, number
from ...scheme.rounds import Array
from .base import CountingLearner

__all__ = ["BernoulliNB", "ComplementNB", "MultinomialNB"]


@dataclasses.dataclass(repr=False)
class _Smoothing(Parameters):
    alpha: float = number(1.0, above=0)
    forgetting: float = number(1.0, above=0, at_most=1)


@dataclasses.dataclass(repr=False)
class _Complement(_Smoothing):
    norm: bool = flag(False)


@dataclasses.dataclass(repr=False)
class _Bernoulli(_Smoothing):
    binarize: float = number(0.0, at_least=0)


class MultinomialNB(CountingLearner):
    """For rows of counts: ln P(c, x) = ln P(c) + Σ_i x_i ln θ_ci, θ_ci = (N_ci + α)/(Σ_j N_cj + α d).

    d is the number of features so far; it grows with new names. An unknown name has N = 0 in every class.

    Parameters
    ----------
    alpha : α, added to every count.
    fit_prior : whether P(c) is the frequency of the class; otherwise it is uniform.
    class_prior : P(c) of each class, in the order of `classes_`.
    forgetting : every count is multiplied by it at each example; below 1, old examples are forgotten.
    """

    _statistics: ClassVar[str] = "counts"
    _positive: ClassVar[bool] = True
    _Parameters = _Smoothing

    traits = dataclasses.replace(CountingLearner.traits, values="counts")

    def __init__(
        self, alpha: float = 1.0, *, fit_prior: bool = True, class_prior: Any = None, forgetting: float = 1.0
    ) -> None:
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.forgetting = forgetting

    def _formula(self) -> tuple[str, float]:
        return "multinomial", float(self.alpha)

    def _tables_of(self, learned: Mapping[str, Array], unit: float) -> Any:
        smoothed = learned["count"] + self.alpha * unit
        return np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True))

    def _likelihood(self, tables: Any, X: Any) -> Array:
        return np.asarray(X @ tables.T)

    @property
    def feature_count_(self) -> Array:
        """N: how often each feature occurred in each class."""
        state = self._learned()
        return np.asarray(state._counter.state()["count"] / state._counter.unit)

    @property
    def feature_log_prob_(self) -> Array:
        """ln θ: the score that a count of 1 adds to each class."""
        state = self._learned()
        return np.asarray(self._tables_of(state._counter.state(), state._counter.unit))


class ComplementNB(MultinomialNB):
    """The score of a class uses the counts of all other classes c̄ (Rennie, Shih, Teevan and Karger 2003). That has
    less bias if the sizes of the classes differ. The score is −Σ_i x_i ln θ_c̄i, θ_c̄i = (N_c̄i + α)/(Σ_j N_c̄j + α d).

    Parameters
    ----------
    alpha : α, added to every count.
    norm : whether the weights ln θ of a class are divided by their sum.
    fit_prior, class_prior : the prior, which is used only while there is one class.
    forgetting : every count is multiplied by it at each example; below 1, old examples are forgotten.
    """

    _Parameters = _Complement

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        norm: bool = False,
        fit_prior: bool = True,
        class_prior: Any = None,
        forgetting: float = 1.0,
    ) -> None:
        super().__init__(alpha, fit_prior=fit_prior, class_prior=class_prior, forgetting=forgetting)
        self.norm = norm

    def _formula(self) -> tuple[str, float]:
        return "normed_complement" if self.norm else "complement", float(self.alpha)

    def _tables_of(self, learned: Mapping[str, Array], unit: float) -> Any:
        others = learned["count"].sum(axis=0) + self.alpha * unit - learned["count"]
        logged = np.log(others) - np.log(others.sum(axis=1, keepdims=True))
        if not self.norm:
            return -logged
        if logged.shape[1] == 1:  # ln θ = 0: no class differs from the others
            return np.zeros_like(logged)
        return logged / logged.sum(axis=1, keepdims=True)

    def _prior_of(self, state: Any) -> Array:
        prior = super()._prior_of(state)
        return prior if len(prior) == 1 else np.zeros(len(prior))


class BernoulliNB(CountingLearner):
    """For features that are present or absent: p_ci = (N_ci + α)/(n_c + 2α).

    N_ci is how often x_i > `binarize` in class c. Absent features count, too:
    ln P(c, x) = ln P(c) + Σ_i [b_i ln p_ci + (1 − b_i) ln(1 − p_ci)].

    Parameters
    ----------
    alpha : α, added to both counts.
    binarize : a feature with a larger value is present; at least 0, because absent features are 0.
    fit_prior : whether P(c) is the frequency of the class; otherwise it is uniform.
    class_prior : P(c) of each class, in the order of `classes_`.
    forgetting : every count is multiplied by it at each example; below 1, old examples are forgotten.
    """

    _statistics: ClassVar[str] = "presence"
    _Parameters = _Bernoulli

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        binarize: float = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
        forgetting: float = 1.0,
    ) -> None:
        self.alpha = alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.forgetting = forgetting

    def _formula(self) -> tuple[str, float]:
        return "bernoulli", float(self.alpha)

    def _tables_of(self, learned: Mapping[str, Array], unit: float) -> Any:
        a = self.alpha * unit
        mass = learned["mass"][:, np.newaxis]
        there = np.log(learned["count"] + a) - np.log(mass + 2 * a)
        absent = np.log(np.maximum(mass - learned["count"], 0.0) + a) - np.log(mass + 2 * a)
        return there - absent, absent.sum(axis=1)

    def _likelihood(self, tables: Any, X: Any) -> Array:
        weights, absent = tables
        if hasattr(X, "tocsr"):
            X = X.copy()
            X.data = (X.data > self.binarize).astype(np.float64)
            return np.asarray(X @ weights.T + absent)
        return np.asarray((X > self.binarize).astype(np.float64) @ weights.T + absent)

    @property
    def feature_count_(self) -> Array:
        """N: in how many examples of each class the feature was present."""
        state = self._learned()
        return np.asarray(state._counter.state()["count"] / state._counter.unit)
