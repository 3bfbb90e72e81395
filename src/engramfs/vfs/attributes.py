"""The values that views answer with, and those that they are asked with."""

import msgspec

from engramfs.model.entry import NODE_BITS, Entry, Kind

FOREVER = 3600.0 * 24 * 365  # seconds; what never changes: pinned versions
LONG = 3600.0  # seconds; what changes through us alone, so that every change invalidates
BLOCK = 4096


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """What `stat` shows, and for how long (seconds) the kernel may believe it."""

    inode: int
    mode: int  # type and permission bits
    links: int
    size: int
    blocks: int  # of 512 bytes
    uid: int
    gid: int
    atime: int  # nanoseconds since 1970, as the next two
    mtime: int
    ctime: int
    timeout: float


class SetAttributes(msgspec.Struct, frozen=True):
    """What `setattr` asks to change; None leaves as it is."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime: int | None = None
    mtime: int | None = None


class Opened(msgspec.Struct, frozen=True, gc=False):
    """How the kernel is to treat the file that was opened."""

    keep_cache: bool  # its cached pages are still good
    direct: bool = False  # its size is not known beforehand: no page cache at all
    losses: int = 0  # how often bytes of it were lost before, at most 3 (see `unrecorded`)


class Listed(msgspec.Struct, frozen=True, gc=False):
    """One name of a directory. `cookie` orders the names and outlives insertions and removals."""

    cookie: int
    name: bytes
    node: int


class Space(msgspec.Struct, frozen=True):
    """What `statfs` shows."""

    total: int  # bytes
    free: int  # bytes
    files: int
    free_files: int


def inode_number(view: int, node: int) -> int:
    return view << NODE_BITS | node


def blocks_of(size: int) -> int:
    """The 512-byte blocks of a file that is stored whole."""
    return (size + BLOCK - 1) // BLOCK * (BLOCK // 512)


def of_entry(entry: Entry, view: int, uid: int, gid: int, links: int, timeout: float) -> Attributes:
    """The attributes of a recorded entry, as `view` shows it."""
    size = entry.size if entry.kind is not Kind.DIRECTORY else BLOCK
    return Attributes(
        inode=view << NODE_BITS | entry.node,
        mode=entry.st_mode,
        links=links,
        size=size,
        blocks=blocks_of(size) if entry.kind is not Kind.SYMLINK else 0,
        uid=uid,
        gid=gid,
        atime=entry.atime or entry.mtime,
        mtime=entry.mtime,
        ctime=entry.ctime,
        timeout=timeout,
    )
