"""The LMDB engine.

Concurrency. LMDB takes any number of readers beside one writer, in several processes. Four of its
rules are kept here and nowhere else:

 1. The map may only grow while this process has no transaction open. Every transaction is counted for
    as long as it lives, and growing waits for the count to be zero. So a thread that holds a read
    transaction must not begin a write transaction.
 2. An environment is opened once in a process, and never used after a fork.
 3. Its table of readers is mapped memory too. A page of it that the disk cannot give would end the process
    with SIGBUS, so `_reserve_readers` has the disk give them all before.
 4. A file shorter than its own meta page says would end the process with SIGBUS when a missing page is
    touched; `_check_length` refuses it at the start instead. LMDB itself leaves the file short when a
    transaction frees the last pages that it took, so `_keep_slack` makes the file longer (sparsely).

A map that is full is grown and the whole transaction is tried again by its caller, which gets
`MapFull`; `Repository.transact` does so.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import lmdb

from engramfs.errors import Corrupt, Full, StorageError, Unavailable, Unusable
from engramfs.storage.durable import make_durable
from engramfs.storage.lmdb_failures import DATA, translated
from engramfs.storage.process_limits import no_room
from engramfs.storage.protocol import Row, Table, Usage

MAP_SIZE = 64 << 30  # sparse: address space, not disk
SLACK = 4 << 20  # bytes that the file is longer than its pages need; sparse as well
_READERS = 512  # read transactions at once, of all processes
_READERS_SIZE = 64 << 10  # bytes; more than so many readers need
_PATIENCE = 60.0  # seconds to wait for other threads' transactions to end
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
        """One for each table, for the primitives that move it once; `scan` has its own."""
        cursor = self._cursors[table] = self._transaction.cursor(self._databases[table])
        return cursor

    def get(self, table: Table, key: bytes) -> bytes | None:
        value: bytes | None = self._transaction.get(key, db=self._databases[table])
        return value

    def at_or_after(self, table: Table, key: bytes) -> Row | None:
        cursor = self._cursors.get(table) or self._cursor(table)
        return cursor.item() if cursor.set_range(key) else None

    def at_or_before(self, table: Table, key: bytes) -> Row | None:
        cursor = self._cursors.get(table) or self._cursor(table)
        if not cursor.set_range(key):
            return cursor.item() if cursor.last() else None
        row: Row = cursor.item()
        if row[0] == key:
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

    def keys(self, table: Table, start: bytes, stop: bytes) -> Iterator[bytes]:
        cursor = self._transaction.cursor(self._databases[table])
        if cursor.set_range(start):
            for key in cursor.iternext(keys=True, values=False):
                if key >= stop:
                    return
                yield key


class LmdbWriter(LmdbReader):
    """A write transaction."""

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self._transaction.put(key, value, db=self._databases[table])

    def delete(self, table: Table, key: bytes) -> bool:
        return bool(self._transaction.delete(key, db=self._databases[table]))


class LmdbEngine:
    """One environment in `directory`; created there unless `read_only`."""

    inline_reads = True

    def __init__(self, directory: str, *, read_only: bool = False, map_size: int = MAP_SIZE) -> None:
        self.directory = directory
        self.read_only = read_only
        self._path = os.path.join(directory, DATA)
        self._transactions = threading.Condition()
        self._closed: Unusable | None = None  # why no transaction is possible any more
        self._open_transactions = 0
        if not read_only:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        self._check_not_empty()
        self._reserve_readers()
        created = not read_only and not os.path.exists(self._path)
        try:
            with translated(directory):
                self._open(map_size)
            if created:
                self._make_name_durable()
        except BaseException:
            if created and os.path.exists(self._path):
                os.unlink(self._path)  # half made: the next start shall not take it for a damaged one
            raise

    def _open(self, map_size: int) -> None:
        self._environment = lmdb.open(
            self.directory,
            map_size=map_size,
            max_dbs=len(Table),
            readonly=self.read_only,
            create=not self.read_only,
            mode=0o600,
            max_readers=_READERS,
            readahead=False,
            lib_version=_FORMAT,
        )
        try:
            self._check_length()
            self._databases = self._open_tables()
            if not self.read_only:
                self._environment.reader_check()
                self._keep_slack()
        except BaseException:
            self._environment.close()
            raise

    def _open_tables(self) -> dict[Table, Any]:
        """Every table; without those that a log of an older schema lacks, if nothing may be made here."""
        databases = {}
        for table in Table:
            try:
                databases[table] = self._environment.open_db(table.value.encode(), create=not self.read_only)
            except lmdb.NotFoundError:
                if table is Table.META:
                    raise
        return databases

    def _make_name_durable(self) -> None:
        """LMDB syncs its file, and not the directory that names it."""
        try:
            make_durable(self.directory)
        except OSError as error:
            self._environment.close()
            raise StorageError(f"the log in {self.directory} failed: {error.strerror}") from error

    def _check_not_empty(self) -> None:
        """LMDB would take an empty file for a new one, and hide the loss of every store."""
        if os.path.exists(self._path) and os.stat(self._path).st_size == 0:
            raise Corrupt(
                f"{self._path} is empty, so the stores in it cannot be served; put a backup (engramfs "
                "backup) in its place, or remove it to start without any"
            )

    def _reserve_readers(self) -> None:
        path = os.path.join(self.directory, "lock.mdb")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if self.read_only:
                return  # LMDB can read without it where nothing can be written
            raise Unavailable(f"cannot open {path}: {error.strerror}; is it yours?") from error
        try:
            os.posix_fallocate(descriptor, 0, _READERS_SIZE)
        except OSError as error:
            raise no_room(path, error.errno, "") from error
        finally:
            os.close(descriptor)

    def _check_length(self) -> None:
        needed = self._needed()
        length = os.stat(self._path).st_size
        if length < needed:
            raise Corrupt(
                f"{self._path} is truncated: it has {length:,} of {needed:,} bytes, so the stores in it "
                "cannot be served; put a backup (engramfs backup) in its place"
            )

    def _needed(self) -> int:
        """Bytes up to the end of the last page in use."""
        with self._counted():
            last: int = self._environment.info()["last_pgno"]
            return (last + 1) * int(self._environment.stat()["psize"])

    def _keep_slack(self) -> None:
        """Make the file reach well beyond its last page. Raises `Full`."""
        needed = self._needed()
        if os.stat(self._path).st_size < needed + SLACK // 2:
            try:
                os.truncate(self._path, needed + SLACK)
            except OSError as error:
                raise no_room(self._path, error.errno, "") from error

    @contextlib.contextmanager
    def reading(self) -> Iterator[LmdbReader]:
        with self._transaction(write=False) as transaction:
            yield LmdbReader(transaction, self._databases)

    @contextlib.contextmanager
    def writing(self) -> Iterator[LmdbWriter]:
        self._keep_slack()
        try:
            with self._transaction(write=True) as transaction:
                yield LmdbWriter(transaction, self._databases)
        except lmdb.MapFullError:
            self._grow()
            raise MapFull(f"the log in {self.directory} outgrew its map; it has been made larger") from None
        except StorageError:
            with self.reading():  # raises `Unusable` after a failure that LMDB cannot go on from
                raise
        # What is committed stays committed: if this fails, the next transaction says so, before it begins.
        with contextlib.suppress(Full):
            self._keep_slack()

    @contextlib.contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Any]:
        with translated(self.directory):
            with self._counted():
                try:
                    transaction = self._environment.begin(write=write)
                except lmdb.MapResizedError:
                    transaction = None  # another process made the map larger
                if transaction is not None:
                    with transaction:
                        yield transaction
                    return
            self._set_map_size(0)
            with self._counted(), self._environment.begin(write=write) as transaction:
                yield transaction

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        with self._transactions:
            if self._closed is not None:
                raise self._closed
            self._open_transactions += 1
        try:
            yield
        finally:
            with self._transactions:
                self._open_transactions -= 1
                self._transactions.notify_all()

    def _grow(self) -> None:
        self._set_map_size(self._environment.info()["map_size"] * 2)

    def _set_map_size(self, size: int) -> None:
        """`size` bytes; 0 adopts the size that another process chose."""
        with self._transactions:
            if not self._transactions.wait_for(lambda: self._open_transactions == 0, _PATIENCE):
                raise StorageError(f"the log in {self.directory} cannot grow while it is being read")
            with translated(self.directory):
                self._environment.set_mapsize(size)

    def drop_buffers(self) -> None:
        """LMDB keeps the pages that it has written, to use their memory for others, whose gaps they fill."""
        with self._transactions:
            if not self._transactions.wait_for(lambda: self._open_transactions == 0, _PATIENCE):
                raise StorageError(f"the log in {self.directory} is being read all the time")
            map_size = self._environment.info()["map_size"]
            self._environment.close()
            try:
                with translated(self.directory):
                    self._open(map_size)
            except Exception as error:
                self._closed = Unusable(f"the log in {self.directory} cannot be opened again: {error}")
                raise self._closed from error

    def usage(self) -> Usage:
        return Usage(self._needed(), self._environment.info()["map_size"])

    def check(self) -> list[str]:
        try:
            self._check_length()
        except Corrupt as error:
            return [error.message]
        return []

    def copy(self, directory: str) -> None:
        with translated(directory), self._counted():
            self._environment.copy(directory, compact=True)

    def close(self) -> None:
        self._environment.close()
