"""The newest versions with the flag `secret`, of all stores: one row of `meta`."""

from collections.abc import Iterator

import msgspec

from engramfs.errors import NotFound
from engramfs.history import catalog, log
from engramfs.history.hygiene.written import FLAG, Suspects, find_in_directories, find_in_message
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

KEPT = 20


class _Row(msgspec.Struct, frozen=True, array_like=True):
    store: int
    number: int
    paths: int
    directories: int = 0
    message: bool = False


class Flagged(msgspec.Struct, frozen=True):
    """A version, how many paths of it look like they hold a secret, and whether its message does."""

    store: str
    version: int
    time: int  # nanoseconds since 1970
    paths: int
    message: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Row]).decode


def note(writer: Writer, store: int, number: int, found: Suspects) -> None:
    """Version `number` was flagged."""
    rows = [_Row(store, number, found.paths, found.directories, found.message), *_rows(writer)]
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
        changes = list(log.changes(reader, row.store, row.number))
        is_redacted = sum(change.is_redacted for change in changes) >= row.paths
        directories = row.directories if find_in_directories(changes) else 0
        message = row.message and bool(find_in_message(version.message))
        if directories or message or not is_redacted:
            paths = directories + (0 if is_redacted else row.paths)
            yield Flagged(store.name, row.number, version.time, paths, message)


def _rows(reader: Reader) -> list[_Row]:
    value = reader.get(Table.META, keys.SECRETS_KEY)
    return _decode(value) if value is not None else []
