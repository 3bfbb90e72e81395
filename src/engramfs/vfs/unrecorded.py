"""Which inodes have bytes in a spool that are nowhere else, where the next worker can read it.

A spool outlives its worker, but it is a file like others and may be lost. Then the next worker has to know
that there was one, or whoever had written would never hear of it. So each such inode has a slot of 8 bytes
in shared memory, which outlives the process and costs nanoseconds: 0, or the inode number.

Like the spools themselves it is as old as the mount.
"""

import mmap
import os
from collections.abc import Iterator

from engramfs.vfs.spool import Spool

_SLOT = 8  # bytes
_AT_FIRST = 512  # slots


class Unrecorded:
    """The inodes in `path`. Without a path they are forgotten with the process."""

    def __init__(self, path: str | None = None) -> None:
        self._slots: dict[int, int] = {}  # by inode
        self._free: list[int] = []
        self._descriptor, size = -1, 0
        if path is not None:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            size = os.fstat(self._descriptor).st_size
        self._memory = self._of_size(max(size, _AT_FIRST * _SLOT))
        self._take_in()

    def _of_size(self, size: int) -> mmap.mmap:
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, size)
        return mmap.mmap(self._descriptor, size)

    def _take_in(self) -> None:
        """What an earlier worker left."""
        for slot in range(len(self._memory) // _SLOT - 1, -1, -1):
            inode = int.from_bytes(self._memory[slot * _SLOT : (slot + 1) * _SLOT], "little")
            if inode:
                self._slots[inode] = slot
            else:
                self._free.append(slot)

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._slots))

    def add(self, inode: int) -> None:
        if inode not in self._slots:
            if not self._free:
                self._grow()
            self._slots[inode] = slot = self._free.pop()
            self._set(slot, inode)

    def discard(self, inode: int) -> None:
        slot = self._slots.pop(inode, None)
        if slot is not None:
            self._set(slot, 0)
            self._free.append(slot)

    def _set(self, slot: int, inode: int) -> None:
        self._memory[slot * _SLOT : (slot + 1) * _SLOT] = inode.to_bytes(_SLOT, "little")

    def _grow(self) -> None:
        before, slots = self._memory, len(self._memory) // _SLOT
        self._memory = self._of_size(slots * 2 * _SLOT)
        self._memory[: len(before)] = before[:]
        before.close()
        self._free.extend(range(slots * 2 - 1, slots - 1, -1))

    def close(self) -> None:
        self._memory.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)


class DirtySpools:
    """Those of one store: written, not recorded yet."""

    def __init__(self, unrecorded: Unrecorded) -> None:
        self._unrecorded = unrecorded
        self._spools: set[Spool] = set()

    def __iter__(self) -> Iterator[Spool]:
        return iter(self._spools)

    def add(self, spool: Spool) -> None:
        if spool not in self._spools:
            self._spools.add(spool)
            self._unrecorded.add(spool.inode)

    def discard(self, spool: Spool) -> None:
        if spool in self._spools:
            self._spools.discard(spool)
            self._unrecorded.discard(spool.inode)
