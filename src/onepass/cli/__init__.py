"""The ``onepass`` command. Each verb has its own module, which is imported when the verb runs.

Exit codes: 0 done, 1 bad input or a missing package, 2 a wrong option or name, 3 done but malformed lines were skipped
or a data set was missing, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import sys
from typing import Any, NoReturn

import click

from ..errors import OnepassError, ParameterError
from ..persistence.files import named
from .source_options import in_words_of_the_command

__all__ = ["main"]

# The verbs in the order of the help. The module of the same name is loaded when the verb is used.
VERBS = (
    "learn",
    "predict",
    "compare",
    "models",
    "inspect",
    "convert",
    "demo",
    "play",
    "bench",
    "reproduce",
    "completion",
)


class OnepassGroup(click.Group):
    """A group whose failures are one line on stderr and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f".{cmd_name}", __package__).command
        return command

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        _prepare_process()
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
            with named("standard output"):
                sys.stdout.flush()
        except (click.ClickException, click.Abort, KeyboardInterrupt) as error:
            _fail_usage(error)
        except (OnepassError, OSError, ImportError, MemoryError) as error:
            _fail_run(error)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            fail("interrupted", 130)


def _prepare_process() -> None:
    for output in (sys.stdout, sys.stderr):
        # Some terminals lack letters of the formulas: print a "?" rather than fail.
        with contextlib.suppress(AttributeError, ValueError):
            output.reconfigure(errors="replace")  # type: ignore[union-attr]
    if "bench" not in sys.argv:
        # The verbs multiply no matrices. Idle BLAS threads would only slow down the threads that parse.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000, 20, 20)  # importing modules creates no garbage, and collections take time


def _fail_usage(error: BaseException) -> NoReturn:
    """Exit with the code of a wrong option, or of an interruption."""
    if isinstance(error, click.ClickException):
        fail(error.format_message(), error.exit_code)
    fail("interrupted", 130)


def _fail_run(error: Exception) -> NoReturn:
    """Exit with the message and the code of an error of the library or of the system."""
    if isinstance(error, ParameterError):
        fail(str(error), 2)
    if isinstance(error, OnepassError):
        notes = [note for note in getattr(error, "__notes__", []) if "prequential:" not in note]
        fail(". ".join([in_words_of_the_command(error), *notes]), 1)
    if isinstance(error, MemoryError):
        fail("out of memory: fewer weights (-b BITS) or fewer classes are needed", 1)
    if isinstance(error, ImportError):
        if not str(error).startswith("ONEPASS_ISA="):
            raise error
        fail(str(error), 2)
    if isinstance(error, BrokenPipeError):
        _flush_output()  # the reader closed the pipe; without this, Python would report it at exit
        sys.exit(1)
    assert isinstance(error, OSError)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the error of a full disk does not name the file
    name = error.filename or ("standard output" if not _flush_output() or full else "")
    fail(f"{name}: {error.strerror}" if name else str(error), 1)


def _flush_output() -> bool:
    """Flush standard output; False if that fails. Then redirect it, or Python would report the error again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return False
    return True


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
    """Online machine learning: learn from a file or a stream in one pass, of any length.

    The model predicts each example first and learns from it afterwards. So the reported error is that of examples
    which the model did not know, without a test set, and memory does not grow with the stream.

    A first session: learn from a table and save the model, then predict new rows with it.

    \b
    Examples:
      onepass learn mail.csv --label spam --save mail.model --report mail.html
      onepass predict mail.model new.csv -o answers.txt

    \b
    Without data, and to choose a rule (a rule says how an example changes the weights):
      onepass demo --rule pa1 --rule pa1:C=0.1
      onepass models
      onepass models pa1
      onepass compare mail.csv --label spam --rules pa1,pa1:C=0.1,sgd:loss=logistic

    `onepass VERB --help` explains a verb, with examples.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
