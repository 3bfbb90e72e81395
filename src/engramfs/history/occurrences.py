"""Where a content stands: in which store, under which name, in which version.

The whole history is gone through, in batches, so that no read transaction stays open for long. Rows that
are added meanwhile belong to versions above the heads of before; a caller who needs those too compares heads.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, pending
from engramfs.history.tree import decode_entry, path_to, version_tree
from engramfs.model.entry import Entry
from engramfs.model.names import printable
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Row, Table

_ROWS = 2000  # in one transaction


class Occurrence(msgspec.Struct, frozen=True):
    """A row of `history` that holds the content."""

    store: int
    parent: int
    name: bytes
    number: int  # the version from which on it stands there
    entry: Entry


class Standing(msgspec.Struct, frozen=True):
    """The same for people. Of what was offered, `version` is the number that it is pending under."""

    store: str
    version: int
    path: str


def occurrences(engine: Engine, content: Entry, store: int | None = None) -> Iterator[Occurrence]:
    """Every row that holds what `content`, a file or a symlink, holds; of one store, or of all."""
    mark = content.digest or content.target
    start = keys.u32(store) if store is not None else b""
    stop = keys.after(start) if start else b"\xff" * 5
    while True:
        with engine.reading() as reader:
            rows = list(islice(reader.scan(Table.HISTORY, start, stop), _ROWS))
        yield from (_occurrence(key, entry) for key, entry in _holding(rows, mark) if entry.holds(content))
        if len(rows) < _ROWS:
            return
        start = rows[-1][0] + b"\0"


def _holding(rows: list[Row], mark: bytes) -> Iterator[tuple[bytes, Entry]]:
    for key, value in rows:
        if mark in value:
            yield key, decode_entry(value)


def _occurrence(key: bytes, entry: Entry) -> Occurrence:
    parent, name, number = keys.split_history(key)
    return Occurrence(keys.read_u32(key[:4]), parent, name, number, entry)


def standing(engine: Engine, content: Entry, limit: int) -> list[Standing]:
    """Where `content` is in all stores: the first `limit` places."""
    found = []
    for one in islice(occurrences(engine, content), limit):
        with engine.reading() as reader:
            found.append(_standing(reader, one))
    return found


def _standing(reader: Reader, one: Occurrence) -> Standing:
    try:
        store = catalog.get(reader, one.store)
    except NotFound:
        return Standing("", one.number, printable(one.name))  # it was deleted meanwhile
    path = printable(path_to(version_tree(reader, store, one.number), one.parent, one.name))
    offered = pending.of_version(reader, store, one.number) if store.base else None
    if offered is None:
        return Standing(store.name, one.number, path)
    return Standing(f"{store.name} (pending)", offered.number, path)
