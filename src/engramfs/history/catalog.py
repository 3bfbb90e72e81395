"""Which stores there are, and what is known of each.

Functions take a transaction, so that a caller combines them into one. Rows are described in
`engramfs.storage.keys`.
"""

from collections.abc import Iterator

import msgspec

from engramfs.errors import AlreadyExists, Archived, Corrupt, NotFound, UsageError
from engramfs.history.residue import leave_residue
from engramfs.model.names import MAX_NAME, check_store_name, kind_of
from engramfs.model.store import Conflicts, Head, Limits, Secrets, Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

_decode_store = msgspec.msgpack.Decoder(Store).decode
_decode_head = msgspec.msgpack.Decoder(Head).decode
encode = msgspec.msgpack.Encoder().encode


def create(
    writer: Writer,
    name: str,
    *,
    now: int,
    description: str = "",
    limits: Limits | None = None,
    conflicts: Conflicts = "keep",
    secrets: Secrets = "flag",
    owner: str = "",
) -> Store:
    """A new, empty store. Raises `InvalidName`, and `AlreadyExists` for a name that is taken.

    A name may not lie below another store's, nor above it: stores are directories of the hub.
    """
    check_store_name(name)
    if writer.get(Table.NAMES, name.encode()) is not None:
        raise AlreadyExists(f"store {name} exists; engramfs store show {name} describes it")
    _check_no_nesting(writer, name)
    identifier = next_id(writer)
    store = Store(
        id=identifier,
        name=name,
        kind=kind_of(name),
        description=description,
        limits=check_limits(limits or Limits()),
        conflicts=conflicts,
        created=now,
        owner=owner,
        secrets=secrets,
    )
    writer.put(Table.NAMES, name.encode(), keys.u32(identifier))
    put(writer, store)
    put_head(writer, identifier, Head())
    return store


def next_id(writer: Writer) -> int:
    """A store id that was never given before."""
    counter = writer.get(Table.META, keys.NEXT_STORE_KEY)
    identifier = keys.read_u32(counter) if counter else 1
    writer.put(Table.META, keys.NEXT_STORE_KEY, keys.u32(identifier + 1))
    return identifier


def check_limits(limits: Limits) -> Limits:
    """Return `limits` when a filesystem can show them. Raises `UsageError`."""
    for what, value in (("max_file_size", limits.max_file_size), ("quota", limits.quota)):
        if not 1 <= value < 1 << 62:
            raise UsageError(f"{what} is {value}; it must be at least 1 byte and below 4 EiB")
    return limits


def _check_no_nesting(reader: Reader, name: str) -> None:
    below = name.encode() + b"/"
    row = reader.at_or_after(Table.NAMES, below)
    if row and row[0].startswith(below):
        raise AlreadyExists(f"store {name} would hold the store {row[0].decode()}; choose another name")
    parts = name.split("/")
    for end in range(1, len(parts)):
        above = "/".join(parts[:end])
        if reader.get(Table.NAMES, above.encode()) is not None:
            raise AlreadyExists(f"store {name} would lie in the store {above}; choose another name")


def put(writer: Writer, store: Store) -> None:
    writer.put(Table.STORES, keys.u32(store.id), encode(store))


def get(reader: Reader, identifier: int) -> Store:
    """The store with that id. Raises `NotFound`."""
    value = reader.get(Table.STORES, keys.u32(identifier))
    if value is None:
        raise NotFound(f"there is no store number {identifier}")
    try:
        return _decode_store(value)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"the row of store number {identifier} cannot be read; run engramfs verify") from error


def find(reader: Reader, name: str) -> Store | None:
    """The store of that name, or None."""
    encoded = name.encode("utf-8", "replace")
    identifier = reader.get(Table.NAMES, encoded) if 0 < len(encoded) <= MAX_NAME else None
    return get(reader, keys.read_u32(identifier)) if identifier is not None else None


