"""A store's tree, at its head or at a version, read straight from the log.

`head_tree` and `version_tree` give it for any store; of a fork it is a `ForkTree`.

The functions that walk take any `Tree`. None of them holds a transaction: the caller does.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from engramfs.errors import Corrupt
from engramfs.history import catalog, pending
from engramfs.history.fork_tree import ForkTree, LiveRows, VersionRows
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table

decode_entry = msgspec.msgpack.Decoder(Entry).decode
_BAD_ROW = msgspec.MsgspecError


class HasNodes(Protocol):
    def node(self, node: int) -> tuple[int, bytes, Entry] | None:
        """(parent, name, entry) of one of the names that a node has in this tree."""


class Tree(HasNodes, Protocol):
    """Entries by directory and name."""

    def root(self) -> Entry: ...

    def lookup(self, parent: int, name: bytes) -> Entry | None: ...

    def children(self, parent: int) -> Iterator[tuple[bytes, Entry]]:
        """By name."""


def default_root(created: int) -> Entry:
    """The root of a store where nobody changed it."""
    return Entry(
        node=ROOT_NODE,
        kind=Kind.DIRECTORY,
        mode=0o755,
        size=0,
        mtime=created,
        ctime=created,
        origin=ROOT_NODE,
    )


class HeadTree:
    """The tree at the head: never touches `history`."""

    def __init__(self, reader: Reader, store: Store) -> None:
        self._reader = reader
        self._store = store.id
        self._name = store.name
        self._created = store.created

    def root(self) -> Entry:
        return self.lookup(keys.NO_PARENT, b"") or default_root(self._created)

    def lookup(self, parent: int, name: bytes) -> Entry | None:
        value = self._reader.get(Table.LIVE, keys.live(self._store, parent, name))
        try:
            return decode_entry(value) if value is not None else None
        except _BAD_ROW as error:
            raise _unreadable(self._name, parent, name) from error

    def children(self, parent: int) -> Iterator[tuple[bytes, Entry]]:
        prefix = keys.directory(self._store, parent)
        key = prefix
        try:
            for key, value in self._reader.scan(Table.LIVE, prefix, keys.after(prefix)):
                yield key[9:], decode_entry(value)
        except _BAD_ROW as error:
            raise _unreadable(self._name, parent, key[9:]) from error

    def node(self, node: int) -> tuple[int, bytes, Entry] | None:
        return next(places(self._reader, self._store, self, node), None)


class VersionTree:
    """The tree at version `number`: for each name, the last row of `history` that is not newer."""

    def __init__(self, reader: Reader, store: Store, number: int) -> None:
        self._reader = reader
        self._store = store.id
        self._name = store.name
        self._created = store.created
        self._number = number

    def root(self) -> Entry:
        return self.lookup(keys.NO_PARENT, b"") or default_root(self._created)

    def lookup(self, parent: int, name: bytes) -> Entry | None:
        wanted = keys.history(self._store, parent, name, self._number)
        row = self._reader.at_or_before(Table.HISTORY, wanted)
        if row is None or row[0][:-8] != wanted[:-8] or row[1] == keys.TOMBSTONE:
            return None
        try:
            return decode_entry(row[1])
        except _BAD_ROW as error:
            raise _unreadable(self._name, parent, name) from error

    def children(self, parent: int) -> Iterator[tuple[bytes, Entry]]:
        """By name. Two seeks for each, however many versions it has: its row of then, and the next name."""
        prefix = keys.directory(self._store, parent)
        number = keys.u64(self._number)
        at_or_after, at_or_before, table = self._reader.at_or_after, self._reader.at_or_before, Table.HISTORY
        row = at_or_after(table, prefix)
        stem = prefix
        try:
            while row is not None and row[0].startswith(prefix):
                stem = row[0][:-8]  # the store, the parent, the name and its NUL
                first = row[0][-8:]
                if first < number:
                    row = at_or_before(table, stem + number)
                if first <= number and row is not None and row[1] != keys.TOMBSTONE:
                    yield stem[9:-1], decode_entry(row[1])
                row = at_or_after(table, stem[:-1] + b"\x01")
        except _BAD_ROW as error:
            raise _unreadable(self._name, parent, stem[9:-1]) from error

    def node(self, node: int) -> tuple[int, bytes, Entry] | None:
        return next(places(self._reader, self._store, self, node), None)


def _unreadable(store: str, parent: int, name: bytes) -> Corrupt:
    return Corrupt(
        f"store {store}: the entry {printable(name)} of directory {parent} cannot be read; "
        "run engramfs verify"
    )


def named(reader: Reader, store: int, node: int) -> Iterator[tuple[int, bytes]]:
    """(parent, name) of every name that `node` has or ever had."""
    prefix = keys.node(store, node)
    for key in reader.keys(Table.NODES, prefix, keys.after(prefix)):
        yield keys.split_place(key)[1:]


def places(reader: Reader, store: int, tree: Tree, node: int) -> Iterator[tuple[int, bytes, Entry]]:
    """(parent, name, entry) of every name that `node` has in `tree`."""
    for parent, name in named(reader, store, node):
        entry = tree.lookup(parent, name)
        if entry is not None and entry.node == node:
            yield parent, name, entry


def head_tree(reader: Reader, store: Store) -> Tree:
    """The tree of `store` at its head."""
    if not store.base:
        return HeadTree(reader, store)
    base = HeadTree(reader, catalog.get(reader, store.base))
    return ForkTree(reader, store, LiveRows(reader, store.id), base)


def version_tree(reader: Reader, store: Store, number: int) -> Tree:
    """The tree of `store` at version `number`, which must be one."""
    if not store.base:
        return VersionTree(reader, store, number)
    offered = pending.of_version(reader, store, number)
    return fork_tree(reader, store, number, offered.base if offered is not None else 0)


def fork_tree(reader: Reader, fork: Store, number: int, base: int, *, without: bool = False) -> ForkTree:
    """The tree of a fork at its version `number`, over version `base` of the store below.

    With `without`, the tree that this version was made from.
    """
    below = VersionTree(reader, catalog.get(reader, fork.base), base)
    return ForkTree(reader, fork, VersionRows(reader, fork, number, base, without=without), below)


def tree_at(reader: Reader, store: Store, number: int | None = None) -> Tree:
    """The tree of `store` at version `number` (0: before the first), or at the head. Raises `NotFound`."""
    if number is None:
        return head_tree(reader, store)
    head = catalog.head(reader, store.id)
    if number and not head.oldest <= number <= head.number:
        raise catalog.no_version(reader, store, head, number)
    return version_tree(reader, store, number)


def changed_last(reader: Reader, store: Store, tree: Tree, path: bytes, number: int | None = None) -> int:
    """Which version changed what `path` is in `tree` last: the head's, or that of version `number`."""
    above, _, name = path.rpartition(b"/")
    parent = resolve(tree, above)
    if parent is None:
        return 0
    newest = keys.history(store.id, parent.node, name, (1 << 64) - 1 if number is None else number)
    row = reader.at_or_before(Table.HISTORY, newest)
    return keys.read_u64(row[0][-8:]) if row is not None and row[0][:-8] == newest[:-8] else 0


