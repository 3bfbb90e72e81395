"""What a name in a tree stands for."""

import stat
from enum import IntEnum

import msgspec

ROOT_NODE = 1  # the node id of a store's root directory
NODE_MASK = (1 << 40) - 1
NODE_BITS = 40  # of a node id; an inode number is view number << NODE_BITS | node id
REDACTED = b""  # in the place of the digest of a file whose content was taken out of the history
EMPTY_DIGEST = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


class Kind(IntEnum):
    FILE = 1
    DIRECTORY = 2
    SYMLINK = 3


_TYPE_BITS = {Kind.FILE: stat.S_IFREG, Kind.DIRECTORY: stat.S_IFDIR, Kind.SYMLINK: stat.S_IFLNK}


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file, directory or symlink as one name of a tree shows it.

    A node with several names (hard links) has an equal entry under each. `origin` is the lasting
    identity of a file: an atomic save (write a temporary file, rename it over the old one) makes a new
    node, as every POSIX filesystem must, and hands the origin of the replaced file on.
    """

    node: int
    kind: Kind
    mode: int  # the twelve permission bits
    size: int  # bytes; of a symlink, the length of its target
    mtime: int  # nanoseconds since 1970
    ctime: int  # nanoseconds since 1970
    digest: bytes = b""  # SHA-256 of a file's content, raw; empty for others
    target: bytes = b""  # of a symlink
    xattrs: tuple[tuple[bytes, bytes], ...] = ()  # `user.*`, sorted by name
    origin: int = 0  # the node id that this file's identity began with
    atime: int = 0  # as set by utimens; 0 follows mtime
    links: int = 1  # how many names the node has in its store

    @property
    def st_mode(self) -> int:
        return _TYPE_BITS[self.kind] | self.mode

    @property
    def is_redacted(self) -> bool:
        """Whether only the name, the size and the times of a file are left. Never so at the head."""
        return self.kind is Kind.FILE and self.digest == REDACTED

    def redacted(self) -> "Entry":
        """What stays of a file or symlink: it is a file of that size which nobody can read."""
        return msgspec.structs.replace(self, kind=Kind.FILE, digest=REDACTED, target=b"", xattrs=())

    def holds(self, other: "Entry") -> bool:
        """Whether it is another name of, or as good as, the content of `other`: a file's or a symlink's."""
        return self.kind is other.kind and self.digest == other.digest and self.target == other.target

    def looks_like(self, other: "Entry | None") -> bool:
        """Whether a person would see no difference but times: then no version is owed.

        Files are compared by what they hold, so saving the same bytes again is no change. Directories are
        compared by node as well, since that is where their children are found.
        """
        return (
            other is not None
            and self.digest == other.digest
            and self.size == other.size
            and self.kind == other.kind
            and self.mode == other.mode
            and self.target == other.target
            and self.xattrs == other.xattrs
            and (self.kind is not Kind.DIRECTORY or self.node == other.node)
        )

    def same_but_for_times(self, other: "Entry | None") -> bool:
        """Whether only mtime, ctime or atime differ."""
        return (
            self.looks_like(other)
            and other is not None
            and self.node == other.node
            and self.origin == other.origin
            and self.links == other.links
        )
