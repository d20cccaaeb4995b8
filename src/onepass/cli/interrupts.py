"""Ctrl-C and SIGTERM wait until some rows are learned: a row is learned whole or not at all."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

__all__ = ["Interrupts"]


class Interrupts:
    """While held, a signal waits; otherwise it is raised as `Came` at once, so that a read that blocks ends.

    Held from the beginning until `listen`, and again from `hold` on: where nobody catches it, nothing is raised.
    """

    class Came(BaseException):
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
            self._held = True  # next the model is saved; a second signal must not interrupt that
            raise self.Came(number)

    def listen(self) -> None:
        """From here on signals are raised: one that came before at once."""
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
        """Raise what came meanwhile."""
        if self.came:
            self._held = True
            raise self.Came(self.came)
