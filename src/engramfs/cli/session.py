"""`engramfs session …`: sandbox runs, one by one."""

from typing import Any

import click

from engramfs.cli import attaching
from engramfs.cli.command import LazyGroup
from engramfs.cli.identity import identity_options
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.runtime_arguments import RUNTIMES
from engramfs.errors import UsageError

Document = dict[str, Any]

session_argument = click.argument("identifier", metavar="ID")


@click.group("session", cls=LazyGroup, short_help="Open, list and close sessions.")
def command() -> None:
    """Open, list, describe and close sessions. A session is one run of one agent for one actor."""


@command.command("open")
@identity_options
@click.option(
    "--attach",
    multiple=True,
    metavar="STORE[@N]=PATH:ACCESS",
    help="Another attachment, or another store at a path of the agent's. ACCESS: read_only, read_write, ask.",
)
@click.option(
    "--uid", type=click.IntRange(0, 2**32 - 2), metavar="N", help="Who owns the files (default: you)."
)
@click.option("--gid", type=click.IntRange(0, 2**32 - 2), metavar="N", help="Their group.")
@click.option("--print", "runtime", type=click.Choice(list(RUNTIMES)), help="Print arguments for a runtime.")
@pass_invocation
def open_session(
    invocation: Invocation,
    /,
    agent: str | None,
    actor: str | None,
    tenant: str | None,
    attach: tuple[str, ...],
    uid: int | None,
    gid: int | None,
    runtime: str | None,
) -> None:
    """Open a session and print its id; attach puts it into a sandbox.

    With --print, print what a runtime has to be given to make a sandbox with the session's mounts instead, as
    words quoted for a shell or as a part of a manifest; the id goes to stderr. The runtime runs as root on
    this machine:

    \b
        eval "podman run $(engramfs session open --actor alice --print podman) IMAGE"

    What it mounts lives through a restart of the daemon, but not through a keeper and worker that were both
    killed, and `switch` does not find it. `engramfs attach ID --pid PID` puts mounts in its place for which
    neither is so. Close the session when the sandbox has ended.
    """
    session = invocation.client.call(
        "session.open", agent=agent, actor=actor, tenant=tenant, attach=list(attach), uid=uid, gid=gid
    )
    if runtime is not None:
        _print_for(invocation, runtime, session)
    elif invocation.json:
        invocation.output.document(session)
    else:
        invocation.output.line(session["id"])


def _print_for(invocation: Invocation, runtime: str, session: Document) -> None:
    hub = attaching.hub_point(invocation)
    printed = RUNTIMES[runtime](session["id"], hub, attaching.mount_plans(session))
    if invocation.json:
        invocation.output.document({**session, runtime: printed})
    else:
        invocation.output.note(f"session {session['id']}")
        click.echo(printed)


@command.command("list")
@pass_invocation
def list_sessions(invocation: Invocation) -> None:
    """List the open sessions, oldest first."""
    sessions = invocation.client.call("session.list")
    if invocation.json:
        invocation.output.document(sessions)
    elif not sessions:
        invocation.output.note("no sessions; engramfs session open makes one")
    else:
        print_sessions(invocation, sessions)


def print_sessions(invocation: Invocation, sessions: list[Document]) -> None:
    """A table of sessions, with where they are attached and whether anybody is left there."""
    rows = [
        (
            (session["id"], "cyan"),
            session["agent"],
            session["actor"] or "",
            session["tenant"] or "",
            (session["state"], {"gone": "red", "attached": "green"}.get(session["state"], "yellow")),
            ", ".join(_shown_place(place) for place in session["places"]),
            session["opened"],
        )
        for session in sessions
    ]
    headers = ["SESSION", "AGENT", "ACTOR", "TENANT", "STATE", "PLACES", "OPENED"]
    invocation.output.table(headers, rows)


def _shown_place(place: Document) -> str:
    return place["root"] if place["pid"] is None else f"{place['root']} of {place['pid']}"


@command.command("show")
@session_argument
@pass_invocation
def show(invocation: Invocation, identifier: str) -> None:
    """Describe the session ID and what it shows."""
    session = invocation.client.call("session.show", id=identifier)
    if invocation.json:
        invocation.output.document(session)
        return
    for key in ("id", "agent", "actor", "tenant", "state", "opened"):
        invocation.output.line((f"{key:<9}", "cyan"), session[key] or "")
    for place in session["places"]:
        invocation.output.line(("place    ", "cyan"), _shown_place(place))
    for earlier in session["switched"]:
        invocation.output.line(("was      ", "cyan"), earlier["actor"] or "", f"until {earlier['time']}")
    if "switching" in session:
        actor = session["switching"]["actor"]
        invocation.output.line(("pending  ", "red"), f"a switch to {actor} was not finished; switch again")
    print_attachments(invocation, session)


def print_attachments(invocation: Invocation, session: Document, root: str = "") -> None:
    """A table of what is where; paths begin with `root`."""
    rows = [
        (
            (root.rstrip("/") + each["path"], "cyan"),
            each["store"],
            (each["access"], "green" if each["access"] == "read_write" else "yellow"),
            "live" if each["live"] else f"@{each['version']}",
        )
        for each in session["attachments"]
    ]
    invocation.output.table(["PATH", "STORE", "ACCESS", "VERSION"], rows)


@command.command("close")
@click.argument("identifier", metavar="ID", required=False)
@click.option("--gone", is_flag=True, help="All whose sandboxes have ended.")
@pass_invocation
def close(invocation: Invocation, identifier: str | None, gone: bool) -> None:
    """End the session ID: what is written so far stays, and what its sandbox still has open gives ESTALE.

    It is detached from root directories. In a running container its mounts stay and fail loudly.
    """
    if (identifier is None) is not gone:
        raise UsageError("name one session, or say --gone; engramfs session list shows them")
    closed = _close_gone(invocation) if identifier is None else [_close(invocation, identifier)]
    if invocation.json:
        invocation.output.document([session["id"] for session in closed])
    else:
        for session in closed:
            invocation.output.line((f"closed {session['id']}", "green"))


def _close(invocation: Invocation, identifier: str) -> Document:
    session: Document = invocation.client.call("session.show", id=identifier)
    places = [place for place in attaching.places_of(session) if place.pid is None]
    if places:
        attaching.detach_from(invocation, session, places)
    invocation.client.call("session.close", id=identifier)
    return session


def _close_gone(invocation: Invocation) -> list[Document]:
    sessions = invocation.client.call("session.list")
    for session in sessions:
        if session["state"] == "gone":
            attaching.take_off(invocation, session, attaching.places_of(session))
    closed: list[Document] = invocation.client.call("session.close_gone")
    return closed
