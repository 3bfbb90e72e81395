"""What waits for a person comes along with a store of another state directory.

A store that is new here brings its forks and everything that was ever pending, as it is there. In a store
that is here, what is open afterwards is what is open there: what waits here and not there is rejected, and
stays readable; what waits there and not here is offered again, under another number, since a decision that
was made here is part of this history.

Functions take the transaction of the store, in which its new head has been written, and one of the other.
"""

from collections.abc import Iterator

import msgspec

from engramfs.history import approval, catalog, commit, forks, log, pending
from engramfs.history.approval import Decided, Rows
from engramfs.history.commit import Commit, RowChange
from engramfs.history.store_rows import copy_rows
from engramfs.model.author import Author
from engramfs.model.entry import ROOT_NODE, Entry
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.model.version import Change
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

replace = msgspec.structs.replace


class Replaced(msgspec.Struct, frozen=True):
    """`offered` is how many wait again, `left` how many could not come, being of another history."""

    rejected: list[Decided]
    offered: int
    left: int


def adopt(reader: Reader, there: Store, writer: Writer, store: Store) -> None:
    """Bring everything that was ever pending for `there` to `store`, which is new."""
    here: dict[int, int] = {}
    for fork in catalog.forks(reader, there.id):
        head = catalog.head(reader, fork.id)
        if head.number:
            made = forks.create(writer, store, fork.created, fork.owner)
            catalog.put(writer, replace(fork, id=made.id, base=store.id))
            copy_rows(reader, fork.id, writer, made.id)
            catalog.put_head(writer, made.id, replace(head, journal_position=0))
            here[fork.id] = made.id
    for each in pending.every(reader, there.id):
        pending.enter(writer, store.id, replace(each, fork=here[each.fork]))


def replace_open(
    reader: Reader,
    there: Store,
    writer: Writer,
    store: Store,
    by: Author,
    now: int,
    reason: str,
    *,
    is_kin: bool,
) -> Replaced:
    """Let what is open for `there` be what is open for `store`.

    `is_kin` says that the other head is a version here. Only then do nodes and numbers mean the same, and
    something can come.
    """
    here = {_told(writer, each): each.number for _, each in pending.waiting(writer, store.id)}
    staying: set[int] = set()
    coming: list[list[Pending]] = []
    for offered in _by_fork(reader, there):
        told = [_told(reader, each) for each in offered if _is_open(each)]
        if is_kin and all(each in here for each in told):
            staying.update(here[each] for each in told)
        else:
            coming.append(offered)
    rejected = [
        approval.reject(writer, store, each.number, by, now, reason)
        for _, each in list(pending.waiting(writer, store.id))
        if each.number not in staying
    ]
    count = sum(_is_open(each) for offered in coming for each in offered)
    if not is_kin:
        return Replaced(rejected, 0, count)
    for offered in coming:
        _Again(reader, there, writer, store).offer(offered, by, now)
    return Replaced(rejected, count, 0)


def _is_open(one: Pending) -> bool:
    return one.state == "open"


def _by_fork(reader: Reader, store: Store) -> Iterator[list[Pending]]:
    """What is open, with what was rejected and is still built on, of each fork that has something open."""
    for fork in catalog.forks(reader, store.id):
        offered = [one for one in pending.of_fork(reader, fork) if _is_open(one) or pending.is_kept(one)]
        if any(map(_is_open, offered)):
            yield offered


def _told(reader: Reader, one: Pending) -> bytes:
    """What people are told of it, by which it is known under another number too."""
    fork = catalog.get(reader, one.fork)
    version = log.version(reader, fork, one.version)
    changes = [replace(each, origin=0) for each in log.changes(reader, fork.id, one.version)]
    return commit.encode((one.base, version.time, version.author, version.message, changes))


class _Again:
    """Offers what waits in a fork there by a new fork here. Nodes that the fork made get new ids."""

    def __init__(self, reader: Reader, there: Store, writer: Writer, store: Store) -> None:
        self._reader = reader
        self._there = there
        self._writer = writer
        self._store = store
        self._next_node = catalog.head(writer, store.id).next_node
        self._nodes: dict[int, int] = {}

    def offer(self, offered: list[Pending], by: Author, now: int) -> None:
        """In order; what was rejected there is rejected here."""
        fork = catalog.get(self._reader, offered[0].fork)
        made = forks.create(self._writer, self._store, fork.created, fork.owner)
        rows = approval.rows_of(self._reader, fork)
        rejected = []
        for each in offered:
            planned = self._commit(fork, made, each, rows.get(each.version, {}))
            version = forks.apply(self._writer, planned, each.base)
            again = pending.of_version(self._writer, made, version.number) if version is not None else None
            if again is not None and not _is_open(each):
                rejected.append((again.number, each))
        for number, each in rejected:
            who = each.decided_by or by
            approval.reject(self._writer, self._store, number, who, each.decided or now, each.reason)

    def _commit(self, fork: Store, made: Store, one: Pending, rows: Rows) -> Commit:
        version = log.version(self._reader, fork, one.version)
        placed = [
            RowChange(self._node(parent), name, self._entry(entry)) for (parent, name), entry in rows.items()
        ]
        return Commit(
            store=made.id,
            author=version.author,
            via=version.via,
            time=version.time,
            changes=[self._change(each) for each in log.changes(self._reader, fork.id, one.version)],
            rows=placed,
            next_node=self._next_node,
            message=version.message,
            flags=version.flags,
            overwrites=version.overwrites,
        )

    def _entry(self, entry: Entry | None) -> Entry | None:
        if entry is None:
            return None
        return replace(entry, node=self._node(entry.node), origin=self._node(entry.origin))

    def _change(self, change: Change) -> Change:
        return replace(change, origin=self._node(change.origin))

    def _node(self, node: int) -> int:
        """The node here: that of the store, where the store ever had it."""
        if node not in self._nodes:
            self._nodes[node] = node if self._is_of_store(node) else self._next_node
            self._next_node += self._nodes[node] != node
        return self._nodes[node]

    def _is_of_store(self, node: int) -> bool:
        prefix = keys.node(self._there.id, node)
        return node in (keys.NO_PARENT, ROOT_NODE) or (
            next(self._reader.keys(Table.NODES, prefix, keys.after(prefix)), None) is not None
        )
