"""`engramfs detach ID`: a session's mounts, taken off again; the session stays open."""

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.places import chosen_place, place_options
from engramfs.cli.session import session_argument
from engramfs.errors import NotFound


@click.command("detach", cls=Command, short_help="Take a session out of a sandbox.")
@session_argument
@place_options
@pass_invocation
def command(invocation: Invocation, identifier: str, root: str | None, pid: int | None) -> None:
    """Take the mounts of session ID off, at one place or, without --root and --pid, everywhere."""
    chosen = chosen_place(root, pid)
    attaching.require_privilege()
    session = invocation.client.call("session.show", id=identifier)
    places = [place for place in attaching.places_of(session) if chosen is None or place.is_same(chosen)]
    if chosen is not None and not places:
        raise NotFound(
            f"session {identifier} is not attached there; engramfs session show {identifier} says where"
        )
    taken = attaching.detach_from(invocation, session, places)
    if invocation.json:
        invocation.output.document({"id": identifier, "detached": taken})
    else:
        count = f"{len(taken)} mount{'' if len(taken) == 1 else 's'}"
        invocation.output.line((f"detached {count}", "green"))
