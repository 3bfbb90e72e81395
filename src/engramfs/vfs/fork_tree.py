"""The live tree of a fork, in memory: its own names over the live tree of the store below.

A name in `own` is what the fork says; every other one is what the store below says at this moment, sealed or
not. Directories are loaded one at a time from both, and followed from then on (see `engramfs.vfs.fork`).
Loading one here loads it below, so whatever changes in a directory that is loaded here is heard of.

Names in `hidden`, with what the fork says of them, are the store's as well: see `engramfs.history.placement`.

`used` and `files` count what the fork has more, or fewer, than the store below.
"""

import contextlib
from collections.abc import Iterable

from engramfs.errors import NoEntry
from engramfs.history.changes import Name
from engramfs.history.fork_tree import ForkTree, LiveRows
from engramfs.history.tree import HeadTree, growth
from engramfs.model.entry import Entry, Kind
from engramfs.model.store import Head, Store
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table
from engramfs.vfs.cut import entry_of
from engramfs.vfs.fork_placement import LiveOwnNames, placement
from engramfs.vfs.node import Node, Place
from engramfs.vfs.store_tree import StoreTree


class LiveForkTree(StoreTree):
    """`below` is the live tree of the store that `fork` was forked from; node ids are given out by it."""

    def __init__(self, engine: Engine, fork: Store, below: StoreTree) -> None:
        self.below = below
        with engine.reading() as reader:
            prefix = keys.u32(fork.id)
            rows = reader.scan(Table.LIVE, prefix, keys.after(prefix))
            self.own: set[Name] = {keys.split_live(key) for key, _ in rows}
        self.hidden: dict[Name, Entry | None] = {}
        super().__init__(engine, fork, Head(), below.transient, below.ids)
        if (keys.NO_PARENT, b"") not in self.own:
            self.root.entry = below.root.entry
        self.count_anew()

    @property
    def space(self) -> tuple[int, int]:
        used, files = self.below.space
        return used + self.used, files + self.files

    def count_anew(self) -> None:
        """Count what the log has more, or fewer, in the fork."""
        with self._engine.reading() as reader:
            tree = self.recorded(reader)
            found = (side.lookup(*name) for name in self.own for side in (tree, tree.base))
            self.used, self.files = growth(tree.base, tree, {entry.node for entry in found if entry})

    def take(self, names: Iterable[Name]) -> None:
        """The fork says what these stand for."""
        for name in names:
            self.own.add(name)
            self.hidden.pop(name, None)

    def shows(self, name: Name, below: Node) -> bool:
        """Whether a directory of the store below is shown where that has it."""
        with self._engine.reading() as reader:
            return placement(self, reader).shows(name, below.entry)

    def has_loop(self, directories: Iterable[Node]) -> bool:
        """Whether nothing leads up from one of these but round and round."""
        with self._engine.reading() as reader:
            placed = placement(self, reader)
            return any(placed.is_in_loop(node.id) for node in directories)

    def tangled(self) -> tuple[dict[Name, Entry | None], dict[Name, Entry | None]]:
        """What is to be hidden, and what is hidden and need not be any more."""
        with self._engine.reading() as reader:
            own, placed = LiveOwnNames(self, reader), placement(self, reader)
            entries = {name: own.entry(name) for name in self.own}
            moved = [
                entry for entry in entries.values() if entry is not None and entry.kind is Kind.DIRECTORY
            ]
            hidden = {}
            if any(placed.is_in_loop(entry.node) for entry in moved):
                hidden = {name: entry for name, entry in entries.items() if placed.hides(name)}
            shown = {name: entry for name, entry in self.hidden.items() if not placed.hides(name)}
        return hidden, shown

    def recorded(self, reader: Reader) -> ForkTree:
        base = HeadTree(reader, self.below.store)
        return ForkTree(reader, self.store, LiveRows(reader, self.store.id), base)

    def every_node(self) -> set[int]:
        return super().every_node() | self.below.every_node()

    def is_own(self, node: Node) -> bool:
        """Whether the fork says what the node is, under at least one of its names.

        That one may be in a directory that nobody has looked at yet.
        """
        return any((place.parent, place.name) in self.own for place in self.all_places(node))

    def adopt(self, below: Node) -> Node:
        """The node here of one of the store below; a directory that comes back is loaded anew."""
        node = self.nodes.get(below.id)
        if node is None:
            with self._engine.reading() as reader:
                entry = self.recorded(reader).as_changed(entry_of(below))
            return self._known(entry)
        return self._comes_back(node)

    def _comes_back(self, node: Node) -> Node:
        """One that the fork knows: what is in a directory was not followed while it had no name."""
        if node.is_directory and not node.places and node is not self.root and node.children is not None:
            node.children = None
            node.revision += 1
        return node

    def _known(self, entry: Entry) -> Node:
        node = self._comes_back(super()._known(entry))
        below = self.below.nodes.get(entry.node)
        if below is not None and node.content is None and below.entry.digest == node.entry.digest:
            node.content = below.content
        return node

    def _recorded_children(self, directory: Node) -> list[tuple[bytes, Entry]]:
        below: dict[bytes, Node] = {}
        with contextlib.suppress(NoEntry):  # one that the fork made
            below = self.below.children(self.below.node(directory.id))
        with self._engine.reading() as reader:
            tree, placed = self.recorded(reader), placement(self, reader)
            found = {
                name: tree.as_changed(entry_of(node))
                for name, node in below.items()
                if (directory.id, name) not in self.own and placed.shows((directory.id, name), node.entry)
            }
            for name, _ in tree.own_children(directory.id):
                entry = tree.own_entry(directory.id, name) if (directory.id, name) in self.own else None
                if entry is not None:
                    found[name] = entry
        return list(found.items())

    def _parent_of(self, identifier: int) -> int | None:
        return next(iter(self._parents_of(identifier)), None)

    def _parents_of(self, identifier: int) -> list[int]:
        """The directories that hold a name of the node: of the fork's own names, and of the others."""
        with self._engine.reading() as reader:
            tree = self.recorded(reader)
            parents = []
            for parent, name in tree.own_places(identifier):
                entry = tree.own_entry(parent, name) if (parent, name) in self.own else None
                if entry is not None and entry.node == identifier:
                    parents.append(parent)
        with contextlib.suppress(NoEntry):
            places = self.below.all_places(self.below.node(identifier))
            parents += [place.parent for place in places if (place.parent, place.name) not in self.own]
        return parents

    def all_places(self, node: Node) -> tuple[Place, ...]:
        if not node.is_directory:
            for parent in self._parents_of(node.id):
                with contextlib.suppress(NoEntry):  # the fork removed that directory
                    self.children(self.node(parent))
        return tuple(place for place in node.places if not place.view)
