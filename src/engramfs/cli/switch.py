"""`engramfs switch ID --actor U`: another actor's memory at `/memories/user`, everywhere at once."""

from typing import Any

import click

from engramfs.cli import attaching
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.session import session_argument


@click.command("switch", cls=Command, short_help="Change the actor of a session.")
@session_argument
@click.option("--actor", required=True, metavar="U", help="The actor from now on.")
@click.option("--tenant", metavar="T", help="The organisation; without it the session's stays.")
@pass_invocation
def command(invocation: Invocation, identifier: str, actor: str, tenant: str | None) -> None:
    """Let /memories/user of session ID be the memory of actor U, in every place where it is attached.

    What is still open in the old actor's memory gives ESTALE from then on.
    """
    attaching.require_privilege()
    session = invocation.client.call("session.switch", id=identifier, actor=actor, tenant=tenant)
    try:
        if session["mount"] is not None:
            _mount(invocation, session)
    except BaseException:
        invocation.client.call("session.switch_failed", id=identifier)
        raise
    session = invocation.client.call("session.switched", id=identifier)
    if invocation.json:
        invocation.output.document(session)
    else:
        store = next(
            (each["store"] for each in session["attachments"] if each["path"] == "/memories/user"), "nobody's"
        )
        invocation.output.line((f"switched {identifier} to {actor}", "green"), f"/memories/user is {store}")


def _mount(invocation: Invocation, session: dict[str, Any]) -> None:
    from engramfs.mount.copying import MountPlan
    from engramfs.mount.switch import switch

    new = session["mount"]
    plan = MountPlan(new["source"], new["path"], new["access"] == "read_only")
    ways = attaching.ways(invocation, session, attaching.places_of(session))
    hub, daemon = attaching.hub_point(invocation), attaching.daemon_pid(invocation)
    switch(hub, daemon, plan, [way for way in ways if way is not None])
