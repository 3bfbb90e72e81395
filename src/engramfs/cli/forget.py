"""`engramfs forget ACTOR`: everything of one actor's own is deleted."""

from typing import Any

import click

from engramfs.cli import offline
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.output import Output
from engramfs.errors import UsageError


@click.command("forget", cls=Command, short_help="Delete what one actor has.")
@click.argument("actor")
@click.option("--tenant", metavar="ID", help="The organisation that the actor belongs to.")
@click.option("--yes", is_flag=True, help="Say that you mean it.")
@pass_invocation
def command(invocation: Invocation, actor: str, tenant: str | None, yes: bool) -> None:
    """Delete every store that is the memory of ACTOR, with all versions.

    What ACTOR wrote into other stores, or what these have of ACTOR's memory, stays: the redactions that it
    takes to remove it are printed, as comments those that wait for a newer version or a decision. Without
    --yes nothing is deleted. The bytes leave the disk with the next engramfs gc.
    """
    params: dict[str, Any] = {"actor": actor, "tenant": tenant, "delete": yes}

    def alone(repository: Any) -> dict[str, Any]:
        from engramfs.daemon import forgetting

        return forgetting.forget_alone(repository, forgetting.ForgetRequest(**params))

    document = offline.write(
        invocation, "engramfs forget", lambda: invocation.client.call("forget", **params), alone
    )
    if invocation.json:
        invocation.output.document(document)
    else:
        _print(invocation.output, document)
    if not yes:
        raise UsageError(f"nothing was deleted; engramfs forget {actor} --yes deletes those stores for good")


def _print(output: Output, document: dict[str, Any]) -> None:
    for name in document["stores"]:
        output.line(("deleted", "green") if document["deleted"] else ("would delete", "yellow"), name)
    for trace in document["elsewhere"]:
        _print_trace(output, trace, f"# {document['actor']} {trace['why']}")


def _print_trace(output: Output, trace: dict[str, Any], why: str) -> None:
    """A command that works as it stands; whatever does not is a comment."""
    if trace["at_head"]:
        first = "the head has it, so change or remove it first, and then:"
        output.line((why, "bright_black"), (first, "yellow"), f"{trace['command']}")
    elif trace["waits"]:
        first = "it waits for a decision, so reject it first, and then:"
        output.line((why, "bright_black"), (first, "yellow"), f"{trace['command']}")
    elif trace["lost"]:
        where = f"{trace['store']}{' pending ' if trace['pending'] else '@'}{trace['number']}"
        output.line((why, "bright_black"), f"{where}:{trace['path']}", ("which is not found there", "yellow"))
    else:
        output.line(trace["command"], (why, "bright_black"))
