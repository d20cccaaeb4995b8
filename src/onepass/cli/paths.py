"""The files that the options and arguments of a verb read and write.

Every parameter that names a file has one of these types. Converting its value records the file. An output that is also
an input, or another output, is refused before the verb begins, so before any file is opened. Files that are not
parameters (a cache next to its source, the sources of a resumed run) are recorded by `reads` and `writes`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click

from ..errors import ParameterError
from ..persistence.files import Ledger, descriptor_of, is_regular

__all__ = ["STDOUT", "Folder", "Input", "Output", "flag_of", "reads", "summary_stream", "writes"]

STDOUT = "/dev/stdout"  # the path that - stands for as an output
KEY = "onepass.persistence.files"


class Input(click.Path):
    """A file that is read: a model, or a source (also - or a glob)."""

    def __init__(self) -> None:
        super().__init__(readable=False)  # errors are raised when the file is opened

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = os.fspath(value)
        if ctx is not None and param is not None and not ctx.resilient_parsing:
            reads(path, flag_of(param), ctx)
        return path


class Output(click.Path):
    """A file that is written. Errors of the path are raised here, before the work.

    whole       it is replaced in one step, as models and caches are: a device or a pipe is refused
    instead_of  inputs that may be the same file, since they are read before it is replaced
    suffix      how the name of a file ends
    """

    def __init__(self, *, whole: bool = False, instead_of: Sequence[str] = (), suffix: str | None = None) -> None:
        super().__init__(dir_okay=False, readable=False, allow_dash=True)
        self.whole, self.instead_of, self.suffix = whole, tuple(instead_of), suffix

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = str(super().convert(value, param, ctx))
        if path == "-" or descriptor_of(path) == 1:
            path = STDOUT
        regular = is_regular(path)
        if not regular and self.whole:
            self.fail(f"{value} is no regular file: a file is replaced whole; give its name.", param, ctx)
        if regular and not os.path.isdir(os.path.dirname(os.path.realpath(path))):
            self.fail(f"{value}: there is no such folder", param, ctx)
        if regular and self.suffix is not None and os.path.splitext(path)[1].lower() != self.suffix:
            self.fail(f"{value}: expected a name ending in {self.suffix}", param, ctx)
        if ctx is not None and param is not None and not ctx.resilient_parsing:
            writes(path, flag_of(param), self.instead_of, ctx=ctx)
        return path


class Folder(click.Path):
    """A folder in which the verb chooses the names of the files; it records them by `writes`."""

    def __init__(self) -> None:
        super().__init__(file_okay=False)


def flag_of(param: click.Parameter) -> str:
    """The name of a parameter in messages."""
    if isinstance(param, click.Argument):
        return (param.metavar or str(param.name)).strip("…[]")
    return next((name for name in param.opts if name.startswith("--")), param.opts[0])


def reads(path: str, said: str, ctx: click.Context | None = None) -> None:
    _entered(_ledger(ctx).reads, path, said)


def writes(path: str, said: str, instead_of: Sequence[str] = (), ctx: click.Context | None = None) -> None:
    _entered(_ledger(ctx).writes, path, said, instead_of)


def summary_stream() -> TextIO:
    """Where to print the summary: stderr if an option writes data to standard output."""
    return sys.stderr if _ledger(None).takes_descriptor(1) else sys.stdout


def _ledger(ctx: click.Context | None) -> Ledger:
    meta = (ctx or click.get_current_context()).meta
    if KEY not in meta:
        meta[KEY] = ledger = Ledger()
        ledger.prints(1, "standard output")
        ledger.prints(2, "standard error")
    found: Ledger = meta[KEY]
    return found


def _entered(enter: Any, path: str, *how: Any) -> None:
    try:
        enter(path, *how)
    except ParameterError as error:
        raise click.UsageError(str(error)) from None
