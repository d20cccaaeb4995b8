"""Resume a run: which options are in its checkpoint, which in its model, and which must be given again.

Every option of the verb belongs to one of these groups. An option that is not known to be in the file must be given
again, so that a new option is not lost silently.
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

__all__ = ["IN_MODEL", "command_of", "is_given", "refuse_others", "repeated_options"]


def _names_of(options: Callable[..., Any]) -> set[str]:
    """The names of the parameters that a decorator adds."""

    def verb() -> None: ...

    return {str(param.name) for param in options(verb).__click_params__}


FILES = {"sources", "data", "save", "resume", "start_from"}  # `command_of` adds them
IN_CHECKPOINT = {field.name for kind in (SourceOptions, Options) for field in dataclasses.fields(kind)}
LIMITS = {field.name for field in dataclasses.fields(LimitOptions)}  # a later run may change these
IN_MODEL = {"rule"} | (model_options.NAMES - LIMITS - IN_CHECKPOINT) | (_names_of(vw_options) - {"data"})


def is_given(ctx: click.Context, name: str) -> bool:
    """Whether the option was given in this call."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def repeated_options(ctx: click.Context) -> list[str]:
    """The options of this call that are in no file, as command-line arguments."""
    words: list[str] = []
    for param in ctx.command.params:
        name = str(param.name)
        if name not in FILES | IN_CHECKPOINT | IN_MODEL and is_given(ctx, name):
            words += _as_arguments(param, ctx.params[name])
    return words


def _as_arguments(param: click.Parameter, value: Any) -> list[str]:
    flag = flag_of(param)
    if getattr(param, "is_flag", False):
        return [flag if value else param.secondary_opts[0]]
    values = value if param.multiple else [value]
    return [word for each in values for word in (flag, "-" if each == STDOUT else str(each))]


def command_of(path: str, sources: Sequence[str], options: Sequence[str]) -> list[str]:
    """The command that resumes the run in the file `path`."""
    dashed = any(
        source.startswith("-") and source != "-" for source in sources
    )  # names that begin with - would be read as options
    more = [*options, "--", *sources] if dashed else [*sources, *options]
    return ["onepass", "learn", "--resume", path, *more]


def refuse_others(ctx: click.Context, kept: SourceOptions | Options, now: SourceOptions | Options) -> None:
    """Options that are given with --resume must be those of the run."""
    for param in ctx.command.params:
        name = str(param.name)
        if not hasattr(kept, name) or name in FILES or not is_given(ctx, name):
            continue
        of_run, value = getattr(kept, name), getattr(now, name)
        if of_run != value:
            raise click.UsageError(f"--resume: {flag_of(param)} is {of_run!r} in that run, not {value!r}; leave it out")
