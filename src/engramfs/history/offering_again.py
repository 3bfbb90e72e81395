"""What waits in a fork of another log is offered again, by a new fork here."""

import msgspec

from engramfs.history import approval, catalog, forks, log, pending
from engramfs.history.approval import Rows
from engramfs.history.commit import Commit, RowChange
from engramfs.history.shared_history import had_node
from engramfs.model.author import Author
from engramfs.model.entry import Entry
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.model.version import Change
from engramfs.storage.protocol import Reader, Writer

replace = msgspec.structs.replace


class OfferingAgain:
    """Nodes that `there` had up to version `shared` are the same here; others get new ids."""

    def __init__(self, reader: Reader, there: Store, writer: Writer, store: Store, shared: int) -> None:
        self._reader = reader
        self._there = there
        self._writer = writer
        self._store = store
        self._shared = shared
        self._next_node = catalog.head(writer, store.id).next_node
        self._nodes: dict[int, int] = {}

    def offer(self, offered: list[Pending], by: Author, now: int) -> None:
        """In order; what was rejected there is rejected here. All are of one fork."""
        fork = catalog.get(self._reader, offered[0].fork)
        made = forks.create(self._writer, self._store, fork.created, fork.owner)
        rows = approval.rows_of(self._reader, fork)
        rejected = []
        for each in offered:
            planned = self._commit(fork, made, each, rows.get(each.version, {}))
            version = forks.apply(self._writer, planned, each.base)
            again = pending.of_version(self._writer, made, version.number) if version is not None else None
            if again is not None and each.state != "open":
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
        """The node here: that of the store, where both had it."""
        if node not in self._nodes:
            is_same = had_node(self._reader, self._there, node, self._shared)
            self._nodes[node] = node if is_same else self._next_node
            self._next_node += not is_same
        return self._nodes[node]
