"""`engramfs docker-plugin`: memory as Docker volumes."""

import os

import click

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation

SOCKET = "/run/docker/plugins/engramfs.sock"  # where Docker looks for plugins


@click.command("docker-plugin", cls=Command, short_help="Serve memory as Docker volumes.")
@click.option("--socket", default=SOCKET, type=click.Path(), metavar="PATH", help=f"Default {SOCKET}.")
@pass_invocation
def command(invocation: Invocation, socket: str) -> None:
    """Answer Docker as a volume plugin, in the foreground, until it is told to stop.

    \b
        docker volume create -d engramfs -o agent=digest -o actor=alice notes
        docker run -v notes:/notes IMAGE

    A volume is one directory of a session: the agent's `state`, or what -o mount=NAME says: `user` for the
    actor's memory, `org` for the organisation's, another name for another memory of the agent, such as
    `preferences`. What is read-only for the agent is read-only in the volume. The session is opened for the
    first container, and closed after the last. Removing a volume removes nothing from the stores.

    Volumes that are in use live through a restart of the daemon, but not through `engramfs down` or a keeper
    and worker that were both killed: then start the containers again.
    """
    from engramfs.cli.docker_protocol import serve
    from engramfs.cli.docker_volumes import Volumes

    serve(os.path.abspath(socket), Volumes(invocation))
