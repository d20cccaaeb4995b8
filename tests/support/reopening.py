"""Models and their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onepass as op


def saved(model: Any, folder: Path) -> bytes:
    model.save(folder / "now.onepass")
    return (folder / "now.onepass").read_bytes()


def reopened(model: Any, folder: Path) -> Any:
    """The model as its file holds it; it must write the same file again."""
    before = saved(model, folder)
    again = op.load(folder / "now.onepass")
    assert saved(again, folder) == before
    return again
