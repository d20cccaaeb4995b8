"""``onepass completion``: the script that lets a shell complete verbs, options and rules."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command("completion", short_help="Print the script that completes verbs and options in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes verbs and options in SHELL.

    \b
    Examples:
      eval "$(onepass completion bash)"                                    # in ~/.bashrc
      eval "$(onepass completion zsh)"                                     # in ~/.zshrc
      onepass completion fish > ~/.config/fish/completions/onepass.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # click.Choice allows no other shell
    click.echo(kind(ctx.find_root().command, {}, "onepass", "_ONEPASS_COMPLETE").source())
