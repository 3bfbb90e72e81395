"""`engramfs completion SHELL`: the script that a shell loads to complete commands and store names."""

import click
from click.shell_completion import get_completion_class

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import Unavailable


@click.command("completion", cls=Command, short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@pass_invocation
def command(invocation: Invocation, context: click.Context, shell: str) -> None:
    """Print the completion script; in ~/.bashrc: eval "$(engramfs completion bash)"."""
    kind = get_completion_class(shell)
    if kind is None:
        raise Unavailable(f"this click cannot complete in {shell}; use another shell")
    root = context.find_root().command
    script = kind(root, {}, "engramfs", "_ENGRAMFS_COMPLETE").source()
    if invocation.json:
        invocation.output.document({"shell": shell, "script": script})
    else:
        click.echo(script)
