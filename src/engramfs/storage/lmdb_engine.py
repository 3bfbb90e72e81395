"""The LMDB engine.

Concurrency. LMDB takes any number of readers beside one writer, in several processes. Three of its
rules are kept here and nowhere else:

 1. The map may only grow while this process has no transaction open. `_resizing` is held by every
    transaction for as long as it lives: shared (a count) by readers, alone while growing.
 2. An environment is opened once in a process, and never used after a fork.
 3. A file shorter than its own meta page says would end the process with SIGBUS when a missing page is
    touched; `_check_length` refuses it at the start instead.

A map that is full is grown and the whole transaction is tried again by its caller, which gets
`MapFull`; `engramfs.history.writing` does so.
"""

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from typing import Any

import lmdb

from engramfs.errors import Corrupt, Full, StorageError, Unavailable
from engramfs.storage.protocol import Row, Table, Usage

MAP_SIZE = 64 << 30  # sparse: address space, not disk
_FORMAT = 0  # the 0.9 engine; LMDB 1.0 cannot read its files, nor the other way round


class MapFull(StorageError):
    """The transaction did not fit; the map has been grown, try it once more."""


class LmdbReader:
    """A read transaction, or the reading half of a write transaction."""

    def __init__(self, transaction: Any, databases: dict[Table, Any]) -> None:
        self._transaction = transaction
        self._databases = databases
        self._cursors: dict[Table, Any] = {}

    def _cursor(self, table: Table) -> Any:
        cursor = self._cursors.get(table)
        if cursor is None:
            cursor = self._cursors[table] = self._transaction.cursor(self._databases[table])
        return cursor

    def get(self, table: Table, key: bytes) -> bytes | None:
        value: bytes | None = self._transaction.get(key, db=self._databases[table])
        return value

    def at_or_after(self, table: Table, key: bytes) -> Row | None:
        cursor = self._cursor(table)
        return cursor.item() if cursor.set_range(key) else None

    def at_or_before(self, table: Table, key: bytes) -> Row | None:
        cursor = self._cursor(table)
        if not cursor.set_range(key):
            return cursor.item() if cursor.last() else None
        if cursor.key() == key:
            row: Row = cursor.item()
            return row
        return cursor.item() if cursor.prev() else None

    def scan(self, table: Table, start: bytes, stop: bytes, *, reverse: bool = False) -> Iterator[Row]:
        cursor = self._transaction.cursor(self._databases[table])
        if reverse:
            found = cursor.prev() if cursor.set_range(stop) else cursor.last()
            rows = cursor.iterprev() if found else iter(())
            for row in rows:
                if row[0] < start:
                    return
                yield row
            return
        if cursor.set_range(start):
            for row in cursor.iternext():
                if row[0] >= stop:
                    return
                yield row


class LmdbWriter(LmdbReader):
    """A write transaction."""

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self._transaction.put(key, value, db=self._databases[table])

    def delete(self, table: Table, key: bytes) -> bool:
        return bool(self._transaction.delete(key, db=self._databases[table]))


class LmdbEngine:
    """One environment in `directory`; created there unless `read_only`."""

    inline_reads = True

    def __init__(self, directory: str, *, read_only: bool = False) -> None:
        self.directory = directory
        self.read_only = read_only
        self._resizing = threading.Condition()
        self._open_transactions = 0
        if not read_only:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        with translated(directory):
            self._environment = lmdb.open(
                directory,
                map_size=MAP_SIZE,
                max_dbs=len(Table),
                readonly=read_only,
                create=not read_only,
                mode=0o600,
                max_readers=512,
                readahead=False,
                lib_version=_FORMAT,
            )
            try:
                self._check_length()
                self._databases = {
                    table: self._environment.open_db(table.value.encode(), create=not read_only)
                    for table in Table
                }
            except BaseException:
                self._environment.close()
                raise
            if not read_only:
                self._environment.reader_check()

    def _check_length(self) -> None:
        needed = (self._environment.info()["last_pgno"] + 1) * self._environment.stat()["psize"]
        path = os.path.join(self.directory, "data.mdb")
        length = os.stat(path).st_size
        if length < needed:
            raise Corrupt(
                f"{path} is truncated: it has {length:,} of {needed:,} bytes, so the stores in it cannot be "
                "served; put a backup (engramfs backup) in its place"
            )

    @contextlib.contextmanager
    def reading(self) -> Iterator[LmdbReader]:
        with self._transaction(write=False) as transaction:
            yield LmdbReader(transaction, self._databases)

    @contextlib.contextmanager
    def writing(self) -> Iterator[LmdbWriter]:
        try:
            with self._transaction(write=True) as transaction:
                yield LmdbWriter(transaction, self._databases)
        except lmdb.MapFullError:
            self._grow()
            raise MapFull(f"the log in {self.directory} outgrew its map; it has been made larger") from None

    @contextlib.contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Any]:
        with self._resizing:
            self._open_transactions += 1
        try:
            with translated(self.directory):
                try:
                    transaction = self._environment.begin(write=write)
                except lmdb.MapResizedError:
                    self._adopt_size()
                    transaction = self._environment.begin(write=write)
                with transaction:
                    yield transaction
        finally:
            with self._resizing:
                self._open_transactions -= 1
                self._resizing.notify_all()

    def _adopt_size(self) -> None:
        """Another process made the map larger. Ours is the transaction being opened, so one is counted."""
        with self._resizing:
            self._resizing.wait_for(lambda: self._open_transactions <= 1)
            self._environment.set_mapsize(0)

    def _grow(self) -> None:
        with self._resizing:
            self._resizing.wait_for(lambda: self._open_transactions == 0)
            with translated(self.directory):
                self._environment.set_mapsize(self._environment.info()["map_size"] * 2)

    def usage(self) -> Usage:
        info = self._environment.info()
        return Usage((info["last_pgno"] + 1) * self._environment.stat()["psize"], info["map_size"])

    def check(self) -> list[str]:
        try:
            self._check_length()
        except Corrupt as error:
            return [error.message]
        return []

    def copy(self, directory: str) -> None:
        with translated(self.directory):
            self._environment.copy(directory, compact=True)

    def close(self) -> None:
        self._environment.close()


@contextlib.contextmanager
def translated(directory: str) -> Iterator[None]:
    """Turn LMDB's exceptions into ours, naming the place."""
    try:
        yield
    except lmdb.MapFullError:
        raise
    except (
        lmdb.CorruptedError,
        lmdb.PageNotFoundError,
        lmdb.InvalidError,
        lmdb.VersionMismatchError,
    ) as error:
        raise Corrupt(
            f"the log in {directory} is damaged ({error}); put a backup (engramfs backup) in its place"
        ) from error
    except (lmdb.ReadonlyError, lmdb.LockError) as error:
        raise Unavailable(f"the log in {directory} cannot be opened ({error}); is it yours?") from error
    except lmdb.Error as error:
        if os.strerror(errno.ENOSPC) in str(error):
            raise Full(
                f"no space left for the log in {directory}; free some, sealing is tried again"
            ) from error
        if isinstance(error, lmdb.DiskError):
            raise Unavailable(f"the log in {directory} cannot be opened ({error})") from error
        raise StorageError(f"the log in {directory}: {error}") from error
