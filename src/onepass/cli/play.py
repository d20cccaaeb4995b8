"""``onepass play``: a rule, round by round, in the terminal or as a picture."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING, TextIO

import click

from .paths import Output, summary_stream

if TYPE_CHECKING:
    from ..play import Play

__all__ = ["command"]


PROMPT = "Enter: the next round, q: quit "


@click.command(
    "play",
    short_help="Step through a rule on points in a plane; needs no data.",
    context_settings={"show_default": True},
)
@click.option("--rule", default="pa1", metavar="RULE", help="The rule to run, as `onepass models` lists them.")
@click.option("--rounds", type=click.IntRange(min=1), default=12, help="The number of rounds, at most.")
@click.option(
    "--task",
    type=click.Choice(["binary", "multiclass", "regression"]),
    default="binary",
    help="binary: two classes; multiclass: three classes; regression: a line through points.",
)
@click.option(
    "--stream",
    type=click.Choice(["A", "M"]),
    show_default="made from the seed",
    help="A worked example of the documentation: A (two classes) or M (three).",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="The seed of the random stream.")
@click.option("--readout", default="last", metavar="READOUT", help="The weights that predict: last, average, …")
@click.option("--intercept/--no-intercept", default=True, help="Learn the intercept b in s = w·x + b, or keep it at 0.")
@click.option("--step", is_flag=True, help="Wait for Enter after each round; q quits.")
@click.option("--ascii", is_flag=True, help="Draw with plain letters, for terminals without Braille patterns.")
@click.option("--svg", type=Output(suffix=".svg"), metavar="FILE.svg", help="Draw all rounds in one SVG picture.")
@click.option(
    "--png",
    type=Output(suffix=".png"),
    metavar="FILE.png",
    help="Draw all rounds in one PNG picture (needs matplotlib).",
)
@click.option(
    "--gif", type=Output(suffix=".gif"), metavar="FILE.gif", help="Write an animation of the rounds (needs matplotlib)."
)
def command(
    rule: str,
    rounds: int,
    task: str,
    stream: str | None,
    seed: int,
    readout: str,
    intercept: bool,
    step: bool,
    ascii: bool,
    svg: str | None,
    png: str | None,
    gif: str | None,
) -> None:
    """Step through a rule on points in a plane, and see its boundary move. Needs no data.

    Each round shows the examples so far, the new one in brackets, the boundary before and after the update, and the
    numbers that one would compute by hand.

    \b
    Examples:
      onepass play
      onepass play --rule perceptron --step
      onepass play --rule pa --stream A --no-intercept
      onepass play --rule pa1:C=0.1 --rounds 24 --seed 7 --svg strip.svg
      onepass play --rule sgd:loss=logistic --readout average --gif play.gif
      onepass play --task multiclass --stream M
      onepass play --task regression --rule nlms
    """
    from ..errors import NumericalError
    from ..play import play

    try:
        played = play(rule, stream, rounds=rounds, task=task, readout=readout, seed=seed, fit_intercept=intercept)
    except NumericalError as error:
        raise click.UsageError(str(error)) from error  # the generated stream is valid, so the parameters are too large
    files = [path for path in (svg, png, gif) if path is not None]
    if svg is not None:
        played.svg_strip(svg)
    if png is not None:
        played.png(png)
    if gif is not None:
        played.gif(gif)

    if _show(played, ascii, step):
        for path in files:
            click.echo(f"drawn in {path}", file=summary_stream())


def _show(played: Play, ascii: bool, step: bool) -> bool:
    """Print the rounds; with `step` one for each key press. False if the user quit before the end."""
    out = summary_stream()
    terminal = out.isatty()
    letters = {"ascii": ascii or not _encodes("⠿┌→·←", out), "color": terminal and not os.environ.get("NO_COLOR")}
    waits = step and terminal and sys.stdin.isatty()
    click.echo(textwrap.fill(played.heading, 80), file=out)
    for frame in played.frames:
        click.echo(file=out)
        click.echo(played.text(frame.t, **letters), file=out)
        if waits and frame is not played.frames[-1] and not _go_on():
            return False
    click.echo(f"\n{played.summary}", file=out)
    return True


def _encodes(text: str, out: TextIO) -> bool:
    try:
        text.encode(out.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _go_on() -> bool:
    """Wait for a key: Enter, the space bar or an arrow for the next round; q, Escape or the end of input to quit."""
    click.echo(PROMPT, nl=False)
    try:
        while True:
            keys = click.getchar()  # all keys since the last read
            if keys == "\x1b" or "q" in keys.lower():
                return False
            if any(key in keys for key in ("\r", "\n", " ", "\x1b[C", "\x1b[B")):
                return True
    except EOFError:
        return False
    finally:
        click.echo(f"\r{' ' * len(PROMPT)}\r", nl=False)
