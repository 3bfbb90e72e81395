"""`engramfs redact STORE N PATH`: a content is taken out of the history."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import store_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.output import Output
from engramfs.errors import UsageError

if TYPE_CHECKING:
    from engramfs.history.repository import Repository


@click.command("redact", cls=Command, short_help="Take a content out of the history.")
@store_argument
@click.argument("number", type=click.IntRange(min=1), metavar="N")
@click.argument("path")
@click.option("--reason", required=True, metavar="TEXT", help="Kept with who did it and when.")
@click.option("--everywhere", is_flag=True, help="In every path and version of STORE that holds it.")
@click.option("--pending", is_flag=True, help="N is the number of what was pending, and is decided.")
@pass_invocation
def command(invocation: Invocation, /, name: str, **given: Any) -> None:
    """Take what PATH holds in version N out of STORE, for good: content, path and digest.

    Who changed it and when stays. What the newest version holds is refused: change or remove it first. The
    bytes leave the disk with the next engramfs gc.
    """
    if given["pending"] and given["everywhere"]:
        raise UsageError("--everywhere is about versions; redact what was pending by itself")
    params = {"store": name, **given}
    document = offline.write(
        invocation,
        "engramfs redact",
        lambda: invocation.client.call("redact", **params),
        lambda repository: _redact(repository, params),
    )
    if invocation.json:
        invocation.output.document(document)
    else:
        _print(invocation.output, document)


def _redact(repository: "Repository", params: dict[str, Any]) -> dict[str, Any]:
    from engramfs.daemon import redacting

    request = redacting.RedactRequest(**params)
    removed = redacting.carry_out(repository, request, offline.person())
    return redacting.describe(repository, request, removed)


def _print(output: Output, document: dict[str, Any]) -> None:
    numbers = ", ".join(f"@{number}" for number in document["versions"])
    output.line(("redacted", "green"), document["store"], numbers)
    for place in document["standing"]:
        output.line(("still in", "yellow"), f"{place['store']}@{place['version']}:{place['path']}")
    output.note("engramfs gc removes the bytes from the disk")
