"""Contents of files on disk go into the log.

A file that changes while it is read is an error, so that no version holds half a write: what is read must
be what the scan saw, by device, inode, size and mtime, before and after; and a large file, which is read
once for its digest and once to be stored, must have that digest again.
"""

import os
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from engramfs.history.plain_directory import Found, changed, failed
from engramfs.history.stored_contents import PutBlobs, StoredContents
from engramfs.storage.blobs import PART
from engramfs.storage.protocol import Engine


class FileContents:
    """Stores files of `directory` with `store`, and what is still waiting with `flush`."""

    def __init__(self, engine: Engine, directory: bytes, put_blobs: PutBlobs) -> None:
        self._directory = directory
        self._contents = StoredContents(engine, put_blobs)

    def store(self, one: Found) -> bytes:
        """The digest of a file; its content is in the log after the next `flush` at the latest."""
        place = os.path.join(self._directory, one.path)
        try:
            with open(place, "rb", buffering=0, opener=_open) as file:
                _check_unchanged(file, one, place)
                digest = self._contents.store(file, one.size, partial(changed, place))
                _check_unchanged(file, one, place)
        except OSError as error:
            raise failed(place, error) from error
        return digest

    def flush(self) -> None:
        """Put the small files that are waiting into the log."""
        self._contents.flush()


def read_parts(directory: bytes, one: Found) -> Iterator[bytes]:
    """The content of a file as the scan saw it. Raises `Conflict` when it changed, else as the scan does."""
    place = os.path.join(directory, one.path)
    try:
        with open(place, "rb", buffering=0, opener=_open) as file:
            _check_unchanged(file, one, place)
            while part := file.read(PART):
                yield part
            _check_unchanged(file, one, place)
    except OSError as error:
        raise failed(place, error) from error


def _open(place: str | bytes, flags: int) -> int:
    # Neither follows what was put in the file's place meanwhile, nor waits for a pipe to be opened.
    return os.open(place, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _check_unchanged(file: BinaryIO, one: Found, place: bytes) -> None:
    now = os.fstat(file.fileno())
    if (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) != (one.device, one.inode, one.size, one.mtime):
        raise changed(place)
