"""Streams to learn from: generators, and real sets.

The generators produce the same examples for the same seed, whatever the size of chunks, and store nothing; `load` reads
real sets from a folder, the user's cache, or their public home. All have chunks(size) of (X, y), and give (x, y) when
iterated.

>>> from onepass import datasets
>>> stream = datasets.RotatingHyperplane(5000, d=3)
>>> X, y = next(stream.chunks(1000))
>>> X.shape, y.shape
((1000, 3), (1000,))
>>> x, y = next(iter(stream))  # one at a time, by name
>>> list(x), y
(['x0', 'x1', 'x2'], 0)
>>> stream = datasets.Switch(datasets.SEA(1000, thresholds=(8,)), datasets.SEA(1000, thresholds=(9.5,)), width=200)
>>> len(list(stream))
1000
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import lazily_loaded

if TYPE_CHECKING:
    from ..rows.rows import CSR
    from .catalogue import SETS
    from .concepts import LED, RBF, STAGGER, Agrawal
    from .drift import Recurring, Switch
    from .generators import BLOCK, SEA, Checkerboard, RotatingHyperplane, SparseText, Synthetic
    from .real_sets import RealStream, load

__all__ = [
    "BLOCK",
    "CSR",
    "LED",
    "RBF",
    "SEA",
    "SETS",
    "STAGGER",
    "Agrawal",
    "Checkerboard",
    "RealStream",
    "Recurring",
    "RotatingHyperplane",
    "SparseText",
    "Switch",
    "Synthetic",
    "load",
]

__getattr__ = lazily_loaded(
    __name__,
    {
        "SETS": "catalogue",
        "Recurring": "drift",
        "Switch": "drift",
        "RealStream": "real_sets",
        "load": "real_sets",
        "CSR": ".rows.rows",
    }
    | dict.fromkeys(("LED", "RBF", "STAGGER", "Agrawal"), "concepts")
    | dict.fromkeys(
        ("BLOCK", "SEA", "Checkerboard", "RotatingHyperplane", "SparseText", "Synthetic"),
        "generators",
    ),
)
