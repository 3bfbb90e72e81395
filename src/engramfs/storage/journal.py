"""The journal: the file to which every acknowledged operation is appended before it is answered.

Format. The file begins with `MAGIC`. Then records, each: length (u32), CRC-32 of the payload (u32), both
big-endian, and the payload, MessagePack of a `Record`. Records have rising positions. What follows the
first record that is cut short or does not match its checksum is a torn tail: it was never acknowledged.

Replaying. A record states a result, so applying it twice is harmless; a store's `Head` says up to which
position its records are in the log already, so most are passed over.

Concurrency. Used from the thread of the event loop alone. `append` is one `write` to the page cache
(about 10 µs), which survives the death of the process; `sync` makes it survive the loss of power.
"""

import contextlib
import errno
import os
import zlib
from collections.abc import Callable, Iterator

import msgspec

from engramfs.errors import Corrupt, Full, StorageError
from engramfs.model.author import Author
from engramfs.model.operation import Operation

MAGIC = b"ENGRJNL1"
INLINE = 64 << 10  # bytes of content that ride in a record; larger content is a blob first
_FRAME = 8


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


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


class Journal:
    """The journal in `path`, created when missing; `max_bytes` bounds its size."""

    def __init__(self, path: str, max_bytes: int) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.torn_bytes = 0  # dropped from the end when it was opened
        self.records = 0  # in the file now
        self.position = 0
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self._descriptor).st_size
        try:
            self._begin()
        except BaseException:
            os.close(self._descriptor)
            raise

    def _begin(self) -> None:
        if self.size < len(MAGIC):
            self.torn_bytes = self.size
            self._reset()
            return
        if os.pread(self._descriptor, len(MAGIC), 0) != MAGIC:
            raise Corrupt(f"{self.path} is not a journal of this version; move it away to start without it")
        end, last = len(MAGIC), 0
        for record, after in self._read():
            end, last = after, record.position
            self.records += 1
        self.torn_bytes = self.size - end
        if self.torn_bytes:
            self._set_tail_aside(end)
        self.position = last  # of the last record ever appended; the worker raises it to what the log knows

    def _set_tail_aside(self, end: int) -> None:
        """Cut the torn tail off, and keep it beside the journal for a person to look at."""
        with open(self.path + ".torn", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as aside:
            aside.write(os.pread(self._descriptor, self.torn_bytes, end))
        os.ftruncate(self._descriptor, end)
        self.size = end

    def _read(self) -> Iterator[tuple[Record, int]]:
        offset = len(MAGIC)
        while True:
            frame = os.pread(self._descriptor, _FRAME, offset)
            if len(frame) < _FRAME:
                return
            length, checksum = int.from_bytes(frame[:4], "big"), int.from_bytes(frame[4:], "big")
            if length > self.size - offset - _FRAME:
                return
            payload = os.pread(self._descriptor, length, offset + _FRAME)
            if zlib.crc32(payload) != checksum or len(payload) != length or not length:
                return
            try:
                record = _decode(payload)
            except msgspec.MsgspecError as error:
                raise Corrupt(
                    f"{self.path} holds a record at byte {offset} that this version cannot read ({error})"
                ) from error
            offset += _FRAME + length
            yield record, offset

    def replay(self) -> Iterator[Record]:
        """Every whole record, oldest first."""
        for record, _ in self._read():
            yield record

    def append(self, record: Record) -> None:
        """Add `record`. Raises `Full` when the disk or the allowance is; then nothing was added."""
        payload = _encode(record)
        frame = len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big") + payload
        if self.size + len(frame) > self.max_bytes:
            raise Full(
                f"the journal {self.path} has reached journal.max_bytes because versions cannot be sealed; "
                "free disk space, then engramfs status shows it go down"
            )
        self._write(frame)
        self.position = record.position
        self.records += 1

    def _write(self, frame: bytes) -> None:
        try:
            written = os.pwrite(self._descriptor, frame, self.size)
        except OSError as error:
            raise self._failed(error) from error
        if written < len(frame):
            with contextlib.suppress(
                OSError
            ):  # the torn tail is harmless, and overwritten by the next record
                os.ftruncate(self._descriptor, self.size)
            raise self._failed(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        self.size += written

    def _failed(self, error: OSError) -> StorageError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return Full(f"no space left for the journal {self.path}; free some, then write again")
        return StorageError(f"the journal {self.path} cannot be written: {error.strerror}")

    def syncing(self) -> Callable[[], None]:
        """A call that makes what was appended so far survive the loss of power.

        It blocks for the disk, so it is run in a thread; the descriptor that it uses is its own, since
        `compact` may replace the journal's meanwhile.
        """
        descriptor = os.dup(self._descriptor)

        def sync() -> None:
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)

        return sync

    def clear(self) -> None:
        """Drop every record: all of them are in the log."""
        if self.size > len(MAGIC):
            self._reset()

    def _reset(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, MAGIC, 0)
        self.size = len(MAGIC)
        self.records = 0

    def compact(self, keep: Callable[[Record], bool]) -> None:
        """Rewrite the file with only those records that `keep` says are still needed."""
        temporary = self.path + ".new"
        with open(temporary, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(MAGIC)
            kept = 0
            for record in self.replay():
                if keep(record):
                    payload = _encode(record)
                    file.write(len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big"))
                    file.write(payload)
                    kept += 1
            file.flush()
            os.fdatasync(file.fileno())
        descriptor = os.open(temporary, os.O_RDWR | os.O_CLOEXEC)
        os.replace(temporary, self.path)
        os.close(self._descriptor)
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.records = kept

    def close(self) -> None:
        os.close(self._descriptor)
