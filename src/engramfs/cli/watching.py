"""Versions of a store as they are sealed, by whichever process."""

import select
import sys
from typing import TYPE_CHECKING

from engramfs.history import catalog, log
from engramfs.history.selection import Selected, Selection

if TYPE_CHECKING:
    from engramfs.cli.version_printing import VersionPrinter
    from engramfs.model.store import Store
    from engramfs.storage.protocol import Engine, Reader

_INTERVAL = 100  # milliseconds between two looks at the head: one read, of microseconds


def watch(
    engine: "Engine",
    store: "Store",
    wanted: Selection,
    newest: int,
    limit: int | None,
    printer: "VersionPrinter",
) -> None:
    """Print what is asked for of the versions above `newest`, or since `wanted.since`, oldest first.

    Ends after `limit` of them, when whoever reads the output is gone (`BrokenPipeError`), or when the store
    is deleted (`NotFound`).
    """
    left, done = limit, newest
    if wanted.since is not None:
        with engine.reading() as reader:
            done = log.at_time(reader, store.id, wanted.since - 1)
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    while left is None or left > 0:
        with engine.reading() as reader:
            head = catalog.head(reader, store.id).number
            for number in range(done + 1, head + 1):
                done = number
                if _print(reader, store, wanted, number, printer) and left is not None:
                    left -= 1
                    if not left:
                        return
        if output.poll(_INTERVAL):
            raise BrokenPipeError


def _print(
    reader: "Reader", store: "Store", wanted: Selection, number: int, printer: "VersionPrinter"
) -> bool:
    """Whether the version is one that is asked for."""
    version = log.find_version(reader, store.id, number)
    if version is None or not wanted.takes(version):
        return False
    changes = log.changes(reader, store.id, number)
    if wanted.path and not any(log.touches(change, wanted.path) for change in changes):
        return False
    one = Selected(version, wanted.path)
    if printer.as_json:
        printer.print_document(reader, one)
    else:
        printer.print_line(reader, one)
    return True
