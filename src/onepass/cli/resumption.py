"""Resume a run: which options its checkpoint holds, which its model, and which must be given again.

Every option of the verb is one of these. What is not known to lie in the file is given again, so that a new option
is not lost without a word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..models.options import LimitOptions
from . import model_options
from .job import Options
from .paths import STDOUT, flag_of
from .source_options import SourceOptions
from .vw import vw_options

__all__ = ["IN_MODEL", "command_of", "given_here", "refuse_others", "repeated_options"]


def _names_of(options: Callable[..., Any]) -> set[str]:
    """The parameters that a decorator of several options adds."""

    def verb() -> None: ...

    return {str(param.name) for param in options(verb).__click_params__}


FILES = {"sources", "data", "save", "resume", "start_from"}  # `command_of` adds them
IN_CHECKPOINT = {field.name for kind in (SourceOptions, Options) for field in dataclasses.fields(kind)}
LIMITS = {field.name for field in dataclasses.fields(LimitOptions)}  # which a later run may change
IN_MODEL = {"rule"} | (model_options.NAMES - LIMITS - IN_CHECKPOINT) | (_names_of(vw_options) - {"data"})


def given_here(ctx: click.Context, name: str) -> bool:
    """Was the option given in this call?"""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def repeated_options(ctx: click.Context) -> list[str]:
    """The options of this call that no file holds, as command-line words."""
    words: list[str] = []
    for param in ctx.command.params:
        name = str(param.name)
        if name not in FILES | IN_CHECKPOINT | IN_MODEL and given_here(ctx, name):
            words += _words(param, ctx.params[name])
    return words


def _words(param: click.Parameter, value: Any) -> list[str]:
    flag = flag_of(param)
    if getattr(param, "is_flag", False):
        return [flag if value else param.secondary_opts[0]]
    values = value if param.multiple else [value]
    return [word for each in values for word in (flag, "-" if each == STDOUT else str(each))]


def command_of(path: str, sources: Sequence[str], options: Sequence[str]) -> list[str]:
    """The command that goes on with the run in the file `path`."""
    dashed = any(source.startswith("-") and source != "-" for source in sources)  # which would be read as options
    more = [*options, "--", *sources] if dashed else [*sources, *options]
    return ["onepass", "learn", "--resume", path, *more]


def refuse_others(ctx: click.Context, kept: SourceOptions | Options, now: SourceOptions | Options) -> None:
    """Options given beside --resume must be those of the run."""
    for param in ctx.command.params:
        name = str(param.name)
        if not hasattr(kept, name) or name in FILES or not given_here(ctx, name):
            continue
        of_run, value = getattr(kept, name), getattr(now, name)
        if of_run != value:
            raise click.UsageError(f"--resume: {flag_of(param)} is {of_run!r} in that run, not {value!r}; leave it out")
