"""`engramfs restore STORE@N [PATH]`: an old tree or file becomes the head again."""

from typing import TYPE_CHECKING, Any

import click

from engramfs.cli import offline
from engramfs.cli.arguments import now, refer, reference_argument, with_path
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.cli.versions import note_redacted, print_recorded
from engramfs.errors import NotFound, UsageError
from engramfs.model.names import printable

if TYPE_CHECKING:
    from engramfs.history.repository import Repository
    from engramfs.model.reference import Reference


@click.command("restore", cls=Command, short_help="Make an old tree or file the head again.")
@reference_argument
@click.argument("path", required=False)
@click.option("--at", "moment", metavar="TIME", help="The version of that time, or of so long ago (2d).")
@pass_invocation
def command(invocation: Invocation, reference: str, path: str | None, moment: str | None) -> None:
    """Make version N of STORE, or PATH as it was in it, the head again: as a new version."""
    with offline.reading(invocation) as repository:
        wanted = with_path(refer(repository, reference), path)
        number = _number(repository, wanted, moment)
        redacted = _redacted(repository, wanted, number)
    shown = printable(wanted.path or b"")
    document = offline.write(
        invocation,
        "engramfs restore",
        lambda: invocation.client.call("restore", store=wanted.store, number=number, path=shown),
        lambda repository: _restore(repository, wanted, number),
    )
    if invocation.json:
        invocation.output.document(document)
    else:
        print_recorded(invocation.output, wanted.store, document, f"restored from @{number}")
    note_redacted(invocation.output, redacted, "not restored, but left as they are now where they are there")


def _number(repository: "Repository", wanted: "Reference", moment: str | None) -> int:
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

    with repository.engine.reading() as reader:
        store = catalog.named(reader, wanted.store)
        number = log.at_time(reader, store.id, parse_since(moment))
        if is_partial(reader, store, number):  # one that went may have changed the path before that time
            raise catalog.no_version(reader, store, catalog.head(reader, store.id), number)
    if not number:
        raise NotFound(f"{wanted.store} had no version at {moment}; engramfs log {wanted.store} lists them")
    return number


def _redacted(repository: "Repository", wanted: "Reference", number: int) -> list[str]:
    from engramfs.history import catalog, restore

    with repository.engine.reading() as reader:
        store = catalog.named(reader, wanted.store)
        return [printable(path) for path in restore.left_out(reader, store, number, wanted.path)]


def _restore(repository: "Repository", wanted: "Reference", number: int) -> dict[str, Any] | None:
    from engramfs.history import catalog, commit, log, restore
    from engramfs.storage.protocol import Writer

    def body(writer: Writer) -> dict[str, Any] | None:
        store = catalog.writable(writer, wanted.store)
        planned = restore.plan(writer, store, number, wanted.path, offline.person(), now())
        version = commit.apply(writer, planned)
        return log.describe(version, planned.changes) if version else None

    return repository.transact(body)
