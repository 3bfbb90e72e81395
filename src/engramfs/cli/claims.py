"""`engramfs claims SESSION`: what a session really wrote."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli.arguments import parse_since
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.model.names import printable
from engramfs.model.quantities import format_size

if TYPE_CHECKING:
    from engramfs.history.claims import Claim

_SINCE = "7d"


@click.command("claims", cls=Command, short_help="What a session really wrote.")
@click.argument("session", metavar="SESSION")
@click.option(
    "--since", metavar="TIME", default=_SINCE, show_default=True, help="Not what is older: a time, or 2d."
)
@pass_invocation
def command(invocation: Invocation, session: str, since: str) -> None:
    """List every path that SESSION wrote, removed or renamed, open or closed, with its last version of it.

    A caller checks with it what an agent says that it remembers. `stands` is whether the head still has it;
    what waits for approval, or was rejected, is no memory yet.
    """
    with invocation.opened() as client:
        found = client.claims(session, parse_since(since))
        if not found:
            client.session(session)  # a mistyped id must not look like a session that wrote nothing
    if invocation.json:
        invocation.output.document([_document(claim) for claim in found])
    elif found:
        headers = ("STORE", "PATH", "DID", "VERSION", "SIZE", "SHA256", "NOW")
        invocation.output.table(headers, [_row(claim) for claim in found], right="SIZE")
    else:
        invocation.output.note(f"session {session} wrote nothing since {since}")


def _document(claim: "Claim") -> dict[str, Any]:
    from engramfs.history.log import describe_change

    return {
        "store": claim.store,
        **describe_change(claim.change),
        "version": claim.version,
        "stands": claim.stands,
        "pending": claim.pending or None,
        "state": claim.state,
    }


def _row(claim: "Claim") -> tuple[str, ...]:
    change = claim.change
    now = "stands" if claim.stands else "changed since"
    if claim.pending:
        now = f"{'pending' if claim.state == 'open' else claim.state} {claim.pending}"
    return (
        claim.store,
        printable(change.path) or ".",
        change.op.label,
        f"@{claim.version}",
        format_size(change.size),
        change.digest.hex()[:12],
        now,
    )
