"""`engramfs up`: a daemon, a session, and its mounts; idempotent."""

import os
from typing import Any

import click

from engramfs.cli import attaching, starting
from engramfs.cli.arguments import must_be_directory
from engramfs.cli.command import Command
from engramfs.cli.identity import identity_options
from engramfs.cli.invocation import Invocation, pass_invocation


@click.command("up", cls=Command, short_help="Start, open a session, attach it.")
@click.option("--root", default="/", type=click.Path(), metavar="DIR", help="Attach under DIR (default /).")
@identity_options
@pass_invocation
def command(
    invocation: Invocation, root: str, agent: str | None, actor: str | None, tenant: str | None
) -> None:
    """Start the daemon if none runs, open a session, attach it, and print what is where."""
    name = _check_before_anything_starts(invocation, agent, actor, tenant)
    root = os.path.realpath(must_be_directory(root))
    attaching.require_privilege()
    with starting.alone(invocation):
        starting.start_daemon(invocation)
        session = _open_session(invocation, name, actor, tenant, root)
    if invocation.json:
        invocation.output.document({**session, "root": root})
    else:
        _print(invocation, session, root)


def _check_before_anything_starts(
    invocation: Invocation, agent: str | None, actor: str | None, tenant: str | None
) -> str:
    """The agent's name. Raises what the configuration or an unclear owner deserves."""
    from engramfs.daemon.scoping import memory_store

    config = invocation.configuration().agent(agent)
    memory_store(config, config.name, actor, tenant)
    return config.name


def _open_session(
    invocation: Invocation, agent: str, actor: str | None, tenant: str | None, root: str
) -> dict[str, Any]:
    client = invocation.client
    daemon = client.call("status")["worker"]["pid"]
    session: dict[str, Any] = client.call("session.open", agent=agent, actor=actor, tenant=tenant, root=root)
    try:
        places = attaching.attach(invocation, session, root, daemon)
    except BaseException:
        if session.get("created"):
            client.call("session.close", id=session["id"])
        raise
    client.call("session.attached", id=session["id"], root=root, mounts=places)
    return session


def _print(invocation: Invocation, session: dict[str, Any], root: str) -> None:
    rows = [
        (
            (os.path.join(root, each["path"].lstrip("/")), "cyan"),
            each["store"],
            (each["access"], "green" if each["access"] == "read_write" else "yellow"),
            "live" if each["live"] else f"@{each['version']}",
        )
        for each in session["attachments"]
    ]
    invocation.output.table(["PATH", "STORE", "ACCESS", "VERSION"], rows)