def growth(old: HasNodes, new: HasNodes, nodes: Iterable[int]) -> tuple[int, int]:
    """Bytes of files and number of nodes that `new` has more than `old`; no others than `nodes` differ."""
    used = files = 0
    for node in nodes:
        if node != ROOT_NODE:
            before, after = old.node(node), new.node(node)
            used += _bytes(after) - _bytes(before)
            files += (after is not None) - (before is not None)
    return used, files


def _bytes(place: tuple[int, bytes, Entry] | None) -> int:
    return place[2].size if place is not None and place[2].kind is Kind.FILE else 0


def resolve(tree: Tree, path: bytes) -> Entry | None:
    """The entry at `path` ("" is the root), not following symlinks."""
    entry: Entry | None = tree.root()
    for name in path.split(b"/"):
        if name in (b"", b"."):
            continue
        if entry is None or entry.kind is not Kind.DIRECTORY:
            return None
        entry = tree.lookup(entry.node, name)
    return entry


def walk(tree: Tree, path: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
    """(path, entry) of everything at and below `path`, parents first, siblings by name."""
    start = resolve(tree, path)
    if start is None:
        return
    waiting = [(path, start)]
    while waiting:
        where, entry = waiting.pop()
        yield where, entry
        if entry.kind is Kind.DIRECTORY:
            below = [
                (where + b"/" + name if where else name, child) for name, child in tree.children(entry.node)
            ]
            waiting.extend(reversed(below))


def path_to(tree: HasNodes, parent: int, name: bytes) -> bytes:
    """The path of `name` in directory `parent`; what cannot be found above it is shown as `?`."""
    names = [name]
    seen = {keys.NO_PARENT, ROOT_NODE}
    while parent not in seen:
        seen.add(parent)
        place = tree.node(parent)
        if place is None:
            names.append(b"?")
            break
        parent, above, _ = place
        names.append(above)
    return b"/".join(reversed(names))
