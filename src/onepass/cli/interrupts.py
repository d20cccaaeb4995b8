"""Ctrl-C and SIGTERM wait until the current rows are learned: a row is learned completely or not at all."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """While signals are held, a signal waits. Otherwise `Interruption` is raised at once, which ends a blocking read.

    Signals are held from the beginning until `listen`, and again from `hold` on, so that nothing is raised where
    nothing catches it.
    """

    class Interruption(BaseException):
        def __init__(self, number: int) -> None:
            super().__init__(number)
            self.number = number

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.came = 0
        self._held = True
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in self.SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.came = number
        if not self._held:
            self._held = True  # the model is saved next, which a second signal must not interrupt
            raise self.Interruption(number)

    def listen(self) -> None:
        """Raise signals from here on, one that is waiting at once."""
        self._held = False
        self.check()

    def hold(self) -> None:
        self._held = True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def check(self) -> None:
        """Raise a signal that is waiting."""
        if self.came:
            self._held = True
            raise self.Interruption(self.came)
