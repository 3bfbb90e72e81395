"""The journal: the file to which every acknowledged operation is appended before it is answered.

Format. The file begins with `MAGIC`. Then records, each: length (u32), CRC-32 of the payload (u32), both
big-endian, and the payload, MessagePack of a `Record`. Records have rising positions. What follows the
first record that is cut short or does not match its checksum is a torn tail: it was never acknowledged.

Replaying. A record states a result, so applying it twice is harmless; a store's `Head` says up to which
position its records are in the log already, so most are passed over.

Power loss. `append` is one `write` to the page cache (about 10 µs), which survives the death of the
process; a sync makes it survive the loss of power. Three things keep that promise:

 1. When a sync fails, the kernel may drop the pages that it could not write, take them for clean, and let
    the next sync succeed. So a file of which a sync failed is not synced again: its records go to a new
    file, or to the log (`clear`), first. A process that finds records at its start cannot know of such a
    failure, and does the same.
 2. A file that takes the place of another is synced before, and its directory after.
 3. `clear` is not synced. Records that a loss of power brings back are in the log, and positions only
    rise, so they are passed over.

Concurrency. Used from the thread of the event loop alone, but for what `syncing` returns: that is called
in any thread, and one such call waits for the other, since the kernel tells a failure to only one of them.
"""

import contextlib
import errno
import os
import threading
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from engramfs.errors import Corrupt, Full, StorageError
from engramfs.model.author import Author
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.model.operation import Operation, Unlink, Update
from engramfs.storage.durable import make_durable
from engramfs.storage.process_limits import NO_SPACE, no_room
from engramfs.storage.reserve import SIZE, Reserve

MAGIC = b"ENGRJNL1"
INLINE = 64 << 10  # bytes of content that ride in a record; larger content is a blob first
_FRAME = 8
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Record(msgspec.Struct, frozen=True, array_like=True):
    """One operation on one store."""

    position: int
    store: int
    author: Author
    view: int  # the number of the view that it came through, for its transient names
    operation: Operation
    content: bytes | None = None  # of an Update, when it is at most INLINE bytes
    closed: bool = False  # the file was closed or synced, so it may enter the log
    overwrites: int = 0  # the version whose content this one overwrote, when they were concurrent

    @property
    def frees(self) -> bool:
        """Whether it takes a name or a content away."""
        operation = self.operation
        return isinstance(operation, Unlink) or (
            isinstance(operation, Update) and operation.entry.digest == EMPTY_DIGEST
        )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def read_records(descriptor: int, size: int, path: str) -> Iterator[tuple[Record, int]]:
    """Every whole record in the first `size` bytes, oldest first, each with the offset of its end.

    Stops at a torn tail. Raises `Corrupt` for a record that is whole and cannot be understood; `path` is
    for the message.
    """
    offset = len(MAGIC)
    while True:
        frame = os.pread(descriptor, _FRAME, offset)
        if len(frame) < _FRAME:
            return
        length, checksum = int.from_bytes(frame[:4], "big"), int.from_bytes(frame[4:], "big")
        if not 0 < length <= size - offset - _FRAME:
            return
        payload = os.pread(descriptor, length, offset + _FRAME)
        if zlib.crc32(payload) != checksum or len(payload) != length:
            return
        try:
            record = _decode(payload)
        except msgspec.MsgspecError as error:
            raise Corrupt(
                f"{path} holds a record at byte {offset} that this version cannot read ({error}); "
                "use the engramfs that wrote it"
            ) from error
        offset += _FRAME + length
        yield record, offset


def check_magic(descriptor: int, path: str) -> None:
    if os.pread(descriptor, len(MAGIC), 0) != MAGIC:
        raise Corrupt(f"{path} is not a journal of this version; move it away to start without it")


def frame_of(record: Record) -> bytes:
    payload = _encode(record)
    return len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big") + payload


