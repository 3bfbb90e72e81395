"""The rows of a store, read from one log and written to another.

Nothing in them but their keys names the store, so they are the same under another id.
"""

from collections.abc import Iterator

from engramfs.history.commit import encode
from engramfs.history.repository import Repository
from engramfs.history.tree import decode_entry
from engramfs.model.entry import Kind
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

Content = tuple[bytes, int]  # digest and size

_ROWS = (Table.VERSIONS, Table.CHANGES, Table.LIVE, Table.HISTORY, Table.NODES, Table.REDACTED)
_AT_ONCE = 5000  # rows that are read in one transaction


def copy_rows(reader: Reader, old: int, writer: Writer, new: int) -> None:
    """The rows of the store `old` become those of `new`, which has none; its versions come into the feed."""
    prefix = keys.u32(old)
    for table in _ROWS:
        for key, value in reader.scan(table, prefix, keys.after(prefix)):
            writer.put(table, keys.u32(new) + key[4:], value)
    counter = writer.get(Table.META, keys.NEXT_FEED_KEY)
    sequence = keys.read_u64(counter) if counter else 1
    for key, _ in reader.scan(Table.VERSIONS, prefix, keys.after(prefix)):
        writer.put(Table.FEED, keys.u64(sequence), encode((new, keys.read_u64(key[4:]))))
        sequence += 1
    writer.put(Table.META, keys.NEXT_FEED_KEY, keys.u64(sequence))


def every_content(source: Repository, store: Store) -> Iterator[Content]:
    """The contents that any row of the store names."""
    for table in (Table.LIVE, Table.HISTORY):
        start, stop = keys.u32(store.id), keys.after(keys.u32(store.id))
        while True:
            with source.engine.reading() as reader:
                rows = [row for row, _ in zip(reader.scan(table, start, stop), range(_AT_ONCE), strict=False)]
            for _, value in rows:
                if value != keys.TOMBSTONE:
                    entry = decode_entry(value)
                    if entry.kind is Kind.FILE and not entry.is_redacted:
                        yield entry.digest, entry.size
            if len(rows) < _AT_ONCE:
                break
            start = rows[-1][0] + b"\0"
