"""The bytes of one open, dirty file, in a file of their own until they are recorded.

A spool knows what it began with (`base_digest`, `base_size`) and whether everything done to it since was
to add at the end (`appended`), which is what lets two writers of a log both keep their lines.

Its file is in the page cache as soon as a write returned, so it outlives the process. It is named after
the inode and what it began with, so that another worker can go on with it: `<inode>-<digest>-<size>`. Its
mode says whether there is anything in it to go on with: what was recorded may be old since. And whether it
is as it was at a close that could not be recorded, which is made up for (see `failed_closes`).
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator

from engramfs.storage import blobs

FILLING = "new-"  # how the name of a spool begins that is being filled
_DIRTY, _CLOSED, _DONE_WITH = 0o600, 0o640, 0o700  # modes


class Spool:
    """An open spool file."""

    def __init__(
        self, directory: str, inode: int, base_digest: bytes, base_size: int, pieces: Iterable[bytes] = ()
    ) -> None:
        """A new spool, that holds `pieces` once it has its name: half of them are nothing to go on with."""
        self._start(directory, inode, base_digest, base_size)
        filling = os.path.join(directory, f"{FILLING}{inode:x}")
        self.descriptor = os.open(filling, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _DIRTY)
        self.size = 0
        try:
            self._fill(pieces)
            os.rename(filling, self.path)
        except BaseException:
            os.close(self.descriptor)
            os.unlink(filling)
            raise
        self.dirty = False
        self.appended = True  # nothing below base_size was touched
        self.mtime = 0  # nanoseconds; of the last write, or as set while dirty

    def _start(self, directory: str, inode: int, base_digest: bytes, base_size: int) -> None:
        self._directory = directory
        self._inode = inode
        self.base_digest = base_digest
        self.base_size = base_size
        self.path = self._named()
        self._adopted = False  # and nothing was written since
        self._mode = _DIRTY

    def _named(self) -> str:
        return os.path.join(self._directory, f"{self._inode:x}-{self.base_digest.hex()}-{self.base_size}")

    @classmethod
    def adopt(cls, directory: str, name: str) -> "Spool":
        """The spool that an earlier worker left under `name`, dirty unless it was recorded or refused."""
        inode, digest, size = name.split("-")
        spool = cls.__new__(cls)
        spool._start(directory, int(inode, 16), bytes.fromhex(digest), int(size))
        spool.descriptor = os.open(spool.path, os.O_RDWR | os.O_CLOEXEC)
        found = os.fstat(spool.descriptor)
        spool.size, spool.mtime = found.st_size, found.st_mtime_ns
        spool._mode = stat.S_IMODE(found.st_mode)
        spool.dirty = spool._mode != _DONE_WITH
        spool._adopted = True
        spool.appended = spool.size >= spool.base_size and spool._begins_with_base()
        return spool

    @property
    def inode(self) -> int:
        return self._inode

    def _begins_with_base(self) -> bool:
        found, left = hashlib.sha256(), self.base_size
        for piece in self.pieces():
            found.update(piece[:left])
            left -= min(left, len(piece))
        return found.digest() == self.base_digest

    @property
    def is_closed(self) -> bool:
        """Whether a close of it could not be recorded, and nothing was changed since."""
        return self.dirty and self._mode == _CLOSED

    def close_failed(self) -> None:
        self._mark(_CLOSED)

    def _touched(self) -> None:
        """Before the first change after a record, or a close: the name says what it begins with now."""
        if (path := self._named()) != self.path:
            os.rename(self.path, path)
            self.path = path
        if self._mode != _DIRTY:
            self._mark(_DIRTY)
        self.dirty = True

    def _done_with(self) -> None:
        self._mark(_DONE_WITH)
        self.dirty = False

    def _mark(self, mode: int) -> None:
        os.fchmod(self.descriptor, mode)
        self._mode = mode

    def _fill(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self._write_all(piece, self.size)
            self.size += len(piece)

    def _write_all(self, data: bytes, offset: int) -> None:
        """All of it, or `OSError`: a disk that fills up takes a part and says so only the next time."""
        view = memoryview(data)
        while view:
            written = os.pwrite(self.descriptor, view, offset)
            view, offset = view[written:], offset + written

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self.descriptor, size, offset)

    def is_repeated(self, offset: int, data: bytes) -> bool:
        """Whether an earlier worker did this write and died before it answered, so that it is asked again."""
        is_there = offset + len(data) == self.size and self.read(offset, len(data)) == data
        return self._adopted and is_there

    def write(self, offset: int, data: bytes) -> int:
        """How many bytes were written. What raises `OSError` changed nothing."""
        was_dirty = self.dirty
        if not was_dirty or self._mode != _DIRTY:
            self._touched()
        self._adopted = False
        try:
            written = os.pwrite(self.descriptor, data, offset)
        except OSError:
            if not was_dirty:
                self._done_with()
            raise
        if offset < self.base_size:
            self.appended = False
        self.size = max(self.size, offset + written)
        return written

    def truncate(self, size: int) -> None:
        if not self.dirty or self._mode != _DIRTY:
            self._touched()
        os.ftruncate(self.descriptor, size)
        if size < self.base_size:
            self.appended = False
        self.size = size

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """The content from `start`, in parts as blobs want them."""
        while start < self.size:
            piece = os.pread(self.descriptor, blobs.PART, start)
            start += len(piece)
            yield piece

    def digest(self) -> bytes:
        found = hashlib.sha256()
        for piece in self.pieces():
            found.update(piece)
        return found.digest()

    def blocks(self) -> int:
        """512-byte blocks in use; fewer than the size has when there are holes."""
        return os.fstat(self.descriptor).st_blocks

    def recorded(self, digest: bytes) -> None:
        """What is in the spool is now what the log, or the journal, has."""
        self.base_digest = digest
        self.base_size = self.size
        self.appended = True
        self._done_with()

    def refuse(self) -> None:
        """What is here will not be recorded; the next use begins with the head again."""
        self.base_digest = b""
        self._done_with()

    def abandon(self) -> None:
        """Close it and leave its file aside, for a person to look at."""
        os.close(self.descriptor)
        os.rename(self.path, os.path.join(self._directory, "..", f"lost-{os.path.basename(self.path)}"))

    def close(self) -> None:
        os.close(self.descriptor)
        os.unlink(self.path)
