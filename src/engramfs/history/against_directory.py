"""What differs between a version of a store and a plain directory on disk: what an import would record.

Every file in the directory is read, for its digest.
"""

import hashlib
import os
from collections.abc import Iterator

from engramfs.history.diff import Difference, same
from engramfs.history.file_contents import read_parts
from engramfs.history.plain_directory import Found, scan
from engramfs.history.tree import Tree, walk
from engramfs.model.entry import Entry, Kind


def against_directory(tree: Tree, directory: bytes, path: bytes = b"") -> Iterator[Difference]:
    """What is not the same at and below `path` in `directory` as in `tree`, by path.

    Raises what `plain_directory.scan` raises.
    """
    found = {one.path: one for one in scan(directory) if _is_within(one.path, path)}
    entries = dict(walk(tree, path))
    for where in sorted(found.keys() | entries.keys(), key=lambda one: one.split(b"/")):
        old, one = entries.get(where), found.get(where)
        if not where and old is not None and one is not None:
            continue  # the directory itself is whatever its owner made it
        new = _entry(directory, one) if one is not None else None
        if not same(old, new):
            yield Difference(where, old, new)


def _is_within(where: bytes, path: bytes) -> bool:
    return not path or where == path or where.startswith(path + b"/")


def _entry(directory: bytes, one: Found) -> Entry:
    """What a store would keep of it."""
    digest = _digest(directory, one) if one.kind is Kind.FILE else b""
    return Entry(
        node=0,
        kind=one.kind,
        mode=one.mode,
        size=one.size,
        mtime=one.mtime,
        ctime=one.mtime,
        digest=digest,
        target=one.target,
        xattrs=one.xattrs,
    )


def _digest(directory: bytes, one: Found) -> bytes:
    digest = hashlib.sha256()
    for part in read_parts(directory, one):
        digest.update(part)
    return digest.digest()


def content_on_disk(directory: bytes, path: bytes, entry: Entry | None) -> bytes | None:
    """What `patch.content_of` is for an entry of a store. Raises `Conflict` when it changed meanwhile."""
    if entry is None or entry.kind is Kind.DIRECTORY:
        return None
    if entry.kind is Kind.SYMLINK:
        return entry.target
    status = os.lstat(os.path.join(directory, path))
    one = Found(
        path=path,
        kind=Kind.FILE,
        mode=entry.mode,
        size=entry.size,
        mtime=entry.mtime,
        device=status.st_dev,
        inode=status.st_ino,
    )
    return b"".join(read_parts(directory, one))