def named(reader: Reader, name: str) -> Store:
    """The store of that name. Raises `InvalidName` and `NotFound`."""
    store = find(reader, check_store_name(name))
    if store is None:
        raise NotFound(f"there is no store {name}; engramfs store list shows what there is")
    return store


def writable(reader: Reader, name: str) -> Store:
    """The store of that name, if it takes new versions. Raises `NotFound` and `Archived`."""
    store = named(reader, name)
    if store.archived:
        raise Archived(f"store {name} is archived; engramfs store set {name} --no-archived opens it again")
    return store


def every(reader: Reader, prefix: str = "") -> Iterator[Store]:
    """All stores whose name begins with `prefix`, by name."""
    start = prefix.encode()
    stop = keys.after(start) if start else b"\xff"
    for _, identifier in reader.scan(Table.NAMES, start, stop):
        yield get(reader, keys.read_u32(identifier))


def forks(reader: Reader, identifier: int) -> Iterator[Store]:
    """The forks of a store."""
    start, stop = keys.pending(identifier, keys.FORK), keys.u32(identifier + 1)
    for key, _ in reader.scan(Table.PENDING, start, stop):
        yield get(reader, keys.read_u64(key[4:]) - keys.FORK)


def delete(writer: Writer, store: Store) -> None:
    """Remove a store, its tree, its history and its forks.

    Blobs stay until they are collected: others may use them.
    """
    for fork in list(forks(writer, store.id)):
        delete(writer, fork)
    prefix = keys.u32(store.id)
    leave_residue(writer)
    tables = (Table.LIVE, Table.HISTORY, Table.NODES, Table.CHANGES, Table.VERSIONS, Table.REDACTED)
    for table in (*tables, Table.PENDING):
        for key in [key for key, _ in writer.scan(table, prefix, keys.after(prefix))]:
            writer.delete(table, key)
    waiting = keys.open_pending(store.id, 0)[:8]
    for key in [key for key, _ in writer.scan(Table.PENDING, waiting, keys.after(waiting))]:
        writer.delete(Table.PENDING, key)
    writer.delete(Table.HEADS, prefix)
    writer.delete(Table.STORES, prefix)
    if store.base:
        writer.delete(Table.PENDING, keys.pending(store.base, keys.FORK + store.id))
    else:
        writer.delete(Table.NAMES, store.name.encode())


def head(reader: Reader, identifier: int) -> Head:
    """The head of a store. Raises `NotFound`."""
    value = reader.get(Table.HEADS, keys.u32(identifier))
    if value is None:
        raise NotFound(f"there is no store number {identifier}")
    try:
        return _decode_head(value)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"the head of store number {identifier} cannot be read; run engramfs verify") from error


def set_aside(writer: Writer, identifier: int, first: int) -> None:
    """Let a store give out no node id below `first`."""
    now = head(writer, identifier)
    put_head(writer, identifier, msgspec.structs.replace(now, next_node=max(now.next_node, first)))


def no_version(reader: Reader, store: Store, head: Head, number: int) -> NotFound:
    """The error that says so, or that its tree is not there, and why."""
    if 0 < number < head.oldest and reader.get(Table.VERSIONS, keys.version(store.id, number)) is not None:
        return NotFound(
            f"{store.name}@{number} is kept only in part: retention removed the rest of its tree; name one "
            f"PATH that it brought (engramfs show {store.name}@{number}), or a version from {head.oldest} on"
        )
    if 0 < number < head.oldest:
        return NotFound(
            f"version {number} of store {store.name} was removed by retention; its oldest is {head.oldest} "
            f"(engramfs log {store.name})"
        )
    return NotFound(
        f"store {store.name} has no version {number}; its newest is {head.number} (engramfs log {store.name})"
    )


def put_head(writer: Writer, identifier: int, value: Head) -> None:
    writer.put(Table.HEADS, keys.u32(identifier), encode(value))
