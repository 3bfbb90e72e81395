"""The methods of the control socket with which a person decides on what is pending.

Whoever reaches the control socket is root or the owner of the daemon; a session has no way to it.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import trio

from engramfs.daemon.committing import Committer, Room, author_of
from engramfs.daemon.control import Handler, Peer
from engramfs.daemon.request import taking
from engramfs.history import approval, catalog, log, pending
from engramfs.history.approval import Approved, Decided
from engramfs.model.store import Store
from engramfs.model.times import format_time
from engramfs.storage.protocol import Reader, Writer
from engramfs.vfs.filesystem import Filesystem
from engramfs.vfs.fork import Fork

Document = dict[str, Any]


class ApproveRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `merge`, texts that changed meanwhile are merged line by line."""

    store: str
    number: int
    reason: str = ""
    merge: bool = False


class RejectRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    store: str
    number: int
    reason: str


class PendingMethods:
    """Both answer with the pending version as it is now."""

    def __init__(self, committer: Committer, filesystem: Filesystem) -> None:
        self._committer = committer
        self._filesystem = filesystem

    def methods(self) -> Mapping[str, Handler]:
        return {
            "pending.approve": taking(ApproveRequest, self.approve),
            "pending.reject": taking(RejectRequest, self.reject),
        }

    async def approve(self, request: ApproveRequest, peer: Peer) -> Document:
        store, by = self._committer.writable(request.store), author_of(peer)

        def body(writer: Writer, _room: Room) -> Approved:
            return approval.approve(
                writer, store, request.number, by, time.time_ns(), request.reason, merge=request.merge
            )

        async with self._fork_held_still(store, request.number) as fork:
            decided = await self._committer.held_still(store, 0, body)
            if fork is not None:
                fork.settle(decided.names)
        return self._document(store, request.number)

    async def reject(self, request: RejectRequest, peer: Peer) -> Document:
        store, by = self._committer.store(request.store), author_of(peer)

        def body(writer: Writer) -> Decided:
            return approval.reject(writer, store, request.number, by, time.time_ns(), request.reason)

        async with self._fork_held_still(store, request.number) as fork:
            with trio.CancelScope(shield=True):  # what is decided is shown, whoever still waits for it
                decided = await self._filesystem.resources.writer.run(body)
            if fork is not None:
                fork.settle(decided.names)
        return self._document(store, request.number)

    @contextlib.asynccontextmanager
    async def _fork_held_still(self, store: Store, number: int) -> AsyncIterator[Fork | None]:
        """The fork of a pending version, where a session has it: it records nothing until it is decided."""
        with self._filesystem.resources.engine.reading() as reader:
            identifier = pending.get(reader, store, number).fork
        fork = self._filesystem.stores.get(identifier)
        if isinstance(fork, Fork):
            async with fork.held_still():
                yield fork
        else:
            yield None

    def _document(self, store: Store, number: int) -> Document:
        with self._filesystem.resources.engine.reading() as reader:
            return pending.describe(reader, store, pending.get(reader, store, number))

    def waiting(self) -> list[Document]:
        """What waits in all stores, for `status`."""
        with self._filesystem.resources.engine.reading() as reader:
            return [
                _waiting(reader, catalog.get(reader, store), each.number)
                for store, each in pending.waiting(reader)
            ]


def _waiting(reader: Reader, store: Store, number: int) -> Document:
    offered = pending.get(reader, store, number)
    version = log.version(reader, catalog.get(reader, offered.fork), offered.version)
    return {
        "store": store.name,
        "number": number,
        "time": format_time(version.time),
        "author": version.author.label(),
        "changes": version.change_count,
    }
