"""The tree of a fork: its own rows over the tree of the store that it was forked from.

A name without a row of its own is what the base says. A node that the fork changed is so under every name,
also under one that the base gave it since. A directory that the fork moved is at one place: see `placement`.

Nothing here holds a transaction: the caller does.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import msgspec

from engramfs.errors import Corrupt
from engramfs.history import pending
from engramfs.history.changes import Name
from engramfs.history.placement import Placement
from engramfs.model.entry import Entry
from engramfs.model.names import printable
from engramfs.model.store import Store
from engramfs.storage import keys
from engramfs.storage.protocol import Reader, Table

if TYPE_CHECKING:
    from engramfs.history.tree import Tree

_decode_entry = msgspec.msgpack.Decoder(Entry).decode


class OwnRows(Protocol):
    """The rows of a fork: values of entries, or TOMBSTONE."""

    def get(self, parent: int, name: bytes) -> bytes | None:
        """None: the name is the base's."""

    def children(self, parent: int) -> Iterator[tuple[bytes, bytes]]: ...

    @property
    def newest(self) -> int:
        """No row is of a later version of the fork."""


class LiveRows:
    """Those of its head."""

    newest = (1 << 64) - 1

    def __init__(self, reader: Reader, fork: int) -> None:
        self._reader = reader
        self._fork = fork

    def get(self, parent: int, name: bytes) -> bytes | None:
        return self._reader.get(Table.LIVE, keys.live(self._fork, parent, name))

    def children(self, parent: int) -> Iterator[tuple[bytes, bytes]]:
        prefix = keys.directory(self._fork, parent)
        return ((key[9:], value) for key, value in self._reader.scan(Table.LIVE, prefix, keys.after(prefix)))


class VersionRows:
    """Those of its version `number`, over the base at version `base`: what was decided counts no longer.

    With `without`, those that were there when that version was made: without its own.
    """

    def __init__(self, reader: Reader, fork: Store, number: int, base: int, *, without: bool = False) -> None:
        self._reader = reader
        self._fork = fork
        self._number = number
        self.newest = number - without
        self._base = base
        self._counted: dict[int, bool] = {}  # version → whether its rows count

    def get(self, parent: int, name: bytes) -> bytes | None:
        stem = keys.live(self._fork.id, parent, name) + b"\0"
        number = self.newest
        while True:
            row = self._reader.at_or_before(Table.HISTORY, stem + keys.u64(number))
            if row is None or row[0][:-8] != stem:
                return None
            number = keys.read_u64(row[0][-8:])
            if self._counts(number):
                return row[1]
            number -= 1

    def _counts(self, version: int) -> bool:
        known = self._counted.get(version)
        if known is None:
            offered = pending.of_version(self._reader, self._fork, version)
            if offered is None or offered.state == "open":
                known = True
            elif offered.state == "approved":
                known = self._base < offered.result
            else:
                known = not offered.until or self._number <= offered.until
            self._counted[version] = known
        return known

    def children(self, parent: int) -> Iterator[tuple[bytes, bytes]]:
        prefix = keys.directory(self._fork.id, parent)
        row = self._reader.at_or_after(Table.HISTORY, prefix)
        while row is not None and row[0].startswith(prefix):
            stem = row[0][:-8]
            value = self.get(parent, stem[9:-1])
            if value is not None:
                yield stem[9:-1], value
            row = self._reader.at_or_after(Table.HISTORY, stem[:-1] + b"\x01")


