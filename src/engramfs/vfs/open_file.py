"""A file that a view has open for writing, and the bytes that were not recorded yet."""

import os

import trio

from engramfs.vfs.node import Node, Place
from engramfs.vfs.spool import Spool


class OpenFile:
    """`writers` descriptors are open for writing; `spool` exists from the first write on.

    `created_as` has the names of a file that was created by its opening.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.opened_digest = node.entry.digest  # the content that the last opening, or record, saw
        self.created_as: tuple[Place, ...] = ()
        self.is_refused = False  # what was closed last is not to become the file
        self.writers = 0
        self.spool: Spool | None = None
        self.frozen: trio.Event | None = None  # set when a large content has been recorded

    def fresh(self) -> Spool | None:
        """The spool, if what it holds is what this view shows: dirty, or still the head's content."""
        spool = self.spool
        if spool is not None and (spool.dirty or spool.base_digest == self.node.entry.digest):
            return spool
        return None

    async def thawed(self) -> None:
        """Wait until the content may be changed again."""
        while self.frozen is not None:
            await self.frozen.wait()

    def close(self) -> None:
        if self.spool is not None:
            self.spool.close()
            self.spool = None


def is_writing(flags: int) -> bool:
    """Whether open(2) flags ask to write."""
    return flags & os.O_ACCMODE != os.O_RDONLY
