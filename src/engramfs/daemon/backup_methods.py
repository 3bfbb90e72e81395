"""The methods of the control socket that take stores out of a backup while others go on writing."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import trio

from engramfs.daemon.committing import NODES, Committer, QueuedRepository, Room, author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.daemon.sessions import graft_store
from engramfs.errors import UsageError
from engramfs.history import catalog, transplant
from engramfs.history.repository import Repository
from engramfs.history.transplant import Restored
from engramfs.model.store import Store
from engramfs.storage.protocol import Writer
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.fork import Fork


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
        """Answers `{store, new, version, pending}`: the version as `log` has it, None when nothing changed.

        Of a store that is `new` here it is None too: it comes with the versions that it has, and with all
        that was ever pending. Of another, `pending` says what became of what waits: see
        `transplant.describe`.
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

                def body(writer: Writer, room: Room) -> Restored:
                    name, now, by = request.store, time.time_ns(), author_of(peer)
                    shown, first = request.shown, room.first_node
                    return transplant.restore(source, there, writer, name, by, now, shown, first)

                return transplant.describe(there.name, await self._restored(store, body))

    async def _restored(self, store: Store, body: Callable[[Writer, Room], Restored]) -> Restored:
        """Nobody records anything meanwhile, neither in the store nor in what sessions made of it."""
        async with contextlib.AsyncExitStack() as still:
            forks = [
                live
                for live in self._filesystem.stores.values()
                if isinstance(live, Fork) and live.store.base == store.id
            ]
            for fork in forks:
                await still.enter_async_context(fork.held_still())
            restored = await self._committer.held_still(store, NODES, body)
            for fork in forks:
                for decided in restored.pending.rejected:
                    if decided.pending.fork == fork.store.id:
                        fork.settle(decided.names)
        return restored

    def _here(self, name: str) -> Store | None:
        with self._repository.engine.reading() as reader:
            return catalog.writable(reader, name) if catalog.find(reader, name) is not None else None
