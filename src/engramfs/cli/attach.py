"""`engramfs attach ID`: a session's mounts, put into a root directory or a running container."""

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.places import chosen_place, place_options
from engramfs.cli.session import print_attachments, session_argument
from engramfs.errors import UsageError


@click.command("attach", cls=Command, short_help="Put a session into a sandbox.")
@session_argument
@place_options
@click.option("--over", is_flag=True, help="Cover the files there, and end another session there.")
@pass_invocation
def command(invocation: Invocation, identifier: str, root: str | None, pid: int | None, over: bool) -> None:
    """Put the mounts of session ID into a root directory or a running container: all of them or none."""
    place = chosen_place(root, pid)
    if place is None:
        raise UsageError("where to? give --root DIR or --pid PID")
    attaching.require_privilege()
    session = invocation.client.call("session.show", id=identifier)
    if place.pid is not None:
        attaching.require_mapped(place.pid, session)
    paths = attaching.attach(invocation, session, place, over=over)
    if invocation.json:
        invocation.output.document({"id": identifier, "paths": paths})
    else:
        print_attachments(invocation, session, place.root if place.pid is None else "")
