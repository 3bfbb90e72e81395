"""Contents go into the log under their digests, in transactions of bounded size.

Small ones are gathered until `flush`; a large one is read twice, once for its digest and once to be stored,
so that none is ever in memory as a whole.
"""

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import IO

from engramfs.errors import EngramError
from engramfs.model.entry import EMPTY_DIGEST
from engramfs.storage import blobs
from engramfs.storage.protocol import Engine, Writer

PutBlobs = Callable[[Callable[[Writer], None]], object]

_BYTES = 8 * blobs.PART  # in one transaction
_FILES = 1000  # small files in one transaction


class StoredContents:
    """Stores contents through `put_blobs`, which runs a body in a write transaction."""

    def __init__(self, engine: Engine, put_blobs: PutBlobs) -> None:
        self._engine = engine
        self._put_blobs = put_blobs
        self._waiting: dict[bytes, bytes] = {}  # digest → small content
        self._waiting_bytes = 0

    def store(self, file: IO[bytes], size: int, changed: Callable[[], EngramError]) -> bytes:
        """The digest of the rest of `file`, `size` bytes; it is in the log after the next `flush`.

        Above `blobs.PART` bytes the file has to be at its beginning, and seekable. Raises what `changed`
        makes when it holds something else the second time.
        """
        if size <= blobs.PART:
            return self.store_bytes(b"".join(_parts(file)))
        found = hashlib.sha256()
        for part in _parts(file):
            found.update(part)
        digest = found.digest()
        if not self._is_stored(digest):
            file.seek(0)
            self._put_parts(digest, _parts(file), changed)
        return digest

    def store_bytes(self, content: bytes) -> bytes:
        """The digest of a content of at most `blobs.PART` bytes."""
        digest = hashlib.sha256(content).digest()
        if digest not in self._waiting and not self._is_stored(digest):
            self._waiting[digest] = content
            self._waiting_bytes += len(content)
            if self._waiting_bytes >= _BYTES or len(self._waiting) >= _FILES:
                self.flush()
        return digest

    def read(self, digest: bytes, size: int) -> bytes:
        """What was stored under `digest`, as a whole."""
        waiting = self._waiting.get(digest)
        if waiting is not None:
            return waiting
        with self._engine.reading() as reader:
            return blobs.read(reader, digest, size)

    def _put_parts(self, digest: bytes, parts: Iterator[bytes], changed: Callable[[], EngramError]) -> None:
        """The first part last: only with it does the content exist."""
        first = next(parts, b"")
        found = hashlib.sha256(first)
        numbered = enumerate(parts, start=1)
        while batch := list(islice(numbered, _BYTES // blobs.PART)):
            for _, part in batch:
                found.update(part)
            self._put(digest, batch)
        if found.digest() != digest:
            raise changed()
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


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of a file, in parts of `blobs.PART` bytes but the last."""
    while True:
        part = file.read(blobs.PART)
        while 0 < len(part) < blobs.PART and (more := file.read(blobs.PART - len(part))):
            part += more
        if not part:
            return
        yield part
