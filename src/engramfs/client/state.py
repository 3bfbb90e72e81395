"""The log of a state directory: behind a running daemon for reading, and alone when none runs.

What a daemon left in the journal when it died belongs to the stores. So whoever opens them without a
daemon first seals it; nothing is read or written past it silently.

Concurrency. One thread at a time; the caller has a lock where there are several. A log is opened once in a
process: what reads it is closed before something is written alone.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from engramfs.daemon.client import ControlClient
from engramfs.daemon.paths import Locations
from engramfs.errors import Busy, EngramError, Full, NoDaemon, StorageError, Unavailable

if TYPE_CHECKING:
    from engramfs.daemon.config import Config
    from engramfs.history.repository import Repository
    from engramfs.storage.protocol import Reader

Result = TypeVar("Result")


def _say_nothing(_what: str) -> None:
    pass


class State:
    """Open with `locations`. `note` is told what a person should know; close it with `close`.

    Where another process writes alone, `writing` waits for `patience` seconds until it has done so.
    """

    inline_reads = True  # an engine of its own, for what only reads: see `reading_only`

    def __init__(
        self, locations: Locations, note: Callable[[str], None] = _say_nothing, patience: float = 0.0
    ) -> None:
        self.locations = locations
        self.control = ControlClient(locations.run, state=locations.state)
        self._note = note
        self._patience = patience
        self._open: Repository | None = None

    def configuration(self) -> "Config":
        """The configuration. Raises `ConfigurationError`."""
        from engramfs.daemon.config import load

        return load(self.locations.config, required=self.locations.config_required)

    def seal(self) -> None:
        """Let everything that was acknowledged be in the log."""
        try:
            self.control.call("barrier", stores=None)
        except NoDaemon:
            self._seal_left_behind()
        except StorageError as error:
            self._note(f"showing what is sealed; {error.message}")

    @contextlib.contextmanager
    def reading(self) -> "Iterator[Repository]":
        """The log as of now. It stays open for the next time. Raises `NotFound` without any store."""
        self.seal()
        yield self._reader()

    @contextlib.contextmanager
    def writing(self, purpose: str, patience: float | None = None) -> "Iterator[Repository]":
        """The log with the store lock, while no daemon runs. `purpose` tells others who holds the lock.

        Creates what is missing. Raises `Busy` when another process writes.
        """
        from engramfs.history.repository import Repository

        self.close()
        patience = self._patience if patience is None else patience
        with Repository.open(self.locations.state, write=purpose, patience=patience) as repository:
            self.seal_journal(repository)
            yield repository

    def write(
        self, purpose: str, by_daemon: Callable[[], Result], alone: "Callable[[Repository], Result]"
    ) -> Result:
        """Let the daemon do it when one runs, and otherwise do it under the store lock."""
        if self.control.is_running():
            return by_daemon()
        with self.writing(purpose) as repository:
            return alone(repository)

    @contextlib.contextmanager
    def read_transaction(self) -> "Iterator[Reader]":
        """The log as it is, without waiting for what is open."""
        with self._reader().engine.reading() as reader:
            yield reader

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _reader(self) -> "Repository":
        from engramfs.history.repository import Repository

        if self._open is None:
            self._open = Repository.open(self.locations.state)
        return self._open

    def _seal_left_behind(self) -> None:
        if not has_records(os.path.join(self.locations.state, "journal")):
            return
        try:
            with self.writing("engramfs recovery", 0.0):
                pass
        except Busy as error:
            self._note(f"showing what is sealed; {error.message}")
        except (Unavailable, Full) as error:  # of a disk that is read-only, say
            self._say_what_is_not_shown(error)

    def _say_what_is_not_shown(self, error: EngramError) -> None:
        from engramfs.vfs.recovery import count_unsealed

        count = count_unsealed(self._reader())
        if count:
            why = error.message.partition("; ")[0]
            self._note(f"the journal has {count:,} records that are in no version, and are not shown: {why}")

    def seal_journal(self, repository: "Repository") -> None:
        """Seal what a daemon that died had acknowledged. The one place where programs do so."""
        if not has_records(repository.journal_path):
            return
        from engramfs import telemetry
        from engramfs.model.transient import TransientNames
        from engramfs.vfs.recovery import recover

        telemetry.configure(level="error")
        found = recover(repository, TransientNames(self.configuration().batch.transient))
        self._note(f"a daemon left {found.records} journal records; they are sealed now")
        for reason in found.skipped:
            self._note(f"a record could not be applied: {reason}")


def has_records(journal: str) -> bool:
    """Whether a journal has something that may not be in the log."""
    from engramfs.storage.journal import MAGIC

    try:
        return os.path.getsize(journal) > len(MAGIC)
    except FileNotFoundError:
        return False
