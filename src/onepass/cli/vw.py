"""Vowpal Wabbit's flags. Those with the same meaning here are supported; for the others the error says what to use."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .paths import Input
from .sections import SectionedCommand
from .vw_hints import ELSEWHERE, SHORT

if TYPE_CHECKING:
    from ..scheme.rounds import Rule

__all__ = ["VWCommand", "rule_of", "vw_options"]


class VWCommand(SectionedCommand):
    """A verb that answers an unsupported flag of VW with what to use instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = {**ELSEWHERE, **SHORT}.get(error.option_name)
            if known is None:
                raise
            raise click.UsageError(f"{error.option_name} is Vowpal Wabbit's; here it is {known}", ctx) from None


class Finite(click.FloatRange):
    """A range of finite numbers: NaN and infinity are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


LOSSES = ("squared", "classic", "logistic", "hinge", "quantile", "absolute")
FROM_0, ABOVE_0 = Finite(min=0), Finite(min=0, min_open=True)


def vw_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        [
            click.option("-d", "--data", multiple=True, type=Input(), metavar="FILE",
                         help="A file to read, as SOURCE."),
            click.option("--loss_function", type=click.Choice(LOSSES),
                         help="Vowpal Wabbit's update for this loss: --rule vw:loss=…"),
            click.option("-l", "--learning_rate", type=float, metavar="ETA",
                         help="The learning rate of the rule: its parameter eta, rho or mu."),
            click.option("--power_t", type=float, metavar="P", help="How fast steps get smaller: --rule vw:power=…"),
            click.option("--adaptive", is_flag=True,
                         help="--rule vw with this switch; --normalized and --invariant only if given."),
            click.option("--normalized", is_flag=True, help="--rule vw with this switch, as --adaptive."),
            click.option("--invariant", is_flag=True, help="--rule vw with this switch, as --adaptive."),
            click.option("--sgd", is_flag=True, help="--rule vw without these three switches."),
            click.option("--ftrl", is_flag=True, help="FTRL-Proximal, with VW's defaults: --rule ftrl:…"),
            click.option("--ftrl_alpha", type=ABOVE_0, default=0.5, show_default=True, help="With --ftrl: its alpha."),
            click.option("--ftrl_beta", type=FROM_0, default=1.0, show_default=True, help="With --ftrl: its beta."),
            click.option("--quantile_tau", type=float, default=0.5, help="The quantile of --loss_function quantile."),
            click.option("--l1", type=FROM_0, metavar="LAMBDA",
                         help="The L1 penalty of --ftrl; otherwise of --rule fobos:lam1=…"),
            click.option("--l2", type=FROM_0, metavar="LAMBDA",
                         help="The L2 penalty of --ftrl; otherwise of --rule sgd:l2=…"),
            click.option("--oaa", type=click.IntRange(min=2), metavar="K", help="Declare the classes 1, …, K."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


SWITCHES = ("adaptive", "normalized", "invariant")


def rule_options_given(options: dict[str, Any]) -> list[str]:
    """The given options that choose the rule: --rule and VW's flags."""
    numbers = ("rule", "loss_function", "learning_rate", "power_t", "l1", "l2")
    given = [name for name in numbers if options[name] is not None]
    return given + [name for name in ("ftrl", *SWITCHES, "sgd") if options[name]]


def rule_of(options: dict[str, Any], default: str) -> Rule:
    """The rule that --rule and VW's flags describe together.

    Without --rule, a flag of VW's update means the rule vw, --ftrl means ftrl, and a penalty without --ftrl means
    gradient descent with that penalty. Without any of these flags the default applies.
    """
    from .. import rules

    if options["ftrl"]:
        _require_ftrl_alone(options)
        return _ftrl(options)
    rule = rules.make(_rule_name(options, default))
    if options["loss_function"] is not None:
        rule = _with(rule, ("loss",), _loss(options), "--loss_function")
        if options["loss_function"] == "classic":
            rule = _with(rule, ("invariant",), False, "--loss_function classic")
    if options["learning_rate"] is not None:
        rule = _with(rule, ("eta", "rho", "mu"), options["learning_rate"], "--learning_rate")
    if options["power_t"] is not None:
        rule = _with(rule, ("power",), options["power_t"], "--power_t")
    if _switched(options):
        rule = _with_switches(rule, options)
    if options["l1"] is not None:
        rule = _with(rule, ("lam1", "gravity"), options["l1"], "--l1")
    if options["l2"] is not None:
        rule = _with(rule, ("l2", "lam2"), options["l2"], "--l2")
    return rule


def _switched(options: dict[str, Any]) -> list[str]:
    """The given switches of VW: --adaptive, --normalized, --invariant, --sgd."""
    return [name for name in (*SWITCHES, "sgd") if options[name]]


def _require_ftrl_alone(options: dict[str, Any]) -> None:
    others = ("rule", "learning_rate", "power_t")
    if any(options[name] is not None for name in others) or _switched(options):
        raise click.UsageError("--ftrl takes --ftrl_alpha, --ftrl_beta, --l1, --l2 and --loss_function alone")


def _rule_name(options: dict[str, Any], default: str) -> Any:
    """The rule of --rule, or the one that the other flags need."""
    if options["rule"] is not None:
        return options["rule"]
    if options["l1"] is not None:
        return "fobos"
    if options["l2"] is not None:
        return "sgd"
    steps = any(options[name] is not None for name in ("loss_function", "learning_rate", "power_t"))
    return "vw:loss=squared" if steps or _switched(options) else default


def _with_switches(rule: Rule, options: dict[str, Any]) -> Rule:
    flag = f"--{_switched(options)[0]}"
    for name in SWITCHES:
        rule = _with(rule, (name,), options[name], flag)
    rule = _with(rule, ("vw_compat",), True, flag)
    fades = not (options["adaptive"] and options["normalized"])
    if options["learning_rate"] is None and options["rule"] is None and fades:
        rule = _with(rule, ("eta",), 10.0, flag)  # VW's default, with steps that get smaller
    return rule


def _loss(options: dict[str, Any]) -> str:
    loss = options["loss_function"] or "squared"
    return {"classic": "squared", "quantile": f"quantile(tau={options['quantile_tau']})"}.get(loss, loss)


def _ftrl(options: dict[str, Any]) -> Rule:
    """VW's FTRL. Its squared loss is twice ours, so our gradients are half as large: all parameters are halved, too."""
    from .. import rules

    loss = _loss(options)
    half = 0.5 if loss == "squared" else 1.0
    l1, l2 = options["l1"] or 0.0, options["l2"] or 0.0
    return rules.FTRL(loss, options["ftrl_alpha"], half * options["ftrl_beta"], half * l1, half * l2)


def _with(rule: Rule, names: tuple[str, ...], value: Any, flag: str) -> Rule:
    own = rule.get_params()
    name = next((name for name in names if name in own), None)
    if name is None:
        has = ", ".join(own) or "no parameters"
        raise click.UsageError(f"{flag}: the rule {rule.name} has no {' or '.join(names)}; it has {has}")
    return type(rule)(**{**own, name: value})
