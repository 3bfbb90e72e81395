"""A person decides on what is pending: it becomes a version of the store, or it does not.

`approve` and `reject` run in one write transaction, which their caller holds. What they return tells live
trees what to take over.

Building on. A pending version builds on an earlier one of its fork when it changes a name that the other
changed, or a name in a directory that the other made or moved. What builds on an open one waits for it. A
rejected one stays in the fork while something that is still there builds on it, and goes with that.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec

from engramfs.errors import Conflict
from engramfs.history import catalog, commit, log, pending
from engramfs.history.applying import Applying
from engramfs.history.changes import Name
from engramfs.history.commit import Commit
from engramfs.history.fork_tree import VersionRows
from engramfs.history.tree import fork_tree
from engramfs.model.author import Author
from engramfs.model.entry import Entry, Kind
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.model.version import Version
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

replace = msgspec.structs.replace
Rows = dict[Name, Entry | None]
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


class Decided(msgspec.Struct, frozen=True):
    """What a decision did. `names` are those of the fork that are the base's again, or an older change's."""

    pending: Pending
    names: list[Name]


class Approved(Decided, frozen=True):
    """And what became of the store; `version` is None when it had all of that already."""

    commit: Commit
    version: Version | None


def approve(
    writer: Writer, store: Store, number: int, by: Author, now: int, reason: str = "", *, merge: bool = False
) -> Approved:
    """Let a pending version become one of `store`, by its author.

    Raises `Conflict` that names what is no longer as it was (with `merge`, only where text cannot be merged
    line by line), or the pending version that this one builds on; `Archived`, `NotFound` and `QuotaExceeded`.
    Then nothing was changed.
    """
    store = catalog.writable(writer, store.name)
    offered = _open(writer, store, number)
    fork = catalog.get(writer, offered.fork)
    rows = rows_of(writer, fork)
    _check_earlier(writer, store, fork, offered, rows)
    version = log.version(writer, fork, offered.version)
    applying = Applying(writer, store, fork, offered, rows.get(offered.version, {}), now)
    message = f"pending {number}, approved by {by.label()}" + (f": {reason}" if reason else "")
    planned = applying.commit(merge=merge)
    planned = replace(
        planned,
        author=version.author,
        message=f"{version.message} ({message})" if version.message else message,
        flags=tuple(sorted({*version.flags, "approved"})),
        overwrites=version.overwrites,
    )
    made = commit.apply(writer, planned)
    result = catalog.head(writer, store.id).number
    offered = replace(offered, result=result, unchanged=made is None)
    decided = _decide(writer, store, offered, "approved", by, now, reason)
    return Approved(decided, settle(writer, fork, rows, offered.version), planned, made)


def reject(writer: Writer, store: Store, number: int, by: Author, now: int, reason: str) -> Decided:
    """Let a pending version be; it stays readable. Raises `Conflict` and `NotFound`."""
    offered = _open(writer, store, number)
    fork = catalog.get(writer, offered.fork)
    _decide(writer, store, offered, "rejected", by, now, reason)
    names = settle(writer, fork, rows_of(writer, fork), offered.version)
    return Decided(pending.get(writer, store, number), names)


def _open(reader: Reader, store: Store, number: int) -> Pending:
    offered = pending.get(reader, store, number)
    if offered.state != "open":
        who = offered.decided_by.label() if offered.decided_by is not None else "somebody"
        raise Conflict(
            f"pending {number} of {store.name} was {offered.state} by {who} already; "
            f"engramfs pending list {store.name} shows what is open"
        )
    return offered


def _decide(
    writer: Writer,
    store: Store,
    offered: Pending,
    state: Literal["approved", "rejected"],
    by: Author,
    now: int,
    reason: str,
) -> Pending:
    decided = replace(offered, state=state, reason=reason, decided_by=by, decided=now)
    pending.put(writer, store.id, decided)
    return decided


# Which builds on which


def rows_of(reader: Reader, fork: Store) -> dict[int, Rows]:
    """What each version of a fork recorded, by number."""
    prefix = keys.u32(fork.id)
    found: dict[int, Rows] = {}
    for key, value in reader.scan(Table.HISTORY, prefix, keys.after(prefix)):
        parent, name, number = keys.split_history(key)
        entry = _decode_entry(value) if value != keys.TOMBSTONE else None
        found.setdefault(number, {})[parent, name] = entry
    return found


def _check_earlier(
    reader: Reader, store: Store, fork: Store, offered: Pending, rows: dict[int, Rows]
) -> None:
    own = rows.get(offered.version, {})
    waiting = [
        earlier.number
        for earlier in pending.of_fork(reader, fork)
        if earlier.version < offered.version
        and earlier.state == "open"
        and builds_on(reader, fork, own, earlier, rows.get(earlier.version, {}))
    ]
    if waiting:
        numbers = " and ".join(str(number) for number in waiting)
        raise Conflict(
            f"pending {offered.number} of {store.name} builds on pending {numbers}, still open; decide on "
            f"that first (engramfs pending show {store.name} {waiting[0]})"
        )


def builds_on(reader: Reader, fork: Store, rows: Rows, earlier: Pending, before: Rows) -> bool:
    """Whether a version of a fork that recorded `rows` builds on `earlier`, which recorded `before`."""
    if rows.keys() & before.keys():
        return True
    placed = {
        entry.node: name
        for name, entry in before.items()
        if entry is not None and entry.kind is Kind.DIRECTORY
    }
    parents = {parent for parent, _ in rows} & placed.keys()
    if not parents:
        return False
    tree = fork_tree(reader, fork, earlier.version, earlier.base, without=True)
    was = {parent: tree.lookup(*placed[parent]) for parent in parents}
    return any(entry is None or entry.node != parent for parent, entry in was.items())


# What the fork shows afterwards


def settle(
    writer: Writer, fork: Store, rows: dict[int, Rows], decided: int, beside: Iterable[Name] = ()
) -> list[Name]:
    """Bring `live` of a fork up to date after a decision on its version `decided`; the names of which it was.

    A rejected version goes from the fork unless something that stays builds on it. `beside` are more names.
    """
    head = catalog.head(writer, fork.id).number
    names = set(rows.get(decided, {})) | set(beside)
    staying: list[int] = []  # versions whose rows still count, newest first
    for each in reversed(list(pending.of_fork(writer, fork))):
        if each.state == "rejected" and not each.until:
            own = rows.get(each.version, {})
            if any(builds_on(writer, fork, rows.get(later, {}), each, own) for later in staying):
                staying.append(each.version)
            else:
                pending.put(writer, fork.base, replace(each, until=head))
                names.update(own)
        elif each.state == "open":
            staying.append(each.version)
    _put_live(writer, fork, head, names)
    return sorted(names)


def _put_live(writer: Writer, fork: Store, head: int, names: Iterable[Name]) -> None:
    """What still counts of these names is what `live` has."""
    own = VersionRows(writer, fork, head + 1, catalog.head(writer, fork.base).number)
    for parent, name in names:
        value, key = own.get(parent, name), keys.live(fork.id, parent, name)
        if value is None:
            writer.delete(Table.LIVE, key)
        else:
            writer.put(Table.LIVE, key, value)
