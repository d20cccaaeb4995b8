"""Naive Bayes classifiers: features are independent given the class, so that counts or moments of each suffice."""

from __future__ import annotations

from .categorical import CategoricalNB
from .counts import BernoulliNB, ComplementNB, MultinomialNB
from .gaussian import GaussianNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]
