"""Files that have no name any more and may still be open, kept so that another worker can go on with them.

One file a node in the spool directory: `orphan-<store>-<node>`, MessagePack of an `Orphan`. Written when
the last name goes while a descriptor may be open, removed when the kernel has forgotten the inode.
"""

import contextlib
import os
from collections.abc import Iterator

import msgspec
import structlog

from engramfs.model.entry import Entry

PREFIX = "orphan-"
log = structlog.get_logger("engramfs.orphans")


class Orphan(msgspec.Struct, frozen=True, array_like=True):
    """A node without a name. `content` is what is no blob; else the entry's digest names it."""

    store: int
    entry: Entry
    content: bytes | None
    born: bool


class Orphans:
    """Those of one store."""

    def __init__(self, directory: str, store: int) -> None:
        self._directory = directory
        self._store = store
        self._kept: set[int] = set()

    def __iter__(self) -> Iterator[int]:
        """The ids of the nodes."""
        return iter(list(self._kept))

    def keep(self, entry: Entry, content: bytes | None, *, born: bool) -> None:
        """Where the disk is full, this worker goes on with it all the same; another would not know it."""
        path = self._path(entry.node)
        self._kept.add(entry.node)
        try:
            with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(msgspec.msgpack.encode(Orphan(self._store, entry, content, born)))
        except OSError as error:
            log.warning("a removed file that is open is not kept", path=path, reason=error.strerror)

    def drop(self, node: int) -> None:
        if node in self._kept:
            self._kept.discard(node)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(node))

    def adopt(self, node: int) -> None:
        """An earlier worker kept it."""
        self._kept.add(node)

    def _path(self, node: int) -> str:
        return os.path.join(self._directory, f"{PREFIX}{self._store}-{node:x}")


def left(directory: str) -> Iterator[Orphan]:
    """What an earlier worker kept. One that was cut short was never needed: its unlink had no answer."""
    for name in sorted(os.listdir(directory)):
        if name.startswith(PREFIX):
            with open(os.path.join(directory, name), "rb") as file, contextlib.suppress(msgspec.MsgspecError):
                yield msgspec.msgpack.decode(file.read(), type=Orphan)
