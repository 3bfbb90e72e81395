"""The live tree of a fork, in memory: its own names over the live tree of the store below.

A name in `own` is what the fork says; every other one is what the store below says at this moment, sealed or
not. Directories are loaded one at a time from both, and followed from then on (see `engramfs.vfs.fork`).
Loading one here loads it below, so whatever changes in a directory that is loaded here is heard of.

`used` and `files` count what the fork has more, or fewer, than the store below.
"""

import contextlib

from engramfs.errors import NoEntry
from engramfs.history.changes import Name
from engramfs.history.fork_tree import ForkTree, LiveRows
from engramfs.history.tree import HeadTree, growth
from engramfs.model.entry import Entry
from engramfs.model.store import Head, Store
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table
from engramfs.vfs.cut import entry_of
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
        if node.is_directory and not node.places and node is not self.root:
            node.children = None
            node.revision += 1
        return node

    def _known(self, entry: Entry) -> Node:
        node = super()._known(entry)
        below = self.below.nodes.get(entry.node)
        if below is not None and node.content is None and below.entry.digest == node.entry.digest:
            node.content = below.content
        return node

    def _recorded_children(self, directory: Node) -> list[tuple[bytes, Entry]]:
        below: dict[bytes, Node] = {}
        with contextlib.suppress(NoEntry):  # one that the fork made
            below = self.below.children(self.below.node(directory.id))
        with self._engine.reading() as reader:
            tree = self.recorded(reader)
            found = {
                name: tree.as_changed(entry_of(node))
                for name, node in below.items()
                if (directory.id, name) not in self.own
            }
            for name, _ in tree.own_children(directory.id):
                entry = tree.lookup(directory.id, name) if (directory.id, name) in self.own else None
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
                entry = tree.lookup(parent, name) if (parent, name) in self.own else None
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
