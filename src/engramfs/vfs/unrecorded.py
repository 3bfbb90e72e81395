"""Which inodes have bytes in a spool that are nowhere else, and of which such bytes were lost.

A spool outlives its worker, but it is a file like others and may be lost. Then the next worker has to know
that there was one, or whoever had written would never hear of it. And every descriptor that was open then
has to hear of it, as often as it is used, whatever becomes of the others and of this worker. A descriptor
knows how many losses its inode had when it was opened (its file handle says so), so those that are older
than the newest loss can be told.

So each such inode has a slot of 8 bytes in shared memory, which outlives the process and costs
nanoseconds: 0, or the inode number (60 bits), a bit for unrecorded bytes, and the losses (2 bits).

Like the spools themselves it is as old as the mount.
"""

import mmap
import os
from collections.abc import Iterator

from engramfs.errors import StorageError
from engramfs.model.entry import NODE_BITS
from engramfs.vfs.spool import Spool

MOST_LOSSES = 3  # that are told apart; after so many no descriptor can be opened that would be newer
_SLOT = 8  # bytes
_AT_FIRST = 512  # slots
_DIRTY = 1 << 60
_LOSSES = 61  # the number of the first of their bits
_INODE = _DIRTY - 1


class Unrecorded:
    """What is in `path`. Without a path it is forgotten with the process."""

    def __init__(self, path: str | None = None) -> None:
        self._values: dict[int, int] = {}  # by inode, as in its slot
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
            value = int.from_bytes(self._memory[slot * _SLOT : (slot + 1) * _SLOT], "little")
            if value:
                self._values[value & _INODE] = value
                self._slots[value & _INODE] = slot
            else:
                self._free.append(slot)

    def __iter__(self) -> Iterator[int]:
        """The inodes with unrecorded bytes."""
        return iter([inode for inode, value in self._values.items() if value & _DIRTY])

    def add(self, inode: int) -> None:
        self._set(inode, self._values.get(inode, inode) | _DIRTY)

    def discard(self, inode: int) -> None:
        """What it had is recorded, or given up by whoever wrote it."""
        value = self._values.get(inode)
        if value is not None:
            self._set(inode, value & ~_DIRTY)

    def lose(self, inode: int) -> None:
        """What it had is gone, and whoever had it open does not know."""
        losses = min(self.losses(inode) + 1, MOST_LOSSES)
        self._set(inode, inode | losses << _LOSSES)

    def losses(self, inode: int) -> int:
        return self._values.get(inode, 0) >> _LOSSES

    def check_can_be_opened(self, inode: int) -> None:
        """Raises `StorageError` when a new descriptor could not be told from those that lost something."""
        if self.losses(inode) >= MOST_LOSSES:
            raise StorageError(
                f"what was written to inode {inode} was lost {MOST_LOSSES} times while it was open, so it "
                "cannot be opened for writing in this session; write a new file, and rename it over this one"
            )

    def end(self, view: int) -> None:
        """The view with this number is no more: its number may be given to another."""
        for inode in [inode for inode in self._values if inode >> NODE_BITS == view]:
            self._set(inode, inode)

    def _set(self, inode: int, value: int) -> None:
        """A value that says no more than the inode is none."""
        slot = self._slots.get(inode)
        if value == inode:
            if slot is not None:
                self._put(slot, 0)
                self._free.append(slot)
                del self._slots[inode], self._values[inode]
            return
        if slot is None:
            if not self._free:
                self._grow()
            slot = self._slots[inode] = self._free.pop()
        self._put(slot, value)
        self._values[inode] = value

    def _put(self, slot: int, value: int) -> None:
        self._memory[slot * _SLOT : (slot + 1) * _SLOT] = value.to_bytes(_SLOT, "little")

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
