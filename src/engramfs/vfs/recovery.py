"""From the journal back to where we were: what was acknowledged and not sealed becomes a version.

Runs before anything is served, or on behalf of a command that writes while no worker runs. It uses the
same trees, batches and cuts as a worker, and commits all of it at once.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
import structlog

from engramfs.errors import EngramError, NotFound
from engramfs.history import catalog
from engramfs.history.repository import Repository
from engramfs.model.store import Head
from engramfs.model.transient import TransientNames
from engramfs.storage.journal import Journal, Record
from engramfs.storage.journal_scan import JournalScan
from engramfs.storage.protocol import Table, Writer
from engramfs.vfs.fork import Fork
from engramfs.vfs.invalidator import NoInvalidator
from engramfs.vfs.live_store import LiveStore
from engramfs.vfs.lost_spools import LostFile, lost_files
from engramfs.vfs.resources import Resources, Settings
from engramfs.vfs.view_numbers import Key

Result = TypeVar("Result")
log = structlog.get_logger("engramfs.recovery")
replace = msgspec.structs.replace


class Recovered(msgspec.Struct, frozen=True):
    """What a recovery found."""

    records: int = 0  # in the journal
    replayed: int = 0  # of them not in the log before
    versions: int = 0  # sealed from them, with the flag `recovered`
    torn_bytes: int = 0  # at the end of the journal, never acknowledged
    skipped: tuple[str, ...] = ()  # records that could not be applied, and why
    lost: tuple[LostFile, ...] = ()  # what was written and not closed


class _OneTransaction:
    """Keeps the jobs and commits them together: a crash meanwhile leaves all of it to be replayed anew."""

    trouble = ""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._jobs: list[tuple[Callable[[Writer], Any], Callable[[Any], None]]] = []

    def submit(self, body: Callable[[Writer], Result], done: Callable[[Result], None]) -> None:
        self._jobs.append((body, done))

    async def run(self, body: Callable[[Writer], Result]) -> Result:
        return self._repository.transact(body)

    def commit(self, last: Callable[[Writer], None]) -> None:
        """Do what was submitted, and `last`."""
        results = self._repository.transact(partial(self._do, last))
        for result, (_, done) in zip(results, self._jobs, strict=True):
            done(result)

    def _do(self, last: Callable[[Writer], None], writer: Writer) -> list[Any]:
        results = [body(writer) for body, _ in self._jobs]
        last(writer)
        return results


def recover(
    repository: Repository,
    transient: TransientNames | None = None,
    views: Mapping[int, Key] | None = None,
) -> Recovered:
    """Seal what the journal of `repository` (open for writing) holds, and clear it.

    With `views`, those that there were, by number, it finds what is lost in spools; it leaves them there.

    Files that were created and never closed are dropped, and so are transient names: their session is
    gone. A record that cannot be applied is reported, and the rest goes on.
    """
    journal = Journal(repository.journal_path, max_bytes=1 << 62)
    try:
        return _Recovery(repository, journal, transient or TransientNames(), views).run()
    finally:
        journal.close()


class _Recovery:
    def __init__(
        self,
        repository: Repository,
        journal: Journal,
        transient: TransientNames,
        views: Mapping[int, Key] | None,
    ) -> None:
        self._repository = repository
        self._views = views
        self._journal = journal
        self._writer = _OneTransaction(repository)
        self._resources = Resources(
            engine=repository.engine,
            journal=journal,
            writer=self._writer,
            invalidator=NoInvalidator(),
            spool_path=repository.spool_path,
            settings=Settings(),
            transient=transient,
        )
        self._stores: dict[int, LiveStore | None] = {}
        self._heads: dict[int, int] = {}  # store → the number of its head before
        self._replayed = 0
        self._skipped: list[str] = []

    def run(self) -> Recovered:
        records = self._journal.records
        for record in self._journal.replay():
            self._replay(record)
        lost = self._lost()
        stores = [store for store in self._stores.values() if store is not None]
        for store in stores:
            store.cut()
            self._drop_messages(store)
        if self._heads:
            self._writer.commit(partial(_account_for, self._heads, self._journal.position))
        self._journal.clear()
        self._journal.syncing()()
        versions = sum(store.head.number - self._heads[store.store.id] for store in stores)
        torn, skipped = self._journal.torn_bytes, tuple(self._skipped)
        return Recovered(records, self._replayed, versions, torn, skipped, lost)

    def _lost(self) -> tuple[LostFile, ...]:
        if self._views is None:
            return ()
        return tuple(lost_files(self._resources.spool_path, self._views, self._store_of))

    def _store_of(self, key: Key) -> LiveStore | None:
        """The store of a view that could be written to."""
        if key[0] == "ask":
            return self._store(int(key[2]))
        try:
            with self._repository.engine.reading() as reader:
                return self._store(catalog.named(reader, str(key[2])).id) if key[0] == "writable" else None
        except NotFound:
            return None

    def _drop_messages(self, store: LiveStore) -> None:
        """Who would have written the next version is gone."""
        for author, text in store.messages.items():
            self._skipped.append(
                f"the message {text!r} of {author.label()} for store {store.store.name}: no version came"
            )

    def _replay(self, record: Record) -> None:
        store = self._store(record.store)
        if store is None:
            self._skip(record, NotFound("its store is gone"))
            return
        if record.position <= store.head.journal_position:
            return
        try:
            store.replay(record)
            self._replayed += 1
        except EngramError as error:
            self._skip(record, error)

    def _store(self, identifier: int) -> LiveStore | None:
        if identifier not in self._stores:
            store = self._stores[identifier] = self._open(identifier)
            self._heads[identifier] = store.head.number if store is not None else 0
        return self._stores[identifier]

    def _open(self, identifier: int) -> LiveStore | None:
        try:
            with self._repository.engine.reading() as reader:
                store, head = catalog.get(reader, identifier), catalog.head(reader, identifier)
        except NotFound:
            return None
        if not store.base:
            return LiveStore(self._resources, store, head, _ignore)
        below = self._store(store.base)
        return Fork(self._resources, store, head, _ignore, below) if below is not None else None

    def _skip(self, record: Record, error: EngramError) -> None:
        what = described(record, error)
        log.warning("journal record skipped", what=what)
        self._skipped.append(what)


def described(record: Record, error: EngramError) -> str:
    """What is said of a record that cannot be replayed."""
    why = error.message or type(error).__name__
    return f"record {record.position} of store {record.store} ({type(record.operation).__name__}): {why}"


def _ignore(_store: LiveStore) -> None:
    pass


def _account_for(stores: Iterable[int], position: int, writer: Writer) -> None:
    """What no version may hold is dropped with the journal: positions go on behind it, and should a loss of
    power bring the journal back, nothing of it is replayed over what is newer."""
    for store in stores:
        with contextlib.suppress(NotFound):
            head = catalog.head(writer, store)
            if head.journal_position < position:
                catalog.put_head(writer, store, replace(head, journal_position=position))


def count_unsealed(repository: Repository) -> int:
    """How many records of the journal a recovery would replay: they are in no version. Changes nothing."""
    positions: dict[int, float] = {}
    found = 0
    with repository.engine.reading() as reader:
        for record in JournalScan(repository.journal_path):
            if record.store not in positions:
                try:
                    positions[record.store] = catalog.head(reader, record.store).journal_position
                except NotFound:
                    positions[record.store] = math.inf
            found += record.position > positions[record.store]
    return found


def last_position(repository: Repository) -> int:
    """The newest journal position that any store's log knows; new records must lie above it."""
    positions = [0]
    with repository.engine.reading() as reader:
        for _, value in reader.scan(Table.HEADS, b"", b"\xff" * 8):
            positions.append(msgspec.msgpack.decode(value, type=Head).journal_position)
    return max(positions)
