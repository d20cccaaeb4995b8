"""Mixtures of distributions, learned by stepwise EM from a stream or by batch EM from a table."""

from __future__ import annotations

from .bernoulli import BernoulliMixture
from .gaussian import GaussianMixture

__all__ = ["BernoulliMixture", "GaussianMixture"]
