"""What every view answers, and the refusal of every write.

A view is an attachment as the filesystem serves it: it has a number, and its inode numbers are that
number and a node id. Subclasses say what there is; the writing half is overridden by `WritableView`
alone, so a view that is not one cannot be written, whatever the system call.

`lookups` counts, for each node, how often the kernel was told its inode and has not forgotten it: only
those need to be invalidated.
"""

import os
import zlib
from collections.abc import Callable, Iterable

from engramfs.errors import AccessDenied, CrossesViews, NoAttribute, ReadOnly, Unsupported
from engramfs.model.access import Access
from engramfs.model.entry import ROOT_NODE
from engramfs.vfs.attributes import Attributes, Listed, Opened, SetAttributes, Space, inode_number

VERSIONS = b".versions"  # hidden at the root of each view of a store, and reserved there
MARKS = b"user.engramfs."  # the read-only extended attributes


class View:
    """The base of all views. Node ids in, values out; errors are those of `engramfs.errors`."""

    access = Access.READ_ONLY
    is_ephemeral = False  # goes when the kernel has forgotten all of it
    missing_timeout = 0.0  # seconds that the kernel may believe that a name is missing

    def __init__(self, number: int, uid: int, gid: int) -> None:
        self.number = number
        self.uid = uid
        self.gid = gid
        self.lookups: dict[int, int] = {}
        self.opens: dict[int, int] = {}  # descriptors open now, of those that we know of
        self.unknown_below = 0  # of nodes below this id an earlier worker may have told the kernel
        self._forgotten: set[int] = set()  # those of them that the kernel has forgotten since
        self.versions: Callable[[], View] | None = None  # the view of `.versions`, where there is one

    # What the kernel holds

    def inode(self, node: int) -> int:
        return inode_number(self.number, node)

    def holds(self, node: int) -> bool:
        return node in self.lookups or node == ROOT_NODE or self._may_be_known(node)

    def held(self) -> set[int]:
        """Every node that `holds` is true of, as far as there is such a node."""
        unknown = self.every_node() if self.unknown_below else set()
        return {ROOT_NODE, *self.lookups, *(node for node in unknown if self.holds(node))}

    def every_node(self) -> set[int]:
        """The ids of all nodes that there may be, of those that do not come and go."""
        return set()

    def may_be_open(self, node: int) -> bool:
        return node in self.opens or self._may_be_known(node)

    def _may_be_known(self, node: int) -> bool:
        return node < self.unknown_below and node not in self._forgotten

    def opened(self, node: int) -> None:
        self.opens[node] = self.opens.get(node, 0) + 1

    def closed(self, node: int) -> None:
        left = self.opens.get(node, 0) - 1
        if left > 0:
            self.opens[node] = left
        else:
            self.opens.pop(node, None)

    def looked_up(self, node: int) -> None:
        self.lookups[node] = self.lookups.get(node, 0) + 1

    def forget(self, node: int, count: int) -> None:
        """The kernel takes back `count` lookups; when it drops an inode, all of them at once."""
        left = self.lookups.get(node, 0) - count
        if left > 0:
            self.lookups[node] = left
            return
        self.lookups.pop(node, None)
        if node < self.unknown_below:
            self._forgotten.add(node)
        self.forgotten(node)

    def forgotten(self, node: int) -> None:
        """The kernel holds no reference to `node` any more."""

    def made_up(self, node: int, mode: int, size: int, time: int, timeout: float = 0.0) -> Attributes:
        """The attributes of what is in no store; `time` in nanoseconds since 1970."""
        return Attributes(
            inode=self.inode(node),
            mode=mode,
            links=1,
            size=size,
            blocks=0,
            uid=self.uid,
            gid=self.gid,
            atime=time,
            mtime=time,
            ctime=time,
            timeout=timeout,
        )

    # Reading

    def lookup(self, parent: int, name: bytes) -> Attributes:
        raise self._not_served("lookup")

    def attributes(self, node: int) -> Attributes:
        raise self._not_served("attributes")

    def listing(self, node: int) -> list[Listed]:
        """All names of a directory, by cookie, without `.` and `..`."""
        raise self._not_served("listing")

    def listed(self, parent: int, item: Listed) -> Attributes | None:
        """The attributes of a listed name, or None when it has gone since."""
        raise self._not_served("listed")

    def parent(self, _node: int) -> int:
        """The node id of the directory above a directory; of the root, itself."""
        return ROOT_NODE

    def read_link(self, node: int) -> bytes:
        raise self._not_served("read_link")

    def open(self, node: int, *, write: bool, truncate: bool) -> Opened:
        raise self._not_served("open")

    def read(self, node: int, offset: int, size: int) -> bytes:
        raise self._not_served("read")

    def space(self) -> Space:
        return Space(total=0, free=0, files=0, free_files=0)

    def get_xattr(self, node: int, name: bytes) -> bytes:
        if name.startswith(MARKS):
            value = self.marks(node).get(name)
            if value is not None:
                return value
        raise NoAttribute

    def list_xattrs(self, _node: int) -> list[bytes]:
        """The stored ones. The marks are not listed, so that `cp -a` does not try to copy them."""
        return []

    def marks(self, _node: int) -> dict[bytes, bytes]:
        """The read-only extended attributes `user.engramfs.*`."""
        return {MARKS + b"access": self.access.value.encode()}

    def check_access(self, node: int, mask: int) -> None:
        """Every uid in a sandbox is the same principal: only writing, and executing files, can be refused."""
        attributes = self.attributes(node)
        if mask & os.W_OK:
            self.check_writable()
        if mask & os.X_OK and not attributes.mode & 0o40111:
            raise AccessDenied

    def check_writable(self) -> None:
        raise ReadOnly

    def is_lost(self, _node: int, _losses: int) -> bool:
        """Whether a descriptor that was opened after so many losses may have written what is lost."""
        return False

    def _not_served(self, what: str) -> Unsupported:
        return Unsupported(f"{type(self).__name__} does not serve {what}")

    # Writing: refused

    def create(self, parent: int, name: bytes, mode: int, *, write: bool = True) -> Attributes:
        raise ReadOnly

    def make_file(self, parent: int, name: bytes, mode: int) -> Attributes:
        raise ReadOnly

    def make_directory(self, parent: int, name: bytes, mode: int) -> Attributes:
        raise ReadOnly

    def make_symlink(self, parent: int, name: bytes, target: bytes) -> Attributes:
        raise ReadOnly

    def make_special(self, parent: int, name: bytes) -> Attributes:
        raise ReadOnly

    def link(self, node: int, parent: int, name: bytes) -> Attributes:
        raise ReadOnly

    def unlink(self, parent: int, name: bytes) -> None:
        raise ReadOnly

    def remove_directory(self, parent: int, name: bytes) -> None:
        raise ReadOnly

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int) -> None:
        raise ReadOnly

    def set_xattr(self, node: int, name: bytes, value: bytes) -> None:
        raise ReadOnly

    def remove_xattr(self, node: int, name: bytes) -> None:
        raise ReadOnly

    async def set_attributes(self, node: int, wanted: SetAttributes) -> Attributes:
        raise ReadOnly

    async def thawed(self, _node: int) -> None:
        """Wait until the content may be changed; here it never changes."""

    async def write(self, node: int, offset: int, data: bytes, *, at_end: bool = False) -> int:
        raise ReadOnly

    async def flush(self, _node: int) -> None:
        """A descriptor of a file opened for writing was closed: nothing to do in a view that has none."""

    async def sync(self, _node: int) -> None:
        """Nothing can be dirty here."""

    async def release(self, _node: int) -> None:
        """The last descriptor of one opening for writing is gone."""


def cookie(node: int, name: bytes) -> int:
    """Where a name stands in the listing of its directory, whatever comes and goes around it.

    Sixty bits: the node id, and for the names of one node (hard links) a hash.
    """
    return node << 20 | zlib.crc32(name) & 0xFFFFF


def in_order(names: Iterable[tuple[bytes, int]]) -> list[Listed]:
    """(name, node id) pairs as a listing."""
    return sorted((Listed(cookie(node, name), name, node) for name, node in names), key=_by_cookie)


def _by_cookie(item: Listed) -> tuple[int, bytes]:
    return item.cookie, item.name


def check_same(view: View, other: View) -> None:
    """Two names of one call must be in one view. Raises `CrossesViews`."""
    if view is not other:
        raise CrossesViews
