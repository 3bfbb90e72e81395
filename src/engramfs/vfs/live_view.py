"""The head of a store, read-only: what `read_only` attachments and the hub's `stores/` show."""

from engramfs.errors import InvalidArgument, IsDirectory, NameTooLong, NoEntry, ReadOnly
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.names import MAX_PART
from engramfs.model.operation import Link, Operation, Rename, Unlink, Update
from engramfs.vfs import marks
from engramfs.vfs.attributes import LONG, Attributes, Listed, Opened, Space, of_entry
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.node import Node
from engramfs.vfs.view import VERSIONS, View, in_order


class LiveView(View):
    """A view of the tree that all live views of the store share."""

    missing_timeout = LONG

    def __init__(self, number: int, uid: int, gid: int, store: LiveStore) -> None:
        super().__init__(number, uid, gid)
        self.store = store
        self.tree = store.tree
        self.stale: set[int] = set()  # nodes whose cached pages are void at the next open
        self._listings: dict[int, tuple[int, list[Listed]]] = {}  # node id → (revision, names)
        store.views.add(self)

    # Nodes

    def every_node(self) -> set[int]:
        return self.tree.every_node()

    def node(self, identifier: int) -> Node:
        """Raises `NoEntry`."""
        return self.tree.nodes.get(identifier) or self.tree.node(identifier)

    def find(self, parent: int, name: bytes) -> Node:
        """Raises `NoEntry`, `NotDirectory` and `NameTooLong`."""
        if len(name) > MAX_PART:
            raise NameTooLong
        node = self.tree.find(self.node(parent), name, self.number)
        if node is None:
            raise NoEntry
        return node

    def show(self, node: Node) -> Attributes:
        if node.entry.links > 1:
            self.tree.all_places(node)  # to count them
        return of_entry(node.entry, self.number, self.uid, self.gid, node.links_in(self.number), LONG)

    def forgotten(self, node: int) -> None:
        self.stale.discard(node)
        self._listings.pop(node, None)
        known = self.tree.nodes.get(node)
        if known is not None and not any(view.holds(node) for view in self.store.views):
            self.store.let_go(known)

    # Reading

    def lookup(self, parent: int, name: bytes) -> Attributes:
        if name == VERSIONS and parent == ROOT_NODE and self.versions is not None:
            return self.versions().attributes(ROOT_NODE)
        return self.show(self.find(parent, name))

    def attributes(self, node: int) -> Attributes:
        return self.show(self.node(node))

    def parent(self, node: int) -> int:
        places = self.node(node).places
        return places[0].parent or ROOT_NODE if places else ROOT_NODE

    def listing(self, node: int) -> list[Listed]:
        directory = self.node(node)
        known = self._listings.get(node)
        if known is not None and known[0] == directory.revision:
            return known[1]
        names = {**self.tree.scratch(directory, self.number), **self.tree.children(directory)}
        listing = in_order((name, child.id) for name, child in names.items())
        self._listings[node] = (directory.revision, listing)
        return listing

    def listed(self, parent: int, item: Listed) -> Attributes | None:
        node = self.tree.find(self.node(parent), item.name, self.number)
        return self.show(node) if node is not None and node.id == item.node else None

    def read_link(self, node: int) -> bytes:
        entry = self.node(node).entry
        if entry.kind is not Kind.SYMLINK:
            raise InvalidArgument
        return entry.target

    def open(self, node: int, *, write: bool, truncate: bool) -> Opened:
        if write or truncate:
            raise ReadOnly
        if self.node(node).is_directory:
            raise IsDirectory
        return Opened(keep_cache=self._pages_are_good(node))

    def _pages_are_good(self, node: int) -> bool:
        if node in self.stale:
            self.stale.discard(node)
            return False
        return True

    def read(self, node: int, offset: int, size: int) -> bytes:
        return self.read_recorded(self.node(node), offset, size)

    def read_recorded(self, node: Node, offset: int, size: int) -> bytes:
        """Bytes as of the last close."""
        if node.content is not None:
            return node.content[offset : offset + size]
        with marks.named(self.store.store.name, self.tree.path_of(node)):
            return self.store.resources.contents.read(node.entry, offset, size)

    def space(self) -> Space:
        quota = self.store.store.limits.quota
        used, files = self.tree.space
        return Space(total=quota, free=max(0, quota - used), files=files, free_files=1 << 30)

    def get_xattr(self, node: int, name: bytes) -> bytes:
        for known, value in self.node(node).entry.xattrs:
            if known == name:
                return value
        return super().get_xattr(node, name)

    def list_xattrs(self, node: int) -> list[bytes]:
        return [name for name, _ in self.node(node).entry.xattrs]

    def marks(self, node: int) -> dict[bytes, bytes]:
        known = self.node(node)
        place = next((place for place in known.places if not place.view), None)
        reader_marks = marks.of_place(
            self.store.resources.engine, self.store.store, self.store.head.number, place, self.entry_of(known)
        )
        return super().marks(node) | reader_marks

    def entry_of(self, node: Node) -> Entry:
        return node.entry

    # What others did

    def changed(self, operation: Operation) -> None:
        """Another view, or another way into the log, did this: the kernel must not believe its caches."""
        match operation:
            case Link(parent, name, entry):
                self._entry_changed(parent, name)
                self._inode_changed(entry.node, content=False)
            case Unlink(parent, name):
                self._entry_changed(parent, name)
            case Rename():
                self._entry_changed(operation.parent, operation.name)
                self._entry_changed(operation.new_parent, operation.new_name)
                self._inode_changed(operation.node, content=False)
            case Update(entry):
                if self.holds(entry.node):
                    self.stale.add(entry.node)
                self._inode_changed(entry.node, content=entry.kind is Kind.FILE)

    def _entry_changed(self, parent: int, name: bytes) -> None:
        if self.holds(parent):
            self.store.resources.invalidator.entry_changed(self.inode(parent), name)
            self.store.resources.invalidator.inode_changed(self.inode(parent), content=False)

    def node_changed(self, node: int) -> None:
        """Something about a node changed that is not its content: how many names it has."""
        self._inode_changed(node, content=False)

    def _inode_changed(self, node: int, *, content: bool) -> None:
        if self.holds(node):
            self.store.resources.invalidator.inode_changed(self.inode(node), content=content)

    def close(self) -> None:
        """The view ends: nobody is told of changes through it any more, and nothing is open in it."""
        self.store.views.discard(self)
        for orphan in self.store.orphans:
            if not any(view.holds(orphan) for view in self.store.views):
                self.store.let_go(self.tree.node(orphan))
