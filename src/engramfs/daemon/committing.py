"""How a commit that comes another way than through a view gets into the log of a running worker.

What is open is sealed first. A short plan is made inside the write transaction; a long one in a thread,
against a head that may move meanwhile, and then it is made again. What the commit wrote is taken over by the
live trees.

Concurrency. On the event loop; plans of `when_quiet` run in a thread, and what they write waits its turn at
the log writer.
"""

import pwd
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
import trio

from engramfs.daemon.control import Peer
from engramfs.history import catalog, commit, log
from engramfs.history.commit import Commit
from engramfs.history.repository import Repository
from engramfs.model.author import Author
from engramfs.model.store import Store
from engramfs.model.version import Version
from engramfs.storage.protocol import Writer
from engramfs.vfs.filesystem import Filesystem

Result = TypeVar("Result")
_NODES = 1 << 22  # node ids set aside for an import or a restore


class QueuedRepository(Repository):
    """The repository as a thread of the worker sees it: what it writes waits its turn at the log writer."""

    def __init__(self, repository: Repository, filesystem: Filesystem) -> None:
        super().__init__(repository.state, repository.engine, None)
        self._writer = filesystem.resources.writer

    def transact(self, body: Callable[[Writer], Result]) -> Result:
        return trio.from_thread.run(self._writer.run, body)


class Committer:
    """Commits for the methods of the control socket."""

    def __init__(self, repository: QueuedRepository, filesystem: Filesystem) -> None:
        self._repository = repository
        self._filesystem = filesystem

    def store(self, name: str) -> Store:
        """Raises `InvalidName` and `NotFound`."""
        with self._repository.engine.reading() as reader:
            return catalog.named(reader, name)

    def writable(self, name: str) -> Store:
        """The store, if it takes new versions. Raises `NotFound` and `Archived`."""
        with self._repository.engine.reading() as reader:
            return catalog.writable(reader, name)

    async def when_quiet(self, store: Store, plan: Callable[..., Commit]) -> dict[str, Any] | None:
        """Plan against the head, in a thread, until the head is still the same when the plan is ready.

        `plan` gets `store` and `now`. Returns the version's document, None when nothing changed.
        """
        while True:
            head = await self._quiet_head(store)
            planned = await trio.to_thread.run_sync(
                partial(plan, store=self.store(store.name), now=time.time_ns())
            )
            version = await self._commit_if_still(planned, head)
            if not isinstance(version, _Moved):
                return _version_document(version, planned)

    async def at_once(self, store: Store, plan: Callable[[Writer], Commit]) -> dict[str, Any] | None:
        """Plan and commit in one write transaction. Returns the version's document, None for no change."""
        await self._quiet_head(store)

        def body(writer: Writer) -> tuple[Commit, Version | None]:
            planned = plan(writer)
            return planned, commit.apply(writer, planned)

        planned, version = await self._filesystem.resources.writer.run(body)
        self._filesystem.absorb(planned, version)
        return _version_document(version, planned)

    async def _quiet_head(self, store: Store) -> int:
        """Seal what is open, and set node ids aside that the live tree will not use; the head's number."""
        live = self._filesystem.store(store.name)
        await live.sealed()
        first = live.tree.set_aside(_NODES)

        def body(writer: Writer) -> int:
            head = catalog.head(writer, store.id)
            next_node = max(head.next_node, first)
            catalog.put_head(writer, store.id, msgspec.structs.replace(head, next_node=next_node))
            return head.number

        return await self._filesystem.resources.writer.run(body)

    async def _commit_if_still(self, planned: Commit, head: int) -> "Version | _Moved | None":
        def body(writer: Writer) -> "Version | _Moved | None":
            if catalog.head(writer, planned.store).number != head:
                return _Moved()
            return commit.apply(writer, planned)

        version = await self._filesystem.resources.writer.run(body)
        if not isinstance(version, _Moved):
            self._filesystem.absorb(planned, version)
        return version


class _Moved:
    """The head is no longer the one that a commit was planned for."""


def _version_document(version: Version | None, planned: Commit) -> dict[str, Any] | None:
    return log.describe(version, planned.changes) if version is not None else None


def author_of(peer: Peer) -> Author:
    """The person at the other end of the control socket."""
    try:
        name = pwd.getpwuid(peer.uid).pw_name
    except KeyError:
        name = str(peer.uid)
    return Author("person", actor=name)
