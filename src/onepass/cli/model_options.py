"""Flags for the options of models: one for each field in `models.options` that has a flag."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import click

from ..models import options
from ..models.options import Flag

__all__ = ["GROUPS", "NAMES", "given_options", "model_flags"]

# The groups of options that have flags: those of `LinearModel`, `KernelModel` and `EnsembleModel`.
GROUPS: tuple[type[Any], ...] = (
    options.OneClassOptions,
    options.ThresholdOptions,
    options.ClassOptions,
    options.HashOptions,
    options.LimitOptions,
    options.LinearOptions,
    options.KernelOptions,
    options.EnsembleOptions,
)
KINDS = {"LinearModel": "a linear learner", "KernelModel": "a kernel learner", "EnsembleModel": "--rule auto"}


def flags_of(*groups: type[Any]) -> Iterator[tuple[dataclasses.Field[Any], Flag]]:
    """The options of these dataclasses that have a flag, each once."""
    seen = set()
    for group in groups:
        for field in dataclasses.fields(group):
            flag = options.flag_of(field)
            if flag is not None and field.name not in seen:
                seen.add(field.name)
                yield field, flag


NAMES = {field.name for field, _ in flags_of(*GROUPS)}


def model_flags(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that adds the flags of these options, or of all, to a verb. A flag that is not given is None."""

    def add(verb: Callable[..., Any]) -> Callable[..., Any]:
        for field, flag in reversed(list(flags_of(*GROUPS))):
            if not names or field.name in names:
                verb = _option(field, flag)(verb)
        return verb

    return add


def _option(field: dataclasses.Field[Any], flag: Flag) -> Any:
    kind = flag.kind or (type(field.default) if field.default is not None else str)
    dashed = field.name.replace("_", "-")
    names = flag.names or (f"--{dashed}/--no-{dashed}" if kind is bool else f"--{dashed}",)
    shown = flag.default or str(field.default)
    if kind is bool and flag.default is None:
        shown = "yes" if field.default else "no"
    how: dict[str, Any] = {} if kind is bool else {"metavar": flag.metavar or kind.__name__.upper()}
    if kind is int:
        how["type"] = click.IntRange(flag.least, flag.most)
    elif kind is not bool:
        how["type"] = kind
    return click.option(*names, field.name, default=None, show_default=shown, help=flag.help, **how)


def given_options(given: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The options that the user gave, for this kind of model. An option that it does not have is refused."""
    own = {field.name for field in dataclasses.fields(kind)}
    for field, flag in flags_of(*GROUPS):
        if given.get(field.name) is not None and field.name not in own:
            spelled = next((name for name in flag.names if name.startswith("--")), f"--{field.name.replace('_', '-')}")
            raise click.UsageError(f"{spelled}: {KINDS[kind.__name__]} has no such option; leave it out")
    return {name: given[name] for name in own & NAMES if given.get(name) is not None}
