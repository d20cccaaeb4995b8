"""The ``onepass`` command. Each verb has its file; what it needs is imported when it runs.

Exit codes: 0 done, 1 bad input or a missing package, 2 a wrong option or name, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, NoReturn

import click

from ..errors import OnepassError, ParameterError
from . import demo, play

__all__ = ["main"]


class OnepassGroup(click.Group):
    """A group whose failures are one line on stderr and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        for output in (sys.stdout, sys.stderr):
            # Formulas have letters that some terminals lack: print a "?" rather than fail.
            with contextlib.suppress(AttributeError, ValueError):
                output.reconfigure(errors="replace")  # type: ignore[union-attr]
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except click.ClickException as error:
            fail(error.format_message(), error.exit_code)
        except ParameterError as error:
            fail(str(error), 2)
        except OnepassError as error:
            fail(str(error), 1)
        except OSError as error:
            fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
        except (click.Abort, KeyboardInterrupt):
            fail("interrupted", 130)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            fail("interrupted", 130)


def fail(message: str, code: int) -> NoReturn:
    click.echo(f"onepass: {' '.join(message.split())}", err=True)
    sys.exit(code)


def _version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"onepass {version('onepass')}")
        except PackageNotFoundError:
            click.echo("onepass (not installed: run from its source)")
        ctx.exit()


@click.group(
    cls=OnepassGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and stop.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Learn from streams: each example is seen once, predicted, revealed, learned, forgotten.

    \b
    Examples:
      onepass demo                              rules compared on a stream that drifts
      onepass demo --rule pa1 --rule pa1:C=0.1  the same with rules of your choice
      onepass models                            the rules, their parameters and formulas
      onepass play --rule pa1 --step            a rule, round by round, and its boundary
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@main.command()
def models() -> None:
    """List the rules, their parameters and formulas.

    \b
    A rule is given by its name, or with parameters after a colon:
      pa1    pa1:C=0.1    sgd:loss=logistic,eta=0.5    "sgd:loss=huber(delta=2)"
    """
    import dataclasses
    import inspect

    from ..rules import RULES

    for name, kind in RULES.items():
        fields = sorted(dataclasses.fields(kind), key=lambda field: field.kw_only is True)
        parameters = ", ".join(f"{field.name}={field.default}" for field in fields)
        click.echo(f"{name:<12}{parameters}")
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        click.echo(f"{'':<12}{summary}")


main.add_command(demo.command)
main.add_command(play.command)
