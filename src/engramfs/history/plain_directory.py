"""What a plain directory on disk holds, as far as a store can keep it."""

import errno
import os
import stat
from collections.abc import Collection

import msgspec

from engramfs.errors import Conflict, EngramError, NotFound, UsageError
from engramfs.model.entry import Kind
from engramfs.model.names import printable

RESERVED = b".versions"  # at the root of a store
_OWN_XATTRS = "user.engramfs."
_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.SYMLINK}
_OTHERS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Found(msgspec.Struct, frozen=True):
    """A file, directory or symlink on disk; `path` is relative to the directory, which itself is ""."""

    path: bytes
    kind: Kind
    mode: int
    size: int
    mtime: int  # nanoseconds since 1970
    device: int
    inode: int
    target: bytes = b""
    xattrs: tuple[tuple[bytes, bytes], ...] = ()


def scan(directory: bytes, only: Collection[bytes] | None = None) -> list[Found]:
    """Everything in `directory`, itself first, directories before what is in them, siblings by name.

    With `only`, at the root nothing but the names in it is looked at.

    `.versions` at its root is passed over: that name is reserved in every store. Raises `NotFound` when
    there is no such directory, `UsageError` for what a store cannot keep (pipes, sockets, devices) and for
    what cannot be read, `Conflict` when something goes away meanwhile.
    """
    try:
        root = _look_at(directory, b"")
    except Conflict:
        raise NotFound(f"there is no directory {printable(directory)}") from None
    if root.kind is not Kind.DIRECTORY:
        raise UsageError(f"{printable(directory)} is not a directory")
    found, waiting = [], [root]
    while waiting:
        one = waiting.pop()
        found.append(one)
        if one.kind is Kind.DIRECTORY:
            waiting.extend(_children(directory, one.path, None if one.path else only))
    return found


def _children(directory: bytes, path: bytes, only: Collection[bytes] | None) -> list[Found]:
    """Backwards by name."""
    place = os.path.join(directory, path) if path else directory
    try:
        names = sorted(os.listdir(place), reverse=True)
    except OSError as error:
        raise failed(place, error) from error
    if not path and RESERVED in names:
        names.remove(RESERVED)
    if only is not None:
        names = [name for name in names if name in only]
    return [_look_at(directory, os.path.join(path, name)) for name in names]


def _look_at(directory: bytes, path: bytes) -> Found:
    place = os.path.join(directory, path) if path else directory
    try:
        # The directory itself may be given by a symlink; what is in it is never followed.
        status = os.stat(place) if not path else os.lstat(place)
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        if kind is None:
            what = _OTHERS.get(stat.S_IFMT(status.st_mode), "no file, directory or symlink")
            raise UsageError(f"{printable(place)} is {what}, which a store cannot keep; move it away first")
        target = os.readlink(place) if kind is Kind.SYMLINK else b""
        return Found(
            path=path,
            kind=kind,
            mode=stat.S_IMODE(status.st_mode),
            size=len(target) if kind is Kind.SYMLINK else status.st_size if kind is Kind.FILE else 0,
            mtime=status.st_mtime_ns,
            device=status.st_dev,
            inode=status.st_ino,
            target=target,
            xattrs=_xattrs(place) if kind is not Kind.SYMLINK else (),
        )
    except OSError as error:
        raise failed(place, error) from error


def _xattrs(place: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """The attributes `user.*`, but for those that a mount of ours shows of itself."""
    try:
        names = sorted(os.listxattr(place))
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return ()
        raise
    kept = [name for name in names if name.startswith("user.") and not name.startswith(_OWN_XATTRS)]
    return tuple((os.fsencode(name), os.getxattr(place, name)) for name in kept)


def failed(place: bytes, error: OSError) -> EngramError:
    """What it means that something in the directory cannot be read."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
        return changed(place)
    return UsageError(f"cannot read {printable(place)}: {error.strerror}")


def changed(place: bytes) -> Conflict:
    return Conflict(f"{printable(place)} changed while it was read; try again when nothing writes there")
