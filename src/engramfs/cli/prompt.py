"""`engramfs prompt --session ID`: what an agent should be told of its stores."""

import click

from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation


@click.command("prompt", cls=Command, short_help="What an agent should be told of its stores.")
@click.option("--session", "identifier", metavar="ID", required=True, help="The session of the agent.")
@click.option("--no-tools", is_flag=True, help="The agent has no tools, only its directories.")
@pass_invocation
def command(invocation: Invocation, identifier: str, no_tools: bool) -> None:
    """Print text for the system prompt of session ID: what it sees where, how to write, and its memory.

    What should be shortened is said on stderr. With --json, `text` and `warnings`.
    """
    from engramfs.tools.offered import Offered
    from engramfs.tools.prompt import prompt

    output = invocation.output
    with invocation.opened() as client:
        offered = Offered(client.session(identifier))
        tools = [] if no_tools else [tool.name for tool in offered.tools()]
        told = prompt(offered.reach, tools)
    if invocation.json:
        output.document({"text": told.text, "warnings": list(told.warnings)})
        return
    output.raw(told.text.encode())
    for warning in told.warnings:
        output.note(f"engramfs: {warning}")
