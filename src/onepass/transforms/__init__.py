"""Transforms of examples, learned from the stream, and chains of them: `StandardScaler() | LinearClassifier("pa1")`."""

from __future__ import annotations

from .encoding import FeatureHasher, OneHotEncoder
from .pipeline import Pipeline
from .products import Interactions, PolynomialFeatures
from .scaling import MinMaxScaler, StandardScaler
from .tasks import TaskFeatures
from .text import NGrams

__all__ = [
    "FeatureHasher",
    "Interactions",
    "MinMaxScaler",
    "NGrams",
    "OneHotEncoder",
    "Pipeline",
    "PolynomialFeatures",
    "StandardScaler",
    "TaskFeatures",
]
