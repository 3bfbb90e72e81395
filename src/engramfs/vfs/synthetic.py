"""Directories that exist only to hold views: the hub, and the read-only parents of a session.

A directory in the kernel has one place, so a view may be grafted at one path alone; where the same view
shows up elsewhere it is by a bind mount.

Node ids are made from paths, so that another worker gives the same directory the same inode number
without a table.
"""

import hashlib
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

from engramfs.errors import IsDirectory, NoEntry, NotDirectory
from engramfs.model.entry import NODE_BITS, ROOT_NODE
from engramfs.vfs.attributes import BLOCK, Attributes, Listed, Opened
from engramfs.vfs.view import View, in_order

Graft = Callable[[], View]  # makes the view when somebody enters it


class _Directory:
    def __init__(self, node: int, parent: int) -> None:
        self.node = node
        self.parent = parent
        self.children: dict[bytes, _Directory | _Grafted] = {}


class _Grafted(NamedTuple):
    node: int  # orders it in listings
    view: Graft
    root: int  # the node of that view that is shown


class SyntheticView(View):
    """A tree of directories, all of them read-only."""

    def __init__(self, number: int, uid: int, gid: int, *, timeout: float) -> None:
        super().__init__(number, uid, gid)
        self._timeout = timeout  # seconds that the kernel may believe us
        self._root = _Directory(ROOT_NODE, ROOT_NODE)
        self._directories = {ROOT_NODE: self._root}
        self._made = time.time_ns()

    # Building

    def add_directory(self, path: str) -> int:
        """Make `path` and what is missing above it; its node id."""
        directory, so_far = self._root, b""
        for part in path.encode("utf-8", "surrogateescape").split(b"/"):
            if not part:
                continue
            so_far += b"/" + part
            child = directory.children.get(part)
            if child is None:
                child = _Directory(self._node_of(so_far), directory.node)
                directory.children[part] = child
                self._directories[child.node] = child
            if not isinstance(child, _Directory):
                raise NotDirectory
            directory = child
        return directory.node

    def _node_of(self, path: bytes) -> int:
        node = int.from_bytes(hashlib.sha256(path).digest()[:5], "big")
        while node <= ROOT_NODE or node in self._directories:
            node = (node + 1) % (1 << NODE_BITS)
        return node

    def graft(self, path: str, view: Graft, root: int = ROOT_NODE) -> None:
        """Let `path` lead into a view, to its node `root`."""
        above, _, name = path.rpartition("/")
        directory = self._directories[self.add_directory(above)]
        node = self._node_of(path.encode("utf-8", "surrogateescape"))
        directory.children[name.encode("utf-8", "surrogateescape")] = _Grafted(node, view, root)

    def remove(self, path: str) -> None:
        """Take away what is at `path`, with all below."""
        above, _, name = path.rpartition("/")
        directory = self._directories[self.add_directory(above)]
        gone = directory.children.pop(name.encode("utf-8", "surrogateescape"), None)
        if isinstance(gone, _Directory):
            self._drop(gone)

    def _drop(self, directory: _Directory) -> None:
        self._directories.pop(directory.node, None)
        for child in directory.children.values():
            if isinstance(child, _Directory):
                self._drop(child)

    # Serving

    def _directory(self, node: int) -> _Directory:
        directory = self._directories.get(node)
        if directory is None:
            raise NoEntry
        return directory

    def lookup(self, parent: int, name: bytes) -> Attributes:
        child = self._directory(parent).children.get(name)
        if child is None:
            raise NoEntry
        return self._child_attributes(child)

    def _child_attributes(self, child: _Directory | _Grafted) -> Attributes:
        if isinstance(child, _Directory):
            return self.attributes(child.node)
        return child.view().attributes(child.root)

    def attributes(self, node: int) -> Attributes:
        self._directory(node)
        return self.made_up(node, stat.S_IFDIR | 0o755, BLOCK, self._made, self._timeout)

    def parent(self, node: int) -> int:
        return self._directory(node).parent

    def listing(self, node: int) -> list[Listed]:
        children = self._directory(node).children
        return in_order((name, child.node) for name, child in children.items())

    def listed(self, parent: int, item: Listed) -> Attributes | None:
        child = self._directory(parent).children.get(item.name)
        return self._child_attributes(child) if child is not None else None

    def open(self, node: int, *, write: bool, truncate: bool) -> Opened:
        raise IsDirectory
