"""The extended attributes that are stored with an entry: `user.*`, but for the marks `user.engramfs.*`."""

import time

import msgspec

from engramfs.errors import NoAttribute, NotPermitted, RangeTooSmall, Unsupported
from engramfs.model.entry import Entry
from engramfs.vfs.view import MARKS

_MAX = 64 << 10  # bytes of all names and values of one file


def check_name(name: bytes) -> None:
    """Raises `NotPermitted` for a mark, `Unsupported` for another namespace."""
    if name.startswith(MARKS):
        raise NotPermitted
    if not name.startswith(b"user."):
        raise Unsupported


def added(entry: Entry, name: bytes, value: bytes) -> Entry:
    """`entry` with one more or another value. Raises `RangeTooSmall` when they are too large together."""
    xattrs = {**dict(entry.xattrs), name: value}
    if sum(len(key) + len(item) for key, item in xattrs.items()) > _MAX:
        raise RangeTooSmall
    return _with(entry, xattrs)


def removed(entry: Entry, name: bytes) -> Entry:
    """`entry` without one. Raises `NoAttribute`."""
    xattrs = dict(entry.xattrs)
    if xattrs.pop(name, None) is None:
        raise NoAttribute
    return _with(entry, xattrs)


def _with(entry: Entry, xattrs: dict[bytes, bytes]) -> Entry:
    return msgspec.structs.replace(entry, xattrs=tuple(sorted(xattrs.items())), ctime=time.time_ns())
