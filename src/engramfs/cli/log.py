"""`engramfs log STORE [PATH]`: the versions of a store, newest first."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from engramfs.cli import offline
from engramfs.cli.arguments import refer, reference_argument
from engramfs.cli.command import Command
from engramfs.cli.invocation import Invocation, pass_invocation
from engramfs.errors import NotFound, UsageError
from engramfs.model.names import printable, raw

if TYPE_CHECKING:
    from engramfs.model.reference import Reference
    from engramfs.model.store import Store
    from engramfs.model.version import Version
    from engramfs.storage.protocol import Reader


@click.command("log", cls=Command, short_help="The versions of a store.")
@reference_argument
@click.argument("path", required=False)
@click.option("-n", "--number", "limit", type=click.IntRange(min=1), metavar="N", help="At most N versions.")
@pass_invocation
def command(invocation: Invocation, reference: str, path: str | None, limit: int | None) -> None:
    """Show the versions of STORE, newest first; with PATH only those that touched it.

    STORE@N begins at version N.
    """
    from engramfs.history import catalog

    with offline.reading(invocation) as repository:
        wanted = with_path(refer(repository, reference), path)
        with repository.engine.reading() as reader:
            store = catalog.named(reader, wanted.store)
            found = islice(_some(_versions(reader, store, wanted), wanted), limit)
            if invocation.json:
                _print_json(invocation, reader, store, found)
            else:
                _print_lines(invocation, reader, store, found, wanted.path or b"")


def with_path(reference: "Reference", path: str | None) -> "Reference":
    """`reference` with the path of a separate argument. Raises `UsageError` for two paths."""
    import msgspec

    if path is None:
        return reference
    if reference.path:
        raise UsageError("a path was given twice; write STORE PATH or STORE:PATH")
    return msgspec.structs.replace(reference, path=raw(path).strip(b"/"))


def _versions(reader: "Reader", store: "Store", wanted: "Reference") -> Iterator["Version"]:
    from engramfs.history import log

    if wanted.version is not None:
        log.version(reader, store, wanted.version)  # an unknown number is an error, not an empty log
    if not wanted.path:
        return log.versions(reader, store.id, newest=wanted.version)
    newest = wanted.version
    found = log.touching(reader, store, wanted.path)
    return (version for version in found if newest is None or version.number <= newest)


def _some(found: Iterator["Version"], wanted: "Reference") -> Iterator["Version"]:
    """`found`. Raises `NotFound` for a path that has nothing in it: a mistyped one, most likely."""
    first = next(found, None)
    if first is not None:
        return chain([first], found)
    if wanted.path:
        until = "" if wanted.version is None else f" up to {wanted.version}"
        raise NotFound(
            f"no version{until} of {wanted.store} has {printable(wanted.path)}; "
            f"engramfs log {wanted.store} shows what each changed"
        )
    return iter(())


def _print_json(invocation: Invocation, reader: "Reader", store: "Store", found: Iterator["Version"]) -> None:
    from engramfs.history import log

    invocation.output.document(
        [log.describe(version, log.changes(reader, store.id, version.number)) for version in found]
    )


def _print_lines(
    invocation: Invocation, reader: "Reader", store: "Store", found: Iterator["Version"], path: bytes
) -> None:
    from engramfs.cli.versions import print_line
    from engramfs.history import catalog, log

    width = len(str(catalog.head(reader, store.id).number))
    for version in found:
        changes = log.changes(reader, store.id, version.number)
        touching = (change for change in changes if log.touches(change, path))
        print_line(invocation.output, version, touching, width)
