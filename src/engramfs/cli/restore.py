"""`engramfs restore STORE@N [PATH]`: an old tree or file becomes the head again."""

from typing import TYPE_CHECKING

import click

from engramfs.cli.arguments import refer, reference_argument, with_path
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import note_redacted, print_recorded
from engramfs.errors import NotFound, UsageError
from engramfs.model.names import printable

if TYPE_CHECKING:
    from engramfs.model.reference import Reference
    from engramfs.storage.protocol import Reader


@click.command("restore", cls=Command, short_help="Make an old tree or file the head again.")
@reference_argument
@click.argument("path", required=False)
@click.option("--at", "moment", metavar="TIME", help="The version of that time, or of so long ago (2d).")
@pass_invocation
def command(invocation: Invocation, reference: str, path: str | None, moment: str | None) -> None:
    """Make version N of STORE, or PATH as it was in it, the head again: as a new version."""
    with invocation.opened() as client:
        with client.reading() as reader:
            wanted = with_path(refer(reader, reference), path)
            number = _number(reader, wanted, moment)
            redacted = _redacted(reader, wanted, number)
        document = client.restore(wanted.store, number, wanted.path)
    if invocation.json:
        invocation.output.document(document)
    else:
        print_recorded(invocation.output, wanted.store, document, f"restored from @{number}")
    note_redacted(invocation.output, redacted, "not restored, but left as they are now where they are there")


def _number(reader: "Reader", wanted: "Reference", moment: str | None) -> int:
    """The version that is meant. Raises `UsageError` unless there is one way to say which."""
    if (wanted.version is None) == (moment is None):
        raise UsageError(
            f"which version of {wanted.store}? write {wanted.store}@N or --at TIME; engramfs log lists them"
        )
    if moment is None:
        return wanted.version or 0
    from engramfs.cli.arguments import parse_since
    from engramfs.history import catalog, log
    from engramfs.history.kept import is_partial

    store = catalog.named(reader, wanted.store)
    number = log.at_time(reader, store.id, parse_since(moment))
    if is_partial(reader, store, number):  # one that went may have changed the path before that time
        raise catalog.no_version(reader, store, catalog.head(reader, store.id), number)
    if not number:
        raise NotFound(f"{wanted.store} had no version at {moment}; engramfs log {wanted.store} lists them")
    return number


def _redacted(reader: "Reader", wanted: "Reference", number: int) -> list[str]:
    from engramfs.history import catalog, restore

    store = catalog.named(reader, wanted.store)
    return [printable(path) for path in restore.left_out(reader, store, number, wanted.path)]