class Journal:
    """The journal in `path`, created when missing; `max_bytes` bounds its size.

    What frees space may go beyond it, and may use up the `reserve`.
    Opening it raises `Corrupt` for a file that is no journal, `Full` and `StorageError` as the disk does.
    """

    def __init__(self, path: str, max_bytes: int, reserve: Reserve | None = None) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self._reserve = reserve
        self.torn_bytes = 0  # dropped from the end when it was opened
        self._positions: dict[int, array[int]] = {}  # of the records in the file now, by store
        self.position = 0
        self._descriptor = -1
        self._unsafe = threading.Event()  # the file may hold records that no sync can save any more
        self._one_sync = threading.Lock()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.size = os.fstat(self._descriptor).st_size
            self._begin()
        except BaseException as error:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            if isinstance(error, OSError):
                raise self._failed(error) from error
            raise

    def _begin(self) -> None:
        if self.size < len(MAGIC):
            self.torn_bytes = self.size
            self._start_file()
            return
        check_magic(self._descriptor, self.path)
        end, last = len(MAGIC), 0
        for record, after in self._read():
            end, last = after, record.position
            self._holds(self._positions, record)
        self.torn_bytes = self.size - end
        if self.torn_bytes:
            self._set_tail_aside(end)
        if self.records:
            self._unsafe.set()
        self.position = last  # of the last record ever appended; the worker raises it to what the log knows

    def _start_file(self) -> None:
        os.ftruncate(self._descriptor, 0)
        if os.pwrite(self._descriptor, MAGIC, 0) < len(MAGIC):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size = len(MAGIC)
        make_durable(self._directory)

    def _set_tail_aside(self, end: int) -> None:
        """Cut the torn tail off, and keep it beside the journal for a person to look at."""
        with open(self.path + ".torn", "wb", opener=_private) as aside:
            aside.write(os.pread(self._descriptor, self.torn_bytes, end))
        os.ftruncate(self._descriptor, end)
        self.size = end

    def _read(self) -> Iterator[tuple[Record, int]]:
        return read_records(self._descriptor, self.size, self.path)

    @property
    def records(self) -> int:
        """How many are in the file now."""
        return sum(map(len, self._positions.values()))

    def count(self, store: int, first: int) -> int:
        """How many of them are of `store`, at position `first` or behind it."""
        positions = self._positions.get(store)
        return len(positions) - bisect_left(positions, first) if positions else 0

    @staticmethod
    def _holds(positions: dict[int, "array[int]"], record: Record) -> None:
        positions.setdefault(record.store, array("Q")).append(record.position)

    def replay(self) -> Iterator[Record]:
        """Every whole record, oldest first."""
        for record, _ in self._read():
            yield record

    def append(self, record: Record) -> None:
        """Add `record`. Raises `Full` when the disk or the allowance is; then nothing was added."""
        frame, frees = frame_of(record), record.frees
        if self.size + len(frame) > self.max_bytes + (SIZE if frees else 0):
            raise Full(
                f"the journal {self.path} has reached journal.max_bytes because versions cannot be sealed; "
                "free disk space, then engramfs status shows it go down"
            )
        self._write(frame, frees=frees)
        self.position = record.position
        self._holds(self._positions, record)

    def _write(self, frame: bytes, *, frees: bool) -> None:
        while True:
            try:
                return self._write_once(frame)
            except OSError as error:
                if not (frees and error.errno in _FULL and self._reserve and self._reserve.give_up()):
                    raise self._failed(error) from error

    def _write_once(self, frame: bytes) -> None:
        written = os.pwrite(self._descriptor, frame, self.size)
        if written < len(frame):
            os.ftruncate(self._descriptor, self.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size += written

    def _failed(self, error: OSError) -> StorageError:
        if error.errno in NO_SPACE:
            return no_room(f"the journal {self.path}", error.errno, ", then write again")
        return StorageError(f"the journal {self.path} cannot be written: {error.strerror}")

    def syncing(self) -> Callable[[], None]:
        """A call that makes what was appended so far survive the loss of power, or raises `StorageError`.

        It blocks for the disk, so it is run in a thread; the descriptor that it uses is its own, since
        `compact` may replace the journal's meanwhile. Raises `Full` and `StorageError` here already when
        the records have to go to a new file first, and cannot.
        """
        if self._unsafe.is_set():
            self.compact(lambda _record: True)
        return partial(self._sync, os.dup(self._descriptor), self._unsafe)

    def _sync(self, descriptor: int, unsafe: threading.Event) -> None:
        try:
            with self._one_sync:
                if unsafe.is_set():  # while this one waited
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                try:
                    os.fdatasync(descriptor)
                except OSError:
                    unsafe.set()
                    raise
        except OSError as error:
            raise self._failed(error) from error
        finally:
            os.close(descriptor)

    def clear(self) -> None:
        """Drop every record: all of them are in the log. Raises `StorageError`; then nothing was dropped."""
        if self.records or self.size > len(MAGIC):
            try:
                os.ftruncate(self._descriptor, len(MAGIC))
            except OSError as error:
                raise self._failed(error) from error
            self.size = len(MAGIC)
            self._positions = {}
            self._unsafe.clear()
        if self._reserve is not None:
            self._reserve.fill()

    def compact(self, keep: Callable[[Record], bool]) -> None:
        """Rewrite the file with only those records that `keep` says are still needed; they are synced.

        Raises `Full` and `StorageError`; then every record is still there.
        """
        temporary = self.path + ".new"
        try:
            kept, descriptor = self._write_kept(temporary, keep)
            os.replace(temporary, self.path)
        except OSError as error:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise self._failed(error) from error
        os.close(self._descriptor)
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self._positions = kept
        self._unsafe = unsafe = threading.Event()  # a sync of the old file may fail yet
        try:
            make_durable(self._directory)
        except OSError as error:
            unsafe.set()
            raise self._failed(error) from error

    def _write_kept(
        self, temporary: str, keep: Callable[[Record], bool]
    ) -> tuple[dict[int, "array[int]"], int]:
        """The positions of those that were kept, and a descriptor of the new file."""
        kept: dict[int, array[int]] = {}
        found = 0
        with open(temporary, "wb", opener=_private) as file:
            file.write(MAGIC)
            for record in self.replay():
                found += 1
                if keep(record):
                    file.write(frame_of(record))
                    self._holds(kept, record)
            if found < self.records:  # the disk lost what it could not write; the log may get it yet
                raise OSError(errno.EIO, f"{self.records - found} records cannot be read back")
            file.flush()
            os.fdatasync(file.fileno())
        return kept, os.open(temporary, os.O_RDWR | os.O_CLOEXEC)

    @property
    def _directory(self) -> str:
        return os.path.dirname(self.path) or "."

    def close(self) -> None:
        os.close(self._descriptor)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
