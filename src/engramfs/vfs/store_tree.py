"""The live tree of one store, in memory: loaded a directory at a time, shared by all views of the store.

`apply` is the only way to change it, for an operation that was just acknowledged and for one that is
replayed from the journal alike. Applying an operation twice leaves the tree as applying it once.

Transient names (`engramfs.model.transient`) are kept beside the shared names, for each view its own.
"""

import contextlib

import msgspec

from engramfs.errors import NoEntry, NotDirectory
from engramfs.history.changes import Name
from engramfs.history.tree import HeadTree, Tree, default_root, places
from engramfs.model.entry import ROOT_NODE, Entry
from engramfs.model.operation import Link, Operation, Rename, Unlink, Update
from engramfs.model.store import Head, Store
from engramfs.model.transient import TransientNames
from engramfs.storage import keys
from engramfs.storage.protocol import Engine, Reader, Table
from engramfs.vfs.node import Node, Place, content_size

replace = msgspec.structs.replace


class NodeIds:
    """The node ids of a store that were not given out yet: `next` and above."""

    def __init__(self, head: Head) -> None:
        self.next = head.next_node + _RESERVE if head.next_node > ROOT_NODE + 1 else head.next_node

    def take(self, count: int = 1) -> int:
        """The first of `count` ids."""
        first = self.next
        self.next += count
        return first

    def at_least(self, identifier: int) -> None:
        """Those below were given out some other way."""
        self.next = max(self.next, identifier)


