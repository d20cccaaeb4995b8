"""Vowpal Wabbit itself, one example at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from support.extras import require_extra

from .streams import Example


def progressive(flags: str, stream: Sequence[Example], bases: Sequence[float] | None = None) -> np.ndarray:
    """What `vw FLAGS` predicts of every example before it learns it; `bases` are where the predictions begin."""
    workspace = require_extra("vowpalwabbit").Workspace(f"--quiet {flags}")
    out = []
    for (x, y, c), base in zip(stream, bases or [0.0] * len(stream), strict=True):
        features = " ".join(f"f{j}:{float(value)!r}" for j, value in enumerate(x) if value)
        example = workspace.example(f"{y} {c!r} {base!r} | {features}")
        out.append(workspace.predict(example))
        workspace.learn(example)
        workspace.finish_example(example)
    workspace.finish()
    return np.array(out)
