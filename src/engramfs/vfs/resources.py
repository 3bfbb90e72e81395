"""What the trees and views of one worker share."""

import os

import msgspec
import trio

from engramfs.history.collection.in_use import InUse
from engramfs.model.transient import TransientNames
from engramfs.storage.journal import Journal
from engramfs.storage.protocol import Engine
from engramfs.vfs.content import Contents
from engramfs.vfs.failed_closes import FailedCloses
from engramfs.vfs.failures import Failures
from engramfs.vfs.invalidator import Invalidator
from engramfs.vfs.log_writer import Submitter
from engramfs.vfs.recent import Recent
from engramfs.vfs.repeated import Repeated
from engramfs.vfs.unrecorded import Unrecorded


class Settings(msgspec.Struct, frozen=True):
    """The rules of batches; durations in seconds, sizes in bytes."""

    quiet: float = 0.05
    max_age: float = 1.0
    sync_on_close: bool = False  # durability = "close"
    max_batch_bytes: int = 8 << 20  # content held in memory before a batch is sealed early
    max_batch_names: int = 1000


class Resources:
    """The parts that every store and view of a worker uses. Nothing here is global."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        writer: Submitter,
        invalidator: Invalidator,
        spool_path: str,
        settings: Settings,
        transient: TransientNames,
        unrecorded: Unrecorded | None = None,
        failures: Failures | None = None,
    ) -> None:
        self.engine = engine
        self.journal = journal
        self.writer = writer
        self.invalidator = invalidator
        self.spool_path = spool_path
        self.settings = settings
        self.transient = transient
        self.unrecorded = unrecorded or Unrecorded()
        self.contents = Contents(engine)
        self.in_use = InUse()
        self.repeated = Repeated()
        self.failed_closes = FailedCloses(writer)
        self.failures = failures or Failures()

    def failed(self, store: str, what: str) -> None:
        """Remember a failure for `status`."""
        self.failures.add(store, what)

    def recent(self, store: str) -> Recent:
        """What happened in a store lately, and before this worker."""
        earlier = (each for each in self.failures if each.store == store)
        return Recent(earlier, state=os.path.dirname(self.spool_path))

    async def journal_synced(self) -> None:
        """Wait until what the journal has so far survives the loss of power. Raises `StorageError`."""
        await trio.to_thread.run_sync(self.journal.syncing())
