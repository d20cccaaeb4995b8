"""``python -m onepass`` and the script ``onepass``: the command, which Ctrl-C ends without a traceback however early it
comes.

Nothing is imported above that the interpreter has not loaded itself: until the handler stands, Python's own answers.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

__all__ = ["start"]

CODE = 130  # of what Ctrl-C ended
SOON = 0.01  # seconds


def start() -> None:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        _run()  # whoever started us does not want to be interrupted
        return
    signal.signal(signal.SIGINT, _end)  # nothing is open yet: what is half imported need not be undone
    came: list[int] = []
    dropped: list[int] = []

    def interrupt(number: int, frame: Any) -> NoReturn:
        came.append(number)
        raise KeyboardInterrupt

    try:
        run = _loaded()
        sys.unraisablehook = _again(sys.unraisablehook, dropped)
        signal.signal(signal.SIGINT, interrupt)
        run(prog_name="onepass")
    except SystemExit:
        if dropped:  # too late to be raised once more
            _end()
        raise
    except BaseException:  # an import that is interrupted may end in another error
        if came:
            _end()
        raise
    finally:
        signal.signal(signal.SIGINT, _end)


def _loaded() -> Any:
    from .cli import main

    return main


def _run() -> None:
    _loaded()(prog_name="onepass")


def _end(*signalled: Any) -> NoReturn:
    os.write(2, b"onepass: interrupted\n")
    os._exit(CODE)


def _again(before: Any, dropped: list[int]) -> Any:
    """Where Python drops an exception, in a callback of the import system say, Ctrl-C is raised once more after it."""

    def raised(*signalled: Any) -> None:
        dropped.clear()
        signal.raise_signal(signal.SIGINT)

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is not KeyboardInterrupt or not hasattr(signal, "setitimer"):
            before(unraisable)
            return
        dropped.append(signal.SIGINT)
        signal.signal(signal.SIGALRM, raised)
        signal.setitimer(signal.ITIMER_REAL, SOON)

    return hook


if __name__ == "__main__":
    start()
