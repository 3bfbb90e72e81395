"""Taking a content out of what waits for a decision: there its rows go whole, as if nobody had offered it.

A redacted row would become the head with the approval. Without it the name is again what it was before; the
change that lost its path, and the redaction, say that something was there. Functions take a transaction.
"""

from collections.abc import Iterable, Iterator

from engramfs.history import pending
from engramfs.history.approval import rows_of, settle
from engramfs.history.changes import Name
from engramfs.history.later_names import is_same_thing
from engramfs.history.redaction_target import Span
from engramfs.history.tree import decode_entry, fork_tree
from engramfs.model.entry import Entry
from engramfs.model.pending import Pending
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

_Row = tuple[int, Name]  # version of the fork, name


def waits(one: Pending) -> bool:
    """Whether it is open, or was rejected and its session sees it still."""
    return one.state == "open" or pending.is_kept(one)


def waiting_versions(reader: Reader, fork: Store) -> set[int]:
    """Those of a fork; a store has none."""
    return {one.version for one in pending.of_fork(reader, fork) if waits(one)} if fork.base else set()


def take_out_rows(writer: Writer, fork: Store, spans: Iterable[Span]) -> list[Name]:
    """Remove the rows of `spans` in versions that wait; the names that the fork shows otherwise now."""
    waiting = waiting_versions(writer, fork)
    spanned = [(number, (span.parent, span.name)) for span in spans for number in span.rows]
    found = {row for row in spanned if row[0] in waiting}
    gone = sorted(found | set(_left_behind(writer, fork, found)))
    for row in gone:
        _remove(writer, fork, row)
    gone += _remove_deletions_of_nothing(writer, fork, waiting, {name for _, name in [*spanned, *gone]})
    if not gone:
        return []
    names = {name for _, name in gone}
    return settle(writer, fork, rows_of(writer, fork), gone[0][0], names)


def _left_behind(reader: Reader, fork: Store, found: set[_Row]) -> Iterator[_Row]:
    """Where what goes was renamed from in the same version: without it that would be a deletion."""
    rows = rows_of(reader, fork)
    for number in {number for number, _ in found}:
        offered = pending.of_version(reader, fork, number)
        if offered is None:
            continue
        before = fork_tree(reader, fork, number, offered.base, without=True)
        own = rows.get(number, {})
        going = [entry for name, entry in own.items() if (number, name) in found and entry is not None]
        for name, entry in own.items():
            was = before.lookup(*name) if entry is None else None
            if was is not None and any(is_same_thing(was, one) for one in going):
                yield number, name


def _remove_deletions_of_nothing(
    writer: Writer, fork: Store, waiting: set[int], names: set[Name]
) -> list[_Row]:
    """The rows that said of a name that it is gone, where there is nothing any more that could go."""
    found, own = [], rows_of(writer, fork)
    for number in waiting:
        offered, rows = pending.of_version(writer, fork, number), own.get(number, {})
        if offered is not None:
            before = fork_tree(writer, fork, number, offered.base, without=True)
            deleted = (name for name in names & rows.keys() if rows[name] is None)
            found += [(number, name) for name in deleted if before.lookup(*name) is None]
    for row in found:
        _remove(writer, fork, row)
    return found


def _remove(writer: Writer, fork: Store, row: _Row) -> None:
    """With the node's knowledge of the name, unless another row has that as well."""
    number, name = row
    key = keys.history(fork.id, *name, number)
    removed = _entry(writer.get(Table.HISTORY, key))
    writer.delete(Table.HISTORY, key)
    prefix = keys.live(fork.id, *name) + b"\0"
    left = [_entry(value) for _, value in writer.scan(Table.HISTORY, prefix, keys.after(prefix))]
    if removed is not None and all(entry is None or entry.node != removed.node for entry in left):
        writer.delete(Table.NODES, keys.place(fork.id, removed.node, *name))


def _entry(value: bytes | None) -> Entry | None:
    return None if value in (None, keys.TOMBSTONE) else decode_entry(value or b"")
