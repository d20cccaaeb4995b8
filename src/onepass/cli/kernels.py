"""Kernel learners on the command line: --kernel and --budget, and how support vectors are summarised."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from ..models.kernel import KernelModel
    from ..models.linear import LinearModel
    from ..scheme.rounds import Rule

__all__ = ["asked", "check", "kernel_options", "learner_of", "make_model", "support"]


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--budget",
            metavar="BUDGET",
            show_default="none",
            help="With a kernel: what goes when it is full, as bpann:B=100.",
        ),
        click.option(
            "--kernel",
            metavar="KERNEL",
            show_default="none: linear",
            help="Learn with a kernel in place of the inner product, as rbf:gamma=0.5.",
        ),
    ):
        command = option(command)
    return command


def asked(given: dict[str, Any]) -> bool:
    return given["kernel"] is not None or given["budget"] is not None


def check(given: dict[str, Any]) -> None:
    """Refuse options that kernel learners do not support."""
    if not asked(given):
        return
    for name, flag in (("audit", "--audit"), ("invert_hash", "--invert_hash")):
        if given[name]:
            raise click.UsageError(f"{flag} shows weights, of which a kernel learner has none; leave it out")


def make_model(
    given: dict[str, Any], rule: Rule, task: str, *, classes: Iterable[Hashable] | None, bits: int | None
) -> KernelModel:
    """--budget alone has the Gaussian kernel. An intercept, a constant in the kernel, only where it is asked for."""
    from ..models.kernel import KernelModel

    source = click.get_current_context().get_parameter_source("intercept")
    return KernelModel(
        rule,
        task,
        kernel=given["kernel"] or "rbf",
        budget=given["budget"],
        classes=classes,
        fit_intercept=given["intercept"] and source is not None and source.name == "COMMANDLINE",
        readout=given["readout"],
        hash_bits=bits,
        max_classes=given["max_classes"],
        max_features=given["max_features"],
    )


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
