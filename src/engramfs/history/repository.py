"""A state directory, opened: the log, and where the journal and spool files are.

    <state>/log/       the LMDB environment
    <state>/journal    what is not in the log yet
    <state>/reserve    room for removals on a full disk
    <state>/spool/     bytes of open, dirty files
    <state>/lock       held by the one process that writes

Concurrency. Reading needs no lock. Writing needs the store lock, which `Repository.open(write=...)`
takes; within the process that holds it, one thread at a time calls `transact`.
"""

import os
from collections.abc import Callable
from typing import TypeVar

from engramfs.errors import NotFound, StorageError, Unavailable
from engramfs.history.migration import migrate
from engramfs.storage import keys
from engramfs.storage.durable import make_durable
from engramfs.storage.lmdb_engine import LmdbEngine, MapFull
from engramfs.storage.lock import StoreLock
from engramfs.storage.protocol import Engine, Table, Writer

Result = TypeVar("Result")


class Repository:
    """An open state directory. Use `open`; close it with `close` or a `with` block."""

    def __init__(self, state: str, engine: Engine, lock: StoreLock | None) -> None:
        self.state = state
        self.engine = engine
        self._lock = lock

    @classmethod
    def open(cls, state: str, *, write: str | None = None, patience: float = 0.0) -> "Repository":
        """Open `state` for reading, or for writing too with `write` naming the purpose to others.

        Writing creates what is missing. Raises `NotFound` when there is nothing to read, `Busy` when
        another process writes for `patience` seconds more, `Corrupt` and `Unavailable` as the engine does.
        """
        log = os.path.join(state, "log")
        if write is None:
            require_log(state)
            repository = cls(state, LmdbEngine(log, read_only=True), None)
        else:
            _create(state)
            lock = StoreLock(state, write, patience)
            try:
                repository = cls(state, LmdbEngine(log), lock)
            except BaseException:
                lock.close()
                raise
        try:
            repository._check_schema(write=write is not None)
        except BaseException:
            repository.close()
            raise
        return repository

    @property
    def reserve_path(self) -> str:
        return os.path.join(self.state, "reserve")

    @property
    def journal_path(self) -> str:
        return os.path.join(self.state, "journal")

    @property
    def spool_path(self) -> str:
        return os.path.join(self.state, "spool")

    def _check_schema(self, *, write: bool) -> None:
        with self.engine.reading() as reader:
            value = reader.get(Table.META, keys.SCHEMA_KEY)
        if value is None and write:
            self.transact(lambda writer: writer.put(Table.META, keys.SCHEMA_KEY, keys.u32(keys.SCHEMA)))
            return
        found = keys.read_u32(value) if value else 0
        if found == keys.SCHEMA:
            return
        if 0 < found < keys.SCHEMA and not write:
            raise StorageError(
                f"{self.state} has schema {found}, this engramfs reads {keys.SCHEMA}; "
                "engramfs up or engramfs restart migrates it, after a copy"
            )
        migrate(self, found)

    def transact(self, body: Callable[[Writer], Result]) -> Result:
        """Run `body` in one write transaction, again when the map had to grow."""
        while True:
            try:
                with self.engine.writing() as writer:
                    return body(writer)
            except MapFull:
                continue

    def close(self) -> None:
        self.engine.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> "Repository":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def require_log(state: str) -> None:
    """Raise `NotFound` when there is nothing to read."""
    if not os.path.exists(os.path.join(state, "log", "data.mdb")):
        raise NotFound(f"{state} holds no stores yet; engramfs up or engramfs store create makes it")


def _create(state: str) -> None:
    try:
        for path in (state, os.path.join(state, "log"), os.path.join(state, "spool")):
            if not os.path.isdir(path):
                os.makedirs(path, mode=0o700, exist_ok=True)
                make_durable(os.path.dirname(os.path.abspath(path)))
    except OSError as error:
        raise Unavailable(
            f"cannot create {error.filename}: {error.strerror}; choose another place with --state"
        ) from error
