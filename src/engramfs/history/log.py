"""The versions of a store and what each changed: as values, as JSON and as text.

Functions take a transaction and hold none. Iterators are lazy: a caller that stops early has read no more.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import msgspec

from engramfs.errors import Corrupt
from engramfs.history import catalog
from engramfs.history.imported import source_of, text_of
from engramfs.model.author import Author
from engramfs.model.entry import Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.model.times import format_time
from engramfs.model.version import PARTIAL, Change, ChangeKind, Version
from engramfs.model.visible import visible
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Row, Table

_decode_version = msgspec.msgpack.Decoder(Version).decode
_decode_changes = msgspec.msgpack.Decoder(list[Change]).decode


def decode_version(value: bytes) -> Version:
    """A row of `versions`. Raises `Corrupt`."""
    try:
        return _decode_version(value)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"the header of a version cannot be read ({error}); run engramfs verify") from error


def decode_changes(value: bytes) -> list[Change]:
    """A row of `changes`. Raises `Corrupt`."""
    try:
        return _decode_changes(value)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"the changes of a version cannot be read ({error}); run engramfs verify") from error


def versions(
    reader: Reader, store_id: int, *, newest: int | None = None, limit: int | None = None
) -> Iterator[Version]:
    """The versions of a store from `newest` (default: the head) down, at most `limit` of them."""
    stop = keys.version(store_id + 1, 0) if newest is None else keys.version(store_id, newest + 1)
    rows = reader.scan(Table.VERSIONS, keys.version(store_id, 0), stop, reverse=True)
    return (decode_version(value) for _, value in islice(rows, limit))


def version(reader: Reader, store: Store, number: int) -> Version:
    """One version. Raises `NotFound`."""
    found = find_version(reader, store.id, number)
    if found is None:
        raise catalog.no_version(reader, store, catalog.head(reader, store.id), number)
    return found


def find_version(reader: Reader, store_id: int, number: int) -> Version | None:
    """One version, or None where there is none, or none any more."""
    value = reader.get(Table.VERSIONS, keys.version(store_id, number)) if 0 < number < 1 << 64 else None
    return decode_version(value) if value is not None else None


def changes(reader: Reader, store_id: int, number: int) -> Iterator[Change]:
    """What a version changed, sorted by path."""
    start, stop = keys.changes(store_id, number, 0), keys.changes(store_id, number + 1, 0)
    for _, value in reader.scan(Table.CHANGES, start, stop):
        yield from decode_changes(value)


def numbers_touching(reader: Reader, store: Store, path: bytes, newest: int) -> Iterator[int]:
    """The versions from `newest` down that changed `path` or anything below it. Renames are not followed."""
    start, stop = keys.changes(store.id, 0, 0), keys.changes(store.id, newest + 1, 0)
    for number, parts in groupby(reader.scan(Table.CHANGES, start, stop, reverse=True), key=_number):
        if any(touches(change, path) for _, value in parts for change in decode_changes(value)):
            yield number


def _number(row: Row) -> int:
    return keys.read_u64(row[0][4:12])


def touches(change: Change, path: bytes) -> bool:
    """Whether a change is one of `path`, of something below it, or moves a directory that it lies in."""
    paths = [change.path] if change.from_path is None else [change.path, change.from_path]
    if not path or any(one == path or one.startswith(path + b"/") for one in paths):
        return True
    moves_a_directory = change.op is ChangeKind.RENAMED and change.kind is Kind.DIRECTORY
    return moves_a_directory and any(path.startswith(one + b"/") for one in paths)


def at_time(reader: Reader, store_id: int, time_ns: int) -> int:
    """The number of the newest version that is not later than `time_ns`; 0 when there is none."""
    head = catalog.head(reader, store_id)
    found, earlier, later = 0, 0, head.number + 1
    while later - earlier > 1:
        middle = (earlier + later) // 2
        version = _newest_up_to(reader, store_id, middle)
        if (version is None or version.number < middle) and middle >= head.oldest:
            raise Corrupt(f"version {middle} is missing; run engramfs verify")
        if version is None or version.time <= time_ns:
            found, earlier = version.number if version is not None else found, middle
        else:
            later = middle
    return found


def first_after(reader: Reader, store_id: int, time_ns: int) -> int:
    """The number of the first version later than `time_ns`, of those that retention removed none of.

    It is that after the head when there is none.
    """
    head = catalog.head(reader, store_id)
    earlier, later = head.oldest - 1, head.number + 1
    while later - earlier > 1:
        middle = (earlier + later) // 2
        version = find_version(reader, store_id, middle)
        if version is None:
            raise Corrupt(f"version {middle} is missing; run engramfs verify")
        earlier, later = (middle, later) if version.time <= time_ns else (earlier, middle)
    return later


def _newest_up_to(reader: Reader, store_id: int, number: int) -> Version | None:
    """That version, or the newest before it which is kept."""
    row = reader.at_or_before(Table.VERSIONS, keys.version(store_id, number))
    return decode_version(row[1]) if row is not None and row[0][:4] == keys.u32(store_id) else None


def feed_position(reader: Reader) -> int:
    """The sequence of the newest version of any store in the feed; 0 when there is none."""
    value = reader.get(Table.META, keys.NEXT_FEED_KEY)
    return keys.read_u64(value) - 1 if value is not None else 0


def feed(reader: Reader, first: int, last: int) -> Iterator[tuple[int, int]]:
    """(store id, number) of each version from `first` to `last` of the feed."""
    for _, value in reader.scan(Table.FEED, keys.u64(first), keys.u64(last + 1)):
        store, number = msgspec.msgpack.decode(value)
        yield int(store), int(number)


def describe(version: Version, changes: Iterable[Change], *, partial: bool = False) -> dict[str, Any]:
    """A version as JSON.

    `overwrites` is there only when the version is flagged `concurrent`, `source` when it was a commit, and
    `partial` when it is: retention removed what others had in the tree of then.
    """
    described: dict[str, Any] = {
        "number": version.number,
        "time": format_time(version.time),
        "author": describe_author(version.author),
        "via": version.via,
        "message": text_of(version),
        "flags": list(version.flags),
        "digest": version.digest.hex(),
        "changes": [describe_change(change) for change in changes],
    }
    if version.overwrites:
        described["overwrites"] = list(version.overwrites)
    if partial:
        described["partial"] = True
    if source := source_of(version):
        described["source"] = source
    return described


def describe_author(author: Author) -> dict[str, Any]:
    """Who made a version, as JSON."""
    return {
        "kind": author.kind,
        "agent": author.agent,
        "actor": author.actor,
        "tenant": author.tenant,
        "session": author.session,
    }


def describe_change(change: Change) -> dict[str, Any]:
    """A change as JSON; `sha256` is null for what has no content of its own.

    Of a redacted one the paths are empty; it has the key `redacted`.
    """
    return {
        **({"redacted": True} if change.is_redacted else {}),
        "op": change.op.label,
        "path": printable(change.path),
        "from_path": None if change.from_path is None else printable(change.from_path),
        "sha256": change.digest.hex() or None,
        "size": change.size,
    }


def line(version: Version, *, partial: bool = False) -> str:
    """A version as one line for people: number, time, author, flags, count of changes, message.

    With `partial`, it says that retention left only part of the tree.
    The time has every digit, so that `.versions/@<time>` with it is this version.
    """
    flags = [*version.flags, *(f"overwrites {number}" for number in version.overwrites)]
    count = version.change_count
    words = [
        f"{version.number:>6}",
        format_time(version.time),
        version.author.label(),
        PARTIAL if partial else "",
        f"[{', '.join(flags)}]" if flags else "",
        f"{count} change" + ("" if count == 1 else "s"),
        visible(text_of(version)),
    ]
    return "  ".join(word for word in words if word)
