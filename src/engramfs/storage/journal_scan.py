"""Reading a journal that another process may be appending to, clearing or replacing. Never writes to it.

What may happen meanwhile, and what a scan makes of it:

- A record is appended: it is not looked at, since the scan ends where the file ended when it began.
- The journal is compacted: the scan goes on in the file that it opened, which nobody changes any more.
- The journal is cleared, and perhaps filled again: everything that the scan was to see is in the log by
  then. The first record is another one (positions only rise), which is how a scan notices: it was
  overtaken.
"""

import os
from collections.abc import Iterator

from engramfs.errors import Busy
from engramfs.storage.journal import MAGIC, Record, check_magic, read_records

_ATTEMPTS = 100
_CHUNK = 1 << 20
_BEGINNING = 4096  # bytes after the magic that tell one filling of the journal from the next


class JournalScan:
    """One pass over the journal in `path`, with its numbers afterwards. A missing file is an empty journal.

    `overtaken` says that the journal was cleared meanwhile; then `torn_bytes` says nothing and is 0.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.records = 0
        self.torn_bytes = 0
        self.overtaken = False

    def __iter__(self) -> Iterator[Record]:
        """Every whole record. Raises `Corrupt` for a file that is no journal of this version."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            size = os.fstat(descriptor).st_size
            if size < len(MAGIC):
                self.torn_bytes = size
                return
            check_magic(descriptor, self.path)
            before = os.pread(descriptor, _BEGINNING, len(MAGIC))
            end = len(MAGIC)
            for record, end in read_records(descriptor, size, self.path):  # noqa: B007 (used below)
                self.records += 1
                yield record
            self.overtaken = not _still_begins(descriptor, before, size)
            self.torn_bytes = 0 if self.overtaken else size - end
        finally:
            os.close(descriptor)


def copy_journal(source: str, target: str) -> None:
    """Write to `target` every whole record that `source` holds at one moment of this call.

    Raises `Busy` when it is cleared so often that no moment could be had.
    """
    for _ in range(_ATTEMPTS):
        if _copy_once(source, target):
            return
    raise Busy(f"{source} is being rewritten all the time; try again when fewer programs write")


def _copy_once(source: str, target: str) -> bool:
    with open(target, "wb", opener=lambda path, flags: os.open(path, flags | os.O_CLOEXEC, 0o600)) as copy:
        copy.write(MAGIC)
        try:
            descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            size = os.fstat(descriptor).st_size
            if size < len(MAGIC):
                return True
            check_magic(descriptor, source)
            before = os.pread(descriptor, _BEGINNING, len(MAGIC))
            end = len(MAGIC)
            for _, end in read_records(descriptor, size, source):  # noqa: B007 (used below)
                pass
            for offset in range(len(MAGIC), end, _CHUNK):
                copy.write(os.pread(descriptor, min(_CHUNK, end - offset), offset))
            return _still_begins(descriptor, before, size)
        finally:
            os.close(descriptor)


def _still_begins(descriptor: int, before: bytes, size: int) -> bool:
    known = before[: size - len(MAGIC)]
    return os.pread(descriptor, len(known), len(MAGIC)) == known
