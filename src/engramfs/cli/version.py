"""`engramfs version`."""

import click

from engramfs import __version__
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation


@click.command("version", cls=Command, short_help="Print the version.")
@pass_invocation
def command(invocation: Invocation) -> None:
    """Print the version of engramfs."""
    if invocation.json:
        invocation.output.document({"version": __version__})
    else:
        invocation.output.line(f"engramfs {__version__}")
