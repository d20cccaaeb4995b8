"""Naive Bayes that learns example by example: features are independent given the class, and each is only counted."""

from __future__ import annotations

from .categorical import CategoricalNB
from .counts import BernoulliNB, ComplementNB, MultinomialNB
from .gaussian import GaussianNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB"]
