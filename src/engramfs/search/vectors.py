"""The vectors of passages, in a file of their own: appended to, never changed in place.

    header   64 bytes: MAGIC, dimensions u32, count u64, 16 bytes of SHA-256 of the embedder's identity
    record   key u64, then the vector as float32, of length 1

A vector is found by the key of the text that it stands for, so a file that is renamed or that comes again
needs no new one, and it does not matter whether the keyword index or this file is ahead.

Concurrency. Who appends holds the index lock. Records are on disk before the count in the header names
them, so that after a crash what the header counts is whole, and the rest is cut off. Readers map what the
header counts.
"""

import contextlib
import hashlib
import os
import struct
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from engramfs.search.embedder import NoMeaning
from engramfs.search.failures import IndexDamaged, translated

Vectors = NDArray[numpy.float32]

MAGIC = b"engramfs vectors 1\n"
_HEADER = struct.Struct("<19sxIQ16s16x")


class VectorFile:
    """The vectors in the file at `path`, as many as it had when it was opened or last appended to.

    A missing file, or one of another embedder, has none. Raises `IndexDamaged`.
    """

    def __init__(self, path: str, identity: str) -> None:
        self._path = path
        self._identity = hashlib.sha256(identity.encode()).digest()[:16]
        self.load()

    def load(self) -> None:
        """Look at the file anew."""
        self._records: Any = numpy.empty(0, dtype=_record(1))
        with translated(self._path):
            header = self._header()
            if header is not None and header[1]:
                dimensions, count = header
                self._records = numpy.memmap(
                    self._path, dtype=_record(dimensions), mode="r", offset=_HEADER.size, shape=(count,)
                )
        self._order = numpy.argsort(self._records["key"], kind="stable")
        self._sorted: NDArray[numpy.uint64] = self._records["key"][self._order]

    def close(self) -> None:
        """Let go of the file."""
        self._records = numpy.empty(0, dtype=_record(1))

    def follow(self) -> None:
        """Load what others have appended, or put in the file's place."""
        with translated(self._path):
            header = self._header()
        if header is None or header[1] != self.count:
            self.load()

    def _header(self) -> tuple[int, int] | None:
        """(dimensions, count), if the file is of this embedder."""
        try:
            with open(self._path, "rb") as file:
                head = file.read(_HEADER.size)
                length = os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return None
        if len(head) < _HEADER.size:
            return None
        magic, dimensions, count, identity = _HEADER.unpack(head)
        if magic != MAGIC or identity != self._identity:
            return None
        if length < _HEADER.size + count * _record(dimensions).itemsize:
            raise IndexDamaged(f"{self._path} is truncated; remove the directory, it is made anew")
        return dimensions, count

    @property
    def count(self) -> int:
        return len(self._records)

    def rows(self, keys: Sequence[int]) -> NDArray[numpy.int64]:
        """The record of each key; -1 for those that have none."""
        wanted = numpy.array(keys, dtype=numpy.uint64)
        if not self.count:
            return numpy.full(len(wanted), -1, dtype=numpy.int64)
        at = numpy.minimum(numpy.searchsorted(self._sorted, wanted), self.count - 1)
        found: NDArray[numpy.int64] = numpy.where(self._sorted[at] == wanted, self._order[at], -1)
        return found

    def check(self, vector: Vectors) -> None:
        """Raises `NoMeaning` for a vector that none of these can be compared with."""
        if self.count and self._records["vector"].shape[1] != len(vector):
            raise NoMeaning(
                f"the model answers {len(vector)} numbers for a text, and what is indexed has "
                f"{self._records['vector'].shape[1]}; it is another model: name it in [search]"
            )

    def vectors(self, keys: Sequence[int]) -> dict[int, Vectors]:
        """The vector of each key that has one, copied."""
        rows = self.rows(keys)
        return {
            key: self._records["vector"][row].copy() for key, row in zip(keys, rows, strict=True) if row >= 0
        }

    def likeness(self, query: Vectors, rows: NDArray[numpy.int64]) -> Vectors:
        """The cosine of `query` and each of these records."""
        vectors = self._records["vector"]
        if len(rows) * 2 < self.count:
            chosen: Vectors = vectors[rows] @ query
            return chosen
        every: Vectors = (vectors @ query)[rows]
        return every

    def append(self, keys: list[int], vectors: Vectors) -> None:
        """Add vectors for keys that have none. Only for who holds the index lock."""
        records = numpy.empty(len(keys), dtype=_record(vectors.shape[1]))
        records["key"] = keys
        records["vector"] = vectors
        with translated(self._path):
            header = self._header()
            if header is None or header[0] != vectors.shape[1]:
                self._write_new(records, vectors.shape[1])
            else:
                self._write(self._path, records, *header)
        self.load()

    def _write(self, path: str, records: Any, dimensions: int, count: int) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = _HEADER.size + count * records.dtype.itemsize
            os.ftruncate(descriptor, end)
            _write_whole(descriptor, records.tobytes(), end)
            os.fdatasync(descriptor)
            header = _HEADER.pack(MAGIC, dimensions, count + len(records), self._identity)
            _write_whole(descriptor, header, 0)
        finally:
            os.close(descriptor)

    def _write_new(self, records: Any, dimensions: int) -> None:
        """In the place of a file that is missing, or of another embedder, which others may have mapped."""
        temporary = f"{self._path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        self._write(temporary, records, dimensions, 0)
        os.replace(temporary, self._path)

    def copy(self, path: str, keys: Sequence[int]) -> None:
        """Write those vectors that one of `keys` still needs to a new file at `path`."""
        rows = self.rows(list(set(keys)))
        kept = self._records[rows[rows >= 0]]
        if len(kept):
            with translated(path):
                self._write(path, kept, kept["vector"].shape[1], 0)


def _record(dimensions: int) -> Any:
    return numpy.dtype([("key", "<u8"), ("vector", "<f4", (dimensions,))])


def _write_whole(descriptor: int, content: bytes, offset: int) -> None:
    written = 0
    while written < len(content):
        written += os.pwrite(descriptor, content[written:], offset + written)
