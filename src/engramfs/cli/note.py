"""`engramfs note STORE [TEXT]`: say what the next version of a store is about."""

import click

from engramfs.cli.arguments import store_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation


@click.command("note", cls=Command, short_help="Say what the next version is about.")
@store_argument
@click.argument("text", required=False)
@pass_invocation
def command(invocation: Invocation, name: str, text: str | None) -> None:
    """Give the next version that is sealed in STORE the message TEXT; an empty TEXT takes it back.

    The version that is being written counts as the next one, whoever writes it. TEXT waits until there is
    one, or until the daemon ends. Without TEXT, show what waits. An agent does the same for its own versions
    with: setfattr -n user.engramfs.message -v TEXT on the root of its mount.
    """
    noted = invocation.client.call("note", store=name, text=text)
    if invocation.json:
        invocation.output.document(noted)
    elif noted["message"]:
        invocation.output.line(("waits", "yellow"), f"for the next version of {name}:", noted["message"])
    else:
        invocation.output.line(("nothing waits", "yellow"), f"for the next version of {name}")
