"""Vowpal Wabbit itself, one example at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from .streams import Example


def progressive(flags: str, stream: Iterable[Example]) -> np.ndarray:
    """What `vw FLAGS` predicts of every example before it learns it."""
    workspace = pytest.importorskip("vowpalwabbit").Workspace(f"--quiet {flags}")
    out = []
    for x, y, c in stream:
        features = " ".join(f"f{j}:{float(value)!r}" for j, value in enumerate(x) if value)
        example = workspace.example(f"{y} {c!r} | {features}")
        out.append(workspace.predict(example))
        workspace.learn(example)
        workspace.finish_example(example)
    workspace.finish()
    return np.array(out)
