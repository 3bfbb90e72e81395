"""What a collection does to the rows: each function is one short transaction of whoever writes the log.

A slice says what was found to be so by reading. It is checked against what must not have changed since,
and what has changed is left for the next collection.
"""

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog
from engramfs.history.collection.in_use import InUse
from engramfs.history.residue import leave_residue
from engramfs.history.tree import HeadTree, decode_entry
from engramfs.storage import blobs, keys
from engramfs.storage.protocol import Reader, Table, Writer


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A name that a node had."""

    node: int
    parent: int
    name: bytes


class Prune(msgspec.Struct, frozen=True):
    """Rows of one store that retention removes: of versions below `Head.oldest` alone.

    `places` were named by these rows and by no other when the head was version `head`.
    """

    store: int
    head: int
    versions: tuple[int, ...] = ()
    rows: tuple[bytes, ...] = ()  # keys of `history`
    places: tuple[Place, ...] = ()


class Recode(msgspec.Struct, frozen=True):
    """A part of a content becomes a delta to that part of `base`.

    Without a `value` that is not worth it, which is remembered. Without a `base` it becomes whole.
    """

    digest: bytes
    part: int
    base: bytes = b""
    value: bytes = b""


def set_oldest(writer: Writer, store: int, oldest: int) -> None:
    """From now on no tree of a version below `oldest` can be entered. Raises `NotFound`."""
    head = catalog.head(writer, store)
    oldest = min(max(head.oldest, oldest), max(head.number, 1))
    if oldest != head.oldest:
        catalog.put_head(writer, store, msgspec.structs.replace(head, oldest=oldest))


def prune(writer: Writer, slice_: Prune) -> int:
    """How many versions went."""
    try:
        oldest = catalog.head(writer, slice_.store).oldest
    except NotFound:
        return 0  # the store was deleted, and its rows with it
    leave_residue(writer)
    for number in slice_.versions:
        if number < oldest:
            start, stop = keys.changes(slice_.store, number, 0), keys.changes(slice_.store, number + 1, 0)
            for key in list(writer.keys(Table.CHANGES, start, stop)):
                writer.delete(Table.CHANGES, key)
            writer.delete(Table.VERSIONS, keys.version(slice_.store, number))
            writer.delete(Table.REDACTED, keys.version(slice_.store, number))
    for key in slice_.rows:
        if keys.split_history(key)[2] < oldest:
            writer.delete(Table.HISTORY, key)
    for place in slice_.places:
        if not _is_taken_again(writer, slice_, place):
            writer.delete(Table.NODES, keys.place(slice_.store, place.node, place.parent, place.name))
    return len(slice_.versions)


def _is_taken_again(reader: Reader, slice_: Prune, place: Place) -> bool:
    """Whether the node has the name now, or had it in a version after `head`."""
    store = catalog.get(reader, slice_.store)
    present = HeadTree(reader, store).lookup(place.parent, place.name)
    if present is not None and present.node == place.node:
        return True
    start = keys.history(slice_.store, place.parent, place.name, slice_.head + 1)
    rows = reader.scan(Table.HISTORY, start, keys.after(start[:-8]))
    return any(value != keys.TOMBSTONE and decode_entry(value).node == place.node for _, value in rows)


def sweep(writer: Writer, digests: list[bytes], in_use: InUse) -> int:
    """Delete contents, but those that came into use; how many went. A delta comes before its base."""
    in_use.look(writer)
    gone = [digest for digest in digests if digest not in in_use]
    if gone:
        leave_residue(writer)
    for digest in gone:
        for table in (Table.BLOBS, Table.DELTAS):
            for key in list(writer.keys(table, digest, keys.after(digest))):
                writer.delete(table, key)
    return len(gone)


def recode(writer: Writer, rows: list[Recode], in_use: InUse) -> int:
    """Store parts another way; how many became a delta."""
    in_use.look(writer)
    return sum(_recode(writer, row, in_use) for row in rows)


def _recode(writer: Writer, row: Recode, in_use: InUse) -> bool:
    """Whether the part became a delta. What cannot becomes whole: left as it was, it might close a cycle."""
    key = keys.blob(row.digest, row.part)
    if not _is_there(writer, key):
        return False
    if row.value and row.digest not in in_use and _is_there(writer, keys.blob(row.base, row.part)):
        writer.put(Table.BLOBS, key, row.value)
        writer.put(Table.DELTAS, key, row.base)
        return True
    if blobs.is_base(writer.get(Table.DELTAS, key) or b""):
        blobs.make_part_whole(writer, row.digest, row.part)
    if row.base and not row.value:
        writer.put(Table.DELTAS, key, row.base + keys.UNWORTHY)
    return False


def _is_there(reader: Reader, key: bytes) -> bool:
    return next(reader.keys(Table.BLOBS, key, key + b"\0"), None) is not None
