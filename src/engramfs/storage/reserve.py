"""A little room on the disk, kept for what frees more: on a full disk a file can still be removed.

It is a file with nothing in it but room. When the journal finds none for a removal, the reserve gives up a
block or two, which the journal takes at once; nothing waits in between. It is made whole when there is room
again. Where the disk has no room for it from the start, or its filesystem keeps none, it is smaller or none.

What is given up is not for sealing: that takes as much as was written, so it waits until the disk has room.
"""

import contextlib
import os

SIZE = 256 << 10  # bytes; for some 2,000 removals
_STEP = 8 << 10  # bytes given up at a time: at least as many as a record of a removal needs


class Reserve:
    """The reserve in the file `path`, made when missing."""

    def __init__(self, path: str) -> None:
        self._descriptor = -1
        self.size = 0  # bytes that it can give up
        with contextlib.suppress(OSError):  # a disk that takes no new file goes without
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.size = os.fstat(self._descriptor).st_size
        self.fill()

    def fill(self) -> None:
        """Make it whole, if there is room."""
        if self.size < SIZE and self._descriptor >= 0:
            with contextlib.suppress(OSError):  # then another time
                os.posix_fallocate(self._descriptor, 0, SIZE)
            self.size = os.fstat(self._descriptor).st_size

    def give_up(self) -> bool:
        """Give some of it back to the disk; whether there was any."""
        if not self.size:
            return False
        left = max(0, self.size - _STEP)
        try:
            os.ftruncate(self._descriptor, left)
        except OSError:  # nothing can be written here at all
            return False
        self.size = left
        return True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
