"""Invalidations, from a thread of their own.

Told to the kernel on the event loop, they would deadlock: that of an inode waits for a read of it which is
in flight, and that of a name for an operation on its directory, and both are answered by the loop. So they go
to one thread, which has them told by another process (see `teller`) and waits for that. What waits there is
bounded by what the kernel holds, since each inode and each name waits once, however often it changed.
"""

import errno
import os
import threading
from itertools import chain

import structlog
import trio

from engramfs.fuse.teller import Teller, TellerEnded, entry_message, inode_message

_EXPECTED = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENOTCONN, errno.EBADF}  # it knows nothing of it
PATIENCE = 5.0  # seconds
log = structlog.get_logger("engramfs.notifier")


class Notifier:
    """The `Invalidator` of the vfs. `begin` when there is a connection; `stop` after what is waiting."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._inodes: dict[int, bool] = {}  # → whether the content changed as well
        self._entries: dict[tuple[int, bytes], None] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._taken = self._told = 0  # rounds of the thread: begun, and finished
        self._thread = threading.Thread(target=self._run, name="engramfs-notifier", daemon=True)

    def begin(self) -> None:
        """What was announced so far goes to the kernel, and what comes from now on."""
        self._thread.start()

    def inode_changed(self, inode: int, *, content: bool) -> None:
        with self._changed:
            self._inodes[inode] = content or self._inodes.get(inode, False)
            self._changed.notify_all()

    def entry_changed(self, parent: int, name: bytes) -> None:
        with self._changed:
            self._entries[parent, name] = None
            self._changed.notify_all()

    async def settled(self) -> None:
        """Wait until the kernel has been told what was announced so far, or `PATIENCE` is at its end."""
        if self._told < self._announced() and not await trio.to_thread.run_sync(self._wait):
            log.warning("the kernel has not dropped what it cached", after=f"{PATIENCE:g} s")

    def _wait(self) -> bool:
        with self._changed:
            announced = self._announced()
            return self._changed.wait_for(lambda: self._told >= announced, PATIENCE)

    def _announced(self) -> int:
        """The round after which all has been told that was announced so far."""
        return self._taken + bool(self._inodes or self._entries)

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=1)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._inodes or self._entries or self._stopping)
                if self._stopping and not (self._inodes or self._entries):
                    return
                inodes, self._inodes = self._inodes, {}
                entries, self._entries = self._entries, {}
                self._taken += 1
            self._tell(entries, inodes)
            with self._changed:
                self._told = self._taken
                self._changed.notify_all()

    def _tell(self, entries: dict[tuple[int, bytes], None], inodes: dict[int, bool]) -> None:
        names = (entry_message(parent, name) for parent, name in entries)
        nodes = (inode_message(inode, content=content) for inode, content in inodes.items())
        try:
            failed = self._teller.tell(chain(names, nodes))
        except TellerEnded:
            if not self._stopping:
                log.error("who tells the kernel what to forget has ended; another worker goes on")
                os._exit(1)
            return
        for number in failed - _EXPECTED:
            log.warning("an invalidation failed", reason=os.strerror(number))
