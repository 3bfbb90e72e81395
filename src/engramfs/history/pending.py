"""The rows of `pending`: which versions of forks wait for a person, and what became of those that did.

Functions take a transaction. Deciding is in `engramfs.history.approval`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from engramfs.errors import Corrupt, NotFound
from engramfs.history import catalog, log
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.model.times import format_time
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

_decode = msgspec.msgpack.Decoder(Pending).decode
_encode = msgspec.msgpack.Encoder().encode


def decode(value: bytes) -> Pending:
    """A row that holds a Pending. Raises `Corrupt`."""
    try:
        return _decode(value)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"what is pending cannot be read ({error}); run engramfs verify") from error


def every(reader: Reader, store: int) -> Iterator[Pending]:
    """All that was ever offered to a store, oldest first."""
    start, stop = keys.pending(store, 0), keys.pending(store, keys.OFFERED)
    return (decode(value) for _, value in reader.scan(Table.PENDING, start, stop))


def waiting(reader: Reader, store: int | None = None) -> Iterator[tuple[int, Pending]]:
    """(store, what is open), of one store or of all; by store, oldest first."""
    start = keys.open_pending(0 if store is None else store, 0)
    stop = keys.u32(1) if store is None else keys.open_pending(store + 1, 0)
    for key, _ in reader.scan(Table.PENDING, start, stop):
        identifier, number = keys.split_open(key)
        value = reader.get(Table.PENDING, keys.pending(identifier, number))
        if value is not None:
            yield identifier, decode(value)


def needed_bases(reader: Reader, store: int) -> set[int]:
    """The versions of a store whose trees what waits, or is shown to its session still, was made from."""
    return {one.base for one in every(reader, store) if one.state == "open" or is_kept(one)}


def count_waiting(reader: Reader, store: int) -> int:
    """How many are open."""
    start, stop = keys.open_pending(store, 0), keys.open_pending(store + 1, 0)
    return sum(1 for _ in reader.scan(Table.PENDING, start, stop))


def get(reader: Reader, store: Store, number: int) -> Pending:
    """Raises `NotFound`."""
    known = 0 < number < keys.OFFERED
    value = reader.get(Table.PENDING, keys.pending(store.id, number)) if known else None
    if value is None:
        raise NotFound(
            f"nothing with the number {number} was ever pending for {store.name}; "
            f"engramfs pending list {store.name} --all shows what was"
        )
    return decode(value)


def of_version(reader: Reader, fork: Store, version: int) -> Pending | None:
    """What offers that version of a fork."""
    number = reader.get(Table.PENDING, keys.pending(fork.id, keys.OFFERED + version))
    value = reader.get(Table.PENDING, keys.pending(fork.base, keys.read_u64(number))) if number else None
    return decode(value) if value is not None else None


def of_fork(reader: Reader, fork: Store) -> Iterator[Pending]:
    """What offers the versions of a fork, oldest first."""
    start, stop = keys.pending(fork.id, keys.OFFERED), keys.pending(fork.id, keys.FORK)
    for _, number in reader.scan(Table.PENDING, start, stop):
        value = reader.get(Table.PENDING, keys.pending(fork.base, keys.read_u64(number)))
        if value is not None:
            yield decode(value)


def put(writer: Writer, store: int, pending: Pending) -> None:
    writer.put(Table.PENDING, keys.pending(store, pending.number), _encode(pending))
    mark = keys.open_pending(store, pending.number)
    if pending.state == "open":
        writer.put(Table.PENDING, mark, b"")
    else:
        writer.delete(Table.PENDING, mark)


def offer(writer: Writer, fork: Store, version: int, base: int) -> Pending:
    """A version of `fork`, made from version `base` of the store below it, waits from now on."""
    newest = writer.at_or_before(Table.PENDING, keys.pending(fork.base, keys.OFFERED - 1))
    is_first = newest is None or newest[0][:4] != keys.u32(fork.base)
    number = 1 if is_first or newest is None else keys.read_u64(newest[0][4:]) + 1
    pending = Pending(number, fork.id, version, base)
    enter(writer, fork.base, pending)
    return pending


def enter(writer: Writer, store: int, pending: Pending) -> None:
    """Put one that was not there, so that its version leads to it."""
    put(writer, store, pending)
    writer.put(
        Table.PENDING, keys.pending(pending.fork, keys.OFFERED + pending.version), keys.u64(pending.number)
    )


def line(pending: Pending) -> str:
    """What became of it, for people: `pending 3 was rejected by root: too vague`."""
    if pending.state == "open":
        return f"pending {pending.number} waits"
    by = pending.decided_by.label() if pending.decided_by is not None else "somebody"
    became = f" as version {pending.result}" if pending.result else ""
    if pending.unchanged:
        became = ", with nothing left to change"
    stays = " (still shown: a later change builds on it)" if is_kept(pending) else ""
    reason = f": {pending.reason}" if pending.reason else ""
    return f"pending {pending.number} was {pending.state} by {by}{became}{stays}{reason}"


def is_kept(pending: Pending) -> bool:
    """Whether it was rejected and stays in its fork, since a later change that is there builds on it."""
    return pending.state == "rejected" and not pending.until


def describe(reader: Reader, store: Store, pending: Pending) -> dict[str, Any]:
    """A pending version as JSON: the version as `log` describes it, and what became of it.

    `kept`: it was rejected, and its session sees it while a later change builds on it. `unchanged`: it was
    approved, and the store had all of it already; then `result`, the version that it became, is null.
    """
    fork = catalog.get(reader, pending.fork)
    version = log.version(reader, fork, pending.version)
    document = log.describe(version, log.changes(reader, fork.id, pending.version))
    by = pending.decided_by
    return document | {
        "store": store.name,
        "number": pending.number,
        "base": pending.base,
        "state": pending.state,
        "reason": pending.reason,
        "decided_by": by.label() if by is not None else None,
        "decided": format_time(pending.decided) if pending.decided else None,
        "result": None if pending.unchanged else pending.result or None,
        "unchanged": pending.unchanged,
        "kept": is_kept(pending),
    }
