"""A store at one version: pinned attachments, and the directories of `.versions`.

Nothing here ever changes, so the kernel may keep what it was told for as long as it likes. Entries come
straight from the log, and are kept only while the kernel holds their inode. The exceptions are a redaction,
after which `engramfs.vfs.redacted` has everybody look again, and retention, which ends a view.
"""

import contextlib

from engramfs.errors import (
    InvalidArgument,
    IsDirectory,
    NameTooLong,
    NoEntry,
    NotDirectory,
    ReadOnly,
    Redacted,
)
from engramfs.history.tree import version_tree
from engramfs.model.entry import ROOT_NODE, Entry, Kind
from engramfs.model.names import MAX_PART
from engramfs.model.store import Store
from engramfs.vfs import marks
from engramfs.vfs.attributes import FOREVER, Attributes, Listed, Opened, Space, of_entry
from engramfs.vfs.node import Place
from engramfs.vfs.resources import Resources
from engramfs.vfs.view import MARKS, VERSIONS, View, in_order


class PinnedView(View):
    """The tree of `store` as version `version` left it."""

    missing_timeout = FOREVER

    def __init__(
        self, number: int, uid: int, gid: int, resources: Resources, store: Store, version: int
    ) -> None:
        super().__init__(number, uid, gid)
        self.store = store
        self.version = version
        self._resources = resources
        self._entries: dict[int, tuple[int, bytes, Entry]] = {}  # node → (parent, name, entry)

    def _find(self, node: int) -> tuple[int, bytes, Entry]:
        known = self._entries.get(node)
        if known is not None:
            return known
        with self._resources.engine.reading() as reader:
            tree = version_tree(reader, self.store, self.version)
            found = (0, b"", tree.root()) if node == ROOT_NODE else tree.node(node)
        if found is None:
            raise NoEntry
        if self.holds(node):
            self._entries[node] = found
        return found

    def entry(self, node: int) -> Entry:
        """Raises `NoEntry`."""
        return self._find(node)[2]

    def _show(self, entry: Entry) -> Attributes:
        links = 1 if entry.kind is Kind.DIRECTORY else entry.links
        return of_entry(entry, self.number, self.uid, self.gid, links, FOREVER)

    def forgotten(self, node: int) -> None:
        self._entries.pop(node, None)

    def lookup(self, parent: int, name: bytes) -> Attributes:
        if name == VERSIONS and parent == ROOT_NODE and self.versions is not None:
            return self.versions().attributes(ROOT_NODE)
        if len(name) > MAX_PART:
            raise NameTooLong
        if self.entry(parent).kind is not Kind.DIRECTORY:
            raise NotDirectory
        with self._resources.engine.reading() as reader:
            entry = version_tree(reader, self.store, self.version).lookup(parent, name)
        if entry is None:
            raise NoEntry
        self._entries[entry.node] = (parent, name, entry)
        return self._show(entry)

    def attributes(self, node: int) -> Attributes:
        return self._show(self.entry(node))

    def parent(self, node: int) -> int:
        return self._find(node)[0] or ROOT_NODE

    def listing(self, node: int) -> list[Listed]:
        if self.entry(node).kind is not Kind.DIRECTORY:
            raise NotDirectory
        with self._resources.engine.reading() as reader:
            children = list(version_tree(reader, self.store, self.version).children(node))
        for name, entry in children:
            self._entries[entry.node] = (node, name, entry)
        return in_order((name, entry.node) for name, entry in children)

    def listed(self, _parent: int, item: Listed) -> Attributes | None:
        with contextlib.suppress(NoEntry):
            return self.attributes(item.node)
        return None

    def read_link(self, node: int) -> bytes:
        entry = self.entry(node)
        if entry.kind is not Kind.SYMLINK:
            raise InvalidArgument
        return entry.target

    def open(self, node: int, *, write: bool, truncate: bool) -> Opened:
        if write or truncate:
            raise ReadOnly
        entry = self.entry(node)
        if entry.kind is Kind.DIRECTORY:
            raise IsDirectory
        if entry.is_redacted:
            raise Redacted(f"{self.store.name}@{self.version} has that file no more, it was redacted")
        return Opened(keep_cache=True)

    def read(self, node: int, offset: int, size: int) -> bytes:
        entry = self.entry(node)
        with marks.named(f"{self.store.name}@{self.version}", self._find(node)[1]):
            return self._resources.contents.read(entry, offset, size)

    def space(self) -> Space:
        return Space(total=self.store.limits.quota, free=0, files=0, free_files=0)

    def get_xattr(self, node: int, name: bytes) -> bytes:
        for known, value in self.entry(node).xattrs:
            if known == name:
                return value
        return super().get_xattr(node, name)

    def list_xattrs(self, node: int) -> list[bytes]:
        return [name for name, _ in self.entry(node).xattrs]

    def marks(self, node: int) -> dict[bytes, bytes]:
        parent, name, entry = self._find(node)
        found = marks.of_place(self._resources.engine, self.store, self.version, Place(parent, name), entry)
        return super().marks(node) | found | {MARKS + b"pinned": str(self.version).encode()}


class EphemeralPinnedView(PinnedView):
    """A directory of `.versions`: it goes when the kernel has forgotten all of it."""

    is_ephemeral = True
