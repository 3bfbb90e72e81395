"""`engramfs mcp`: an agent's tools over the Model Context Protocol, on standard input and output."""

from typing import TYPE_CHECKING

import click

from engramfs.cli.command import Command
from engramfs.cli.identity import identity_options
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from engramfs.client import Client, Session


@click.command("mcp", cls=Command, short_help="Serve a session's tools to an MCP client.")
@click.option("--session", "identifier", metavar="ID", help="A session that is open, instead of a new one.")
@identity_options
@pass_invocation
def command(
    invocation: Invocation,
    /,
    identifier: str | None,
    agent: str | None,
    actor: str | None,
    tenant: str | None,
) -> None:
    """Serve the files and records of a session as tools, on standard input and output.

    A client starts this command; see examples/mcp. Without --session it opens a session of its own, which
    ends with this process. Without a daemon it writes by itself, as long as nobody else does.
    """
    if identifier is not None and (agent, actor, tenant) != (None, None, None):
        raise UsageError("--session names a session that has its agent and actor; leave the others out")
    try:
        from engramfs.integrations.mcp.serving import serve
    except ModuleNotFoundError as error:
        raise Unavailable(f"this needs {error.name}; pip install 'engramfs[mcp]'") from error
    from engramfs import telemetry
    from engramfs.client import Client

    telemetry.configure(level="warning")
    note = invocation.output.note
    with Client(
        invocation.state, invocation.run, invocation.config, note=lambda what: note(f"engramfs: {what}")
    ) as client:
        serve(_session(client, identifier, agent, actor, tenant))


def _session(
    client: "Client", identifier: str | None, agent: str | None, actor: str | None, tenant: str | None
) -> "Session":
    if identifier is not None:
        return client.session(identifier)
    return client.open_session(agent, actor, tenant, held=True)