class ForkTree:
    """A `Tree` of `fork`, with `rows` over `base`."""

    def __init__(self, reader: Reader, fork: Store, rows: OwnRows, base: "Tree") -> None:
        self._reader = reader
        self._fork = fork
        self._rows = rows
        self.base = base
        self._placement = Placement(_OwnNames(self), _Below(base))

    def root(self) -> Entry:
        return self.lookup(keys.NO_PARENT, b"") or self.base.root()

    def lookup(self, parent: int, name: bytes) -> Entry | None:
        value = self._value(parent, name)
        if value is not None:
            return self.row(parent, name, value)
        entry = self.base.lookup(parent, name)
        return self._as_shown((parent, name), entry) if entry is not None else None

    def _value(self, parent: int, name: bytes) -> bytes | None:
        """The row of a name, unless it is hidden."""
        value = self._rows.get(parent, name)
        return None if value is None or self._placement.hides((parent, name)) else value

    def _as_shown(self, name: Name, entry: Entry) -> Entry | None:
        return self.as_changed(entry) if self._placement.shows(name, entry) else None

    def is_own(self, parent: int, name: bytes) -> bool:
        """Whether the fork says what the name stands for."""
        return self._value(parent, name) is not None

    def children(self, parent: int) -> Iterator[tuple[bytes, Entry]]:
        own = {name: self.lookup(parent, name) for name, _ in self._rows.children(parent)}
        found = {
            name: self._as_shown((parent, name), entry)
            for name, entry in self.base.children(parent)
            if name not in own
        }
        yield from sorted((name, entry) for name, entry in (own | found).items() if entry is not None)

    def node(self, node: int) -> tuple[int, bytes, Entry] | None:
        return next(self.places(node), None)

    def places(self, node: int) -> Iterator[tuple[int, bytes, Entry]]:
        """(parent, name, entry) of every name that `node` has."""
        seen = set()
        for parent, name in (*self.own_places(node), *self._places_of(self._fork.base, node)):
            if (parent, name) in seen:
                continue
            seen.add((parent, name))
            entry = self.lookup(parent, name)
            if entry is not None and entry.node == node:
                yield parent, name, entry

    def own_children(self, parent: int) -> Iterator[tuple[bytes, bytes]]:
        """The names in a directory of which the fork says what they stand for, with their rows."""
        return self._rows.children(parent)

    def own_places(self, node: int) -> Iterator[Name]:
        """The names that the fork ever gave to `node`."""
        return self._places_of(self._fork.id, node)

    def _places_of(self, store: int, node: int) -> Iterator[Name]:
        prefix = keys.node(store, node)
        for key, _ in self._reader.scan(Table.NODES, prefix, keys.after(prefix)):
            yield keys.split_place(key)[1:]

    def as_changed(self, entry: Entry) -> Entry:
        """An entry of the base, as the fork changed its node under another name."""
        for parent, name in self.own_places(entry.node):
            value = self._value(parent, name)
            changed = self.row(parent, name, value) if value is not None else None
            if changed is not None and changed.node == entry.node:
                return changed
        return entry

    def row(self, parent: int, name: bytes, value: bytes) -> Entry | None:
        """What a row says, shown or not. Raises `Corrupt`."""
        try:
            return _decode_entry(value) if value != keys.TOMBSTONE else None
        except msgspec.MsgspecError as error:
            raise Corrupt(
                f"store {self._fork.name}: what is pending for {printable(name)} of directory {parent} "
                "cannot be read; run engramfs verify"
            ) from error

    def has_row(self, parent: int, name: bytes) -> bool:
        """Whether the fork says something of a name, shown or not."""
        return self._rows.get(parent, name) is not None

    def own_entry(self, parent: int, name: bytes) -> Entry | None:
        """What the fork says of a name, shown or not; None also where it says nothing."""
        value = self._rows.get(parent, name)
        return self.row(parent, name, value) if value is not None else None

    def given(self, parent: int, name: bytes) -> int:
        """The version of the fork that gave a name what it stands for there."""
        key = keys.live(self._fork.id, parent, name) + b"\0"
        row = self._reader.at_or_before(Table.HISTORY, key + keys.u64(self._rows.newest))
        return keys.read_u64(row[0][-8:]) if row is not None and row[0][:-8] == key else 0


class _OwnNames:
    """Every row of a fork, hidden or not."""

    def __init__(self, tree: ForkTree) -> None:
        self._tree = tree

    def has(self, name: Name) -> bool:
        return self._tree.has_row(*name)

    def entry(self, name: Name) -> Entry | None:
        return self._tree.own_entry(*name)

    def places(self, node: int) -> list[Name]:
        found = []
        for name in self._tree.own_places(node):
            entry = self.entry(name)
            if entry is not None and entry.node == node:
                found.append(name)
        return sorted(found, key=lambda name: self._tree.given(*name)) if len(found) > 1 else found


class _Below:
    def __init__(self, base: "Tree") -> None:
        self._base = base

    def lookup(self, parent: int, name: bytes) -> Entry | None:
        return self._base.lookup(parent, name)

    def place(self, directory: int) -> Name | None:
        found = self._base.node(directory)
        return found[:2] if found is not None else None
