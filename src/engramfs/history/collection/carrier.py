"""Who carries the slices of a collection out.

A running worker does so beside its other work (`engramfs.daemon.gc_methods`); `Alone` is the command that
holds the store lock.
"""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from engramfs.history.collection import slices
from engramfs.history.collection.in_use import InUse
from engramfs.history.collection.slices import Prune, Recode
from engramfs.history.repository import Repository
from engramfs.storage import keys
from engramfs.storage.protocol import Table, Writer


class Done(msgspec.Struct, frozen=True):
    """How much a slice did, and how many seconds of the writer it took, the disk not counted."""

    count: int
    seconds: float


class Carrier(Protocol):
    """Raises `Busy` where a slice has to wait, and `Stale` when the collection was given up meanwhile."""

    shared: bool  # somebody else is waiting for the log writer

    def begin(self) -> None:
        """Everything that is open is sealed; what is named from now on is noted."""

    def set_oldest(self, store: int, oldest: int) -> list[int]:
        """The versions of the store that sessions are pinned to; none below `oldest` comes any more."""

    def prune(self, slice_: Prune) -> Done: ...

    def recode(self, rows: list[Recode]) -> Done: ...

    def sweep(self, digests: list[bytes]) -> Done: ...

    def end(self, now: int) -> None:
        """It ended at `now`, and nothing that was removed is in the memory of who writes."""


def timed(writer: Writer, body: Callable[[Writer], int]) -> Done:
    began = time.perf_counter()
    count = body(writer)
    return Done(count, time.perf_counter() - began)


def put_end(writer: Writer, now: int) -> None:
    writer.put(Table.META, keys.COLLECTED_KEY, keys.u64(now))


class Alone:
    """Nobody else writes, so nothing can come into use meanwhile."""

    shared = False

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._in_use = InUse()

    def begin(self) -> None:
        with self._repository.engine.reading() as reader:
            self._in_use.begin(reader)

    def set_oldest(self, store: int, oldest: int) -> list[int]:
        self._repository.transact(lambda writer: slices.set_oldest(writer, store, oldest))
        return []

    def prune(self, slice_: Prune) -> Done:
        return self._timed(lambda writer: slices.prune(writer, slice_))

    def recode(self, rows: list[Recode]) -> Done:
        return self._timed(lambda writer: slices.recode(writer, rows, self._in_use))

    def sweep(self, digests: list[bytes]) -> Done:
        return self._timed(lambda writer: slices.sweep(writer, digests, self._in_use))

    def _timed(self, body: Callable[[Writer], int]) -> Done:
        return self._repository.transact(lambda writer: timed(writer, body))

    def end(self, now: int) -> None:
        self._repository.engine.drop_buffers()
        self._repository.transact(lambda writer: put_end(writer, now))
