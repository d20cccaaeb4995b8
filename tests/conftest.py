"""What tests of several files share as fixtures."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """For files that save thousands of models: that these survive a power cut is test_store's business."""
    monkeypatch.setattr("os.fsync", lambda handle: None)
