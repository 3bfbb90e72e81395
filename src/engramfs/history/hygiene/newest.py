"""The newest versions with the flag `secret`, of all stores: one row of `meta`."""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, log
from engramfs.history.hygiene.scanning import FLAG
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

KEPT = 20


class _Row(msgspec.Struct, frozen=True, array_like=True):
    store: int
    number: int
    paths: int


class Flagged(msgspec.Struct, frozen=True):
    """A version, and how many files of it look like they hold a secret."""

    store: str
    version: int
    time: int  # nanoseconds since 1970
    paths: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Row]).decode


def note(writer: Writer, store: int, number: int, paths: int) -> None:
    """Version `number` was flagged."""
    rows = [_Row(store, number, paths), *_rows(writer)]
    writer.put(Table.META, keys.SECRETS_KEY, _encode(rows[:KEPT]))


def newest(reader: Reader) -> Iterator[Flagged]:
    """Newest first; without what was redacted or removed since, and without what waits for approval."""
    for row in _rows(reader):
        try:
            store = catalog.get(reader, row.store)
        except NotFound:
            continue
        version = log.find_version(reader, row.store, row.number)
        if store.base or version is None or FLAG not in version.flags:
            continue
        redacted = sum(1 for change in log.changes(reader, row.store, row.number) if change.is_redacted)
        if redacted < row.paths:
            yield Flagged(store.name, row.number, version.time, row.paths)


def _rows(reader: Reader) -> list[_Row]:
    value = reader.get(Table.META, keys.SECRETS_KEY)
    return _decode(value) if value is not None else []
