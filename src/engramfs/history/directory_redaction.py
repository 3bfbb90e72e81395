"""Taking the name of a directory out of the history.

What lies below is found by the directory's node, so nothing of it has to go with the name. In all rows that
have the name, and in every path that leads through it, another stands in its place: `redacted-` and the
node's number. Old trees stay whole that way, and what was in the directory can still be read, restored and
redacted. Headers stay as they are, and the chain proves itself as after `engramfs.history.redaction`.

Whatever has the name at the head is refused: rename or remove it first.
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from engramfs.history import catalog
from engramfs.history.change_edits import edit_changes
from engramfs.history.directory_target import (
    PREFIX,
    find_directory,
    find_pending_directory,
    free_name,
    paths_of,
    require_past,
)
from engramfs.history.redaction import carry_out
from engramfs.history.redaction_rows import Removed, add_redaction
from engramfs.history.redaction_target import Span, spans
from engramfs.history.repository import Repository
from engramfs.history.residue import leave_residue
from engramfs.history.tree import decode_entry, default_root
from engramfs.model.author import Author
from engramfs.model.entry import Entry
from engramfs.model.redaction import Redaction
from engramfs.model.store import Store
from engramfs.model.version import Change
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table, Writer

replace = msgspec.structs.replace
_AT_ONCE = 2000  # rows in one read transaction


def redact_directory(
    repository: Repository,
    name: str,
    number: int,
    path: bytes,
    author: Author,
    reason: str,
    now: int,
    *,
    is_pending: bool = False,
) -> Removed:
    """Take the name that `path`, a directory in version `number`, has there out of the store `name`.

    With `is_pending`, `number` is that of what was pending, and made the directory or renamed it. Nothing may
    be unsealed. Raises `NotFound` for an unknown store, version or path, `UsageError` for the root,
    `Redacted` when that was done before, and `Refused` when the head, or what waits for a decision, has the
    name, or a file had it.
    """
    redaction = Redaction(now, author, reason, 0)
    return carry_out(repository, partial(_plan, repository, name, number, path, is_pending), redaction)


class _Renamed(msgspec.Struct, frozen=True):
    """An edit of changes: of each path that leads through one of `paths`, its last name becomes `name`."""

    paths: frozenset[bytes]
    name: bytes

    def of(self, changes: list[Change]) -> list[Change]:
        return [self._edited(change) for change in changes]

    def _edited(self, change: Change) -> Change:
        from_path = self._renamed(change.from_path) if change.from_path is not None else None
        return replace(change, path=self._renamed(change.path), from_path=from_path)

    def _renamed(self, path: bytes) -> bytes:
        for one in self.paths:
            if path == one or path.startswith(one + b"/"):
                above, slash, _ = one.rpartition(b"/")
                return above + slash + self.name + path[len(one) :]
        return path


class _Plan(msgspec.Struct, frozen=True):
    """What is to be done. It holds as long as the heads are `heads`."""

    store: Store
    heads: tuple[tuple[int, int], ...]  # of the store and its forks: id, number
    parent: int
    name: bytes
    instead: bytes
    entry: Entry
    spans: dict[int, tuple[Span, ...]]  # of the store and its forks
    edits: tuple[tuple[int, int, _Renamed], ...]  # store, version, what is to be done to its changes

    def carry_out(self, writer: Writer, redaction: Redaction) -> Removed | None:
        """None when a head has moved."""
        if _heads(writer, self.store) != self.heads:
            return None
        leave_residue(writer)
        for store, _ in self.heads:
            self._move_rows(writer, store)
        changed: dict[int, list[int]] = {store: [] for store, _ in self.heads}
        count = 0
        for store, number, edit in self.edits:
            lost, remaining = edit_changes(writer, store, number, [edit], b"")
            if remaining:
                add_redaction(writer, store, number, replace(redaction, changes=lost, remaining=remaining))
                count += lost
                changed[store].append(number)
        own, *forks = (
            Removed(store, self.entry, self.spans.get(store, ()), tuple(changed[store]), 0)
            for store, _ in self.heads
        )
        beside = tuple(fork for fork in forks if fork.versions)
        return replace(own, changes=count, instead=self.instead, beside=beside)

    def _move_rows(self, writer: Writer, store: int) -> None:
        stem = keys.live(store, self.parent, self.name) + b"\0"
        for key, value in list(writer.scan(Table.HISTORY, stem, keys.after(stem))):
            number = keys.read_u64(key[-8:])
            writer.put(Table.HISTORY, keys.history(store, self.parent, self.instead, number), value)
            writer.delete(Table.HISTORY, key)
            if value != keys.TOMBSTONE:
                node = decode_entry(value).node
                writer.put(Table.NODES, keys.place(store, node, self.parent, self.instead), b"")
                writer.delete(Table.NODES, keys.place(store, node, self.parent, self.name))


def _plan(repository: Repository, name: str, number: int, path: bytes, is_pending: bool) -> _Plan:
    find = find_pending_directory if is_pending else find_directory
    with repository.engine.reading() as reader:
        store = catalog.named(reader, name)
        found = find(reader, store, number, path)
    if found is None:
        return _plan_of_changes(repository, store, path)
    parent, entry = found
    last = path.rpartition(b"/")[2]
    with repository.engine.reading() as reader:
        require_past(reader, store, parent, path)
        heads = _heads(reader, store)
        shown = {one: tuple(_spans(reader, one, head, parent, last)) for one, head in heads}
        instead = free_name(reader, store, parent, entry.node)
    edits = []
    for identifier, _ in heads:
        for version in _naming(repository, identifier, last):
            with repository.engine.reading() as reader:
                one = catalog.get(reader, identifier)
                is_partly_known = version < catalog.head(reader, identifier).oldest
                is_asked = not is_pending and one == store and (version == number or is_partly_known)
                asked = {path} if is_asked else set()
                paths = paths_of(reader, one, version, parent, last) | asked
            edits.append((identifier, version, _Renamed(frozenset(paths), instead)))
    return _Plan(store, heads, parent, last, instead, entry, shown, tuple(edits))


def _plan_of_changes(repository: Repository, store: Store, path: bytes) -> _Plan:
    """Below the horizon of retention, changes may be all that has the name."""
    name, instead = path.rpartition(b"/")[2], PREFIX + b"0"
    with repository.engine.reading() as reader:
        heads = _heads(reader, store)
        oldest = catalog.head(reader, store.id).oldest
    numbers = [number for number in _naming(repository, store.id, name) if number <= oldest]
    edits = tuple((store.id, number, _Renamed(frozenset([path]), instead)) for number in numbers)
    return _Plan(store, heads, keys.NO_PARENT, name, instead, default_root(store.created), {}, edits)


def _spans(reader: Reader, identifier: int, head: int, parent: int, name: bytes) -> Iterator[Span]:
    """Those of a store, or of a fork, in which nothing reaches further than its newest version."""
    store = catalog.get(reader, identifier)
    for span in spans(reader, store, parent, name):
        yield replace(span, last=head) if store.base and span.last == 0 else span


def _heads(reader: Reader, store: Store) -> tuple[tuple[int, int], ...]:
    known = (store, *catalog.forks(reader, store.id))
    return tuple((one.id, catalog.head(reader, one.id).number) for one in known)


def _naming(repository: Repository, store: int, name: bytes) -> Iterator[int]:
    """The versions whose changes may have the name in a path."""
    start, stop = keys.u32(store), keys.after(keys.u32(store))
    seen = 0
    while True:
        with repository.engine.reading() as reader:
            rows = reader.scan(Table.CHANGES, start, stop)
            found = [(key, name in value) for (key, value), _ in zip(rows, range(_AT_ONCE), strict=False)]
        for key, has_name in found:
            number = keys.read_u64(key[4:12])
            if has_name and number != seen:
                seen = number
                yield number
        if len(found) < _AT_ONCE:
            return
        start = found[-1][0] + b"\0"
