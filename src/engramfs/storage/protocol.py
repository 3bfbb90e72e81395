"""What a storage engine must offer: an ordered map for each table, and transactions.

It is narrow on purpose (fourteen methods), so that a second engine costs a few hundred lines. Everything
above it, from trees to verification, is written once over these primitives.

Concurrency. The protocol is synchronous. `reading()` may be used from any thread; a read transaction
must not live across an `await`, since it pins pages. `writing()` is for one thread at a time: the writer
thread of the worker, or a command that holds the store lock.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol

import msgspec


class Table(StrEnum):
    """The named databases; `keys` says what each holds."""

    __hash__ = str.__hash__  # an enum's own is a Python function, and every read looks a table up

    META = "meta"
    STORES = "stores"
    NAMES = "names"
    HEADS = "heads"
    VERSIONS = "versions"
    CHANGES = "changes"
    LIVE = "live"
    HISTORY = "history"
    NODES = "nodes"
    BLOBS = "blobs"
    FEED = "feed"
    PENDING = "pending"
    REDACTED = "redacted"
    DELTAS = "deltas"


Row = tuple[bytes, bytes]


class Usage(msgspec.Struct, frozen=True):
    """How much an engine holds, in bytes."""

    used: int
    allowed: int


class Reader(Protocol):
    """A consistent snapshot."""

    def get(self, table: Table, key: bytes) -> bytes | None: ...

    def at_or_after(self, table: Table, key: bytes) -> Row | None:
        """The first row whose key is not below `key`."""

    def at_or_before(self, table: Table, key: bytes) -> Row | None:
        """The last row whose key is not above `key`."""

    def scan(self, table: Table, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Row]:
        """Rows with `start` <= key < `stop`, in order of key, or backwards."""

    def keys(self, table: Table, start: bytes, stop: bytes) -> Iterator[bytes]:
        """The keys of those rows in order, without reading their values."""


class Writer(Reader, Protocol):
    """One transaction: whole or not at all, and synced when its block ends."""

    def put(self, table: Table, key: bytes, value: bytes) -> None: ...

    def delete(self, table: Table, key: bytes) -> bool:
        """Whether there was such a row."""


class Engine(Protocol):
    """`inline_reads` says that a read costs microseconds, so that an event loop may do it itself."""

    inline_reads: bool

    def reading(self) -> AbstractContextManager[Reader]: ...

    def writing(self) -> AbstractContextManager[Writer]:
        """Raises `Full` when the disk is, `StorageError` otherwise; then nothing was written.

        `Unusable` says that no transaction will succeed any more in this process.
        """

    def usage(self) -> Usage: ...

    def check(self) -> list[str]:
        """What is wrong with the engine's own files, a sentence each."""

    def drop_buffers(self) -> None:
        """Keep nothing in memory of what was removed that might be written to the file again."""

    def copy(self, directory: str) -> None:
        """A consistent copy while others read and write."""

    def close(self) -> None: ...
