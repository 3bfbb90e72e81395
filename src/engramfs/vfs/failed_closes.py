"""Closes that found no room, made up for once there is some.

Whoever closed the file was told (ENOSPC, as a rule), but the mount goes on to show what was written. So it
is recorded later, as it was at that close and with its author: the bytes stay in the spool, whose mode says
that they are closed, so another worker goes on with it. A write after that close takes it back, and the next
close counts. A file that was created and never written has no spool; that one ends with its worker.

Concurrency. Used on the event loop alone. `serve` is the task that tries again, at growing intervals, and
the digests and blobs of large contents are made in threads as at any close.
"""

from typing import TYPE_CHECKING

import structlog
import trio

from engramfs.errors import EngramError, StorageError
from engramfs.model.names import printable
from engramfs.vfs.held_still import HeldStill
from engramfs.vfs.log_writer import Submitter
from engramfs.vfs.open_file import OpenFile

if TYPE_CHECKING:
    from engramfs.vfs.recording import Recorder

RETRY, RETRY_MAX = 0.25, 2.0  # seconds
_SHARE = 10  # of the time, trying takes at most one part in so many
log = structlog.get_logger("engramfs.failed_closes")


class FailedCloses:
    """Those of one worker."""

    def __init__(self, writer: Submitter) -> None:
        self._writer = writer
        self._files: dict[OpenFile, Recorder] = {}
        self._arrived = trio.Event()
        self._trying = trio.Lock()

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, file: OpenFile) -> bool:
        return file in self._files

    def add(self, recorder: "Recorder", file: OpenFile, error: StorageError | OSError) -> None:
        """The close of `file` failed with `error`, whose details say of what from now on."""
        path, store = printable(recorder.store.tree.path_of(file.node)), recorder.store
        if isinstance(error, StorageError):
            error.details.update(store=store.store.name, path=path)
        if file not in self._files:
            why = error.message if isinstance(error, StorageError) else error.strerror
            store.remember(f"{path} was closed and is not recorded yet, which is tried again: {why}")
        self.adopt(recorder, file)
        if file.spool is not None and file.spool.dirty:
            file.spool.close_failed()

    def adopt(self, recorder: "Recorder", file: OpenFile) -> None:
        """An earlier worker could not record it."""
        self._files[file] = recorder
        self._arrived.set()

    def discard(self, file: OpenFile) -> None:
        """It is recorded, or not to be."""
        self._files.pop(file, None)

    async def serve(self) -> None:
        """Try again until cancelled."""
        pause = RETRY
        while True:
            if not self._files:
                self._arrived, pause = trio.Event(), RETRY
                await self._arrived.wait()
            await trio.sleep(pause)
            began = trio.current_time()
            await self.try_again()
            pause = max(min(pause * 2, RETRY_MAX), _SHARE * (trio.current_time() - began))

    async def try_again(self) -> None:
        """Each once; one that needs the log waits while sealing fails, which is tried again by itself."""
        async with self._trying:
            for file, recorder in list(self._files.items()):
                if not recorder.is_due(file):
                    self.discard(file)
                elif not (self._writer.trouble and file.node.places):
                    await self._try(file, recorder)

    async def _try(self, file: OpenFile, recorder: "Recorder") -> None:
        path, store = printable(recorder.store.tree.path_of(file.node)), recorder.store
        try:
            await recorder.record_late(file)
        except (StorageError, OSError, HeldStill):
            return
        except EngramError as error:
            store.remember(f"{path} is not recorded, though it was closed: {error.message}")
            return
        if file.node.places:
            store.recent.add(f"{path} is recorded now")
            log.info("recorded what found no room before", store=store.store.name, node=file.node.id)
