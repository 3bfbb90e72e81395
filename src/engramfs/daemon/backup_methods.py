"""The methods of the control socket that take stores out of a backup while others go on writing."""

import os
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import trio

from engramfs.daemon.committing import Committer, QueuedRepository, author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.daemon.sessions import graft_store
from engramfs.errors import UsageError
from engramfs.history import catalog, transplant
from engramfs.history.commit import Commit
from engramfs.history.repository import Repository
from engramfs.model.store import Store
from engramfs.storage.protocol import Writer
from engramfs.vfs.filesystem import Filesystem


class StoreRestoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`backup` is a directory as the caller sees it, verified and sealed; people know it as `shown`."""

    store: str
    backup: str
    shown: str


class BackupMethods:
    """One at a time: an environment of LMDB must not be open twice in a process."""

    def __init__(self, repository: QueuedRepository, committer: Committer, filesystem: Filesystem) -> None:
        self._repository = repository
        self._committer = committer
        self._filesystem = filesystem
        self._one_at_a_time = trio.Lock()

    def methods(self) -> Mapping[str, Handler]:
        return {"store.restore": taking(StoreRestoreRequest, self.store_restore)}

    async def store_restore(self, request: StoreRestoreRequest, peer: Peer) -> dict[str, Any]:
        """Answers `{store, new, version}`: the version as `log` has it, None when nothing changed.

        Of a store that is `new` here it is None too: it comes with the versions that it has.
        """
        directory = f"/proc/{peer.pid}/root{request.backup}"
        if os.path.samefile(directory, self._repository.state):
            raise UsageError(f"{request.backup} is what this daemon serves; name a backup of it")
        async with self._one_at_a_time:
            with Repository.open(directory) as source:
                there = transplant.find(source, request.store, request.shown)
                store = self._here(request.store)
                if store is None:
                    await trio.to_thread.run_sync(transplant.adopt, source, there, self._repository)
                    graft_store(self._filesystem, there.name)
                    return {"store": there.name, "new": True, "version": None}
                await trio.to_thread.run_sync(transplant.copy_head, source, there, self._repository)

                def plan(writer: Writer) -> Commit:
                    here, now = catalog.writable(writer, request.store), time.time_ns()
                    return transplant.plan(source, there, writer, here, author_of(peer), now, request.shown)

                version = await self._committer.at_once(store, plan)
                return {"store": there.name, "new": False, "version": version}

    def _here(self, name: str) -> Store | None:
        with self._repository.engine.reading() as reader:
            return catalog.writable(reader, name) if catalog.find(reader, name) is not None else None
