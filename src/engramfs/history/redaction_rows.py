"""The rows that a redaction leaves: of each version what was taken out, and of names what is left of them.

Functions take a transaction and hold none.
"""

from collections.abc import Collection

import msgspec

from engramfs.history.redaction_target import Span
from engramfs.history.tree import decode_entry
from engramfs.model.entry import ROOT_NODE, Entry
from engramfs.model.redaction import Redaction
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

encode = msgspec.msgpack.Encoder().encode
_decode_redactions = msgspec.msgpack.Decoder(list[Redaction]).decode


class Removed(msgspec.Struct, frozen=True):
    """What a redaction took out."""

    store: int
    content: Entry
    spans: tuple[Span, ...]
    versions: tuple[int, ...]  # that lost something, oldest first
    changes: int  # that lost path and content
    instead: bytes = b""  # the name that stands in the place of a directory's
    beside: tuple["Removed", ...] = ()  # out of forks, which hold what was pending
    given_back: tuple[
        tuple[int, bytes], ...
    ] = ()  # names of which a fork does not say any more what they are


def redactions(reader: Reader, store: int, number: int) -> list[Redaction]:
    """What was taken out of a version, oldest first."""
    value = reader.get(Table.REDACTED, keys.version(store, number))
    return _decode_redactions(value) if value is not None else []


def add_redaction(writer: Writer, store: int, number: int, redaction: Redaction) -> None:
    """Without a digest of its own, when no change was altered, it goes on with the one from before."""
    if writer.get(Table.VERSIONS, keys.version(store, number)) is None:
        return  # of a version that retention removed, no more than the row was left
    known = redactions(writer, store, number)
    if not redaction.remaining and known:
        redaction = msgspec.structs.replace(redaction, remaining=known[-1].remaining)
    writer.put(Table.REDACTED, keys.version(store, number), encode([*known, redaction]))


def forget_name(writer: Writer, store: int, parent: int, name: bytes, waiting: Collection[int] = ()) -> None:
    """Remove the rows of a name of which nothing but redacted rows is left, and none that is `waiting`."""
    prefix = keys.live(store, parent, name) + b"\0"
    rows = list(writer.scan(Table.HISTORY, prefix, keys.after(prefix)))
    if any(keys.read_u64(key[-8:]) in waiting for key, _ in rows):
        return  # that a name is gone is something to decide on, too
    entries = [decode_entry(value) for _, value in rows if value != keys.TOMBSTONE]
    if any(not entry.is_redacted for entry in entries):
        return
    for key, _ in rows:
        writer.delete(Table.HISTORY, key)
    for node in {entry.node for entry in entries} - {ROOT_NODE}:
        writer.delete(Table.NODES, keys.place(store, node, parent, name))
