"""Kernel learners on the command line: --kernel and --budget, and the lines of the summary."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, cast

import click

from .model_options import given_options

if TYPE_CHECKING:
    from ..models.kernel import KernelModel
    from ..models.linear import LinearModel
    from ..scheme.rounds import Rule

__all__ = ["check", "is_requested", "learner_of", "make_model", "support"]


def is_requested(given: dict[str, Any]) -> bool:
    return given["kernel"] is not None or given["budget"] is not None


def check(given: dict[str, Any]) -> None:
    """Refuse options that kernel learners do not support."""
    if not is_requested(given):
        return
    for name, flag in (("audit", "--audit"), ("invert_hash", "--invert_hash")):
        if given[name]:
            raise click.UsageError(f"{flag} shows weights, of which a kernel learner has none; leave it out")


def make_model(
    given: dict[str, Any], rule: Rule, task: str, *, classes: Iterable[Hashable] | None, bits: int | None
) -> KernelModel:
    """Make a kernel model; --budget alone uses the Gaussian kernel."""
    from ..models.kernel import KernelModel

    own = given_options(given, KernelModel) | {"hash_bits": bits}
    return KernelModel(rule, task, classes=classes, **own)


def learner_of(model: LinearModel) -> str:
    """The learner in a few words."""
    if not hasattr(model, "resolved_kernel"):
        return repr(model.rule)
    kernel = cast("KernelModel", model)
    return f"{kernel.rule!r}, {kernel.resolved_kernel()!r}, {kernel.budget!r}"


def support(model: KernelModel) -> str:
    limit = model.budget.limit()
    of = "" if limit is None else f" of at most {limit:,}"
    return f"{model.n_support:,}{of}, {model.n_features:,} features"
