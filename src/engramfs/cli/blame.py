"""`engramfs blame STORE[@N] PATH`: who wrote each line, and in which version."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli.arguments import refer, reference_argument, with_path
from engramfs.cli.columns import cells, padded
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.pager import no_pager, paged
from engramfs.errors import UsageError
from engramfs.model.names import printable
from engramfs.model.visible import visible

if TYPE_CHECKING:
    from engramfs.history.blame import BlamedLine


@click.command("blame", cls=Command, short_help="Who wrote each line of a file.")
@reference_argument
@click.argument("path", required=False)
@no_pager
@pass_invocation
def command(invocation: Invocation, reference: str, path: str | None, no_pager: bool) -> None:
    """Show the version, time and author of each line of PATH, at the head or in version N.

    Earlier names of the file are followed.
    """
    from engramfs.history import catalog
    from engramfs.history.blame import blame

    with invocation.opened() as client, paged(invocation, unless=no_pager):
        with client.reading() as reader:
            wanted = with_path(refer(reader, reference), path)
            if not wanted.path:
                raise UsageError(f"which file of {wanted.store}? write engramfs blame {wanted.store} PATH")
            store = catalog.named(reader, wanted.store)
            newest = catalog.head(reader, store.id).number
            number = newest if wanted.version is None else wanted.version
            lines = blame(reader, store, wanted.path, number)
        if invocation.json:
            invocation.output.document([_document(place, line) for place, line in enumerate(lines, start=1)])
        else:
            _print(invocation, lines)


def _print(invocation: Invocation, lines: "list[BlamedLine]") -> None:
    from engramfs.cli.versions import local_time

    width = max((len(str(line.number)) for line in lines), default=1)
    labels = [visible(line.version.author.label()) if line.version is not None else "?" for line in lines]
    label_width = max(map(cells, labels), default=0)
    digits = len(str(len(lines)))
    for position, (line, label) in enumerate(zip(lines, labels, strict=True), start=1):
        invocation.output.line(
            (f"@{line.number}".rjust(width + 1), "yellow"),
            local_time(line.version.time) if line.version is not None else " " * 19,
            (padded(label, label_width), "cyan"),
            f"{position:>{digits}} {_text(line)}",
        )


def _text(line: "BlamedLine") -> str:
    return printable(line.content.removesuffix(b"\n"))


def _document(position: int, line: "BlamedLine") -> dict[str, Any]:
    from engramfs.history.log import describe_author
    from engramfs.model.times import format_time

    version = line.version
    return {
        "line": position,
        "number": line.number,
        "time": format_time(version.time) if version is not None else None,
        "author": describe_author(version.author) if version is not None else None,
        "text": _text(line),
    }
