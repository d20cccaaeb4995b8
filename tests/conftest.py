"""What tests of several files share as fixtures."""

from __future__ import annotations

import signal

import pytest

# Where tests run in the background of a script, Ctrl-C is ignored, and by every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """For files that save thousands of models: that these survive a power cut is test_store's business."""
    monkeypatch.setattr("os.fsync", lambda handle: None)
