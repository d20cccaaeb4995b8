"""Kernels K(x, z), feature maps that approximate them, and budgets for learners that store examples."""

from __future__ import annotations

from .algebra import Constant, Cosine, Kernel, Linear, Normalized, Product, Sum
from .functions import (
    KERNELS,
    RBF,
    Box,
    Call,
    Chi2,
    Chi2Exp,
    Epanechnikov,
    HistogramIntersection,
    Laplacian,
    Polynomial,
    Precomputed,
    Sigmoid,
    chi2_gamma,
    make,
)

__all__ = [
    "KERNELS",
    "RBF",
    "Box",
    "Call",
    "Chi2",
    "Chi2Exp",
    "Constant",
    "Cosine",
    "Epanechnikov",
    "HistogramIntersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Normalized",
    "Polynomial",
    "Precomputed",
    "Product",
    "Sigmoid",
    "Sum",
    "chi2_gamma",
    "make",
]
