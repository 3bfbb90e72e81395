"""`engramfs daemon`: the keeper and its worker in the foreground."""

import os

import click

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation


@click.command("daemon", cls=Command, short_help="Run the daemon in the foreground.")
@click.pass_context
@pass_invocation
def command(invocation: Invocation, context: click.Context) -> None:
    """Run the daemon in the foreground, until it is stopped."""
    from engramfs.daemon import keeper

    invocation.configuration()  # what is wrong with it is said here, before anything is mounted
    locations = invocation.locations
    config = locations.config if os.path.lexists(locations.config) else None
    context.exit(keeper.run(locations.state, locations.run, config))
