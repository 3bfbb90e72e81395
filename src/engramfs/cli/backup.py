"""`engramfs backup DIR`: a consistent copy, also while a daemon runs."""

import click

from engramfs.cli import offline
from engramfs.cli.command import Command
from engramfs.cli.copies import outside_stores
from engramfs.cli.invocation import Invocation, pass_invocation


@click.command("backup", cls=Command, short_help="Copy all stores with their history.")
@click.argument("directory", type=click.Path(), metavar="DIR")
@pass_invocation
def command(invocation: Invocation, directory: str) -> None:
    """Copy every store with its whole history into DIR, which --state can then name.

    DIR lies neither in the state directory nor in a mounted store.
    """
    from engramfs.history import backup

    directory = outside_stores(invocation, directory)
    with offline.reading(invocation) as repository:
        backup.backup(repository, directory)
    if invocation.json:
        invocation.output.document({"directory": directory})
    else:
        invocation.output.line(("backed up", "green"), f"{invocation.locations.state} → {directory}")
