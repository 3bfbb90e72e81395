"""`engramfs redact STORE N PATH`: a content is taken out of the history."""

import os
from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import reason_option, store_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.output import Output
from engramfs.cli.versions import ranges
from engramfs.errors import UsageError
from engramfs.model.shell_words import shell_word

if TYPE_CHECKING:
    from engramfs.daemon.paths import Locations
    from engramfs.history.repository import Repository


@click.command("redact", cls=Command, short_help="Take something out of the history.")
@store_argument
@click.argument("number", type=click.IntRange(min=1), metavar="N")
@click.argument("path", required=False)
@reason_option("Kept with who did it and when.")
@click.option(
    "--everywhere", is_flag=True, help="In all paths, versions and pendings of STORE, decided or not."
)
@click.option("--recursive", is_flag=True, help="With everything that is below the directory PATH.")
@click.option("--message", is_flag=True, help="The message of N (what was pending: its reason too), no PATH.")
@click.option("--pending", is_flag=True, help="N is the number of what was pending, and is decided.")
@pass_invocation
def command(invocation: Invocation, /, name: str, path: str | None, **given: Any) -> None:
    """Take what PATH holds in version N out of STORE, for good: content, path and digest.

    Of a directory, its name goes, and what is in it stays under another. With --message, what version N says
    that it is about goes. Who changed it and when stays. What the newest version holds or has as a name is
    refused: change or remove it first. The bytes leave the disk with the next engramfs gc.
    """
    _check(name, path, given)
    params = {"store": name, "path": path or "", **given}
    document = offline.write(
        invocation,
        "engramfs redact",
        lambda: invocation.client.call("redact", **params),
        lambda repository: _redact(repository, params, invocation.locations),
    )
    if invocation.json:
        invocation.output.document(document)
    else:
        _print(invocation.output, document)


def _check(name: str, path: str | None, given: dict[str, Any]) -> None:
    if (path is None) != given["message"]:
        raise UsageError(f"what of {name}? write engramfs redact {name} N PATH, or N --message")
    if given["recursive"] and (given["message"] or given["pending"]):
        raise UsageError("--recursive is about a directory of a version; leave out --message and --pending")


def _redact(repository: "Repository", params: dict[str, Any], locations: "Locations") -> dict[str, Any]:
    """As the daemon does it; what the last one left in the run directory names it no more either."""
    from engramfs.daemon import redacting
    from engramfs.daemon.redaction_answer import describe
    from engramfs.vfs.failures import Failures

    request = redacting.RedactRequest(**params)
    done = redacting.carry_out(repository, request, offline.person())
    if os.path.exists(locations.failures):
        store, paths = redacting.paths_gone(repository, request, done)
        Failures(locations.failures, keep=True).redact(store.name, paths)
    return describe(repository, request, done)


def _print(output: Output, document: dict[str, Any]) -> None:
    numbers = [f"@{numbers}" for numbers in ranges(document["versions"])]
    numbers += [f"pending {numbers}" for numbers in ranges(document.get("pending", ()))]
    output.line(("redacted", "green"), document["store"], ", ".join(numbers))
    if waiting := document.get("waiting"):
        named = ", ".join(f"pending {numbers}" for numbers in ranges(waiting))
        output.line(("still waits", "yellow"), named, "without what was redacted")
    if document.get("instead"):
        output.line(("named", "green"), document["instead"], "in the place of that name")
    for place in document["standing"]:
        where = f"{place['store']}@{place['version']}"
        output.line(
            ("still in", "yellow"), f"{where}:{shell_word(place['path'])}" if place["path"] else where
        )
    for place in document.get("messages", ()):
        where = f"the message of {place['store']}@{place['version']}"
        output.line(("named in", "yellow"), where, "which engramfs redact with --message takes out")
    output.note("engramfs gc removes the bytes from the disk")