class StoreTree:
    """Nodes by id, names by directory, and how much the store holds."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        head: Head,
        transient: TransientNames,
        ids: NodeIds | None = None,
    ) -> None:
        self.store = store
        self.transient = transient
        self.used = head.used  # bytes of files that have a name
        self.files = head.files
        self.nodes: dict[int, Node] = {}
        self.ids = ids or NodeIds(head)
        self._engine = engine
        self._scratch: dict[tuple[int, int], dict[bytes, Node]] = {}  # (view, parent) → transient names
        with engine.reading() as reader:
            recorded = self.recorded(reader).lookup(keys.NO_PARENT, b"")
        self.root = Node(recorded or default_root(store.created), sealed=recorded is not None)
        self.root.places = (Place(keys.NO_PARENT, b""),)
        self.nodes[ROOT_NODE] = self.root

    # Looking

    def recorded(self, reader: Reader) -> Tree:
        """The tree at the head, as the log has it."""
        return HeadTree(reader, self.store)

    @property
    def next_node(self) -> int:
        return self.ids.next

    def set_aside(self, count: int) -> int:
        """The first of `count` node ids that will not be given out here."""
        return self.ids.take(count)

    @property
    def space(self) -> tuple[int, int]:
        """Bytes of files, and number of nodes."""
        return self.used, self.files

    def present(self, name: Name) -> Node | None:
        """What a shared name stands for, as far as its directory is in memory."""
        parent, last = name
        if parent == keys.NO_PARENT:
            return self.root
        directory = self.nodes.get(parent)
        return directory.children.get(last) if directory is not None and directory.children else None

    def every_node(self) -> set[int]:
        """The ids of all nodes, in memory or only in the log."""
        prefix = keys.u32(self.store.id)
        with self._engine.reading() as reader:
            rows = reader.scan(Table.NODES, prefix, keys.after(prefix))
            return {*self.nodes, *(keys.split_place(key)[0] for key, _ in rows)}

    def node(self, identifier: int) -> Node:
        """The node of that id; from the log when it is not in memory. Raises `NoEntry`."""
        node = self.nodes.get(identifier)
        if node is None:
            parent = self._parent_of(identifier)
            if parent is not None:
                self.children(self.node(parent))
            node = self.nodes.get(identifier)
            if node is None:
                raise NoEntry
        return node

    def _parent_of(self, identifier: int) -> int | None:
        """The directory of a node that is not in memory."""
        with self._engine.reading() as reader:
            found = HeadTree(reader, self.store).node(identifier)
        return found[0] if found is not None else None

    def load(self, identifier: int) -> None:
        """Have the node of that id in memory, if there is one."""
        with contextlib.suppress(NoEntry):
            self.node(identifier)

    def children(self, directory: Node) -> dict[bytes, Node]:
        """The shared names of a directory. Raises `NotDirectory`."""
        if directory.children is not None:
            return directory.children
        if not directory.is_directory:
            raise NotDirectory
        children = {name: self._known(entry) for name, entry in self._recorded_children(directory)}
        for name, node in children.items():
            node.add(Place(directory.id, name))
        directory.children = children
        return children

    def _recorded_children(self, directory: Node) -> list[tuple[bytes, Entry]]:
        with self._engine.reading() as reader:
            return list(HeadTree(reader, self.store).children(directory.id))

    def _known(self, entry: Entry) -> Node:
        """The node of an entry of the log."""
        node = self.nodes.get(entry.node)
        if node is None:
            node = self.nodes[entry.node] = Node(entry, sealed=True)
        return node

    def scratch(self, directory: Node, view: int) -> dict[bytes, Node]:
        """The transient names that `view` has in a directory."""
        return self._scratch.get((view, directory.id), _NOTHING)

    def find(self, directory: Node, name: bytes, view: int) -> Node | None:
        """What `name` stands for in a directory, as `view` sees it."""
        node = self.children(directory).get(name)
        if node is None and self._scratch:
            node = self.scratch(directory, view).get(name)
        return node

    def is_scratch(self, directory: Node, name: bytes, node: Node | None = None) -> bool:
        """Whether a name made here now, for `node` if it is known, would live in its view alone.

        A directory that every view sees stays so whatever it is renamed to: no editor does that to save, and
        all that is below would go with the session.
        """
        if name not in self.transient or name in self.children(directory):
            return False
        return node is None or not node.is_directory or all(place.view for place in node.places)

    def all_places(self, node: Node) -> tuple[Place, ...]:
        """Every shared name of a node, those in directories that were not loaded included."""
        shared = tuple(place for place in node.places if not place.view)
        if node.entry.links > len(shared) and not node.is_directory and node.sealed_size >= 0:
            with self._engine.reading() as reader:
                parents = [
                    row[0] for row in places(reader, self.store.id, HeadTree(reader, self.store), node.id)
                ]
            for parent in parents:
                self.children(self.node(parent))
            shared = tuple(place for place in node.places if not place.view)
        return shared

    def path_of(self, node: Node) -> bytes:
        """The path of a node in the store, or the one that it had last."""
        names: list[bytes] = []
        while node is not self.root:
            place = node.places[0] if node.places else node.former
            if place is None:
                break
            names.append(place.name)
            parent = self.nodes.get(place.parent)
            if parent is None:
                break
            node = parent
        return b"/".join(reversed(names))

    def path(self, parent: int, name: bytes) -> bytes:
        """The path of `name` in the directory with node id `parent`."""
        directory = self.nodes.get(parent)
        above = self.path_of(directory) if directory is not None else b""
        return above + b"/" + name if above else name

    def is_reachable(self, node: Node) -> bool:
        """Whether shared names lead from the root to a directory."""
        while node is not self.root:
            place = next((place for place in node.places if not place.view), None)
            if place is None or place.parent not in self.nodes:
                return False
            node = self.nodes[place.parent]
        return True

    def is_empty(self, directory: Node, view: int) -> bool:
        return not self.children(directory) and not self.scratch(directory, view)

    # Changing

    def apply(self, operation: Operation, view: int) -> None:
        """Make an acknowledged operation of `view` so."""
        match operation:
            case Link(parent, name, entry):
                self._link(self.node(parent), name, entry, view)
            case Unlink(parent, name, time):
                self._unlink(self.node(parent), name, view, time)
            case Rename():
                self._rename(operation, view)
            case Update(entry):
                node = self.nodes.get(entry.node) or self.node(entry.node)
                self._set_entry(node, entry)

    def _set_entry(self, node: Node, entry: Entry) -> None:
        if node.places:
            self.used += content_size(entry) - content_size(node.entry)
        node.entry = entry

    def _link(self, directory: Node, name: bytes, entry: Entry, view: int) -> None:
        self.children(directory)  # which may bring the node from the log
        node = self.nodes.get(entry.node)
        if node is None:
            node = self.nodes[entry.node] = Node(entry)
            if node.is_directory:
                node.children = {}
        else:
            self._set_entry(node, entry)
        self.ids.at_least(entry.node + 1)
        self._put(directory, name, node, view if self.is_scratch(directory, name) else 0, entry.ctime)

    def _unlink(self, directory: Node, name: bytes, view: int, time: int) -> None:
        children = self.children(directory)
        if name in children:
            gone = children.pop(name)
            self._lose(gone, Place(directory.id, name))
            if gone.is_directory and not gone.places:
                self._drop_scratch([key for key in self._scratch if key[1] == gone.id])
        elif name in self.scratch(directory, view):
            self._lose(self._take_scratch(directory, name, view), Place(directory.id, name, view))
        self._touch(directory, time)

    def _rename(self, operation: Rename, view: int) -> None:
        source, target = self.node(operation.parent), self.node(operation.new_parent)
        moved = self.node(operation.node)
        other = self.find(target, operation.new_name, view) if operation.exchange else None
        time = operation.moved.ctime
        here = self.is_scratch(source, operation.name, other)
        there = self.is_scratch(target, operation.new_name, moved)
        if self.find(source, operation.name, view) is moved:
            self._unlink(source, operation.name, view, time)
        if other is not None and other is not moved:
            self._unlink(target, operation.new_name, view, time)
            self._put(source, operation.name, other, view if here else 0, time)
        self._set_entry(moved, operation.moved)
        self._put(target, operation.new_name, moved, view if there else 0, time)

    def _put(self, directory: Node, name: bytes, node: Node, view: int, time: int) -> None:
        """Let `name` stand for `node`: for every view, or, if `view` is not 0, as its transient name."""
        children = self.children(directory)
        names = self._scratch.setdefault((view, directory.id), {}) if view else children
        place = Place(directory.id, name, view)
        replaced = names.get(name)
        names[name] = node
        if replaced is not None and replaced is not node:
            self._lose(replaced, place)
        if not node.places:
            self.used += content_size(node.entry)
            self.files += 1
        node.add(place)
        self._touch(directory, time)

    def _lose(self, node: Node, place: Place) -> None:
        had = bool(node.places)
        node.drop(place)
        if had and not node.places:
            self.used -= content_size(node.entry)
            self.files -= 1

    def _take_scratch(self, directory: Node, name: bytes, view: int) -> Node:
        names = self._scratch[view, directory.id]
        node = names.pop(name)
        if not names:
            del self._scratch[view, directory.id]
        return node

    def drop_scratch(self, view: int) -> None:
        """Forget the transient names of a view that ended."""
        self._drop_scratch([key for key in self._scratch if key[0] == view])

    def _drop_scratch(self, keys: list[tuple[int, int]]) -> None:
        for view, parent in keys:
            for name, node in self._scratch.pop((view, parent)).items():
                self._lose(node, Place(parent, name, view))
                self.forget(node)

    def scratch_places(self) -> list[Place]:
        """Every transient name of every view."""
        return [
            Place(parent, name, view) for (view, parent), names in self._scratch.items() for name in names
        ]

    @property
    def has_scratch(self) -> bool:
        """Whether there is anything that only one view knows."""
        return bool(self._scratch)

    def _touch(self, directory: Node, time: int) -> None:
        directory.revision += 1
        directory.entry = replace(directory.entry, mtime=time, ctime=time)

    def forget(self, node: Node) -> None:
        """Drop a node that has no name any more, here and in the log."""
        if not node.places and node.sealed_size < 0:
            self.nodes.pop(node.id, None)


_NOTHING: dict[bytes, Node] = {}
_RESERVE = 4096  # ids skipped after a restart: of transient files that the log never heard of
