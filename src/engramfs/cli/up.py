"""`engramfs up`: a daemon, a session, and its mounts; idempotent."""

import os
from typing import Any

import click

from engramfs.cli import attaching, starting
from engramfs.cli.arguments import must_be_directory
from engramfs.cli.command import Command
from engramfs.cli.identity import identity_options
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.session import print_attachments


@click.command("up", cls=Command, short_help="Start, open a session, attach it.")
@click.option(
    "--root",
    default="/",
    type=click.Path(readable=False),
    metavar="DIR",
    help="Attach under DIR (default /).",
)
@identity_options
@click.option("--over", is_flag=True, help="Cover the files there, and end another session there.")
@pass_invocation
def command(
    invocation: Invocation, root: str, agent: str | None, actor: str | None, tenant: str | None, over: bool
) -> None:
    """Start the daemon if none runs, open a session, attach it, and print what is where.

    Again with the same identity does no harm. Files at the mount points and a session of another identity
    under DIR are not replaced, unless --over.
    """
    name = _check_before_anything_starts(invocation, agent, actor, tenant)
    root = os.path.realpath(must_be_directory(root))
    attaching.require_privilege()
    with starting.alone(invocation):
        starting.start_daemon(invocation)
        session = _open_session(invocation, name, actor, tenant, root, over=over)
    if invocation.json:
        invocation.output.document({**session, "root": root})
    else:
        print_attachments(invocation, session, root)


def _check_before_anything_starts(
    invocation: Invocation, agent: str | None, actor: str | None, tenant: str | None
) -> str:
    """The agent's name. Raises what the configuration or an unclear owner deserves."""
    from engramfs.daemon.scoping import memory_store

    config = invocation.configuration().agent(agent)
    memory_store(config, config.name, actor, tenant)
    return config.name


def _open_session(
    invocation: Invocation, agent: str, actor: str | None, tenant: str | None, root: str, *, over: bool
) -> dict[str, Any]:
    from engramfs.mount.place import here

    client = invocation.client
    place = attaching.document_of(here(root))
    session: dict[str, Any] = client.call(
        "session.open", agent=agent, actor=actor, tenant=tenant, place=place, reuse=True, over=over
    )
    known = {"id": session["id"], "place": place}
    try:
        client.call("session.attaching", **known, over=over or not session["created"])
        attaching.attach_missing(invocation, session, root, attaching.daemon_pid(invocation), over=over)
    except BaseException:
        if session.get("created"):
            client.call("session.close", id=session["id"])
        raise
    client.call("session.attached", **known)
    return session
