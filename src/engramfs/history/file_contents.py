"""Contents of files on disk go into the log, in transactions of bounded size.

A file that changes while it is read is an error, so that no version holds half a write: what is read must
be what the scan saw, by device, inode, size and mtime, before and after; and a large file, which is read
once for its digest and once to be stored, must have that digest again.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO

from engramfs.history.plain_directory import Found, changed, failed
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.storage import blobs
from engramfs.storage.protocol import Engine, Writer

PutBlobs = Callable[[Callable[[Writer], None]], object]

_BYTES = 8 * blobs.PART  # in one transaction
_FILES = 1000  # small files in one transaction


class FileContents:
    """Stores files of `directory` with `store`, and what is still waiting with `flush`."""

    def __init__(self, engine: Engine, directory: bytes, put_blobs: PutBlobs) -> None:
        self._engine = engine
        self._directory = directory
        self._put_blobs = put_blobs
        self._waiting: dict[bytes, bytes] = {}  # digest → content of small files
        self._waiting_bytes = 0

    def store(self, one: Found) -> bytes:
        """The digest of a file; its content is in the log after the next `flush` at the latest."""
        place = os.path.join(self._directory, one.path)
        try:
            with open(place, "rb", buffering=0, opener=_open) as file:
                _check_unchanged(file, one, place)
                digest = self._store_small(file) if one.size <= blobs.PART else self._store_large(file, place)
                _check_unchanged(file, one, place)
        except OSError as error:
            raise failed(place, error) from error
        return digest

    def _store_small(self, file: BinaryIO) -> bytes:
        content = b"".join(_parts(file))
        digest = hashlib.sha256(content).digest()
        if digest not in self._waiting and not self._is_stored(digest):
            self._waiting[digest] = content
            self._waiting_bytes += len(content)
            if self._waiting_bytes >= _BYTES or len(self._waiting) >= _FILES:
                self.flush()
        return digest

    def _store_large(self, file: BinaryIO, place: bytes) -> bytes:
        found = hashlib.sha256()
        for part in _parts(file):
            found.update(part)
        digest = found.digest()
        if not self._is_stored(digest):
            file.seek(0)
            self._put_parts(digest, _parts(file), place)
        return digest

    def _put_parts(self, digest: bytes, parts: Iterator[bytes], place: bytes) -> None:
        """The first part last: only with it does the content exist."""
        first = next(parts, b"")
        found = hashlib.sha256(first)
        numbered = enumerate(parts, start=1)
        while batch := list(islice(numbered, _BYTES // blobs.PART)):
            for _, part in batch:
                found.update(part)
            self._put(digest, batch)
        if found.digest() != digest:
            raise changed(place)
        self._put(digest, [(0, first)])

    def _put(self, digest: bytes, batch: list[tuple[int, bytes]]) -> None:
        def body(writer: Writer) -> None:
            for number, part in batch:
                blobs.put_part(writer, digest, number, part)

        self._put_blobs(body)

    def _is_stored(self, digest: bytes) -> bool:
        if digest == EMPTY_DIGEST:
            return True
        with self._engine.reading() as reader:
            return blobs.exists(reader, digest)

    def flush(self) -> None:
        """Put the small files that are waiting into the log."""
        contents, self._waiting, self._waiting_bytes = self._waiting, {}, 0

        def body(writer: Writer) -> None:
            for digest, content in contents.items():
                blobs.put_bytes(writer, digest, content)

        if contents:
            self._put_blobs(body)


def _open(place: str | bytes, flags: int) -> int:
    # Neither follows what was put in the file's place meanwhile, nor waits for a pipe to be opened.
    return os.open(place, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _parts(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file, in parts of `blobs.PART` bytes but the last."""
    while True:
        part = file.read(blobs.PART)
        while 0 < len(part) < blobs.PART and (more := file.read(blobs.PART - len(part))):
            part += more
        if not part:
            return
        yield part


def _check_unchanged(file: BinaryIO, one: Found, place: bytes) -> None:
    now = os.fstat(file.fileno())
    if (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) != (one.device, one.inode, one.size, one.mtime):
        raise changed(place)
